"""Files that the parent of a forked process was writing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FORK = """
import os, sys
import numpy as np
from h5py import h5p
from tamis.formats.hdf5.lib.files import access_list, create_file, open_source

def new():
    access = access_list()
    access.set_file_locking(False, True)  # as targets are created, whose locks a forked process would keep
    return create_file(sys.argv[1], h5p.create(h5p.FILE_CREATE), access)

left = new()
left.create_dataset("x", data=np.zeros(5))
if child := os.fork():
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
# The same number in the file system, as that of a file which was removed in the meantime.
with new() as file:
    file.create_dataset("x", data=np.arange(5.0))
with open_source(sys.argv[1]) as file:
    assert np.array_equal(file["x"][...], np.arange(5.0))
os._exit(0)
"""


def test_forked_process_writes_and_reads_a_file_with_the_number_of_one_of_its_parent(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORK, tmp_path / "a.h5"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
