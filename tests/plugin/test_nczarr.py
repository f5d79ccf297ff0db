"""netCDF-C writes and reads ZFP in its Zarr stores with our plugin: the chunks of HDF5, and the same refusals."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

Run = Callable[..., str]
pytestmark = pytest.mark.peer

MODES = (
    tamis.Zfp(accuracy=1e-3),
    tamis.Zfp(rate=9.5),
    tamis.Zfp(precision=20),
    tamis.Zfp(reversible=True),
    tamis.Zfp(minbits=5, maxbits=700, maxprec=30, minexp=-20),
)
EXACT = tamis.Zfp(reversible=True)
CHECKSUM = (3, ())


@dataclass
class Store:
    """A folder of stores, which netCDF-C writes and reads in one program."""

    folder: Path
    run: Callable[[Path], str]
    jobs: list[dict[str, Any]] = field(default_factory=list)
    said: str = ""

    def write(
        self, name: str, values: NDArray[Any], chunks: tuple[int, ...], *filters: Any, dtype: str = "", **keywords: Any
    ) -> None:
        np.save(self.folder / f"{name}.values.npy", values)
        requests = [(32013, each.requested) if isinstance(each, tamis.Zfp) else each for each in filters]
        job = {"do": "write", "store": name, "values": f"{name}.values.npy", "chunks": chunks}
        self.jobs.append(job | {"filters": requests, "dtype": dtype, "keywords": keywords})

    def append(self, name: str, at: int, values: NDArray[Any]) -> None:
        np.save(self.folder / f"{name}.more.npy", values)
        self.jobs.append({"do": "append", "store": name, "values": f"{name}.more.npy", "at": at})

    def read(self, name: str) -> None:
        self.jobs.append({"do": "read", "store": name})

    def outcomes(self) -> list[str]:
        (self.folder / "jobs.json").write_text(json.dumps(self.jobs))
        self.said, self.jobs = self.run(self.folder), []
        return json.loads((self.folder / "outcomes.json").read_text())

    def metadata(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / name / "v" / ".zarray").read_text())

    def chunks(self, name: str) -> Iterator[tuple[tuple[int, ...], bytes]]:
        files = [path for path in (self.folder / name / "v").iterdir() if not path.name.startswith(".")]
        assert files
        return ((tuple(map(int, path.name.split("."))), path.read_bytes()) for path in files)

    def values(self, name: str) -> NDArray[Any]:
        return np.load(self.folder / f"{name}.npy")


@pytest.fixture(scope="module")
def stores(python: Run, plugins: Path) -> Callable[[Path], Store]:
    """Make a folder of stores; our plugins and those of the netCDF4 wheel are there."""
    found = importlib.util.find_spec("netCDF4")
    assert found is not None
    assert found.origin is not None
    both = Path(f"{plugins}:{Path(found.origin).parent / 'plugins'}")

    def folder(path: Path) -> Store:
        return Store(path, lambda where: python(Path(__file__).with_name("nczarr_peer.py"), where, plugins=both))

    return folder


def field_of(shape: tuple[int, ...], dtype: str = "f4") -> NDArray[Any]:
    smooth = np.cos(np.arange(np.prod(shape)) / 70).reshape(shape)
    return (smooth * (1 if dtype.startswith("f") else 1e6)).astype(dtype)


def hdf5_chunks(
    values: NDArray[Any], chunks: tuple[int, ...], filters: Iterable[Any], fill: float | None = None
) -> tuple[dict[tuple[int, ...], tuple[int, bytes]], NDArray[Any]]:
    """Give mask and bytes of each chunk that libhdf5 writes with the same filters, and the values that it reads."""
    with h5py.File.in_memory() as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(chunks)
        for each in filters:
            if isinstance(each, tamis.Zfp):
                plist.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, each.requested)
            else:
                plist.set_filter(*each[:1], h5py.h5z.FLAG_OPTIONAL, each[1])
        usual = {"f4": 9.969209968386869e36, "f8": 9.969209968386869e36}.get(values.dtype.str[1:], 0)
        plist.set_fill_value(np.array(usual if fill is None else fill, values.dtype))
        kind, space = h5py.h5t.py_create(values.dtype), h5py.h5s.create_simple(values.shape)
        dataset = h5py.h5d.create(file.id, b"v", kind, space, plist)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
        dataset.flush()
        found = {}
        for i in range(dataset.get_num_chunks()):
            info = dataset.get_chunk_info(i)
            number = tuple(start // extent for start, extent in zip(info.chunk_offset, chunks, strict=True))
            found[number] = dataset.read_direct_chunk(info.chunk_offset)
        return found, h5py.Dataset(dataset)[...]


def test_netcdf_writes_the_chunks_and_values_of_hdf5_in_every_mode(
    stores: Callable[[Path], Store], tmp_path: Path
) -> None:
    store, shape, chunks = stores(tmp_path), (6, 1, 20, 31), (3, 1, 20, 31)
    cases = {}
    for dtype in ("f4", "f8", "i4", "i8"):
        for mode in MODES:
            zfp = tamis.Zfp(accuracy=300) if "i" in dtype and mode == MODES[0] else mode
            filters = (zfp, CHECKSUM) if mode == EXACT else (zfp,)
            name = f"{dtype}-{len(cases)}"
            cases[name] = (field_of(shape, dtype), filters)
            store.write(name, *(cases[name][0], chunks), *filters)
            store.read(name)
    assert not any(store.outcomes()), store.said
    for name, (values, filters) in cases.items():
        expected, decoded = hdf5_chunks(values, chunks, filters)
        written = dict(store.chunks(name))
        assert written.keys() == expected.keys()
        for number, chunk in written.items():
            mask, data = expected[number]
            assert (mask, chunk == data) == (0, True), (name, number)
        assert np.array_equal(store.values(name), decoded), name


@pytest.mark.parametrize(
    ("zfp", "config"),
    [
        (MODES[0], {"mode": "fixed_accuracy", "tolerance": 2.0**-10}),
        (MODES[1], {"mode": "fixed_rate", "rate": 9.5}),
        (MODES[2], {"mode": "fixed_precision", "precision": 20}),
        (MODES[3], {"mode": "reversible"}),
        (MODES[4], {"mode": "expert", "minbits": 5, "maxbits": 700, "maxprec": 30, "minexp": -20}),
    ],
    ids=str,
)
def test_metadata_say_the_mode_and_are_what_spec_prints(
    stores: Callable[[Path], Store], tmp_path: Path, zfp: tamis.Zfp, config: dict[str, Any]
) -> None:
    store = stores(tmp_path)
    store.write("v", field_of((20, 1, 31)), (20, 1, 31), zfp)
    assert store.outcomes() == [""]
    compressor = store.metadata("v")["compressor"]
    assert compressor == {"id": "h5z_zfp", **config, "dtype": "float32", "shape": [20, 31]}
    printed = tamis.spec(json.dumps(compressor), chunks=(20, 1, 31), dtype="f4")
    assert json.loads(printed["nczarr"]) == {"filters": None, "compressor": compressor}


def test_chunks_that_zfp_cannot_keep_stay_as_hdf5_stores_them(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    store, bound = stores(tmp_path), tamis.Zfp(accuracy=1e-3)
    edges = field_of((10, 20))  # the last chunks hold the fill value too, 9.97e36
    spike, missing = field_of((8, 16)), field_of((8, 16))
    spike[1, 1], missing[5, 5] = 3e8, np.nan
    large = field_of((8, 16), "i4")
    large[0, 0] = 1 << 30
    cases = {
        "edges": (edges, (bound,), 0),
        "checked": (edges, (bound, CHECKSUM), 0),
        "spike": (spike, (bound,), 0),
        "nan": (missing, (tamis.Zfp(precision=16),), 0),
        "large": (large, (tamis.Zfp(rate=8),), 0),
    }
    for name, (values, filters, _) in cases.items():
        store.write(name, values, (4, 8), *filters)
        store.read(name)
    assert not any(store.outcomes()), store.said
    for name, (values, filters, _) in cases.items():
        expected, decoded = hdf5_chunks(values, (4, 8), filters)
        assert {mask for mask, _ in expected.values()} == {0, 1}, name
        assert dict(store.chunks(name)) == {number: data for number, (_, data) in expected.items()}, name
        assert np.array_equal(store.values(name), decoded, equal_nan=True), name


def test_steps_appended_to_a_store_keep_the_bound_and_missing_values(
    stores: Callable[[Path], Store], tmp_path: Path
) -> None:
    store, zfp = stores(tmp_path), tamis.Zfp(accuracy=0.1)
    values = np.full((4, 16, 16), -999, "f4")
    values[0] = 20 + field_of((16, 16))
    store.write("v", values, (4, 16, 16), zfp, fill_value=-999)
    values[1] = 30 + field_of((16, 16))
    store.append("v", 1, values[1])
    store.read("v")
    assert not any(store.outcomes()), store.said
    assert np.abs(store.values("v") - values).max() <= 0.0625
    assert np.array_equal(store.values("v") == -999, values == -999)
    ((_, chunk),) = store.chunks("v")
    assert len(chunk) == values.nbytes, "-999 would be read as -999.05, so the chunk is not encoded"


def test_parameters_stored_for_other_chunks_are_made_anew(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    # As nccopy passes them on, to a variable of other chunks and another type.
    store, values = stores(tmp_path), field_of((16, 20), "f8")
    header = tamis.Zfp(accuracy=1e-3).stored(tamis.filters.ChunkType(np.dtype("f4"), (5, 9, 2)))
    store.write("v", values, (8, 10), (32013, header))
    store.read("v")
    assert not any(store.outcomes()), store.said
    assert store.metadata("v")["compressor"]["shape"] == [8, 10]
    assert 0 < np.abs(store.values("v") - values).max() <= 1e-3


REFUSED = {
    "short": (field_of((8, 8), "i2"), (4, 4), (EXACT,), {}, "type float, double, int, int64, uint or uint64, got netC"),
    "unsigned": (field_of((8, 8), "u4"), (4, 4), (MODES[2],), {}, "lossy modes treat unsigned integers as signed"),
    "big": (field_of((8, 8)), (4, 4), (EXACT,), {"dtype": ">f4", "endian": "big"}, "endian targeting is refused"),
    "five": (
        field_of((4,) * 5),
        (4,) * 5,
        (EXACT,),
        {},
        "1...4 non-unity dimensions, got 4x4x4x4x4 with 5; use 1x4x4x4x4",
    ),
    "single": (field_of((4, 4)), (1, 1), (EXACT,), {}, "a chunk of more than one value, got 1x1"),
    "long": (field_of((2, 2, 2, 4097)), (2, 2, 2, 4097), (EXACT,), {}, "an axis of 4097, the ZFP header takes at most"),
    "behind": (
        field_of((8, 8)),
        (4, 4),
        ((2, (4,)), EXACT),
        {},
        "to be the first filter of the variable, got filter 2",
    ),
    "rate": (field_of((8, 8)), (4, 4), ((32013, (1, 0, 0, 0)),), {}, "a finite rate above 0"),
    "few": (field_of((8, 8)), (4, 4), ((32013, (3,)),), {}, "this mode takes 4 cd_values, got fewer"),
    "integers": (field_of((8, 8), "i4"), (4, 4), (MODES[0],), {}, "accuracy below 1 does not make integers exact"),
    "full": (np.full((8, 8), np.nan, "f4"), (4, 4), (tamis.Zfp(rate=32),), {}, "NaN or infinity at value 0 of the chu"),
}


def test_what_zfp_cannot_take_is_refused_with_a_message(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    store = stores(tmp_path)
    for name, (values, chunks, filters, keywords, _) in REFUSED.items():
        store.write(name, values, chunks, *filters, **keywords)
    outcomes = dict(zip(REFUSED, store.outcomes(), strict=True))
    for name, (*_, text) in REFUSED.items():
        assert "NetCDF: Filter error" in outcomes[name], name
        assert text in store.said, name
    assert [line for line in store.said.splitlines() if not line.startswith("tamis: zfp: ")] == []


def test_unsigned_integers_without_loss(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    store, values = stores(tmp_path), np.arange(64, dtype="u4").reshape(8, 8)
    store.write("v", values, (4, 4), EXACT)
    store.read("v")
    assert not any(store.outcomes()), store.said
    assert np.array_equal(store.values("v"), values)


COMPRESSOR = {
    "id": "h5z_zfp",
    "mode": "fixed_accuracy",
    "tolerance": 0.0009765625,
    "dtype": "float32",
    "shape": [5, 10],
}
DAMAGED: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"tolerance": "0.1"}, "expected a key of the codec, with a value of its kind, at character"),
    "null": ({"tolerance": None}, "expected a key of the codec, with a value of its kind, at character"),
    "negative": ({"tolerance": -1}, "expected a finite accuracy of 0 or more"),
    "huge": ({"tolerance": 10**400}, "expected a key of the codec, with a value of its kind, at character"),
    "other-key": ({"rate": 8}, "expected tolerance in mode fixed_accuracy of codec h5z_zfp"),
    "nested": ({"x": [1, {"y": 2}]}, "expected a key of the codec"),
    "mode": ({"mode": "lossless"}, "expected fixed_rate, fixed_precision, fixed_accuracy, expert or reversible"),
    "dtype": ({"dtype": "float64"}, "dtype or shape of codec h5z_zfp is not that of the array"),
    "type": ({"dtype": "float16"}, "expected int32, int64, float32 or float64 as dtype"),
    "turned": ({"shape": [10, 5]}, "dtype or shape of codec h5z_zfp is not that of the array"),
    "no-axes": ({"shape": []}, "expected a key of the codec, with a value of its kind"),
    "five-axes": ({"shape": [2] * 5}, "expected a key of the codec, with a value of its kind"),
    "axis": ({"shape": [1 << 63, 1 << 63]}, "has an axis of 9223372036854775808"),
    "below-0": ({"shape": [-5, 10]}, "expected a key of the codec, with a value of its kind"),
}


def test_damaged_metadata_and_chunks_are_errors_with_a_message(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    store, values = stores(tmp_path), field_of((10, 20))
    store.write("good", values, (5, 10), MODES[0])
    assert store.outcomes() == [""]
    metadata, stream = store.metadata("good"), (tmp_path / "good" / "v" / "0.0").read_bytes()
    assert metadata["compressor"] == COMPRESSOR

    def copy(name: str, **change: Any) -> Path:
        shutil.copytree(tmp_path / "good", tmp_path / name)
        (tmp_path / name / "v" / ".zarray").write_text(json.dumps(metadata | change))
        store.read(name)
        return tmp_path / name / "v" / "0.0"

    expected = {}
    for name, (change, text) in DAMAGED.items():
        copy(name, compressor=COMPRESSOR | change)
        expected[name] = text
    copy("alone", compressor={key: COMPRESSOR[key] for key in ("id", "mode")})
    expected["alone"] = "expected tolerance in mode fixed_accuracy"
    copy("half", compressor={key: COMPRESSOR[key] for key in ("id", "mode", "tolerance", "dtype")})
    expected["half"] = "expected both dtype and shape"
    copy("twice", filters=[COMPRESSOR])
    expected["twice"] = "expected once among the filters of the variable, got it twice"
    copy("chunks", chunks=[4, 10])
    expected["chunks"] = "dtype or shape of codec h5z_zfp is not that of the array"
    copy("order", dtype=">f4")
    expected["order"] = "endian targeting is refused"
    copy("cut").write_bytes(stream[:-4])
    copy("empty").write_bytes(b"")
    copy("noise").write_bytes(np.random.default_rng(1).bytes(60))
    expected |= dict.fromkeys(("cut", "empty", "noise"), "chunk is truncated or damaged: its data end inside block")
    for name, outcome in zip(expected, store.outcomes(), strict=True):
        assert "NetCDF: Filter error" in outcome, name
        assert expected[name] in store.said, name


def test_metadata_of_the_mode_alone_are_read(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    store, values = stores(tmp_path), field_of((10, 20))
    store.write("v", values, (5, 10), MODES[0])
    assert store.outcomes() == [""]
    alone = {key: COMPRESSOR[key] for key in ("id", "mode", "tolerance")}
    (tmp_path / "v" / "v" / ".zarray").write_text(json.dumps(store.metadata("v") | {"compressor": alone}))
    store.read("v")
    assert store.outcomes() == [""]
    assert np.abs(store.values("v") - values).max() <= 2**-10


def test_zarr_python_reads_what_netcdf_writes(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    store, values = stores(tmp_path), field_of((10, 20))
    store.write("v", values, (4, 8), MODES[0], CHECKSUM)
    store.read("v")
    assert not any(store.outcomes()), store.said
    assert np.array_equal(zarr.open_array(tmp_path / "v" / "v", mode="r", zarr_format=2)[...], store.values("v"))


def test_d22_netcdf_writes_the_element_size_of_shuffle_that_it_is_given(
    stores: Callable[[Path], Store], tmp_path: Path
) -> None:
    zarr = pytest.importorskip("zarr")
    store, values = stores(tmp_path), field_of((10, 20))
    deflate = (1, (4,))
    store.write("none", values, (4, 8), (2, ()), deflate)
    store.write("given", values, (4, 8), (2, (4,)), deflate)
    store.write("later", values, (4, 8), (2, ()), deflate, (2, (4,)))
    assert not any(store.outcomes()), store.said
    assert store.metadata("none")["filters"] == [{"id": "shuffle", "elementsize": 0}], "netCDF's own way"
    for name in ("given", "later"):
        assert store.metadata(name)["filters"] == [{"id": "shuffle", "elementsize": 4}]
        assert np.array_equal(zarr.open_array(tmp_path / name / "v", mode="r", zarr_format=2)[...], values)


def test_d23_zfp_is_in_the_metadata_and_in_the_chunks(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    store = stores(tmp_path)
    store.write("v", field_of((10, 20)), (5, 10), tamis.Zfp(rate=8))
    assert store.outcomes() == [""]
    assert store.metadata("v")["compressor"]["id"] == "h5z_zfp"
    assert {len(chunk) for _, chunk in store.chunks("v")} == {2 * 3 * 16}


def test_d29_unit_axes_are_left_out(stores: Callable[[Path], Store], tmp_path: Path) -> None:
    store, values, zfp = stores(tmp_path), field_of((2, 1, 20, 31)), tamis.Zfp(accuracy=1e-3)
    store.write("v", values, (1, 1, 20, 31), zfp)
    assert store.outcomes() == [""]
    assert store.metadata("v")["compressor"]["shape"] == [20, 31]
    assert dict(store.chunks("v"))[1, 0, 0, 0] == tamis.zfp.encode(values[1, 0], zfp.mode)


def test_ncgen_of_debian_has_no_filters_in_zarr_and_says_so(tool: Run, tmp_path: Path, plugins: Path) -> None:
    # Debian builds netCDF-C 4.9.0 with --disable-plugins, and so without the filters of NCZarr.
    words = ",".join(map(str, EXACT.requested))
    text = f'netcdf v {{ dimensions: x = 8; variables: float v(x); v:_ChunkSizes = 4; v:_Filter = "32013,{words}"; }}'
    (tmp_path / "v.cdl").write_text(text)
    url = f"file://{tmp_path / 'v'}#mode=nczarr,file"
    said = tool("ncgen", "-4", "-lb", "-o", url, tmp_path / "v.cdl", plugins=plugins, code=1)
    assert "Filter id=32013; filter not available" in said
