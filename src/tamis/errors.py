"""What tamis raises.

::

    TamisError
    ├── ParameterError     (ValueError)  a mode, parameter, notation, type or chunk shape that cannot be
    ├── DataError          (ValueError)  values that a filter cannot take
    ├── StreamError        (ValueError)  encoded bytes or stored parameters that are damaged, truncated or unknown
    ├── FileError          (OSError)     a file or dataset that cannot be read, written or found as asked
    ├── MissingFilterError (ImportError) a filter that is not installed here, or that tamis cannot encode
    └── BoundError         (ValueError)  what was written differs from its source by more than was asked
"""

from __future__ import annotations

from tamis.formatting import printable_lines


class TamisError(Exception):
    """Anything that tamis refuses or finds wrong. Its text never has what a terminal would act on."""

    def __str__(self) -> str:
        return printable_lines(super().__str__())


class ParameterError(TamisError, ValueError):
    """A mode, parameter, notation, type or chunk shape that cannot be."""


class DataError(TamisError, ValueError):
    """Values that a filter cannot take."""


class StreamError(TamisError, ValueError):
    """Encoded bytes or stored parameters that are damaged, truncated or unknown."""


class FileError(TamisError, OSError):
    """A file or dataset that cannot be read, written or found as asked."""


class MissingFilterError(TamisError, ImportError):
    """A filter that is not installed here, or that tamis cannot encode."""


class BoundError(TamisError, ValueError):
    """What was written differs from its source by more than was asked."""
