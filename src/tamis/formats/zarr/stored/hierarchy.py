"""The groups and arrays of a Zarr hierarchy, each by its own metadata: one odd array never closes the others."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from tamis.errors import FileError
from tamis.library_lock import waiting
from tamis.remote.address import Address

Json = dict[str, Any]

NAMES = {2: (".zarray", ".zattrs", ".zgroup"), 3: ("zarr.json",)}
"""Names of the metadata of a group or an array, by version of the format."""

_CONSOLIDATED = ".zmetadata"
"""Name of the metadata of all groups and arrays of a hierarchy of Zarr 2; those of Zarr 3 are in the root's."""


@dataclass(frozen=True, slots=True)
class Document:
    """The metadata of a group or an array."""

    path: str  # Path in the hierarchy, without a slash at the beginning; empty for the root
    zarr_format: int
    is_array: bool
    content: Any  # Of ``zarr.json``, ``.zarray`` or ``.zgroup``
    attributes: Any
    problem: str = ""  # Why nothing can be made of it; empty otherwise
    # The bytes of its files by name; none if it is known from consolidated metadata alone
    files: Mapping[str, bytes] = field(default_factory=dict)
    is_implicit: bool = False  # Whether it is a group without metadata of its own

    @property
    def is_odd(self) -> bool:
        """Whether it is an array with types or codecs that netCDF-C spells differently from zarr-python."""
        return self.is_array and in_usual_spelling(self.content, self.attributes) != self.content

    @property
    def file(self) -> str:
        """Name of its file, relative to the folder of the hierarchy."""
        name = ".zarray" if self.is_array else ".zgroup"
        if self.zarr_format == 3:
            name = "zarr.json"
        return f"{self.path}/{name}".lstrip("/")

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of an array; None if it is not known."""
        shape = self.content.get("shape") if isinstance(self.content, dict) else None
        if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
            return None
        return tuple(shape)


class Files(Protocol):
    """The files of a hierarchy, by path from its root."""

    def read(self, paths: Sequence[str]) -> list[bytes | None]:
        """Return the bytes of files; None for those that do not exist."""
        ...

    def folders(self, paths: Sequence[str]) -> list[list[str]]:
        """Return the names of the folders in each of several folders."""
        ...

    def has_folder(self, path: str) -> bool:
        """Return whether there is a folder; True if that is not known."""
        ...

    @property
    def tells_folders(self) -> bool:
        """Whether `folders` has no files among them, so that folders without metadata can be entered."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files of a local folder."""

    root: Path
    tells_folders: ClassVar[bool] = True

    def read(self, paths: Sequence[str]) -> list[bytes | None]:
        """See `Files.read`."""
        return [self._read(path) for path in paths]

    def _read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def folders(self, paths: Sequence[str]) -> list[list[str]]:
        """See `Files.folders`."""
        return [self._folders(path) for path in paths]

    def _folders(self, path: str) -> list[str]:
        with os.scandir(self.root / path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def has_folder(self, path: str) -> bool:
        """See `Files.has_folder`."""
        return (self.root / path).is_dir()


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """The files of a store of zarr-python, which are elsewhere; several are requested at once."""

    place: Any  # A ``StorePath``
    tells_folders: ClassVar[bool] = False

    def read(self, paths: Sequence[str]) -> list[bytes | None]:
        """See `Files.read`."""

        async def read(path: str) -> bytes | None:
            data = await (self.place / path).get()
            return None if data is None else data.to_bytes()

        return self._all(read, paths)

    def folders(self, paths: Sequence[str]) -> list[list[str]]:
        """See `Files.folders`; files are among them, because stores do not tell one from the other."""

        async def names(path: str) -> list[str]:
            listed = self.place.store.list_dir((self.place / path).path)
            return [name.rstrip("/") async for name in listed]

        return self._all(names, paths)

    def has_folder(self, path: str) -> bool:
        """See `Files.has_folder`."""
        return True

    def _all(self, ask: Any, paths: Sequence[str]) -> list[Any]:
        import zarr
        from zarr.core.sync import sync  # stores belong to its event loop

        async def ask_all() -> list[Any]:
            limit = asyncio.Semaphore(zarr.config.get("async.concurrency"))

            async def ask_one(path: str) -> Any:
                async with limit:
                    return await ask(path)

            return await asyncio.gather(*map(ask_one, paths))

        with waiting():
            answers: list[Any] = sync(ask_all())
        return answers


class Hierarchy(NamedTuple):
    """The metadata of a hierarchy."""

    documents: dict[str, Document]  # Those of all groups and arrays by path, in its order: the root's first
    consolidated: frozenset[str]  # Paths of the groups and arrays that also have consolidated ones


def hierarchy_of(files: Files, *, prefer_consolidated: bool) -> Hierarchy:
    """Return the metadata of all groups and arrays of a hierarchy.

    Consolidated metadata may be older than the others. They are used if they are preferred, because it takes one
    request to get them, and for groups and arrays that have no others.

    Raises
    ------
    ValueError
        If there are no metadata, or those of a group are damaged.
    """
    names = (*NAMES[3], *NAMES[2], _CONSOLIDATED)
    contents = dict(zip(names, files.read(names), strict=True))
    if b'"record_size"' in (contents[_CONSOLIDATED] or b""):
        raise ValueError(
            "these are references in Parquet, whose chunks tamis does not find: write them out as JSON with "
            "fsspec's ReferenceFileSystem(path).references"
        )
    root = _document("", contents)
    listed = _consolidated(root, contents[_CONSOLIDATED])
    root = root or listed.get("")
    if root is None:
        raise ValueError("expected the metadata of a group or an array, found none")
    if root.problem:
        raise ValueError(f"{root.file}: {root.problem}")
    found, consolidated = {"": root}, frozenset(listed)
    if root.is_array:
        return Hierarchy(found, frozenset())
    if prefer_consolidated and listed:
        return Hierarchy(dict(sorted((found | listed).items())), consolidated)
    found |= _below(files, root.zarr_format)
    for path, item in listed.items():
        known = found.get(path)
        has_no_other = files.has_folder(path) if known is None else known.is_implicit
        if has_no_other:
            found[path] = item
    return Hierarchy(dict(sorted(found.items())), consolidated)


def _below(files: Files, zarr_format: int) -> Iterator[tuple[str, Document]]:
    """Yield path and metadata of all groups and arrays in the root, level by level.

    A folder without metadata is a group if there are groups or arrays in it: programs need not write those of groups.
    """
    names = NAMES[zarr_format]
    groups = [""]
    bare: dict[str, Any] = {}  # attributes of folders without other metadata
    while groups:
        paths = [
            f"{group}/{name}".lstrip("/")
            for group, inner in zip(groups, files.folders(groups), strict=True)
            for name in sorted(inner)
            if name not in names and name != _CONSOLIDATED
        ]
        data = iter(files.read([f"{path}/{name}" for path in paths for name in names]))
        groups = []
        for path in paths:
            contents = {name: next(data) for name in names}
            document = _document(path, contents)
            if document is None and files.tells_folders:
                bare[path] = _parsed(contents.get(".zattrs") or b"{}")
                groups.append(path)
            if document is None:
                continue
            around = path.rpartition("/")[0]
            while around in bare:
                yield around, _implicit_group(around, zarr_format, bare.pop(around))
                around = around.rpartition("/")[0]
            yield path, document
            if not document.is_array:
                groups.append(path)


def extra_files(root: Path, arrays: Collection[str]) -> Iterator[str]:
    """Yield the files in a local hierarchy that are not of Zarr, by path from its root, such as those of old NCZarr.

    Beside the chunks of an array, whose folder is among `arrays`, these are only hidden ones: chunks have names of many
    kinds.
    """
    known = {*NAMES[2], *NAMES[3], _CONSOLIDATED}
    for folder, folders, files in os.walk(root):
        path = os.path.relpath(folder, root)
        is_array = path in arrays
        if is_array:
            folders.clear()
        folders.sort()
        names = sorted(name for name in files if name not in known and (name.startswith(".") or not is_array))
        yield from (os.path.normpath(os.path.join(path, name)) for name in names)


def _implicit_group(path: str, zarr_format: int, attributes: Any = None) -> Document:
    """Return the metadata of a group without any, except perhaps attributes."""
    content = {"zarr_format": zarr_format} | ({"node_type": "group"} if zarr_format == 3 else {})
    return Document(path, zarr_format, False, content, {} if attributes is None else attributes, is_implicit=True)


def _document(path: str, contents: Mapping[str, bytes | None]) -> Document | None:
    """Return the metadata at a path, by the files there; None if there are none."""
    if (data := contents.get("zarr.json")) is not None:
        return replace(_document_3(path, _parsed(data)), files={"zarr.json": data})
    name = ".zarray" if contents.get(".zarray") is not None else ".zgroup"
    if (data := contents.get(name)) is None:
        return None
    attributes = contents[".zattrs"]
    document = _document_2(path, name, _parsed(data), {} if attributes is None else _parsed(attributes))
    return replace(document, files={name: data} | ({} if attributes is None else {".zattrs": attributes}))


class _Damaged(str):
    """Why a text is not JSON."""


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        return _Damaged(f"it is not JSON: {error}")


def _document_3(path: str, content: Any) -> Document:
    kind = content.get("node_type") if isinstance(content, dict) else None
    own = Document(path, 3, kind != "group", content, content.get("attributes", {}) if kind else {})
    if isinstance(content, _Damaged):
        return replace(own, problem=content)
    if kind not in ("array", "group") or content.get("zarr_format") != 3:
        text = "expected an object with zarr_format 3 and node_type array or group"
        return replace(own, problem=f"{text}, found {content!r:.80}")
    return own


def _document_2(path: str, name: str, content: Any, attributes: Any) -> Document:
    own = Document(path, 2, name == ".zarray", content, attributes)
    if isinstance(content, _Damaged):
        return replace(own, problem=content)
    if not isinstance(content, dict) or content.get("zarr_format") != 2:
        return replace(own, problem=f"expected an object with zarr_format 2, found {content!r:.80}")
    return own


def _consolidated(root: Document | None, data: bytes | None) -> dict[str, Document]:
    """Return the consolidated metadata of a hierarchy by path; none if there are none, or they are damaged."""
    if root is not None and root.zarr_format == 3:
        content = root.content if isinstance(root.content, dict) else {}
        inner = content.get("consolidated_metadata")
        listed = inner.get("metadata") if isinstance(inner, dict) else None
        return {path: _document_3(path, item) for path, item in listed.items()} if isinstance(listed, dict) else {}
    known = None if data is None else _parsed(data)
    files = known.get("metadata") if isinstance(known, dict) else None
    found: dict[str, Document] = {}
    if not isinstance(files, dict):
        return found
    for key in files:
        path, _, name = key.rpartition("/")
        if name in (".zarray", ".zgroup"):
            found[path] = _document_2(path, name, files[key], files.get(f"{path}/.zattrs".lstrip("/"), {}))
    return found


_MOST_EDGES = 1 << 24
"""Limit of chunks along an axis, so that a few bytes of damaged metadata do not fill the memory."""


def opened(place: Any, document: Document, *, stock: bool = False) -> Any:
    """Return the array of zarr-python for a document; any error, ours or zarr-python's, is that of its metadata.

    Parameters
    ----------
    place
        The ``StorePath`` of the hierarchy.
    document
        The metadata of the array.
    stock
        Whether only zarr-python's own codecs are used, and the metadata as they are stored, unless zarr-python cannot
        read them: what it opens then owes nothing to tamis.
    """
    import zarr

    if document.problem:
        raise FileError(document.problem)
    if not isinstance(document.attributes, dict):
        raise FileError(f"expected the attributes to be an object, found {document.attributes!r:.80}")
    usual = in_usual_spelling(document.content, document.attributes)
    contents = [document.content] if stock and usual != document.content and not _is_of_netcdf(document) else []
    for content in (*contents, usual):
        metadata: Any = {**content, "attributes": document.attributes}
        if document.zarr_format == 3:
            metadata = _metadata_3(content, stock=stock)
        try:
            array = zarr.Array(zarr.AsyncArray(metadata=metadata, store_path=place / document.path))
        except Exception:  # zarr-python raises many kinds for a spelling that it does not know
            if content is usual:
                raise
            continue
        if content is usual or _is_understood(array, content):
            return array
    raise AssertionError("the last content is the usual one")


def _is_of_netcdf(document: Document) -> bool:
    """Return whether netCDF-C wrote an array, whose text zarr-python decodes as what it is not."""
    return has_mark_of_netcdf(document.content, document.attributes)


def _is_understood(array: Any, content: Json) -> bool:
    """Return whether zarr-python would write a fill value as it read it: it ignores what is not base64."""
    return bool(array.metadata.to_dict()["fill_value"] == content.get("fill_value"))


_ONE_BYTE = re.compile(r"[<>=]([biu]1|S\d+)")
"""Types of Zarr 2 with a byte order that they do not have, as netCDF-C writes them."""

_CHARACTER = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}}


