"""A variable in terms of the conventions: attributes as text or numbers, packing, valid range, missing values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from tamis.arguments import ATTRIBUTES, DTYPE, MAPPING, TEXT, Kind
from tamis.rounding import CONTAINER_ATTRIBUTES, ERROR_BOUND, PACKING_ATTRIBUTES, ROUNDING_ATTRIBUTES

Attributes = Mapping[str, Any]
"""Attributes by name: text, numbers or arrays of them; values of other types are ignored."""

_ATTRIBUTES = Kind(ATTRIBUTES.words, MAPPING.fits)  # its names are not read: libraries read attributes one by one

_OF_VALUES = ("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "actual_range", "_Unsigned")
_OF_UNITS = ("scale_factor", "add_offset", "units", "standard_name", "axis", "cartesian_axis", "_CoordinateAxisType")
_OF_OTHERS = ("coordinates", "bounds", "climatology", "formula_terms", "cell_measures", "grid_mapping")
_OF_ROLES = ("ancillary_variables", "flag_values", "flag_masks", "cf_role", "compress", "geometry")
_OF_GEOMETRIES = ("instance_dimension", "sample_dimension", "node_count", "part_node_count", "interior_ring", "nodes")
_OF_ROUNDINGS = (*ROUNDING_ATTRIBUTES, ERROR_BOUND, *CONTAINER_ATTRIBUTES)
_KNOWN = frozenset(_OF_VALUES + _OF_UNITS + _OF_OTHERS + _OF_ROLES + _OF_GEOMETRIES + _OF_ROUNDINGS)
_KNOWN_ENDINGS = ("_coordinates", "_connectivity")  # attributes of a mesh


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a file.

    Parameters
    ----------
    path
        Absolute path, with ``/`` between groups.
    shape
        Slowest axis first.
    dtype
        Type of the stored values; None if they are not numbers.
    dimensions
        Path of the dimension of each axis; None if it is not known.
    attributes
        At least those for which `tamis.meaning.is_known` is True.
    is_scale
        Whether the variable is a dimension scale.
    is_enum
        Whether the values are members of an enumeration.
    """

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    dimensions: tuple[str | None, ...] = ()
    attributes: Attributes = field(default_factory=dict)
    is_scale: bool = False
    is_enum: bool = False

    @property
    def name(self) -> str:
        """The path without the slash of the root group, as people write it."""
        return self.path[1:] if self.path.count("/") == 1 else self.path


def is_known(name: str) -> bool:
    """Return whether this package uses an attribute."""
    TEXT.check("name", name)
    return name in _KNOWN or name.endswith(_KNOWN_ENDINGS)


def _attribute(attributes: Attributes, name: str) -> Any:
    """Return an attribute; None if it does not exist. Files have many: the arguments are looked at after an error."""
    try:
        return attributes.get(name)
    except (AttributeError, TypeError):
        _ATTRIBUTES.check("attributes", attributes)
        TEXT.check("name", name)
        raise


def text(attributes: Attributes, name: str) -> str:
    """Return an attribute as text; empty if it does not exist or is not text."""
    value = _attribute(attributes, name)
    if isinstance(value, np.ndarray):
        value = value.reshape(-1)[0] if value.size == 1 else None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else ""


def numbers(attributes: Attributes, name: str) -> NDArray[Any]:
    """Return the numbers of an attribute as a 1-D array; empty if it has no real numbers."""
    value = _attribute(attributes, name)
    if not isinstance(value, (int, float, np.generic, np.ndarray, list, tuple)) or isinstance(value, bool):
        return np.empty(0)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)
    return array.reshape(-1) if array.dtype.kind in "iuf" else np.empty(0)


def asked_bound(attributes: Attributes) -> float | None:
    """Return the error that was asked for, in units of the variable, where its filters record a larger tolerance.

    None if the attributes record none, or no finite number above 0.
    """
    found = numbers(attributes, ERROR_BOUND)
    return float(found[0]) if found.size == 1 and 0 < found[0] < math.inf else None


def is_unsigned(attributes: Attributes) -> bool:
    """Return whether the attribute ``_Unsigned`` makes signed integers unsigned."""
    return text(attributes, "_Unsigned").strip().lower() == "true"


class PackingDict(TypedDict):
    """A packing in JSON."""

    scale_factor: float
    add_offset: float


