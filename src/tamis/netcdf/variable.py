"""A netCDF4 variable in terms of netCDF-C: ids, place, format, type, chunks; and why a filter is refused."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tamis.errors import ParameterError
from tamis.filters import ChunkType, Request, by_id
from tamis.filters.unknown import REGISTERED
from tamis.netcdf.library import (
    CODES,
    NetcdfError,
    Unsigned,
    call,
    has,
    is_read_only,
    named_error,
    netcdf4,
    status_error,
    version,
)

HDF5, NCZARR = "HDF5", "NCZarr"
_FORMATS = {1: "classic", 2: HDF5, 3: "HDF4", 4: "PnetCDF", 5: "DAP2", 6: "DAP4", 8: "user-defined", 10: NCZARR}
_CHUNKED = 0
_BYTE_ORDERS: dict[str, Literal["<", ">"]] = {"little": "<", "big": ">"}


@dataclass(frozen=True, slots=True)
class OpenedGroup:
    """A dataset or group that is open."""

    ncid: int  # Its id in netCDF-C
    path: str  # Path of the file, as given to netCDF4
    name: str  # Path of the group

    @property
    def format(self) -> str:
        """How the data is stored: `HDF5`, `NCZARR` or another name."""
        code, mode = ctypes.c_int(), ctypes.c_int()
        self.check(call("nc_inq_format_extended", self.ncid, ctypes.byref(code), ctypes.byref(mode)))
        return _FORMATS.get(code.value, f"format {code.value}")

    @property
    def is_read_only(self) -> bool:
        """Whether HDF5 opened the file for reading only; False if unknown."""
        return self.format == HDF5 and is_read_only(self.path)

    def error(self, error: NetcdfError, variable: str = "") -> NetcdfError:
        """Add file and variable to an error, and return it."""
        path = f"{self.name.rstrip('/')}/{variable}" if variable else self.name
        error.at(f"{self.path}: {path}", path=self.path, dataset=path)
        return error

    def check(self, status: int) -> None:
        """Raise NetcdfError unless a status is NC_NOERR."""
        if status:
            raise self.error(status_error(status))


@dataclass(frozen=True, slots=True)
class VariableHandle:
    """A variable of a dataset that is open."""

    group: OpenedGroup
    varid: int  # Its id in netCDF-C
    variable: Any

    @property
    def name(self) -> str:
        """Name without groups."""
        return str(self.variable.name)

    @property
    def ids(self) -> tuple[int, int]:
        """First arguments of netCDF-C's functions."""
        return self.group.ncid, self.varid

    @property
    def varies(self) -> bool:
        """Whether values have variable lengths: strings and vlen types."""
        return self.variable.dtype is str or isinstance(self.variable.datatype, netcdf4().VLType)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values in the file."""
        dtype: np.dtype[Any] = np.dtype(self.variable.dtype)
        return dtype.newbyteorder(_BYTE_ORDERS.get(self.variable.endian(), "="))

    def error(self, error: NetcdfError) -> NetcdfError:
        """Add file and variable to an error, and return it."""
        return self.group.error(error, self.name)

    def check(self, status: int) -> None:
        """Raise NetcdfError unless a status is NC_NOERR."""
        if status:
            raise self.error(status_error(status))

    def chunk_shape(self, *, chunk: bool = False) -> tuple[int, ...] | None:
        """Return the chunk shape; None without chunks."""
        storage, sizes = ctypes.c_int(), (ctypes.c_size_t * max(self.variable.ndim, 1))()
        self.check(call("nc_inq_var_chunking", *self.ids, ctypes.byref(storage), sizes))
        if storage.value == _CHUNKED and self.variable.ndim:
            return tuple(sizes[: self.variable.ndim])
        if not chunk or not self.variable.ndim or call("nc_def_var_chunking", *self.ids, _CHUNKED, None):
            return None
        return self.chunk_shape()

    def chunk_type(self) -> ChunkType | None:
        """Return type and shape of the chunks, None without chunks; a new contiguous variable gets netCDF's chunks."""
        shape = self.chunk_shape(chunk=True)
        return None if shape is None or self.varies else ChunkType(self.dtype, shape)

    def listed(self) -> list[Request]:
        """Return the filters that netCDF lists, in its order, with the parameters that it knows."""
        ids = self.filter_ids()
        return [Request(number, self.parameters(number)) for number in ids]

    def filter_ids(self) -> tuple[int, ...]:
        """Return the ids of the filters that netCDF lists."""
        if not has("nc_inq_var_filter_ids"):
            return ()
        count = ctypes.c_size_t()
        self.check(call("nc_inq_var_filter_ids", *self.ids, ctypes.byref(count), None))
        ids = (Unsigned * max(count.value, 1))()
        self.check(call("nc_inq_var_filter_ids", *self.ids, ctypes.byref(count), ids))
        return tuple(ids[: count.value])

    def parameters(self, number: int) -> tuple[int, ...]:
        """Return the parameters of a filter of the variable."""
        count = ctypes.c_size_t()
        self.check(call("nc_inq_var_filter_info", *self.ids, number, ctypes.byref(count), None))
        values = (Unsigned * max(count.value, 1))()
        self.check(call("nc_inq_var_filter_info", *self.ids, number, ctypes.byref(count), values))
        return tuple(values[: count.value])


