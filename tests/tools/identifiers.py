"""Run the command, and say at the end of the process which HDF5 identifiers are left: ``python identifiers.py …``.

What is left is closed by HDF5 itself after all else has ended, which it cannot always do: HDF5 2.0 crashes on the
creation properties of virtual datasets. Those that h5py keeps for itself are left out.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import sys
from collections import Counter
from typing import Any

from h5py import h5f, h5i, h5p, h5s, h5t

from tamis_command import main

MARK = "HDF5 identifiers left"

_KINDS = {h5i.DATATYPE: "type", h5i.DATASPACE: "dataspace", h5i.GENPROP_LST: "property list"}
_NUMBER_BITS = 56
"""Bits of an identifier below its kind: a number that grows."""

_OF_FILES = h5f.OBJ_FILE | h5f.OBJ_GROUP | h5f.OBJ_DATASET | h5f.OBJ_ATTR

_LIBRARY: Any = ctypes.CDLL(h5p.__file__)
_LIBRARY.H5Iis_valid.argtypes = (ctypes.c_int64,)


def identifiers() -> set[int]:
    """Return the identifiers of all types, dataspaces and property lists."""
    newest = h5t.NATIVE_INT8.copy(), h5s.create(h5s.SCALAR), h5p.create(h5p.LINK_CREATE)
    ranges = (range(item.id >> _NUMBER_BITS << _NUMBER_BITS, item.id) for item in newest)
    return {number for numbers in ranges for number in numbers if _LIBRARY.H5Iis_valid(number) > 0}


def report(before: set[int]) -> None:
    """Print how many identifiers of each kind are left, if any."""
    gc.collect()  # as Python itself does at its end
    left = Counter(_KINDS[number >> _NUMBER_BITS] for number in identifiers() - before)
    if opened := h5f.get_obj_count(h5f.OBJ_ALL, _OF_FILES):
        left["object of a file"] = opened
    if left:
        print(f"{MARK}: {dict(left)}", file=sys.stderr)


if __name__ == "__main__":
    atexit.register(report, identifiers())
    main()
