"""Known defects U41, U46, U48 and U57: files of other programs are refused, or copies of them are called different."""

from __future__ import annotations

import shutil
from itertools import pairwise, permutations
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr
from h5py import h5a, h5d, h5p, h5s, h5t
from inprocess import said_by_tamis

import tamis
from tamis.formats.hdf5.lib import calls

RUBBISH = 0xDEADBEEF


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    path = tmp_path / "empty.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "no datasets"
        file.create_group("group").attrs["count"] = 3
        file["type"] = np.dtype("<f4")
    return path


@pytest.mark.parametrize("target", ["copy.h5", "copy.zarr"])
def test_u41_patterns_may_match_nothing(empty: Path, target: str) -> None:
    copy = empty.with_name(target)
    assert "*: this pattern matches no dataset" in said_by_tamis("repack", empty, copy, "-f", "*:shuffle|deflate(4)")
    assert "no dataset" in said_by_tamis(
        "repack", empty, empty.with_name("other.h5"), "-f", "*:deflate(1)", "--dry-run"
    )
    with tamis.open(copy) as file:
        assert file["group"].attrs["count"] == 3
    if target == "copy.h5":
        assert "equal: 0 datasets compared" in said_by_tamis("verify", empty, copy, "--bound", "*:0.1")


def test_u41_plan_of_a_file_without_datasets(empty: Path) -> None:
    assert "*: not planned: this pattern matches no dataset" in said_by_tamis("plan", empty)
    assert "nothing to change" in said_by_tamis("plan", empty, "--require", "T*:abs=0.1")


def test_u41_exact_names_must_exist(empty: Path) -> None:
    assert "expected a dataset named 'TS'" in said_by_tamis(
        "repack", empty, empty.with_name("b.h5"), "-f", "TS:none", code=1
    )
    assert "expected a dataset named 'TS'" in said_by_tamis("plan", empty, "--require", "TS:abs=1", code=1)
    assert not empty.with_name("b.h5").exists()


def test_u41_some_patterns_match(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["TS"] = np.zeros(10000)
    said = said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "b.h5", "-f", "T*:deflate(1)", "-f", "U*:deflate(2)")
    assert "U*: this pattern matches no dataset" in said
    assert "1 dataset rewritten" in said


