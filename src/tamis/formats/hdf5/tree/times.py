"""Restore times in object headers; HDF5 sets them to the present in a copy, and has no call to change them.

An object header has one of two formats. The older one may have a message with the time of the last change. The newer
one may have four times in its prefix, and has a checksum at the end of its first part. The message is of type 18, and
has ``01 | 0 (3) | seconds, u32``; `tamis.formats.hdf5.lib.object_headers` has the rest of both formats.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

import h5py

from tamis.arrays.source import ByteSource, Descriptor, FileSource
from tamis.errors import FileError
from tamis.formats.hdf5.lib.files import source_of
from tamis.formats.hdf5.lib.object_headers import HAS_PHASE_CHANGE, HAS_TIMES, messages
from tamis.system.files import open_file, write_at

_CHANGED = 18
_PREFIX_1_NBYTES = 16
_MOST_NBYTES = 1 << 16  # limit of a part of a header; larger ones are left alone


def keep_times(source: h5py.File, path: Path, headers: Iterable[tuple[h5py.File, int, int]]) -> None:
    """Set the times of objects in a copy, which must be closed, to those of the source, if both have times.

    `headers` are file and address of each object, and its address in the copy.
    """
    base = source.userblock_size  # also of the copy
    try:
        # The copy is made durable later, which reports the errors that close() would report.
        after = FileSource(Descriptor(open_file(path, os.O_RDWR)))
        for file, group in itertools.groupby(headers, key=itemgetter(0)):
            before, own_base = source_of(file), file.userblock_size
            _keep_times(before, own_base, after, base, group)
    except OSError as error:
        raise FileError(f"{path}: times of objects cannot be copied: {error.strerror}") from error


def _keep_times(
    before: ByteSource, own_base: int, after: FileSource, base: int, headers: Iterable[tuple[h5py.File, int, int]]
) -> None:
    """Set the times of objects of one file."""
    for _, old, new in headers:
        header = _Header.read(before, old, own_base)
        copied = _Header.read(after, new, base) if header else None
        if header and copied and len(header.times) == len(copied.times) and header.times != copied.times:
            copied.write(after.descriptor.number, header.times)


class _Header:
    """The first part of an object header with times."""

    def __init__(self, offset: int, data: bytes, at: int, nbytes: int, checked: bool) -> None:
        self._offset, self._data, self._at, self._checked = offset, data, at, checked
        self.times = data[at : at + nbytes]

    @classmethod
    def read(cls, file: ByteSource, offset: int, base: int) -> _Header | None:
        """Return the header at an offset from the beginning of the file; None if there is none, or it has no times."""
        offset += base
        start = file.read(offset, 64)
        if start[:5] == b"OHDR\2" and len(start) == 64:
            flags = start[5]
            if not flags & HAS_TIMES:
                return None
            width_offset = 6 + 16 + (4 if flags & HAS_PHASE_CHANGE else 0)
            width = 1 << (flags & 3)
            nbytes = width_offset + width + int.from_bytes(start[width_offset : width_offset + width], "little") + 4
            data = file.read(offset, nbytes) if nbytes <= _MOST_NBYTES else b""
            sound = len(data) == nbytes > 4 and checksum(data[:-4]) == int.from_bytes(data[-4:], "little")
            return cls(offset, data, 6, 16, checked=True) if sound else None
        if len(start) < _PREFIX_1_NBYTES or start[:2] != b"\1\0":
            return None
        for message in messages(file, offset, base):
            if message.kind == _CHANGED and message.content[:1] == b"\1" and len(message.content) >= 8:
                return cls(message.offset, message.content, 4, 4, checked=False)
        return None

    def write(self, file: int, times: bytes) -> None:
        """Write other times, and the new checksum."""
        data = self._data[: self._at] + times + self._data[self._at + len(times) :]
        if self._checked:
            data = data[:-4] + struct.pack("<I", checksum(data[:-4]))
        write_at(file, data, self._offset)


def checksum(data: bytes) -> int:
    """Return HDF5's checksum of metadata: lookup3 of Bob Jenkins (2006), over little-endian words."""
    a = b = c = (0xDEADBEEF + len(data)) & 0xFFFFFFFF
    whole = max(len(data) - 1, 0) // 12 * 12
    for x, y, z in struct.iter_unpack("<III", data[:whole]):
        a, b, c = a + x, b + y, c + z
        a, c = _mixed(a, c, 4), c + b
        b, a = _mixed(b, a, 6), a + c
        c, b = _mixed(c, b, 8), b + a
        a, c = _mixed(a, c, 16), c + b
        b, a = _mixed(b, a, 19), a + c
        c, b = _mixed(c, b, 4), b + a
    if data:
        x, y, z = struct.unpack("<III", data[whole:].ljust(12, b"\0"))
        a, b, c = a + x, b + y, c + z
        c = _last(c, b, 14)
        a = _last(a, c, 11)
        b = _last(b, a, 25)
        c = _last(c, b, 16)
        a = _last(a, c, 4)
        b = _last(b, a, 14)
        c = _last(c, b, 24)
    return c & 0xFFFFFFFF


def _turned(word: int, count: int) -> int:
    word &= 0xFFFFFFFF
    return (word << count | word >> 32 - count) & 0xFFFFFFFF


def _mixed(word: int, other: int, count: int) -> int:
    return ((word - other) & 0xFFFFFFFF) ^ _turned(other, count)


def _last(word: int, other: int, count: int) -> int:
    return ((word ^ other) - _turned(other, count)) & 0xFFFFFFFF
