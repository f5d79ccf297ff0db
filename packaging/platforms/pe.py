"""What a library for Windows says of itself: the names that a PE file for x86-64 shows, and what it links.

Read as Microsoft's "PE Format" describes it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_X86_64, _PLUS = 0x8664, 0x20B


@dataclass(frozen=True)
class Pe:
    """Names of exports and of libraries."""

    exports: tuple[str, ...]
    linked: tuple[str, ...]


def read(path: Path) -> Pe:
    """Read a file; raises ValueError if it is no library or program for x86-64."""
    data = path.read_bytes()
    (start,) = struct.unpack_from("<I", data, 60) if data[:2] == b"MZ" else (len(data),)
    if data[start : start + 4] != b"PE\0\0" or struct.unpack_from("<H", data, start + 4)[0] != _X86_64:
        raise ValueError(f"expected a PE file for x86-64: {path}")
    sections, optional_nbytes = struct.unpack_from("<2xH12xH", data, start + 4)
    optional = start + 24
    if struct.unpack_from("<H", data, optional)[0] != _PLUS:
        raise ValueError(f"expected a PE32+ file: {path}")
    table = [struct.unpack_from("<8xIIII", data, optional + optional_nbytes + 40 * i) for i in range(sections)]

    def place(address: int) -> int:
        for nbytes, begin, stored, offset in table:
            if begin <= address < begin + max(nbytes, stored):
                return address - begin + offset
        raise ValueError(f"expected an address in a section, got {address:#x}: {path}")

    def text(address: int) -> str:
        at = place(address)
        return data[at : data.index(0, at)].decode()

    exports, imports = (struct.unpack_from("<I", data, optional + 112 + 8 * number)[0] for number in (0, 1))
    shown = []
    if exports:
        count, names = struct.unpack_from("<24xI4xI", data, place(exports))
        shown = [text(address) for (address,) in struct.iter_unpack("<I", data[place(names) :][: 4 * count])]
    linked = []
    at = place(imports) if imports else len(data)
    while at < len(data) and (name := struct.unpack_from("<12xI", data, at)[0]):
        linked.append(text(name))
        at += 20
    return Pe(tuple(sorted(shown)), tuple(sorted(linked)))
