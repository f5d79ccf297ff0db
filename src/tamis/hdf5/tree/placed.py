"""Errors that name the object which is copied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tamis.errors import FileError


def text_of(path: bytes) -> str:
    """Return a path for messages."""
    return path.decode("utf-8", "backslashreplace")


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
        subject = text_of(path)
        if attribute is not None:
            subject += f" (attribute {attribute.decode('utf-8', 'backslashreplace')!r})"
        raise _PlacedError(f"cannot copy {subject}: {error}").at(dataset=text_of(path)) from error
