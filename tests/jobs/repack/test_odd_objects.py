"""Known defects U40 and U52: one odd object keeps a whole file from being repacked, and dangling references."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5f, h5o, h5p, h5r, h5s, h5t
from inprocess import said_by_tamis

import tamis
from tamis.formats.hdf5.lib import calls

Run = Callable[..., str]
RECORD = np.dtype([("number", "<i4"), ("object", h5py.ref_dtype), ("text", h5py.string_dtype())])


def repacked(source: Path) -> tuple[Path, str]:
    target = source.with_name("target.h5")
    said = said_by_tamis("repack", source, target, "-f", "*:shuffle|deflate(4)", "--larger", "--min-size", 0)
    verified = said_by_tamis("verify", source, target)
    return target, said + verified


def object_fill(file: h5py.File, target: h5py.HLObject, kind: Any, offset: int) -> h5p.PropDCID:
    """Return creation properties with a reference in the fill value."""
    plist, raw = h5p.create(h5p.DATASET_CREATE), bytearray(kind.get_size())
    raw[offset : offset + 8] = int(h5py.h5o.get_info(target.id).addr).to_bytes(8, "little")
    calls.set_fill_bytes(plist, kind, bytes(raw))
    return plist


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source.h5"


def test_u40_fill_values_lead_to_the_copies(source: Path, tool: Run) -> None:
    with h5py.File(source, "w") as file:
        padding = file.create_dataset("padding", data=np.arange(500))  # so that addresses differ in the copy
        # As MATLAB writes cells: what the fill value refers to comes later in the file, and is stored anew.
        empty = file.create_dataset("refs/empty", data=np.arange(3000.0), chunks=(1000,), compression="gzip")
        file["refs/group"] = file.create_group("later")
        space = h5s.create_simple((2, 3))
        kind = h5t.STD_REF_OBJ
        for name, target in (("a", empty), ("b", file["refs/group"]), ("c", padding)):
            cells = h5py.Dataset(h5d.create(file.id, name.encode(), kind, space, object_fill(file, target, kind, 0)))
            cells.attrs["MATLAB_class"] = np.bytes_("cell")
        file["a"][0, 0] = padding.ref
        record = h5t.create(h5t.COMPOUND, 16)
        record.insert(b"number", 0, h5t.STD_I32LE)
        record.insert(b"object", 8, kind)
        h5d.create(file.id, b"0record", record, space, object_fill(file, empty, record, 8))
    target, said = repacked(source)
    assert "became null" not in said
    assert "fill value" not in said
    with h5py.File(target) as file:
        assert [file[file["a"][index]].name for index in ((0, 0), (0, 1))] == ["/padding", "/refs/empty"]
        assert file[file["b"][1, 2]] == file["later"] == file["refs/group"]
        assert file[file["c"][0, 0]].name == "/padding"
        assert file[file["0record"][1, 1]["object"]].name == "/refs/empty"
        assert file["refs/empty"].compression == "gzip"
        assert file["refs/empty"][2999] == 2999
        assert sorted(file) == ["0record", "a", "b", "c", "later", "padding", "refs"]
    tool("h5diff", source, target)


def test_u40_fill_values_in_a_circle_become_null_and_are_listed(source: Path) -> None:
    with h5py.File(source, "w") as file:
        other = file.create_dataset("other", data=1)
        kind, space = h5t.STD_REF_OBJ, h5s.create_simple((2,))
        own = h5d.create(file.id, b"own", kind, space, object_fill(file, other, kind, 0))
        address = [int(h5py.h5o.get_info(item).addr).to_bytes(8, "little") for item in (other.id, own)]
    content = source.read_bytes()
    old, new = ((8).to_bytes(4, "little") + each for each in address)  # size and value, which no checksum guards
    source.write_bytes(content.replace(old, new))
    with h5py.File(source) as file:
        assert file[file["own"][0]].name == "/own"
    target = source.with_name("target.h5")
    assert "/own (HDF5's fill value): 1 reference in a circle became null" in said_by_tamis(
        "repack", source, target, "-f", "*:deflate(4)"
    )
    with h5py.File(target) as file:
        assert not file["own"][0]


def test_u40_objects_without_a_link_are_copied_and_stay_without_one(source: Path) -> None:
    with h5py.File(source, "w") as file:
        variable = file.create_dataset("variable", data=np.arange(5.0))
        hidden = file.create_dataset("hidden", data=np.arange(7))
        hidden.attrs["of"] = variable.ref
        variable.attrs["references"] = np.array([hidden.ref, variable.ref], h5py.ref_dtype)
        group = file.create_group("group")
        group["inner"] = np.arange(3)
        file.attrs["group"] = group.ref
        for item in (hidden, group):
            calls.call("H5Oincr_refcount", item.id.id)
        del file["hidden"], file["group"]
    target, _ = repacked(source)
    with h5py.File(target) as file:
        assert list(file) == ["variable"]
        hidden = file[file["variable"].attrs["references"][0]]
        assert hidden[:].tolist() == list(range(7))
        assert file[hidden.attrs["of"]] == file["variable"]
        assert file[file["variable"].attrs["references"][1]] == file["variable"]
        assert file[file.attrs["group"]]["inner"][:].tolist() == [0, 1, 2]


def test_u40_region_references_in_sequences_and_records(source: Path, tool: Run) -> None:
    """h5py corrupts memory where it reads sequences of these, and in the form of 1.12 it knows none."""
    region, many = h5t.STD_REF_DSETREG, 300
    with h5py.File(source, "w") as file:
        data = file.create_dataset("z", data=np.arange(100.0).reshape(10, 10))
        sequences = h5t.vlen_create(region)
        attribute = h5py.h5a.create(file.id, b"regions", sequences, h5s.create_simple((2,)))
        references = [reference_bytes(data, (index % 10, 0), (1, 3)) for index in range(many)]
        write_sequences(attribute, [references, references[:1]])
    target, said = repacked(source)
    assert "identical" in said
    assert "problem" not in said
    tool("h5diff", source, target)
    with h5py.File(target, "r+") as file:
        file.move("z", "y")
    assert "attribute 'regions'" in said_by_tamis("verify", source, target, code=3)


def test_u52_references_of_hdf5_1_12_hide_no_other_attributes(source: Path) -> None:
    """h5py does not know their type, neither alone nor in sequences."""
    with h5py.File(source, "w", libver=("v112", "v112")) as file:
        for owner in (file, file.create_dataset("x", data=np.arange(3)), file.create_group("g")):
            owner.attrs["before"], owner.attrs["unit"] = 1, "K"
            new = ctypes.c_int64.in_dll(ctypes.CDLL(h5p.__file__), "H5T_STD_REF_g").value
            space = h5s.create_simple((2,))
            calls.call("H5Acreate2", owner.id.id, b"new", new, space.id, 0, 0)
    with tamis.open(source) as file:
        for owner in (file, file["x"], file["g"]):
            with pytest.warns(UserWarning, match="attribute 'new' is left out: Unknown reference type"):
                assert dict(owner.attrs) == {"before": 1, "unit": "K"}
    said_by_tamis("inspect", source, "--cdl")
    repacked(source)
    assert "attribute 'new' of references" in said_by_tamis("repack", source, source.with_name("target.zarr"))
    said_by_tamis("verify", source, source.with_name("target.zarr"))


def reference_bytes(dataset: h5py.Dataset, start: tuple[int, ...], count: tuple[int, ...]) -> bytes:
    """Return a region reference as it is in memory."""
    space = dataset.id.get_space()
    space.select_hyperslab(start, count)
    room = ctypes.create_string_buffer(12)
    calls.call("H5Rcreate", ctypes.addressof(room), dataset.id.id, b".", 1, space.id)
    return room.raw


def write_sequences(attribute: Any, sequences: list[list[bytes]]) -> None:
    kept = [ctypes.create_string_buffer(b"".join(each), 12 * len(each)) for each in sequences]
    content = np.array(
        [(len(each), ctypes.addressof(room)) for each, room in zip(sequences, kept, strict=True)], np.uint64
    )
    kind = attribute.get_type()
    calls.call("H5Awrite", attribute.id, kind.id, content.ctypes.data)


def test_u40_links_that_a_program_defined(source: Path, tool: Run) -> None:
    with h5py.File(source, "w") as file:
        file["data"] = np.arange(3)
    make = Path(__file__).with_name("user_link.py")
    done = subprocess.run([sys.executable, make, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    target, _ = repacked(source)
    assert "USERDEFINED_LINK" in tool("h5dump", target)
    with h5py.File(target) as file:
        assert file.id.links.get_info(b"own").type == 187


def test_u52_references_to_no_object_are_one_note_for_repack_and_verify(source: Path) -> None:
    with h5py.File(source, "w") as file:
        file["kept"], file["removed"] = np.arange(3), np.arange(3)
        references = [file["kept"].ref, file["removed"].ref]
        file.attrs["references"] = np.array(references, h5py.ref_dtype)
        file.create_dataset("in_values", data=np.array(references, h5py.ref_dtype))
        scale = file.create_dataset("x", data=np.arange(3.0))
        scale.make_scale("x")
        for name in ("kept", "removed"):
            file[name].dims[0].attach_scale(scale)
        record = file.create_dataset("record", (2,), RECORD)
        record[0] = (1, references[0], "a")
        record[1] = (2, references[1], "b")
        del file["removed"]
    target, said = repacked(source)
    assert "/ (attribute 'references'): 1 reference to no object became null" in said
    assert "/in_values: 1 reference to no object became null" in said
    assert "note: /x: attribute 'REFERENCE_LIST': references to objects that do not exist: 1 became null" in said
    assert "note: /in_values: 1 of 2 differ: at [1] an object that does not exist became nothing" in said
    with h5py.File(target, "r+") as file:
        assert file[file["in_values"][0]].name == "/kept"
        assert not file["in_values"][1]
        assert file["record"][1]["number"] == 2
        assert file["record"][1]["text"] == b"b"
        file["in_values"][0] = h5r.Reference()
    assert "violation: /in_values: 1 of 2 differ: at [0] /kept became nothing" in said_by_tamis(
        "verify", source, target, code=3
    )


def test_u40_named_types_of_attributes_and_many_links(source: Path, tool: Run) -> None:
    with h5py.File(source, "w", track_order=True) as file:
        file["type"] = np.dtype([("a", "<i4"), ("b", "S3")])
        file["type"].attrs["unit"] = "m"
        group = file.create_group("group", track_order=True)
        group.attrs.create("typed", np.zeros(2, file["type"].dtype), dtype=file["type"])
        group.attrs["large"] = np.arange(20000)  # in a heap
        for index in range(300):
            group[f"link{index}"] = file["type"] if index % 2 else group
        h5o.set_comment(group.id, b"a comment")
        file.create_dataset("nothing", dtype="f4", data=h5py.Empty("f4"))
        file.create_dataset("never", (0, 3), "f4", maxshape=(None, 3), chunks=(1, 3))
        file.create_dataset("small", (2,), "u1").attrs["x"] = h5py.Empty("S1")
    target, _ = repacked(source)
    tool("h5diff", source, target)
    with h5py.File(target) as file:
        assert list(file) == ["type", "group", "nothing", "never", "small"]
        assert file["group"].id.get_comment(b".") == b"a comment"
        assert file["group/link0/link1"] == file["type"]


def test_u40_references_in_raw_files_are_shared_and_listed(source: Path) -> None:
    with h5py.File(source, "w") as file:
        file.create_dataset("r", (2,), h5py.ref_dtype, external=str(source.with_name("raw")))[0] = file.ref
    target, said = repacked(source)
    assert "/r: 1 raw file with references that lead into the source, and is shared" in said
    with h5py.File(target) as file:
        assert file["r"].external[0][0] == str(source.with_name("raw"))


def test_u40_groups_that_hold_each_other_without_a_link(source: Path) -> None:
    with h5py.File(source, "w") as file:
        file["a/b/a"] = h5py.SoftLink("/")
        del file["a/b/a"]
        file["a/b/a"] = file["a"]
        file["a/values"] = np.arange(3)
        file.attrs["lost"] = file["a/b"].ref
        del file["a"]
    target, _ = repacked(source)
    with h5py.File(target) as file:
        assert len(file) == 0
        assert file[file.attrs["lost"]]["a/values"][:].tolist() == [0, 1, 2]
        assert file[file.attrs["lost"]]["a/b"] == file[file.attrs["lost"]]


def test_u40_files_whose_objects_share_parts_of_their_headers(source: Path, tool: Run) -> None:
    """HDF5 follows a dataspace or type of such a file into the heap of that file, from whatever file it is used in."""
    library = ctypes.CDLL(h5p.__file__)
    library.H5Pset_shared_mesg_nindexes.argtypes = (ctypes.c_int64, ctypes.c_uint)
    library.H5Pset_shared_mesg_index.argtypes = (ctypes.c_int64, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint)
    properties = h5p.create(h5p.FILE_CREATE)
    assert library.H5Pset_shared_mesg_nindexes(properties.id, 1) >= 0
    assert library.H5Pset_shared_mesg_index(properties.id, 0, 0x1F, 20) >= 0  # every kind of message
    with h5py.File(h5f.create(bytes(source), h5f.ACC_TRUNC, properties)) as file:
        for index in range(20):
            values = np.arange(1000.0).reshape(50, 20) + index
            dataset = file.create_dataset(f"v{index}", data=values, chunks=(10, 20), maxshape=(None, 20), fillvalue=7.0)
            dataset.attrs["a"] = "the same text of more than twenty bytes"
        file.create_dataset("texts", (4,), h5py.string_dtype(), fillvalue="fill", chunks=(2,), maxshape=(None,))
        group = file.create_group("group")
        for index in range(30):
            group.attrs[f"a{index}"] = np.arange(10.0)
        group.attrs["large"] = np.zeros(100_000)
    target, _ = repacked(source)
    with h5py.File(target) as file:
        assert [file[f"v{index}"][49, 19] for index in range(20)] == [999.0 + index for index in range(20)]
        assert file["v3"].maxshape == (None, 20)
        assert file["texts"][3] == b"fill"
        assert file["group"].attrs["large"].shape == (100_000,)
        assert file["group"].attrs["a7"][9] == 9
    assert "v19" in tool("h5ls", target)
