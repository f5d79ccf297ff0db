"""What hdf5plugin makes with SZ3 and SPERR: ``python foreign_files.py FILE``, in a process of its own.

Each dataset has the words that were asked for in an attribute; what it reads as is in the group ``expected``.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import h5py
import hdf5plugin
import numpy as np

logging.disable(logging.WARNING)

# Not small: SZ3 writes past its buffer where it cannot make a small chunk smaller.
SHAPES = [(6000,), (40, 61), (17, 19, 21), (6, 8, 10, 12), (1, 40, 61), (40, 1, 61, 1)]
SZ3 = [{"absolute": 0.5}, {"relative": 0.01}, {"norm2": 3.5}, {"peak_signal_to_noise_ratio": 40}]
SPERR: list[dict[str, Any]] = [
    {"rate": 8},
    {"rate": 7.3},
    {"absolute": 0.1},
    {"absolute": 100},
    {"absolute": 0.25},
    {"peak_signal_to_noise_ratio": 55.5},
    {"absolute": 0.1, "swap": True, "missing_value_mode": 1},
    {"absolute": 3, "missing_value_mode": 2},
]


def main(path: str) -> None:
    """Write every case, then what it reads as."""
    with h5py.File(path, "w") as file:
        for shape in SHAPES:
            axes = sum(extent > 1 for extent in shape)
            for dtype in ("f4", "f8", "u2", "i2", "u4", "i4", "u8", "i8"):
                floats = dtype.startswith("f")
                filters = [hdf5plugin.SZ3(**each) for each in (SZ3 if floats else SZ3[:1])]
                filters += [hdf5plugin.Sperr(**each) for each in SPERR if floats and axes in (2, 3)]
                values = (100 + 20 * np.sin(np.arange(np.prod(shape)) / 90)).reshape(shape).astype(dtype)
                for each in filters:
                    dataset = file.create_dataset(str(len(file)), data=values, chunks=shape, **each)
                    dataset.attrs["asked"] = np.array(each["compression_opts"], "u4")
    with h5py.File(path, "a") as file:
        for name in list(file):
            file[f"expected/{name}"] = file[name][...]


if __name__ == "__main__":
    main(sys.argv[1])
