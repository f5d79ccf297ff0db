"""Whole files, real and odd, copied and compared by h5py, h5diff, h5dump, ncdump and xarray."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest
from h5py import h5a, h5o, h5s, h5t

from tamis import FileError, ParameterError
from tamis.formats.hdf5.lib.new_filters import NewFilter
from tamis.formats.hdf5.tree.copy import TreeCopier
from tamis.formats.hdf5.tree.create import create_like, create_target

REAL = [
    *("cam_t_3months.nc", "cam_ts_100days.nc", "era5_levels_members.nc", "pop_sst_60days.nc"),
    *("bigendian.h5", "mesh.h5", "test_zfp_be.h5", "test_zfp_le.h5"),
    *(f"test_zfp_{version}.h5" for version in ("030040", "030235", "050", "052", "054", "110050", "110xxx")),
]
# Those with float datasets of two or more axes that need no plugin.
WITH_FLOATS = [*REAL[:4], "mesh.h5"]
SHUFFLE = NewFilter(2, 1, ())
DEFLATE = NewFilter(1, 1, (4,))


def real(name: str) -> Path:
    return needs.real(name if name.endswith(".nc") else f"h5zzfp/{name}")


def tool(*command: str | os.PathLike[str], code: int = 0) -> str:
    """Run a program of HDF5 or netCDF, check its exit code, and give its output."""
    needs.need(command[0])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


Maker = Callable[[h5py.Dataset, h5py.Group, str], h5py.Dataset]


def dump(path: Path, *options: str) -> str:
    """Give h5dump's text without what differs by nature: the file's name, addresses and offsets."""
    text = (
        tool("h5dump", *options, path).split("\n", 1)[1].replace(f"{path}/", "/")
    )  # 1.14 names the file in references
    text = re.sub(r"\b(DATASET|GROUP|DATATYPE) \d+ ", r"\1 ", text)
    return re.sub(r"\bOFFSET \d+", "OFFSET", re.sub(r"#\d+", "#", text))


def copy(source: Path, target: Path, makers: Mapping[str, Maker] | None = None) -> Path:
    with h5py.File(source) as old, create_target(old, target) as new:
        copier = TreeCopier(old, new, makers or {})
        for slot in copier.slots():
            assert makers is not None
            slot.copy = makers[slot.path](slot.source(), h5py.Group(slot.parent), slot.link.name.decode())
        copier.finish()
    return target


def deflated(source: h5py.Dataset, parent: h5py.Group, name: str) -> h5py.Dataset:
    made = create_like(source, parent, name, chunk_shape=source.chunks or source.shape, filters=[SHUFFLE, DEFLATE])
    made[...] = source[...]
    return made


def datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    found = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


def built_in(dataset: h5py.Dataset) -> bool:
    """Tell whether h5diff can read a dataset: by filters of the library alone."""
    plist = dataset.id.get_create_plist()
    return all(plist.get_filter(i)[0] < 256 for i in range(plist.get_nfilters()))


def floats(path: Path) -> list[str]:
    with h5py.File(path) as file:
        every = datasets(file).items()
        return ["/" + name for name, d in every if d.dtype.kind == "f" and d.ndim >= 2 and built_in(d)]


def chunks(dataset: h5py.Dataset) -> dict[tuple[int, ...], tuple[int, bytes]]:
    if dataset.chunks is None:
        return {}
    records: list[Any] = []
    dataset.id.chunk_iter(records.append)
    return {record.chunk_offset: dataset.id.read_direct_chunk(record.chunk_offset) for record in records}


def address(item: Any) -> int:
    return int(h5o.get_info(item if isinstance(item, h5t.TypeID) else item.id).addr)


def plain(values: Any) -> Any:
    """Give values as lists, so that sequences of unequal length can be compared."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        return [plain(value) for value in values.flat]
    return values


@pytest.mark.peer
@pytest.mark.parametrize("name", REAL)
@pytest.mark.matrix
def test_copy_tree_of_real_file_equals_it(name: str, tmp_path: Path) -> None:
    source = real(name)
    target = copy(source, tmp_path / "copy.h5")
    assert dump(target, "-A", "-p") == dump(source, "-A", "-p")
    assert tool("ncdump", "-n", "x", "-h", target) == tool("ncdump", "-n", "x", "-h", source)
    with h5py.File(source) as old, h5py.File(target) as new:
        assert list(old) == list(new)
        for path, dataset in datasets(old).items():
            assert chunks(dataset) == chunks(new[path]), path
        if all(map(built_in, datasets(old).values())):
            assert "difference" not in tool("h5diff", source, target)


