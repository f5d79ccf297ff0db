"""Which filters there are: those of tamis, and those that installed packages bring along."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from tamis.errors import ParameterError, StreamError
from tamis.filters.base import Filter, Request
from tamis.filters.bitshuffle import Bitshuffle
from tamis.filters.blosc import Blosc
from tamis.filters.blosc2 import Blosc2
from tamis.filters.foreign import Sperr, Sz3
from tamis.filters.lz4 import Lz4
from tamis.filters.nbit import Nbit
from tamis.filters.plain import Bzip2, Lzf, Zstd
from tamis.filters.scaleoffset import Scaleoffset
from tamis.filters.standard import Deflate, Fletcher32, Shuffle
from tamis.filters.szip import Szip
from tamis.filters.unknown import UnknownFilter
from tamis.filters.zfp import Zfp

ENTRY_POINTS = "tamis.filters"
"""Group of entry points under which a package names its filters: ``name = "module:Class"``."""

_OWN: tuple[type[Filter], ...] = (
    Deflate,
    Shuffle,
    Fletcher32,
    Szip,
    Nbit,
    Scaleoffset,
    Bzip2,
    Lzf,
    Blosc,
    Lz4,
    Bitshuffle,
    Zfp,
    Zstd,
    Sz3,
    Blosc2,
    Sperr,
)
_OWN_BY_ID = {known.id: known for known in _OWN}


@cache
def by_id() -> Mapping[int, type[Filter]]:
    """Every filter that there is a type for, by its HDF5 id, smallest first."""
    from importlib.metadata import entry_points  # imported late: it takes as long as all of h5py

    found = dict(_OWN_BY_ID)
    for each in entry_points(group=ENTRY_POINTS):
        try:
            added = each.load()
            if not (isinstance(added, type) and issubclass(added, Filter)):
                raise ParameterError(f"expected a subclass of tamis.filters.Filter, got {added!r}")
            names = {known.name for known in found.values()}
            if added.id in found or added.name in names or added.name == UnknownFilter.name:
                raise ParameterError(f"expected an id and a name of its own, got {added.id} and {added.name!r}")
        except Exception as error:  # another package's module may raise anything
            warnings.warn(f"filter {each.name} = {each.value} left out: {error}", stacklevel=2)
        else:
            found[added.id] = added
    return MappingProxyType(dict(sorted(found.items())))


@cache
def by_name() -> Mapping[str, type[Filter]]:
    """Every filter that there is a type for, by the name that tamis gives it."""
    return MappingProxyType({known.name: known for known in by_id().values()})


def filter_named(name: str) -> type[Filter] | None:
    """Find a filter by its name; other packages are looked at only for one that is not tamis's own."""
    return next((each for each in _OWN if each.name == name), None) or by_name().get(name)


def _known(code: int) -> type[Filter] | None:
    """Find a filter by its id; other packages are looked at only for one that is not tamis's own."""
    return _OWN_BY_ID.get(code) or by_id().get(code)


def from_values(request: Request, label: str = "", *, stored: bool = False) -> Filter:
    """Return the filter that an id and parameters stand for, requested or stored.

    Parameters
    ----------
    request
        Id and parameters.
    label
        How the writer of a file called it.
    stored
        Whether the parameters come from a file.

    Returns
    -------
    Filter
        An `UnknownFilter` where tamis has no type for it, or where its parameters are damaged; it then says how.
    """
    words = _words(request)
    known = _known(request.id)
    if known is None:
        return UnknownFilter(request.id, words, label)
    try:
        return known.from_stored(words) if stored else known.from_values(words)
    except Exception as error:  # another package's filter may raise anything
        return UnknownFilter(request.id, words, label or known.name, str(error))


def requested_filter(request: Request) -> Filter:
    """Return the filter that was asked for by id and parameters.

    Raises
    ------
    ParameterError
        If it is one that tamis knows and refuses such parameters.
    """
    known = _known(request.id)
    if known is None:
        return UnknownFilter(request.id, _words(request))
    try:
        return known.from_requested(_words(request))
    except (ParameterError, StreamError) as error:
        raise ParameterError(f"filter {request.id} ({known.name}): {error}") from error


def _words(request: Request) -> tuple[int, ...]:
    return tuple(int(value) & 0xFFFFFFFF for value in request.values)
