"""Packing by xarray itself: the keys of an encoding with which its own arithmetic keeps the bound, by trial."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable, conventions

from tamis import meaning
from tamis.errors import DataError, ParameterError
from tamis.rewrite.new_packing import of_values
from tamis.rounding import ROUNDING_ATTRIBUTES, Codes, Pack

_SHARES = (1.0, 0.99, 0.9)
"""Shares of the bound that are tried as that of the codes: xarray's divisions may leave the nearest one."""

_IN_ATTRIBUTES = (*meaning.FILL_ATTRIBUTES, "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks")
"""Attributes that would have to be written in packed units, which no encoding does."""


def packed_encoding(array: Any, pack: Pack) -> dict[str, Any]:
    """Return the keys with which xarray packs an array within the bound. All values are read, packed and unpacked."""
    _check_attributes(array, pack)
    values = np.asarray(array.values)
    for share in _SHARES:
        tighter = Pack(pack.bound * share, pack.range, pack.outside)
        codes = of_values(tighter, values.dtype, None, {}, [values], grows=True).codes
        number, packed = codes.dtype.type, codes.unpacked.type
        keys = {
            "dtype": codes.dtype,
            "scale_factor": packed(codes.scale),
            "add_offset": packed(codes.offset),
            "_FillValue": number(codes.missing[0][1]),
        }
        if _keeps(values, array.dims, keys, codes, pack.bound):
            return keys
    raise DataError(
        f"{array.name}: expected values that xarray's arithmetic packs within {pack.bound:g}, found one that is not:"
        " save with ds.tamis.to_netcdf, whose packing is exact"
    )


def _check_attributes(array: Any, pack: Pack) -> None:
    """Raise ParameterError for attributes that would be wrong in the file, which an encoding cannot change."""
    packed_before = [name for name in ("scale_factor", "add_offset") if array.encoding.get(name) is not None]
    wrong = [name for name in _IN_ATTRIBUTES if name in array.attrs] + [
        name
        for name in ROUNDING_ATTRIBUTES
        if name in array.attrs and (name != pack.attribute or packed_before or array.attrs[name] != pack.bound)
    ]
    if wrong:
        raise ParameterError(
            f"expected a variable without the attribute {wrong[0]} for {pack}, which no encoding of xarray's writes"
            " anew: save with ds.tamis.to_netcdf, or delete it"
        ).at(filter=pack)


def _keeps(values: NDArray[Any], dims: tuple[Any, ...], keys: dict[str, Any], codes: Codes, bound: float) -> bool:
    """Return whether xarray packs values so that readers unpack them within a bound, in float32 and in float64."""
    encoded = conventions.encode_cf_variable(Variable(dims, values, encoding=dict(keys))).values
    missing = np.isnan(values)
    if encoded.dtype != codes.dtype or not np.array_equal(encoded == keys["_FillValue"], missing):
        return False
    for dtype in {codes.unpacked, np.dtype(np.float64)}:
        error = np.abs(codes.unpack(encoded, dtype)[~missing].astype(np.float64) - values[~missing])
        if not error.max(initial=0.0) <= bound:
            return False
    return True
