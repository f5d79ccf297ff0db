"""Virtual datasets, which show the values of others: what a run makes of the datasets that they show.

A virtual dataset that stays virtual shows what is stored in its sources. If the run packs them, masks their missing
values or leaves them out, its readers would silently get codes, invented values or fill values: that is refused before
anything is written. If a run in place stores its values, its sources may have lost some of theirs before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tamis.accuracy.measured import Measured
from tamis.errors import ParameterError, TamisError
from tamis.formatting import printable
from tamis.jobs.recipes.names import Names, assigned
from tamis.jobs.repack.planning import Planning, plan_datasets
from tamis.remote.address import place_of
from tamis.rewrite.surveys import has_missing
from tamis.rewrite.tolerance import provisional
from tamis.rounding import PackingRange
from tamis.stores.facts import ArrayFacts
from tamis.stores.other_files import NUMBER, Places, numbered, place

if TYPE_CHECKING:
    from tamis.jobs.repack.options import RepackOptions
    from tamis.rewrite.plan import ArrayPlan
    from tamis.stores.protocols import Store, StoredArray

Source = tuple[str, str]
"""The path of a file, without links on the way to it, and the path of a dataset in it."""

_PACKED = "which this run packs, so that it stores codes"
_MASKED = "whose missing values this run fills in (missing: mask)"
_DROPPED = "which this run leaves out (drop)"
_CHANGED = "which this run replaces with a loss"
_ABSENT = "which does not exist"


class Fate(NamedTuple):
    """What a run makes of a dataset, in words for each thing that others may need; empty if it stays as it is."""

    spoiled: str = ""  # What makes its stored values mean something else
    lost: str = ""  # What makes its values change at all
    gone: str = ""  # Why it is not there
    sources: tuple[Source, ...] = ()  # What it shows, if it stays virtual, or is a link
    # The plan that only spoils it if it has missing values, which is known when all values are read; None for others
    masks: ArrayPlan | None = None


class AffectedSource(NamedTuple):
    """A dataset that others show, and what becomes of it, in words."""

    file: str
    path: str
    what: str

    def text(self, own: str) -> str:
        """Return all of it, for the readers of a file."""
        where = "" if self.file == os.path.realpath(own) else f" of {self.file}"
        return f"{self.path}{where}, {self.what}"


class _NoSurvey(NamedTuple):
    """Reads no values: whether an array is packed does not depend on them; see `tamis.jobs.repack.survey.Survey`."""

    ranges: Mapping[str, PackingRange]

    def measured(self, plan: ArrayPlan, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`."""
        return Measured()

    def packing_range(self, source: ArrayFacts, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`."""
        return self.ranges.get(source.path, PackingRange())._replace(missing=())


class Fates:
    """What a run makes of the datasets in its files; each file is planned when it is needed.

    Parameters
    ----------
    options
        Options of the run.
    places
        Where the files of the run go.
    in_place
        Whether they take the places of their sources, so that files that the run does not make also lead to them.
    is_done
        Whether an earlier run has made the file at a path in its place, so that this one leaves it as it is.
    """

    def __init__(
        self,
        options: RepackOptions,
        places: Places,
        *,
        in_place: bool = False,
        is_done: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._options, self._places, self._in_place, self._is_done = options, places, in_place, is_done
        self._by_file: dict[str, dict[str, Fate]] = {}  # By first path, only datasets that the run affects
        self._found: dict[Source, Fate] = {}

    def add(self, store: Store, planning: Planning) -> None:
        """Take the plans for a file that is open."""
        file = os.path.realpath(store.path)
        self._by_file[file] = dict(self._fates(store, file, planning))

    def planned(self, store: Store) -> Planning:
        """Return plans for a file of the run, for which no values are read."""
        options, recipe = self._options, self._options.recipe
        filters = {name: provisional(value).within(None) for name, value in recipe.filters.items()}
        recipe = replace(recipe, filters=filters, require={})
        options = replace(options, recipe=recipe, optional_names=True, storage="disk")
        return plan_datasets(store, options, _NoSurvey(options.ranges))

    def first(self, store: Store, sources: Iterable[Source], what: Callable[[Fate], str]) -> AffectedSource | None:
        """Return the first dataset that a run changes or leaves out: of these, and of those that they show.

        `store` is the file that has the sources.
        """
        own = os.path.realpath(store.path)
        todo, seen = dict.fromkeys(sources), dict[Source, None]()
        while todo:
            seen |= todo
            fates = {source: self._of(*source, store if source[0] == own else None) for source in todo}
            for source, fate in fates.items():
                if text := what(fate):
                    return AffectedSource(*source, text)
            todo = {source: None for fate in fates.values() for source in fate.sources if source not in seen}
        return None

    def _of(self, file: str, path: str, store: Store | None) -> Fate:
        """Return what becomes of the dataset at a path, through any links, of a file, which may be open."""
        key = file, path
        if key not in self._found:
            self._found[key] = Fate()
            with suppress(TamisError, OSError, RuntimeError):  # what cannot be opened, the run says itself
                if store is not None:
                    self._found[key] = self._in(store, file, path)
                elif self._in_place or self._is_own(file):
                    with self._options.open(place_of(file)) as opened:
                        self._found[key] = self._in(opened, file, path)
        return self._found[key]

    def _is_own(self, file: str) -> bool:
        return self._places.target_of(file) is not None

    def _in(self, store: Store, file: str, path: str) -> Fate:
        if file not in self._by_file:
            planning = self.planned(store) if self._is_own(file) else Planning({}, {}, store.arrays, frozenset())
            self._by_file[file] = dict(self._fates(store, file, planning))
        if NUMBER in path:
            fits = numbered(path).fullmatch
            return Fate(sources=tuple((file, own) for own in store.paths() if fits(own)))
        if first := store.first_path(path):
            fate = self._by_file[file].get(first, Fate())
            if fate.masks is not None and not self._has_missing(fate.masks, store.array(first)):
                fate = fate._replace(spoiled="")
            return fate
        if (linked := store.linked(path)) is not None:
            return Fate(sources=((os.path.realpath(linked[0]), linked[1]),))
        return Fate() if store.has(path) else Fate(gone=_ABSENT)

    def _has_missing(self, plan: ArrayPlan, array: StoredArray) -> bool:
        """Return whether a dataset that others show gets a mask; also True if its values cannot be read."""
        with suppress(TamisError, OSError, RuntimeError):
            return has_missing(plan, array, self._options.threads)
        return True

    def _fates(self, store: Store, file: str, planning: Planning) -> Iterator[tuple[str, Fate]]:
        """Yield the first path and the fate of each dataset that the run changes or leaves out."""
        losing = self._losing(store) if self._in_place else frozenset[str]()
        is_done = self._is_done(file)
        for path, array in planning.datasets.items():
            first, plan = store.first_path(path), planning.plans.get(path)
            if first in planning.dropped:
                yield first, Fate(_DROPPED, _DROPPED, _DROPPED)
            elif plan is not None:
                text = _PACKED if plan.codes is not None else _MASKED if plan.flags is not None else ""
                spoiled, masks = ("", None) if is_done else (text, plan if text == _MASKED else None)
                yield first, Fate(spoiled, _CHANGED if first in losing else "", masks=masks)
            elif array.storage.layout == "virtual":
                yield first, Fate(sources=sources_of(array, file))

    def _losing(self, store: Store) -> frozenset[str]:
        """Return the first paths of the datasets for which lossy filters are requested, whatever they have now."""
        asked: dict[str, float | None] = {}
        for entry in assigned(self._options.recipe.filters, Names(store, optional=True).match_any):
            asked.setdefault(entry.path, entry.value.error_bound)
        return frozenset(path for path, bound in asked.items() if bound != 0)


def sources_of(array: ArrayFacts, file: str) -> tuple[Source, ...]:
    """Return what a virtual array of a file shows."""
    return tuple((os.path.realpath(other or file), path) for other, path in array.elsewhere.virtual_sources)


def with_needed(store: Store, planning: Planning, fates: Fates) -> Planning:
    """Return a planning that says which virtual datasets cannot stay virtual, because the run spoils what they show.

    Raises
    ------
    ParameterError
        If one of them is to stay virtual.
    """
    needed = set()
    for path, array in planning.datasets.items():
        if array.storage.layout != "virtual" or store.first_path(path) in planning.dropped:
            continue
        if (found := fates.first(store, sources_of(array, store.path), lambda fate: fate.spoiled)) is None:
            continue
        if path not in planning.plans:
            raise ParameterError(
                f"{store.path}: {path}: stays a virtual dataset, and shows {found.text(store.path)}: its readers would"
                " get wrong values without a warning. Store its values, too: name it, give follow (--follow)"
                " or self_contained (--self-contained), or leave it out (drop)"
            ).at(path=store.path, dataset=path)
        needed.add(path)
    return planning._replace(needed=frozenset(needed))


def checked_views(store: Store, planning: Planning, options: RepackOptions) -> tuple[Planning, list[str]]:
    """Return the planning of a file as `with_needed` does, and notes about external links that will lead nowhere.

    The virtual datasets of files that are replaced are looked at together before the first file is made: see
    `tamis.jobs.many.look_ahead`.
    """
    in_place = place(planning.places.target_of(store.path) or "") == place(store.path)
    fates = Fates(options, planning.places, in_place=in_place)
    fates.add(store, planning)
    if not in_place:
        planning = with_needed(store, planning, fates)
    return planning, [*_dangling(store, planning, fates)] if options.recipe.drop else []


def _dangling(store: Store, planning: Planning, fates: Fates) -> Iterator[str]:
    for path in store.links_elsewhere():
        linked = store.linked(path)
        if linked is None or planning.places.target_of(linked[0]) is None:
            continue
        source = os.path.realpath(linked[0]), linked[1]
        if (found := fates.first(store, [source], lambda fate: fate.gone)) is not None:
            yield printable(f"{path}: this link leads to {found.text(store.path)}")
