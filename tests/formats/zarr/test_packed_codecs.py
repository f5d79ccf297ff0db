"""The codecs of packed values: exact division, what metadata say, and attributes of CF that say the same."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from value_codec_readers import needs_codecs

from tamis import DataError, Pack, ParameterError
from tamis.formats.zarr.packed_codecs import PackedCodecs, Parts
from tamis.formats.zarr.value_codecs import with_own_codecs
from tamis.rounding import PackingRange
from tamis.rounding.division import divided, exact_steps, invertible_step, is_invertible, scale_of, step_of

F4, F8, I1, I2, I4 = (np.dtype(name) for name in ("f4", "f8", "i1", "i2", "i4"))
FLOATS = st.sampled_from([F4, F8])
FILL = np.float32(1e36)


def bits(values: Any) -> bytes:
    return np.asarray(values).tobytes()


@given(FLOATS, st.integers(1, 255), st.integers(-40, 40), st.data())
def test_division_by_an_invertible_scale_is_exact(
    dtype: np.dtype[Any], odd: int, exponent: int, data: st.DataObject
) -> None:
    step = math.ldexp(odd, exponent)
    assume(is_invertible(step, dtype))
    most = min(exact_steps(dtype, step), np.iinfo(I4).max)
    codes = data.draw(hnp.arrays(I4, st.integers(1, 50), elements=st.integers(-most, most)))
    scale = dtype.type(scale_of(step))
    assert bits(divided(codes, scale, dtype.type(0))) == bits(codes.astype(dtype) * dtype.type(step))
    assert step_of(scale) == step
    # As zarrita.js does: in float64, with the digits that the metadata have, and rounded at the end.
    assert bits((codes / scale_of(step)).astype(dtype)) == bits(codes.astype(dtype) * dtype.type(step))


@pytest.mark.parametrize("dtype", [F4, F8])
@pytest.mark.parametrize("bound", [0.1, 0.05, 1e-3, 0.7, 3e-12, 1e20])
def test_invertible_steps_lose_little(dtype: np.dtype[Any], bound: float) -> None:
    step = invertible_step(2 * bound, 8, dtype)
    assert is_invertible(step, dtype)
    assert 0.95 * 2 * bound <= step <= 2 * bound
    assert float(step).as_integer_ratio()[0].bit_length() <= 8 or step.is_integer()


def arrays() -> st.SearchStrategy[tuple[Any, float, float | None]]:
    """Values of both types at all scales, with a bound, and a fill value or none."""

    @st.composite
    def make(draw: st.DrawFn) -> tuple[Any, float, float | None]:
        dtype = draw(FLOATS)
        exponent = draw(st.integers(-60, 60))
        bound = math.ldexp(draw(st.floats(0.5, 1, exclude_max=True)), exponent)
        spread = draw(st.sampled_from([1.0, 100.0, 5e4, 1e6]))
        center = draw(st.floats(-1e4, 1e4)) * bound
        steps = draw(hnp.arrays("f8", st.integers(1, 60), elements=st.floats(-spread, spread)))
        ties = draw(st.booleans())
        values = (center + (np.rint(steps) + 0.5 if ties else steps) * bound).astype(dtype)
        fill = draw(st.sampled_from([None, -999.0, 1e36, 9.969209968386869e36, 0.0]))
        for place in draw(st.lists(st.integers(0, len(values) - 1), max_size=3)):
            values[place] = draw(st.sampled_from([np.nan, 0.0 if fill is None else fill]))
        return values, bound, fill

    return make()


def packed(values: Any, bound: float, fill: float | None) -> tuple[Any, PackedCodecs, float]:
    """Codes of values, with the codecs that unpack them, and the largest error."""
    marks = [] if fill is None else [values.dtype.type(fill)]
    codes = Pack(bound).codes(values.dtype, PackingRange.of(values, marks), spare=True, is_divided=True)
    found, error = codes.pack(values)
    attributes: dict[str, Any] = {
        "scale_factor": values.dtype.type(codes.scale),
        "add_offset": values.dtype.type(codes.offset),
    }
    for name, (_, code) in zip(("_FillValue", "missing_value"), codes.missing, strict=False):
        attributes[name] = codes.dtype.type(code)
    codecs = PackedCodecs.of_attributes(attributes, codes.dtype, {code: mark for mark, code in codes.missing})
    assert codecs.is_exact((codes.low, codes.high))
    return found, codecs, error


@pytest.mark.properties
@given(arrays())
@example((np.array([280.3, np.nan, 1e36, 281.06], "f4"), 0.1, 1e36))
def test_every_value_keeps_its_bound_and_missing_ones_their_bits(case: tuple[Any, float, float | None]) -> None:
    values, bound, fill = case
    try:
        codes, codecs, error = packed(values, bound, fill)
    except (ParameterError, DataError) as refused:
        reasons = (
            "a bound that integers of 32 bits can keep",
            "a missing value that no other one becomes by a step of",
        )
        assert str(refused).startswith(tuple(f"expected {reason}" for reason in reasons))  # noqa: PT017 - or none
        return
    found = codecs.decoded(codes)
    missing = np.isnan(values) | (values == (np.nan if fill is None else values.dtype.type(fill)))
    assert bits(found[missing]) == bits(values[missing] + values.dtype.type(0))
    errors = np.abs(found.astype("f8") - values)[~missing]
    assert errors.max(initial=0) <= error <= bound
    again = codecs.encoded(found)
    assert again is not None
    assert bits(again) == bits(codes)
    parsed = PackedCodecs.of(values.dtype.name, json.loads(json.dumps(codecs.metadata())))
    assert parsed is not None
    assert bits(parsed.decoded(codes)) == bits(found)


@needs_codecs
@pytest.mark.properties
@given(arrays())
def test_zarr_python_has_the_same_bits(case: tuple[Any, float, float | None]) -> None:
    values, bound, fill = case
    try:
        codes, codecs, _ = packed(values, bound, fill)
    except (ParameterError, DataError):
        return
    fill_value = codecs.decoded(np.array([codecs.marks[0][0]], codes.dtype))[0]
    found = codecs.decoded(codes)
    array = by_zarr_python(codecs, found.dtype, len(values), fill_value)
    array[:] = found  # by its own encoding
    assert bits(array[:]) == bits(found)


def by_zarr_python(codecs: PackedCodecs, dtype: np.dtype[Any], length: int, fill_value: Any) -> Any:
    """A new array in memory with zarr-python's own codecs."""
    from zarr.registry import get_codec_class

    filters = [get_codec_class(codec["name"]).from_dict(codec) for codec in codecs.metadata()]
    return zarr.create_array(
        {}, shape=(length,), chunks=(length,), dtype=dtype, filters=filters, compressors=None, fill_value=fill_value
    )


