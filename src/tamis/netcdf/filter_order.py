"""The order in which the filters of a variable will run, and parameters that depend on it."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.errors import ParameterError
from tamis.filters import ChunkType, Fletcher32, Request, Shuffle, Zfp, from_values
from tamis.netcdf.explain import filter_text
from tamis.notation.netcdf_order import in_netcdf_order, in_plugin_order


def run_order(listed: Sequence[Request], requests: Sequence[Request], *, zarr: bool) -> list[Request]:
    """Return all filters of a variable, after more are defined, in the order in which they will run.

    Parameters
    ----------
    listed
        Filters of the variable, as netCDF lists them.
    requests
        Filters to define.
    zarr
        Whether NCZarr stores the variable, which keeps the order of the calls.
    """
    every = [*listed, *requests]
    if zarr:
        return list({request.id: request for request in every}.values())
    return in_plugin_order(in_netcdf_order(every))


def check_order(name: str, listed: Sequence[Request], requests: Sequence[Request], *, zarr: bool) -> None:
    """Raise ParameterError if netCDF would run filters in another order, or zfp on something else than values.

    Parameters
    ----------
    name
        The variable, for the message.
    listed, requests, zarr
        As for `run_order`.
    """
    ids = [request.id for request in requests]
    final = run_order(listed, requests, zarr=zarr)
    if Zfp.id in (request.id for request in final[1:]):
        raise ParameterError(
            f"{name}: expected zfp first, got {filter_text(final[0].id)} before it: zfp needs the values themselves"
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

    If netCDF lists shuffle or fletcher32 before zfp, the plugin puts them back behind it, but only where the parameters
    of zfp are stored ones. NCZarr records the size of values for shuffle, and does not look it up itself.

    Parameters
    ----------
    listed, requests, zarr
        As for `run_order`.
    chunk
        Type and shape of the chunks; None for types that no filter can encode.
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
