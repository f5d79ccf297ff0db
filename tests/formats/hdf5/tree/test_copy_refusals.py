"""What cannot be copied is an error, and a damaged file does not take the process down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DAMAGED = Path(__file__).with_name("damaged-named-type.h5")  # a file made by h5py with a few bits flipped
REPACK = "import sys, tamis; tamis.repack(sys.argv[1], sys.argv[2], {'*': 'zfp(accuracy=0.2)'})"


def test_copy_tree_damaged_named_type_ends_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", REPACK, DAMAGED, tmp_path / "b.h5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr or "tamis.errors." in done.stderr
    assert [path.name for path in tmp_path.iterdir()] in ([], ["b.h5"])
