"""Readers of the codecs ``scale_offset`` and ``cast_value`` that owe nothing to tamis, and why they are not here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

HAS_CODECS = Version(version("zarr")) >= Version("3.2") and find_spec("cast_value_rs") is not None
NO_CODECS = "zarr before 3.2, which has no codec scale_offset: later ones need Python 3.12, and cast-value-rs"

needs_codecs = pytest.mark.skipif(not HAS_CODECS, reason=NO_CODECS)
"""Marks a test in which zarr-python reads floats by its own codecs."""

_READ = """
import sys, numpy as np, zarr
array = zarr.open_array(sys.argv[1], mode="r")
np.savez(sys.argv[2], values=array[...], fill=array.fill_value)
assert not any(name.partition(".")[0] == "tamis" for name in sys.modules), "tamis was loaded"
"""

_JAVASCRIPT = """
import * as zarr from "zarrita";
import { FileSystemStore } from "@zarrita/storage";
import { writeFileSync } from "node:fs";
const array = await zarr.open(zarr.root(new FileSystemStore(process.argv[2])), { kind: "array" });
const { data, shape } = await zarr.get(array);
writeFileSync(process.argv[3], Buffer.from(data.buffer, data.byteOffset, data.byteLength));
console.log(JSON.stringify({ type: array.dtype, shape }));
"""


def read_by_zarr_python(python: Path, array: Path, out: Path) -> tuple[Any, Any]:
    """Return the values and the fill value that zarr-python reads in a process without tamis."""
    subprocess.run([python, "-c", _READ, array, out], check=True, capture_output=True, text=True, timeout=300)
    with np.load(out) as found:
        return found["values"], found["fill"][()]


def zarrita_folder() -> Path:
    """Return a folder in which Node.js finds zarrita.js; skip without one."""
    folder = os.environ.get("ZARRITA", "")
    if not folder or shutil.which("node") is None:
        pytest.skip("no zarrita.js here: npm install zarrita in a folder, which ZARRITA names, with Node.js 20")
    return Path(folder)


def read_by_zarrita(folder: Path, array: Path, out: Path) -> Any:
    """Return the values that zarrita.js reads."""
    script = folder / "read_packed.mjs"
    script.write_text(_JAVASCRIPT)
    done = subprocess.run(["node", script, array, out], check=True, capture_output=True, text=True, timeout=300)
    about = json.loads(done.stdout)
    return np.fromfile(out, about["type"]).reshape(about["shape"])
