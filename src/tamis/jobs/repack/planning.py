"""Plan each array of a file that a recipe matches, or say why it is kept: names first, then `decide` for each array."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tamis import meaning
from tamis.errors import DataError, FileError, MissingFilterError, ParameterError, TamisError
from tamis.formats.registry import open_store
from tamis.jobs.recipes.names import Assigned, Chunks, DimensionChunks, Names, assigned, dropped_datasets
from tamis.jobs.repack.decide import Asked, Kept, decide, packs, unstored
from tamis.jobs.repack.required import requirements
from tamis.jobs.repack.survey import SURVEY_ALONE, Survey
from tamis.pipeline import Pipeline
from tamis.remote.address import Address
from tamis.rewrite.damage import KEPT, MAY_KEEP, damage_of
from tamis.rewrite.plan import ArrayPlan, Copy, Recode, Recompress, recode
from tamis.rewrite.values import Padding
from tamis.safety.library_errors import reading
from tamis.stores.facts import ELSEWHERE, ArrayFacts
from tamis.stores.other_files import Places, TakenIn
from tamis.stores.protocols import Arrays, Store, StoredArray, likeness_of

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement
    from tamis.jobs.repack.options import RepackOptions
    from tamis.rewrite.transfer import TargetForm

T = TypeVar("T")


class Planning(NamedTuple):
    """The plans for the datasets of a file."""

    plans: dict[str, ArrayPlan]  # For each path that a recipe matches, the plan
    kept: dict[str, str]  # For each path that a pattern matches but that is kept, the reason
    # All datasets of the file, by the path that a recipe matched, others by their first path
    datasets: Arrays[StoredArray]
    exact: frozenset[str]  # Paths that a recipe names exactly, not by a pattern
    unmatched: Mapping[str, str] = {}  # Patterns that match nothing, with this in words
    dropped: frozenset[str] = frozenset()  # First paths of datasets that are left out
    form: TargetForm | None = None  # Form of the target; None without a target
    places: Places = Places()  # Where the files of the run go
    taken_in: tuple[TakenIn, ...] = ()  # Files whose objects or values the target has itself
    patterns: Mapping[str, str] = {}  # The pattern that matched each path, where no exact name did
    needed: frozenset[str] = frozenset()  # Paths of virtual datasets that cannot stay virtual: see `views`

    def copies_objects_of(self, store: Store) -> bool:
        """Return whether the target gets the objects of a store as they are stored; False without a target."""
        return self.form is not None and self.form.copies_objects_of(store)

    def keeping(self, paths: Collection[str]) -> Planning:
        """Return the planning where datasets that a pattern matches are kept if the target cannot write their type."""
        kept = {path for path in self.plans if path in paths and path not in self.exact}
        reasons = dict.fromkeys(kept, "the target can only keep values of its type as they are stored")
        plans = {path: plan for path, plan in self.plans.items() if path not in kept}
        return self._replace(plans=plans, kept={**self.kept, **reasons})

    def of_values(self) -> Planning:
        """Return the planning for a target of another format, whose arrays have values instead of bytes."""
        plans = {path: _of_values(plan, self.datasets[path]) for path, plan in self.plans.items()}
        return self._replace(plans=plans)


class _Recipes(NamedTuple):
    """Which filters, chunks and requirements each dataset gets, by the names and patterns of a recipe."""

    entries: list[Assigned[Any]]  # Filters, or a chunk shape without filters; the first that can be followed counts
    labels: dict[str, str]  # By the first path of a dataset, the path that a recipe matched
    shapes: Mapping[str, Assigned[Chunks]]  # Chunk shapes by first path
    required: Mapping[str, Requirement]  # Requirements by first path
    dropped: frozenset[str]  # First paths of datasets that are left out

    @classmethod
    def of(cls, store: Store, names: Names, options: RepackOptions) -> _Recipes:
        """Return the recipes for the datasets of a store."""
        shapes: dict[str, Assigned[Chunks]] = {}
        for shape in (*assigned(options.recipe.chunks, names.match_any), *_by_rule(options.rule_chunks, store)):
            shapes.setdefault(shape.path, shape)
        entries: list[Assigned[Any]] = [
            *assigned(options.recipe.filters, names.match_any),
            *_by_rule(options.rule_pipelines, store),
        ]
        # Chunks without filters. A pattern for chunks is for datasets that get filters, unless there are no recipes.
        no_filters = not entries
        entries += [
            shape for shape in shapes.values() if shape.exact or no_filters or shape.path in options.rule_chunks
        ]
        if options.self_contained:
            _take_in(store, entries, shapes)
        dropped = dropped_datasets(store, names, options.recipe.drop)
        if unwanted := [entry.label for entry in entries if entry.exact and entry.path in dropped]:
            raise ParameterError(f"{unwanted[0]}: has a recipe, and is left out (drop): leave out one of the two")
        entries = [entry for entry in entries if entry.path not in dropped]
        labels: dict[str, str] = {}
        for entry in entries:
            labels.setdefault(entry.path, entry.label)
        required = requirements(assigned(options.recipe.require, names.match_any), labels)
        return cls(entries, labels, shapes, required, dropped)

    @property
    def exact(self) -> frozenset[str]:
        """Paths that a recipe names exactly, not by a pattern."""
        return frozenset(self.labels[entry.path] for entry in self.entries if entry.exact)

    @property
    def patterns(self) -> dict[str, str]:
        """The pattern that matched each path, where no exact name did."""
        exact = self.exact
        patterns = {self.labels[entry.path]: entry.name for entry in reversed(self.entries) if not entry.exact}
        return {path: name for path, name in patterns.items() if path not in exact}

    def asked(self, entry: Assigned[Any], store: Store, array: StoredArray, options: RepackOptions) -> Asked:
        """Return what an entry asks of an array.

        Raises
        ------
        ParameterError
            If it has chunks by dimensions that the array does not have.
        """
        filters = entry.value if isinstance(entry.value, Pipeline) else None
        shape = self.shapes.get(entry.path)
        chunks = None if shape is None else shape.value
        named = entry.exact or (shape is not None and shape.exact)

        def exactness() -> str:
            role = store.roles.get(entry.path, meaning.DATA)
            return role.reason if role.is_exact else ""

        return Asked(
            path=self.labels[entry.path],
            filters=filters,
            chunks=chunks.of(store, array) if isinstance(chunks, DimensionChunks) else chunks,
            required=self.required.get(entry.path),
            exact=entry.exact,
            named=named,
            by_rule=filters is None and entry.path in options.rule_chunks and not named,
            exactness=exactness,
        )


def _take_in(store: Store, entries: list[Assigned[Any]], shapes: dict[str, Assigned[Chunks]]) -> None:
    """Add recipes for the arrays whose values are in other files, with the filters and chunks that these have."""
    for path, array in store.arrays.items():
        if array.storage.layout in ELSEWHERE and array.type.dtype is not None and array.shape:
            filters, steps = _of_sources(array)
            if steps is not None:
                shapes.setdefault(path, Assigned(path, path, path, steps, False))
            entries += [Assigned(path, path, path, value, False) for value in (filters, None)]


class _SimilarPlans:
    """Plans of arrays that are alike but for their values: most files have many of them."""

    def __init__(self, store: Store, recipes: _Recipes, options: RepackOptions) -> None:
        self._store, self._recipes, self._options = store, recipes, options
        self._plans: dict[object, ArrayPlan] = {}

    def likeness_of(self, entry: Assigned[Any], array: StoredArray) -> object:
        """Return what an array shares with others that get the same plan; None if its plan depends on more."""
        shape = self._recipes.shapes.get(entry.path)
        chunks = None if shape is None else shape.value
        depends = isinstance(chunks, DimensionChunks) or entry.path in self._recipes.required
        likeness = likeness_of(array)
        if likeness is None or depends or self._options.storage == "s3":
            return None
        filters = entry.value if isinstance(entry.value, Pipeline) else None
        named = entry.exact or (shape is not None and shape.exact)
        is_exact = False
        if filters is not None and filters.error_bound != 0 and not entry.exact:
            is_exact = self._store.roles.get(entry.path, meaning.DATA).is_exact
        return likeness, filters, chunks, named, entry.path in self._options.rule_chunks, is_exact

    def plan_of(self, likeness: object, path: str) -> ArrayPlan | None:
        """Return the plan of a similar array for another path; None if there is none."""
        plan = self._plans.get(likeness) if likeness is not None else None
        return plan.at(path) if plan is not None and path.isprintable() else None

    def add(self, likeness: object, plan: ArrayPlan, array: ArrayFacts) -> None:
        """Keep a plan for similar arrays, unless it depends on the values, chunks or path of this one."""
        names_path = any(plan.path in note for note in plan.notes)
        if likeness is not None and not names_path and _is_general(plan, array):
            self._plans[likeness] = plan


def plan_datasets(store: Store, options: RepackOptions, survey: Survey = SURVEY_ALONE) -> Planning:
    """Return a plan for each dataset that a recipe matches, and the reason for each dataset that is kept."""
    store.check_listed()
    names = Names(store, optional=options.optional_names)
    recipes = _Recipes.of(store, names, options)
    datasets = store.arrays.labelled(recipes.labels)
    similar = _SimilarPlans(store, recipes, options)
    plans: dict[str, ArrayPlan] = {}
    kept: dict[str, str] = {}
    for entry in recipes.entries:
        path = recipes.labels[entry.path]
        if path in plans:
            continue
        array = datasets[path]
        likeness = similar.likeness_of(entry, array)
        plan = similar.plan_of(likeness, path)
        if plan is None:
            decided = _decided(entry, array, recipes, store, options, survey)
            if isinstance(decided, Kept):
                kept[path] = decided.reason
                continue
            plan = decided
            similar.add(likeness, plan, array)
        plans[path] = plan
        kept.pop(path, None)
    exact = recipes.exact
    for path, variable in replaced_companions(datasets, plans).items():
        if path in exact:
            raise ParameterError(
                f"{path}: expected no recipe for the missing-value mask of {variable}, which is rewritten: tamis writes"
                " a new one if it needs it"
            )
        plans.pop(path, None)
        kept.pop(path, None)
    return Planning(plans, kept, datasets, exact, names.unmatched, recipes.dropped, patterns=recipes.patterns)


def _decided(
    entry: Assigned[Any],
    array: StoredArray,
    recipes: _Recipes,
    store: Store,
    options: RepackOptions,
    survey: Survey,
) -> ArrayPlan | Kept:
    """Return how an array is stored, or why it is kept; raise an error if a recipe names it, and cannot be followed."""
    path = recipes.labels[entry.path]
    try:
        with reading(store.path, dataset=path):
            return decide(array, recipes.asked(entry, store, array, options), options, survey)
    except (MissingFilterError, ParameterError, DataError) as error:
        if not (entry.exact or isinstance(error, MissingFilterError)):
            return Kept(str(error))
        error.at(path, path=store.path, dataset=path)
        raise
    except FileError as error:  # of values that are read for their range
        if not _has_damaged_chunks(array, options.threads):
            raise
        if not entry.exact or options.keep_damaged:
            return Kept(f"{KEPT}: {error}")
        raise FileError(f"{error}: {MAY_KEEP}").at(path=store.path, dataset=path) from error


def _has_damaged_chunks(array: StoredArray, threads: int) -> bool:
    """Return whether chunks of an array cannot be decoded; not if it has a companion, and so cannot stay as it is."""
    with suppress(TamisError, OSError, RuntimeError):  # its metadata are damaged, too
        return not array.marks.has_companion and bool(damage_of(array, lambda *_: None, threads))
    return False


_MOST_SOURCES = 16
"""Limit of the sources of a virtual dataset that are looked at for their filters and chunks."""


def _of_sources(array: ArrayFacts) -> tuple[Pipeline | None, tuple[int, ...] | None]:
    """Return the filters and the chunk shape of the sources of a virtual dataset that its own values can have, too.

    None for what they do not have in common, filters that lose something, and chunks of another number of axes.
    """
    filters: set[Pipeline] = set()
    shapes: set[tuple[int, ...] | None] = set()
    for file, path in array.elsewhere.virtual_sources[:_MOST_SOURCES]:
        if file:
            with suppress(TamisError, OSError, RuntimeError, KeyError), open_store(file) as store:
                storage = store.array(path).storage
                filters.add(unstored(storage.pipeline))
                shapes.add(storage.chunk_shape)
    pipeline = filters.pop() if len(filters) == 1 else None
    if pipeline is not None and (not pipeline.stages or pipeline.error_bound != 0):
        pipeline = None
    steps = shapes.pop() if len(shapes) == 1 else None
    if steps is not None and not _fits(steps, array.shape):
        steps = None
    return pipeline, steps


def _fits(steps: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a chunk shape has the axes of an array, and is no larger."""
    return len(steps) == len(shape) and all(step <= extent for step, extent in zip(steps, shape, strict=True))


