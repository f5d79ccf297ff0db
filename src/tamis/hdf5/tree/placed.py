"""Errors that name the object which is copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.errors import FileError
from tamis.formatting import plural
from tamis.hdf5.lib.damage import pass_interrupt


def text_of(path: bytes) -> str:
    """Return a path for messages."""
    return path.decode("utf-8", "backslashreplace")


def subject_of(path: bytes, attribute: bytes | None = None) -> str:
    """Return an object or its attribute in words."""
    return text_of(path) + (f" (attribute {text_of(attribute)!r})" if attribute is not None else "")


class Losses:
    """What a copy cannot have, by the objects that have it in the source."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, subject: str, what: str, fate: str) -> None:
        """Add one of what the copy cannot have, in a word, and what became of it."""
        self._counts[subject, what, fate] += 1

    def notes(self) -> list[str]:
        """Return a line for each object and kind of loss."""
        return [f"{subject}: {plural(count, what)} {fate}" for (subject, what, fate), count in self._counts.items()]


class _PlacedError(FileError):
    """An error that names its object, so that outer blocks do not name theirs."""


@contextmanager
def placed(path: bytes, attribute: bytes | None = None) -> Iterator[None]:
    """Turn any error inside into a FileError that names the object."""
    try:
        yield
    except _PlacedError:
        raise
    except Exception as error:
        pass_interrupt(error)
        raise _PlacedError(f"cannot copy {subject_of(path, attribute)}: {error}").at(dataset=text_of(path)) from error
