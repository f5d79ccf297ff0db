"""Check that the target's folder has room for the target."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tamis.errors import FileError
from tamis.formatting import size_text
from tamis.hdf5.lib.damage import reading
from tamis.rewrite.plan import Plan
from tamis.rewrite.sampled.estimate import likely_nbytes, most_nbytes
from tamis.store.array import Store, StoredArray


def check_room(
    folder: Path, source: Store, arrays: Mapping[str, StoredArray], plans: Mapping[str, Plan], removable_nbytes: int
) -> None:
    """Check that a folder has room for the target; its size is estimated by encoding only if space could be short.

    `removable_nbytes` are the bytes of interrupted runs that this run removes before it writes.

    Raises
    ------
    FileError
        If there is no room; names both sizes.
    """
    free = shutil.disk_usage(folder).free + removable_nbytes
    replaced = most = 0
    for path, plan in plans.items():
        with reading(source.path, dataset=path):
            replaced, most = replaced + arrays[path].stored_nbytes, most + most_nbytes(plan, arrays[path])
    others = max(source.nbytes - replaced, 0)
    if free >= others + most:
        return
    likely = others + sum(likely_nbytes(plan, arrays[path]) for path, plan in plans.items())
    if free < likely:
        raise FileError(
            f"{folder}: No space left: expected about {size_text(likely)} of free space, found {size_text(free)}: make"
            " room, or write to another folder"
        ).at(path=folder)
