"""Make netCDF-4 files with netCDF4's own filters: FOLDER, of values.npz and tasks.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import netCDF4
import numpy as np

folder = Path(sys.argv[1])
tasks = json.loads((folder / "tasks.json").read_text())
values = np.load(folder / "values.npz")
for path, keywords in tasks["files"].items():
    with netCDF4.Dataset(path, "w") as file:
        for name, chunks in tasks["chunks"].items():
            data = values[name]
            if "blosc" in path:  # netCDF's filters are required, and this one fails where it cannot compress
                if data.size < 250:
                    continue
                data = (np.arange(data.size) // 50).reshape(data.shape).astype(data.dtype)
            axes = [f"{name}_{axis}" for axis in range(data.ndim)]
            for axis, extent in zip(axes, data.shape, strict=True):
                file.createDimension(axis, extent)
            endian = "big" if data.dtype.byteorder == ">" else "little"
            made = file.createVariable(
                name,
                data.dtype.newbyteorder("="),
                axes,
                chunksizes=data.shape if "blosc" in path else chunks,
                fill_value=False,
                endian=endian,
                **keywords,
            )
            made.set_auto_mask(False)
            made[...] = data