@dataclass(frozen=True, slots=True)
class Packing:
    """The relation of stored values to values in the units of a variable."""

    # The attributes ``scale_factor``, which is not 0, and ``add_offset``
    scale: float = 1.0
    offset: float = 0.0

    def stored_bound(self, bound: float) -> float:
        """Return the largest bound of stored values, to 15 digits, that keeps a bound of unpacked values."""
        size = abs(self.scale)
        stored = _in_15_digits(bound / size)
        if not math.isfinite(stored) or (stored == 0) != (bound == 0):
            raise OverflowError(f"{bound:g} / {size:g}")
        while self.unpacked_error(stored) > bound:
            stored = math.nextafter(stored, 0)
        return stored

    def unpacked_error(self, error: float) -> float:
        """Return an error or bound of stored values in units of the unpacked ones, to 15 digits."""
        return _in_15_digits(error * abs(self.scale))

    def unpacked(self, value: Any) -> Any:
        """Return a stored value, or an array of them, unpacked."""
        return value * self.scale + self.offset

    @property
    def stored_zero(self) -> float:
        """The stored value, a whole number or not, that means 0."""
        return -self.offset / self.scale

    def to_dict(self) -> PackingDict:
        """Return the content of the JSON object."""
        return {"scale_factor": self.scale, "add_offset": self.offset}

    def __str__(self) -> str:
        scale = f"scale_factor {self.scale:.9g}" if self.scale != 1 else ""
        offset = f"add_offset {self.offset:.9g}" if self.offset else ""
        return " and ".join(filter(None, (scale, offset)))


def _in_15_digits(value: float) -> float:
    """Round off the last bits, where products and quotients of decimal fractions are inexact: 3 * 0.1 is 0.3."""
    return float(f"{value:.15g}")


def packing_of(attributes: Attributes) -> Packing | None:
    """Return how values are packed; None if they are not, or if the attributes are not single finite numbers."""
    factors: list[float] = []
    for name, default in zip(PACKING_ATTRIBUTES, (1.0, 0.0), strict=True):
        values = numbers(attributes, name)
        if name in attributes and (values.size != 1 or not math.isfinite(float(values[0]))):
            return None
        factors.append(float(values[0]) if values.size else default)
    scale, offset = factors
    # With a scale whose inverse is infinite, no value can be packed.
    if (scale, offset) == (1.0, 0.0) or not scale or not math.isfinite(offset / scale) or not math.isfinite(1 / scale):
        return None
    return Packing(scale, offset)


