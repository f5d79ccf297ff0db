"""The registry of filters: those of tamis, and those of installed packages."""

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
from tamis.kinds import TEXT, checked

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
_OWN_BY_ID = {kind.id: kind for kind in _OWN}


@cache
def by_id() -> Mapping[int, type[Filter]]:
    """Return every filter class by its HDF5 id, smallest first."""
    from importlib.metadata import entry_points  # imported late: it takes as long as all of h5py

    kinds = dict(_OWN_BY_ID)
    for entry_point in entry_points(group=ENTRY_POINTS):
        try:
            kind = entry_point.load()
            if not (isinstance(kind, type) and issubclass(kind, Filter)):
                raise ParameterError(f"expected a subclass of tamis.filters.Filter, got {kind!r}")
            names = {other.name for other in kinds.values()}
            if kind.id in kinds or kind.name in names or kind.name == UnknownFilter.name:
                raise ParameterError(f"expected an id and a name of its own, got {kind.id} and {kind.name!r}")
        except Exception as error:  # another package's module may raise anything
            warnings.warn(f"filter {entry_point.name} = {entry_point.value} left out: {error}", stacklevel=2)
        else:
            kinds[kind.id] = kind
    return MappingProxyType(dict(sorted(kinds.items())))


@cache
def by_name() -> Mapping[str, type[Filter]]:
    """Return every filter class by its name in tamis."""
    return MappingProxyType({kind.name: kind for kind in by_id().values()})


@checked(name=TEXT)
def filter_named(name: str) -> type[Filter] | None:
    """Return a filter class by its name; other packages are searched only for names that tamis does not have."""
    return next((kind for kind in _OWN if kind.name == name), None) or by_name().get(name)


def _kind(code: int) -> type[Filter] | None:
    """Return a filter class by its id; other packages are searched only for ids that tamis does not have."""
    return _OWN_BY_ID.get(code) or by_id().get(code)


def is_known(code: int) -> bool:
    """Return whether tamis, or an installed package, has a class for a filter."""
    return _kind(code) is not None


def from_values(request: Request, label: str = "", *, stored: bool = False) -> Filter:
    """Return the filter that an id and parameters stand for, requested or stored.

    Parameters
    ----------
    request
        Id and parameters.
    label
        The filter's name in the file.
    stored
        Whether the parameters come from a file.

    Returns
    -------
    Filter
        An `UnknownFilter` if tamis has no class for it, or if its parameters are damaged; its `reason` then says how.
    """
    cd_values = _cd_values(request)
    kind = _kind(request.id)
    if kind is None:
        return UnknownFilter(request.id, cd_values, label)
    try:
        return kind.from_stored(cd_values) if stored else kind.from_values(cd_values)
    except Exception as error:  # another package's filter may raise anything
        return UnknownFilter(request.id, cd_values, label or kind.name, str(error))


def requested_filter(request: Request) -> Filter:
    """Return the filter of a requested id and parameters.

    Raises
    ------
    ParameterError
        If tamis knows the filter and refuses such parameters.
    """
    kind = _kind(request.id)
    if kind is None:
        return UnknownFilter(request.id, _cd_values(request))
    try:
        return kind.from_requested(_cd_values(request))
    except (ParameterError, StreamError) as error:
        raise ParameterError(f"filter {request.id} ({kind.name}): {error}").at(filter=kind.name) from error


def _cd_values(request: Request) -> tuple[int, ...]:
    return tuple(int(value) & 0xFFFFFFFF for value in request.values)
