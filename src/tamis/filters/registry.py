"""The registry of filters: those of tamis and of installed packages; and a filter in a pipeline, with its flag."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Self

from tamis.arguments import TEXT, WHOLE, WHOLES, Kind, instance
from tamis.errors import ParameterError, StreamError
from tamis.filters.base import Filter, Parameterized, Request
from tamis.filters.unknown import UnknownFilter
from tamis.formatting import did_you_mean
from tamis.library_lock import imported

ENTRY_POINTS = "tamis.filters"
"""Group of entry points under which a package names its filters: ``name = "module:Class"``."""

_OWN = {
    1: ("deflate", "standard:Deflate"),
    2: ("shuffle", "standard:Shuffle"),
    3: ("fletcher32", "standard:Fletcher32"),
    4: ("szip", "szip:Szip"),
    5: ("nbit", "nbit:Nbit"),
    6: ("scaleoffset", "nbit:Scaleoffset"),
    307: ("bzip2", "plain:Bzip2"),
    32000: ("lzf", "plain:Lzf"),
    32001: ("blosc", "blosc:Blosc"),
    32004: ("lz4", "plain:Lz4"),
    32008: ("bitshuffle", "bitshuffle:Bitshuffle"),
    32013: ("zfp", "zfp:Zfp"),
    32015: ("zstd", "plain:Zstd"),
    32024: ("sz3", "foreign:Sz3"),
    32026: ("blosc2", "blosc:Blosc2"),
    32028: ("sperr", "foreign:Sperr"),
}
"""Filters of tamis by id: name, and module and class, which are imported when they are used."""
BUILT_IN = frozenset({1, 2, 3, 4, 5, 6})
"""Filters of HDF5 itself; szip, 4, only if it was built with it."""
_ZFP = 32013
_OF_ZARR = {"pcodec": "pcodec:Pcodec"}
"""Codecs of Zarr that HDF5 has no filter for, by name."""


def _imported(place: str) -> type[Filter]:
    """Return the class at a place in the table."""
    module, _, name = place.partition(":")
    kind: type[Filter] = getattr(import_module(f"tamis.filters.{module}"), name)
    return kind


def import_own() -> None:
    """Import all filters of tamis, so that no thread does when it meets one."""
    for _, place in _OWN.values():
        _imported(place)
    with suppress(ImportError):  # of a Python that was built without it
        import_module("bz2")


@cache
def by_id() -> Mapping[int, type[Filter]]:
    """Return every filter class by its HDF5 id, smallest first."""
    kinds = {code: _imported(place) for code, (_, place) in _OWN.items()}
    # Late: importlib.metadata takes as long as all of h5py.
    for entry_point in imported("importlib.metadata").entry_points(group=ENTRY_POINTS):
        try:
            kind = entry_point.load()
            if not (isinstance(kind, type) and issubclass(kind, Filter)):
                raise ParameterError(f"expected a subclass of tamis.filters.Filter, got {kind!r}")
            names = {other.name for other in kinds.values()} | _OF_ZARR.keys()
            if kind.id in kinds or kind.name in names or kind.name == UnknownFilter.name:
                raise ParameterError(f"expected an id and a name of its own, got {kind.id} and {kind.name!r}")
        except Exception as error:  # another package's module may raise anything
            warnings.warn(f"filter {entry_point.name} = {entry_point.value} is left out: {error}", stacklevel=2)
        else:
            kinds[kind.id] = kind
    return MappingProxyType(dict(sorted(kinds.items())))


@cache
def by_name() -> Mapping[str, type[Filter]]:
    """Return every filter class by its name in tamis, also of codecs that only Zarr has."""
    kinds = (*by_id().values(), *map(_imported, _OF_ZARR.values()))
    return MappingProxyType({kind.name: kind for kind in kinds})


_REQUEST = Kind(
    "a tamis.filters.Request such as Request(1, (4,))",
    lambda value: isinstance(value, Request) and WHOLE.fits(value.id) and WHOLES.fits(value.values),
)

_REQUESTED = instance("a filter such as tamis.Deflate(4), or a Request", Filter, Request)


def filter_named(name: str) -> type[Filter] | None:
    """Return a filter class by its name; other packages are searched only for names that tamis does not have."""
    TEXT.check("name", name)
    own = next((place for own_name, place in (*_OWN.values(), *_OF_ZARR.items()) if own_name == name), None)
    return by_name().get(name) if own is None else _imported(own)


def _kind(code: int) -> type[Filter] | None:
    """Return a filter class by its id; other packages are searched only for ids that tamis does not have."""
    return _imported(_OWN[code][1]) if code in _OWN else by_id().get(code)


def is_known(code: int) -> bool:
    """Return whether tamis, or an installed package, has a class for a filter."""
    return _kind(code) is not None


def is_group_safe(code: int) -> bool:
    """Return whether a filter that tamis knows can be used on the links of a group."""
    kind = _kind(code)
    return kind is not None and kind.group_safe


def needs_plugin(code: int) -> bool:
    """Return whether HDF5 needs a plugin for a filter, which neither HDF5 itself nor tamis has."""
    return code not in BUILT_IN and code != _ZFP


def is_safe(code: int) -> bool:
    """Return whether tamis or an installed package has a class for a filter, and it cannot end the process."""
    kind = _kind(code)
    return kind is not None and not kind.is_foreign


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
    _REQUEST.check("request", request)
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
    _REQUEST.check("request", request)
    kind = _kind(request.id)
    if kind is None:
        return UnknownFilter(request.id, _cd_values(request))
    try:
        return kind.from_requested(_cd_values(request))
    except (ParameterError, StreamError) as error:
        raise ParameterError(f"filter {request.id} ({kind.name}): {error}").at(filter=kind.name) from error


def _cd_values(request: Request) -> tuple[int, ...]:
    return tuple(int(value) & 0xFFFFFFFF for value in request.values)


@dataclass(frozen=True, slots=True)
class Entry:
    """One filter."""

    # As the filter has them; a rounding, and a codec of Zarr alone, have no id
    id: int | None
    name: str
    registered_name: str
    about: str
    parameters: tuple[str, ...]  # Each with its default, range and meaning
    takes: str  # Restrictions and extras: first in the pipeline, groups, read-only
    needs: str  # What tamis needs for it, beyond itself
    # Required packages that are not installed here, and the command that installs them; empty if none is missing
    missing: str


def catalogue(
    names: Collection[str] = (), roundings: Mapping[str, type[Parameterized]] = MappingProxyType({})
) -> tuple[Entry, ...]:
    """Return every filter that tamis knows, in the order of their ids, or the named filters and kinds of rounding."""
    if unknown := [name for name in names if name not in by_name() and name not in roundings]:
        all_names = sorted({*by_name(), *roundings})
        nearest = did_you_mean(unknown[0], all_names)
        raise ParameterError(f"expected a filter ({', '.join(all_names)}), got {unknown[0]!r}{nearest}")
    filters = (kind for kind in by_name().values() if not names or kind.name in names)
    named = dict.fromkeys(roundings[name] for name in names if name in roundings)
    return (*map(_entry, filters), *map(_rounding_entry, named))


def _entry(kind: type[Filter]) -> Entry:
    takes = ["must be first" if kind.needs_values else "", "groups too" if kind.group_safe else ""]
    takes.append("reads only" if kind.decode_only else "")
    return Entry(
        None if kind.zarr_only else kind.id,
        kind.name,
        kind.registered_name,
        kind.about,
        _parameters_in_words(kind),
        ", ".join(filter(None, takes)),
        ", ".join(kind.needs),
        kind.missing(),
    )


def _rounding_entry(kind: type[Parameterized]) -> Entry:
    return Entry(None, kind.name, kind.name, kind.about, _parameters_in_words(kind), "before all filters", "", "")


def _parameters_in_words(kind: type[Parameterized]) -> tuple[str, ...]:
    defaults = {member.name: member.default for member in fields(kind)} if hasattr(kind, "__dataclass_fields__") else {}  # type: ignore[arg-type]
    given = {name: f"={value}" for name, value in defaults.items() if value is not MISSING and value is not None}
    return tuple(
        f"{name}{given.get(name, '')}: {parameter.range}; {parameter.about}"
        for name, parameter in kind.parameters().items()
    )


NONE = "none"
"""The text of a pipeline without filters."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A filter in a pipeline, with its flag.

    Parameters
    ----------
    filter
        The filter.
    optional
        Whether a chunk is stored without the filter if the filter fails.
    stored
        Its parameters as a file has them; None if they follow from the type and shape of a chunk.
    """

    filter: Filter
    optional: bool
    stored: tuple[int, ...] | None = None

    @classmethod
    def of(cls, requested: Filter | Request) -> Self:
        """Return a stage of a filter or of a request by id, with the flag that HDF5's own calls give it.

        Raises
        ------
        ParameterError
            If tamis knows the filter and refuses such parameters.
        """
        _REQUESTED.check("requested", requested)
        stage_filter = requested if isinstance(requested, Filter) else requested_filter(requested)
        return cls(stage_filter, stage_filter.optional)

    @classmethod
    def listed(cls, request: Request, label: str, *, optional: bool, total: int) -> Self:
        """Return a stage of a filter that HDF5 lists for an object in a file.

        Parameters
        ----------
        request
            Id and stored parameters, as far as HDF5 returns them.
        label
            The filter's name in the file.
        optional
            Its flag.
        total
            Number of all parameters.
        """
        stage_filter = from_values(request, label, stored=True)
        if total > len(request.values):
            reason = f"it has {total} parameters, of which HDF5 returns {len(request.values)}"
            stage_filter = UnknownFilter(request.id, request.values, label or stage_filter.name, reason)
        return cls(stage_filter, optional, request.values)

    @property
    def request(self) -> Request:
        """Id and parameters for H5Pset_filter."""
        return Request(self.filter.hdf5_id, self.filter.requested)

    @property
    def flag(self) -> str:
        """The flag in words."""
        return "optional" if self.optional else "required"

    @property
    def in_words(self) -> str:
        """A description of the filter, with the version that wrote its parameters if that is known."""
        return self.filter.in_words(self.stored or ())

    def __str__(self) -> str:
        if self.optional == self.filter.optional:
            return str(self.filter)
        return f"{self.filter}{'?' if self.optional else '!'}"
