"""The order in which netCDF runs filters: fletcher32 first, then shuffle, then the others as they were defined.

A filter that is defined twice keeps its first place with its last parameters. Observed with netcdf-c 4.9.0 and 4.10.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import ParameterError
from tamis.filters import Request
from tamis.notation.chain import Chain

_FIRST = {3: 0, 2: 1}


def in_netcdf_order(requests: Iterable[Request]) -> list[Request]:
    """Return filters in the order in which netCDF runs them, each once."""
    by_id = {request.id: request for request in requests}
    return sorted(by_id.values(), key=lambda request: _FIRST.get(request.id, 2))


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
