"""What a library for macOS says of itself: the load commands of a Mach-O file of one architecture.

Read as Apple's ``mach-o/loader.h`` and ``nlist.h`` describe them, little-endian with 64 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MAGIC = 0xFEEDFACF
_TYPES = {0x0100000C: "arm64", 0x01000007: "x86_64"}
_KINDS = {6: "dylib", 8: "bundle"}
_LOAD_DYLIB, _WEAK_DYLIB, _ID_DYLIB, _RPATH = 0xC, 0x80000018, 0xD, 0x8000001C
_DYLD_INFO, _DYLD_INFO_ONLY, _EXPORTS_TRIE = 0x22, 0x80000022, 0x80000033
_BUILD_VERSION, _VERSION_MIN = 0x32, 0x24
_SYMTAB = 0x2


@dataclass(frozen=True)
class MachO:
    """What is linked, shown and needed; versions as texts such as ``14.0``."""

    architecture: str
    kind: str
    install_name: str | None
    linked: tuple[str, ...]
    rpaths: tuple[str, ...]
    minimum: str | None
    exports: tuple[str, ...]
    """Without the underscore that C names begin with."""
    undefined: tuple[str, ...]


def read(path: Path) -> MachO:
    """Read a file; raises ValueError if it is not a library of one architecture that we build for."""
    data = path.read_bytes()
    if len(data) < 32 or struct.unpack_from("<I", data)[0] != _MAGIC:
        raise ValueError(f"expected a Mach-O file with 64 bits, got {data[:4].hex()}: {path}")
    processor, _, kind, count = struct.unpack_from("<4xIIII", data)
    if processor not in _TYPES or kind not in _KINDS:
        raise ValueError(f"expected a library for arm64 or x86_64, got processor {processor:#x}, kind {kind}: {path}")
    found: dict[int, list[bytes]] = {}
    at = 32
    for _ in range(count):
        command, nbytes = struct.unpack_from("<II", data, at)
        found.setdefault(command, []).append(data[at : at + nbytes])
        at += nbytes
    names = [*found.get(_ID_DYLIB, []), None]
    linked = [each for command in (_LOAD_DYLIB, _WEAK_DYLIB) for each in found.get(command, [])]
    return MachO(
        _TYPES[processor],
        _KINDS[kind],
        _text(names[0]) if names[0] is not None else None,
        tuple(map(_text, linked)),
        tuple(map(_text, found.get(_RPATH, []))),
        _minimum(found),
        tuple(sorted(name.removeprefix("_") for name in _exports(data, found))),
        tuple(sorted(_undefined(data, found))),
    )


def _text(command: bytes) -> str:
    """Return the text whose offset is the first number of a command."""
    (offset,) = struct.unpack_from("<8xI", command)
    return command[offset:].split(b"\0")[0].decode()


def _minimum(found: dict[int, list[bytes]]) -> str | None:
    for command, place in ((_BUILD_VERSION, "<12xI"), (_VERSION_MIN, "<8xI")):
        for each in found.get(command, []):
            (number,) = struct.unpack_from(place, each)
            return f"{number >> 16}.{number >> 8 & 255}"
    return None


def _exports(data: bytes, found: dict[int, list[bytes]]) -> Iterator[str]:
    for command in found.get(_EXPORTS_TRIE, []):
        offset, nbytes = struct.unpack_from("<8xII", command)
        yield from _names(data[offset : offset + nbytes])
    for command in [*found.get(_DYLD_INFO, []), *found.get(_DYLD_INFO_ONLY, [])]:
        offset, nbytes = struct.unpack_from("<40xII", command)
        yield from _names(data[offset : offset + nbytes])


def _names(trie: bytes) -> Iterator[str]:
    """Yield the names in a trie: each node has what it ends, and its children, an edge of text and an offset each."""
    nodes = [(0, "")] if trie else []
    while nodes:
        at, name = nodes.pop()
        nbytes, at = _number(trie, at)
        if nbytes:
            yield name
        at += nbytes
        children = trie[at]
        at += 1
        for _ in range(children):
            end = trie.index(0, at)
            node, after = _number(trie, end + 1)
            nodes.append((node, name + trie[at:end].decode()))
            at = after


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, the lowest first; returns it and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _undefined(data: bytes, found: dict[int, list[bytes]]) -> Iterator[str]:
    for command in found.get(_SYMTAB, []):
        symbols, count, texts, nbytes = struct.unpack_from("<8xIIII", command)
        names = data[texts : texts + nbytes]
        for index in range(count):
            place, kind = struct.unpack_from("<IB", data, symbols + 16 * index)
            if kind & 0xE0 == 0 and kind & 0x0E == 0 and kind & 1:  # no debugging entry, undefined, external
                yield names[place:].split(b"\0")[0].decode().removeprefix("_")
