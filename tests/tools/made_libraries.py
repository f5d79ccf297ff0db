"""Small libraries for macOS and Windows, of which nothing can be run: they say what they show and what they need."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def mac_library(
    exports: Sequence[str], linked: Sequence[str] = (), *, install_name: str = "", undefined: str = "", **head: int
) -> bytes:
    """Make a Mach-O library for arm64 with macOS 14.2 as minimum; `head` changes numbers at its beginning."""
    trie = _trie([f"_{name}" for name in exports])
    names = f"\0_{undefined}\0".encode()
    symbols = struct.pack("<IBBHQ", 1, 1, 0, 0, 0) if undefined else b""
    fixed = [_command(0xC, _text(name)) for name in linked]
    fixed += [_command(0xD, _text(install_name))] if install_name else []
    fixed += [_command(0x32, struct.pack("<IIII", 1, 14 << 16 | 2 << 8, 0, 0))]
    start = 32 + sum(map(len, fixed)) + 16 + 24
    after = start + len(trie)
    last = [
        _command(0x80000033, struct.pack("<II", start, len(trie))),
        _command(0x2, struct.pack("<IIII", after, len(symbols) // 16, after + len(symbols), len(names))),
    ]
    commands = [*fixed, *last]
    words = {"magic": 0xFEEDFACF, "processor": 0x0100000C, "kind": 6} | head
    begin = (words["magic"], words["processor"], 0, words["kind"], len(commands), sum(map(len, commands)), 0, 0)
    return struct.pack("<IIIIIIII", *begin) + b"".join(commands) + trie + symbols + names


def _command(number: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<II", number, 8 + len(body)) + body


def _text(name: str) -> bytes:
    return struct.pack("<IIII", 24, 0, 0, 0) + name.encode() + b"\0"


def _trie(names: Sequence[str]) -> bytes:
    """Return a tree of names: each node has 2 bytes of what ends there, or none, and its children."""
    beginning = ""
    while len(names) > 1 and len({name[: len(beginning) + 1] for name in names}) == 1:
        beginning = names[0][: len(beginning) + 1]
    if beginning:
        rest = [name.removeprefix(beginning) for name in names]
        root = b"\0\1" + beginning.encode() + b"\0" + bytes([len(beginning) + 4])
    else:
        rest, root = list(names), b""
    at = len(root) + 2 + sum(len(name) + 2 for name in rest)
    node = bytes([0, len(rest)])
    for index, name in enumerate(rest):
        node += name.encode() + b"\0" + bytes([at + 4 * index])
    return root + node + b"\2\0\0\0" * len(rest)


def windows_library(exports: Sequence[str], linked: Sequence[str]) -> bytes:
    """Make a PE library for x86-64 with one section, which is 0x1000 bytes further on in memory than in the file."""
    section = 0x1000
    head = bytearray(0x200)
    head[:2], head[60:64], head[64:68] = b"MZ", struct.pack("<I", 64), b"PE\0\0"
    struct.pack_into("<HH12xH", head, 68, 0x8664, 1, 112 + 16)
    struct.pack_into("<H", head, 88, 0x20B)
    struct.pack_into("<8sIIII", head, 88 + 128, b".rdata", 0x1000, section, 0x1000, 0x200)
    names_at, imports_at = 40, 40 + 4 * len(exports)
    texts_at = imports_at + 20 * (len(linked) + 1)
    texts, places = b"", []
    for name in (*exports, *linked):
        places.append(section + texts_at + len(texts))
        texts += name.encode() + b"\0"
    shown = struct.pack(f"<{len(exports)}I", *places[: len(exports)])
    needed = b"".join(struct.pack("<12xI4x", place) for place in places[len(exports) :]) + bytes(20)
    body = struct.pack("<24xI4xI4x", len(exports), section + names_at) + shown + needed + texts
    struct.pack_into("<IIII", head, 88 + 112, section, 40, section + imports_at, 40)
    return bytes(head) + body + bytes(0x1000 - len(body))
