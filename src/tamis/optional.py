"""Packages that extras bring: an error says whether one is absent or cannot be imported, and what to do."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from tamis.errors import MissingFilterError, TamisError
from tamis.library_lock import imported

_FOLDERS = ("site-packages", "dist-packages")


def optional(name: str, absent: str = "") -> Any:
    """Return a module of a package, or of tamis that needs one.

    Parameters
    ----------
    name
        Name of the module.
    absent
        What to say if the package is not installed; empty to raise the ImportError.

    Raises
    ------
    MissingFilterError
        If the package is not installed, or fails while it is imported, as one does that does not fit another package.
    """
    try:
        return imported(name)
    except TamisError:
        raise
    except ImportError as error:
        if not absent:
            raise
        is_itself = error.name is None or error.name.partition(".")[0] == name.partition(".")[0]
        raise MissingFilterError(absent if is_itself else f"{error}: {absent}") from error
    except Exception as error:
        raise MissingFilterError(_failure_text(name, error)) from error


def _failure_text(name: str, error: Exception) -> str:
    """Return in words that a package fails while it is imported: with its error, and the place that raises it."""
    return (
        f"{name} is installed, but cannot be imported: {type(error).__name__}: {error}{_place_of(error)}: install"
        f" versions that fit each other, pip install --upgrade {name.partition('.')[0]}; tamis doctor tries them all"
    )


def _place_of(error: Exception) -> str:
    """Return the module that raises an error; empty if no package does."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        parts = PurePath(trace.tb_frame.f_code.co_filename).parts
        folder = next((at for at, part in enumerate(parts) if part in _FOLDERS), None)
        if folder is not None and parts[folder + 1] != "tamis":
            place = f" (raised by {'/'.join(parts[folder + 1 :])})"
        trace = trace.tb_next
    return place
