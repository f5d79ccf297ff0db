"""U60: wrong arguments of public functions and methods are errors of tamis, in words, not those of Python."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest

import tamis
from tamis import cf, filters, hdf5, meaning, zfp

VALUES = np.arange(64, dtype="f4").reshape(8, 8)
CHUNK = filters.ChunkType(VALUES.dtype, VALUES.shape)
WRONG: list[Any] = [None, 3, -1, 1.5, float("nan"), True, 10**30, "x", "", b"x", "/nowhere/b.h5", [], ["x"], [None], {}]
WRONG += [{"x": 1}, {1: 2}, (None,), (1, 2, 3, 4, 5, 6), object(), int, np.zeros(3), np.zeros(0), np.array(["a"])]


class Call(NamedTuple):
    """A function and arguments that are right."""

    function: Callable[..., object]
    arguments: tuple[object, ...]
    options: dict[str, object]


def call(function: Callable[..., object], *arguments: object, **options: object) -> Call:
    return Call(function, arguments, options)


def meanings() -> Iterator[Call]:
    attributes = {"scale_factor": 0.1, "_FillValue": 1.0}
    yield call(cf.missing_values, attributes, VALUES.dtype)
    yield call(cf.valid_range, attributes, VALUES.dtype)
    yield call(cf.packing_of, attributes)
    yield call(meaning.is_unsigned, attributes)
    yield call(meaning.numbers, attributes, "scale_factor")
    yield call(meaning.text, attributes, "title")
    yield call(meaning.is_known, "units")
    yield call(cf.roles_of, [cf.Variable("/x", (8,), VALUES.dtype, ("t",), {})], {})


def codecs() -> Iterator[Call]:
    mode = zfp.Accuracy(0.1)
    stream = zfp.encode(VALUES, mode)
    yield call(zfp.encode, VALUES, mode, threads=1)
    yield call(zfp.encode_with_header, VALUES, mode, threads=1)
    yield call(zfp.decode, stream, (8, 8), "f4", mode, None, threads=1)
    yield call(zfp.decode_with_header, zfp.encode_with_header(VALUES, mode), None, threads=1)
    yield call(zfp.prove, VALUES, stream, mode)
    yield call(zfp.check_encodable, VALUES.dtype, mode)
    yield call(zfp.max_extent, 2)
    yield call(zfp.as_mode, mode)
    yield call(zfp.mode_of, mode.params(VALUES.dtype, 2), 2)
    yield call(mode.params, VALUES.dtype, 2)
    for name in inspect.signature(zfp.mode).parameters:
        yield call(zfp.mode, **{name: 8})
    yield from (call(kind, 8) for kind in (zfp.Rate, zfp.Precision, zfp.Accuracy))
    yield call(zfp.Expert, 1, 16658, 64, -1074)
    yield call(lambda *fields: zfp.Header(*fields).pack(), VALUES.dtype, (8, 8), mode)
    yield call(zfp.Header.unpack, zfp.Header(VALUES.dtype, (8, 8), mode).pack())


def filter_methods() -> Iterator[Call]:
    for kind in filters.by_name().values():
        item = kind(**EXAMPLES.get(kind.name, {}))
        if item.unencodable():
            continue
        stored = item.requested if kind in (tamis.Nbit, tamis.Scaleoffset) else item.stored(CHUNK)
        yield call(item.check, CHUNK)
        yield call(item.stored, CHUNK)
        yield call(item.in_words, stored)
        yield call(item.encode, VALUES.tobytes(), CHUNK, stored)
        yield call(item.decode, b"", CHUNK, stored)
        yield from (call(read, item.requested) for read in (kind.from_values, kind.from_requested, kind.from_stored))


EXAMPLES: dict[str, dict[str, Any]] = {"zfp": {"rate": 8}}


def pipelines() -> Iterator[Call]:
    pipeline = tamis.Pipeline.parse("shuffle|deflate(4)")
    encoded, _ = pipeline.encode(VALUES)
    yield call(tamis.Pipeline, [tamis.Deflate()], bound=1.0)
    yield call(tamis.Pipeline.parse, "deflate")
    yield call(pipeline.check, CHUNK)
    yield call(pipeline.encode, VALUES, skip=(), prove=True)
    yield call(pipeline.encode_rest, VALUES.tobytes(), CHUNK, skip=())
    yield call(pipeline.decode, encoded, 0, CHUNK)
    yield call(pipeline.decode_rest, encoded, 0, CHUNK)
    yield call(pipeline.within, 1.0)
    yield call(pipeline.name_filter, 0, tamis.StreamError("damaged"))
    yield call(filters.Stage.of, tamis.Deflate())
    yield call(filters.requested_filter, filters.Request(1, (4,)))
    yield call(lambda code, values: filters.requested_filter(filters.Request(code, values)), 1, (4,))
    yield call(filters.from_values, filters.Request(1, (4,)), "x", stored=True)
    yield call(filters.filter_named, "zfp")
    yield call(tamis.UnknownFilter, 400, (1,))
    yield call(tamis.Zfp(rate=8).__getitem__, "compression")
    for rounding in (tamis.Absolute(3), tamis.BitGroom(3), tamis.BitRound(3), tamis.Granular(3), tamis.Pack(3)):
        yield call(rounding.check, VALUES.dtype)
        yield call(rounding.round, VALUES, missing_values=(), valid_range=(None, None), origin=(0, 0), shape=(8, 8))


def with_configuration(codec: Any, key: str, value: object) -> object:
    metadata = codec.to_dict()
    return codec.from_dict({**metadata, "configuration": {**metadata["configuration"], key: value}})


def zarr_codecs() -> Iterator[Call]:
    zarr = pytest.importorskip("zarr")
    from zarr.core.array_spec import ArrayConfig, ArraySpec
    from zarr.core.buffer import default_buffer_prototype

    spec = ArraySpec((8, 8), zarr.dtype.Float32(), np.float32(0), ArrayConfig("C", False), default_buffer_prototype())
    codecs = [tamis.zarr.ZfpCodec(rate=8), tamis.zarr.ReshapeCodec((64,)), tamis.zarr.PipelineCodec("deflate")]
    for codec in codecs:
        metadata = codec.to_dict()
        yield call(codec.from_dict, metadata)
        yield from (call(partial(with_configuration, codec, key), None) for key in metadata["configuration"])
        yield call(codec.evolve_from_array_spec, spec)
        yield call(codec.resolve_metadata, spec)
        yield call(codec.validate, shape=(8, 8), dtype=spec.dtype, chunk_grid=None)
    yield from (call(codec.compute_encoded_size, 256, spec) for codec in codecs[:2])
    yield call(tamis.zarr.ReshapeCodec((64,)).reshaped, (8, 8))
    yield call(tamis.zarr.codecs, "deflate", "f4", (8, 8), zarr_format=3)
    for version_2 in (
        tamis.zarr.Zfpy(2, rate=8),
        tamis.zarr.H5zZfp("fixed_rate", "float32", (8, 8), rate=8),
        tamis.zarr.Pipeline2Codec("deflate", "f4", (8, 8)),
    ):
        config = version_2.get_config()
        yield call(version_2.encode, VALUES)
        yield call(version_2.decode, version_2.encode(VALUES), None)
        yield from (call(partial(encoded_by, version_2, config, key), None) for key in config if key != "id")


def encoded_by(codec: Any, config: dict[str, Any], key: str, value: object) -> object:
    return codec.from_config({**{name: given for name, given in config.items() if name != "id"}, key: value}).encode(
        VALUES
    )


def recipe_of(name: str, value: object) -> tamis.Recipe:
    options: dict[str, Any] = {name: {"x": value}}
    return tamis.Recipe(**options)


def results() -> Iterator[Call]:
    inspection = tamis.inspect("a.h5")
    yield call(inspection.__contains__, "x")
    yield call(inspection.to_json, indent=2)
    yield call(lambda width: list(inspection.lines(width)), 80)
    yield call(tamis.spec("deflate").__getitem__, "h5py")
    yield call(tamis.Encoding, {}, "h5netcdf", {})
    yield call(tamis.config().libs, codec=False, static=False)
    yield call(tamis.ReferenceParser, None, None)
    yield call(tamis.Recipe({"x": "deflate"}).before, tamis.Recipe())
    for name in inspect.signature(tamis.Recipe).parameters:
        yield call(tamis.Recipe, **{name: None})
        yield call(partial(recipe_of, name), None)


def files(file: h5py.File) -> Iterator[Call]:
    names = (f"v{number}" for number in itertools.count())
    array = tamis.open("a.h5")["x"]

    def create(parent: Any, shape: Any, dtype: Any, **options: Any) -> None:
        hdf5.create_dataset(parent, next(names), shape, dtype, filters="deflate", **options)

    def write(parent: Any, data: Any, **options: Any) -> None:
        hdf5.write(parent, next(names), data, **options)

    def append(parent: Any, steps: Any, **options: Any) -> None:
        hdf5.create_appender(parent, next(names), steps, filters="zfp(bound=0.1)", **options).close()

    yield call(create, file, (8, 8), "f4", chunks=(4, 4), maxshape=None, fillvalue=None, attrs={})
    yield call(write, file, VALUES, filters="deflate", chunks=(4, 4), attrs={}, threads=1)
    yield call(append, file, VALUES[None], axis=0, chunks=None, dtype=None, attrs={}, threads=1)
    yield call(hdf5.create_group, file, "/", track_order=None)
    yield call(hdf5.Appender, file["x"], 0, threads=1)
    yield call(hdf5.read_chunk, file["x"], (0, 0))
    yield call(hdf5.write_stream, file["x"], (0, 0), b"", zfp.Rate(8))
    yield call(hdf5.chunk_type, file["x"])
    yield call(hdf5.pipeline_of, file["x"])
    yield call(hdf5.group_filters, file)
    yield call(hdf5.group_phase_change, file)
    yield call(array.read, None)
    yield call(tamis.open("a.h5").data_model, "sort")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[h5py.File]:
    monkeypatch.chdir(tmp_path)
    with h5py.File("a.h5", "w") as file:
        file["x"] = VALUES
    with h5py.File("w.h5", "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(4, 4), **tamis.Zfp(rate=8))
        yield file


def try_all(calls: Iterator[Call]) -> None:
    """Replace each argument by wrong ones; an error that is none of tamis's fails the test, and names the call."""
    for function, arguments, options in calls:
        keys: list[int | str] = [*range(len(arguments)), *options]
        for key, wrong in itertools.product(keys, WRONG):
            positional = [wrong if place == key else right for place, right in enumerate(arguments)]
            named = {name: wrong if name == key else right for name, right in options.items()}
            try:
                with suppress(tamis.TamisError, KeyError):  # mappings have no such key
                    function(*positional, **named)
            except Exception as error:
                raise AssertionError(f"{function} with {key} {wrong!r}: {error!r}") from error


