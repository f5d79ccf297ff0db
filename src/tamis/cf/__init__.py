"""The meaning of attributes and dimensions by the CF and netCDF conventions, for any file format."""

from __future__ import annotations

from tamis.cf.packing import Packing, packing_of
from tamis.cf.roles import DATA, KINDS, Role, roles_of
from tamis.cf.validity import FILL_ATTRIBUTES, ValidRange, missing_values, valid_range
from tamis.cf.variables import Variable, is_known, is_unsigned, numbers, text

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
