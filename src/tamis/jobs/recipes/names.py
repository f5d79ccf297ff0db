"""Assign pipelines and chunk shapes to datasets: ``TS:zfp(accuracy=0.1)``, ``/grp/*:shuffle|deflate(4)``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from tamis import meaning
from tamis.errors import FileError, ParameterError, TamisError, located
from tamis.filters import Filter
from tamis.formatting import did_you_mean
from tamis.lazy_property import lazy_property
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.stores.protocols import Store, StoredArray


class Names:
    """Names and patterns of the datasets of a file.

    An exact name may lead through links of any kind. A pattern is compared with every path of hard links.
    """

    def __init__(self, store: Store, *, optional: bool = False) -> None:
        self._store = store
        self.optional = optional  # Whether an exact name may match nothing, too
        self.unmatched: dict[str, str] = {}

    @property
    def filename(self) -> str:
        """Path of the file."""
        return self._store.path

    def match(self, name: str) -> Match:
        """Return the datasets that match a name or pattern, by their first paths."""
        path = absolute(name)
        if path in self._store.arrays:
            return Match({path: path}, exact=True)
        if first := self._store.first_path(path):
            return Match({first: path}, exact=True)
        with located(self.filename, path=self.filename, dataset=name):
            return matching(name, self._paths, self._standard_names)

    def match_any(self, name: str) -> Match:
        """Return the same as `match`; a pattern may match nothing, because one recipe is for many files."""
        is_pattern = has_pattern_signs(name)
        try:
            match = self.match(name)
        except FileError:
            if not (is_pattern or self.optional):
                raise
            match = Match({}, exact=False)
        if not match.labels:
            self.unmatched[name] = f"this {'pattern' if is_pattern else 'name'} matches no dataset"
        return match

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """Return the datasets that match any of several names or patterns: first path → path that matched."""
        matches = sorted(map(self.match, names), key=lambda match: not match.exact)
        return {path: label for match in reversed(matches) for path, label in match.labels.items()}

    def _standard_names(self) -> Mapping[str, str]:
        return {path: meaning.text(array.attributes, "standard_name") for path, array in self._store.arrays.items()}

    @lazy_property
    def _paths(self) -> Mapping[str, str]:
        return self._store.paths()


T = TypeVar("T")

STANDARD_NAME = "standard_name="
"""Beginning of a name that means datasets by this attribute; what follows may be a pattern."""

_DIGITS = 18  # limit of the digits of an extent, so that it fits 64 bits

Recipes = Mapping[str, Pipeline | Filter | str]
"""Filters by the name or pattern of datasets."""


def split_filters(text: str) -> tuple[str, Pipeline]:
    """Split ``NAME:FILTERS``: see `tamis.notation.text.parse_named`."""
    from tamis.notation.text import parse_named  # late: names need no filters

    split_recipe(text)
    name, stages = parse_named(text)
    return name, Pipeline(stages)


def split_recipe(text: str, form: str = "NAME:FILTERS", example: str = "TS:zfp(accuracy=0.1)") -> tuple[str, str]:
    """Split a text at the last colon: names may contain colons, values do not."""
    name, _, value = text.rpartition(":")
    if not name or not value:
        for_all = f"*:{example.rpartition(':')[2]}"
        raise ParameterError(f"expected {form} such as {example!r}, got {text!r}: {for_all!r} is for all datasets")
    return name, value


def parse_chunks(text: str) -> tuple[int, ...]:
    """Parse a chunk shape written as ``4x96x144``."""
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS and int(part) for part in parts):
        raise ParameterError(f"expected a chunk shape such as 4x96x144, got {text[:80]!r}")
    return tuple(map(int, parts))


def chunk_shape(value: object) -> tuple[int, ...]:
    """Check that a value is a sequence of whole numbers above 0, and return it as a chunk shape."""
    try:
        shape = tuple(operator.index(step) for step in value)  # type: ignore[attr-defined]
    except TypeError:
        shape = (0,)
    if not all(0 < step < 10**_DIGITS for step in shape):
        raise ParameterError(f"expected a chunk shape of whole numbers above 0 such as (4, 96, 144), got {value!r}")
    return shape


def has_pattern_signs(name: str) -> bool:
    """Return whether a name may be a pattern; a dataset with exactly this name takes precedence."""
    return re.search(r"[*?]|\[.+\]", name) is not None  # a single bracket is part of the name


def absolute(name: str) -> str:
    """Return the absolute path of a name: ``TS`` and ``/TS/`` become ``/TS``."""
    return "/" + "/".join(part for part in name.split("/") if part not in ("", "."))


class Match(NamedTuple):
    """Datasets that match a name or pattern."""

    labels: dict[str, str]  # For the own path of each dataset, the path that matched, which may be another link to it
    exact: bool  # Whether an exact name matched, not a pattern


class Assigned(NamedTuple, Generic[T]):
    """A value for one dataset."""

    name: str  # Name or pattern as given
    # Own path of the dataset, and the path that matched
    path: str
    label: str
    value: T  # The value for the dataset
    exact: bool  # Whether `name` is an exact name, not a pattern


def matching(
    name: str, paths: Mapping[str, str], standard_names: Callable[[], Mapping[str, str]] = dict[str, str]
) -> Match:
    """Return the datasets that match a name or pattern; ``TS`` means ``/TS``, ``*`` matches any characters."""
    if (path := absolute(name)) in paths:
        return Match({paths[path]: path}, exact=True)
    labels: dict[str, str] = {}
    if name.startswith(STANDARD_NAME):
        return _by_standard_name(name, standard_names())
    if has_pattern_signs(name):
        fits = re.compile(translate(name if name.startswith(("/", "*")) else f"/{name}")).match
        for path, own in paths.items():
            if fits(path) and (path == own or own not in labels):
                labels[own] = path
    if not labels and (paths or not has_pattern_signs(name)):
        own_paths = list(dict.fromkeys(paths.values()))
        listed = ", ".join(own_paths[:12]) + (", …" if len(own_paths) > 12 else "")
        nearest = did_you_mean(name, (word for path in paths for word in (path.rpartition("/")[2], path)))
        available = f"only {listed}{nearest}" if own_paths else "no datasets"
        text = f"expected a dataset named {name!r}, found {available}"
        raise FileError(text).at(dataset=name)
    return Match(labels, exact=False)


def _by_standard_name(name: str, standard_names: Mapping[str, str]) -> Match:
    fits = re.compile(translate(name.removeprefix(STANDARD_NAME))).match
    labels = {path: path for path, text in standard_names.items() if text and fits(text)}
    if not labels:
        known = sorted({text for text in standard_names.values() if text})
        nearest = did_you_mean(name.removeprefix(STANDARD_NAME), known)
        text = f"expected a dataset with {name}, found only {', '.join(known[:12]) or 'datasets without one'}{nearest}"
        raise FileError(text).at(dataset=name)
    return Match(labels, exact=False)


def assigned(values: Mapping[str, T], match: Callable[[str], Match]) -> list[Assigned[T]]:
    """Return the value of each matched dataset: exact names first, then patterns in the given order."""
    assignments: list[Assigned[T]] = []
    named: dict[str, tuple[str, T]] = {}
    entries = [(name, value, match(name)) for name, value in values.items()]
    for name, value, datasets in sorted(entries, key=lambda entry: not entry[2].exact):
        for path, label in datasets.labels.items():
            other, before = named.setdefault(path, (name, value)) if datasets.exact else (name, value)
            if before != value:
                raise ParameterError(
                    f"{path}: {other!r} and {name!r} name the same dataset, with {_value_text(before)} and "
                    f"{_value_text(value)}: leave one of them out"
                )
            assignments.append(Assigned(name, path, label, value, datasets.exact))
    return assignments


def _value_text(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True)
class DimensionChunks:
    """Extents of chunks along named dimensions."""

    # Name and extent of each dimension. Along others, chunks keep their length, or get that of the dimension if the
    # dataset has no chunks.
    extents: tuple[tuple[str, int], ...]

    def of(self, store: Store, array: StoredArray) -> tuple[int, ...]:
        """Return the chunk shape of an array; no chunk is longer than a dimension that cannot grow."""
        names = dimensions_of(store, array.path)
        if names is None or array.shape is None:
            raise ParameterError("chunks by dimension need dimensions with names, and it has none: give a list")
        own = array.storage.chunk_shape or tuple(max(extent, 1) for extent in array.shape)
        return self.along(names, own, array.maxshape)

    def along(self, names: Sequence[str], own: Sequence[int], maxshape: Sequence[int | None]) -> tuple[int, ...]:
        """Return a chunk shape from the names of dimensions, the previous chunk shape and the limits of each extent."""
        wanted = dict(self.extents)
        if unknown := [name for name in wanted if name not in names]:
            raise ParameterError(
                f"expected chunks for the dimensions {', '.join(names) or '(none)'}, got {', '.join(unknown)}"
                f"{did_you_mean(unknown[0], names)}"
            )
        return tuple(
            step if (extent := wanted.get(name)) is None else extent if most is None else min(extent, max(most, 1))
            for name, step, most in zip(names, own, maxshape, strict=True)
        )

    def __str__(self) -> str:
        return ", ".join(f"{name}={extent}" for name, extent in self.extents)


Chunks = tuple[int, ...] | DimensionChunks


def assigned_shapes(
    chunks: Mapping[str, Chunks], match: Callable[[str], Match], shape_of: Callable[[str, Chunks], tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return chunk shapes by path; a pattern skips arrays without its dimensions, which a named array must have."""
    shapes: dict[str, tuple[int, ...]] = {}
    for entry in assigned(chunks, match):
        try:
            shapes.setdefault(entry.path, shape_of(entry.path, entry.value))
        except ParameterError:
            if entry.exact:
                raise
    return shapes


