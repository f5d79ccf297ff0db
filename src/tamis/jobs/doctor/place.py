"""What the file system of a folder can do of what tamis and HDF5 ask."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tamis.formatting import size_text
from tamis.jobs.doctor.child import tried
from tamis.jobs.doctor.result import Finding
from tamis.safety import disk_text
from tamis.system import can_tell, exchanges_at_once, file_system_of, lock_at_once, opened, sync_file

_LITTLE_NBYTES = 100_000_000


def examine_place(folder: str) -> tuple[dict[str, str], list[Finding]]:
    """Return what was found in a folder, where nothing is left, and what is wrong."""
    facts = {"folder": os.path.abspath(folder)}
    if not os.path.isdir(folder):
        return facts, [Finding("problem", "folder", f"{folder} is no folder", "name one that exists")]
    facts["file system"] = file_system_of(Path(folder)) or "not known"
    usage = shutil.disk_usage(folder)
    facts["free"] = size_text(usage.free)
    found = []
    if usage.total and usage.free < _LITTLE_NBYTES:  # what is no disk has no room at all
        found.append(
            Finding(
                "problem",
                "folder",
                f"only {size_text(usage.free)} are free in {folder}",
                "make room, or use another one",
            )
        )
    try:
        # A name that later runs of tamis remove, if this one is killed.
        with tempfile.TemporaryDirectory(prefix=".tamis-doctor-", dir=folder) as name:
            tried_facts, tried_findings = _try(Path(name))
    except OSError as error:
        cure = "choose a folder that you may write, such as your home folder"
        return facts, [
            *found,
            Finding("problem", "folder", f"nothing can be written in {folder}: {disk_text(error)}", cure),
        ]
    return facts | tried_facts, [*found, *tried_findings]


def _try(folder: Path) -> tuple[dict[str, str], list[Finding]]:
    file, other, link = folder / "a", folder / "b", folder / "c"
    file.write_bytes(b"a")
    other.write_bytes(b"b")
    found = []
    with opened(file) as first, opened(file) as second:
        locks = lock_at_once(first) is True and lock_at_once(second) is False
    if not locks:
        found.append(
            Finding(
                "note",
                "locks",
                "this file system does not keep locks: two runs that write the same target do not see each other",
                "write each target by one run at a time",
            )
        )
    (by_hdf5,) = tried("locked", [str(folder / "d.h5")])
    if by_hdf5.error:
        found.append(
            Finding(
                "problem",
                "locks",
                f"HDF5 cannot lock files here ({by_hdf5.error}), so h5py and netCDF4 may refuse to open them",
                "export HDF5_USE_FILE_LOCKING=BEST_EFFORT",
            )
        )
    exchanged = exchanges_at_once(file, other)
    sync_file(file)
    facts = {
        "locks": f"{_words(locks)}, HDF5's {_words(not by_hdf5.error)}",
        "hard links": _words(_links(file, link)),
        "exchange": "in one step" if exchanged else "in three steps: readers may find no folder for a moment",
        "writers seen": _words(can_tell(file)),
    }
    return facts, found


def _links(file: Path, link: Path) -> bool:
    try:
        os.link(file, link)
    except OSError:
        return False
    return True


def _words(works: bool) -> str:
    return "yes" if works else "no"