@pytest.mark.matrix
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "calls", [meanings, codecs, filter_methods, pipelines, zarr_codecs, results], ids=lambda calls: calls.__name__
)
def test_u60_no_wrong_argument_is_an_error_of_python(calls: Callable[[], Iterator[Call]]) -> None:
    try_all(calls())


@pytest.mark.filterwarnings("ignore")
def test_u60_no_wrong_argument_about_hdf5_is_an_error_of_python(folder: h5py.File) -> None:
    try_all(files(folder))


def engine(**options: Any) -> Any:
    return pytest.importorskip("tamis_xarray.engine").TamisEngine().open_dataset("a.h5", **options)


def save(encoding: Any, **options: Any) -> None:
    ds = pytest.importorskip("xarray").Dataset({"a": ("x", VALUES[0])})
    ds.tamis.to_netcdf("b.nc", encoding=encoding, **options)


def create(dtype: Any = "f4", **options: Any) -> None:
    with pytest.importorskip("netCDF4").Dataset("b.nc", "w", diskless=True) as file:
        file.createDimension("x", 8)
        tamis.netcdf.create_variable(file, "a", dtype, ("x",), "deflate(4)", **options)


IN_WORDS: list[tuple[Callable[[], object], str]] = [
    (lambda: tamis.Pipeline(None), r"expected stages to be filters such as \[tamis.Shuffle.*, got None"),  # type: ignore[arg-type]
    (lambda: meaning.text(None, "a"), r"expected attributes to be a mapping of names to values .*, got None"),  # type: ignore[arg-type]
    (lambda: cf.valid_range({}, "f4"), r"expected dtype to be a type such as numpy.dtype\('float32'\), got 'f4'"),  # type: ignore[arg-type]
    (lambda: zfp.decode(None, 3, "f4", zfp.Rate(8)), "expected buffer to be bytes, got None"),  # type: ignore[arg-type]
    (lambda: zfp.decode(b"", 3, "x", zfp.Rate(8)), "expected dtype to be a type such as 'float32', got 'x'"),
    (lambda: zfp.max_extent(0), "expected rank to be a number of axes from 1 to 4, got 0"),
    (lambda: tamis.Deflate().encode(3, CHUNK, ()), "expected data to be bytes, got 3"),  # type: ignore[arg-type]
    (lambda: tamis.Zfp(rate=8).encode(b"x", CHUNK, ()), "expected the 256 bytes of a chunk, got 1"),
    (lambda: zfp.Header([], (8, 8), zfp.Rate(8)).pack(), r"expected dtype to be a type such as 'float32', got \[\]"),  # type: ignore[arg-type]
    (lambda: zfp.Header.unpack(None), "expected buffer to be bytes, got None"),  # type: ignore[arg-type]
    (
        lambda: tamis.Pipeline.parse("deflate").name_filter(1, tamis.StreamError("damaged")),
        r"expected the index of a filter in deflate\(4\), got 1",
    ),
    (lambda: tamis.repack("a.h5", "b.h5", {}, progress=int), "expected progress to be a function, got <class 'int'>"),
    (lambda: create(dtype=[]), r"expected a type of netCDF4, got \[\]"),
    (lambda: create(dtype="M8[s]"), r"expected a type of netCDF4, got 'M8\[s\]'"),
    (lambda: tamis.Lzf().check(3), "expected chunk to be a tamis.filters.ChunkType, got 3"),  # type: ignore[arg-type]
    (lambda: filters.requested_filter(3), r"expected request to be a tamis.filters.Request .*, got 3"),  # type: ignore[arg-type]
    (
        lambda: tamis.BitRound(3).round(VALUES, shape=(8,)),
        r"expected 2 numbers as shape, one for each axis, got \(8,\)",
    ),
    (lambda: tamis.open("a.h5")["x"].read(3), "expected out to be an array of NumPy, got 3"),
    (lambda: engine(group=3), "expected group to be text, got 3"),
    (lambda: engine(group=VALUES), "expected group to be text, got array"),
    (lambda: tamis.copy("a.h5", "b.h5", missing="x"), "expected missing to be one of exact, .*, got 'x'"),  # type: ignore[arg-type]
    (lambda: tamis.copy("a.h5", "b.h5", missing=3), "expected missing to be one of exact, .*, got 3"),
    (lambda: tamis.copy("a.h5", "b.h5", level="x"), "expected level to be a whole number, got 'x'"),  # type: ignore[arg-type]
    (lambda: tamis.copy("a.h5", "b.h5", kind=3), "expected kind to be text, got 3"),
    (lambda: tamis.copy("a.h5", "b.h5", follow=3), "expected follow to be True or False, got 3"),
    (lambda: save({}, recipes=tamis.Recipe(drop=["a"])), "drop=.* does not apply to an xarray dataset"),
    (lambda: save({1: 2}), "expected a name in encoding to be text, got 1"),
    (lambda: create(fill_value=VALUES), "expected a fill value that float32 can hold, got array"),
    (lambda: engine(drop_variables=3), "expected drop_variables to be a name or several .*, got 3"),
    (lambda: engine(threads=[]), r"expected threads to be a whole number, got \[\]"),
]


@pytest.mark.parametrize(("wrong", "words"), IN_WORDS, ids=[words for _, words in IN_WORDS])
def test_u60_wrong_arguments_are_refused_in_words(wrong: Callable[[], object], words: str) -> None:
    with pytest.raises(tamis.ParameterError, match=words):
        wrong()
    assert sorted(os.listdir()) == ["a.h5", "w.h5"]
