"""Define filters of a new variable, like netCDF-C's ``nc_def_var_`` functions, but never silently skip one.

Names, order and redefinition are those of netCDF-C: filters run in the order of the calls, but fletcher32 and then
shuffle run first; a filter that is defined again keeps its place and gets the new parameters; none can be removed. Each
function raises `NetcdfError` with the code of netCDF-C, even if netCDF-C returns NC_NOERR and drops the filter.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tamis.arguments import FLAG, WHOLE, instance
from tamis.errors import ParameterError, located
from tamis.filters import (
    Blosc,
    Bzip2,
    ChunkType,
    Deflate,
    Filter,
    Fletcher32,
    Request,
    Shuffle,
    Stage,
    Szip,
    Zfp,
    Zstd,
    from_values,
)
from tamis.netcdf.library import Unsigned, call, named_error, version
from tamis.netcdf.provided_filters import provide, status_of
from tamis.netcdf.variable import NCZARR, VariableHandle, check_status, filter_text, type_text, variable_handle
from tamis.notation.detect import read
from tamis.notation.netcdf import in_netcdf_order, in_plugin_order
from tamis.notation.text import refuse_other_flags
from tamis.pipeline import Pipeline
from tamis.rounding import KINDS, Rounding

_FLAG = instance(FLAG.words, int, np.bool_)  # netCDF-C has numbers, 0 and 1


@dataclass(frozen=True, slots=True)
class Requested:
    """Filters to define."""

    requests: tuple[Request, ...]  # Ids and requested parameters, in the order in which they are to run
    stages: tuple[Stage, ...] | None  # The same as stages; None if they are words that tamis does not check
    # Rounding before them, by netCDF's own quantization, or packing; None if there is none
    rounding: Rounding | None = None


def requested_filters(filters: object, values: Sequence[int] | None = None) -> Requested:
    """Return the filters of an object, of text in any notation, or of an id and its parameters."""
    if isinstance(filters, int) and not isinstance(filters, bool):
        return Requested((Request(filters, _words(values or ())),), None)
    if values is not None:
        raise ParameterError(f"expected the id of a filter with values={values!r}, got {filters!r}")
    steps = _steps(filters)
    rounding = Pipeline(steps).rounding if any(isinstance(step, Rounding) for step in steps) else None
    if rounding is not None and rounding.in_place and not rounding.quantize_mode:
        raise ParameterError(
            f"expected a rounding that netCDF-C has, got {rounding}: round the values before, tamis.{rounding!r}.round,"
            f" and set the attribute {rounding.attribute}={rounding.number}; tamis repack rounds a saved file"
        ).at(filter=rounding)
    stages = tuple(step for step in steps if isinstance(step, Stage))
    refuse_other_flags(stages, "netCDF")
    counts = Counter(stage.filter.id for stage in stages)
    if twice := [stage.filter.name for stage in stages if counts[stage.filter.id] > 1]:
        raise ParameterError(f"expected each filter once, got {twice[0]} twice: netCDF keeps one of them")
    return Requested(tuple(stage.request for stage in stages), stages, rounding)


def _steps(filters: object) -> tuple[Stage | Rounding, ...]:
    if isinstance(filters, Pipeline):
        return filters.stages if filters.rounding is None else (filters.rounding, *filters.stages)
    if isinstance(filters, Rounding | Stage):
        return (filters,)
    if isinstance(filters, Request | Filter):
        return (Stage.of(filters),)
    if isinstance(filters, str):
        return read(filters).chain
    raise ParameterError(f"expected a filter, a pipeline, their text, or an id with values, got {filters!r}")


def _words(values: Any) -> tuple[int, ...]:
    try:
        words = tuple(map(operator.index, values))
    except TypeError:
        words = (-1 << 32,)
    if isinstance(values, str) or any(not -(1 << 31) <= word < 1 << 32 for word in words):
        raise ParameterError(f"expected 32-bit words, got values={values!r}")
    return tuple(word & 0xFFFFFFFF for word in words)


def run_order(listed: Sequence[Request], requests: Sequence[Request], *, zarr: bool) -> list[Request]:
    """Return all filters of a variable, after more are defined, in the order in which they will run."""
    every = [*listed, *requests]
    if zarr:
        return list({request.id: request for request in every}.values())
    return in_plugin_order(in_netcdf_order(every))


def check_order(name: str, listed: Sequence[Request], requests: Sequence[Request], *, zarr: bool) -> None:
    """Raise ParameterError if netCDF would run filters in another order, or zfp on anything but values."""
    ids = [request.id for request in requests]
    final = run_order(listed, requests, zarr=zarr)
    if Zfp.id in (request.id for request in final[1:]):
        raise ParameterError(
            f"{name}: expected zfp first, got {filter_text(final[0].id)} before it: zfp needs unfiltered values"
        ).at(dataset=name, filter="zfp")
    order = [request for request in final if request.id in ids]
    if [request.id for request in order] != ids:
        raise ParameterError(
            f"{name}: expected filters in an order that netCDF can run, which runs fletcher32 and then shuffle before"
            f" others, got {_text(requests)}: write {_text(order)}, or use h5py and tamis.hdf5.create_dataset, which"
            " keep any order"
        ).at(dataset=name)


def completed(
    listed: Sequence[Request], requests: Sequence[Request], chunk: ChunkType | None, *, zarr: bool
) -> list[Request]:
    """Return filters to define with parameters that netCDF does not complete itself.

    If netCDF lists shuffle or fletcher32 before zfp, the plugin moves them back after it, but only if the parameters of
    zfp are stored ones. NCZarr records the size of values for shuffle, but does not look it up itself.
    """
    if chunk is None:
        return list(requests)
    if zarr:
        size = chunk.dtype.itemsize
        return [Request(Shuffle.id, (size,)) if request == Request(Shuffle.id, ()) else request for request in requests]
    every = {request.id: request for request in (*listed, *requests)}
    if Zfp.id not in every or not {Shuffle.id, Fletcher32.id} & every.keys():
        return list(requests)
    zfp = Request(Zfp.id, Zfp.from_values(every[Zfp.id].values).stored(chunk))
    return [zfp, *(request for request in requests if request.id != Zfp.id)]


def _text(requests: Sequence[Request]) -> str:
    return "|".join(str(from_values(request)) for request in requests)


_SZIP_CODINGS = {"ec": 4, "nn": 32}
VARYING = (
    "expected values of a fixed size, got {}: HDF5 stores them outside the chunks, where no filter reaches them, and"
    " netCDF-C may drop the filter without a word"
)
"""Why strings have no filters."""

QUANTIZE_MODES = ("", "BitGroom", "GranularBR", "BitRound")
"""Names of netCDF's quantize modes by their numbers."""