def as_chunks(value: object) -> Chunks:
    """Return a chunk shape, or extents by dimension as `DimensionChunks`."""
    if isinstance(value, DimensionChunks):
        return value
    if not isinstance(value, Mapping):
        return chunk_shape(value)
    try:
        extents = tuple((name, operator.index(extent)) for name, extent in value.items())
    except TypeError:
        extents = ()
    if not extents or not all(isinstance(name, str) and 0 < extent < 10**18 for name, extent in extents):
        raise ParameterError(f"expected whole numbers above 0 by dimension such as {{'time': 10}}, got {value!r}")
    return DimensionChunks(extents)


def dropped_datasets(store: Store, names: Names, drop: Iterable[str]) -> frozenset[str]:
    """Return the first paths of datasets that are left out, with companions of missing values."""
    dropped = {path for name in drop for path in names.match_any(name).labels}
    if not dropped:
        return frozenset()
    for companion, variable in store.arrays.companions():
        if store.first_path(variable) in dropped:
            dropped.add(companion.path)
        elif companion.path in dropped:
            raise ParameterError(
                f"{companion.path}: expected {variable} to be left out as well, because this mask has its "
                f"missing values"
            )
    return frozenset(dropped)


def dimensions_of(store: Store, path: str) -> tuple[str, ...] | None:
    """Return the names of an array's dimensions; None if it has none."""
    group, _, name = path.rpartition("/")
    try:
        return store.model.group(group or "/").variables[name].dimensions
    except (TamisError, KeyError):
        return None


def units_along(store: Store, path: str) -> dict[str, str]:
    """Return the units of each dimension's coordinate, in the array's group or the root; empty without any."""
    group = path.rpartition("/")[0]
    units = {}
    for name in dimensions_of(store, path) or ():
        coordinate = store.arrays.get(f"{group}/{name}") or store.arrays.get(f"/{name}")
        text = "" if coordinate is None else coordinate.attributes.get("units", "")
        units[name] = text if isinstance(text, str) else ""
    return units