_MARKS = ("_NCZARR_ARRAY", "_nczarr_array")
"""What netCDF-C writes into the metadata of an array, or, from 4.10 on, among its attributes."""


def has_mark_of_netcdf(content: Json, attributes: Any) -> bool:
    """Return whether netCDF-C's mark is in the metadata of an array or among its attributes."""
    return any(mark in place for place in (content, attributes) if isinstance(place, dict) for mark in _MARKS)


def in_usual_spelling(content: Any, attributes: Any = None) -> Any:
    """Return the metadata of an array in the spelling of zarr-python, if they are in that of netCDF-C or a draft.

    netCDF-C gives single bytes a byte order, and characters a fill value that is not in base64; until 4.9.0, it called
    characters of one byte ``<U1``, which have four. The draft of Zarr 3 had the codec ``endian``, now ``bytes``.

    Parameters
    ----------
    content
        The metadata.
    attributes
        The attributes of the array, in which Zarr 2 has a mark of netCDF-C.
    """
    if not isinstance(content, dict):
        return content
    if content.get("zarr_format") == 3:
        return _in_usual_spelling_3(content)
    dtype, fill = content.get("dtype"), content.get("fill_value")
    if not isinstance(dtype, str):
        return content
    is_of_netcdf = has_mark_of_netcdf(content, attributes)
    if dtype == "<U1" and has_mark_of_netcdf(content, None):  # 4.9.0 has it there
        dtype = "|S1"
    if _ONE_BYTE.fullmatch(dtype):
        dtype = f"|{dtype[1:]}"
    changed = {"dtype": dtype}
    nbytes = int(dtype[2:]) if dtype[:2] == "|S" and dtype[2:].isdecimal() else 0
    if isinstance(fill, str) and 0 < len(fill) <= nbytes and (is_of_netcdf or not _is_base64(fill)):
        changed["fill_value"] = _in_base64(fill, nbytes)
    if dtype[:2] in ("|i", "|u") and isinstance(fill, list) and len(fill) == 1:
        changed["fill_value"] = fill[0]
    return content | changed


