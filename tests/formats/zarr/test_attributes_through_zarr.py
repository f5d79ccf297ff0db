"""Known defect U54: attributes of any type and rank go from HDF5 to Zarr and back as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr
from h5py import h5a, h5s, h5t
from inprocess import said_by_tamis

import tamis

STRINGS = h5py.string_dtype()
ASCII = h5py.string_dtype("ascii")
VALUES: dict[str, Any] = {
    **{f"number {kind}": np.array(3, kind) for kind in ("i1", "u1", "<i2", ">i2", "<u8", ">f4", "<f8", "<f2", "?")},
    **{f"one {kind}": np.array([3], kind) for kind in ("i1", "<i4", ">i4", "<f2", "<f8", "?")},
    **{f"row {kind}": np.array([1, 0, 3], kind) for kind in ("u1", "<u2", ">i8", "<f4", "<f2", ">f8", "?")},
    **{f"table {kind}": np.arange(6).reshape(2, 3).astype(kind) for kind in ("i1", "<i8", ">i4", "<f2", "<f4", "?")},
    "cube": np.arange(8, dtype="<i4").reshape(2, 2, 2),
    "unit axes": np.arange(3.0).reshape(1, 3, 1),
    "nothing along an axis": np.empty(0, "<f4"),
    "nothing along two": np.empty((0, 3), "<i2"),
    "no values": h5py.Empty("<f8"),
    "no text": h5py.Empty(STRINGS),
    "not finite": np.array([[np.nan, np.inf], [-np.inf, -0.0]]),
    "beyond 2^53": np.array([[(1 << 63) - 1, -(1 << 63)], [(1 << 53) + 1, 0]]),
    "beyond 2^63": np.array([(1 << 64) - 1, 1], "<u8"),
    "one beyond 2^63": np.array((1 << 64) - 1, "<u8"),
    "text": "K",
    "text of bytes": np.bytes_(b"K"),
    "letters": "Å",
    "nothing said": "",
    "texts": np.array(["a", "é", ""], STRINGS),
    "one text": np.array(["a"], STRINGS),
    "table of texts": np.array([["a", "é"], ["", "d"]], STRINGS),
    "texts of a length": np.array([b"a", b"bcd"]),
    "one of a length": np.array([b"abc"]),
}
FORMS = {"2": ["--zarr-format", "2"], "3": []}
FILLS = {"i4": [-999, -9999], ">i2": [-1, -2, 3], "u8": [1, 2], "f4": [np.nan, 0.1], "f8": [1e20, -np.inf]}


def facts(owner: h5py.HLObject, name: str) -> tuple[Any, ...]:
    """Return shape and value of an attribute."""
    value = owner.attrs[name]
    text = "no value" if isinstance(value, h5py.Empty) else repr(np.asarray(value).tolist())
    return owner.attrs.get_id(name).shape, text


COLOURS = h5py.enum_dtype({"RED": 0, "deep blue": -1, "é,=:": 7}, basetype=">i2")


def lists(*rows: Any, shape: tuple[int, ...] | None = None) -> Any:
    """Return lists of varying length as h5py takes them."""
    values = np.empty(len(rows), object)
    for index, row in enumerate(rows):
        values[index] = row
    return values.reshape(values.shape if shape is None else shape)


LETTERS = lists(np.array([b"a", b"bc"], "S2"), np.array([b"d"], "S2"))
NUMBERS = lists(np.array([1, 2]), np.array([], "i8"), np.array([3]), np.array([4, 5]))
RECORD = np.dtype([("a", "u1"), ("b", [("c", "i2"), ("d", "f4", 2)])])
TYPED: dict[str, tuple[Any, Any]] = {
    "fields of MATLAB": (lists(np.array([b"a", b"b"], "S1"), np.array([b"c"], "S1")), h5py.vlen_dtype(np.dtype("S1"))),
    "lists of letters": (LETTERS, h5py.vlen_dtype(np.dtype("S2"))),
    "lists": (NUMBERS, h5py.vlen_dtype(np.dtype("<i4"))),
    "table of lists": (NUMBERS.reshape(2, 2), h5py.vlen_dtype(np.dtype("<i2"))),
    "list": (lists(np.array([1.5, np.nan]), shape=()), h5py.vlen_dtype(np.dtype("<f4"))),
    "row of a list": (lists(np.array([1, 2])), h5py.vlen_dtype(np.dtype("u1"))),
    "no lists": (lists(), h5py.vlen_dtype(np.dtype("u1"))),
    "colour": (np.array(7, ">i2"), COLOURS),
    "colours": (np.array([[0, -1], [7, 0]], ">i2"), COLOURS),
    "complex": (1 - 2j, "<c16"),
    "complex numbers": (np.array([[1 + 2j, np.nan]], ">c8"), ">c8"),
    "big-endian lists": (NUMBERS, h5py.vlen_dtype(np.dtype(">i4"))),
    "lists of texts": (lists(np.array(["a", "é"], object), np.array([""], object)), h5py.vlen_dtype(STRINGS)),
    "lists of booleans": (lists(np.array([True, False])), h5py.vlen_dtype(np.dtype("?"))),
    "lists of colours": (lists(np.array([7, 0]), np.array([-1])), h5py.vlen_dtype(COLOURS)),
    "lists of complex": (lists(np.array([1 + 2j]), np.array([3j])), h5py.vlen_dtype(np.dtype("<c8"))),
    "record": (np.array((1, 2.5, b"ab"), [("a", ">i4"), ("b", "<f8"), ("c", "S3")]), None),
    "records": (np.array([(1, (2, [3, 4])), (5, (6, [7, 8]))], RECORD), None),
    "padded record": (np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True)), None),
    "record of text": (np.array([(1, "é")], [("a", "i4"), ("text", STRINGS)]), None),
    "opaque": (np.void(b"\xff\x00a"), None),
    "time": (np.array(["2020-01-02"], "M8[D]").astype(h5py.opaque_dtype("M8[D]")), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_u54_lists_enumerations_and_complex_numbers_come_back(form: str, tmp_path: Path) -> None:
    source, store, back = (tmp_path / name for name in ("a.h5", "a.zarr", "b.h5"))
    with h5py.File(source, "w") as file:
        for owner in (file.create_dataset("x", data=np.arange(4)), file.create_group("g")):
            for name, (value, dtype) in TYPED.items():
                owner.attrs.create(name, value, dtype=dtype)
    said_by_tamis("repack", source, store, *FORMS[form])
    said_by_tamis("verify", source, store)
    said_by_tamis("repack", store, back)
    said_by_tamis("verify", store, back)
    said_by_tamis("verify", source, back)
    with h5py.File(source) as before, h5py.File(back) as after:
        for path, name in ((path, name) for path in ("x", "g") for name in TYPED):
            kinds = [file[path].attrs.get_id(name).get_type() for file in (before, after)]
            assert kinds[0].equal(kinds[1]), (path, name)
            assert repr(before[path].attrs[name]) == repr(after[path].attrs[name]), (path, name)
    known = zarr.open_group(store, mode="r")["x"].attrs
    assert known["fields of MATLAB"] == [["a", "b"], ["c"]]
    assert (known["colour"], known["complex"]) == (7, [1.0, -2.0])
    assert known["big-endian lists"] == [[1, 2], [], [3], [4, 5]]
    assert known["record"] == {"a": 1, "b": 2.5, "c": "ab"}
    assert known["opaque"] == "/wBh"


def create(owner: h5py.HLObject, name: str, kind: h5t.TypeID, values: Any, shape: tuple[int, ...]) -> None:
    space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
    h5a.create(owner.id, name.encode(), kind, space).write(values, mtype=kind)


def test_u54_array_elements_and_bit_fields_come_back(tmp_path: Path) -> None:
    source, store, back = (tmp_path / name for name in ("a.h5", "a.zarr", "b.h5"))
    triples = h5t.array_create(h5t.STD_I32BE, (3,))
    with h5py.File(source, "w") as file:
        for owner in (file.create_dataset("x", data=np.arange(4)), file.create_group("g")):
            create(owner, "triples", triples, np.arange(6, dtype=">i4").reshape(2, 3), (2,))
            create(owner, "triple", triples, np.arange(3, dtype=">i4"), ())
            create(owner, "bits", h5t.STD_B16BE, np.array(5, ">u2"), ())
    said_by_tamis("repack", source, store)
    said_by_tamis("verify", source, store)
    said_by_tamis("repack", store, back)
    said_by_tamis("verify", store, back)
    said_by_tamis("verify", source, back)
    with h5py.File(back) as file:
        assert file["g"].attrs.get_id("bits").get_type().equal(h5t.STD_B16BE)
        assert file["x"].attrs.get_id("triples").get_type().equal(triples)
        assert file["x"].attrs["triples"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_u54_null_terminated_texts_without_zero_come_back(tmp_path: Path) -> None:
    """MATLAB lists the fields of a structure as lists of single characters that should end with a zero, but do not."""
    source, store, back = (tmp_path / name for name in ("a.mat", "a.zarr", "b.h5"))
    text = h5t.C_S1.copy()
    text.set_size(2)
    record = h5t.create(h5t.COMPOUND, 2)
    record.insert(b"code", 0, text)
    with h5py.File(source, "w") as file:
        for owner in (file.create_dataset("x", data=np.arange(4)), file.create_group("g")):
            create(owner, "record", record, np.array((b"ab",), [("code", "S2")]), ())
            owner.attrs.create("fields", TYPED["fields of MATLAB"][0], dtype=TYPED["fields of MATLAB"][1])
    padded, terminated = (b"\x13%c\0\0\x01\0\0\0" % end for end in (h5t.STR_NULLPAD, h5t.STR_NULLTERM))
    source.write_bytes(source.read_bytes().replace(padded, terminated))
    said_by_tamis("repack", source, store)
    said_by_tamis("verify", source, store)
    said_by_tamis("repack", store, back)
    said_by_tamis("verify", store, back)
    said_by_tamis("verify", source, back)
    with h5py.File(source) as before, h5py.File(back) as after:
        assert before["x"].attrs.get_id("fields").get_type().get_super().get_strpad() == h5t.STR_NULLTERM
        for name in ("fields", "record"):
            assert repr(before["g"].attrs[name]) == repr(after["g"].attrs[name])
        assert after["x"].attrs["fields"][0].tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"nbytes": 8, "members": [["a", 6, "<i4"]]}, {"a": 1}),
        ({"nbytes": 1 << 40, "members": []}, {}),
        ({"nbytes": 4, "members": [["a", 0, "<i4"]]}, {"b": 1}),
        ({"nbytes": 4, "members": [["a", 0]]}, {"a": 1}),
        ({"of": "<i4", "shape": [1 << 40]}, [1]),
        ({"of": "<i4", "shape": [2]}, [1]),
        ({"bits": "<i4"}, 1),
        ({"nbytes": 3, "tag": ""}, "no base64"),
        ({"of": {"of": "<i4"}}, [1]),
    ],
)
def test_u54_descriptions_that_do_not_fit_are_ignored(kind: Any, value: Any, tmp_path: Path) -> None:
    types = {"_nczarr_attr": {"types": {}, "forms": {"a": [json.dumps(kind), []]}}}
    zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2, attributes={"a": value, **types})
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", {"*": "deflate"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert "a" in file.attrs


def test_u54_big_endian_lists_are_read_as_netcdf_c_reads_them(tmp_path: Path) -> None:
    """h5py forgets their byte order."""
    pair = np.dtype([("n", ">i4"), ("list", h5py.vlen_dtype(np.dtype(">f4")))])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for kind in (">i4", ">f8", "<i4"):
            file.create_dataset(kind, data=NUMBERS, dtype=h5py.vlen_dtype(np.dtype(kind)))
            file.attrs.create(kind, NUMBERS, dtype=h5py.vlen_dtype(np.dtype(kind)))
        file.create_dataset("records", (1,), pair)[0] = (1, np.array([1, 2], ">f4"))
    with netCDF4.Dataset(tmp_path / "a.h5") as known:
        expected = [item.tolist() for item in known[">i4"][...]]
    with tamis.open(tmp_path / "a.h5") as file, xarray.open_dataset(tmp_path / "a.h5", engine="tamis") as dataset:
        for kind in (">i4", ">f8", "<i4"):
            own = file[kind][()], file[kind][0:4], file.attrs[kind]
            for values in (*own, dataset[kind].values, dataset.attrs[kind]):
                assert [item.tolist() for item in values] == expected
            assert file[kind][0].tolist() == expected[0]
        assert file["records"][0]["list"].tolist() == file["records"]["list"][0].tolist() == [1, 2]


def test_u54_verify_sees_other_lists(tmp_path: Path) -> None:
    for path, last in ((tmp_path / "a.h5", 3), (tmp_path / "b.h5", 4)):
        with h5py.File(path, "w") as file:
            kind = h5py.vlen_dtype(np.dtype("i4"))
            file.create_dataset("x", data=1.0).attrs.create("m", lists(np.array([1]), np.array([last])), dtype=kind)
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "a.zarr")
    assert "attribute 'm'" in said_by_tamis("verify", tmp_path / "b.h5", tmp_path / "a.zarr", code=3)


@pytest.mark.parametrize("form", FORMS)
def test_u54_attributes_come_back_as_they_were(form: str, tmp_path: Path) -> None:
    source, store, copy, back = (tmp_path / name for name in ("a.h5", "a.zarr", "b.zarr", "b.h5"))
    with h5py.File(source, "w") as file:
        owners = [
            file,
            file.create_dataset("x", data=np.arange(4)),
            file.create_dataset("words", data=["a", "b"], dtype=STRINGS),
            file.create_group("g"),
            file.create_dataset("g/x", data=np.arange(4), chunks=(2,), compression="gzip"),
        ]
        for owner in owners:
            for name, value in VALUES.items():
                owner.attrs[name] = value
            owner.attrs.create("ascii", "K", dtype=ASCII)
    said_by_tamis("repack", source, store, "--no-history", *FORMS[form])
    said_by_tamis("verify", source, store)
    said_by_tamis("repack", store, copy, "--no-history", *FORMS[form])
    said_by_tamis("repack", copy, back, "--no-history")
    said_by_tamis("verify", store, back)
    with h5py.File(source) as before, h5py.File(back) as after:
        for path in ("/", "x", "words", "g", "g/x"):
            for name in before[path].attrs:
                assert facts(after[path], name) == facts(before[path], name), (path, name)
                kinds = [file[path].attrs.get_id(name).get_type() for file in (before, after)]
                assert kinds[0].equal(kinds[1]), (path, name)
    said_by_tamis("verify", source, back)


@pytest.mark.parametrize("change", [np.arange(1, 5).reshape(2, 2), np.arange(4), np.arange(4.0).reshape(2, 2) + 0.5])
def test_u54_verify_sees_another_table(change: Any, tmp_path: Path) -> None:
    source, store, other = tmp_path / "a.h5", tmp_path / "a.zarr", tmp_path / "b.h5"
    for path, value in ((source, np.arange(4).reshape(2, 2)), (other, change)):
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(4)
            file["x"].attrs["m"] = value
    said_by_tamis("repack", source, store)
    assert "attribute 'm'" in said_by_tamis("verify", other, store, code=3)


def test_u54_neighbours_beyond_2_53_differ(tmp_path: Path) -> None:
    source, store = tmp_path / "a.h5", tmp_path / "a.zarr"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(4)
        file["x"].attrs["n"] = (1 << 53) + 1
    said_by_tamis("repack", source, store)
    with h5py.File(source, "a") as file:
        file["x"].attrs["n"] = float(1 << 53)
    assert "attribute 'n'" in said_by_tamis("verify", source, store, code=3)


@pytest.mark.usefixtures("netcdf4_plugins")
def test_u54_netcdf_c_reads_the_types_of_numbers(tmp_path: Path) -> None:
    values = {"number": np.float32(2), "big": np.array([1, 2], ">i2"), "byte": np.array(3, "u1")}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(4)
        file["x"].attrs.update({**values, "table": np.eye(2)})
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "a.zarr", "--zarr-format", 2)
    with netCDF4.Dataset(f"{(tmp_path / 'a.zarr').as_uri()}#mode=zarr,file") as dataset:
        for name, value in values.items():
            known = np.asarray(dataset["x"].getncattr(name))
            assert known.dtype == value.dtype.newbyteorder("=")
            assert known.tolist() == value.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_u54_several_fill_values_come_back(form: str, tmp_path: Path) -> None:
    """Zarr 3 has the first one as the attribute that xarray reads, and all of them in the types."""
    source, store, back = tmp_path / "a.h5", tmp_path / "a.zarr", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        for kind, fills in FILLS.items():
            file.create_dataset(kind, data=np.arange(3).astype(kind)).attrs["_FillValue"] = np.array(fills, kind)
    said_by_tamis("repack", source, store, *FORMS[form])
    said_by_tamis("verify", source, store)
    with xarray.open_zarr(store, mask_and_scale=False) as dataset:
        for kind, fills in FILLS.items():
            expected = np.array(fills[: 1 if form == "3" else None], kind).tolist()
            assert repr(np.atleast_1d(dataset[kind].attrs["_FillValue"]).tolist()) == repr(expected)
    said_by_tamis("repack", store, back)
    said_by_tamis("verify", store, back)
    with h5py.File(source) as before, h5py.File(back) as after:
        for kind in FILLS:
            assert facts(after[kind], "_FillValue") == facts(before[kind], "_FillValue")


def test_u54_changed_fill_value_counts_more_than_the_types(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(3)).attrs["_FillValue"] = np.array([-1, -2])
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "a.zarr", "--no-consolidated")
    zarr.open_group(tmp_path / "a.zarr", mode="r+")["x"].attrs["_FillValue"] = 7
    with tamis.open(tmp_path / "a.zarr") as file:
        assert file["x"].attrs["_FillValue"] == 7


@pytest.mark.parametrize("labels", [["nuclei"], []])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u54_list_of_one_text_or_none_stays_a_list(zarr_format: Any, labels: list[str], tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format, attributes={"labels": labels})
    group.create_array("x", data=np.arange(3))
    said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / "b.h5")
    said_by_tamis("verify", tmp_path / "a.zarr", tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file.attrs["labels"].tolist() == labels
    with netCDF4.Dataset(tmp_path / "b.h5") as dataset:
        assert "labels" in dataset.ncattrs()
    said_by_tamis("repack", tmp_path / "b.h5", tmp_path / "c.zarr")
    said_by_tamis("verify", tmp_path / "b.h5", tmp_path / "c.zarr")


@pytest.mark.parametrize(("end", "two"), [(h5t.STR_NULLTERM, "one"), (h5t.STR_NULLPAD, "one\0two")])
def test_u58_text_that_other_bytes_follow_ends_where_it_ends(end: int, two: str, tmp_path: Path) -> None:
    """HDF-EOS and CGNS store what was in memory after the end; what is text there is kept, unless a zero ends it."""
    kind = h5t.C_S1.copy()
    kind.set_size(16)
    kind.set_strpad(end)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
        for name, text in (("version", b"5.1.10\0\xe8\xff\x01"), ("two", b"one\0two")):
            create(file["x"], name, kind, np.array(text, "S16"), ())
            create(file, name, kind, np.array([text, b"two"], "S16"), (2,))
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "a.zarr")
    said_by_tamis("verify", tmp_path / "a.h5", tmp_path / "a.zarr")
    known = {"version": "5.1.10", "two": two}
    assert dict(zarr.open_group(tmp_path / "a.zarr", mode="r")["x"].attrs) == known
    with xarray.open_dataset(tmp_path / "a.h5", engine="tamis") as dataset:
        assert dataset["x"].attrs == known
        assert dataset.attrs == {name: [text, "two"] for name, text in known.items()}
    with xarray.open_dataset(tmp_path / "a.h5", engine="h5netcdf", phony_dims="sort") as dataset:
        assert dataset["x"].attrs["two"] == two


@pytest.mark.parametrize("form", FORMS)
def test_u54_names_that_zarr_keeps_for_itself_come_back(form: str, tmp_path: Path) -> None:
    """Such attributes are in files that other programs made of Zarr stores; repack lost them, and said verified."""
    source, store, copy, back = (tmp_path / name for name in ("a.h5", "a.zarr", "b.zarr", "b.h5"))
    values = {"_ARRAY_DIMENSIONS": ["a", "b"], "_nczarr_own": "text", "_NCZARR_N": np.array([1.5, 2])}
    with h5py.File(source, "w") as file:
        for owner in (file.create_dataset("x", data=np.eye(2)), file.create_group("g"), file):
            owner.attrs.update(values)
    for first, second in ((source, store), (store, copy), (copy, back)):
        said_by_tamis("repack", first, second, *(FORMS[form] if second != back else ()))
        said_by_tamis("verify", source, second)
    with h5py.File(source) as before, h5py.File(back) as after:
        for path in ("/", "g", "x"):
            assert all(facts(after[path], name) == facts(before[path], name) for name in values)
    assert xarray.open_zarr(store)["x"].dims == ("phony_dim_0", "phony_dim_1")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_of_axes_are_hidden_only_where_they_name_axes(zarr_format: Any, tmp_path: Path) -> None:
    """In groups, and in arrays of Zarr 3, it is an attribute like any other, as for xarray."""
    listed = {"_ARRAY_DIMENSIONS": ["y", "x"]}
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format, attributes=listed)
    names = {"dimension_names": ("y", "x")} if zarr_format == 3 else {}
    group.create_array("a", data=np.eye(2), attributes=listed, **names)
    expected = xarray.open_dataset(tmp_path / "a.zarr", engine="zarr", consolidated=False)
    with xarray.open_dataset(tmp_path / "a.zarr", engine="tamis") as own, tamis.open(tmp_path / "a.zarr") as file:
        for known, attributes in ((own, file.attrs), (own["a"], file["a"].attrs)):
            other = expected if known is own else expected["a"]
            assert known.attrs == other.attrs
            assert attributes.get("_ARRAY_DIMENSIONS") == other.attrs.get("_ARRAY_DIMENSIONS")
        assert own["a"].dims == expected["a"].dims
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {}, zarr_format=zarr_format)
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "b.zarr").ok
    assert xarray.open_dataset(tmp_path / "b.zarr", engine="zarr")["a"].attrs == expected["a"].attrs
