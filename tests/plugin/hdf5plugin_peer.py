"""Write and read with hdf5plugin's H5Z-ZFP, in a folder.

Every dataset of plain.h5 goes into theirs.h5 with its keywords; what ours.h5 decodes to goes into values.h5.
A program of its own, since hdf5plugin's filter is replaced where tamis is imported.
"""

import json
import sys
from pathlib import Path

import h5py
import hdf5plugin

folder = Path(sys.argv[1])
keywords = json.loads((folder / "keywords.json").read_text())
with (
    h5py.File(folder / "plain.h5") as plain,
    h5py.File(folder / "ours.h5") as ours,
    h5py.File(folder / "theirs.h5", "w") as theirs,
    h5py.File(folder / "values.h5", "w") as values,
):
    for name, dataset in plain.items():
        zfp = hdf5plugin.Zfp(**keywords[name])
        theirs.create_dataset(name, data=dataset[...], chunks=dataset.chunks, **zfp)
        values[name] = ours[name][...]
assert "tamis" not in sys.modules
