"""Encoded streams as chunks: the ``zfparr`` case of H5Z-ZFP's tests, as one chunk and as many.

A program that keeps its arrays as fixed-rate streams can store them directly. ``python examples/zfparr.py [FILE]``
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import h5py
import numpy as np

from tamis import zfp
from tamis.hdf5 import create_dataset, write_stream

SHAPE, RATE = (38, 128), zfp.Rate(10)


def main(path: Path) -> None:
    """Store streams as one chunk and as tiles, and read them with h5py."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    values = np.sin(x / 9) * np.cos(y / 7)
    with h5py.File(path, "w") as file:
        # The array is one chunk.
        whole = create_dataset(file, "whole", SHAPE, "f8", chunks=SHAPE, filters=f"zfp({RATE})")
        write_stream(whole, (0, 0), zfp.encode(values, RATE), RATE)
        # There are many tiles; those at the edge are padded to a whole tile, like chunks at the edge.
        tile = (16, 32)
        tiled = create_dataset(file, "tiled", SHAPE, "f8", chunks=tile, filters=f"zfp({RATE})|fletcher32")
        for i, j in product(*(range(0, extent, step) for extent, step in zip(SHAPE, tile, strict=True))):
            part = values[i : i + tile[0], j : j + tile[1]]
            part = np.pad(part, [(0, full - n) for full, n in zip(tile, part.shape, strict=True)], mode="edge")
            write_stream(tiled, (i, j), zfp.encode(part, RATE), RATE)
    with h5py.File(path) as file:
        for name, dataset in file.items():
            error = float(np.abs(dataset[()] - values).max())
            assert error < 0.01, f"expected an error below 0.01, found {error}"
            print(f"{name}: {dataset.id.get_num_chunks()} chunks, largest error {error:.1e}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "zfparr.h5"))
