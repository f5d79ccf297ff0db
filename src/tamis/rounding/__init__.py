"""Rounding of values before lossless filters: netCDF's quantization, multiples of a step, and packing.

A rounding is not an HDF5 filter: it changes values before any filter gets them, an attribute of the variable records
it, and every reader can read the result.
"""

from tamis.rounding.kinds import Absolute, BitGroom, BitRound, Granular
from tamis.rounding.pack import PACKING_ATTRIBUTES, Codes, Pack, PackingRange, used_bits
from tamis.rounding.recorded import (
    ALL_KINDS,
    BY_NAME,
    CONTAINER,
    CONTAINER_ATTRIBUTES,
    ERROR_BOUND,
    KINDS,
    ROUNDING_ATTRIBUTES,
    container_attributes,
    container_names,
    is_container,
    recorded_rounding,
    still_needed,
)
from tamis.rounding.rounding_base import Rounded, Rounding, RoundingDict, relative_error

__all__ = [
    "ALL_KINDS",
    "BY_NAME",
    "CONTAINER",
    "CONTAINER_ATTRIBUTES",
    "ERROR_BOUND",
    "KINDS",
    "PACKING_ATTRIBUTES",
    "ROUNDING_ATTRIBUTES",
    "Absolute",
    "BitGroom",
    "BitRound",
    "Codes",
    "Granular",
    "Pack",
    "PackingRange",
    "Rounded",
    "Rounding",
    "RoundingDict",
    "container_attributes",
    "container_names",
    "is_container",
    "recorded_rounding",
    "relative_error",
    "still_needed",
    "used_bits",
]
