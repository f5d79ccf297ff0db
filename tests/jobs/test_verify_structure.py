"""Two files compared: attributes, links, references, and values that are no numbers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

PAIR = h5py.h5t.array_create(h5py.h5t.STD_I32LE, (2,))
RECORD = np.dtype([("a", "i4"), ("b", "f8", (2,)), ("s", "S3")])


def fill(file: h5py.File) -> None:
    """One of everything that is not an array of numbers."""
    file.attrs.update({"title": "hello", "numbers": np.arange(5, dtype=">i4"), "names": ["a", "bc"], "flag": True})
    file.attrs.update({"none": h5py.Empty("f4"), "fixed": np.bytes_("abc"), "half": np.float16(0.5)})
    file.attrs["record"] = np.zeros(2, RECORD)
    file["strings"] = ["x", "yy", "zzz"]
    file["fixed"] = np.array([b"ab", b"cd"], "S5")
    file.create_dataset("records", data=np.zeros(10, RECORD), chunks=(4,), compression=1)
    file["flags"] = np.array([True, False])
    file["complex"] = np.array([1 + 2j])
    file.create_dataset("enum", data=np.array([0, 1], "i1"), dtype=h5py.enum_dtype({"A": 0, "B": 1}, "i1"))
    sequences = file.create_dataset("sequences", (3,), dtype=h5py.vlen_dtype("i4"))
    sequences[0], sequences[2] = [1, 2], [5]
    group = file.create_group("group")
    group["d"] = np.arange(6.0).reshape(2, 3)
    group.attrs["reference"] = group["d"].ref
    file.create_dataset("references", data=[group["d"].ref, group.ref, h5py.Reference()], dtype=h5py.ref_dtype)
    regions = file.create_dataset("regions", (1,), dtype=h5py.regionref_dtype)
    regions[0] = group["d"].regionref[0:1, 1:]
    file["soft"], file["external"] = h5py.SoftLink("/group/d"), h5py.ExternalLink("x.h5", "/a")
    file["hard"] = group["d"]
    file["type"] = np.dtype([("q", "i2")])
    file["type"].attrs["k"] = 1
    file["null"], file["text"] = h5py.Empty("f8"), "hello"
    file["x"], file["y"] = np.arange(4.0), np.arange(8.0).reshape(2, 4)
    file["x"].make_scale("x")
    file["y"].dims[1].attach_scale(file["x"])
    space = h5py.h5s.create_simple((3,))
    h5py.h5d.create(file.id, b"bits", h5py.h5t.STD_B8LE, space)
    h5py.h5d.create(file.id, b"time", h5py.h5t.UNIX_D32LE, space)
    h5py.h5d.create(file.id, b"pairs", PAIR, space)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verify") / "a.h5"
    with h5py.File(path, "w") as file:
        fill(file)
    return path


def replace(file: h5py.File, name: str, value: Any) -> None:
    del file[name]
    file[name] = value


def set_record(file: h5py.File) -> None:
    records = file["records"][()]
    records["b"][7, 1] = np.nan
    file["records"][...] = records


def set_sequence(file: h5py.File) -> None:
    file["sequences"][0] = [1, 3]


def set_pair(file: h5py.File) -> None:
    values = np.array([[0, 0], [0, 0], [0, 9]], "i4")
    file["pairs"].id.write(h5py.h5s.ALL, h5py.h5s.ALL, values, PAIR)


def write(name: str, at: Any, value: Any) -> Callable[[h5py.File], None]:
    return lambda file: file[name].__setitem__(at, value)


def test_verify_everything_is_like_itself_and_like_its_copies(everything: Path, tmp_path: Path) -> None:
    shutil.copy(everything, tmp_path / "copy.h5")
    tamis.repack(everything, tmp_path / "repacked.h5", {"y": "deflate(1)"})
    for target in (everything, tmp_path / "copy.h5", tmp_path / "repacked.h5"):
        found = tamis.verify(everything, target, bounds={"*": 0})
        assert found.ok, str(found)
        assert not found.notes
        assert all(each.equal for each in found.datasets)


CHANGES: list[tuple[str, Callable[[h5py.File], Any], str, str, str]] = [
    ("string", write("strings", 1, "YY"), "/strings", "values", "1 of 3 differ: at [1] 'yy' became 'YY'"),
    ("fixed", write("fixed", 0, b"aX"), "/fixed", "values", "at [0] 'ab' became 'aX'"),
    (
        "record",
        set_record,
        "/records",
        "values",
        "1 of 10 differ: at [7] (0, [0.0, 0.0], '') became (0, [0.0, nan], '')",
    ),
    ("flag", write("flags", 1, True), "/flags", "values", "at [1] False became True"),
    ("complex", write("complex", 0, 1 - 2j), "/complex", "values", "at [0] (1+2j) became (1-2j)"),
    ("enum", write("enum", 1, 0), "/enum", "values", "at [1] 1 became 0"),
    ("sequence", set_sequence, "/sequences", "values", "at [0] [1, 2] became [1, 3]"),
    ("pair", set_pair, "/pairs", "values", "1 of 3 differ: at [2]"),
    ("scalar", write("text", (), "bye"), "/text", "values", "at [] 'hello' became 'bye'"),
    (
        "reference",
        lambda file: file["references"].__setitem__(1, file["group/d"].ref),
        "/references",
        "values",
        "at [1] /group became /group/d",
    ),
    (
        "region",
        lambda file: file["regions"].__setitem__(0, file["group/d"].regionref[0:2, 1:]),
        "/regions",
        "values",
        "/group/d, values (0, 1) to (0, 2) became /group/d, values (0, 1) to (1, 2)",
    ),
    ("shape", lambda file: replace(file, "x", [1.0]), "/x", "shape", "shape (4,) became (1,)"),
    (
        "type",
        lambda file: replace(file, "flags", [1, 2]),
        "/flags",
        "type",
        "enum of int8 {FALSE=0, TRUE=1} became int",
    ),
    ("lost", lambda file: file.__delitem__("fixed"), "/fixed", "missing-dataset", "no such dataset in the target"),
    ("group", lambda file: replace(file, "fixed", file["group"]), "/fixed", "missing-dataset", "no such dataset"),
    ("text", lambda file: file.attrs.modify("title", "hallo"), "/", "attribute", "'title': 'hello' became 'hallo'"),
    (
        "longer",
        lambda file: file.attrs.__setitem__("fixed", np.bytes_("abcd")),
        "/",
        "attribute",
        "attribute 'fixed': 'abc' became 'abcd'",
    ),
    (
        "string type",
        lambda file: file.attrs.__setitem__("fixed", "abc"),
        "/",
        "attribute",
        "string of 3 bytes, ASCII, null-padded of shape () became string, UTF-8 of shape ()",
    ),
    (
        "names",
        lambda file: file.attrs.__setitem__("names", ["a", "bd"]),
        "/",
        "attribute",
        "['a', 'bc'] became ['a', 'bd']",
    ),
    (
        "numbers",
        lambda file: file.attrs.__setitem__("numbers", np.arange(4, dtype=">i4")),
        "/",
        "attribute",
        "[0, 1, 2, 3, 4] became [0, 1, 2, 3]",
    ),
    (
        "null",
        lambda file: file.attrs.__setitem__("none", 1.5),
        "/",
        "attribute",
        "float32 of shape None became float",
    ),
    ("no attribute", lambda file: file.attrs.__delitem__("flag"), "/", "attribute", "attribute 'flag' is lost"),
    (
        "attribute reference",
        lambda file: file["group"].attrs.__setitem__("reference", file["x"].ref),
        "/group",
        "attribute",
        "/group/d became /x",
    ),
    (
        "scale",
        lambda file: file["y"].dims[1].detach_scale(file["x"]),
        "/y",
        "attribute",
        "attribute 'DIMENSION_LIST' is lost",
    ),
    (
        "another scale",
        lambda file: file["y"].dims[0].attach_scale(file["x"]),
        "/y",
        "attribute",
        "attribute 'DIMENSION_LIST': [[], [/x]] became [[/x], [/x]]",
    ),
    (
        "soft link",
        lambda file: replace(file, "soft", h5py.SoftLink("/group/e")),
        "/soft",
        "link",
        "soft link to /group/d became soft link to /group/e",
    ),
    ("external", lambda file: file.__delitem__("external"), "/external", "link", "external link to x.h5 /a is lost"),
    (
        "hard link",
        lambda file: replace(file, "hard", file["x"]),
        "/hard",
        "link",
        "hard link to /group/d became hard link to /x",
    ),
    (
        "named type",
        lambda file: replace(file, "type", np.dtype([("q", "i4")])),
        "/type",
        "link",
        "named type compound {q: int16} became named type compound {q: int32}",
    ),
    (
        "attribute of a named type",
        lambda file: file["type"].attrs.__setitem__("k", 2),
        "/type",
        "link",
        "attribute 'k': 1 became 2",
    ),
]


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("change", "path", "code", "text"), [each[1:] for each in CHANGES], ids=[each[0] for each in CHANGES]
)
def test_verify_change_is_a_violation_with_its_place(
    change: Callable[[h5py.File], Any], path: str, code: str, text: str, everything: Path, tmp_path: Path
) -> None:
    target = tmp_path / "b.h5"
    shutil.copy(everything, target)
    with h5py.File(target, "r+") as file:
        change(file)
    found = tamis.verify(everything, target)
    assert not found.problems
    assert any((each.path, each.code) == (path, code) and text in each.text for each in found.violations), str(found)
    assert {each.path for each in found.violations} <= {path, "/x", "/y"}, "nothing else but scales and what has them"


def test_verify_what_only_the_target_has_is_noted(everything: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    shutil.copy(everything, target)
    with h5py.File(target, "r+") as file:
        file["a new one"] = 1
        file["group/inner/deep"] = 1
        file.attrs["new"] = 1
        file["link"] = h5py.SoftLink("/x")
        file["another name"] = file["x"]  # sorts before the name that the source has
    found = tamis.verify(everything, target)
    assert found.ok
    assert {(each.path, each.code) for each in found.notes} == {
        ("/a new one", "new-dataset"),
        ("/group/inner/deep", "new-dataset"),
        ("/group/inner", "new-group"),
        ("/", "attribute"),
        ("/link", "link"),
        ("/another name", "link"),
    }


def test_verify_lost_group_is_named_with_what_was_in_it(everything: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    shutil.copy(everything, target)
    with h5py.File(target, "r+") as file:
        del file["group"], file["hard"]
    found = tamis.verify(everything, target, variables=())
    assert {("/group", "missing-group"), ("/group/d", "missing-dataset")} <= {
        (each.path, each.code) for each in found.violations
    }


def test_verify_byte_order_of_attributes_makes_no_difference(everything: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    shutil.copy(everything, target)
    with h5py.File(target, "r+") as file:
        file.attrs["numbers"] = np.arange(5, dtype="<i4")
        file.attrs["record"] = np.zeros(2, RECORD.newbyteorder(">"))
    assert tamis.verify(everything, target).ok


def test_verify_what_netcdf_notes_for_itself_is_no_violation(tmp_path: Path) -> None:
    for name, number in (("a.nc", 1), ("b.nc", 2)):
        with h5py.File(tmp_path / name, "w") as file:
            file.attrs["_NCProperties"] = f"version={number}"
            file["x"] = np.arange(3)
            file["x"].attrs["_Netcdf4Dimid"] = number
    found = tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc")
    assert found.ok
    assert {each.path for each in found.notes} == {"/", "/x"}


def test_verify_long_strings_and_odd_names_stay_on_their_line(tmp_path: Path) -> None:
    for name, letter in (("a.h5", "x"), ("b.h5", "y")):
        with h5py.File(tmp_path / name, "w") as file:
            file["a\nb"] = [letter * 500]
    (violation,) = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").violations
    assert len(violation.text) < 200
    said = str(tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5"))
    assert "violation: /a\\nb: 1 of 1 differ" in said


def test_verify_growing_dataset_that_grows_no_more_is_noted(tmp_path: Path) -> None:
    for name, most in (("a.h5", None), ("b.h5", 9)):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("x", data=np.arange(9.0), maxshape=(most,), chunks=(3,))
    found = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds={"x": 0})
    assert found.ok
    assert [(each.code, each.text) for each in found.notes] == [("maxshape", "the largest shape (None,) became (9,)")]


def test_verify_large_table_in_chunks_of_other_shapes(tmp_path: Path) -> None:
    table = np.zeros(200_000, RECORD)
    table["a"] = np.arange(len(table))
    changed = table.copy()
    changed["s"][[123_456, 199_999]] = b"abc"
    for name, values, chunk in (("a.h5", table, 1000), ("b.h5", table, 777), ("c.h5", changed, 777)):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("t", data=values, chunks=(chunk,), compression=1)
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").ok
    (violation,) = tamis.verify(tmp_path / "a.h5", tmp_path / "c.h5").violations
    assert "2 of 200000 differ: at [123456]" in violation.text


def test_verify_names_that_are_no_utf8_are_found_in_both(tmp_path: Path) -> None:
    for name, value in (("a.h5", 1.0), ("b.h5", 2.0)):
        with h5py.File(tmp_path / name, "w") as file:
            file[b"x\x80"] = value
            file.create_group(b"\xff").attrs["k"] = value
    found = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds={"*": 0.5})
    assert [(each.path, each.code) for each in found.violations] == [("/x\udc80", "bound"), ("/\udcff", "attribute")]
    assert "violation: /x\\udc80: expected an error" in str(found)
    assert found.to_json().isascii()


def test_verify_link_to_another_file_is_no_dataset_of_this_one(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = 1.0
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = h5py.ExternalLink("a.h5", "/x")
    found = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5")
    assert {each.code for each in found.violations} == {"missing-dataset", "link"}


def test_verify_attribute_that_cannot_be_read_is_a_problem_and_values_are_compared(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = [1.0, 2.0]
            file["x"].attrs["names"] = ["a long text in a heap", "b"]
    damaged = (tmp_path / "b.h5").read_bytes().replace(b"GCOL", b"GC-L")
    (tmp_path / "b.h5").write_bytes(damaged)
    found = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds={"x": 0})
    assert not found.ok
    assert not found.violations
    assert "attribute 'names' cannot be read" in found.problems[0].text
    assert found["x"].equal
    assert not found["x"].problem


def test_verify_numbers_of_fewer_bits_are_another_type(tmp_path: Path) -> None:
    narrow = h5py.h5t.STD_I32LE.copy()
    narrow.set_precision(20)
    for name, kind in (("a.h5", narrow), ("b.h5", h5py.h5t.STD_I32LE)):
        with h5py.File(tmp_path / name, "w") as file:
            h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((3,)))
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "a.h5").ok
    (violation,) = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").violations
    assert violation.text == "int of 4 bytes, 20 bits from bit 0 on became int32"


def test_verify_null_and_empty_strings_are_alike(tmp_path: Path) -> None:
    for name, written in (("a.h5", False), ("b.h5", True)):
        with h5py.File(tmp_path / name, "w") as file:
            dataset = file.create_dataset("x", (2,), dtype=h5py.string_dtype())
            if written:
                dataset[...] = ""
    assert not tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").violations