def taken_in(store: Store, arrays: Iterable[StoredArray], linked: Iterable[str] = ()) -> tuple[TakenIn, ...]:
    """Return the files whose values or objects a target has itself: those of these arrays, and those of links."""
    files = dict.fromkeys((*linked, *(file for array in arrays for file in array.elsewhere.value_files)))
    own = "" if isinstance(store.path, Address) else os.path.realpath(store.path)
    return tuple(TakenIn.of(file) for file in files if file != own)


def _is_general(plan: ArrayPlan, dataset: ArrayFacts) -> bool:
    """Return whether the plan depends only on what similar datasets share, and on no value or chunk of this one."""
    if not (plan.changes_values or plan.rounding):
        return True
    depends_on_values = plan.codes is not None or plan.pipeline.bound is not None
    return isinstance(plan, Recode) and not depends_on_values and dataset.storage.pipeline.bounded is None


def _of_values(plan: ArrayPlan, array: StoredArray) -> ArrayPlan:
    """Return the plan of an array as an array of values; it has no chunks to copy if its bytes differ."""
    values = array.as_values()
    if not isinstance(plan, Copy) and array.type.byteorder == "big":
        plan = replace(plan, notes=(*plan.notes, "big-endian in the source, stored little-endian"))
    if values is array or values.type.dtype is None:
        return plan
    pipeline = unstored(plan.pipeline)
    if isinstance(plan, Recompress):
        return replace(plan, pipeline=pipeline, dtype=values.type.dtype)
    padding = Padding.of(values, values.type.dtype)
    if isinstance(plan, Recode):
        return replace(plan, pipeline=pipeline, dtype=values.type.dtype, padding=padding)
    return recode(plan, pipeline=pipeline, dtype=values.type.dtype, padding=padding)


