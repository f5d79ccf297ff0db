"""Create a dataset of one chunk as told: PATH [DTYPE, SHAPE, CD_VALUES, CHUNK_BYTES, MASK].

In a process without filter 32013, which is optional here, HDF5 takes any cd_values for it.
"""

import json
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

dtype, shape, values, chunk, mask = json.loads(sys.argv[2])
plist = h5p.create(h5p.DATASET_CREATE)
plist.set_chunk(tuple(shape))
plist.set_filter(32013, 1, tuple(values))
with h5py.File(sys.argv[1], "w") as file:
    kind = h5t.py_create(np.dtype(dtype), logical=True)
    dataset = h5d.create(file.id, b"v", kind, h5s.create_simple(tuple(shape)), plist)
    dataset.write_direct_chunk((0,) * len(shape), bytes.fromhex(chunk), mask)
