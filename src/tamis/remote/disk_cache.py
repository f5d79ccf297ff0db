"""Metadata of remote files kept on disk: the next opening asks only whether the file is still the same.

An entry has the blocks that libhdf5 read, by URL, version and size of the object. It is a cache: what is damaged, or of
another version, is not used.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from tamis.access import make_private_folder
from tamis.remote.file import RemoteFile

FOLDER = "TAMIS_CACHE"
"""Environment variable with the folder of the cache; empty for none."""

MOST_NBYTES = 256 << 20
"""Limit of all entries: those that were not used for the longest time go first."""

_LEAST_NBYTES = 4096
_HEAD = struct.Struct("<8sQI")  # Mark, number of blocks, checksum
_MARK = b"tamis\0c1"


def folder() -> Path | None:
    """Return the folder of the cache; None if nothing is to be kept."""
    given = os.environ.get(FOLDER)
    if given is not None:
        return Path(given) if given else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home, "tamis") if os.path.isabs(home) else None


def _entry(remote: RemoteFile) -> Path | None:
    place = folder()
    if place is None or '"' not in remote.version:  # without an ETag, a change could stay unnoticed
        return None
    key = f"{remote.address.url}\0{remote.version}\0{remote.nbytes}"
    return place / f"{hashlib.sha256(key.encode()).hexdigest()}.blocks"


def read(remote: RemoteFile, block_nbytes: int) -> dict[int, memoryview]:
    """Return blocks by number; none if nothing is kept."""
    path = _entry(remote)
    if path is None:
        return {}
    try:
        data = path.read_bytes()
        os.utime(path)
        mark, count, checksum = _HEAD.unpack_from(data)
        numbers = struct.unpack_from(f"<{count}Q", data, _HEAD.size)
    except (OSError, struct.error, MemoryError):
        return {}
    begin = _HEAD.size + 8 * count
    if mark != _MARK or checksum != crc32(memoryview(data)[_HEAD.size :]):
        return {}
    blocks = memoryview(data)[begin:]
    return {number: blocks[at * block_nbytes : (at + 1) * block_nbytes] for at, number in enumerate(numbers)}


def write(remote: RemoteFile, blocks: Mapping[int, memoryview]) -> None:
    """Keep blocks; all but the last one have the same size. Nothing happens if the disk refuses."""
    path = _entry(remote)
    if path is None or sum(map(len, blocks.values())) < _LEAST_NBYTES:
        return
    numbers = sorted(blocks)
    body = struct.pack(f"<{len(numbers)}Q", *numbers) + b"".join(blocks[number] for number in numbers)
    new = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        make_private_folder(path.parent)
        new.write_bytes(_HEAD.pack(_MARK, len(numbers), crc32(body)) + body)
        new.replace(path)
        _shrink(path.parent)


def _shrink(place: Path) -> None:
    """Remove the entries that were not used for the longest time, until the rest fits."""
    entries = []
    for path in place.glob("*.blocks"):
        status = path.stat()
        entries.append((status.st_mtime, status.st_size, path))
    total = 0
    for _, nbytes, path in sorted(entries, reverse=True):
        total += nbytes
        if total > MOST_NBYTES:
            path.unlink(missing_ok=True)
