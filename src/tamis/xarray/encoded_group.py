"""A dataset as it will be stored: xarray's own encoding of times, missing values, packing, text and coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import H5NetCDFStore
from xarray.conventions import encode_dataset_coordinates

from tamis.errors import ParameterError
from tamis.stores.data_model import is_compound


@dataclass(frozen=True, slots=True)
class EncodedGroup:
    """A dataset whose variables have the types and attributes of the file."""

    dataset: Dataset  # The dataset, with the encoding of its variables
    variables: Mapping[str, Variable]  # Encoded variables by name; those of dask arrays are lazy
    attributes: Mapping[str, Any]  # Attributes of the group
    unlimited: frozenset[str]  # Names of unlimited dimensions


def encode_group(dataset: Dataset, unlimited: Collection[str] | None) -> EncodedGroup:
    """Encode a dataset by the conventions of xarray's engine h5netcdf."""
    for name in (*dataset.variables, *dataset.dims):
        _check_name(name)
    for name, variable in dataset.variables.items():
        _refuse_sequences(str(name), variable)
    dims = set(map(str, dataset.dims))
    if unlimited is None:
        names = frozenset(map(str, dataset.encoding.get("unlimited_dims", ())))
        if gone := names - dims:
            warnings.warn(f"no longer unlimited dimensions: {', '.join(sorted(gone))}", UserWarning, stacklevel=5)
        names &= dims
    else:
        names = frozenset([unlimited] if isinstance(unlimited, str) else unlimited)
        if absent := names - dims:
            known = ", ".join(map(str, dataset.dims)) or "none"
            raise ParameterError(f"expected unlimited_dims among the dimensions {known}, got {min(absent)!r}")
    variables, attributes = encode_dataset_coordinates(_with_dask(dataset))
    try:
        encoded, attributes = _Conventions().encode(variables, attributes)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, NotImplementedError) as error:
        raise ParameterError(f"xarray cannot encode the dataset: {error}") from error
    stored = {
        str(name): _stored(str(name), variable, dataset.variables[name].encoding.get("dtype"))
        for name, variable in encoded.items()
    }
    return EncodedGroup(dataset, stored, attribute_values(attributes), names)


class _Conventions(H5NetCDFStore):
    """The changes that xarray's engine h5netcdf makes to variables before storing them."""

    def __init__(self) -> None:
        self.format = "NETCDF4"


def _check_name(name: Hashable) -> None:
    if not isinstance(name, str) or not name or "/" in name:
        raise ParameterError(f"expected names of variables and dimensions as text without slashes, got {name!r}")


def _refuse_sequences(name: str, variable: Variable) -> None:
    """Raise ParameterError if values are sequences or records with sequences, which this engine of xarray lacks."""
    dtype = variable.dtype
    kind = (dtype.metadata or {}).get("vlen", str)
    first = variable[(0,) * variable.ndim].values if dtype.kind == "O" and kind is str and variable.size else None
    if (dtype.kind == "O" and kind is not str) or (first is not None and isinstance(first.item(), np.ndarray)):
        words = "sequences" if kind is str else f"sequences of {kind}"
    elif dtype.kind == "V" and dtype.hasobject:
        words = f"records of {dtype}"
    else:
        return
    raise ParameterError(
        f"{name}: expected numbers, times or text, got {words}: leave it out, ds.drop_vars({name!r})"
    ).at(dataset=name)


def _with_dask(dataset: Dataset) -> Dataset:
    """Return a dataset whose variables of files are dask arrays, so that they are never in memory as a whole."""
    if find_spec("dask") is None:
        return dataset
    result = dataset.copy(deep=False)
    for name, variable in dataset.variables.items():
        if not (variable._in_memory or variable.chunks or name in dataset.xindexes) and variable.ndim:
            blocks = variable.encoding.get("preferred_chunks") or "auto"
            result[name] = (variable.dims, variable.chunk(blocks)._data, variable.attrs, variable.encoding)
    return result


def _stored(name: str, variable: Variable, asked: object) -> Variable:
    """Return an encoded variable with texts as objects, and with the requested type if it is an enumeration."""
    dtype = variable.dtype
    if dtype.kind in "UT":
        variable = variable.astype(object)
    elif dtype.kind == "S" and variable.encoding.get("dtype") is str:
        variable = variable.astype("U").astype(object)
    elif dtype.kind not in "iufO" and dtype != np.dtype("S1") and not is_compound(dtype):
        raise ParameterError(
            f"{name}: expected numbers, times, text, enumerations, complex numbers or records of numbers, which"
            f" netCDF-4 has, got {dtype}"
        )
    attributes = attribute_values(variable.attrs)
    if variable.dtype.kind == "O" and isinstance(fill := attributes.get("_FillValue"), str):
        attributes["_FillValue"] = [fill]  # of the type of the values, NC_STRING
    encoding = dict(variable.encoding)
    if isinstance(asked, np.dtype) and asked == variable.dtype and "enum" in (asked.metadata or ()):
        encoding["dtype"] = asked  # conversions lose parts of a type other than the numbers
    return Variable(variable.dims, variable._data, attributes, encoding)


def attribute_values(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return attributes as netCDF-4 has them: text, lists of texts, or numbers."""
    values: dict[str, Any] = {}
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise ParameterError(f"expected names of attributes as text, got {name!r}")
        array = np.asarray(value)
        if isinstance(value, (str, bytes)):
            values[name] = value
        elif array.dtype.kind in "UST":
            texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.reshape(-1).tolist()]
            values[name] = texts if array.ndim else texts[0]
        elif array.dtype.kind in "iuf" and array.ndim < 2:
            values[name] = array.reshape(-1)[0] if array.size == 1 else array
        else:
            raise ParameterError(
                f"expected the attribute {name!r} to be text, numbers or a list of them, got {value!r}"
            )
    return values
