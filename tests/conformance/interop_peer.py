"""h5py with the filters of hdf5plugin, and without tamis: TASKS, a JSON file.

``write``: makes each file, from the datasets of ``plain``, with its filters; what a filter does not take is left out.
``read``: writes the bytes of every dataset of each file, as libhdf5 reads them, beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s

SZIP, SCALEOFFSET = 4, 6
FLOATS = [np.dtype("<f4"), np.dtype("<f8")]


def set_filter(plist: h5p.PropDCID, kind: str, wanted: list[Any]) -> None:
    """Append a filter: number, flags and parameters, or a class of hdf5plugin with its keywords."""
    if isinstance(wanted[0], str):
        made = getattr(hdf5plugin, wanted[0])(**wanted[1])
        plist.set_filter(made.filter_id, 1, made.filter_options)
    elif wanted[0] == SZIP:
        plist.set_szip(*wanted[2])
    elif wanted[0] == SCALEOFFSET:
        plist.set_scaleoffset(*((0, 3) if kind == "f" else (2, 0)))
    else:
        plist.set_filter(wanted[0], wanted[1], tuple(wanted[2]))


def write(plain: h5py.File, path: str, filters: list[Any]) -> None:
    with h5py.File(path, "w") as file:
        for name, source in plain.items():
            # SZ3 ends the process where a type is not one of its own, with exit code 0; SPERR takes no line.
            names = {each[0] for each in filters} & {"SZ3", "Sperr"}
            if names and (source.dtype not in FLOATS or source.ndim == 1):
                continue
            plist = h5p.create(h5p.DATASET_CREATE)
            plist.set_chunk(source.chunks)
            for each in filters:
                set_filter(plist, source.dtype.kind, each)
            space = h5s.create_simple(source.shape)
            try:
                made = h5d.create(file.id, name.encode(), source.id.get_type(), space, plist)
            except (ValueError, RuntimeError):
                continue
            values = source[...]
            made.write(h5s.ALL, h5s.ALL, values, mtype=source.id.get_type())


def read(path: str) -> None:
    with h5py.File(path) as file, h5py.File(f"{path}.values", "w") as values:
        for name, found in file.items():
            raw = np.empty(found.shape, found.dtype)
            found.id.read(h5s.ALL, h5s.ALL, raw, mtype=found.id.get_type())
            values[name] = np.frombuffer(raw.tobytes(), "u1")


assert "tamis" not in sys.modules
tasks = json.loads(Path(sys.argv[1]).read_text())
with h5py.File(tasks["plain"]) as plain:
    for path, filters in tasks["write"].items():
        write(plain, path, filters)
for path in tasks["read"]:
    read(path)
print("read all")
