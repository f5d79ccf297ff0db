"""Four axes, two of which are noise: the ``highd`` case of H5Z-ZFP's documentation, written in threads and read back.

ZFP encodes up to four axes, and works best if neighbours are alike. Here the second and the fourth axis are shuffled:
chunks of one value along these axes leave ZFP the two smooth ones. ``python examples/highd.py [FILE]``
"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from tamis.hdf5 import write

SHAPE, CHUNKS, BOUND = (256, 128, 32, 16), (256, 1, 32, 1), 1e-3


def field() -> NDArray[np.float64]:
    """Make a smooth field, its second and fourth axis shuffled."""
    rng = np.random.default_rng(0xDEADBEEF)
    axes = [np.linspace(0, np.pi, extent) for extent in SHAPE]
    axes[1], axes[3] = rng.permutation(axes[1]), rng.permutation(axes[3])
    x, y, z, w = np.ix_(*axes)
    result: NDArray[np.float64] = 10 * np.sin(x + 40 * y) * np.cos(2 * z + 20 * w)
    return result


def main(path: Path) -> None:
    """Write the field in two chunk shapes, and check the bound with h5py."""
    values = field()
    with h5py.File(path, "w") as file:
        for name, chunks in (("along the smooth axes", CHUNKS), ("across all axes", (16, 16, 16, 16))):
            dataset = write(file, name, values, filters=f"zfp(accuracy={BOUND})", chunks=chunks)
            ratio = dataset.nbytes / dataset.id.get_storage_size()
            print(f"chunks of {'×'.join(map(str, chunks)):12} {name:22} 1/{ratio:.1f}")
    with h5py.File(path) as file:
        for name, dataset in file.items():
            error = float(np.abs(dataset[()] - values).max())
            assert error <= BOUND, f"expected an error of at most {BOUND}, found {error}"
            print(f"largest error {error:.2e} of {BOUND:g} allowed: {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "highd.h5"))
