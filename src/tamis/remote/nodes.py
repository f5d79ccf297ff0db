"""What parts of HDF5's metadata point to: read ahead of libhdf5, in parallel. A wrong guess costs bytes, never values.

The format: https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html. Nothing here is trusted: bytes that
mean something else yield no addresses, or useless ones.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import mul
from typing import NamedTuple

from tamis.arrays.grid import Grid, Origin

_UNDEFINED = (1 << 64) - 1
_PREFIX = 24  # of a node of the first B-trees
_HEADER_NBYTES = 1024  # of an object header, as far as it is known
_COLLECTION_NBYTES = 4096  # of a global heap
_GROUP_LEAF_NBYTES = 8 + 8 * 40
_MOST_LINK = 1 << 10
_MOST_DEPTH = 16
_MOST_ENTRIES = 1 << 21
_SLACK = 32  # the part of the bytes under a node that is added on both sides of a guess of where values are
_MOST_GUESSED = 1.5  # bytes of such a guess, as a multiple of those of the wanted chunks
_MOST_GUESSED_NBYTES = 16 << 20


class Place(NamedTuple):
    """A part of the file that is metadata, and what reads its pointers."""

    offset: int
    nbytes: int
    parse: Callable[[bytes], Iterable[Place]] | None = None
    are_values: bool = False  # Whether the values that are wanted probably lie here


class Wanted(NamedTuple):
    """Some chunks of an array, in order."""

    origins: Sequence[Origin]
    grid: Grid
    limits: Sequence[int | None]  # Largest extents

    def between(self, first: tuple[float, ...], last: tuple[float, ...]) -> Wanted | None:
        """Return those from one origin on, up to another; None if there are none."""
        found = self.origins[bisect_left(self.origins, first) : bisect_left(self.origins, last)]
        return self._replace(origins=found) if found else None

    def numbers(self) -> list[int]:
        """Return their numbers in an index that is an array, where an unlimited axis comes first."""
        axes = sorted(range(len(self.limits)), key=lambda axis: self.limits[axis] is not None)
        extents = (self.limits[axis] or self.grid.shape[axis] for axis in axes)
        turned = Grid(tuple(extents), tuple(self.grid.chunk_shape[axis] for axis in axes))
        return sorted(turned.number_of([origin[axis] for axis in axes]) for origin in self.origins)


def _u(data: bytes, at: int, nbytes: int) -> int:
    """Return an unsigned number of so many bytes; raises IndexError beyond the end."""
    if at + nbytes > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + nbytes], "little")


def guarded(parse: Callable[[bytes], Iterable[Place]], data: bytes) -> Iterator[Place]:
    """Yield the places in a part; none after the first byte that means something else."""
    try:
        yield from parse(data)
    except (ValueError, IndexError, ArithmeticError, struct.error):
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
        if head[8] in (0, 1) and head[13] == head[14] == 8:  # superblock with a symbol table entry
            yield self.header(_u(head, 64 + 4 * head[8], 8))
        elif head[8] in (2, 3) and head[9] == head[10] == 8:
            yield self.header(_u(head, 36, 8))

    def header(self, offset: int) -> Place:
        """Return the place of an object header."""
        return Place(offset, _HEADER_NBYTES, partial(self._header, offset=offset))

    def _header(self, data: bytes, offset: int) -> Iterator[Place]:
        """Yield what the messages of an object header point to, or the header itself if it is longer."""
        if data[:4] == b"OHDR":
            flags = data[5]
            at = 6
            if flags & 0x20:  # times
                at += 16
            if flags & 0x10:  # limits of attributes
                at += 4
            width = 1 << (flags & 3)
            size = _u(data, at, width)
            at += width
            if at + size > len(data):
                yield self.header(offset)._replace(nbytes=at + size + 4)
                return
            prefix = 6 if flags & 4 else 4  # with the order of creation
            yield from self._messages(data[at : at + size], offset, prefix, is_new=True)
        elif data[:2] == b"\1\0":
            size = _u(data, 8, 4)
            if 16 + size > len(data):
                yield self.header(offset)._replace(nbytes=16 + size)
                return
            yield from self._messages(data[16 : 16 + size], offset, 8, is_new=False)

    def _messages(self, data: bytes, header: int, prefix: int, *, is_new: bool) -> Iterator[Place]:
        """Yield what messages point to, each of which begins with so many bytes of type, size and flags."""
        at = 0
        while at + prefix <= len(data):
            if is_new:
                kind, nbytes = data[at], _u(data, at + 1, 2)
            else:
                kind, nbytes = _u(data, at, 2), _u(data, at + 2, 2)
            message = data[at + prefix : at + prefix + nbytes]
            at += prefix + nbytes
            parse = partial(self._message, kind=kind, header=header, prefix=prefix, is_new=is_new)
            yield from guarded(parse, message)

    def _message(self, data: bytes, *, kind: int, header: int, prefix: int, is_new: bool) -> Iterator[Place]:
        if kind in (0x02, 0x15):  # links and attributes in a fractal heap, and their tree
            at = 2
            if data[1] & 1:  # the largest index of an order of creation
                at += 8 if kind == 0x02 else 2
            yield Place(_u(data, at, 8), 160, partial(self._fractal, holds_links=kind == 0x02))
            yield Place(_u(data, at + 8, 8), 38, _new_tree)
        elif kind == 0x06:
            place, _ = self._link_at(data, 0)
            if place is not None:
                yield place
        elif kind == 0x08:
            yield from self._layout(data, header)
        elif kind == 0x0C:
            yield from self._attribute(data)
        elif kind == 0x10:  # more messages, in a new header between a signature and a checksum
            around = 4 if is_new else 0
            yield Place(
                _u(data, 0, 8),
                min(_u(data, 8, 8), 1 << 16),
                lambda part: self._messages(part[around : len(part) - around], header, prefix, is_new=is_new),
            )
        elif kind == 0x11:  # a group of the first kind
            yield Place(_u(data, 8, 8), 32, _heap)
            yield Place(_u(data, 0, 8), _PREFIX + 33 * 8 + 32 * 8, self._group_tree)

    def _group_tree(self, data: bytes) -> Iterator[Place]:
        if data[:4] != b"TREE" or data[4]:
            return
        is_inner = data[5] > 0
        for row in range(_u(data, 6, 2)):
            child = _u(data, _PREFIX + 8 + 16 * row, 8)
            if is_inner:
                yield Place(child, len(data), self._group_tree)
            else:
                yield Place(child, _GROUP_LEAF_NBYTES, self._group_leaf)

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
            self.indexes[header] = lambda wanted: place._replace(parse=partial(_chunk_tree, key=key, wanted=wanted))
            yield place
        elif data[0] in (4, 5) and data[1] == 2:
            index = Place(_u(data, len(data) - 8, 8), 256)
            self.indexes[header] = lambda wanted: index._replace(parse=partial(_new_index, wanted=wanted))

    def _link_at(self, data: bytes, at: int) -> tuple[Place | None, int]:
        """Return the object header of a hard link, and where the next link begins; 0 if there is no link here."""
        if data[at] != 1 or data[at + 1] & 0xE0:
            return None, 0
        flags = data[at + 1]
        at += 2
        kind = 0  # a hard link
        if flags & 8:
            kind = data[at]
            at += 1
        if flags & 4:  # the order of creation
            at += 8
        if flags & 16:  # the character set
            at += 1
        width = 1 << (flags & 3)
        length = _u(data, at, width)
        at += width
        if not 0 < length <= _MOST_LINK or at + length > len(data):
            return None, 0
        at += length
        if kind == 0:
            return self.header(_u(data, at, 8)), at + 8
        return None, at + 2 + _u(data, at, 2)

    def _attribute(self, data: bytes) -> Iterator[Place]:
        """Yield the heaps of references to the scales of dimensions, which netCDF stores as lists."""
        if b"DIMENSION_LIST\0" in data[:40]:
            for at in range(len(data) - 16, 40, -16):
                offset = _u(data, at + 4, 8)
                if _u(data, at, 4) != 1 or offset == _UNDEFINED:
                    return
                yield Place(offset, _COLLECTION_NBYTES)

    def _fractal(self, data: bytes, holds_links: bool) -> Iterator[Place]:
        """Yield the blocks of a fractal heap, by its header."""
        if data[:4] != b"FRHP":
            return
        is_filtered, flags = _u(data, 7, 2), data[9]
        # Blocks in a row of the table, bytes of those in the first row, and of the largest ones that have links
        width, start, most = _u(data, 110, 2), _u(data, 112, 8), _u(data, 120, 8)
        offset_nbytes = (_u(data, 128, 2) + 7) // 8
        root, rows = _u(data, 132, 8), _u(data, 140, 2)
        if is_filtered or start > 1 << 20:
            return
        begin = 13 + offset_nbytes
        if flags & 2:  # a checksum
            begin += 4
        block = partial(self._links_in, at=begin) if holds_links else None

        def indirect(data: bytes) -> Iterator[Place]:
            at = 13 + offset_nbytes
            for row in range(rows):
                size = start << max(row - 1, 0)
                if size > min(most, 1 << 18):
                    return
                for _ in range(width):
                    yield Place(_u(data, at, 8), size, block)
                    at += 8

        if rows:
            yield Place(root, 17 + offset_nbytes + rows * width * 8, indirect)
        else:
            yield Place(root, start, block)

    def _links_in(self, data: bytes, at: int) -> Iterator[Place]:
        """Yield the object headers of the links in a block of a heap, from an offset on."""
        while data[:4] == b"FHDB" and 0 < at < len(data):
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
    count = _u(data, 6, 2)
    step = key + 8
    form = struct.Struct(f"<II{key // 8 - 2}Q")
    keys = [form.unpack_from(data, _PREFIX + step * row) for row in range(count + 1)]
    children = [_u(data, _PREFIX + key + step * row, 8) for row in range(count)]
    if wanted:
        span = _span_of(wanted, keys, children, data[5], (len(data) - _PREFIX) // step)
        if span is not None:
            yield Place(span[0], span[1] - span[0], are_values=True)
    for child, (first, last) in zip(children, pairwise(keys), strict=True):
        part = wanted and wanted.between(first[2:], last[2:])
        if part or not wanted:
            yield Place(child, len(data), partial(_chunk_tree, key=key, wanted=part))


def _span_of(
    wanted: Wanted, keys: Sequence[Sequence[int]], children: Sequence[int], level: int, room: int
) -> tuple[int, int] | None:
    """Return where the bytes of wanted chunks probably are, by the places of a node's children; None if unknown.

    Chunks that were written in the order of the index lie between its nodes. A node that is full gives its last chunks
    to a new one, which is put behind the chunk that was too many.
    """
    if len(children) < 3:
        return None
    first, last = map(wanted.grid.number_of, (wanted.origins[0], wanted.origins[-1]))
    numbers = [wanted.grid.number_of(key[2:]) for key in keys]
    size = sum(key[0] for key in keys[:-1]) / len(children)
    ends = []
    for number in (first, last + 1):
        # The first node is younger than the second.
        row = min(max(bisect_right(numbers, number - 1) - 1, 1), len(children) - 2)
        count, gap = numbers[row + 1] - numbers[row], children[row + 1] - children[row]
        if count < 1 or not 0.8 * size * count < gap < 1.5 * size * count:
            return None
        late = room / count ** (1 / level) - 1
        ends.append((children[row] + gap * ((number - numbers[row]) / count - late), gap / _SLACK))
    (begin, before), (end, after) = ends
    begin, end = max(begin - before, 0), end + after
    most = min(_MOST_GUESSED * size * len(wanted.origins), _MOST_GUESSED_NBYTES)
    return (int(begin), int(end)) if end - begin < most else None


def _new_tree(data: bytes, wanted: Wanted | None = None) -> Iterator[Place]:
    """Yield the nodes of a tree of the second kind, but for the root only those that may have wanted chunks."""
    if data[:4] != b"BTHD":
        return
    node, record, depth = _u(data, 6, 4), _u(data, 10, 2), _u(data, 12, 2)
    root, count = _u(data, 16, 8), _u(data, 24, 2)
    if not 0 < node <= 1 << 16 or not record or depth > _MOST_DEPTH:
        return
    total = most = (node - 10) // record
    pointers = [0, 8 + _width(most)]  # bytes of one in a node, by its level
    for _ in range(1, depth):
        fits = (node - 10 - pointers[-1]) // (record + pointers[-1])
        total = (fits + 1) * total + fits
        pointers.append(pointers[1] + _width(total))

    def inner(data: bytes, count: int, level: int, wanted: Wanted | None) -> Iterator[Place]:
        steps = wanted.grid.chunk_shape if wanted else ()
        place, begin = struct.Struct(f"<{len(steps)}Q"), record - 8 * len(steps)
        scaled = (place.unpack_from(data, 6 + begin + row * record) for row in range(count))
        ends: list[tuple[float, ...]] = [(), *(tuple(map(mul, steps, at)) for at in scaled), (math.inf,)]
        for row, (first, last) in enumerate(pairwise(ends)):
            at, part = 6 + count * record + row * pointers[level], wanted and wanted.between(first, last)
            if part or not wanted:
                below = partial(inner, count=_u(data, at + 8, _width(most)), level=level - 1, wanted=part)
                yield Place(_u(data, at, 8), node, below if level > 1 else None)

    yield Place(root, node, partial(inner, count=count, level=depth, wanted=wanted) if depth else None)


def _width(number: int) -> int:
    """Return how many bytes hold every number up to this one."""
    return (number.bit_length() + 7) // 8


def _new_index(data: bytes, wanted: Wanted | None) -> Iterator[Place]:
    """Yield what a chunk index of HDF5 1.10 begins with; of an array, the parts that have wanted chunks."""
    if data[:4] == b"FAHD":
        entries, nbytes, page = _u(data, 8, 8), data[6], 1 << min(data[7], 30)
        pages = -(-entries // page) if entries > page else 0
        begin = _u(data, 16, 8)
        prefix = 18 + (pages + 7) // 8
        if wanted and pages:
            yield from _pages(begin, prefix, page, nbytes, wanted.numbers())
        else:
            yield Place(begin, min(prefix + entries * nbytes + 4 * pages, 64 << 20))
    elif data[:4] == b"EAHD":
        yield from _extensible_array(data, wanted)
    elif data[:4] == b"BTHD":
        yield from _new_tree(data, wanted)


def _pages(begin: int, prefix: int, page: int, nbytes: int, numbers: Sequence[int]) -> Iterator[Place]:
    """Yield the beginning of a block of entries in pages, and the pages that have some, by their numbers in it."""
    yield Place(begin, prefix)
    for row in sorted({number // page for number in numbers}):
        yield Place(begin + prefix + row * (page * nbytes + 4), page * nbytes + 4)


def _extensible_array(header: bytes, wanted: Wanted | None) -> Iterator[Place]:
    """Yield the index block of an extensible array, which leads to blocks of entries, some by secondary blocks."""
    # Bytes of an entry, bits of their number; entries in the index block, in the smallest block, and blocks to a
    # secondary one, at least
    nbytes, bits, own, least, direct = header[6:11]
    page = 1 << min(header[11], 30)
    if not least:
        return
    # The number of entries in a block of each level, and of such blocks: the first ones are in the index block.
    offset = (bits + 7) // 8
    entries = 14 + own * nbytes
    levels = bits - least.bit_length() + 2
    listed = 2 * (direct - 1)
    first_far = 2 * direct.bit_length() - 2
    numbers = range(min(_u(header, 44, 8), _MOST_ENTRIES)) if wanted is None else wanted.numbers()

    def blocks(data: bytes, at: int, size: int, numbers: Sequence[int]) -> Iterator[Place]:
        """Yield blocks by their addresses in a part."""
        for row, some in groupby(numbers, lambda number: number // size):
            begin, inside = _u(data, at + 8 * row, 8), [number % size for number in some]
            if size > page:
                yield from _pages(begin, 18 + offset, page, nbytes, inside)
            else:
                yield Place(begin, 18 + offset + size * nbytes)

    def index(data: bytes) -> Iterator[Place]:
        first, row = own, 0
        for level in range(levels):
            many, size = 1 << level // 2, least << (level + 1) // 2
            here = numbers[bisect_left(numbers, first) : bisect_left(numbers, first + many * size)]
            inside = [number - first for number in here]
            if inside and row < listed:
                yield from blocks(data, entries + 8 * row, size, inside)
            elif inside:
                begin = 14 + offset
                if size > page:
                    begin += many * -(-size // page // 8)
                place = _u(data, entries + 8 * (listed + level - first_far), 8)
                yield Place(place, begin + 8 * many + 4, partial(blocks, at=begin, size=size, numbers=inside))
            first += many * size
            row += many

    yield Place(_u(header, 60, 8), entries + 8 * (listed + levels - first_far) + 4, index)
