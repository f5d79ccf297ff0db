"""The meaning of attributes and dimensions by the CF and netCDF conventions, for any file format."""

from __future__ import annotations

from tamis.meaning.roles import DATA, KINDS, Role, roles_of
from tamis.meaning.validity import FILL_ATTRIBUTES, ValidRange, missing_values, valid_range
from tamis.meaning.variables import Packing, Variable, is_known, is_unsigned, numbers, packing_of, text

__all__ = [
    "DATA",
    "FILL_ATTRIBUTES",
    "KINDS",
    "Packing",
    "Role",
    "ValidRange",
    "Variable",
    "is_known",
    "is_unsigned",
    "missing_values",
    "numbers",
    "packing_of",
    "roles_of",
    "text",
    "valid_range",
]


def __dir__() -> list[str]:
    return [*__all__]
