"""Filters of a variable as netCDF-C lists them; `filters` returns them as HDF5 runs them."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple

from tamis.arguments import BYTES, FLAG, TEXT
from tamis.errors import ParameterError
from tamis.filters import Blosc, Bzip2, Filter, Request, Stage, Szip, Zstd, filter_named, from_values
from tamis.netcdf.define import QUANTIZE_MODES
from tamis.netcdf.library import CODES, Unsigned, call, status_error, stored_stages
from tamis.netcdf.provided_filters import status_of
from tamis.netcdf.variable import HDF5, NCZARR, availability_error, filter_text, group_handle, variable_handle
from tamis.notation import netcdf_scanf as words
from tamis.notation.netcdf import Compat, in_plugin_order, parse_chain, parse_filterspec
from tamis.notation.netcdf import parse_parameter as parse_word
from tamis.pipeline import Pipeline


def filters(variable: Any) -> Pipeline:
    """Return the pipeline of a variable as stored: order, flags, duplicates, unknown filters, stored parameters.

    netCDF-C itself always lists fletcher32 and shuffle first, and each filter once. The file may be
    open for writing: the list comes from netCDF's own HDF5 library.

    Parameters
    ----------
    variable
        A netCDF4 variable. If it is not in the file yet, because nothing was written or synchronized, the result has
        the filters defined so far, without stored parameters.

    Raises
    ------
    FileError
        If the list cannot be read.

    Examples
    --------
    >>> filters(ds["TS"]).stages[0].in_words  # doctest: +SKIP
    'zfp accuracy 0.0625'
    """
    handle = variable_handle(variable)
    kind = handle.group.format
    if kind == HDF5:
        stages = stored_stages(handle.group.path, handle.group.name, handle.name)
        if stages is not None:
            return Pipeline(stages)
    elif kind != NCZARR:
        return Pipeline()
    listed = handle.listed()
    requests = listed if kind == NCZARR else in_plugin_order(listed)
    in_file = {request.id: request.values for request in requests} if kind == NCZARR else {}
    members = [(from_values(request, stored=True), in_file.get(request.id)) for request in requests]
    return Pipeline(Stage(member, member.optional, stored) for member, stored in members)


class FilterInfo(NamedTuple):
    """A filter as netCDF-C lists it.

    Parameters
    ----------
    id
        Its id; 0 if the variable has no filter.
    values
        Its parameters, 32-bit words: requested ones of a new variable, stored ones of a variable in a file.
    """

    id: int
    values: tuple[int, ...]

    @property
    def filter(self) -> Filter | None:
        """The filter with its parameters in words; None if there is none."""
        return from_values(Request(*self), stored=True) if self.id else None


class Deflation(NamedTuple):
    """Result of `inq_var_deflate`: whether there is shuffle, whether there is deflate, and its level."""

    shuffle: bool
    deflate: bool
    level: int


class Quantization(NamedTuple):
    """Result of `inq_var_quantize`: the mode by netCDF's name, empty if there is none, and its digits."""

    mode: str
    digits: int


def inq_var_filter_ids(variable: Any) -> tuple[int, ...]:
    """Return the ids of the filters of a variable, in the order in which netCDF lists them."""
    return variable_handle(variable).filter_ids()


def inq_var_filter_info(variable: Any, filter: int | str | type[Filter] | Filter) -> FilterInfo:  # noqa: A002 - netCDF's word
    """Return the parameters of a filter of a variable.

    Parameters
    ----------
    variable
        A netCDF4 variable.
    filter
        Id, name or class of the filter.

    Raises
    ------
    NetcdfError
        NC_ENOFILTER if the variable does not have the filter.
    """
    handle, number = variable_handle(variable), _filter_id(filter)
    count = ctypes.c_size_t()
    status = call("nc_inq_var_filter_info", *handle.ids, number, ctypes.byref(count), None)
    if status == CODES["NC_ENOFILTER"]:
        there = ", ".join(map(filter_text, handle.filter_ids())) or "no filter"
        raise handle.error(status_error(status, f"expected {filter_text(number)}, got {there}"))
    handle.check(status)
    return FilterInfo(number, handle.parameters(number))


def inq_var_filter(variable: Any) -> FilterInfo:
    """Return the first filter of a variable; its id is 0 if there is none."""
    handle = variable_handle(variable)
    number, count = Unsigned(), ctypes.c_size_t()
    handle.check(call("nc_inq_var_filter", *handle.ids, ctypes.byref(number), ctypes.byref(count), None))
    return FilterInfo(number.value, handle.parameters(number.value) if number.value else ())


def inq_filter_avail(dataset: Any, filter: int | str | type[Filter] | Filter) -> bool:  # noqa: A002 - netCDF's word
    """Return whether a filter can be used in a dataset: as an HDF5 plugin, or, in NCZarr, as a plugin with a codec.

    Parameters
    ----------
    dataset
        A netCDF4 dataset or group.
    filter
        Id, name or class of the filter.

    Raises
    ------
    NetcdfError
        If there is no such id: 0, or above 65535.
    """
    group, number = group_handle(dataset), _filter_id(filter)
    status = status_of(group, number)
    if status and status != CODES["NC_ENOFILTER"]:
        raise group.error(availability_error(group, status, number))
    return not status


