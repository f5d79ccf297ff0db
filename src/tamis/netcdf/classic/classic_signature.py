"""The first bytes of netCDF classic files."""

from __future__ import annotations

import os
from pathlib import Path

KINDS = {1: "classic", 2: "64-bit offset", 5: "cdf5"}
"""Formats by the number after the letters CDF at the begin of a file, as ``ncdump -k`` calls them."""

_SIGNATURES = tuple(b"CDF" + bytes([version]) for version in KINDS)


def is_classic(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a netCDF classic file, by its first bytes; False if it cannot be read."""
    place = Path(os.fsdecode(path))
    try:
        if not place.is_file():  # a pipe would block
            return False
        with place.open("rb") as stream:
            return stream.read(4) in _SIGNATURES
    except OSError:
        return False
