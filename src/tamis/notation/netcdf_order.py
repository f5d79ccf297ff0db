"""The order in which netCDF runs filters: fletcher32 first, then shuffle, then the others as they were defined.

A filter that is defined twice keeps its first place with its last parameters. Seen with netcdf-c 4.9.0 and 4.10.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import ParameterError
from tamis.filters import Request
from tamis.notation.chain import Chain

_FIRST = {3: 0, 2: 1}


def in_netcdf_order(requests: Iterable[Request]) -> list[Request]:
    """Return filters as netCDF runs them, which were defined in another order or more than once."""
    once = {each.id: each for each in requests}
    return sorted(once.values(), key=lambda each: _FIRST.get(each.id, 2))


def netcdf_requests(chain: Chain) -> list[Request]:
    """Return what to define for netCDF to run a pipeline, but for flags, which netCDF sets as it likes.

    Raises
    ------
    ParameterError
        If netCDF cannot run it; says why.
    """
    wanted = [each.request for each in chain]
    found = in_netcdf_order(wanted)
    if found != wanted:
        names = {each.filter.id: str(each.filter) for each in chain}
        raise ParameterError(
            f"expected fletcher32 first, then shuffle, then others once each, which is how netCDF runs filters, got"
            f" {'|'.join(str(each.filter) for each in chain)}: netCDF would make it"
            f" {'|'.join(names[each.id] for each in found)}"
        )
    return wanted