def test_infinities_are_refused() -> None:
    with pytest.raises(DataError, match="found an infinite one"):
        packed(np.array([1, np.inf], "f4"), 0.1, None)


def test_a_value_that_would_become_the_missing_one_is_refused() -> None:
    with pytest.raises(DataError, match=r"missing value that no other one becomes by a step of 0\.25, found 0: .*attr"):
        packed(np.array([0.0, 0.1, 3.0], "f4"), 0.125, 0.0)
    codes, codecs, _ = packed(np.array([0.0, 0.4, 3.0], "f4"), 0.125, 0.0)
    assert bits(codecs.decoded(codes)) == bits(np.array([0, 0.5, 3], "f4"))


def test_nan_with_other_bits_is_refused() -> None:
    values = np.array([0x7FC00000, 0x7FC00001, 0x3F800000], "u4").view("f4")
    with pytest.raises(DataError, match=r"expected NaN with the bits 0x7fc00000, .* found 0x7fc00001: .*attributes"):
        packed(values, 0.1, None)
    negative = np.array([-np.nan, 1.0])
    with pytest.raises(DataError, match="found 0xfff8000000000000"):
        packed(negative, 0.1, None)


def test_metadata_exchange_finite_marks_first() -> None:
    _, codecs, _ = packed(np.array([280.3, np.nan, FILL], "f4"), 0.1, float(FILL))
    exchange, line, cast = codecs.metadata()
    value = float(FILL)
    assert exchange["configuration"] == {
        "data_type": "float32",
        "scalar_map": {"encode": [[value, "Infinity"]], "decode": [["Infinity", value]]},
    }
    assert line["configuration"].keys() == {"offset", "scale"}
    assert cast["configuration"]["data_type"] == "int8"
    assert {mark for _, mark in cast["configuration"]["scalar_map"]["decode"]} == {"NaN", "Infinity"}
    _, alone, _ = packed(np.array([280.3, FILL], "f4"), 0.1, float(FILL))
    assert alone.metadata()[0]["configuration"]["scalar_map"]["encode"] == [[value, "NaN"]]
    _, usual, _ = packed(np.array([280.3, np.nan], "f4"), 0.1, None)
    assert [codec["name"] for codec in usual.metadata()] == ["scale_offset", "cast_value"]


