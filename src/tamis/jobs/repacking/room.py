"""Whether the target's folder has room for the target."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import FileError
from tamis.formatting import size_text
from tamis.hdf5.facts import open_dataset
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.rewriting import Plan, likely_nbytes, most_nbytes

if TYPE_CHECKING:
    import h5py


def check_room(folder: Path, source: Path, file: h5py.File, plans: Mapping[str, Plan], removable_nbytes: int) -> None:
    """Refuse a target that the folder has no room for, which is estimated only where it could be so.

    `removable_nbytes` is what interrupted runs left there and this one removes before it writes.

    Raises
    ------
    FileError
        If it has not; names both sizes.
    """
    free = shutil.disk_usage(folder).free + removable_nbytes
    replaced = most = 0
    for path, plan in plans.items():
        with reading(file.filename, dataset=path):
            dataset = open_dataset(file, path)
            replaced, most = replaced + dataset.id.get_storage_size(), most + most_nbytes(plan, dataset)
    others = max(source.stat().st_size - replaced, 0)
    if free >= others + most:
        return
    likely = others + sum(likely_nbytes(plan, open_dataset(file, path)) for path, plan in plans.items())
    if free < likely:
        raise FileError(
            f"{folder}: No space left: expected about {size_text(likely)} of free space, found {size_text(free)}: make"
            " room, or write to another folder"
        ).at(path=folder)