def inq_var_deflate(variable: Any) -> Deflation:
    """Return whether a variable has shuffle and deflate, and the level."""
    shuffle, deflate, level = _inquire("nc_inq_var_deflate", variable, "iii")
    return Deflation(bool(shuffle), bool(deflate), level)


def inq_var_shuffle(variable: Any) -> bool:
    """Return whether a variable has shuffle."""
    return inq_var_deflate(variable).shuffle


def inq_var_fletcher32(variable: Any) -> bool:
    """Return whether a variable has fletcher32."""
    return bool(_inquire("nc_inq_var_fletcher32", variable, "i")[0])


def inq_var_szip(variable: Any) -> Szip | None:
    """Return the szip filter of a variable, None if it has none."""
    mask, pixels = _inquire("nc_inq_var_szip", variable, "ii")
    return Szip.from_values((mask, pixels)) if pixels else None


def inq_var_bzip2(variable: Any) -> Bzip2 | None:
    """Return the bzip2 filter of a variable, None if it has none."""
    there, level = _inquire("nc_inq_var_bzip2", variable, "ii")
    return Bzip2.from_values((level,)) if there else None


def inq_var_zstandard(variable: Any) -> Zstd | None:
    """Return the zstd filter of a variable, None if it has none."""
    there, level = _inquire("nc_inq_var_zstandard", variable, "ii")
    return Zstd.from_values((level & 0xFFFFFFFF,)) if there else None


def inq_var_blosc(variable: Any) -> Blosc | None:
    """Return the blosc filter of a variable, None if it has none."""
    there, compressor, level, blocksize, shuffle = _inquire("nc_inq_var_blosc", variable, "iuuuu")
    return Blosc.from_values((2, 2, 0, blocksize, level, shuffle, compressor)) if there else None


def inq_var_quantize(variable: Any) -> Quantization:
    """Return the quantize mode of a variable, and its significant digits or bits."""
    mode, digits = _inquire("nc_inq_var_quantize", variable, "ii")
    return Quantization(QUANTIZE_MODES[mode] if 0 <= mode < len(QUANTIZE_MODES) else str(mode), digits)


def _inquire(name: str, variable: Any, kinds: str) -> tuple[int, ...]:
    """Return the results of a function; all 0 if it reports the absence of the filter as an error."""
    handle = variable_handle(variable)
    results = [(ctypes.c_int if kind == "i" else Unsigned)() for kind in kinds]
    status = call(name, *handle.ids, *map(ctypes.byref, results))
    if status == CODES["NC_ENOFILTER"]:
        return (0,) * len(kinds)
    handle.check(status)
    return tuple(int(result.value) for result in results)


def _filter_id(subject: int | str | type[Filter] | Filter) -> int:
    if isinstance(subject, str):
        kind = filter_named(subject)
        if kind is None:
            raise ParameterError(f"expected the name or id of a filter, got {subject!r}")
        return kind.id
    is_class = isinstance(subject, type) and issubclass(subject, Filter)
    if isinstance(subject, bool) or not (is_class or isinstance(subject, (int, Filter))):
        raise ParameterError(f"expected a filter, its name or id, got {subject!r}")
    return subject if isinstance(subject, int) else subject.id


def filterspec_parse(text: str, *, compat: Compat | None = None) -> Request:
    """Return id and parameters of the text of one filter, such as ``32013,3,0,0.1d``.

    Parameters
    ----------
    text
        The filter.
    compat
        None for texts with only one meaning; ``"netcdf-c"`` to read like netCDF-C; ``"doc"`` to read like its
        documentation.

    Raises
    ------
    ParameterError
        If the text is malformed or ambiguous, with the position and what to write.
    """
    TEXT.check("text", text)
    TEXT.check_optional("compat", compat)
    return parse_filterspec(text, compat=compat)


def filterspec_parselist(text: str, *, compat: Compat | None = None) -> list[Request]:
    """Return the filters of a text with ``|`` between them; see `filterspec_parse`."""
    TEXT.check("text", text)
    TEXT.check_optional("compat", compat)
    return parse_chain(text, compat=compat)


def filterspec_parse_parameter(text: str, *, compat: Compat | None = None) -> tuple[int, ...]:
    """Return the words of one parameter, such as ``0.1d``; see `filterspec_parse`."""
    TEXT.check("text", text)
    TEXT.check_optional("compat", compat)
    return parse_word(text, compat=compat)


def filterspec_fix8(data: bytes, decode: bool) -> bytes:
    """Return the 8 bytes of a value as a filter gets them, low word first; with `decode`, those in memory."""
    BYTES.check("data", data)
    FLAG.check("decode", decode)
    return words.fix8(data, decode=decode, byteorder=sys.byteorder)