def _in_usual_spelling_3(content: Json) -> Json:
    changed: Json = {}
    codecs = content.get("codecs")
    if isinstance(codecs, list) and any(map(_is_endian, codecs)):
        changed["codecs"] = [codec | {"name": "bytes"} if _is_endian(codec) else codec for codec in codecs]
    fill = content.get("fill_value")
    if content.get("data_type") == "char" and isinstance(fill, str) and len(fill) <= 1:
        changed |= {"data_type": _CHARACTER, "fill_value": _in_base64(fill, 1)}
    return content | changed


def _is_endian(codec: Any) -> bool:
    """Return whether a codec is ``bytes``, by its name in the draft."""
    return isinstance(codec, dict) and codec.get("name") == "endian"


def _is_base64(text: str) -> bool:
    """Return whether zarr-python decodes a text, all of it."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:  # also for letters that ASCII lacks
        return False
    return True


def _in_base64(text: str, nbytes: int) -> str:
    return base64.standard_b64encode(text.encode("latin-1", "replace").ljust(nbytes, b"\0")).decode()


def _metadata_3(content: Json, *, stock: bool) -> Any:
    from tamis.formats.zarr.value_codecs import with_own_codecs  # late: it imports zarr

    if transformers := content.get("storage_transformers"):
        raise FileError(f"it has storage transformers, which tamis does not know: {transformers!r:.200}")
    if not stock:
        content = {**content, "codecs": with_own_codecs(content.get("codecs"), content.get("data_type"))}
    grid = content.get("chunk_grid")
    if not isinstance(grid, dict) or grid.get("name") != "rectilinear":
        return content
    return _rectilinear(content, grid)


def _rectilinear(content: Json, grid: Json) -> Any:
    """Return the metadata of an array whose chunks have several shapes.

    zarr-python reads them from documents only where its user has switched that on for the whole process. So it gets a
    document with the first chunk's shape for all, and then the grid.
    """
    from zarr.core.metadata import v3

    if not hasattr(v3, "RectilinearChunkGridMetadata"):  # zarr 3.1
        raise ValueError("its chunks have several shapes (a rectilinear chunk grid)")
    shapes = grid["configuration"]["chunk_shapes"]
    for axis in shapes:
        runs = [item[1] for item in axis if isinstance(item, list)] if isinstance(axis, list) else []
        if sum(runs) > _MOST_EDGES:
            raise FileError(f"expected at most {_MOST_EDGES} chunks along an axis, found {sum(runs)}")
    own = v3.RectilinearChunkGridMetadata.from_dict(grid)
    first = [axis if isinstance(axis, int) else axis[0] for axis in own.chunk_shapes]
    regular: Any = {"name": "regular", "configuration": {"chunk_shape": first}}
    return replace(v3.ArrayV3Metadata.from_dict({**content, "chunk_grid": regular}), chunk_grid=own)


def has_own_codecs(document: Document) -> bool:
    """Return whether tamis reads an array with codecs of its own that zarr-python has, too, or will have."""
    from tamis.formats.zarr.value_codecs import with_own_codecs  # late: as above

    if document.zarr_format == 2:
        return False
    codecs = document.content.get("codecs")
    return bool(with_own_codecs(codecs, document.content.get("data_type")) != codecs)


def stored_steps(document: Document) -> list[Any] | None:
    """Return the shape of the chunks, or shards, as it stands in the metadata; None if it is no list of numbers."""
    steps = document.content.get("chunks")
    if document.zarr_format == 3:
        steps = document.content["chunk_grid"]["configuration"]["chunk_shape"]
    is_list = isinstance(steps, list) and all(isinstance(step, int) for step in steps)
    return steps if is_list else None


class VaryingChunks(NamedTuple):
    """The chunks, or shards, along an axis where they may have several extents."""

    chunk_count: int  # Of those that begin in the array
    largest: int  # Their largest extent; 0 if there are none


def varying_chunks(metadata: Any) -> tuple[VaryingChunks, ...] | None:
    """Return the chunks along each axis if they have several shapes; None if all have one shape."""
    if metadata.zarr_format == 2:
        return None
    shapes = getattr(metadata.chunk_grid, "chunk_shapes", None)
    if shapes is None:
        return None
    return tuple(_chunks_along(axis, extent) for axis, extent in zip(shapes, metadata.shape, strict=True))


def _chunks_along(axis: int | tuple[int, ...], extent: int) -> VaryingChunks:
    if isinstance(axis, int):
        return VaryingChunks(-(-extent // axis), axis if extent else 0)
    begins = itertools.accumulate((0, *axis[:-1]))
    inside = [step for step, begin in zip(axis, begins, strict=True) if begin < extent]
    return VaryingChunks(len(inside), max(inside, default=0))


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings of zarr-python that codecs, types and consolidated metadata are not in Zarr's core."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module=r"zarr\.")
        warnings.filterwarnings("ignore", message=".*(Zarr|Consolidated|Numcodecs|specification).*")
        yield


def files_of(path: Address | str) -> Files:
    """Return the files of a hierarchy, here or elsewhere."""
    return StoreFiles(store_path(path)) if isinstance(path, Address) else LocalFiles(Path(path))


def store_path(path: Address | str) -> Any:
    """Return where zarr-python finds a hierarchy: a ``StorePath``."""
    from zarr.storage import LocalStore, StorePath  # late: zarr is optional

    if not isinstance(path, Address):
        return StorePath(LocalStore(path, read_only=True))
    from tamis.formats.zarr.stored.elsewhere import place_for_zarr  # late: most files are here

    place = place_for_zarr(path)
    return place if isinstance(place, StorePath) else StorePath(place)