def def_var_filter(variable: Any, filters: object, values: Sequence[int] | None = None) -> None:
    """Define one filter, or a pipeline.

    Parameters
    ----------
    variable
        A netCDF4 variable that is not yet in the file: define filters right after ``createVariable``.
    filters
        A filter such as ``tamis.Zfp(accuracy=0.1)``; a `Pipeline`; text of either, such as ``"shuffle|deflate(4)"`` or
        netCDF's ``"32013,3,0,0.1d|3"``; or, with `values`, the id of a filter.
    values
        Parameters as in netCDF-C, 32-bit words; they are not checked further than in netCDF-C.

    Raises
    ------
    ParameterError
        If the text is wrong, the filter cannot encode the variable's chunks, or netCDF would run the filters in another
        order.
    NetcdfError
        With the status of netCDF-C.
    """
    handle = variable_handle(variable)
    with located(path=handle.group.path):
        define(handle, requested_filters(filters, values))


def define(handle: VariableHandle, requested: Requested) -> None:
    """Define filters, and the rounding before them; see `def_var_filter`."""
    requests, zarr = requested.requests, handle.group.format == NCZARR
    if requested.rounding is not None:
        requested.rounding.refuse_packing("which changes the type of a variable, as only create_variable does")
    _check_place(handle, [request.id for request in requests])
    listed = handle.listed()
    check_order(handle.name, listed, requests, zarr=zarr)
    chunk = handle.chunk_type() if requests else None
    if chunk is not None and requested.stages is not None:
        with located(f"{handle.group.path}: {handle.name}", dataset=handle.name):
            Pipeline(requested.stages).check(chunk)
    for request in completed(listed, requests, chunk, zarr=zarr):
        _define(handle, [request.id], partial(_set_filter, handle, request))
    if (rounding := requested.rounding) is not None:
        _quantize(handle, KINDS.index(type(rounding)) + 1, int(rounding.number))


