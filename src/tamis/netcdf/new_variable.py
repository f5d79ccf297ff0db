"""Create a netCDF4 variable with filters, in one call that checks everything before it creates anything."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from tamis.arguments import WHOLES, Kind
from tamis.errors import ParameterError, located
from tamis.filters import ChunkType
from tamis.netcdf import define
from tamis.netcdf.define import Requested, check_order, requested_filters
from tamis.netcdf.library import named_error, netcdf4
from tamis.netcdf.provided_filters import status_of
from tamis.netcdf.variable import HDF5, NCZARR, OpenedGroup, availability_error, group_handle, variable_handle
from tamis.pipeline import Pipeline
from tamis.rewrite.new_packing import NewPacking, of_range, packed
from tamis.rewrite.values import growing_chunks
from tamis.rounding import Pack

_BYTE_ORDERS = {"<": "little", ">": "big"}


_NAME = Kind("a name", lambda value: isinstance(value, str) and value != "")
_SIZES = Kind("one whole number for each axis", lambda value: WHOLES.fits(np.atleast_1d(value)))
_ENDIAN = Kind(
    "'native', 'little' or 'big'", lambda value: isinstance(value, str) and value in ("native", "little", "big")
)


def create_variable(
    dataset: Any,
    name: str,
    dtype: Any,
    dimensions: Sequence[Any] | str = (),
    filters: object = "none",
    *,
    chunksizes: Sequence[int] | None = None,
    fill_value: Any = None,
    endian: str = "native",
) -> Any:
    """Create a variable with filters. If anything is wrong with them, nothing is created.

    Parameters
    ----------
    dataset
        A netCDF4 dataset or group, open for writing, of the format NETCDF4 or NETCDF4_CLASSIC.
    name, dtype, dimensions, fill_value, endian
        As for netCDF4's ``createVariable``.
    filters
        A `Pipeline`, a filter, or text of either, such as ``"zfp(accuracy=0.1)|fletcher32"``. netCDF-C itself applies
        the rounding of ``"bitround(keepbits=7)|shuffle|deflate(4)"``, and only protects ``_FillValue``.
        ``"pack(bound=0.1,range=200:330)|shuffle|deflate(4)"`` creates integers with the attributes of packing; floats
        assigned to the returned variable are packed and proven here, NaN and masked ones as missing. `dtype` and
        `fill_value` are those of unpacked values.
    chunksizes
        Chunk shape; by default at most 1 MiB, in whole blocks of 4 for zfp, and 64 KiB or more if a dimension is
        unlimited.

    Returns
    -------
    netCDF4.Variable

    Raises
    ------
    ParameterError
        If the text is wrong, a filter cannot encode such chunks, netCDF would run the filters in another order, or
        packing has no range.
    NetcdfError
        With the status of netCDF-C: NC_EPERM, NC_ENOTNC4, NC_ENOFILTER, NC_EFILTER, NC_EINVAL.
    """
    _NAME.check("name", name)
    _SIZES.check_optional("chunksizes", chunksizes)
    _ENDIAN.check("endian", endian)
    group = group_handle(dataset)
    label = f"{group.path}: {name}"
    with located(path=group.path, dataset=name):
        requested = requested_filters(filters)
        axes = _dimensions(dataset, name, dimensions)
        if not requested.requests and requested.rounding is None:
            return dataset.createVariable(
                name, dtype, axes, chunksizes=chunksizes, fill_value=fill_value, endian=endian
            )
        if isinstance(pack := requested.rounding, Pack):
            if fill_value is False:
                raise ParameterError(f"expected a fill value for {pack}, or none, got False").at(filter=pack)
            packing = of_range(pack, _numpy_type(dtype) or np.dtype(object), fill_value, {})
            requested, dtype, fill_value = replace(requested, rounding=None), packing.codes.dtype, packing.fill[()]
        else:
            packing = None
        new = _NewVariable(dataset, group, name, dtype, axes)
        new.check_place()
        with located(label):
            chunk = new.chunk_type(chunksizes, fill_value, endian, Pipeline(requested.stages or ()))
            _check_filters(group, name, requested, chunk)
    endian = _BYTE_ORDERS.get(chunk.dtype.byteorder, endian)
    variable = new.create(requested, chunksizes=chunk.shape, fill_value=fill_value, endian=endian)
    return variable if packing is None else _packed_variable(variable, packing)


@dataclass(frozen=True, slots=True)
class _NewVariable:
    """A variable before it is created; see `create_variable`."""

    dataset: Any
    group: OpenedGroup
    name: str
    dtype: Any
    dimensions: tuple[Any, ...]

    def check_place(self) -> None:
        """Raise NetcdfError if the dataset cannot have such a variable with filters."""
        kind = self.group.format
        if kind not in (HDF5, NCZARR):
            self._refuse("NC_ENOTNC4", f"a netCDF-4 dataset, got {self.dataset.data_model}, which has no filters")
        if self.group.is_read_only:
            self._refuse("NC_EPERM", "a dataset open for writing, got a read-only one")
        if _numpy_type(self.dtype) is None:
            text = define.VARYING.format("strings or values of a vlen type")
            raise self.group.error(named_error("NC_EFILTER", text), self.name)
        if self.name in self.dataset.variables:
            self._refuse("NC_ENAMEINUSE", "a new name, got that of an existing variable")
        if not self.dimensions:
            self._refuse("NC_EINVAL", "a variable with dimensions, got a scalar, which has no chunks to filter")

    def _refuse(self, code: str, expected: str) -> NoReturn:
        raise self.group.error(named_error(code, f"expected {expected}"), self.name)

    def chunk_type(self, chunksizes: Any, fill_value: Any, endian: str, pipeline: Pipeline) -> ChunkType:
        """Return type and shape of the chunks."""
        kind = np.dtype(_numpy_type(self.dtype))
        if endian in ("little", "big"):
            kind = kind.newbyteorder("<" if endian == "little" else ">")
        fill = netcdf4().default_fillvals.get(kind.str[1:])
        if fill_value is not None and fill_value is not False and not isinstance(fill_value, str):
            fill = fill_value
        _check_fill(fill if isinstance(fill_value, str) and fill_value == "default" else fill_value, kind)
        most = tuple(None if dimension.isunlimited() else len(dimension) for dimension in self.dimensions)
        if chunksizes is None:
            shape = tuple(map(len, self.dimensions))
            return ChunkType(kind, growing_chunks(shape, most, kind.itemsize, pipeline, fill))
        chunks = tuple(map(int, np.atleast_1d(chunksizes)))
        if len(chunks) != len(most) or any(step < 1 for step in chunks):
            raise ParameterError(f"expected {len(most)} chunk sizes of 1 or more, got {chunks}")
        fitting = tuple(step if end is None else min(step, end) for step, end in zip(chunks, most, strict=True))
        if fitting != chunks:
            raise ParameterError(f"expected chunks that fit in the dimensions, got {chunks}: use {fitting}")
        return ChunkType(kind, chunks)

    def create(self, requested: Requested, **settings: Any) -> Any:
        """Create the variable with its filters."""
        arguments = (self.dtype, self.dimensions)
        if self.dataset.data_model != "NETCDF4_CLASSIC":
            variable = self.dataset.createVariable(self.name, *arguments, **settings)
            define.define(variable_handle(variable), requested)
            return variable
        # createVariable would end define mode, after which filters are refused.
        module = netcdf4()
        self.dataset._redef()
        try:
            pending = module.Variable(_InDefineMode(self.dataset), self.name, *arguments, **settings)
            variable = module.Variable(
                self.dataset, self.name, *arguments, id=pending._varid, endian=settings["endian"]
            )
            define.define(variable_handle(variable), requested)
        finally:
            self.dataset._enddef()
        self.dataset.variables[self.name] = variable
        return variable


def _packed_variable(variable: Any, packing: NewPacking) -> Any:
    """Give a new variable of integers the attributes of packing; return the same variable, which packs floats.

    netCDF4-python packs by itself, too, but values without a code wrap around there, and NaN becomes any code.
    """
    group, name = variable.group(), variable.name
    variable.setncatts({key: value for key, value in packing.attributes.items() if key != "_FillValue"})

    class PackedVariable(netcdf4().Variable):  # type: ignore[misc]
        def __setitem__(self, elements: Any, data: Any) -> None:
            if not self.scale:
                super().__setitem__(elements, data)
                return
            values = data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
            if values.dtype.kind != "f":
                values = values.astype(np.float64)
            with located(f"{group.filepath()}: {name}", dataset=name):
                codes = packed(packing.codes, values)
            mask = self.mask
            self.set_auto_maskandscale(False)
            try:
                super().__setitem__(elements, codes)
            finally:
                self.set_auto_scale(True)
                self.set_auto_mask(mask)

    result = PackedVariable(
        group, name, variable.dtype, variable.get_dims(), id=variable._varid, endian=variable.endian()
    )
    group.variables[name] = result
    return result


class _InDefineMode:
    """A dataset of the classic model that netCDF4's Variable treats as one without define mode."""

    data_model = "NETCDF4"
    keepweakref = False

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


