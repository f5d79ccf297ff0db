"""Types of the numbers in attributes, which JSON does not have: as netCDF-C keeps them in its Zarr stores.

netCDF-C has them in an attribute of each array and group. xarray hides that, but not in arrays of Zarr 3: their types
are in the attribute of their group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

NAME = "_nczarr_attr"
"""The attribute of netCDF-C that has them."""

Types = dict[str, str]

_OF_ARRAYS = "arrays"
_KNOWN = frozenset(("|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8"))


def types_of(attributes: Mapping[str, Any]) -> Types:
    """Return the types of the attributes that are numbers, as readers of netCDF have them, by name."""
    numbers = {
        str(name): value.dtype.newbyteorder("<").str
        for name, value in attributes.items()
        if isinstance(value, (np.generic, np.ndarray))
    }
    return {name: kind.replace("|", "<") for name, kind in numbers.items() if kind in _KNOWN}  # netCDF-C has no "|"


def with_types_of(own: Types, arrays: Mapping[str, Types] | None = None) -> dict[str, Any]:
    """Return the attribute that has the types of an array or group; nothing if there are none.

    Parameters
    ----------
    own
        The types of its own attributes.
    arrays
        Those of the arrays of a group, by name.
    """
    inner = {name: types for name, types in (arrays or {}).items() if types}
    if not own and not inner:
        return {}
    return {NAME: {"types": own, **({_OF_ARRAYS: inner} if inner else {})}}


def known_types(own: object, of_group: object = None, name: str = "") -> Mapping[str, Any]:
    """Return the types of the attributes of an array or group.

    Parameters
    ----------
    own
        Its attribute with types, or whatever there is in its place.
    of_group
        The same of the group of an array.
    name
        Name of the array in the group.
    """
    types = own.get("types") if isinstance(own, dict) else None
    if types is None and isinstance(of_group, dict) and isinstance(arrays := of_group.get(_OF_ARRAYS), dict):
        types = arrays.get(name)
    return types if isinstance(types, dict) else {}


def in_type(value: Any, kind: object) -> Any:
    """Return a number or several in another type; None if that is no type, or does not hold them."""
    if not isinstance(value, (np.generic, np.ndarray)) or not isinstance(kind, str):
        return None
    known = kind.replace(">", "<", 1)
    known = f"|{known[1:]}" if known.endswith("1") else known
    if known not in _KNOWN or (value.dtype.kind == "f" and known[1] != "f"):
        return None
    with np.errstate(all="ignore"):
        converted = np.asarray(value).astype(np.dtype(known).newbyteorder("="))
    if not np.array_equal(converted.astype(value.dtype), value, equal_nan=value.dtype.kind == "f"):
        return None
    return converted if converted.ndim else converted[()]
