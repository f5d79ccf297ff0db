"""References as kerchunk writes them: a Zarr hierarchy whose objects are parts of other objects."""

from __future__ import annotations

import base64
import json
import os
import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.errors import FileError, ParameterError
from tamis.formatting import shortened
from tamis.lazy_property import lazy_property
from tamis.remote.address import ALLOW_OUTSIDE, Address, is_address, located_path, without_outside
from tamis.remote.file import RemoteObjects, ends_of, size_of
from tamis.remote.object_store import Entry, LocalObjects, Objects, Part, Range
from tamis.remote.objects import failure, objects_of

_MEMORY = "memory"
_MOST_NBYTES = 1 << 53
"""Largest offset of the last byte of a reference: larger ones are damage."""

_CHECKED_NBYTES = 1 << 32
"""From this offset on, the size of a file is requested before its parts."""

_METADATA = (".zgroup", ".zarray", "zarr.json")
"""Names of objects of which a hierarchy has at least one."""

_TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Reference(NamedTuple):
    """A part of an object."""

    target: Address
    offset: int
    nbytes: int


class ReferenceObjects(Objects):
    """The references of a document as a store. Keys begin with the place of the document.

    Parameters
    ----------
    place
        Path or address of the document; its options are those of all targets.
    document
        What is in it.
    """

    can_list = True
    reads_tails = False
    protocol = "file"

    def __init__(self, place: str, document: Mapping[str, Any]) -> None:
        self.store = self
        self.versions: dict[str, str] = {}  # Of the targets, as they were first read
        self._folder = _folder_of(place)
        self._options: Mapping[str, Any] = place.options if isinstance(place, Address) else {}
        self._place = place
        self._start = f"{place.partition('://')[2] or place}/"  # Of all keys
        self._templates = _templates_of(place, document)
        self._refs: Mapping[str, Any] = document.get("refs", document)
        for name in self._refs:
            _check_name(place, name)
        self._targets: dict[str, Address] = {}

    @lazy_property
    def _names(self) -> list[str]:
        return sorted(self._refs)

    def reference(self, key: str) -> Reference | bytes:
        """Return the place of an object, or its bytes if the document has them; raises FileNotFoundError."""
        name = key.removeprefix(self._start)
        if name not in self._refs:
            raise FileNotFoundError(key)
        entry = self._refs[name]
        if isinstance(entry, str):
            try:
                return base64.b64decode(entry[7:], validate=True) if entry.startswith("base64:") else entry.encode()
            except ValueError as error:
                text = f"{shortened(name)}: expected text or base64, found {shortened(repr(entry))}: {error}"
                raise self._wrong(text) from error
        if isinstance(entry, list) and len(entry) in (1, 3) and isinstance(entry[0], str):
            target = self._target(entry[0])
            if len(entry) == 1:
                size = size_of(target)
                if size is None:
                    raise FileNotFoundError(target)
                return Reference(target, 0, size)
            if all(type(number) is int and number >= 0 for number in entry[1:]) and sum(entry[1:]) <= _MOST_NBYTES:
                return Reference(target, *entry[1:])
        if isinstance(entry, Mapping):
            return json.dumps(entry).encode()
        raise self._wrong(
            f"{shortened(name)}: expected [address, offset, size] with numbers from 0 to {_MOST_NBYTES:,} together,"
            f" found {shortened(repr(entry))}"
        )

    def _target(self, url: str) -> Address:
        """Return the address of a target, relative to the document."""
        if url not in self._targets:
            text = _TEMPLATE.sub(lambda match: str(self._templates.get(match[1], match[0])), url)
            if "{{" in text:
                raise self._wrong(f"expected addresses, and templates that are names, found {shortened(text)}")
            try:
                self._targets[url] = self._address_of(text)
            except (ValueError, ParameterError) as error:  # of a null byte, or a host that is none
                raise self._wrong(f"expected an address or a path, found {shortened(text)}: {error}") from error
        return self._targets[url]

    def _address_of(self, text: str) -> Address:
        """Return the address of a target by what the document has; one that is elsewhere leads elsewhere only."""
        options = without_outside(self._options)
        scheme = text.partition("://")[0].lower() if is_address(text) else ""
        if self._folder is not None and scheme:
            return Address(text, **options)
        if self._folder is not None:
            return Address(self._path_of(text, self._folder), LocalObjects(), **options)
        assert isinstance(self._place, Address)
        if scheme == _MEMORY != self._place.url.partition("://")[0].lower() or (
            not scheme and (text.lower().startswith("file:") or os.path.isabs(text))
        ):
            raise self._wrong(
                f"leads to {shortened(text)}, which is on the machine of the reader: references that are elsewhere may"
                " lead only to files elsewhere: copy them here, and read them with --allow-outside (allow_outside=True)"
            )
        return Address(text, **options) if scheme else beside(self._place, text)

    def _path_of(self, text: str, folder: str) -> str:
        """Return the path of a target here; raise FileError if it is outside the folder and may not be."""
        path = os.path.join(folder, located_path(text))
        real, top = os.path.realpath(path), os.path.realpath(folder)
        if os.path.commonpath([real, top]) != top and not self._options.get(ALLOW_OUTSIDE):
            raise self._wrong(
                f"leads to {real}, outside its folder {top}: if you trust the document, give --allow-outside, or "
                "allow_outside=True"
            )
        return path

    def _wrong(self, text: str) -> FileError:
        return FileError(f"{self._place}: {text}").at(path=self._place)

    def get(self, key: str, span: Range | None, version: str) -> Part:
        """Return a range of an object; see `Objects.get`."""
        found = self.reference(key)
        if isinstance(found, bytes):
            begin, end = span or (0, len(found))
            return Part(found[begin:end], len(found), "")
        begin, end = span or (0, found.nbytes)
        if begin >= end:
            return Part(b"", 0, version)
        objects, inner = objects_of(found.target)
        part = objects.get(inner, (found.offset + begin, found.offset + end), version)
        return part._replace(size=found.nbytes)

    def __contains__(self, key: str) -> bool:
        return key.removeprefix(self._start) in self._refs

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        return (Entry(key, self.size(key)) for key in self.keys(prefix))

    def size(self, key: str) -> int:
        """Return the size of an object."""
        found = self.reference(key)
        return len(found) if isinstance(found, bytes) else found.nbytes

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys of the objects below a folder."""
        start = f"{prefix.rstrip('/')}/".removeprefix(self._start)
        for name in self._names[bisect_left(self._names, start) :]:
            if not name.startswith(start):
                return
            yield self._start + name

    def put(self, key: str, data: Any) -> None:
        """Raise FileError: references are read only."""
        raise self._wrong("references cannot be the target, because tamis does not change them: choose another target")


def _folder_of(place: str) -> str | None:
    """Return the folder of a document on this machine; None if it is elsewhere."""
    if not isinstance(place, Address):
        return os.path.dirname(os.path.abspath(place))
    protocol = getattr(place.store, "protocol", None)
    if LocalObjects.protocol in ((protocol,) if isinstance(protocol, str) else protocol or ()):
        return os.path.dirname(os.path.abspath(place.url.removeprefix("file://")))
    return None


def _check_name(place: str, name: object) -> None:
    """Raise FileError for a name that no object of a Zarr hierarchy can have."""
    path = f"/{name}/"
    if not isinstance(name, str) or "//" in path or "/./" in path or "/../" in path:
        text = f"{place}: expected names such as TS/0.0 of objects, found {shortened(repr(name))}"
        raise FileError(text).at(path=place)


def beside(address: Address, name: str) -> Address:
    """Return the address of an object by its name, relative to the folder of another one, in the same store."""
    before, mark, query = address.url.partition("?") if address.store is None else (address.url, "", "")
    scheme, divider, path = before.rpartition("://")
    root = "" if address.store is not None and not divider else path.partition("/")[0]
    inner = path.removeprefix(root)
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(inner).lstrip("/"), name))
    if joined.split("/")[0] == "..":
        raise ValueError(f"it is outside {address}")
    start = ""
    if divider:
        start = f"{scheme}{divider}{root}/"
    elif inner.startswith("/"):
        start = "/"
    return Address(f"{start}{joined}{mark}{query}", address.store, **without_outside(address.options))


def _templates_of(place: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the templates of a document; raise FileError if it is none of references, or has generated ones."""
    if isinstance(document, Mapping) and not isinstance(document.get("templates") or {}, Mapping):
        raise FileError(f"{place}: expected templates by name, found others").at(path=place)
    refs = document.get("refs", document) if isinstance(document, Mapping) else None
    if not isinstance(refs, Mapping) or not any(key.rpartition("/")[2] in _METADATA for key in refs):
        raise FileError(f"{place}: expected references (kerchunk) to a Zarr hierarchy, found other JSON").at(path=place)
    if document.get("gen"):
        raise FileError(
            f"{place}: expected references one by one, found generated ones (gen): write them out with fsspec's"
            ' ReferenceFileSystem(path).references, as {"version": 1, "refs": …}'
        ).at(path=place)
    return document.get("templates") or {}


