"""Known defect U45: engine tamis failed where values are sequences, and stopped where a variable has no place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from h5py import h5d, h5p, h5s, h5t

import tamis

PAIR = np.dtype([("a", "<i4"), ("b", "<f8")])
ENUM = h5py.enum_dtype({"A": 0, "B": 1}, "i1")
SHAPES: dict[str, dict[str, Any]] = {
    "scalar": {"shape": ()},
    "empty": {"shape": (0,)},
    "line": {"shape": (3,)},
    "field": {"shape": (2, 3)},
    "growing": {"shape": (3,), "maxshape": (None,), "chunks": (2,)},
}


def sequence(base: Any, *values: Any) -> tuple[Any, Any]:
    return h5py.vlen_dtype(base), np.array(values, np.dtype(base).newbyteorder("="))


TYPES: dict[str, tuple[Any, Any]] = {
    "int": ("<i4", 3),
    "big": (">f8", 2.5),
    "half": ("<f2", 1.5),
    "bool": ("?", True),
    "complex": ("<c16", 1 + 2j),
    "enum": (ENUM, 1),
    "bytes": ("S5", b"abc"),
    "text": (h5py.string_dtype(), "xü"),
    "ascii": (h5py.string_dtype("ascii"), "xy"),
    "opaque": ("V7", np.void(b"1234567")),
    "time": (h5py.opaque_dtype("M8[s]"), np.datetime64("2001-01-01", "s")),
    "record": (PAIR, np.array((1, 2.0), PAIR)),
    "nested": ([("p", PAIR), ("n", "u1")], np.array(((1, 2.0), 3), [("p", PAIR), ("n", "u1")])),
    "array in record": ([("a", "<i4", (3,))], np.array(([1, 2, 3],), [("a", "<i4", (3,))])),
    "integers": sequence("<i4", 1, 2, 3),
    "one integer": sequence("<i4", 1),
    "no integers": sequence("<i4"),
    "floats": sequence("<f8", 1.5, 2.5),  # h5py forgets the byte order of big-endian ones
    "records": (h5py.vlen_dtype(PAIR), np.array([(1, 2.0)], PAIR)),
    "texts": (h5py.vlen_dtype(h5py.string_dtype()), np.array(["a", "b"], object)),
}


def same(first: Any, second: Any) -> bool:
    """Return whether values are equal, with sequences as elements and text in any form."""
    first, second = (item[()] if isinstance(item, np.ndarray) and not item.ndim else item for item in (first, second))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        pairs = zip(first.ravel(), second.ravel(), strict=True)
        return first.shape == second.shape and all(same(*pair) for pair in pairs)
    first, second = (item.decode() if isinstance(item, bytes) else item for item in (first, second))
    return bool(np.all(first == second))


def element(value: Any) -> Any:
    cell = np.empty((), object)
    cell[()] = value
    return cell


@pytest.fixture(params=TYPES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    dtype, value = TYPES[request.param]
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        for group in ("/", "/inner"):
            for name, form in SHAPES.items():
                dataset = file.require_group(group).create_dataset(name, dtype=dtype, **form)
                for index in np.ndindex(dataset.shape):
                    dataset[index] = value
    return path


@pytest.mark.matrix
def test_u45_every_type_and_shape_opens_with_the_values_of_h5py(source: Path) -> None:
    with h5py.File(source) as file, xr.open_datatree(source, engine="tamis") as tree:
        for group in ("/", "/inner"):
            with xr.open_dataset(source, engine="tamis", group=group) as ds:
                assert "scalar" in repr(ds)
                for name in SHAPES:
                    stored = file[group][name]
                    is_sequence = name == "scalar" and h5py.check_vlen_dtype(stored.dtype) is not None
                    expected = element(stored[()]) if is_sequence else np.asarray(stored[()])
                    for values in (ds[name].values, tree[group][name].values):
                        assert values.shape == stored.shape
                        assert same(values, expected)
                first = ds["field"].isel({ds["field"].dims[1]: 1})
                assert same(first.values, file[group]["field"][:, 1])
            with xr.open_dataset(source, engine="tamis", group=group, chunks={}) as ds:
                assert same(ds["field"].values, file[group]["field"][()])


def test_u45_what_was_opened_is_saved_or_refused_by_name(source: Path) -> None:
    target = source.with_name("target.nc")
    with xr.open_dataset(source, engine="tamis") as ds:
        for name in SHAPES:
            if ds[name].dtype.hasobject and ds[name].dtype.metadata != {"vlen": str}:
                with pytest.raises(tamis.ParameterError, match=rf"^{name}: expected .* ds\.drop_vars\('{name}'\)"):
                    ds[[name]].tamis.to_netcdf(target)
                with pytest.raises(tamis.ParameterError, match=rf"^{name}: expected .* ds\.drop_vars\('{name}'\)"):
                    ds[[name]].load().tamis.to_netcdf(target)
                assert not target.exists()
                continue
            if ds[name].dtype.kind == "V" and (ds[name].dtype.names or "p")[0] == "p":
                with pytest.raises(tamis.ParameterError, match=f"^{name}: expected .* which netCDF-4 has, got"):
                    ds[[name]].tamis.to_netcdf(target, overwrite=True)
                continue
            ds[[name]].tamis.to_netcdf(target, overwrite=True)
            with xr.open_dataset(target, engine="tamis") as saved:
                assert same(ds[name].values, saved[name].values)


def test_u45_types_of_netcdf_open_as_netcdf4_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "types.nc"
    with netCDF4.Dataset(path, "w") as root:
        root.createDimension("x", 3)
        root.createDimension("t", None)
        for file in (root, root.createGroup("inner")):
            kinds = {
                "sequences": file.createVLType("i4", "vlen_t"),
                "enum": file.createEnumType("u1", "enum_t", {"A": 0, "B": 1}),
                "record": file.createCompoundType(PAIR, "pair_t"),
                "text": str,
            }
            for name, kind in kinds.items():
                file.createVariable(name, kind, ("t", "x"))
            field = np.empty((2, 3), object)
            for row, column in np.ndindex(2, 3):
                field[row, column] = np.arange(row + column, dtype="i4")
            file["sequences"][:] = field
            file["enum"][:] = np.ones((2, 3), "u1")
            file["record"][:] = np.ones((2, 3), PAIR)
            file["text"][:] = np.full((2, 3), "q", object)
            file.createVariable("longer", "i4", ("t",))[:] = np.arange(4)
    with netCDF4.Dataset(path) as file:
        for group, stored in (("/", file), ("inner", file["inner"])):
            with xr.open_dataset(path, engine="tamis", group=group) as ds:
                for name in ("enum", "record", "text", "longer", "sequences"):
                    assert same(ds[name].values[:2], np.asarray(stored[name][:2]))
                assert ds["sequences"].shape == (4, 3)
                assert all(isinstance(item, np.ndarray) for item in ds["sequences"].values.flat)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        (np.dtype(("<i4", (2, 3))), "got elements that are arrays"),
        (h5py.ref_dtype, "references to objects"),
        (h5py.regionref_dtype, "references to objects"),
        (None, "null dataspace"),
    ],
)
def test_u45_what_cannot_be_a_variable_is_left_out_by_name(tmp_path: Path, dtype: Any, reason: str) -> None:
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        file["ordinary"] = np.arange(3)
        if dtype is None:
            file["odd"] = h5py.Empty("f4")
        else:
            file.create_dataset("odd", (3,), dtype=dtype)
    with pytest.warns(UserWarning, match=rf"{path}: /: odd is left out: .*{reason}"):
        ds = xr.open_dataset(path, engine="tamis")
    assert list(ds.variables) == ["ordinary"]
    np.testing.assert_array_equal(ds["ordinary"], np.arange(3))
    ds.close()


def test_u45_records_with_sequences_open_as_h5py_reads_them(tmp_path: Path, tool: Any) -> None:
    (tmp_path / "source.cdl").write_text(
        "netcdf source { types: int(*) vi; compound cv { int a; vi v; }; opaque(5) op;"
        " dimensions: x = 2; variables: cv e(x); op o(x); data: e = {1,{2,3}},{4,{5}}; o = 0X0102030405,0X0102030406; }"
    )
    path = tmp_path / "source.nc"
    tool("ncgen", "-k", "nc4", "-o", path, tmp_path / "source.cdl")
    with xr.open_dataset(path, engine="tamis") as ds:
        assert ds["e"].values["a"].tolist() == [1, 4]
        assert [item.tolist() for item in ds["e"].values["v"]] == [[2, 3], [5]]
        assert [bytes(item) for item in ds["o"].values] == [b"\1\2\3\4\5", b"\1\2\3\4\6"]


def test_u45_empty_virtual_dataset_of_numbered_files_opens(tmp_path: Path) -> None:
    """HDF5 cannot find the bounds of its selection, and need not: there is nothing to read."""
    plist = h5p.create(h5p.DATASET_CREATE)
    space = h5s.create_simple((1, 4), (h5s.UNLIMITED, 4))
    space.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), block=(1, 4))
    plist.set_virtual(space, b"a_%b.h5", b"v", h5s.create_simple((1, 4)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        h5d.create(file.id, b"v", h5t.STD_I32LE, h5s.create_simple((0, 4), (h5s.UNLIMITED, 4)), plist)
    with xr.open_dataset(tmp_path / "a.h5", engine="tamis") as dataset:
        assert dataset["v"].values.shape == (0, 4)
