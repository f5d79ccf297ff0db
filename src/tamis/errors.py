"""The errors that tamis raises.

::

    TamisError
    ├── ParameterError     (ValueError)  an invalid mode, parameter, notation, type or chunk shape
    ├── DataError          (ValueError)  values that a filter cannot encode
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
    """The base class of all errors of tamis; its text has no control characters.

    Attributes
    ----------
    path
        Path of the file that the error is about; None if there is none or it is not known.
    dataset
        Path of the dataset in that file; None if there is none or it is not known.
    """

    path: str | None = None
    dataset: str | None = None

    def __str__(self) -> str:
        return printable_lines(super().__str__())

    def at(self, *, path: str | os.PathLike[str] | None = None, dataset: str | None = None) -> Self:
        """Record which file and dataset the error is about, unless already recorded, and return the error."""
        self.path = self.path or (None if path is None else os.fspath(path))
        self.dataset = self.dataset or dataset
        return self


class ParameterError(TamisError, ValueError):
    """An invalid mode, parameter, notation, type or chunk shape."""


class DataError(TamisError, ValueError):
    """Values that a filter cannot encode."""


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
    """Record file and dataset in errors that do not have them yet; see `TamisError.at`."""
    try:
        yield
    except TamisError as error:
        error.at(path=path, dataset=dataset)
        raise
