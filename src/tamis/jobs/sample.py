"""The sample that tamis carries, for the first steps."""

from __future__ import annotations

import os
from pathlib import Path

from tamis.arguments import FLAG, PATH
from tamis.errors import FileError
from tamis.safety import disk_text, write_whole

_FOLDER = Path(__file__).parents[1] / "sample"
_NAME = "cam_ts.nc"


def copy_sample(folder: str | os.PathLike[str] = ".", *, overwrite: bool = False) -> Path:
    """Copy the sample into a folder, and return the path of the copy.

    Parameters
    ----------
    folder
        An existing folder.
    overwrite
        Whether a file of that name is replaced.

    Raises
    ------
    FileError
        If there is such a file and `overwrite` is False, or the copy cannot be written.
    """
    PATH.check("folder", folder)
    FLAG.check("overwrite", overwrite)
    target, source = Path(os.fsdecode(folder), _NAME), _FOLDER / _NAME
    if not target.parent.is_dir():
        raise FileError(f"{target.parent}: is no folder: name one that exists").at(path=target.parent)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise FileError(
            f"{source}: the sample cannot be read ({disk_text(error)}): install tamis from a wheel, or by pip from its"
            " source"
        ).at(path=source) from error
    write_whole(target, content, overwrite=overwrite)
    return target