@pytest.mark.matrix
@pytest.mark.peer
@pytest.mark.parametrize("name", WITH_FLOATS)
def test_copy_tree_with_deflated_floats_equals_real_file(name: str, tmp_path: Path) -> None:
    source = real(name)
    paths = floats(source)
    assert paths
    target = copy(source, tmp_path / "copy.h5", dict.fromkeys(paths, deflated))
    assert dump(target, "-A") == dump(source, "-A")
    assert tool("ncdump", "-n", "x", "-h", target) == tool("ncdump", "-n", "x", "-h", source)
    with h5py.File(source) as old, h5py.File(target) as new:
        for path in paths:
            assert new[path].compression == "gzip"
            np.testing.assert_array_equal(new[path][...], old[path][...])
        if all(map(built_in, datasets(old).values())):
            assert "difference" not in tool("h5diff", source, target)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("name", ["cam_ts_100days.nc", "era5_levels_members.nc"])
@pytest.mark.matrix
def test_copy_tree_of_netcdf_opens_in_xarray(name: str, engine: str, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    source = real(name)
    target = copy(source, tmp_path / "copy.nc", dict.fromkeys(floats(source), deflated))
    with xarray.open_dataset(source, engine=engine) as old, xarray.open_dataset(target, engine=engine) as new:
        xarray.testing.assert_identical(old, new)
        assert list(old.variables) == list(new.variables)


@pytest.mark.peer
def test_copy_tree_of_netcdf_types_keeps_each_named_type(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    source = tmp_path / "source.nc"
    with netcdf.Dataset(source, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("t", None)
        file.createVariable("s", str, ("x",))[0] = "a"
        file.createVariable("filled", str, ("x",), fill_value="none")[1] = "z"
        for group in (file, file.createGroup("g")):
            enum = group.createEnumType(np.int8, "answer", {"no": 0, "yes": 1})
            group.createVariable("e", enum, ("x",), zlib=True, fill_value=1)[:] = [0, 1, 0]
        compound = file.createCompoundType(np.dtype([("a", "f4"), ("b", "i4")]), "pair")
        variable = file.createVariable("c", compound, ("t",))
        variable[0] = np.array((1, 2), compound.dtype)
        variable.setncattr("one", np.array((3, 4), compound.dtype))
        file.createVariable("v", file.createVLType(np.int16, "row"), ("x",))[0] = np.arange(4, dtype="i2")
        file.setncattr_string("strings", ["a", "", "bc"])
    target = copy(source, tmp_path / "copy.nc", {"/g/e": deflated})
    assert tool("ncdump", "-n", "x", target) == tool("ncdump", "-n", "x", source)
    assert dump(target) == dump(source)
    assert "difference" not in tool("h5diff", source, target)


@pytest.fixture(scope="module", params=["verbatim", "recreated"])
def copied(request: pytest.FixtureRequest, odd: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the odd file, plain or with datasets made anew."""
    remade = ["/g/d_again", "/a_second", "/partial", "/ordered"] if request.param == "recreated" else []
    makers: dict[str, Callable[..., h5py.Dataset]] = dict.fromkeys(remade, deflated)
    if remade:
        makers["/ordered"] = same_layout
    return copy(odd, tmp_path_factory.mktemp("copied") / "copied.h5", makers)


def same_layout(source: h5py.Dataset, parent: h5py.Group, name: str) -> h5py.Dataset:
    made = create_like(source, parent, name, chunk_shape=None, filters=[])
    made[...] = source[...]
    return made


@pytest.mark.peer
def test_copy_tree_of_odd_file_dumps_the_same(odd: Path, copied: Path) -> None:
    assert dump(copied) == dump(odd)
    assert dump(copied, "-q", "creation_order", "-n") == dump(odd, "-q", "creation_order", "-n")
    assert "difference" not in tool("h5diff", odd, copied)


def test_copy_tree_hard_links_keep_one_object(odd: Path, copied: Path) -> None:
    with h5py.File(odd) as old, h5py.File(copied) as new:
        assert new["a_second_name"] == new["d"] == new["g/d_again"]
        assert new["g/root"] == new["/"]
        assert new["g/self"] == new["g"]
        for path in ("/", "d", "g", "types/first", "rows"):
            assert h5o.get_info(new[path].id).rc == h5o.get_info(old[path].id).rc, path


def test_copy_tree_links_keep_kind_and_order(odd: Path, copied: Path) -> None:
    with h5py.File(odd) as old, h5py.File(copied) as new:
        assert list(new) == list(old)
        assert list(new["g"]) == ["z", "y", "x", "d_again", "root", "self"]
        assert new.get("soft", getlink=True).path == "/g/x"
        assert new.get("dangling", getlink=True).path == "/nowhere"
        external = new.get("external", getlink=True)
        assert (external.filename, external.path) == ("other.h5", "/a/b")
        root = new["/"].id
        assert root.links.get_info("größe".encode()).cset == h5t.CSET_UTF8
        assert [root.get_comment(path) for path in (b"g", b"d", b"types")] == [b"about g", b"about d", b""]


def test_copy_tree_named_types_stay_named(copied: Path) -> None:
    with h5py.File(copied) as new:
        for name in ("first", "second"):
            assert address(new["a_" + name].id.get_type()) == address(new["types/" + name])
            assert new["types/" + name].attrs["name"] == name
        assert address(new["rows"].id.get_type()) == address(new["types/row"])
        assert address(new["d"].attrs.get_id("enum").get_type()) == address(new["types/second"])
        unlinked = new["unlinked_type"].id.get_type()
        assert unlinked.committed()
        assert address(unlinked) == address(new["unlinked_type"].attrs.get_id("q").get_type())
        assert h5a.exists(unlinked, b"still")


def test_copy_tree_attributes_keep_type_and_order(odd: Path, copied: Path) -> None:
    with h5py.File(odd) as old, h5py.File(copied) as new:
        assert list(new["ordered"].attrs) == [f"k{20 - i}" for i in range(12)]
        for path in ("/", "d", "g", "ordered", "lat"):
            assert list(new[path].attrs) == list(old[path].attrs)
            for name in old[path].attrs:
                one, other = (file[path].attrs.get_id(name) for file in (old, new))
                assert one.get_space().get_simple_extent_type() == other.get_space().get_simple_extent_type()
                assert one.dtype == other.dtype
                if not one.get_type().detect_class(h5t.REFERENCE) and name != "rows_of_rows":
                    np.testing.assert_equal(plain(new[path].attrs[name]), plain(old[path].attrs[name]))
        assert new["d"].attrs["null"] == h5py.Empty("f4")
        assert new["d"].attrs["bool"] is np.True_


def test_copy_tree_references_point_to_the_copies(copied: Path) -> None:
    with h5py.File(copied) as new:
        attrs = new["d"].attrs
        assert new[attrs["to_group"]] == new["g"]
        assert new[attrs["to_self"]] == new["d"]
        assert new[attrs["to_root"]] == new["/"]
        assert address(new[attrs["to_type"]]) == address(new["types/first"])
        assert not attrs["to_nothing"]
        assert [bool(r) and new[r].name for r in attrs["references"]] == ["/g", False, "/rows"]
        np.testing.assert_array_equal(new["d"][attrs["region"]], np.arange(60.0).reshape(5, 12)[1:3, ::4])
        assert new[new["refs"][0]] == new["d"]
        assert new[new["refs"][3]] == new["g/x"]
        assert not any(map(bool, new["refs"][[1, 2, 4]]))
        np.testing.assert_array_equal(new["d"][new["regions"][0]], np.arange(5.0)[None])
        assert new[new["ref"][()]] == new["refs"]
        assert new[new["pairs"][1]["r"]] == new["d"]
        assert new["pairs"][1]["s"] == b"hi"
        assert [new[r] for r in new["ref_rows"][0]] == [new["d"], new["g"]]
        assert new["d"].dims[0][0] == new["lat"]
        assert [new[entry["dataset"]] for entry in new["lat"].attrs["REFERENCE_LIST"]] == [new["d"]]


def test_copy_tree_datasets_keep_their_storage(odd: Path, copied: Path) -> None:
    with h5py.File(odd) as old, h5py.File(copied) as new:
        assert new["partial"].fillvalue == -9
        assert new["partial"].maxshape == (None, 20)
        assert new["filled"].fillvalue == b"none"
        assert new["null"].shape is None
        assert new["virtual"].is_virtual
        np.testing.assert_array_equal(new["virtual"][...], old["d"][2])
        for name in ("partial", "filled", "strings", "rows", "a_first", "a_second"):
            np.testing.assert_equal(plain(new[name][...]), plain(old[name][...]))


def test_copy_tree_dangling_references_become_null(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["gone"] = np.arange(3)
        file.attrs["object"], file.attrs["region"] = file["gone"].ref, file["gone"].regionref[1:2]
        del file["gone"]
        assert file.attrs["object"]
    with h5py.File(copy(tmp_path / "a.h5", tmp_path / "b.h5")) as new:
        assert not new.attrs["object"]
        assert not new.attrs["region"]


def test_copy_tree_leaves_no_working_group(copied: Path) -> None:
    with h5py.File(copied) as new:
        assert not [name for name in new if "tamis" in name]


def test_copy_tree_of_named_type_needs_no_filter(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["kind"] = np.dtype("<i4")
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4,))
        plist.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_MANDATORY, ())
        made = h5py.h5d.create(file.id, b"d", file["kind"].id, h5s.create_simple((8,)), plist)
        h5py.Dataset(made)[...] = np.arange(8) // 4
        h5py.Dataset(made).attrs["a"] = 1
    # In another process, since a filter that is gone is gone for all other tests too.
    program = """if True:
        import sys, h5py
        from tamis.formats.hdf5.tree.copy import TreeCopier
        from tamis.formats.hdf5.tree.create import create_target
        h5py.h5z.unregister_filter(h5py.h5z.FILTER_LZF)
        with h5py.File(sys.argv[1]) as old, create_target(old, sys.argv[2]) as new:
            copier = TreeCopier(old, new)
            assert not [*copier.slots()]
            copier.finish()
    """
    subprocess.run([sys.executable, "-c", program, tmp_path / "a.h5", tmp_path / "b.h5"], check=True)
    with h5py.File(tmp_path / "a.h5") as old, h5py.File(tmp_path / "b.h5") as new:
        assert chunks(new["d"]) == chunks(old["d"])
        assert address(new["d"].id.get_type()) == address(new["kind"])
        np.testing.assert_array_equal(new["d"][...], np.arange(8) // 4)


def test_copy_tree_mixed_null_and_empty_strings_stay_apart(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        strings = h5py.string_dtype()
        data = file.create_dataset("s", (3,), strings)
        data[1], data[2] = "", "x"
        raw = np.zeros(3, "V8")
        kind = data.id.get_type()
        data.id.read(h5s.ALL, h5s.ALL, raw, kind)
        h5a.create(data.id, b"s", kind, h5s.create_simple((3,))).write(raw, mtype=kind)
    copy(tmp_path / "a.h5", tmp_path / "b.h5")
    expected = '(0): NULL, "", "x"'
    assert tool("h5dump", tmp_path / "a.h5").count(expected) == 2
    assert tool("h5dump", tmp_path / "b.h5").count(expected) == 2


def test_copy_tree_refuses_a_path_that_leads_nowhere(odd: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected a dataset at '/nothing', got"):
        copy(odd, tmp_path / "b.h5", {"/nothing": deflated})


@pytest.mark.parametrize(
    ("paths", "message"),
    [(["/g"], "expected a dataset of this file at '/g', got"), (["/d", "/g/d_again"], "name each dataset once")],
)
def test_copy_tree_refuses_wrong_paths(paths: list[str], message: str, odd: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=message):
        copy(odd, tmp_path / "b.h5", dict.fromkeys(paths, deflated))


def test_copy_tree_refuses_a_target_in_use(odd: Path, tmp_path: Path) -> None:
    with h5py.File(odd) as old, h5py.File(tmp_path / "b.h5", "w") as new:
        new["x"] = 1
        with pytest.raises(ParameterError, match="expected an empty target, got 1 objects"):
            TreeCopier(old, new)


def test_copy_tree_refuses_a_source_with_the_working_group(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group(".tamis-named-types")
    with pytest.raises(ParameterError, match=r"the source's root has '\.tamis-named-types'"):
        copy(tmp_path / "a.h5", tmp_path / "b.h5")


def test_copy_tree_names_the_attribute_that_is_there_already(odd: Path, tmp_path: Path) -> None:
    def meddle(source: h5py.Dataset, parent: h5py.Group, name: str) -> h5py.Dataset:
        made = deflated(source, parent, name)
        made.attrs["bool"] = False
        return made

    with pytest.raises(FileError, match=r"cannot copy /d \(attribute 'bool'\): "):
        copy(odd, tmp_path / "b.h5", {"/d": meddle})


def test_copy_tree_refuses_a_dataset_made_elsewhere(odd: Path, tmp_path: Path) -> None:
    def misplace(source: h5py.Dataset, parent: h5py.Group, name: str) -> h5py.Dataset:
        return deflated(source, parent, name + "_elsewhere")

    with pytest.raises(FileError, match="cannot copy /d: expected the new dataset under this path"):
        copy(odd, tmp_path / "b.h5", {"/d": misplace})


def test_copy_tree_copies_what_the_caller_does_not_create(odd: Path, tmp_path: Path) -> None:
    def gives_up(source: h5py.Dataset, parent: h5py.Group, name: str) -> None:
        deflated(source, parent, name)

    target = copy(odd, tmp_path / "b.h5", {"/d": gives_up, "/ordered": lambda *_: None})
    assert dump(target, "-A", "-p") == dump(odd, "-A", "-p")
