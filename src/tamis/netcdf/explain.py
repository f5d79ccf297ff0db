"""Why netCDF-C refuses a filter, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.filters import by_id
from tamis.filters.unknown import REGISTERED
from tamis.netcdf.library import CODES, NetcdfError, has, status_error, version
from tamis.netcdf.variable import HDF5, NCZARR, Group, VariableHandle

_MAX_ID = 65535
_CHANGE = "; tamis.repack changes the filters of a file that exists"


def check(
    handle: VariableHandle, function: str, status: int, ids: Sequence[int] = (), given: Sequence[int] = ()
) -> None:
    """Raise NetcdfError, with the reason and advice, unless a status is NC_NOERR."""
    if status:
        name = next((name for name, code in CODES.items() if code == status), "")
        reason = _REASONS[name](handle, ids, tuple(given)) if name in _REASONS else ""
        raise handle.error(status_error(status, f"{function}: {reason}" if reason else ""))


def filter_text(number: int) -> str:
    """Return name and id of a filter."""
    kind = by_id().get(number)
    name = kind.name if kind else REGISTERED.get(number, "")
    return f"{name} (filter {number})" if name else f"filter {number}"


def type_text(handle: VariableHandle) -> str:
    """Return the type of a variable whose values have variable lengths, in words."""
    return "strings" if handle.variable.dtype is str else "values of a vlen type"


def _parameters(handle: VariableHandle, ids: Sequence[int], given: tuple[int, ...]) -> str:
    if not handle.variable.ndim:
        return "expected a variable with dimensions, got a scalar, which has no chunks to filter"
    if {1, 4} <= {*ids, *handle.filter_ids()}:
        return "expected deflate or szip, got both, which netCDF refuses"
    return f"expected parameters that netCDF-C takes for {_filters(ids)}, got {given}"


def _too_late(handle: VariableHandle, ids: Sequence[int], given: tuple[int, ...]) -> str:
    if handle.group.is_read_only:
        return f"expected a dataset that is open for writing, got one that is open for reading only{_CHANGE}"
    return (
        "expected a variable that is not in the file yet, got one that is: define filters right after createVariable,"
        f" before values are written and before sync; in NETCDF4_CLASSIC use tamis.netcdf.create_variable{_CHANGE}"
    )


def _format(handle: VariableHandle, ids: Sequence[int], given: tuple[int, ...]) -> str:
    return (
        f"expected a netCDF-4 dataset, got format {handle.group.format}, which has no filters: create it with"
        " format='NETCDF4'"
    )


def _count(handle: VariableHandle, ids: Sequence[int], given: tuple[int, ...]) -> str:
    return f"expected as many parameters as netCDF-C takes for {_filters(ids)}, got {given}"


def availability_error(group: Group, status: int, number: int) -> NetcdfError:
    """Return the exception of a status of ``nc_inq_filter_avail``."""
    reason = _absence(group, [number]) if status == CODES["NC_ENOFILTER"] else ""
    if not 0 < number <= _MAX_ID:
        reason = f"expected a filter id of 1 to {_MAX_ID}, got {number}"
    return status_error(status, reason)


def _no_filter(handle: VariableHandle, ids: Sequence[int], given: tuple[int, ...]) -> str:
    return _absence(handle.group, ids)


def _absence(group: Group, ids: Sequence[int]) -> str:
    if any(number < 1 for number in ids):
        return f"expected a filter id of 1 to {_MAX_ID}, got {ids[0]}"
    folder = (
        "add the folder of its plugin with tamis.netcdf.plugin_path_append"
        if has("nc_plugin_path_set")
        else f"set HDF5_PLUGIN_PATH to the folder of its plugin before netCDF4 is imported (netcdf-c {version()})"
    )
    if group.format == NCZARR:
        return (
            f"expected a plugin with an NCZarr codec for {_filters(ids)}, found none: write HDF5, use another filter,"
            f" or {folder} before the process first uses a filter in NCZarr, because netCDF-C loads such plugins once"
        )
    return f"expected a plugin for {_filters(ids)}, which netCDF's HDF5 lacks: {folder}"


def _hdf5(handle: VariableHandle, ids: Sequence[int], given: tuple[int, ...]) -> str:
    if any(not 0 <= number <= _MAX_ID for number in ids):
        return f"expected a filter id of 1 to {_MAX_ID}, got {ids[0]}"
    where = "" if handle.group.format == HDF5 else f" ({handle.group.format})"
    return f"HDF5 reports an error for {_filters(ids)}{where}"


def _filters(ids: Sequence[int]) -> str:
    return " and ".join(map(filter_text, ids)) or "the variable"


_REASONS: dict[str, Callable[[VariableHandle, Sequence[int], tuple[int, ...]], str]] = {
    "NC_EINVAL": _parameters,
    "NC_EPERM": _too_late,
    "NC_EINDEFINE": _too_late,
    "NC_ENOTINDEFINE": _too_late,
    "NC_ELATEDEF": _too_late,
    "NC_ENOTNC4": _format,
    "NC_ESTRICTNC3": _format,
    "NC_EFILTER": _count,
    "NC_ENOFILTER": _no_filter,
    "NC_EPLUGIN": _no_filter,
    "NC_EHDFERR": _hdf5,
}
