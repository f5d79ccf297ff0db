"""The sample that tamis carries, for the first steps."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tamis.arguments import FLAG, PATH
from tamis.errors import FileError
from tamis.safety import disk_text, write_whole

_FOLDER = Path(__file__).parents[1] / "sample"
_NAME = "cam_ts.nc"


def copy_sample(folder: str | os.PathLike[str] = ".", *, overwrite: bool = False) -> Path:
    """Copy the sample into a folder, and return the path of the copy, which may be there already.

    Parameters
    ----------
    folder
        An existing folder.
    overwrite
        Whether a file of that name is replaced.

    Raises
    ------
    FileError
        If there is another file of that name and `overwrite` is False, or the copy cannot be written.
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
    if not _has(target, content):
        write_whole(target, content, overwrite=overwrite)
    return target


def _has(target: Path, content: bytes) -> bool:
    """Return whether a file has this content, as after an earlier copy."""
    with suppress(OSError):
        return target.stat().st_size == len(content) and target.read_bytes() == content
    return False