def def_var_deflate(variable: Any, shuffle: bool = False, deflate: bool = True, level: int = 4) -> None:
    """Define deflate, and shuffle before it.

    Parameters
    ----------
    variable
        A new netCDF4 variable.
    shuffle, deflate
        Whether to define each.
    level
        0 to 9; as in netCDF-C, level 0 defines no deflate.
    """
    _FLAG.check("shuffle", shuffle)
    _FLAG.check("deflate", deflate)
    WHOLE.check("level", level)
    ids = [Shuffle.id] * bool(shuffle) + [Deflate.id] * bool(deflate and level)
    _define_by("nc_def_var_deflate", variable, ids, bool(shuffle), bool(deflate), level)


def def_var_shuffle(variable: Any, shuffle: bool = True) -> None:
    """Define only shuffle, for which netCDF-C has no function; False is refused if shuffle is already defined."""
    _FLAG.check("shuffle", shuffle)
    handle = variable_handle(variable)
    if shuffle:
        define(handle, requested_filters(Shuffle()))
    else:
        _refuse_removal(handle, Shuffle.id)


def def_var_fletcher32(variable: Any, fletcher32: bool = True) -> None:
    """Define fletcher32; False is refused if fletcher32 is already defined, because netCDF cannot remove it."""
    _FLAG.check("fletcher32", fletcher32)
    if not fletcher32:
        _refuse_removal(variable_handle(variable), Fletcher32.id)
    _define_by("nc_def_var_fletcher32", variable, [Fletcher32.id] * bool(fletcher32), bool(fletcher32))


def def_var_szip(variable: Any, coding: str | int = "nn", pixels: int = 8) -> None:
    """Define szip.

    Parameters
    ----------
    variable
        A new netCDF4 variable.
    coding
        ``"nn"`` (nearest neighbour), ``"ec"`` (entropy), or netCDF's number, 32 or 4.
    pixels
        Pixels of a block: even, at most 32.
    """
    _define_by("nc_def_var_szip", variable, [Szip.id], _number("coding", coding, _SZIP_CODINGS), pixels)


def def_var_bzip2(variable: Any, level: int = 9) -> None:
    """Define bzip2 with a level of 1 to 9."""
    _define_by("nc_def_var_bzip2", variable, [Bzip2.id], level)


def def_var_zstandard(variable: Any, level: int = 3) -> None:
    """Define zstd with a level of -131072 to 22."""
    _define_by("nc_def_var_zstandard", variable, [Zstd.id], level)


def def_var_blosc(
    variable: Any, compressor: str | int = "lz4", level: int = 5, blocksize: int = 0, shuffle: str | int = "byte"
) -> None:
    """Define blosc.

    Parameters
    ----------
    variable
        A new netCDF4 variable.
    compressor
        Name as in `tamis.Blosc`, or netCDF's number, 0 to 5.
    level
        0 to 9.
    blocksize
        Bytes; 0 lets blosc choose.
    shuffle
        ``"none"``, ``"byte"``, ``"bit"``, or netCDF's number, 0 to 2.
    """
    first = _number("compressor", compressor, _numbered(Blosc.compressors))
    last = _number("shuffle", shuffle, _numbered(Blosc.shuffles))
    _define_by("nc_def_var_blosc", variable, [Blosc.id], first, level, blocksize, last)


