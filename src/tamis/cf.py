"""The meaning of attributes and dimensions by the CF and netCDF conventions, for any file format."""

from __future__ import annotations

import warnings
from typing import Any

from tamis import meaning
from tamis.meaning import (
    DATA,
    FILL_ATTRIBUTES,
    KINDS,
    Packing,
    Role,
    ValidRange,
    Variable,
    missing_values,
    packing_of,
    roles_of,
    valid_range,
)

__all__ = [
    "DATA",
    "FILL_ATTRIBUTES",
    "KINDS",
    "Packing",
    "Role",
    "ValidRange",
    "Variable",
    "missing_values",
    "packing_of",
    "roles_of",
    "valid_range",
]

_DEPRECATED = ("is_known", "is_unsigned", "numbers", "text")
"""Internal helpers that were public by mistake."""


def __getattr__(name: str) -> Any:
    if name not in _DEPRECATED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        f"tamis.cf.{name} is deprecated: it is an internal helper, which a later version may move or change",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(meaning, name)


def __dir__() -> list[str]:
    return [*__all__]
