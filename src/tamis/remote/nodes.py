"""What parts of HDF5's metadata point to: read ahead of libhdf5, in parallel. A wrong guess costs bytes, never values.

The format: https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html. Nothing here is trusted: bytes that
mean something else yield no addresses, or useless ones.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

_UNDEFINED = (1 << 64) - 1
_PREFIX = 24  # of a node of the first B-trees
_HEADER_NBYTES = 1024  # of an object header, as far as it is known
_COLLECTION_NBYTES = 4096  # of a global heap
_GROUP_LEAF_NBYTES = 8 + 8 * 40
_MOST_LINK = 1 << 10


class Place(NamedTuple):
    """A part of the file that is metadata, and what reads its pointers."""

    offset: int
    nbytes: int
    parse: Callable[[bytes], Iterable[Place]] | None = None


class Wanted(NamedTuple):
    """Some chunks of an array, in order."""

    numbers: Sequence[int]
    origins: Sequence[tuple[int, ...]]


def _u(data: bytes, at: int, nbytes: int) -> int:
    if at + nbytes > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + nbytes], "little")


def children_of_read(data: bytes) -> Iterable[Place]:
    """Return what a node of a chunk index points to, by the bytes that libhdf5 reads at once: a whole node."""
    if data[:4] == b"TREE" and data[4:5] == b"\1" and data[5:6] != b"\0":
        key = (len(data) - 536) / 65  # for 32 children at least and 64 at most, the default
        if key == int(key) and key >= 24 and not key % 8:
            return list(_guarded(lambda node: _chunk_tree(node, int(key), None), data))
    return ()


def _guarded(parse: Callable[[bytes], Iterable[Place]], data: bytes) -> Iterator[Place]:
    """Yield the places in a part; none after the first byte that means something else."""
    try:
        yield from parse(data)
    except (IndexError, struct.error):
        return


class Crawler:
    """Finds what metadata points to, from the superblock on; `indexes` gives the root of each chunk index.

    Its key is the address of the dataset's object header.
    """

    def __init__(self) -> None:
        self.indexes: dict[int, Callable[[Wanted | None], Place]] = {}

    def roots(self, head: bytes) -> Iterator[Place]:
        """Yield the place of the root group, by the first bytes of the file."""
        if head[:8] != b"\x89HDF\r\n\x1a\n":
            return
        if head[8] in (0, 1):  # superblock with a symbol table entry
            if head[13] != 8 or head[14] != 8:
                return
            yield self.header(_u(head, 68 if head[8] == 1 else 64, 8))
        elif head[8] in (2, 3) and head[9] == head[10] == 8:
            yield self.header(_u(head, 36, 8))

    def header(self, offset: int) -> Place:
        """Return the place of an object header."""
        return Place(offset, _HEADER_NBYTES, lambda data: _guarded(lambda part: self._header(part, offset), data))

    def _header(self, data: bytes, offset: int) -> Iterator[Place]:
        if data[:4] == b"OHDR":
            flags, at = data[5], 6
            at += 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)
            width = 1 << (flags & 3)
            size, at = _u(data, at, width), at + width
            if at + size > len(data):
                yield self.header(offset)._replace(nbytes=at + size + 4)
                return
            yield from self._messages(data[at : at + size], offset, 4 + 2 * bool(flags & 4), is_new=True)
        elif data[:2] == b"\1\0":
            size = _u(data, 8, 4)
            if 16 + size > len(data):
                yield self.header(offset)._replace(nbytes=16 + size)
                return
            yield from self._messages(data[16 : 16 + size], offset, 8, is_new=False)

    def _messages(self, data: bytes, header: int, prefix: int, *, is_new: bool) -> Iterator[Place]:
        at = 0
        while at + prefix <= len(data):
            kind, nbytes = (data[at], _u(data, at + 1, 2)) if is_new else (_u(data, at, 2), _u(data, at + 2, 2))
            message = data[at + prefix : at + prefix + nbytes]
            at += prefix + nbytes
            yield from _guarded(lambda part, kind=kind: self._message(kind, part, header, prefix, is_new), message)  # type: ignore[misc]

    def _message(self, kind: int, data: bytes, header: int, prefix: int, is_new: bool) -> Iterator[Place]:
        if kind == 0x02:
            at = 2 + 8 * bool(data[1] & 1)
            yield from self._dense(_u(data, at, 8), [_u(data, at + 8, 8)], holds_links=True)
        elif kind == 0x06:
            yield from self._link(data, 0)
        elif kind == 0x08:
            yield from self._layout(data, header)
        elif kind == 0x0C:
            yield from self._attribute(data)
        elif kind == 0x10:
            offset, nbytes = _u(data, 0, 8), _u(data, 8, 8)
            begin = 4 * is_new
            yield Place(
                offset,
                min(nbytes, 1 << 16),
                lambda part: self._messages(part[begin : len(part) - begin], header, prefix, is_new=is_new),
            )
        elif kind == 0x11:
            yield from self._group(_u(data, 0, 8), _u(data, 8, 8))
        elif kind == 0x15:
            at = 2 + 2 * bool(data[1] & 1)
            yield from self._dense(_u(data, at, 8), [_u(data, at + 8, 8)], holds_links=False)

    def _group(self, tree: int, heap: int) -> Iterator[Place]:
        """Yield the places of a group with a symbol table."""
        yield Place(heap, 32, lambda data: _guarded(_heap, data))
        yield Place(tree, _PREFIX + 33 * 8 + 32 * 8, lambda data: _guarded(self._group_tree, data))

    def _group_tree(self, data: bytes) -> Iterator[Place]:
        if data[:4] != b"TREE" or data[4]:
            return
        level = data[5]
        for row in range(_u(data, 6, 2)):
            child = _u(data, _PREFIX + 8 + 16 * row, 8)
            if level:
                yield Place(child, len(data), lambda part: _guarded(self._group_tree, part))
            else:
                yield Place(child, _GROUP_LEAF_NBYTES, lambda part: _guarded(self._group_leaf, part))

    def _group_leaf(self, data: bytes) -> Iterator[Place]:
        if data[:4] != b"SNOD":
            return
        for row in range(_u(data, 6, 2)):
            entry = 8 + 40 * row
            yield self.header(_u(data, entry + 8, 8))

    def _layout(self, data: bytes, header: int) -> Iterator[Place]:
        """Note where the chunk index of a dataset begins, and yield the part that libhdf5 reads with the dataset."""
        if data[0] == 3 and data[1] == 2:
            key = 8 + 8 * data[2]
            place = Place(_u(data, 3, 8), _PREFIX + 65 * key + 64 * 8)
            self.indexes[header] = lambda wanted: place._replace(
                parse=lambda part: _guarded(lambda node: _chunk_tree(node, key, wanted), part)
            )
            yield place
        elif data[0] in (4, 5) and data[1] == 2:
            index = Place(_u(data, len(data) - 8, 8), 256)
            self.indexes[header] = lambda wanted: index._replace(
                parse=lambda part: _guarded(lambda node: _new_index(node, wanted), part)
            )

    def _link(self, data: bytes, at: int) -> Iterator[Place]:
        place, _ = self._link_at(data, at)
        if place is not None:
            yield place

    def _link_at(self, data: bytes, at: int) -> tuple[Place | None, int]:
        """Return the object header of a hard link, and where the next link begins; 0 if there is no link here."""
        begin = at
        if data[at] != 1 or data[at + 1] & 0xE0:
            return None, 0
        flags, at = data[at + 1], at + 2
        kind, at = (data[at], at + 1) if flags & 8 else (0, at)
        at += 8 * bool(flags & 4) + bool(flags & 16)
        width = 1 << (flags & 3)
        length, at = _u(data, at, width), at + width
        if not 0 < length <= _MOST_LINK or at + length > len(data):
            return None, 0
        at += length
        if kind == 0:
            return self.header(_u(data, at, 8)), at + 8
        return None, at + 2 + _u(data, at, 2) if at > begin else 0

    def _attribute(self, data: bytes) -> Iterator[Place]:
        """Yield the heaps of references to the scales of dimensions, which netCDF stores as lists."""
        if b"DIMENSION_LIST\0" in data[:40]:
            for at in range(len(data) - 16, 40, -16):
                offset = _u(data, at + 4, 8)
                if _u(data, at, 4) != 1 or offset == _UNDEFINED:
                    return
                yield Place(offset, _COLLECTION_NBYTES)

    def _dense(self, heap: int, trees: list[int], *, holds_links: bool) -> Iterator[Place]:
        """Yield the places of links or attributes in a fractal heap, and of their trees."""
        yield Place(heap, 160, lambda data: _guarded(lambda part: self._fractal(part, holds_links), data))
        for tree in trees:
            yield Place(tree, 38, lambda data: _guarded(_new_tree, data))

    def _fractal(self, data: bytes, holds_links: bool) -> Iterator[Place]:
        if data[:4] != b"FRHP":
            return
        filtered, flags = _u(data, 7, 2), data[9]
        width, start, most = _u(data, 110, 2), _u(data, 112, 8), _u(data, 120, 8)
        bits, root, rows = _u(data, 128, 2), _u(data, 132, 8), _u(data, 140, 2)
        if filtered or start > 1 << 20:
            return
        begin = 13 + (bits + 7) // 8 + 4 * bool(flags & 2)

        def block(data: bytes) -> Iterator[Place]:
            return _guarded(lambda part: self._links_in(part, begin) if holds_links else iter(()), data)

        def indirect(data: bytes) -> Iterator[Place]:
            at = 13 + (bits + 7) // 8
            for row in range(rows):
                size = start << max(row - 1, 0)
                if size > min(most, 1 << 18):
                    return
                for _ in range(width):
                    yield Place(_u(data, at, 8), size, block)
                    at += 8

        if rows:
            nbytes = 17 + (bits + 7) // 8 + rows * width * 8
            yield Place(root, nbytes, lambda part: _guarded(indirect, part))
        else:
            yield Place(root, start, block)

    def _links_in(self, data: bytes, at: int) -> Iterator[Place]:
        if data[:4] != b"FHDB":
            return
        while 0 < at < len(data):
            place, at = self._link_at(data, at)
            if place is not None:
                yield place


def _heap(data: bytes) -> Iterator[Place]:
    if data[:4] == b"HEAP":
        yield Place(_u(data, 24, 8), min(_u(data, 8, 8), 1 << 20))


def _chunk_tree(data: bytes, key: int, wanted: Wanted | None) -> Iterator[Place]:
    """Yield the children of a node of the first kind of chunk index that may have wanted chunks.

    Before each child is a key: size, mask and origin of its first chunk. Children of a leaf are chunks.
    """
    if data[:4] != b"TREE" or data[4] != 1 or not data[5]:
        return
    count, step, origin = _u(data, 6, 2), key + 8, struct.Struct(f"<{key // 8 - 2}Q")
    ends = [origin.unpack_from(data, _PREFIX + step * row + 8) for row in range(count)] if wanted else []
    rows = {max(bisect_right(ends, first) - 1, 0) for first in wanted.origins} if wanted else range(count)
    for row in sorted(rows):
        child = _u(data, _PREFIX + key + step * row, 8)
        yield Place(child, len(data), lambda part: _guarded(lambda node: _chunk_tree(node, key, wanted), part))


def _new_tree(data: bytes) -> Iterator[Place]:
    """Yield the root of a tree of the second kind, and its children if they are leaves."""
    if data[:4] != b"BTHD":
        return
    node, record, depth = _u(data, 6, 4), _u(data, 10, 2), _u(data, 12, 2)
    root, count = _u(data, 16, 8), _u(data, 24, 2)
    if not 0 < node <= 1 << 16 or not record:
        return
    most = (node - 10) // record
    width = (most.bit_length() + 7) // 8

    def inner(data: bytes) -> Iterator[Place]:
        at = 6 + count * record
        for _ in range(count + 1):
            yield Place(_u(data, at, 8), node)
            at += 8 + width

    yield Place(root, node, (lambda part: _guarded(inner, part)) if depth == 1 else None)


def _new_index(data: bytes, wanted: Wanted | None) -> Iterator[Place]:
    """Yield what a chunk index of HDF5 1.10 begins with; of a fixed array, the pages of wanted chunks."""
    if data[:4] == b"FAHD":
        entries, nbytes, page = _u(data, 8, 8), data[6], 1 << min(data[7], 30)
        pages = -(-entries // page) if entries > page else 0
        begin, prefix = _u(data, 16, 8), 18 + (pages + 7) // 8
        if wanted is None or not pages:
            yield Place(begin, min(prefix + entries * nbytes + 4 * pages, 64 << 20))
            return
        yield Place(begin, prefix)
        for number in sorted({number // page for number in wanted.numbers}):
            yield Place(begin + prefix + number * (page * nbytes + 4), page * nbytes + 4)
    elif data[:4] == b"EAHD":
        yield Place(_u(data, 60, 8), 1024)
    elif data[:4] == b"BTHD":
        yield from _new_tree(data)
