"""The order in which netCDF runs filters: fletcher32 first, then shuffle, then the others as they were defined.

A filter that is defined twice keeps its first place with its last parameters. Observed with netcdf-c 4.9.0 and 4.10.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import ParameterError
from tamis.filters import Request
from tamis.notation.chain import Chain

_FIRST = {3: 0, 2: 1}
_ZFP = 32013
_PLAIN = frozenset({1, 3, 307, 32004, 32015})
"""Filters without set_local, as in `native/hdf5/order.cpp`."""


def in_netcdf_order(requests: Iterable[Request]) -> list[Request]:
    """Return filters in the order in which netCDF runs them, each once."""
    by_id = {request.id: request for request in requests}
    return sorted(by_id.values(), key=lambda request: _FIRST.get(request.id, 2))


def in_plugin_order(requests: Iterable[Request]) -> list[Request]:
    """Return filters in the order in which they run where tamis' plugin is filter 32013.

    The plugin puts shuffle and fletcher32, which netCDF puts first, back behind zfp, if the parameters of zfp are
    stored ones, and only filters follow that need no preparation.
    """
    listed = list(requests)
    ids = [request.id for request in listed]
    if _ZFP not in ids:
        return listed
    place = ids.index(_ZFP)
    if not place or not set(ids[:place]) <= _FIRST.keys() or not set(ids[place + 1 :]) <= _PLAIN:
        return listed
    before = {request.id: request for request in listed[:place]}
    shuffle, fletcher32 = ([before[number]] if number in before else [] for number in (2, 3))
    return [listed[place], *shuffle, *listed[place + 1 :], *fletcher32]


def netcdf_requests(chain: Chain) -> list[Request]:
    """Return the filters to define so that netCDF runs a pipeline; netCDF sets the flags itself.

    Raises
    ------
    ParameterError
        If netCDF cannot run it, with the reason.
    """
    requests = [stage.request for stage in chain]
    ordered = in_netcdf_order(requests)
    if ordered != requests:
        names = {stage.filter.id: str(stage.filter) for stage in chain}
        raise ParameterError(
            f"expected fletcher32 first, then shuffle, then others once each, which is how netCDF runs filters, got"
            f" {'|'.join(str(stage.filter) for stage in chain)}: netCDF would make it"
            f" {'|'.join(names[request.id] for request in ordered)}"
        )
    return requests