def unpacked_type(attributes: Attributes, dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the type of packed integers in units of their variable: that of their attributes; None for others."""
    if dtype.kind not in "iu" or is_unsigned(attributes) or packing_of(attributes) is None:
        return None
    unpacked = _factor_type(attributes)
    if unpacked.kind == "f" and unpacked.itemsize in (4, 8):
        return unpacked.newbyteorder("=")
    return np.dtype(np.float64)


def _factor_type(attributes: Attributes) -> np.dtype[Any]:
    """Return the common type of the attributes that pack values, at least one of which has a number."""
    factors = (numbers(attributes, name) for name in PACKING_ATTRIBUTES)
    return np.result_type(*(factor.dtype for factor in factors if factor.size))


NON_COORDINATE = "_nc4_non_coord_"
"""Prefix, in HDF5, of a variable that has the name of a dimension without being its coordinate; no reader shows it."""

HISTORY = "history"

_OWN = "tamis "
"""Beginning of the lines that tamis adds."""

_MOST_HISTORY_NBYTES = 60000
"""HDF5 stores no larger attributes in the oldest of its file formats."""


def with_line(attributes: Attributes, line: str) -> str:
    """Return the history of a file with an additional line, from the attributes of its root group; empty for no change.

    Only a file that has a history, or says which conventions it follows, gets one, and only if it is not too long.
    """
    before = text(attributes, HISTORY)
    has_place = bool(before) if HISTORY in attributes else "Conventions" in attributes
    if not line or not has_place:
        return ""
    after = f"{line}\n{before}" if before else line
    return after if len(after.encode("utf-8", "surrogateescape")) <= _MOST_HISTORY_NBYTES else ""


def added_line(before: str, after: str) -> str:
    """Return the lines that tamis added before a history; empty if it changed in any other way."""
    line = after.removesuffix(f"\n{before}")
    is_own = before and line != after and all(part.startswith(_OWN) for part in line.split("\n"))
    return line if is_own else ""


FILL_ATTRIBUTES = ("_FillValue", "missing_value")
"""Attributes whose values mark missing ones."""

_CLOSE = 1e-9
"""Relative distance from an integer within which a limit, packed again, is taken for that integer."""


class ValidRange(NamedTuple):
    """Smallest and largest valid stored value, of the type of the data; None if there is no limit."""

    low: Any = None
    high: Any = None


def missing_values(
    attributes: Attributes, dtype: np.dtype[Any], fill: NDArray[Any] | None = None
) -> tuple[np.generic, ...]:
    """Return the finite values that mark missing ones: ``_FillValue``, ``missing_value`` and the fill value.

    A fill value of 0 counts only if an attribute names it, because formats set it by default.

    Parameters
    ----------
    attributes
        Attributes of the variable.
    dtype
        Type of the stored values, in native byte order.
    fill
        The fill value of the storage, if one was chosen.
    """
    DTYPE.check("dtype", dtype)
    candidates = [
        value for name in FILL_ATTRIBUTES for value in _as_stored(numbers(attributes, name), dtype, attributes)
    ]
    if fill is not None and fill.dtype.kind in "iuf":
        candidates += [value for value in _as_stored(fill.reshape(-1), dtype, {}) if value != 0]
    unique: list[np.generic] = []
    for value in candidates:
        if np.isfinite(value) and value not in unique:
            unique.append(value)
    return tuple(unique)


def valid_range(attributes: Attributes, dtype: np.dtype[Any]) -> ValidRange:
    """Return the limits of valid values, by ``valid_range``, or else ``valid_min`` and ``valid_max``.

    The limits are in stored units, unless they have the type of the unpacked values and that is wider than the stored
    type, as in the NetCDF Users Guide. Limits are ignored if they leave no value valid, and for ``_Unsigned`` integers,
    whose order differs.

    Parameters
    ----------
    attributes
        Attributes of the variable.
    dtype
        Type of the stored values, in native byte order.
    """
    DTYPE.check("dtype", dtype)
    if dtype.kind not in "iuf" or is_unsigned(attributes):
        return ValidRange()
    limits = _limits(attributes)
    low, high = (_stored_limit(limit, attributes, dtype) for limit in limits)
    packing = packing_of(attributes)
    if packing and packing.scale < 0 and any(_is_unpacked(limit, attributes, dtype) for limit in limits):
        low, high = high, low
    valid = ValidRange(_rounded(low, dtype, up=True), _rounded(high, dtype, up=False))
    if valid.low is not None and valid.high is not None and valid.low > valid.high:
        return ValidRange()
    return valid


def _limits(attributes: Attributes) -> list[NDArray[Any]]:
    """Return the smallest and the largest valid value that attributes give, each as an array, empty for none."""
    both = numbers(attributes, "valid_range")
    if both.size == 2:
        return [both[:1], both[1:]]
    limits = [numbers(attributes, name) for name in ("valid_min", "valid_max")]
    return [limit if limit.size == 1 else limit[:0] for limit in limits]


def _is_unpacked(limit: NDArray[Any], attributes: Attributes, dtype: np.dtype[Any]) -> bool:
    """Return whether a limit has the type of the unpacked values, which must be wider than that of stored ones."""
    if packing_of(attributes) is None or not limit.size:
        return False
    unpacked = _factor_type(attributes)
    wider = (unpacked.kind == "f" and dtype.kind != "f") or unpacked.itemsize > dtype.itemsize
    return bool(wider and limit.dtype == unpacked)


def _stored_limit(limit: NDArray[Any], attributes: Attributes, dtype: np.dtype[Any]) -> Any:
    """Return a limit in stored units, as a number of any type; None if there is no limit."""
    if not limit.size:
        return None
    value = limit[0].item()
    packing = packing_of(attributes)
    if packing is not None and _is_unpacked(limit, attributes, dtype):
        value = (float(value) - packing.offset) / packing.scale
        if dtype.kind != "f" and math.isfinite(value) and abs(value - round(value)) <= _CLOSE * max(1, abs(value)):
            value = round(value)
    return None if value != value else value


def _rounded(limit: Any, dtype: np.dtype[Any], *, up: bool) -> Any:
    """Round a limit to the type of the data: to the nearest float, or to the next integer inside the range."""
    if limit is None:
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            number = dtype.type(limit)
        return number if np.isfinite(number) else None
    if math.isinf(limit):
        return None
    whole = math.ceil(limit) if up else math.floor(limit)
    bounds = np.iinfo(dtype)
    return dtype.type(whole) if bounds.min <= whole <= bounds.max else None


def _as_stored(values: NDArray[Any], dtype: np.dtype[Any], attributes: Attributes) -> list[Any]:
    """Return values of an attribute in the type of the data, without those that do not fit."""
    is_same_size = values.dtype.kind == "u" and dtype.kind == "i" and values.itemsize == dtype.itemsize
    if is_same_size and is_unsigned(attributes):
        return list(values.astype(values.dtype.newbyteorder("=")).view(dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        stored = values.astype(dtype)
    # A missing_value of double type, such as 1e20, means the nearest float; an integer has to be exact.
    fits = stored == values if dtype.kind != "f" else np.ones(stored.shape, bool)
    return list(stored[fits])
