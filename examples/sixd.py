"""Six axes, the last of which grows: the ``sixd`` case of H5Z-ZFP's documentation, a step at a time.

A simulation computes a 3×3 tensor at each point of a 31×31×31 grid, nine times. Chunks of 31×31×31×1×1×4 have four axes
longer than one, ZFP's limit, and four steps, a whole block. ``python examples/sixd.py [FILE]``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from tamis.hdf5 import Appender, create_dataset

STEP, CHUNKS, STEPS, BOUND = (31, 31, 31, 3, 3), (31, 31, 31, 1, 1, 4), 9, 1e-3


def simulation() -> Iterator[NDArray[np.float64]]:
    """Make a tensor field at the times 1 to 9."""
    axes = [np.linspace(-1, 1, extent) for extent in STEP[:3]]
    x, y, z, i, j = np.ix_(*axes, np.arange(3), np.arange(3))
    for time in range(1, STEPS + 1):
        yield np.sin((i + 1) * x + 0.1 * time) * np.cos((j + 1) * y - 0.1 * time) + z * z * time


def main(path: Path) -> None:
    """Append the steps one by one, and check the bound with h5py."""
    with h5py.File(path, "w") as file:
        target = create_dataset(
            file,
            "tensor",
            (*STEP, 0),
            "f8",
            maxshape=(*STEP, None),
            chunks=CHUNKS,
            filters=f"zfp(accuracy={BOUND})|shuffle|deflate(4)",
        )
        with Appender(target, axis=-1) as appender:
            for number, step in enumerate(simulation(), start=1):
                appender.append(step)
                print(f"step {number}: {appender.waiting} waiting in memory, {target.shape[-1]} in the file")
        # Nine steps are two chunks and a quarter.
        print(f"at the end {appender.partial}")
    with h5py.File(path) as file:
        dataset = file["tensor"]
        print(f"{dataset.shape}, 1/{dataset.nbytes / dataset.id.get_storage_size():.1f}")
        for number, step in enumerate(simulation()):
            error = float(np.abs(dataset[..., number] - step).max())
            assert error <= BOUND, f"expected an error of at most {BOUND}, found {error} in step {number}"


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sixd.h5"))