def references_at(place: str) -> Address:
    """Return the folder of a hierarchy of references, by the path or address of their document."""
    address = place if isinstance(place, Address) else Address(place, LocalObjects())
    objects, key = objects_of(address)
    try:
        document = json.loads(bytes(objects.get(key, None, "").data))
    except FileError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileError(f"{place}: cannot be read as JSON: {error}: copy it again").at(path=place) from None
    except Exception as error:  # obstore and fsspec raise many kinds
        raise failure(error, address) from None
    return Address(str(place), ReferenceObjects(place, document))


class ReferencedObjects(RemoteObjects):
    """The targets of references one after the other, so that near parts of one target are fetched together.

    Parameters
    ----------
    folder
        The address that messages name.
    objects
        The references.
    names
        Names of the objects that are read, each a reference.
    """

    _are_whole = False

    def __init__(self, folder: Address, objects: ReferenceObjects, names: Iterable[str]) -> None:
        ends: dict[Address, int] = {}
        places: list[tuple[Address, int]] = []
        start = objects_of(folder)[1].rstrip("/")
        for name in names:
            found = objects.reference(f"{start}/{name}")
            target, offset, nbytes = (folder / name, 0, len(found)) if isinstance(found, bytes) else found
            ends[target] = max(ends.get(target, 0), offset + nbytes)
            places.append((target, offset))
        targets = [*ends]
        total = sum(ends.values())
        if total > _MOST_NBYTES:
            raise FileError(f"{folder}: expected references to at most {_MOST_NBYTES:,} bytes, found {total:,}").at(
                path=folder
            )
        for target, end in ends.items():
            size = size_of(target) if end > _CHECKED_NBYTES else None
            if size is not None:
                self._check_size_of(target, size, end, folder)
        super().__init__(folder, np.array([*ends.values()], np.int64), targets.__getitem__)
        begins = dict(zip(targets, self._begins.tolist(), strict=False))
        self._starts = np.array([begins[target] + offset for target, offset in places], np.int64)
        self._versions = objects.versions

    def starts(self) -> NDArray[np.int64]:
        """Return the offset of each object."""
        return self._starts

    def _check_size(self, address: Address, found: int, expected: int) -> None:
        self._check_size_of(address, found, expected, self.address)

    @staticmethod
    def _check_size_of(address: Address, found: int, expected: int, folder: Address) -> None:
        if found < expected:
            raise FileError(
                f"{address}: expected {expected} bytes or more by the references of {folder}, found {found}:"
                " the file changed, or the references are those of another one"
            ).at(path=address)


def source_of(
    folder: Address,
    columns: tuple[NDArray[np.int64], NDArray[np.int64]],
    ends: Sequence[Part],
    name_of: Callable[[int], str],
) -> RemoteObjects:
    """Return the bytes of objects in a folder, by their numbers, sizes and, if some are known, last bytes."""
    objects: Objects = objects_of(folder)[0]
    numbers, sizes = columns
    if isinstance(objects, ReferenceObjects):
        return ReferencedObjects(folder, objects, map(name_of, numbers.tolist()))
    source = RemoteObjects(folder, sizes, lambda row: folder / name_of(int(numbers[row])))
    if ends:
        source.keep_ends(ends)
    return source


def ends_in(folder: Any, names: Iterable[str], nbytes: int) -> list[Part | None]:
    """Return the size of each object in a folder, an address, with so many last bytes; None if there is none.

    References have no bytes here.
    """
    objects, key = objects_of(folder)
    if not isinstance(objects, ReferenceObjects):
        return ends_of([folder / name for name in names], nbytes)

    def found(name: str) -> Part | None:
        with suppress(FileNotFoundError):
            return Part(b"", objects.size(f"{key.rstrip('/')}/{name}"), "")
        return None

    return [*map(found, names)]