def cf(scale: Any, offset: Any, **others: Any) -> dict[str, Any]:
    return {"scale_factor": scale, "add_offset": offset, **others}


@pytest.mark.parametrize("dtype", [I1, I2, I4, np.dtype("u1"), np.dtype("u2")])
@pytest.mark.parametrize("floats", [F4, F8])
def test_attributes_come_back_from_codecs(dtype: np.dtype[Any], floats: np.dtype[Any]) -> None:
    own = floats.type
    before = cf(
        own(0.25),
        own(16),
        _FillValue=dtype.type(0),
        missing_value=dtype.type(1),
        valid_min=dtype.type(2),
        valid_max=dtype.type(100),
        units="K",
    )
    codecs = PackedCodecs.of_attributes(before, dtype, {})
    attributes = codecs.of_floats(before)
    assert attributes.keys() == {"_FillValue", "valid_min", "valid_max", "units"}
    assert math.isnan(attributes["_FillValue"])
    assert (attributes["valid_min"], attributes["valid_max"]) == (16.5, 41)
    after = codecs.of_codes(attributes)
    assert after is not None
    assert {name: (value, getattr(value, "dtype", None)) for name, value in after.items()} == {
        name: (value, getattr(value, "dtype", None)) for name, value in before.items()
    }


@pytest.mark.parametrize(
    ("attributes", "dtype", "words"),
    [
        (cf(0.1, 0.0, _Unsigned="true"), I1, "without _Unsigned, got int8"),
        (cf(0.1, 0.0), np.dtype("i8"), "of 8, 16 or 32 bits"),
        (cf(0.1, 0.0, flag_values=np.array([1, 2], "i1")), I1, "flag_values gives words to integers"),
    ],
)
def test_attributes_that_codecs_cannot_have_are_refused(
    attributes: dict[str, Any], dtype: np.dtype[Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        PackedCodecs.of_attributes(attributes, dtype, {})


def test_only_exact_factors_may_become_the_other_form() -> None:
    exact = PackedCodecs.of_attributes(cf(np.float32(0.25), np.float32(280)), I2, {})
    assert exact.is_exact()
    refused = 0
    for factor in 0.0017 + np.arange(100) / 1e5:
        try:
            assert not PackedCodecs.of_attributes(cf(factor, 271.3), I2, {}).is_exact()
        except ParameterError as error:
            assert "have other last digits than by scale_factor" in str(error)  # noqa: PT017 - or not exact
            refused += 1
    assert 0 < refused < 100  # 1 / (1 / factor) is another number
    ten = PackedCodecs(I2, np.float32(10), np.float32(0))
    assert not ten.is_exact()
    assert not ten.may_be_exact
    wide = PackedCodecs.of_attributes(cf(np.float32(0.25), np.float32(0)), I4, {})
    assert not wide.is_exact()  # float32 has not all integers of 32 bits
    assert wide.is_exact((-(1 << 24) + 1, (1 << 24) - 1))
    assert not wide.is_exact((0, 1 << 25))
    assert PackedCodecs.of_attributes(cf(np.float64(0.25), np.float64(7.5)), I4, {}).is_exact()
    assert not PackedCodecs.of_attributes(cf(np.float64(0.25), np.float64(7.4)), I4, {}).is_exact((0, 1 << 20))
    fine = PackedCodecs.of_attributes(cf(np.float32(1.0009765625), np.float32(0)), I2, {})  # a step of 11 bits
    assert not fine.is_exact()
    assert fine.may_be_exact
    assert fine.is_exact((-1000, 1000))


SCALE = {"name": "scale_offset", "configuration": {"offset": 5, "scale": 4}}
CAST = {"name": "cast_value", "configuration": {"data_type": "int16"}}


def test_parts_of_codecs() -> None:
    parts = Parts.of([SCALE, CAST, "bytes", "crc32c"])
    assert parts is not None
    assert (parts.packing, parts.others) == ([SCALE, CAST], ["bytes", "crc32c"])
    assert parts.within(["bytes"]) == ["bytes"]
    inner = {"chunk_shape": [1], "codecs": [SCALE, CAST, "bytes"]}
    sharded = Parts.of([{"name": "sharding_indexed", "configuration": inner}])
    assert sharded is not None
    assert sharded.others == ["bytes"]
    assert sharded.within(["x"])[0]["configuration"] == {"chunk_shape": [1], "codecs": ["x"]}
    for others in ([CAST, SCALE, "bytes"], [SCALE, "bytes"], ["bytes"], [], "bytes", None, [7]):
        assert Parts.of(others) is None


@pytest.mark.parametrize(
    "packing",
    [
        [SCALE, {"name": "cast_value", "configuration": {"data_type": "float32"}}],
        [SCALE, {"name": "cast_value", "configuration": {"data_type": "int64"}}],
        [SCALE, {"name": "cast_value", "configuration": {"data_type": "int8", "rounding": "towards-zero"}}],
        [{"name": "scale_offset", "configuration": {"scale": "no number"}}, CAST],
        [{"name": "scale_offset", "configuration": {"scale": 0}}, CAST],
        [{"name": "cast_value", "configuration": {"data_type": "float64"}}, SCALE, CAST],
    ],
)
def test_codecs_of_other_kinds_are_no_packing(packing: list[dict[str, Any]]) -> None:
    assert PackedCodecs.of("float32", packing) is None
    assert PackedCodecs.of("int32", [SCALE, CAST]) is None


def test_marks_of_another_program_are_those_after_its_scale() -> None:
    scalar_map = {"encode": [["NaN", 0]], "decode": [[0, "NaN"], [1, 80.0], [0, 5.0]]}
    cast = {"name": "cast_value", "configuration": {"data_type": "uint8", "scalar_map": scalar_map}}
    codecs = PackedCodecs.of("float32", [SCALE, cast])
    assert codecs is not None
    assert bits(codecs.decoded(np.array([0, 1, 2], "u1"))) == bits(np.array([np.nan, 25, 5.5], "f4"))
    with pytest.raises(ParameterError, match=r"code 1 has a value of its own, 25\.0, that no attribute names"):
        codecs.of_codes({})
    with pytest.raises(ParameterError, match="its attribute scale_factor is about floats"):
        codecs.of_codes({"scale_factor": np.float32(2)})
    after = codecs.of_codes({"missing_value": np.float32(25)})
    assert after is not None
    assert (after["missing_value"], after["_FillValue"]) == (1, 0)
    own = with_own_codecs([SCALE, cast, "bytes"], "float32")
    assert [type(codec).__name__ for codec in own[:2]] == ["ScaleOffsetCodec", "CastValueCodec"]