def _by_rule(values: Mapping[str, T], store: Store) -> Iterator[Assigned[T]]:
    """Yield values by first path for existing datasets."""
    for path, value in values.items():
        if path in store.arrays:
            yield Assigned(path, path, path, value, False)


def replaced_companions(datasets: Arrays[StoredArray], plans: Mapping[str, ArrayPlan]) -> dict[str, str]:
    """Return the paths of companions that become outdated because their variables are stored anew, and of these."""
    marked = datasets.marked()
    unchanged = {path for path in marked if path not in plans or not isinstance(plans[path], Recode)}
    in_use = {companion.address for companion, variable in datasets.companions() if variable in unchanged}
    replaced = {}
    for path in marked:
        if path not in unchanged and (companion := datasets[path].companion) is not None:
            replaced[companion.address] = path
    for address in in_use:
        replaced.pop(address, None)
    addresses = ((path, array.address) for path, array in datasets.items()) if replaced else ()
    return {path: replaced[address] for path, address in addresses if address in replaced}


def may_spoil(options: RepackOptions) -> bool:
    """Return whether a recipe may spoil virtual datasets that show an array: see `tamis.jobs.repack.views`."""
    filters = (*options.recipe.filters.values(), *options.rule_pipelines.values())
    return options.missing == "mask" or bool(options.recipe.drop) or any(map(packs, filters))
