"""A damaged chunk in a dataset that gets other chunk shapes ends the run, also with several threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

_RUN = """if True:
    import tamis
    try:
        tamis.repack("source.h5", "target.h5", {"x": "deflate(1)"}, chunks={"x": (4, 32, 32)}, threads=2)
    except tamis.FileError as error:
        print(error)
"""


def test_damaged_chunk_does_not_stop_threads_for_ever(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((16, 128, 128)).astype("f4")
    with h5py.File(tmp_path / "source.h5", "w") as file:
        dataset = file.create_dataset("x", data=values, chunks=(1, 128, 128), compression="gzip")
        offset = dataset.id.get_chunk_info(9).byte_offset
    with (tmp_path / "source.h5").open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"damaged!")
    done = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert "/x" in done.stdout