def stored_words(path: Path, dtype: str, scale: tuple[int, int], words: dict[int, int], values: object) -> None:
    """Write a dataset with scaleoffset and no fill value, and put other words into its parameters."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((50,))
    plist.set_scaleoffset(*scale)
    kind = h5t.py_create(np.dtype(dtype))
    calls.set_undefined_fill(plist, kind)
    with h5py.File(path, "w") as file:
        dataset = h5d.create(file.id, b"v", kind, h5s.create_simple((100,)), plist)
        dataset.write(h5s.ALL, h5s.ALL, np.asarray(values, dtype))
        stored = np.array(dataset.get_create_plist().get_filter(0)[2], "<u4")
    changed = stored.copy()
    for index, word in words.items():
        changed[index] = word
    content = path.read_bytes()
    assert content.count(stored.tobytes()) == 1
    path.write_bytes(content.replace(stored.tobytes(), changed.tobytes()))


FILL = dict.fromkeys(range(8, 20), RUBBISH)


@pytest.mark.parametrize("dtype", ["<f4", ">f8"])
def test_u46_words_of_floats_that_hdf5_does_not_look_at(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "a.h5"
    stored_words(path, dtype, (0, 2), FILL | {5: RUBBISH}, np.linspace(-3, 9, 100))
    check_as_hdf5(path)


@pytest.mark.parametrize("dtype", ["<i2", ">u4", "<i8"])
def test_u46_words_of_integers_that_hdf5_does_not_look_at(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "a.h5"
    stored_words(path, dtype, (2, 0), FILL | {7: RUBBISH}, np.arange(100) * 3)
    check_as_hdf5(path)


def check_as_hdf5(path: Path) -> None:
    with h5py.File(path) as file, tamis.open(path) as own:
        expected = file["v"][...]
        assert np.array_equal(own["v"][...], expected)
    said_by_tamis("repack", path, path.with_name("b.h5"), "-f", "*:shuffle|deflate(4)", "--larger")
    said_by_tamis("verify", path, path.with_name("b.h5"))
    with h5py.File(path.with_name("b.h5")) as file:
        assert np.array_equal(file["v"][...], expected)


def test_u46_nbit_takes_any_word_but_0_for_values_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((50,))
        plist.set_filter(5, 0, ())
        dataset = h5d.create(file.id, b"v", h5t.STD_I32LE, h5s.create_simple((100,)), plist)
        dataset.write(h5s.ALL, h5s.ALL, np.arange(100, dtype="<i4"))
        stored = np.array(dataset.get_create_plist().get_filter(0)[2], "<u4")
    changed = stored.copy()
    changed[1] = RUBBISH
    content = path.read_bytes()
    assert content.count(stored.tobytes()) == 1
    path.write_bytes(content.replace(stored.tobytes(), changed.tobytes()))
    check_as_hdf5(path)


def kinds() -> dict[str, h5t.TypeID]:
    opaque = h5t.create(h5t.OPAQUE, 5)
    opaque.set_tag(b"a tag")
    record = h5t.create(h5t.COMPOUND, 40)  # with gaps, and members in another order than in memory
    record.insert(b"last", 30, opaque)
    record.insert(b"bits", 4, h5t.STD_B16BE)
    record.insert(b"number", 8, h5t.IEEE_F64BE)
    record.insert(b"several", 20, h5t.array_create(h5t.STD_B32LE, (2,)))
    text = h5t.C_S1.copy()
    text.set_size(h5t.VARIABLE)
    mixed = h5t.create(h5t.COMPOUND, 32)
    mixed.insert(b"text", 0, text)
    mixed.insert(b"opaque", 16, opaque)
    return {
        "opaque": opaque,
        "bits": h5t.STD_B16BE,
        "array": h5t.array_create(opaque, (3,)),
        "record": record,
        "mixed": mixed,
        "sequences": h5t.vlen_create(h5t.STD_B16BE),
        "time": h5t.UNIX_D32LE,
    }


@pytest.mark.parametrize("name", kinds())
def test_u48_copies_of_any_type_are_equal(tmp_path: Path, name: str) -> None:
    kind, path, copy = kinds()[name], tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(path, "w", libver="latest") as file:
        space = h5s.create_simple((4,))
        dataset = h5d.create(file.id, b"v", kind, space)
        attribute = h5a.create(dataset, b"att", kind, space)
        if name not in ("mixed", "sequences"):  # whose values are elsewhere
            content = np.random.default_rng(48).bytes(4 * kind.get_size())
            values = np.frombuffer(content, np.dtype((np.void, kind.get_size()))).copy()
            dataset.write(h5s.ALL, h5s.ALL, values, kind)
            attribute.write(values, kind)
    said_by_tamis("repack", path, copy, "-f", "*:deflate(1)", "--min-size", "0")
    assert "equal: 1 dataset compared" in said_by_tamis("verify", path, copy)
    if name in ("mixed", "sequences"):
        return
    with h5py.File(copy, "r+") as file:
        values[2] = bytes(kind.get_size())
        h5d.open(file.id, b"v").write(h5s.ALL, h5s.ALL, values, kind)
    assert "violation: /v: 1 of 4 differ: at [2]" in said_by_tamis("verify", path, copy, code=3)


def test_u48_fill_values_of_types_with_gaps_and_arrays(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.h5", tmp_path / "b.h5"
    gaps = h5t.create(h5t.COMPOUND, 16)
    gaps.insert(b"a", 0, h5t.STD_I8LE)
    gaps.insert(b"b", 8, h5t.IEEE_F64LE)
    large = h5t.array_create(h5t.IEEE_F64LE, (3000, 3000))
    with h5py.File(path, "w") as file:
        for name, kind in ((b"gaps", gaps), (b"large", large)):
            h5d.create(file.id, name, kind, h5s.create_simple((2,)))
    shutil.copy(path, copy)
    with h5py.File(copy, "r+") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        calls.set_fill_bytes(plist, gaps, b"\0" + b"\7" * 7 + bytes(8))
        del file["gaps"]
        h5d.create(file.id, b"gaps", gaps, h5s.create_simple((2,)), plist)
    assert "fill value" not in said_by_tamis("verify", path, copy)


def classic(path: Path, form: str = "NETCDF3_CLASSIC") -> netCDF4.Dataset:
    return netCDF4.Dataset(path, "w", format=form)


def test_u57_names_end_at_the_first_zero_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with classic(path) as data:
        data.createDimension("dimensio", 3)
        variable = data.createVariable("variable", "f4", ("dimensio",))
        variable.setncattr("attribut", 5)
        variable[:] = [1, 2, 3]
    content = path.read_bytes()
    for name, short in ((b"dimensio", b"d"), (b"variable", b"vv"), (b"attribut", b"att")):
        content = content.replace(name, short.ljust(8, b"\0"))
    path.write_bytes(content)
    with netCDF4.Dataset(path) as data, tamis.open(path) as own:
        assert list(data.variables) == ["vv"]
        assert own["vv"][:].tolist() == data["vv"][:].tolist() == [1, 2, 3]
        assert own["vv"].attrs["att"] == data["vv"].att == 5
    said_by_tamis("repack", path, tmp_path / "b.nc", "-f", "*:deflate(1)")
    said_by_tamis("verify", path, tmp_path / "b.nc")
    with netCDF4.Dataset(tmp_path / "b.nc") as data:
        assert data["vv"].dimensions == ("d",)


def test_u57_text_that_other_bytes_follow_is_the_same_in_every_format(tmp_path: Path) -> None:
    """ESMF stores what was in memory after the end of a text."""
    with classic(tmp_path / "a.nc") as file:
        file.createDimension("x", 3)
        file.createVariable("v", "f4", ("x",))[:] = range(3)
        file.setncatts({"two": "one|two", "garbage": "mesh.nc|?????"})
    data = (tmp_path / "a.nc").read_bytes()
    data = data.replace(b"one|two", b"one\0two").replace(b"mesh.nc|?????", b"mesh.nc\0\0\xd0#\xf3\xbf")
    (tmp_path / "a.nc").write_bytes(data)
    said_by_tamis("repack", tmp_path / "a.nc", tmp_path / "b.nc")
    said_by_tamis("verify", tmp_path / "a.nc", tmp_path / "b.nc")
    with netCDF4.Dataset(tmp_path / "a.nc") as before, netCDF4.Dataset(tmp_path / "b.nc") as after:
        assert [after.getncattr(name) for name in ("two", "garbage")] == [before.two, before.garbage]
    said_by_tamis("repack", tmp_path / "a.nc", tmp_path / "a.zarr")
    said_by_tamis("verify", tmp_path / "a.nc", tmp_path / "a.zarr")
    assert dict(zarr.open_group(tmp_path / "a.zarr", mode="r").attrs) == {"two": "one\0two", "garbage": "mesh.nc"}


def test_u57_dimensions_of_3_billion_places(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with classic(path, "NETCDF3_64BIT_OFFSET") as data:
        data.createDimension("large", 3_000_000_000)
        data.createDimension("x", 2)
        data.createVariable("v", "i4", ("x",))[:] = [4, 5]
    said_by_tamis("repack", path, tmp_path / "b.nc", "-f", "*:deflate(1)")
    with netCDF4.Dataset(tmp_path / "b.nc") as data:
        assert data.dimensions["large"].size == 3_000_000_000
        assert data["v"][:].tolist() == [4, 5]


def test_u57_types_of_cdf5_in_older_formats(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with classic(path) as data:
        data.createDimension("x", 3)
        data.createVariable("v", "i4", ("x",))[:] = [1, 2, -3]
    entry = (4).to_bytes(4, "big") + (12).to_bytes(4, "big")  # type and size of the variable
    content = path.read_bytes()
    assert content.count(entry) == 1
    path.write_bytes(content.replace(entry, (9).to_bytes(4, "big") + entry[4:]))
    with netCDF4.Dataset(path) as data, tamis.open(path) as own:
        assert own["v"].dtype == data["v"].dtype == np.uint32
        assert own["v"][:].tolist() == data["v"][:].tolist() == [1, 2, 2**32 - 3]


def test_gaps_in_arrays_of_records_are_no_values(tmp_path: Path) -> None:
    # As HDFView's samples have them: C pads the records of an array as it pads all others.
    inner = np.dtype([("count", "i1"), ("mean", "<f8")], align=True)
    dtype = np.dtype([("name", "S5"), ("parts", inner, (3,))], align=True)
    values = np.frombuffer(np.random.default_rng(5).bytes(40 * dtype.itemsize), dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("v", (40,), dtype, chunks=(16,))
        dataset.id.write(h5s.ALL, h5s.ALL, values.copy(), dataset.id.get_type())
    said_by_tamis(
        "repack", tmp_path / "a.h5", tmp_path / "b.h5", "-f", "*:shuffle|deflate(1)", "--larger", "--min-size", 1
    )
    assert "equal: 1 dataset" in said_by_tamis("verify", tmp_path / "a.h5", tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].compression == "gzip"
        found = file["v"][:]
    np.testing.assert_array_equal(found["name"], values["name"])
    for name in ("count", "mean"):
        np.testing.assert_array_equal(found["parts"][name], values["parts"][name])


def test_complex_numbers_that_hdf5_cannot_convert_are_copied_as_bytes(tmp_path: Path) -> None:
    datatype = h5t.NATIVE_LDOUBLE_COMPLEX.copy()
    datatype.set_order(h5t.ORDER_BE)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        calls.set_fill_bytes(plist, datatype, bytes(range(32)))
        dataset = h5d.create(file.id, b"z", datatype, h5s.create_simple((4,)), plist)
        dataset.write(h5s.ALL, h5s.ALL, np.frombuffer(bytes(range(128)), "V32").copy(), datatype)
        file["v"] = np.arange(4)
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "b.h5")
    assert "equal: 2 datasets" in said_by_tamis("verify", tmp_path / "a.h5", tmp_path / "b.h5")
    assert "left out: z" in said_by_tamis("inspect", "--cdl", tmp_path / "b.h5")
    with pytest.warns(UserWarning, match="z is left out: expected numbers, characters or text"):
        opened = xarray.open_dataset(tmp_path / "b.h5", engine="tamis")
    assert opened["v"].to_numpy().tolist() == [0, 1, 2, 3]


def test_named_complex_types_are_said_in_words(tmp_path: Path) -> None:
    for name, datatype in (("a.h5", h5t.COMPLEX_IEEE_F32LE), ("b.h5", h5t.COMPLEX_IEEE_F64LE)):
        with h5py.File(tmp_path / name, "w") as file:
            datatype.copy().commit(file.id, b"t")
            file["v"] = np.arange(4)
    said = said_by_tamis("verify", tmp_path / "a.h5", tmp_path / "b.h5", code=3)
    assert "named type complex of float32" in said


@pytest.mark.parametrize("name", [b"gr\xb0up", b"gr\xb0up/v", b"v (\xb0C)"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_that_are_not_utf_8_are_refused_by_zarr(name: bytes, zarr_format: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if name.endswith(b"up"):
            file.create_group(name)
        else:
            plist = h5p.create(h5p.LINK_CREATE)
            plist.set_create_intermediate_group(True)
            h5d.create(file.id, name, h5t.STD_I8LE, h5s.create_simple((4,)), lcpl=plist)
    said = said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "b.zarr", "--zarr-format", zarr_format, code=1)
    assert f"expected a name in UTF-8, as Zarr's are, got {b'/' + name!r}" in said
    assert not (tmp_path / "b.zarr").exists()


def test_opaque_attributes_go_to_zarr_and_back(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        datatype = h5t.create(h5t.OPAQUE, 1)
        datatype.set_tag(b"one byte")
        for name, shape in {b"row": (2,), b"table": (1, 2), b"cube": (2, 2, 2)}.items():
            attribute = h5a.create(file.id, name, datatype, h5s.create_simple(shape))
            attribute.write(np.frombuffer(bytes(range(1, 9))[: np.prod(shape)], "V1").reshape(shape).copy(), datatype)
    paths = [tmp_path / name for name in ("a.h5", "b.zarr", "c.h5")]
    for source, target in pairwise(paths):
        said_by_tamis("repack", source, target)
    for before, after in permutations(paths, 2):
        assert "equal" in said_by_tamis("verify", before, after)