def def_var_quantize(variable: Any, mode: str | int, digits: int) -> None:
    """Define netCDF-C's own quantization of floats, which is recorded in an attribute and is not a filter.

    Parameters
    ----------
    variable
        A new netCDF4 variable of floats.
    mode
        ``"BitGroom"``, ``"GranularBR"`` or ``"BitRound"``, or netCDF's number, 1 to 3; 0 for none.
    digits
        Significant decimal digits; for BitRound significant bits.
    """
    handle = variable_handle(variable)
    _quantize(handle, _number("mode", mode, _numbered(QUANTIZE_MODES)), digits)


def _quantize(handle: VariableHandle, mode: int, number: int) -> None:
    status = call("nc_def_var_quantize", *handle.ids, mode, number)
    check_status(handle, "nc_def_var_quantize", status, given=(mode, number))


def _number(name: str, value: str | int, numbers: Mapping[str, int]) -> int:
    """Return netCDF's number of a choice; numbers are left to netCDF-C to check."""
    if not isinstance(value, str):
        return value
    if value not in numbers:
        raise ParameterError(f"expected {name} {' or '.join(map(repr, numbers))}, got {value!r}")
    return numbers[value]


def _numbered(names: Sequence[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names) if name}


def _define_by(name: str, variable: Any, ids: list[int], *arguments: int) -> None:
    """Define filters by a function of netCDF-C."""
    handle = variable_handle(variable)
    _check_place(handle, ids)
    requests = [Request(number, ()) for number in ids]
    check_order(handle.name, handle.listed(), requests, zarr=handle.group.format == NCZARR)
    _define(handle, ids, lambda: check_status(handle, name, call(name, *handle.ids, *arguments), ids, arguments))
    _settle(handle)


def _define(handle: VariableHandle, ids: Sequence[int], function: Callable[[], None]) -> None:
    """Call a function that defines filters, and check that netCDF lists them afterwards."""
    function()
    if dropped := [number for number in ids if number not in handle.filter_ids()]:
        raise handle.error(
            named_error(
                "NC_ENOFILTER",
                f"netcdf-c {version()} dropped {filter_text(dropped[0])}, and reported success",
            )
        )


def _set_filter(handle: VariableHandle, request: Request) -> None:
    words = (Unsigned * max(len(request.values), 1))(*request.values)
    status = call("nc_def_var_filter", *handle.ids, request.id, len(request.values), words)
    check_status(handle, "nc_def_var_filter", status, [request.id], request.values)


def _check_place(handle: VariableHandle, ids: Sequence[int]) -> None:
    """Raise NetcdfError if netCDF-C would silently drop filters, or define only some of them.

    It drops filters of strings, and in NCZarr those whose plugin has no codec.
    """
    if handle.varies and ids:
        raise handle.error(named_error("NC_EFILTER", VARYING.format(type_text(handle))))
    for number in ids:
        provide(handle.group, number)
    if len(ids) > 1 or handle.group.format == NCZARR:
        for number in ids:
            status = status_of(handle.group, number)
            check_status(handle, "nc_inq_filter_avail", status, [number])


def _settle(handle: VariableHandle) -> None:
    """Complete parameters that depend on the filters just defined; see `completed`."""
    listed, zarr = handle.listed(), handle.group.format == NCZARR
    ids = {request.id for request in listed}
    if (Shuffle.id if zarr else Zfp.id) in ids:
        incomplete = [Request(Shuffle.id, ())] if zarr else []
        for request in completed(listed, incomplete, handle.chunk_type(), zarr=zarr):
            _set_filter(handle, request)


def _refuse_removal(handle: VariableHandle, number: int) -> None:
    if number in handle.filter_ids():
        raise handle.error(
            named_error(
                "NC_EINVAL",
                f"netCDF cannot remove {filter_text(number)}, which is defined already: expected True, got False",
            )
        )
