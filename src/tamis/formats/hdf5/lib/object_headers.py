"""The messages in the header of an object, as a file has them: HDF5 has no call that returns their bytes.

All numbers are little-endian. A header has one of two formats::

    version 1 : 01 00 | messages, u16 | references, u32 | bytes, u32 | 0 (4) | message …
    message   : type, u16 | bytes, u16 | flags, u8 | 0 (3) | content
    version 2 : "OHDR" 02 | flags, u8 | times (16), if flag 32 | 4 bytes, if flag 16 | bytes, u8 to u64 |
                message … | checksum, u32
    message   : type, u8 | bytes, u16 | flags, u8 | creation order, u16, if flag 4 of the header | content

Type 16 is the offset and size of more messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tamis.arrays.source import ByteSource

CONTINUED, SHARED = 16, 2
HAS_TIMES, HAS_PHASE_CHANGE, _HAS_CREATION_ORDER, _WIDTH = 32, 16, 4, 3
"""Flags of a header of version 2; the last two bits are the logarithm of the width of its size."""

_OLD, _NEW = struct.Struct("<HHBxxx"), struct.Struct("<BHB")
_MOST_NBYTES = 1 << 16  # limit of all parts of a header together, and of each


class Message(NamedTuple):
    """A message of a header."""

    kind: int
    flags: int
    offset: int  # Of its content, from the beginning of the file
    content: bytes


def messages(file: ByteSource, offset: int, base: int) -> Iterator[Message]:
    """Yield the messages of a header at an offset from the beginning of the file; none if there is no header.

    `base` is where addresses begin. What is damaged yields useless messages, or none.
    """
    start = file.read(offset, 64)
    is_new = start[:5] == b"OHDR\2" and len(start) == 64
    if is_new:
        form, has = _NEW, start[5]
        head_nbytes = form.size + (2 if has & _HAS_CREATION_ORDER else 0)
        at = 6 + (16 if has & HAS_TIMES else 0) + (4 if has & HAS_PHASE_CHANGE else 0)
        width = 1 << (has & _WIDTH)
        parts = [(offset + at + width, int.from_bytes(start[at : at + width], "little"))]
    elif start[:2] == b"\1\0" and len(start) >= 16:
        form = _OLD
        head_nbytes = form.size
        parts = [(offset + 16, struct.unpack_from("<I", start, 8)[0])]
    else:
        return
    visited_nbytes = 0
    end = file.nbytes
    while parts and visited_nbytes < _MOST_NBYTES:
        part_offset, nbytes = parts.pop()
        data = file.read(part_offset, min(nbytes, _MOST_NBYTES))
        position = 0
        while position + head_nbytes <= len(data):
            kind, length, flags = form.unpack_from(data, position)
            position += head_nbytes
            visited_nbytes += 1 + length
            content = data[position : position + length]
            yield Message(kind, flags, part_offset + position, content)
            if kind == CONTINUED and length == 16 == len(content):  # otherwise addresses have another size
                address, count = struct.unpack("<QQ", content)
                if base + address < end:
                    # The newer format has a signature before, and a checksum after further messages.
                    parts.append((base + address + 4, max(count - 8, 0)) if is_new else (base + address, count))
            position += length
