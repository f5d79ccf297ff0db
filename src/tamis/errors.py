"""What tamis raises.

::

    TamisError
    ├── ParameterError     (ValueError)  a mode, parameter, notation, type or chunk shape that is not possible
    ├── DataError          (ValueError)  values that a filter cannot take
    ├── StreamError        (ValueError)  encoded bytes or stored parameters that are damaged, truncated or unknown
    ├── FileError          (OSError)     a file or dataset that cannot be read, written or found
    ├── MissingFilterError (ImportError) a filter that is not installed here, or that tamis cannot encode
    └── BoundError         (ValueError)  stored values that differ from their source by more than the bound
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from tamis.formatting import printable_lines


class TamisError(Exception):
    """Anything that tamis refuses or finds wrong. Its text never has what a terminal would act on.

    Attributes
    ----------
    path
        Of the file that the error is about; None where it is about none, or not known.
    dataset
        Path of the dataset in it; None likewise.
    """

    path: str | None = None
    dataset: str | None = None

    def __str__(self) -> str:
        return printable_lines(super().__str__())

    def at(self, *, path: str | os.PathLike[str] | None = None, dataset: str | None = None) -> Self:
        """Note which file and dataset the error is about, and return it; what was noted before stays."""
        self.path = self.path or (None if path is None else os.fspath(path))
        self.dataset = self.dataset or dataset
        return self


class ParameterError(TamisError, ValueError):
    """A mode, parameter, notation, type or chunk shape that is not possible."""


class DataError(TamisError, ValueError):
    """Values that a filter cannot take."""


class StreamError(TamisError, ValueError):
    """Encoded bytes or stored parameters that are damaged, truncated or unknown."""


class FileError(TamisError, OSError):
    """A file or dataset that cannot be read, written or found."""


class MissingFilterError(TamisError, ImportError):
    """A filter that is not installed here, or that tamis cannot encode."""


class BoundError(TamisError, ValueError):
    """Stored values that differ from their source by more than the bound."""


@contextmanager
def located(*, path: str | os.PathLike[str] | None = None, dataset: str | None = None) -> Iterator[None]:
    """Note in errors which file and dataset they are about, where they do not know it; see `TamisError.at`."""
    try:
        yield
    except TamisError as error:
        error.at(path=path, dataset=dataset)
        raise