def variable_handle(variable: Any) -> VariableHandle:
    """Return the handle of a netCDF4 variable."""
    if not isinstance(variable, netcdf4().Variable):
        raise ParameterError(
            f"expected a variable of netCDF4, got {type(variable).__name__}: tamis.netcdf works through netCDF4 alone;"
            " for h5py and h5netcdf use tamis.hdf5"
        )
    name = str(variable._name)  # its property asks netCDF-C, which may not know the variable any more
    try:
        group = group_handle(variable.group())
    except ReferenceError:
        raise named_error("NC_EBADID", f"{name}: its dataset is closed").at(dataset=name) from None
    except NetcdfError as error:
        raise error.at(name, dataset=name) from None
    return VariableHandle(group, int(variable._varid), variable)


def group_handle(dataset: Any) -> OpenedGroup:
    """Return the handle of a netCDF4 dataset or group; see `variable_handle` for errors."""
    if not isinstance(dataset, netcdf4().Dataset):
        raise ParameterError(f"expected a dataset or group of netCDF4, got {type(dataset).__name__}")
    root = dataset
    while root.parent is not None:
        root = root.parent
    if not root.isopen():
        raise named_error("NC_EBADID", "the dataset is closed")
    return OpenedGroup(int(dataset._grpid), str(root.filepath()), str(dataset.path))


_MAX_ID = 65535
_CHANGE = "; tamis.repack changes the filters of a file that exists"


def check_status(
    handle: VariableHandle, function: str, status: int, ids: Sequence[int] = (), given: Sequence[int] = ()
) -> None:
    """Raise NetcdfError, with the reason and advice, unless a status is NC_NOERR."""
    if status:
        name = next((name for name, code in CODES.items() if code == status), "")
        reason = _reason(name, handle, ids, tuple(given))
        raise handle.error(status_error(status, f"{function}: {reason}" if reason else ""))


def filter_text(number: int) -> str:
    """Return name and id of a filter."""
    kind = by_id().get(number)
    name = kind.name if kind else REGISTERED.get(number, "")
    return f"{name} (filter {number})" if name else f"filter {number}"


def type_text(handle: VariableHandle) -> str:
    """Return the type of a variable whose values have variable lengths, in words."""
    return "strings" if handle.variable.dtype is str else "values of a vlen type"


def _reason(name: str, handle: VariableHandle, ids: Sequence[int], given: tuple[int, ...]) -> str:
    """Return why netCDF-C returned a status for a variable, and what to do about it; empty if unknown."""
    group = handle.group
    match name:
        case "NC_EINVAL" if not handle.variable.ndim:
            return "expected a variable with dimensions, got a scalar, which has no chunks to filter"
        case "NC_EINVAL" if {1, 4} <= {*ids, *handle.filter_ids()}:
            return "netCDF refuses deflate and szip together: use one of them"
        case "NC_EINVAL":
            return f"expected parameters that netCDF-C takes for {_filters(ids)}, got {given}"
        case "NC_EPERM" | "NC_EINDEFINE" | "NC_ENOTINDEFINE" | "NC_ELATEDEF" if group.is_read_only:
            return f"the dataset is open for reading only{_CHANGE}"
        case "NC_EPERM" | "NC_EINDEFINE" | "NC_ENOTINDEFINE" | "NC_ELATEDEF":
            return (
                "the variable is in the file already: define filters right after createVariable, before values "
                f"are written and before sync; in NETCDF4_CLASSIC use tamis.netcdf.create_variable{_CHANGE}"
            )
        case "NC_ENOTNC4" | "NC_ESTRICTNC3":
            return (
                f"expected a netCDF-4 dataset, got format {group.format}, which has no filters: create it with"
                " format='NETCDF4'"
            )
        case "NC_EFILTER":
            return f"expected as many parameters as netCDF-C takes for {_filters(ids)}, got {given}"
        case "NC_ENOFILTER" | "NC_EPLUGIN":
            return _absence(group, ids)
        case "NC_EHDFERR" if any(not 0 <= number <= _MAX_ID for number in ids):
            return f"expected a filter id of 1 to {_MAX_ID}, got {ids[0]}"
        case "NC_EHDFERR":
            where = "" if group.format == HDF5 else f" ({group.format})"
            return f"HDF5 reports an error for {_filters(ids)}{where}"
    return ""


def availability_error(group: OpenedGroup, status: int, number: int) -> NetcdfError:
    """Return the exception of a status of ``nc_inq_filter_avail``."""
    reason = _absence(group, [number]) if status == CODES["NC_ENOFILTER"] else ""
    if not 0 < number <= _MAX_ID:
        reason = f"expected a filter id of 1 to {_MAX_ID}, got {number}"
    return status_error(status, reason)


def _absence(group: OpenedGroup, ids: Sequence[int]) -> str:
    if any(number < 1 for number in ids):
        return f"expected a filter id of 1 to {_MAX_ID}, got {ids[0]}"
    folder = (
        "add the folder of its plugin with tamis.netcdf.plugin_path_append"
        if has("nc_plugin_path_set")
        else f"set HDF5_PLUGIN_PATH to the folder of its plugin before netCDF4 is imported (netcdf-c {version()})"
    )
    if group.format == NCZARR:
        return (
            f"no plugin here has an NCZarr codec for {_filters(ids)}: write HDF5, use another filter, or "
            f"{folder} before the process first uses a filter in NCZarr, because netCDF-C loads such plugins "
            "once"
        )
    return f"netCDF's HDF5 has no plugin for {_filters(ids)}: {folder}"


def _filters(ids: Sequence[int]) -> str:
    return " and ".join(map(filter_text, ids)) or "the variable"
