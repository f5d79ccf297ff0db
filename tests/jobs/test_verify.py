"""Two files compared: errors, missing values and bounds of numbers, whatever way they are stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis import Verification
from tamis.accuracy import Place

Make = Callable[..., Path]
Run = Callable[..., str]
Real = Callable[[str], Path]

FILL = np.float32(9.96921e36)


def field(shape: tuple[int, ...] = (12, 30, 40), dtype: str = "f4") -> NDArray[Any]:
    return (100 * np.sin(np.arange(np.prod(shape)) / 17)).reshape(shape).astype(dtype)


def codes(found: Verification) -> set[str]:
    return {each.code for each in found.violations}


def noted(found: Verification) -> set[str]:
    return {each.code for each in found.notes}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "recipes", "chunks", "bounds"),
    [
        ("cam_ts_100days.nc", {"TS": "zfp(accuracy=0.1)"}, {"TS": (4, 96, 144)}, {"TS": 0.1}),
        ("cam_t_3months.nc", {"T": "zfp(accuracy=0.05)"}, {}, {"T": 0.05, "*": 0}),
        ("pop_sst_60days.nc", {"SST": "zfp(accuracy=0.1)|shuffle|deflate(1)"}, {"SST": (60, 16, 16)}, {"SST": 0.1}),
        ("era5_levels_members.nc", {"t": "zfp(accuracy=0.01)", "z": "zfp(accuracy=1)"}, {}, {"t": 0.01, "z": 1}),
        ("pop_sst_60days.nc", {"*": "shuffle|deflate(1)|fletcher32"}, {"SST": (7, 50, 90)}, {"*": 0}),
    ],
)
def test_verify_repacked_real_file_as_numpy_says(
    name: str, recipes: dict[str, str], chunks: dict[str, Any], bounds: dict[str, float], real: Real, tmp_path: Path
) -> None:
    source, target = real(name), tmp_path / "out.nc"
    done = tamis.repack(source, target, recipes, chunks=chunks)
    found = tamis.verify(source, target, bounds=bounds)
    assert found.ok, str(found)
    with h5py.File(source) as first, h5py.File(target) as second:
        for each in done.datasets:
            before, after = first[each.path][()], second[each.path][()]
            attributes = first[each.path].attrs
            scale, offset = (
                np.ravel(attributes.get(name, n))[0] for name, n in (("scale_factor", 1), ("add_offset", 0))
            )
            tally = found[each.path].tally
            assert tally is not None
            valid = (np.abs(before) < 1e36) & np.isfinite(before)
            assert tally.missing == np.count_nonzero(~valid)
            errors = np.abs(before[valid].astype("f8") - after[valid].astype("f8")) * scale
            assert tally.error == pytest.approx(errors.max(initial=0), rel=1e-14, abs=0)
            assert tally.rmse == pytest.approx(np.sqrt(np.mean(errors**2)) if errors.size else 0, rel=1e-12)
            assert found[each.path].equal == (before.tobytes() == after.astype(before.dtype).tobytes())
            if tally.worst:
                assert tally.worst.source == pytest.approx(before[tally.worst.index] * scale + offset, rel=1e-14)
                assert tally.worst.target == pytest.approx(after[tally.worst.index] * scale + offset, rel=1e-14)
                assert abs(tally.worst.source - tally.worst.target) == pytest.approx(tally.error, rel=1e-9)


def test_verify_result_is_the_same_for_any_number_of_threads(real: Real, tmp_path: Path) -> None:
    source, target = real("pop_sst_60days.nc"), tmp_path / "out.nc"
    tamis.repack(source, target, {"SST": "zfp(accuracy=0.1)|deflate(1)"}, chunks={"SST": (60, 16, 16)})
    found = [
        tamis.verify(source, target, bounds={"SST": 0.001}, variables=["SST"], threads=threads) for threads in (1, 2, 8)
    ]
    assert found[0] == found[1] == found[2]
    assert found[0].to_json() == found[1].to_json() == found[2].to_json()
    assert codes(found[0]) == {"bound"}


@pytest.mark.matrix
@pytest.mark.peer
@pytest.mark.parametrize("name", ["cam_ts_100days.nc", "pop_sst_60days.nc", "era5_levels_members.nc"])
def test_verify_copies_of_other_programs_are_identical(name: str, real: Real, tool: Run, tmp_path: Path) -> None:
    source = real(name)
    tool("nccopy", "-d", "1", "-s", source, tmp_path / "nccopy.nc")
    tool("h5repack", "-f", "SHUF", "-f", "GZIP=1", source, tmp_path / "h5repack.nc")
    for target in (tmp_path / "nccopy.nc", tmp_path / "h5repack.nc"):
        found = tamis.verify(source, target, bounds={"*": 0})
        assert found.ok, str(found)
        assert all(each.equal for each in found.datasets)


def test_verify_file_that_hdf5plugin_wrote(python: Run, tmp_path: Path, make: Make) -> None:
    values = field()
    source = make(tmp_path / "a.h5", x=values, y=values)
    python(
        "import sys, h5py, hdf5plugin, numpy as np\n"
        "with h5py.File(sys.argv[1]) as a, h5py.File(sys.argv[2], 'w') as b:\n"
        "    b.create_dataset('x', data=a['x'][()], chunks=(5, 16, 16), **hdf5plugin.Zfp(accuracy=0.01))\n"
        "    b.create_dataset('y', data=a['y'][()], chunks=(5, 16, 16), **hdf5plugin.Blosc(cname='zstd'))\n",
        source,
        tmp_path / "b.h5",
    )
    found = tamis.verify(source, tmp_path / "b.h5", bounds={"x": 0.01, "y": 0})
    assert found.ok, str(found)
    assert found["x"].tally is not None
    assert 0 < found["x"].tally.error <= 0.01
    assert found["y"].equal


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i4", "i8", "u8"])
@pytest.mark.parametrize("options", [{}, {"chunks": (5, 16, 40), "compression": 1}])
def test_verify_byte_swapped_values_are_identical_and_it_is_said(
    dtype: str, options: dict[str, Any], pair: Callable[..., tuple[Path, Path]]
) -> None:
    values = field(dtype=dtype if dtype != "u8" else "i8").astype(dtype)
    source, target = pair({"data": values.astype(f">{dtype}")}, {"data": values, **options})
    found = tamis.verify(source, target, bounds={"*": 0})
    assert found.ok
    assert found["x"].equal
    assert noted(found) == {"byte-order"}
    assert "big-endian" in found["x"].source_type
    assert "big-endian" not in found["x"].target_type


@pytest.mark.parametrize("chunks", [None, (12, 30, 40), (5, 7, 11)])
@pytest.mark.parametrize("other", [None, (1, 30, 40), (5, 7, 11)])
def test_verify_one_changed_value_is_found_with_its_place(
    chunks: Any, other: Any, pair: Callable[..., tuple[Path, Path]]
) -> None:
    values = field()
    changed = values.copy()
    changed[11, 29, 3] += 0.5
    source, target = pair({"data": values, "chunks": chunks}, {"data": changed, "chunks": other})
    found = tamis.verify(source, target, bounds={"x": 0.25})
    (violation,) = found.violations
    assert (violation.path, violation.code) == ("/x", "bound")
    before, after = float(values[11, 29, 3]), float(changed[11, 29, 3])
    assert violation.text == (
        f"expected an error of at most 0.25, found {after - before!r}: at [11, 29, 3] {before!r} became {after!r}"
    )
    assert tamis.verify(source, target, bounds={"x": 0.5001}).ok
    tally = found["x"].tally
    assert tally is not None
    assert (tally.different, tally.worst) == (1, Place((11, 29, 3), before, after))


def test_verify_bound_is_held_exactly_at_its_edge(pair: Callable[..., tuple[Path, Path]]) -> None:
    source, target = pair(np.array([2**62, 0], "i8"), np.array([2**62 + 3, 0], "i8"))
    assert tamis.verify(source, target, bounds={"x": 3}).ok
    found = tamis.verify(source, target, bounds={"x": 2})
    assert codes(found) == {"bound"}
    assert "found 3: at [0] 4611686018427387904 became 4611686018427387907" in str(found)


def test_verify_without_bound_asks_for_the_same_bits(pair: Callable[..., tuple[Path, Path]]) -> None:
    found = tamis.verify(*pair(field(), field() + 1))
    assert codes(found) == {"bits"}
    assert "14400 of 14400 values differ: expected the same bits (no bound was given), found at [0, 0, 0]" in str(found)


@pytest.mark.parametrize("after", [-0.0, 1e-45])
def test_verify_bound_0_asks_for_the_same_bits(after: float, pair: Callable[..., tuple[Path, Path]]) -> None:
    found = tamis.verify(*pair(np.zeros(3, "f4"), np.array([0, after, 0], "f4")), bounds={"x": 0})
    assert codes(found) == {"bits"}
    assert "at [1] 0.0 became" in found.violations[0].text


def test_verify_missing_values_with_a_bound_keep_their_bits(pair: Callable[..., tuple[Path, Path]]) -> None:
    values = field((4, 5))
    values[1, 1], values[2, 2], values[3, 3], values[3, 4] = FILL, np.nan, np.inf, -1e30
    before = {"data": values, "chunks": (2, 5), "._FillValue": FILL, ".missing_value": np.array([-1e30], "f4")}
    source, target = pair(before, before)
    found = tamis.verify(source, target, bounds={"x": 1000})
    assert found.ok
    tally = found["x"].tally
    assert tally is not None
    assert (tally.missing, tally.low, tally.high) == (4, values[values > -1e29].min(), values[values < 1e30].max())
    for place, text in (((1, 1), "[1, 1]"), ((2, 2), "[2, 2]"), ((3, 3), "[3, 3]"), ((3, 4), "[3, 4]")):
        changed = values.copy()
        changed[place] = 7
        found = tamis.verify(*pair(before, before | {"data": changed}), bounds={"x": 1000})
        assert codes(found) == {"missing-values"}
        assert f"1 of 4 missing values have other bits: at {text}" in found.violations[0].text
        assert codes(tamis.verify(source, target.with_name("b.h5"))) == {"bits", "missing-values"}


@pytest.mark.parametrize("made", [np.nan, np.inf, FILL])
def test_verify_valid_values_that_went_missing_violate_a_bound(
    made: float, pair: Callable[..., tuple[Path, Path]]
) -> None:
    values = field()
    changed = values.copy()
    changed[3, 4, 5] = made
    options = {"fillvalue": FILL, "chunks": (3, 30, 40)}
    found = tamis.verify(*pair({"data": values, **options}, {"data": changed, **options}), bounds={"x": 1e38})
    assert codes(found) == {"missing-values"}
    assert "1 valid value became missing: at [3, 4, 5]" in str(found)


def test_verify_fill_value_0_that_no_attribute_names_is_a_value(pair: Callable[..., tuple[Path, Path]]) -> None:
    values = np.array([0.0, 1.0])
    options = {"fillvalue": 0.0}
    source, target = pair({"data": values, **options}, {"data": values + 0.25, **options})
    assert tamis.verify(source, target, bounds={"x": 0.25}).ok
    named = pair({"data": values, "._FillValue": 0.0}, {"data": values + 0.25, "._FillValue": 0.0})
    assert codes(tamis.verify(*named, bounds={"x": 0.25})) == {"missing-values"}


def test_verify_chunks_never_written_are_fill_values(pair: Callable[..., tuple[Path, Path]]) -> None:
    sparse = {"shape": (100, 100), "dtype": "f4", "chunks": (10, 10), "fillvalue": FILL}
    found = tamis.verify(*pair(sparse, {"data": np.full((100, 100), FILL), "fillvalue": FILL}), bounds={"x": 0})
    assert found["x"].equal
    assert found["x"].tally is not None
    assert found["x"].tally.missing == 10_000


def test_verify_type_change_needs_a_bound_above_0(pair: Callable[..., tuple[Path, Path]]) -> None:
    source, target = pair(field(dtype="f8"), {"data": field(dtype="f8"), "dtype": "f4"})
    assert codes(tamis.verify(source, target)) == {"type", "bits"}
    assert codes(tamis.verify(source, target, bounds={"x": 0})) == {"type", "bits"}
    found = tamis.verify(source, target, bounds={"x": 1e-5})
    assert found.ok
    assert noted(found) == {"type"}
    assert not found["x"].equal
    assert codes(tamis.verify(source, target, bounds={"x": 1e-9})) == {"bound"}


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_verify_scalar_and_empty_datasets(shape: tuple[int, ...], pair: Callable[..., tuple[Path, Path]]) -> None:
    found = tamis.verify(*pair(np.ones(shape), np.ones(shape)), bounds={"x": 0.5})
    assert found.ok
    assert found["x"].equal
    if not shape:
        assert codes(tamis.verify(*pair(np.float64(1), np.float64(2)), bounds={"x": 0.5})) == {"bound"}


def test_verify_missing_value_that_the_type_lacks_is_none(pair: Callable[..., tuple[Path, Path]]) -> None:
    options = {".missing_value": np.int16(300)}  # 300 wraps to 44
    source, target = pair({"data": np.array([44, 5], "i1"), **options}, {"data": np.array([45, 5], "i1"), **options})
    assert tamis.verify(source, target, bounds={"x": 1}).ok


def test_verify_same_numbers_of_another_type_are_not_equal(pair: Callable[..., tuple[Path, Path]]) -> None:
    found = tamis.verify(*pair(np.arange(3, dtype="f4"), np.arange(3, dtype="f8")), bounds={"x": 1})
    assert found.ok
    assert found["x"].equal is False
    assert found["x"].tally is not None
    assert found["x"].tally.different == 0


def test_verify_virtual_dataset_whose_file_is_gone_is_a_problem(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "part.h5", x=np.zeros(9))
    layout = h5py.VirtualLayout((9,), "f8")
    layout[:] = h5py.VirtualSource(tmp_path / "part.h5", "x", (9,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    target = make(tmp_path / "b.h5", x=np.zeros(9))
    assert tamis.verify(tmp_path / "a.h5", target, bounds={"x": 0}).ok
    (tmp_path / "part.h5").unlink()
    assert "No such file" in tamis.verify(tmp_path / "a.h5", target).problems[0].text
