"""What attributes mean for values in the CF and netCDF conventions: roles, packing, valid ranges, missing values."""

from __future__ import annotations

from tamis.meaning.missing import NONE_MISSING, Missing
from tamis.meaning.roles import DATA, KINDS, Role, roles_of
from tamis.meaning.times import TIME_ATTRIBUTES, same_times, usual_calendar
from tamis.meaning.variables import (
    FILL_ATTRIBUTES,
    Packing,
    PackingDict,
    ValidRange,
    Variable,
    asked_bound,
    is_known,
    is_unsigned,
    missing_values,
    numbers,
    packing_of,
    text,
    unpacked_type,
    valid_range,
)

__all__ = [
    "DATA",
    "FILL_ATTRIBUTES",
    "KINDS",
    "NONE_MISSING",
    "TIME_ATTRIBUTES",
    "Missing",
    "Packing",
    "PackingDict",
    "Role",
    "ValidRange",
    "Variable",
    "asked_bound",
    "is_known",
    "is_unsigned",
    "missing_values",
    "numbers",
    "packing_of",
    "roles_of",
    "same_times",
    "text",
    "unpacked_type",
    "usual_calendar",
    "valid_range",
]
