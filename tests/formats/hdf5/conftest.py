"""A file with everything in it that a copy can get wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5a, h5g, h5s, h5t

from tamis.formats.hdf5.lib import calls


def make_links(file: h5py.File) -> None:
    file["d"] = np.arange(60.0).reshape(5, 12)
    file["a_second_name"] = file["d"]
    group = file.create_group("g", track_order=True)
    for name in "zyx":
        group[name] = np.int32(ord(name))
    group["d_again"], group["root"], group["self"] = file["d"], file["/"], group
    file["soft"] = h5py.SoftLink("/g/x")
    file["dangling"] = h5py.SoftLink("/nowhere")
    file["external"] = h5py.ExternalLink("other.h5", "/a/b")
    file["größe"] = 1
    file["deep/er/est"] = 1
    for path in (b"g", b"d"):
        file["/"].id.set_comment(path, b"about " + path)


def make_types(file: h5py.File) -> None:
    for name in ("first", "second"):
        # Used before its link is due, and equal to the other one.
        file["types/" + name] = h5py.enum_dtype({"A": 0, "B": 1}, basetype="i1")
        kind = file["types/" + name]
        kind.attrs["name"] = name
        file.create_dataset("a_" + name, (9,), kind, chunks=(4,), compression="gzip")[...] = np.arange(9) % 2
    file["types/row"] = h5py.vlen_dtype("i4")
    file.create_dataset("rows", (3,), dtype=file["types/row"])[0] = [1, 2, 3]
    file["gone"] = np.dtype([("q", "i2")])
    file["gone"].attrs["still"] = "here"
    file.create_dataset("unlinked_type", (2,), dtype=file["gone"]).attrs.create("q", (3,), dtype=file["gone"])
    del file["gone"]


def make_attributes(file: h5py.File) -> None:
    attrs = file["d"].attrs
    attrs["bool"], attrs["fixed"], attrs["opaque"] = True, np.bytes_("abc"), np.void(b"\x01\x02")
    attrs["utf8"], attrs["many"], attrs["complex"] = "grün", ["a", "", "ccc"], 1 + 2j
    attrs.create("ascii", "x", dtype=h5py.string_dtype("ascii"))
    attrs.create("utf8_fixed", "grün".encode(), dtype=h5py.string_dtype("utf-8", 10))
    attrs["null"], attrs["null_string"] = h5py.Empty("f4"), h5py.Empty(h5py.string_dtype())
    attrs.create("big_endian", [1, 2], dtype=">i4")
    attrs.create("enum", 1, dtype=file["types/second"])
    attrs["compound"] = np.array([(1, "x")], [("i", "i4"), ("s", h5py.string_dtype())])
    attrs["array"], attrs["none"] = np.zeros(2, [("m", "f4", (2, 3))]), np.zeros(0, "i4")
    rows = np.empty(2, object)
    rows[:] = [np.arange(3, dtype="i4"), np.arange(1, dtype="i4")]
    attrs.create("rows", rows, dtype=h5py.vlen_dtype("i4"))
    two = h5s.create_simple((2,))
    h5a.create(file["d"].id, b"rows_of_rows", h5t.vlen_create(h5t.vlen_create(h5t.NATIVE_INT16)), two)
    h5a.create(file["d"].id, b"null_strings", h5t.py_create(h5py.string_dtype(), logical=True), two)
    ordered = file.create_dataset("ordered", data=1, track_order=True).attrs
    for i in range(12):  # more than eight: no longer stored in the object's header
        ordered[f"k{20 - i}"] = i


def make_references(file: h5py.File) -> None:
    data = file["d"]
    attrs = data.attrs
    attrs["to_group"], attrs["to_self"], attrs["to_root"] = file["g"].ref, data.ref, file.ref
    attrs["to_type"], attrs["to_nothing"] = file["types/first"].ref, h5py.Reference()
    attrs["region"] = data.regionref[1:3, ::4]
    attrs.create("references", [file["g"].ref, h5py.Reference(), file["rows"].ref], dtype=h5py.ref_dtype)
    several = file.create_dataset(
        "refs", (5,), h5py.ref_dtype, chunks=(2,), maxshape=(None,), compression="gzip", fillvalue=None
    )
    several[0], several[3] = data.ref, file["g/x"].ref
    file.create_dataset("regions", (2,), h5py.regionref_dtype)[0] = data.regionref[0, 0:5]
    file.create_dataset("ref", (), h5py.ref_dtype)[()] = several.ref
    pair = np.dtype([("r", h5py.ref_dtype), ("n", "i4"), ("s", h5py.string_dtype())])
    file.create_dataset("pairs", (2,), pair)[1] = (data.ref, 5, "hi")
    rows = file.create_dataset("ref_rows", (2,), h5py.vlen_dtype(h5py.ref_dtype))
    rows[0] = np.array([data.ref, file["g"].ref], dtype=h5py.ref_dtype)
    file["lat"] = np.arange(5.0)
    file["lat"].make_scale("lat")
    data.dims[0].attach_scale(file["lat"])


def make_storage(file: h5py.File) -> None:
    file.create_dataset("partial", (10, 10), "f4", chunks=(3, 3), fillvalue=-9, maxshape=(None, 20))[2, 2] = 5
    file.create_dataset("strings", (4,), h5py.string_dtype(), chunks=(2,), compression="gzip")[1] = "x"
    file.create_dataset("filled", (4,), h5py.string_dtype(), fillvalue="none")[1] = "x"
    file.create_dataset("null", data=h5py.Empty("i4"))
    layout = h5py.VirtualLayout((12,), "f8")
    layout[:] = h5py.VirtualSource(".", "d", (5, 12))[2]
    file.create_virtual_dataset("virtual", layout)


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a file with everything in it that a copy can get wrong."""
    path = tmp_path_factory.mktemp("odd") / "odd.h5"
    with h5py.File(path, "w", userblock_size=1024, track_order=True) as file:
        for make in (make_links, make_types, make_attributes, make_references, make_storage):
            make(file)
    with path.open("r+b") as raw:
        raw.write(b"#!user block")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        yield made


NAMES = [f"temperature at 2 m above ground, member {i % 10:02d}, time step {i:05d}" for i in range(200)]


@pytest.fixture(scope="session")
def names() -> list[str]:
    """Names of links, alike as those of time steps are."""
    return NAMES


@pytest.fixture(scope="session")
def fill() -> Callable[..., h5py.Group]:
    """Put links into a group; all of `names` where no count is given."""

    def call(group: h5py.Group, count: int = len(NAMES)) -> h5py.Group:
        for name in NAMES[:count]:
            group[name] = h5py.SoftLink("/somewhere")
        return group

    return call


@pytest.fixture(scope="session")
def links() -> Callable[[h5py.Group], dict[str, str]]:
    """Read the links of a group."""
    return lambda group: {name: group.get(name, getlink=True).path for name in group}


@pytest.fixture(scope="session")
def storage() -> Callable[[h5py.Group], int]:
    """Tell how a group holds its links."""
    return lambda group: calls.link_storage(h5g.open(group.id, b"/") if isinstance(group, h5py.File) else group.id)
