"""Create a link that a program has defined, of the type 187: PATH."""

import ctypes
import sys

import h5py
from h5py import h5p

library = ctypes.CDLL(h5p.__file__)


class LinkClass(ctypes.Structure):
    _fields_ = (("version", ctypes.c_int), ("id", ctypes.c_int), *((name, ctypes.c_void_p) for name in "abcdefg"))


traverse = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: -1)
own = LinkClass(1, 187)
own.e = ctypes.cast(traverse, ctypes.c_void_p)
with h5py.File(sys.argv[1], "r+") as file:
    assert library.H5Lregister(ctypes.byref(own)) >= 0
    create = library.H5Lcreate_ud
    create.argtypes = (*(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t),) + (
        ctypes.c_int64,
    ) * 2
    assert create(file.id.id, b"own", 187, b"what it needs", 13, 0, 0) >= 0
