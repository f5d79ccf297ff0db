"""Make files with PyTables' own filters: FOLDER, of values.npz and tasks.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import tables

folder = Path(sys.argv[1])
tasks = json.loads((folder / "tasks.json").read_text())
values = np.load(folder / "values.npz")
for path, keywords in tasks["files"].items():
    with tables.open_file(path, "w", filters=tables.Filters(**keywords)) as file:
        for name, chunks in tasks["chunks"].items():
            file.create_carray("/", name, obj=values[name], chunkshape=chunks)
