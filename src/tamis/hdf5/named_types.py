"""Types that netCDF-4 has only by name, created for variables: enumerations, complex numbers and records."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from typing import Any

import h5py
import numpy as np
from h5py import h5o, h5t

from tamis.errors import FileError
from tamis.hdf5.tree.links import raw_name
from tamis.store.data_model import EnumType, NamedArray, is_compound

_COMPLEX_NAMES = {"f": "_PFNC_FLOAT_COMPLEX_TYPE", "d": "_PFNC_DOUBLE_COMPLEX_TYPE"}
"""Names of complex types by that of a part, as netCDF4-python has them (``auto_complex``)."""


def named_type(file: h5py.File, variable: NamedArray, dtype: np.dtype[Any], taken: Collection[str]) -> Any:
    """Return the type of a variable whose values have a named type, in its group; None if they have none.

    Parameters
    ----------
    file
        The file.
    variable
        The variable.
    dtype
        Type of the values.
    taken
        Names in the group that a type of records cannot have.

    Raises
    ------
    FileError
        If another type or object has its name.
    """
    if variable.enum is not None:
        return _committed(file, variable, variable.enum.name, _enumeration(variable, variable.enum))
    if not is_compound(dtype):
        return None
    if dtype.kind == "c":
        name = _COMPLEX_NAMES["f" if dtype.itemsize == 8 else "d"]
    else:
        name = f"{posixpath.basename(variable.path)}_t"
        while name in taken:
            name += "_t"
    return _committed(file, variable, name, h5t.py_create(dtype, logical=True))


def _enumeration(variable: NamedArray, enum: EnumType) -> Any:
    datatype = h5t.enum_create(h5t.py_create(np.dtype(variable.dtype.str)))
    for name, value in enum.members.items():
        datatype.enum_insert(name.encode("utf-8", "surrogateescape"), int(value))
    return datatype


def _committed(file: h5py.File, variable: NamedArray, name: str, datatype: Any) -> Any:
    """Return a type of a name in the group of a variable, which is created unless it is there."""
    path, lcpl = raw_name(f"{posixpath.dirname(variable.path).rstrip('/')}/{name}")
    if path not in file.id:
        datatype.commit(file.id, path, lcpl)
        return datatype
    is_type = h5o.get_info(file.id, path).type == h5o.TYPE_NAMED_DATATYPE
    if is_type and (known := h5t.open(file.id, path)).equal(datatype):
        return known
    raise FileError(
        f"{variable.path}: expected the name of its type, {name!r}, for it alone, found another object or other members"
    ).at(dataset=variable.path)
