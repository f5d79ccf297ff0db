"""What the libnetcdf in netCDF4's wheel answers. A program, as it may die: texts on stdin, answers on stdout."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4

Unsigned = ctypes.c_uint
Size = ctypes.c_size_t
Words = ctypes.POINTER(Unsigned)


class Spec(ctypes.Structure):
    """NC_H5_Filterspec."""

    _fields_ = (("filterid", Unsigned), ("nparams", Size), ("params", Words))


Specs = ctypes.POINTER(ctypes.POINTER(Spec))


def library() -> ctypes.CDLL:
    (path,) = Path(netCDF4.__file__).parents[1].glob("net*4.libs/libnetcdf*.so*")
    return ctypes.CDLL(str(path))


LIBRARY = library()
FREE = ctypes.CDLL(None).free
FREE.argtypes = [ctypes.c_void_p]
LIBRARY.ncaux_h5filterspec_free.argtypes = [ctypes.POINTER(Spec)]
LIBRARY.ncaux_h5filterspec_fix8.argtypes = [ctypes.c_char_p, ctypes.c_int]


def parameter(text: bytes) -> Any:
    count, words = Size(), (Unsigned * 2)()
    status = LIBRARY.ncaux_h5filterspec_parse_parameter(text, ctypes.byref(count), words)
    return status or [words[: count.value]]


def spec(text: bytes) -> Any:
    number, count, words = Unsigned(), Size(), Words()
    status = LIBRARY.ncaux_h5filterspec_parse(text, ctypes.byref(number), ctypes.byref(count), ctypes.byref(words))
    if status:
        return status
    values = words[: count.value]
    FREE(words)
    return [number.value, values]


def chain(text: bytes) -> Any:
    form, count, specs = ctypes.c_int(), Size(), Specs()
    status = LIBRARY.ncaux_h5filterspec_parselist(text, ctypes.byref(form), ctypes.byref(count), ctypes.byref(specs))
    if status:
        return status
    found = []
    for each in specs[: count.value]:
        found.append([each.contents.filterid, each.contents.params[: each.contents.nparams]])
        LIBRARY.ncaux_h5filterspec_free(each)
    FREE(specs)
    return found


def fix8(text: str, decode: bool) -> str:
    memory = ctypes.create_string_buffer(bytes.fromhex(text), 8)
    LIBRARY.ncaux_h5filterspec_fix8(memory, decode)
    return memory.raw.hex()


def main() -> None:
    asked = json.load(sys.stdin)
    parsers: dict[str, Callable[[bytes], Any]] = {"parameter": parameter, "spec": spec, "chain": chain}
    answers: dict[str, Any] = {
        name: [parse(text.encode()) for text in asked[name]] for name, parse in parsers.items() if name in asked
    }
    answers["fix8"] = [fix8(*each) for each in asked.get("fix8", [])]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