def _numpy_type(dtype: Any) -> np.dtype[Any] | None:
    """Return the type of values of a fixed size, None if their lengths vary."""
    module = netcdf4()
    if dtype is str or isinstance(dtype, module.VLType):
        return None
    is_named = isinstance(dtype, (module.CompoundType, module.EnumType))
    with suppress(TypeError):
        kind = np.dtype(dtype.dtype if is_named else dtype)
        if is_named or kind.kind in "iucOUS" or kind.str[1:] in ("f4", "f8"):
            return None if kind.kind in "OUS" and kind.str[1:] != "S1" else kind
    raise ParameterError(f"expected a type of netCDF4, got {dtype!r}")


def _check_fill(fill_value: Any, kind: np.dtype[Any]) -> None:
    """Raise ParameterError if a type cannot hold a fill value: netCDF4 notices when the variable is there."""
    if fill_value is not None and fill_value is not False:
        try:
            np.asarray(fill_value).astype(kind).reshape(())
        except (TypeError, ValueError, OverflowError) as error:
            raise ParameterError(f"expected a fill value that {kind} can hold, got {fill_value!r}") from error


def _check_filters(group: OpenedGroup, name: str, requested: Requested, chunk: ChunkType) -> None:
    """Raise an error if the filters cannot be defined for such chunks."""
    check_order(name, (), requested.requests, zarr=group.format == NCZARR)
    if requested.stages is not None:
        Pipeline(requested.stages).check(chunk)
    if requested.rounding is not None:
        requested.rounding.check(chunk.dtype)
    for request in requested.requests:
        status = status_of(group, request.id)
        if status:
            raise availability_error(group, status, request.id)


def _dimensions(dataset: Any, name: str, dimensions: Sequence[Any] | str) -> tuple[Any, ...]:
    """Return dimensions by their names, in the variable's group and enclosing ones."""
    module = netcdf4()
    kinds = (str, module.Dimension)
    wanted = (dimensions,) if isinstance(dimensions, kinds) or not np.iterable(dimensions) else tuple(dimensions)
    if wrong := [entry for entry in wanted if not isinstance(entry, kinds)]:
        raise ParameterError(f"expected dimensions by name, got {wrong[0]!r}: use () for a scalar")
    group = dataset
    for part in str(name).strip("/").split("/")[:-1]:
        group = group.groups.get(part, group)
    return tuple(_dimension(group, entry) if isinstance(entry, str) else entry for entry in wanted)


def _dimension(group: Any, name: str) -> Any:
    place = group
    while place is not None:
        if name in place.dimensions:
            return place.dimensions[name]
        place = place.parent
    known = ", ".join(group.dimensions) or "none"
    raise ParameterError(
        f"expected a dimension of the dataset, got {name!r}: it has {known}: createDimension({name!r}, size) makes one"
    )
