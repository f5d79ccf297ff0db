"""HDF5 files of every kind, drawn by hypothesis and written by h5py alone; and what h5py reads of any file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5o, h5r, h5s, h5t
from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "d", "x", "time", "lat", "é", "with space", "UPPER", "n.1"])
NUMBERS = [f"{order}{kind}" for order in "<>" for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8")]
NUMBERS += ["i1", "u1"]

Write = Callable[[h5py.File, str], None]


@dataclass
class Step:
    """A call that adds something to a file; `words` are for a failing example."""

    words: str
    write: Callable[[h5py.File], None]

    def __repr__(self) -> str:
        return self.words


@dataclass
class Drawn:
    """A file that `write` makes."""

    userblock: int
    track_order: bool
    libver: str
    steps: list[Step] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Make the file."""
        libver: Any = (self.libver, "latest")
        with h5py.File(path, "w", userblock_size=self.userblock, track_order=self.track_order, libver=libver) as file:
            for step in self.steps:
                step.write(file)


def numbers(draw: st.DrawFn, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Draw values of any bits."""
    count = int(np.prod(shape)) * dtype.itemsize
    seed = draw(st.integers(0, 1 << 16))
    if draw(st.booleans()):
        raw = np.random.default_rng(seed).integers(0, 256, count).astype("u1").tobytes()
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    return (np.arange(int(np.prod(shape))).reshape(shape) + seed % 7).astype(dtype)


TEXTS = st.sampled_from(["", "a", "ab c", "Größe", "x" * 20, "tail  ", "日本"])


def texts(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Draw texts."""
    known = [draw(TEXTS) for _ in range(3)]
    flat = np.empty(int(np.prod(shape)), object)
    flat[:] = [known[number % 3] for number in range(len(flat))]
    return flat.reshape(shape)


def fixed(draw: st.DrawFn, size: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Draw texts of a fixed length."""
    known = [draw(st.sampled_from([b"", b"a", b"ab", b"abcdefgh"]))[:size] for _ in range(2)]
    flat = np.array([known[number % 2] for number in range(int(np.prod(shape)))], f"S{size}")
    return flat.reshape(shape)


RECORD = np.dtype([("i", "<i4"), ("f", "<f8"), ("v", "<u2", (2,))])
GAPS = np.dtype({"names": ["i", "f"], "formats": ["<i2", ">f4"], "offsets": [0, 8], "itemsize": 16})
ENUM = h5py.enum_dtype({"LOW": 1, "TOP VALUE": 7, "NONE": 0}, "i2")


def typed(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[str, Any, Any]:
    """Draw a type that a file may have, and values of it: its words, type of h5py and values."""
    kind = draw(
        st.sampled_from(["number"] * 6 + ["complex", "bool", "enum", "fixed", "text", "opaque", "record", "gaps"])
    )
    if kind == "number":
        dtype = np.dtype(draw(st.sampled_from(NUMBERS)))
        return dtype.str, dtype, numbers(draw, dtype, shape)
    if kind == "complex":
        dtype = np.dtype(draw(st.sampled_from(["c8", "c16"])))
        return dtype.str, dtype, (np.arange(int(np.prod(shape))).reshape(shape) * (1 + 2j)).astype(dtype)
    if kind == "bool":
        return kind, np.dtype(bool), numbers(draw, np.dtype("u1"), shape) % 2 == 1
    if kind == "enum":
        flat = np.array([(0, 1, 7)[number % 3] for number in range(int(np.prod(shape)))], "i2")
        return kind, ENUM, flat.reshape(shape)
    if kind == "fixed":
        size = draw(st.sampled_from([1, 3, 8]))
        return f"S{size}", np.dtype(f"S{size}"), fixed(draw, size, shape)
    if kind == "text":
        return kind, h5py.string_dtype(), texts(draw, shape)
    if kind == "opaque":
        return kind, np.dtype("V5"), np.frombuffer(bytes(int(np.prod(shape)) * 5), "V5").reshape(shape)
    dtype = RECORD if kind == "record" else GAPS
    values = np.zeros(shape, dtype)
    values["i"] = 3
    return kind, dtype, values


@st.composite
def datasets(draw: st.DrawFn, path: str) -> Step:
    """Draw a dataset of any type, layout, filters and fill value, with some or all of its values."""
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.sampled_from([0, 1, 2, 3, 5, 8])) if draw(st.booleans()) else 4 for _ in range(rank))
    words, dtype, values = typed(draw, shape)
    keywords: dict[str, Any] = {}
    is_text = words == "text"
    plain = np.dtype(dtype).kind in "iuf" and words != "enum"
    if rank and draw(st.booleans()):
        chunks = tuple(draw(st.integers(1, max(extent, 1))) for extent in shape)
        keywords["chunks"] = chunks
        if draw(st.booleans()):
            keywords["maxshape"] = tuple(draw(st.sampled_from([None, extent, extent + 3])) for extent in shape)
        most = keywords.get("maxshape", shape)
        keywords["maxshape"] = tuple(None if end == 0 else end for end in most)  # a chunk has at least one value
        compression = draw(st.sampled_from([None, "gzip", "lzf"]))
        if compression and not is_text:
            keywords["compression"] = compression
        for name in ("shuffle", "fletcher32"):
            if not is_text and draw(st.booleans()):
                keywords[name] = True
        if plain and np.dtype(dtype).kind in "iu" and draw(st.integers(0, 5)) == 0:
            keywords["scaleoffset"] = 0
            keywords.pop("fletcher32", None)
    if plain and draw(st.booleans()):
        keywords["fillvalue"] = np.asarray(draw(st.sampled_from([0, 7, 1]))).astype(dtype)[()]
        keywords["fill_time"] = draw(st.sampled_from(["ifset", "alloc"]))
    rows = shape[0] if rank else 0
    written = draw(st.sampled_from(["all", "all", "none", "part"]))
    if rank == 0 or 0 in shape:
        written = "all"
    part = draw(st.integers(1, max(rows, 1)))

    def write(file: h5py.File) -> None:
        dataset = file.create_dataset(path, shape, dtype, **keywords)
        if written == "all" and (dataset.size or not rank):
            dataset[...] = values
        elif written == "part":
            dataset[:part] = values[:part]

    return Step(f"dataset {path} {words} {shape} {keywords} {written} {part}", write)


@st.composite
def attributes(draw: st.DrawFn, owner: str) -> Step:
    """Draw an attribute of any kind."""
    name = draw(st.sampled_from(["units", "long_name", "valid_range", "k", "é", "CLASS", "NAME", "title", "m n"]))
    shape = draw(st.sampled_from([(), (1,), (2,), (0,), (2, 2)]))
    kind = draw(st.sampled_from(["typed", "typed", "str", "bytes", "list", "null", "vlen", "reference", "region"]))
    if kind == "typed":
        words, dtype, values = typed(draw, shape)
        if words == "gaps":
            dtype, values = RECORD, np.zeros(shape, RECORD)
    elif kind in ("str", "bytes"):
        words, value = kind, draw(TEXTS)
        values, dtype = (value, None) if kind == "str" else (np.bytes_(value.encode()), None)
    elif kind == "list":
        words, values, dtype = kind, [draw(TEXTS) for _ in range(2)], h5py.string_dtype()
    elif kind == "vlen":
        words, values, dtype = kind, [np.arange(2), np.arange(3)], h5py.vlen_dtype("i4")
    else:
        words, values, dtype = kind, None, None

    def write(file: h5py.File) -> None:
        item = file[owner]
        if name in item.attrs:
            return
        if kind == "null":
            item.attrs[name] = h5py.Empty("f4")
        elif kind == "reference":
            item.attrs[name] = item.ref
        elif kind == "region":
            found = [known for known in file.values() if isinstance(known, h5py.Dataset) and known.shape]
            item.attrs[name] = found[0].regionref[...] if found else item.ref
        elif dtype is None:
            item.attrs[name] = values
        elif kind == "vlen":
            known = np.empty(2, object)
            known[:] = values
            item.attrs.create(name, known, dtype=dtype)
        else:
            item.attrs.create(name, values, dtype=dtype)

    return Step(f"attribute {owner} {name} {words} {shape} {values!r}", write)


@st.composite
def links(draw: st.DrawFn, paths: list[str], groups: list[str]) -> Step:
    """Draw a link: hard to any object, also around it, soft to one or to none, or to another file."""
    path = f"{draw(st.sampled_from(groups)).rstrip('/')}/link {draw(st.integers(0, 3))}"
    target = draw(st.sampled_from([*paths, *groups]))
    kind = draw(st.sampled_from(["hard", "soft", "external", "dangling"]))

    def write(file: h5py.File) -> None:
        if path in file:
            return
        if kind == "hard":
            file[path] = file[target]
        elif kind == "external":
            file[path] = h5py.ExternalLink("elsewhere.h5", target)
        elif path.rpartition("/")[2] not in {link.decode() for link in file[path.rpartition("/")[0] or "/"].id}:
            file[path] = h5py.SoftLink(target if kind == "soft" else "/nowhere/at all")

    return Step(f"{kind} link {path} to {target}", write)


@st.composite
def scales(draw: st.DrawFn, paths: list[str]) -> Step:
    """Draw a dimension scale and an axis that gets it."""
    scale, user, name = draw(st.sampled_from(paths)), draw(st.sampled_from(paths)), draw(st.sampled_from(["", "other"]))
    label = draw(st.sampled_from(["", "label"]))

    def write(file: h5py.File) -> None:
        first, second = file[scale], file[user]
        if (
            first.ndim != 1
            or not second.ndim
            or first == second
            or second.is_scale
            or first.attrs.get("CLASS") is not None
        ):
            return
        if "NAME" in first.attrs or any(len(axis) for axis in first.dims):
            return
        for axis, extent in enumerate(second.shape):
            if extent == first.shape[0]:
                first.make_scale(name or first.name.rpartition("/")[2])
                second.dims[axis].attach_scale(first)
                if label and "DIMENSION_LABELS" not in second.attrs:
                    second.dims[axis].label = label
                return

    return Step(f"scale {scale} of {user} {name!r} {label!r}", write)


@st.composite
def files(draw: st.DrawFn, *, others: bool = False) -> Drawn:
    """Draw a file; with `others`, also datasets that other formats lack: references, lists, null dataspaces."""
    groups = ["/"]
    for _ in range(draw(st.integers(0, 3))):
        groups.append(f"{draw(st.sampled_from(groups)).rstrip('/')}/{draw(NAMES)}_g")
    groups = list(dict.fromkeys(groups))
    drawn = Drawn(
        draw(st.sampled_from([0, 0, 0, 512])),
        draw(st.booleans()),
        draw(st.sampled_from(["earliest", "v108", "latest"])),
    )
    for group in groups[1:]:
        drawn.steps.append(Step(f"group {group}", lambda file, group=group: file.create_group(group)))
    paths: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        path = f"{draw(st.sampled_from(groups)).rstrip('/')}/{draw(NAMES)}"
        if path not in paths:
            paths.append(path)
            drawn.steps.append(draw(datasets(path)))
    for _ in range(draw(st.integers(0, 2))):
        drawn.steps.append(draw(scales(paths)))
    for _ in range(draw(st.integers(0, 5))):
        drawn.steps.append(draw(attributes(draw(st.sampled_from([*groups, *paths])))))
    for _ in range(draw(st.integers(0, 3))):
        drawn.steps.append(draw(links(paths, groups)))
    if others:
        for kind in draw(st.sets(st.sampled_from(["references", "lists", "null", "named", "bits"]), max_size=2)):
            drawn.steps.append(Step(kind, lambda file, kind=kind: _other(file, kind)))
    return drawn


def _other(file: h5py.File, kind: str) -> None:
    if kind == "references":
        values = np.array([file.ref, file.ref], h5py.ref_dtype)
        file.create_dataset("the references", data=values, dtype=h5py.ref_dtype)
    elif kind == "lists":
        lists = file.create_dataset("the lists", (2,), h5py.vlen_dtype("i4"))
        lists[0], lists[1] = [1, 2], [3]
    elif kind == "null":
        file["the null"] = h5py.Empty("f4")
    elif kind == "named":
        file["the type"] = np.dtype("f8")
        file.create_dataset("of the type", data=[1.5], dtype=file["the type"])
    else:
        space = h5s.create_simple((2,))
        h5d.create(file.id, b"the bits", h5t.STD_B8LE, space)


def content(path: Path) -> dict[str, Any]:
    """Return everything that h5py reads of a file: of each object under its first path, and all links."""
    with h5py.File(path) as file:
        known: dict[int, str] = {}
        found: dict[str, Any] = {"userblock": file.userblock_size}
        pending = [("/", file["/"])]
        while pending:
            name, item = pending.pop(0)
            address = h5o.get_info(item.id).addr
            if address in known:
                found[name] = ("link", known[address])
                continue
            known[address] = name
            found[name] = _object(item), {key: _attribute(item, key) for key in item.attrs}
            if not isinstance(item, h5py.Group):
                continue
            for key in sorted(item):
                inner = f"{name.rstrip('/')}/{key}"
                link = item.get(key, getlink=True)
                if isinstance(link, h5py.HardLink):
                    pending.append((inner, item[key]))
                else:
                    found[inner] = dict(vars(link).items())
        return found


def _object(item: Any) -> Any:
    if isinstance(item, h5py.Group):
        plist = item.id.get_create_plist() if not isinstance(item, h5py.File) else None
        return "group", None if plist is None else plist.get_link_creation_order()
    if isinstance(item, h5py.Datatype):
        return "type", item.id.encode()
    plist = item.id.get_create_plist()
    filters = [plist.get_filter(number)[:3] for number in range(plist.get_nfilters())]
    layout = plist.get_layout()
    chunks = plist.get_chunk() if layout == h5d.CHUNKED else None
    storage = (item.shape, item.maxshape, layout, chunks, filters, plist.get_fill_time(), plist.fill_value_defined())
    return "dataset", _type(item.id.get_type()), storage, _values(item)


def _type(kind: Any) -> Any:
    return kind.encode() if not kind.committed() else ("named", kind.encode())


def _values(item: h5py.Dataset) -> Any:
    if item.shape is None:
        return None
    try:
        values = item[()]
    except TypeError:  # such as H5T_TIME, which NumPy lacks
        return "unknown"
    if h5py.check_ref_dtype(item.dtype) is not None:
        return [_target(item.file, ref) for ref in np.ravel(values)]
    return plain(values)


def plain(value: Any) -> Any:
    """Return a value that compares by bits."""
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return array.shape, [item.tobytes() if isinstance(item, np.ndarray) else item for item in array.ravel()]
    if array.dtype.names:
        return array.shape, [plain(array[name]) for name in array.dtype.names]
    return array.shape, array.dtype.str, array.tobytes()


def _attribute(item: Any, name: str) -> Any:
    attribute = item.attrs.get_id(name)
    kind, value = attribute.get_type(), item.attrs[name]
    if isinstance(value, h5py.Empty):
        return kind.encode(), "empty"
    if kind.detect_class(h5t.REFERENCE):
        return "references", [_target(item.file, ref) for ref in _references(value)]
    return kind.encode(), attribute.shape, plain(value)


def _references(value: Any) -> Iterator[Any]:
    if isinstance(value, (h5r.Reference, h5r.RegionReference)):
        yield value
    elif isinstance(value, np.void):
        for name in value.dtype.names or ():
            yield from _references(value[name])
    elif isinstance(value, np.ndarray):
        for inner in value.ravel():
            yield from _references(inner)


def _target(file: h5py.File, ref: Any) -> Any:
    if not ref:
        return None
    address = h5o.get_info(h5r.dereference(ref, file.id)).addr
    return _path(file, address)


def _path(file: h5py.File, address: int) -> str:
    """Return the first path of an object, in the order in which `content` finds them."""
    pending, seen = [("/", file["/"])], set()
    while pending:
        name, item = pending.pop(0)
        own = h5o.get_info(item.id).addr
        if own == address:
            return name
        if own in seen or not isinstance(item, h5py.Group):
            continue
        seen.add(own)
        for key in sorted(item):
            if isinstance(item.get(key, getlink=True), h5py.HardLink):
                pending.append((f"{name.rstrip('/')}/{key}", item[key]))
    return "nowhere"
