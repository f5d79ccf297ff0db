"""Plan each dataset that a recipe matches, with what is required of its values, or say why it is kept."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from tamis import meaning
from tamis.accuracy.fields import SHORTEST, WINDOW, has_windows, words_within
from tamis.accuracy.measured import Measured
from tamis.accuracy.value_bounds import ArrayRounding, ValueBounds
from tamis.advice.chunk_shapes import Chunking, oversized_note, padding_note
from tamis.arrays.grid import chunks_for_objects, default_chunks, grid_of
from tamis.errors import DataError, FileError, MissingFilterError, ParameterError, TamisError
from tamis.filters import ChunkType, Fletcher32, Stage, Zfp
from tamis.filters.plugin_client import hdf5plugin_version
from tamis.formats.registry import open_store
from tamis.formatting import shape_text, size_text
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipes.names import Assigned, Chunks, DimensionChunks, Names, assigned
from tamis.pipeline import Pipeline
from tamis.remote.address import Address
from tamis.rewrite.encode import shorter_pipeline
from tamis.rewrite.growth import compresses
from tamis.rewrite.packed_array import keeps_values, pack_array, packing_range_of, unpacked_type
from tamis.rewrite.rewrite import Rewrite, flags_for
from tamis.rewrite.streams import has_streams, is_stored_so, skips_first
from tamis.rewrite.surveys import stored_ratio, survey
from tamis.rewrite.tolerance import as_stored_already, provisional, with_loosest_tolerance, within_bound
from tamis.rewrite.values import Padding, suitable_chunks
from tamis.rounding import CONTAINER, ROUNDING_ATTRIBUTES, Absolute, Pack, recorded_rounding, still_needed
from tamis.safety.library_errors import reading
from tamis.stores.facts import ELSEWHERE, array_nbytes, values_nbytes_of
from tamis.stores.other_files import Places, TakenIn
from tamis.stores.protocols import Arrays, Store, StoredArray, likeness_of
from tamis.zfp.header import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement
    from tamis.jobs.repack.options import RepackOptions
    from tamis.rewrite.transfer import TargetForm
    from tamis.rounding import PackingRange


_FIELDS_NBYTES = 8 << 20
"""Largest chunk whose fields are measured while it is in work: that takes up to 20 times the memory of a field."""


class Survey(Protocol):
    """What is known of all values of an array before it is written, if its plan depends on them."""

    def measured(self, plan: Rewrite, source: StoredArray, *, moments: bool) -> Measured:
        """Return what is known of all values of an array by its plan, on request with their moments."""

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """Return the range and the missing values of an array that is packed."""


class ReadSurvey(NamedTuple):
    """A survey that reads all values."""

    report: Progress = lambda *_: None
    threads: int = 1

    def measured(self, plan: Rewrite, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`."""
        step = Step(f"reading {plan.path}, whose range or deviation is needed", 1, 1)
        return survey(plan, source, partial(self.report, step), self.threads, moments=moments)

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`."""
        step = Step(f"reading {source.path}, whose range is needed", 1, 1)
        return packing_range_of(source, grid_of(source.shape, chunk_shape), partial(self.report, step), self.threads)


class GivenRanges(NamedTuple):
    """A survey whose ranges are known: those of several files together."""

    ranges: Mapping[str, PackingRange]
    read: ReadSurvey

    def measured(self, plan: Rewrite, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`."""
        return self.read.measured(plan, source, moments=moments)

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`."""
        known = self.ranges.get(source.path)
        return self.read.packing_range(source, chunk_shape) if known is None else known


SURVEY_ALONE = ReadSurvey()
"""Reads in one thread, and reports nothing."""


def requirements(entries: Iterable[Assigned[Requirement]], recipes: Container[str]) -> dict[str, Requirement]:
    """Return the requirements on each dataset by path: exact names first, then patterns in their order."""
    required: dict[str, Requirement] = {}
    for entry in entries:
        if entry.exact and entry.path not in recipes:
            raise ParameterError(
                f"{entry.label}: expected filters or chunks for a dataset of which {entry.value} is required, got "
                f"none: a requirement alone saves no bytes; add filters (-f), or let tamis plan choose them"
            ).at(dataset=entry.path)
        required.setdefault(entry.path, entry.value)
    return required


def with_requirement(plan: Rewrite, source: StoredArray, required: Requirement | None, read: Survey) -> Rewrite:
    """Return a plan that meets the requirements on each value, in stored units, and is measured for the rest.

    Nothing changes if no filter or rounding changes values.
    """
    if required is None:
        return plan
    plan = replace(plan, required=required)
    if not plan.lossy:
        return plan
    if "dssim" in required.measures and not has_windows(source.shape):
        raise ParameterError(
            f"expected at least {WINDOW} x {WINDOW} values along the last two axes for dssim, got the shape"
            f" {shape_text(source.shape)}: require corr or rmse, or filters without loss"
        )
    if "spectrum" in required.measures and source.shape[-1] < SHORTEST:
        raise ParameterError(
            f"expected at least {SHORTEST} values along the last axis for spectrum, got the shape "
            f"{shape_text(source.shape)}:"
            " require corr or rmse, or filters without loss"
        )
    packing = plan.packing
    absolute = _absolute(plan, source, required, read)
    bounds = ValueBounds(
        absolute,
        required.relative,
        required.sign,
        required.zeros,
        0.0 if packing is None else packing.stored_zero,
        falling=packing is not None and packing.scale < 0,
    )
    fields = words_within(required.measures, source.shape, plan.chunk_shape)
    plan = replace(plan, bounds=bounds, fields=fields if plan.chunk.nbytes <= _FIELDS_NBYTES else ())
    return plan if absolute is None or plan.rounding is not None else within_bound(plan, absolute)


def _absolute(plan: Rewrite, source: StoredArray, required: Requirement, read: Survey) -> float | None:
    """Return the largest absolute error of stored values; None if none is required."""
    bounds = []
    if required.abs is not None:
        stored = (
            required.abs if plan.packing is None else stored_bound(plan.packing, required.abs, f"abs={required.abs!r}")
        )
        bounds.append(stored)
    if required.range is not None or required.std is not None:
        try:
            measured = read.measured(plan, source, moments=required.std is not None)
        except FileError:
            return 0.0  # writing reports why it cannot be read
        for share, size in ((required.range, measured.span), (required.std, measured.deviation)):
            if share is not None and size is not None:
                bounds.append(share * size)
    return min(bounds, default=None)


def needed_rounding(source: StoredArray, pipeline: Pipeline) -> tuple[ArrayRounding | None, list[str]]:
    """Return the rounding that a pipeline needs, None if there is none or the values already have it; and notes."""
    if pipeline.rounding is None:
        before = recorded_rounding(source.attributes, source.type.numbers)
        lossy = before is not None and pipeline.error_bound != 0
        return None, [f"its values were already rounded by {before}: the new error adds to the old one"] * lossy
    rounding = still_needed(pipeline.rounding, source.attributes)
    if rounding is None:
        # Another program may have added values since, which it need not have rounded.
        names = [name for name in ROUNDING_ATTRIBUTES if name in source.attributes and name != CONTAINER]
        says = f"its attribute {names[0]} says that its values are rounded by {pipeline.rounding}"
        return None, [f"{says}: they are not rounded again"]
    offset = source.meaning.packing is not None and source.meaning.packing.offset != 0
    notes = [f"packed by {source.meaning.packing}: errors of the rounding are relative to the stored values"] * offset
    return ArrayRounding(rounding, source.shape), notes


T = TypeVar("T")


MIN_NBYTES = 4096
"""Smaller unchunked datasets gain nothing: the index of one chunk takes 2 to 4 KiB in most files."""


class Planning(NamedTuple):
    """The plans for the datasets of a file."""

    plans: dict[str, Rewrite]  # For each path that a recipe matches, the plan
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


def plan_datasets(store: Store, options: RepackOptions, survey: Survey = SURVEY_ALONE) -> Planning:
    """Return a plan for each dataset that a recipe matches, and the reason for each dataset that is kept."""
    store.check_listed()
    names = Names(store, optional=options.optional_names)
    shapes: dict[str, Assigned[Chunks]] = {}
    for shape in (*assigned(options.recipe.chunks, names.match_any), *_by_rule(options.rule_chunks, store)):
        shapes.setdefault(shape.path, shape)
    recipes: list[Assigned[Any]] = [
        *assigned(options.recipe.filters, names.match_any),
        *_by_rule(options.rule_pipelines, store),
    ]
    # Chunks without filters. A pattern for chunks is for datasets that get filters, unless there are no recipes.
    recipes += [shape for shape in shapes.values() if shape.exact or not recipes or shape.path in options.rule_chunks]
    if options.self_contained:
        for path, array in store.arrays.items():
            if array.storage.layout in ELSEWHERE and array.type.dtype is not None and array.shape:
                filters, steps = _of_sources(array)
                if steps is not None:
                    shapes.setdefault(path, Assigned(path, path, path, steps, False))
                recipes += [Assigned(path, path, path, value, False) for value in (filters, None)]
    dropped = dropped_datasets(store, names, options.recipe.drop)
    if unwanted := [recipe.label for recipe in recipes if recipe.exact and recipe.path in dropped]:
        raise ParameterError(f"{unwanted[0]}: has a recipe, and is left out (drop): leave out one of the two")
    recipes = [recipe for recipe in recipes if recipe.path not in dropped]
    labels: dict[str, str] = {}
    for recipe in recipes:
        labels.setdefault(recipe.path, recipe.label)
    required = requirements(assigned(options.recipe.require, names.match_any), labels)
    datasets = store.arrays.labelled(labels)
    plans: dict[str, Rewrite] = {}
    kept: dict[str, str] = {}
    plans_by_likeness: dict[object, Rewrite] = {}

    def is_kept(recipe: Assigned[Any]) -> bool:  # roles are looked at only where values may change
        return not recipe.exact and store.roles.get(recipe.path, meaning.DATA).is_exact

    for recipe in recipes:
        if (path := labels[recipe.path]) in plans:
            continue
        dataset, asked = datasets[path], shapes[recipe.path].value if recipe.path in shapes else None
        filters = recipe.value if isinstance(recipe.value, Pipeline) else None
        named = recipe.exact or (recipe.path in shapes and shapes[recipe.path].exact)
        by_rule = filters is None and recipe.path in options.rule_chunks and not named
        likeness: object = (
            None if likeness_of(dataset) is None else (likeness_of(dataset), filters, asked, named, by_rule)
        )
        depends = isinstance(asked, DimensionChunks) or recipe.path in required or options.storage == "s3"
        likeness = None if depends else likeness
        if likeness is not None and filters is not None and filters.error_bound != 0 and not recipe.exact:
            likeness = (likeness, store.roles.get(recipe.path, meaning.DATA).is_exact)
        if (plan_alike := plans_by_likeness.get(likeness)) is not None and path.isprintable():
            plans[path] = plan_alike.at(path)
            kept.pop(path, None)
            continue
        if not recipe.exact and dataset.marks.is_bare_dimension:
            kept[path] = "expected values, got a netCDF-4 dimension without a variable"
            continue
        if not (recipe.exact or options.follow) and (layout := dataset.storage.layout) in ELSEWHERE:
            kept[path] = (
                f"its values are in other files ({layout}), where a pattern leaves them: name it, or give --follow, to"
                " store them in the target"
            )
            continue
        try:
            with reading(store.path, dataset=path):
                chunks = asked.of(store, dataset) if isinstance(asked, DimensionChunks) else asked
                if filters is not None and packs(filters) and not is_kept(recipe):
                    requirement = required.get(recipe.path)
                    make = partial(_plan_packed, path, dataset, filters, options, requirement, survey)
                else:
                    make = partial(_plan_dataset, path, dataset, filters, options)
                plan = make(chunks)
                if options.storage == "s3" and chunks is None and filters is not None:
                    plan = _for_objects(plan, dataset, options.threads, make)
            if plan.changes_values and is_kept(recipe):
                kept[path] = f"{store.roles[recipe.path].reason}; name it to store it lossily"
                continue
            # With `follow`, values of other files are to be in the target, although it becomes larger.
            unconditional = named or filters is None or not compresses(filters) or dataset.storage.layout in ELSEWHERE
            chosen = unconditional and not by_rule
            if not (chosen or plan.copied) and (reason := _too_small(dataset, options.min_size)):
                kept[path] = reason
                continue
            if not unconditional and not plan.copied:
                # A dataset may not return to "kept" after its values are read: its old companion is gone by then.
                plan = replace(plan, may_grow=options.larger or dataset.marks.has_companion)
            has_bound = plan.pipeline.bound is not None
            plan = with_requirement(plan, dataset, required.get(recipe.path), survey)
            plans[path] = plan = with_loosest_tolerance(plan, dataset) if has_bound else plan
            kept.pop(path, None)
            if likeness is not None and _is_general(plan, dataset) and not any(path in note for note in plan.notes):
                plans_by_likeness[likeness] = plan
        except MissingFilterError as error:
            error.at(path, path=store.path, dataset=path)
            raise
        except (ParameterError, DataError) as error:
            if recipe.exact:
                error.at(path, path=store.path, dataset=path)
                raise
            kept[path] = str(error)
    explicit = frozenset(labels[recipe.path] for recipe in recipes if recipe.exact)
    for path, variable in replaced_companions(datasets, plans).items():
        if path in explicit:
            raise ParameterError(
                f"{path}: expected no recipe for the missing-value mask of {variable}, which is rewritten: tamis writes"
                " a new one if it needs it"
            )
        plans.pop(path, None)
        kept.pop(path, None)
    patterns = {labels[recipe.path]: recipe.name for recipe in reversed(recipes) if not recipe.exact}
    patterns = {path: name for path, name in patterns.items() if path not in explicit}
    return Planning(plans, kept, datasets, explicit, names.unmatched, dropped, patterns=patterns)


_MOST_SOURCES = 16
"""Limit of the sources of a virtual dataset that are looked at for their filters and chunks."""


def _of_sources(array: StoredArray) -> tuple[Pipeline | None, tuple[int, ...] | None]:
    """Return the filters and the chunk shape of the sources of a virtual dataset that its own values can have, too.

    None for what they do not have in common, filters that lose something, and chunks of another number of axes.
    """
    found: set[tuple[Pipeline, tuple[int, ...] | None]] = set()
    for file, path in array.elsewhere.virtual_sources[:_MOST_SOURCES]:
        if file:
            with suppress(TamisError, OSError, RuntimeError, KeyError), open_store(file) as store:
                found.add((_own(source := store.array(path)), source.storage.chunk_shape))
    filters, shapes = ({item[part] for item in found} for part in (0, 1))
    pipeline = cast("Pipeline", filters.pop()) if len(filters) == 1 else Pipeline()
    steps = cast("tuple[int, ...] | None", shapes.pop()) if len(shapes) == 1 else None
    if steps is not None and (len(steps) != len(array.shape) or any(map(int.__gt__, steps, array.shape))):
        steps = None
    return pipeline if pipeline.stages and pipeline.error_bound == 0 else None, steps


def taken_in(store: Store, arrays: Iterable[StoredArray], linked: Iterable[str] = ()) -> tuple[TakenIn, ...]:
    """Return the files whose values or objects a target has itself: those of these arrays, and those of links."""
    files = dict.fromkeys((*linked, *(file for array in arrays for file in array.elsewhere.value_files)))
    own = "" if isinstance(store.path, Address) else os.path.realpath(store.path)
    return tuple(TakenIn.of(file) for file in files if file != own)


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


def _is_general(plan: Rewrite, dataset: StoredArray) -> bool:
    """Return whether the plan depends only on what similar datasets share, and on no value or chunk of this one."""
    if not (plan.changes_values or plan.rounding):
        return True
    return (
        plan.codes is None and plan.recoded and plan.pipeline.bound is None and dataset.storage.pipeline.bounded is None
    )


def _of_values(plan: Rewrite, array: StoredArray) -> Rewrite:
    """Return the plan of an array as an array of values; it has no chunks to copy if its bytes differ."""
    values = array.as_values()
    if not plan.copied and array.type.byteorder == "big":
        plan = replace(plan, notes=(*plan.notes, "big-endian in the source, stored little-endian"))
    if values is array or values.type.dtype is None:
        return plan
    pipeline = Pipeline(replace(stage, stored=None) for stage in plan.pipeline.stages)
    return replace(
        plan, pipeline=pipeline, dtype=values.type.dtype, copied=False, padding=Padding.of(values, values.type.dtype)
    )


def _by_rule(values: Mapping[str, T], store: Store) -> Iterator[Assigned[T]]:
    """Yield values by first path for existing datasets."""
    return (Assigned(path, path, path, value, False) for path, value in values.items() if path in store.arrays)


def _too_small(dataset: StoredArray, min_size: int | None) -> str:
    """Return why patterns keep a dataset because of its size; empty if they do not."""
    least = min_size if min_size is not None else 0 if dataset.storage.chunk_shape else MIN_NBYTES
    small = values_nbytes_of(dataset) < least
    return f"patterns skip datasets of less than {least} B (--min-size): name it to change it" if small else ""


def _own(dataset: StoredArray) -> Pipeline:
    """Return the filters of a dataset as a request for other chunks, without stored parameters."""
    return Pipeline(replace(stage, stored=None) for stage in dataset.storage.pipeline.stages)


def replaced_companions(datasets: Arrays[StoredArray], plans: Mapping[str, Rewrite]) -> dict[str, str]:
    """Return the paths of companions that become outdated because their variables are stored anew, and of these."""
    marked = datasets.marked()
    unchanged = {path for path in marked if path not in plans or not plans[path].recoded}
    in_use = {companion.address for companion, variable in datasets.companions() if variable in unchanged}
    replaced = {}
    for path in marked:
        if path not in unchanged and (companion := datasets[path].companion) is not None:
            replaced[companion.address] = path
    for address in in_use:
        replaced.pop(address, None)
    addresses = ((path, array.address) for path, array in datasets.items()) if replaced else ()
    return {path: replaced[address] for path, address in addresses if address in replaced}


def _check(pipeline: Pipeline, chunk: ChunkType, dataset: StoredArray) -> None:
    try:
        pipeline.check(chunk)
    except ParameterError as error:
        if math.prod(chunk.shape) == 1 and _takes(pipeline, ChunkType(chunk.dtype, (BLOCK_SIDE,))):
            raise ParameterError(f"{error} (-c)") from error
        if chunk.dtype.kind != "V":
            raise
        text = dataset.type.text
        # Integers of 20 bits and bitfields have the names of integers, which filters of numbers take.
        words = dataset.type.words if text.startswith(("int", "uint", "float")) else text
        raise ParameterError(
            f"expected numbers, got values of the type {words}: use filters of bytes, such as shuffle and deflate"
        ) from error


def _takes(pipeline: Pipeline, chunk: ChunkType) -> bool:
    with suppress(ParameterError):
        pipeline.check(chunk)
        return True
    return False


def _with_checksum(pipeline: Pipeline) -> Pipeline:
    guarded = any(isinstance(item, Fletcher32) for item in pipeline.filters)
    if guarded or pipeline.bounded is None:
        return pipeline
    return Pipeline((*pipeline.stages, Fletcher32()), bound=pipeline.bound)


def packs(pipeline: Pipeline | None) -> bool:
    """Return whether a pipeline begins with a packing."""
    return pipeline is not None and isinstance(pipeline.rounding, Pack)


def may_spoil(options: RepackOptions) -> bool:
    """Return whether a recipe may spoil virtual datasets that show an array: see `tamis.jobs.repack.views`."""
    filters = (*options.recipe.filters.values(), *options.rule_pipelines.values())
    return options.missing == "mask" or bool(options.recipe.drop) or any(map(packs, filters))


def _plan_packed(
    path: str,
    dataset: StoredArray,
    requested: Pipeline,
    options: RepackOptions,
    required: Requirement | None,
    survey: Survey,
    chunks: tuple[int, ...] | None,
) -> Rewrite:
    """Return the plan of a dataset that is packed, whose values are read for that."""
    pack, dtype = cast("Pack", requested.rounding), unpacked_type(dataset)
    if required is not None and required.relative is not None:
        raise ParameterError(
            f"expected no relative requirement for {pack}, whose error is absolute, got rel={required.relative!r}: use"
            f" bitround or granular"
        )
    itemsize = pack.stored_type(dtype).itemsize
    shape = chunks or dataset.storage.chunk_shape or default_chunks(_chunked_shape(dataset), itemsize, zfp=False)
    model = Rewrite(
        path,
        Pipeline(),
        dataset.type.dtype or dtype,
        shape,
        missing=dataset.meaning.missing,
        packing=dataset.meaning.packing,
    )
    absolute = None if required is None else _absolute(model, dataset, required, survey)
    bound, zeros = math.inf if absolute is None else model.in_units(absolute), required is not None and required.zeros
    packed = pack_array(dataset, pack, survey.packing_range(dataset, shape), bound=bound, zeros=zeros)
    plan = _plan_dataset(path, cast("StoredArray", packed), requested.without_rounding, options, shape)
    notes = list(plan.notes)
    notes.append(f"packed to {packed.codes.dtype}, {packed.codes.used_bits} bits of which are used")
    if packed.codes.dtype.itemsize == packed.codes.unpacked.itemsize:
        notes.append("the CF conventions have int for doubles only: where files must conform, allow a larger error")
    if keeps_values(dataset, packed.codes):
        notes.append("packed before in the same steps: its values do not change, and keep their recorded bound")
    elif dataset.meaning.packing is not None:
        notes.append(f"packed before by {dataset.meaning.packing}: the new error adds to the old one")
    elif before := recorded_rounding(dataset.attributes, dataset.type.numbers):
        notes.append(f"its values were already rounded by {before}: the new error adds to the old one")
    if dataset.storage.pipeline.error_bound != 0:
        notes.append(f"its values already went through {dataset.storage.pipeline}: the new error adds to the old one")
    return replace(plan, notes=tuple(notes), codes=packed.codes)


def _for_objects(
    plan: Rewrite, dataset: StoredArray, threads: int, make: Callable[[tuple[int, ...]], Rewrite]
) -> Rewrite:
    """Return the plan of a dataset in chunks that suit an object store; lossy chunks that are copied stay."""
    if plan.copied and plan.pipeline.error_bound != 0:
        return plan
    trial = plan if plan.pipeline.bound is None else with_loosest_tolerance(plan, dataset)
    own = array_nbytes(dataset) / max(dataset.stored_nbytes, 1)
    ratio = own if plan.copied else stored_ratio(trial, plan.packed(dataset), threads)
    shape = chunks_for_objects(dataset.shape, plan.chunk_shape, plan.dtype.itemsize, ratio)
    if shape == plan.chunk_shape:
        return plan
    nbytes = math.prod(shape) * plan.dtype.itemsize / ratio
    note = f"its chunks are {shape_text(shape)}, about {size_text(int(nbytes))} each, for an object store"
    return replace(new := make(shape), notes=(*new.notes, note))


def _chunked_shape(dataset: StoredArray) -> tuple[int, ...]:
    """Return the shape of a dataset; raise ParameterError if it cannot have chunks, which filters need."""
    shape: tuple[int, ...] | None = dataset.shape
    if shape is None:
        raise ParameterError("expected an array, got a null dataspace, which has no values")
    if not shape:
        raise ParameterError("expected an array, got a scalar, which HDF5 cannot filter")
    if any(extent == limit == 0 for extent, limit in zip(shape, dataset.maxshape, strict=True)):
        raise ParameterError(
            f"expected an array that has values, or may grow, got shape {shape}, which HDF5 cannot divide into chunks"
        )
    return shape


def _plan_dataset(
    path: str, dataset: StoredArray, requested: Pipeline | None, options: RepackOptions, chunks: tuple[int, ...] | None
) -> Rewrite:
    """Return the plan of a dataset for filters in units of the variable; None keeps its filters for other chunks."""
    dtype = dataset.type.dtype
    if dtype is None:
        raise ParameterError(
            f"expected values of a fixed size, got {dataset.type.text}: {dataset.storage.unfiltered_reason}"
        )
    if any("\udc80" <= letter <= "\udcff" for letter in path):
        raise ParameterError("expected a name in UTF-8, got other bytes")
    shape = _chunked_shape(dataset)
    notes = []
    if (layout := dataset.storage.layout) in ELSEWHERE:
        notes.append(f"its values are read from other files ({layout}), and stored in the target")
    filters = dataset.storage.pipeline if requested is None else requested
    if not dtype.isnative and (filters.bounded is not None or filters.error_bound != 0):
        native, needing = dtype.newbyteorder("="), filters.rounding or filters.filters[0]
        notes.append(f"converted from {dtype.str} to native {native.str}, which {needing.name} needs")
        dtype = native
    packing = meaning.packing_of(dataset.attributes)
    pipeline = _own(dataset) if requested is None else in_stored_units(requested, packing, dtype)
    if requested is not None:
        notes += units_note(requested, pipeline, packing)
    pipeline = provisional(pipeline)
    if chunks is None:
        chunks = suitable_chunks(dataset, pipeline, dtype)
    if len(chunks) != len(shape):
        raise ParameterError(f"expected chunks with {len(shape)} axes, got {chunks}")
    for extent, limit, step in zip(shape, dataset.maxshape, chunks, strict=True):
        if limit is not None and step > max(extent, limit):
            raise ParameterError(f"expected chunks within the shape {shape}, got {chunks}")
    chunk = ChunkType(dtype, chunks)
    if chunk.nbytes >= 1 << 32:
        raise ParameterError(f"expected a chunk of less than 4 GiB, got {chunks} of {dtype}: {chunk.nbytes} bytes")
    _check(pipeline, chunk, dataset)
    rounding, rounding_notes = needed_rounding(dataset, pipeline)
    notes += rounding_notes
    pipeline = pipeline.without_rounding
    guarded = _with_checksum(pipeline) if options.checksum else pipeline
    if guarded.error_bound != 0 and dtype.kind == "i" and meaning.is_unsigned(dataset.attributes):
        raise ParameterError(
            "expected lossless filters for integers that are unsigned by _Unsigned: values near 0 would become the"
            " largest ones"
        )
    if dataset.marks.is_companion and guarded.error_bound != 0:
        raise ParameterError("expected lossless filters for the missing-value mask of another dataset")
    # If the companion goes, missing values return to the dataset, so its chunks change.
    keeps_companion = not dataset.marks.has_companion or options.missing == "mask"
    if not keeps_companion:
        notes.append(
            "its missing-value mask is left out, and missing values go back into the dataset (--missing mask keeps it)"
        )
    same, *without_checksum = dict.fromkeys(
        as_stored_already(filters, dataset.storage.pipeline) for filters in (guarded, pipeline)
    )
    for candidate in (same, *without_checksum):
        if not (rounding is None and keeps_companion):
            break
        stored, shorter = candidate, shorter_pipeline(candidate) if candidate is same else None
        if shorter is not None and is_stored_so(dataset, shorter, dtype, chunks) and not skips_first(dataset):
            stored = shorter
        if stored is shorter or is_stored_so(dataset, candidate, dtype, chunks):
            text = "chunks are copied as stored: they have these filters already"
            if candidate != same:
                text += ", without a checksum"
            return Rewrite(path, stored, dtype, chunks, (*notes, text), copied=True, packing=packing)
    guarded.check(chunk)
    guarded.check_encodable()
    if not all(item.stable for item in guarded.filters[:1]):
        notes.append(
            f"versions of SZ3 do not read each other's chunks: read it with hdf5plugin {hdf5plugin_version()}, or make"
            " sure that another version does; sperr has no such history"
        )
    if rounding is None and keeps_companion and has_streams(dataset, same, dtype, chunks):
        text = "zfp streams are kept: only filters after zfp change, and no error is added"
        return Rewrite(path, same, dtype, chunks, (*notes, text), streams_kept=True, packing=packing)
    growing = tuple(limit is None for limit in dataset.maxshape)
    chunking = Chunking(dataset.shape, growing, chunk, guarded, {})
    if note := oversized_note(path, chunking) or padding_note(path, chunking):
        notes.append(note)
    before = dataset.storage.pipeline
    if before.error_bound != 0 and (guarded.error_bound != 0 or rounding is not None):
        notes.append(f"its values already went through {before}: the new error adds to the old one")
    missing, flags = dataset.meaning.missing, None
    if options.missing == "mask" and guarded.error_bound != 0:
        flags = flags_for(dataset, dtype)
    padding = Padding.of(dataset, dtype)
    return Rewrite(
        path,
        guarded,
        dtype,
        chunks,
        tuple(notes),
        missing,
        flags=flags,
        packing=packing,
        padding=padding,
        rounding=rounding,
    )


def in_stored_units(pipeline: Pipeline, packing: meaning.Packing | None, dtype: np.dtype[Any]) -> Pipeline:
    """Return filters with the accuracy of zfp, or the bound of a rounding, divided by ``scale_factor``."""
    if packing is None or abs(packing.scale) == 1:
        return pipeline
    if pipeline.rounding is None:
        return Pipeline(_convert(stage, packing, dtype) for stage in pipeline.stages)
    if not isinstance(pipeline.rounding, Absolute):
        return pipeline
    rounding = Absolute(stored_bound(packing, pipeline.rounding.bound, str(pipeline.rounding)))
    return Pipeline((rounding, *pipeline.stages))


def units_note(requested: Pipeline, stored: Pipeline, packing: meaning.Packing | None) -> tuple[str, ...]:
    """Return a note about an accuracy that was converted for packed values; empty if it was not."""
    if packing is None or requested == stored:
        return ()
    if requested.rounding is not None:
        return (f"packed by {packing}: {requested.rounding} in its units is {stored.rounding} of the stored values",)
    if requested.bounded is None or stored.bounded is None:
        return ()
    before, after = requested.bounded.setting, stored.bounded.setting
    return (f"packed by {packing}: {before} of its units is {after} of the stored values",)


def stored_bound(packing: meaning.Packing, bound: float, setting: str) -> float:
    """Convert the error of a setting from units of the variable to stored units."""
    try:
        return packing.stored_bound(bound)
    except OverflowError as error:
        raise ParameterError(
            f"expected an accuracy of packed values that a float can hold, got {setting} with {packing}: {error}"
        ) from error


def _convert(stage: Stage, packing: meaning.Packing, dtype: np.dtype[Any]) -> Stage:
    item, requested = stage.filter, stage.filter.error_bound
    if not item.bounds_errors or not requested:
        return stage
    size = abs(packing.scale)
    bound = stored_bound(packing, requested, item.setting)
    if isinstance(item, Zfp) and dtype.kind == "i" and bound < 1:
        raise ParameterError(
            f"expected an accuracy of {size:g} or more, since its values are stored as {dtype} with {packing}, got"
            f" {item.setting}, which is {requested:g} / {size:g} = {bound:g} of the stored integers, and zfp keeps no "
            f"accuracy below 1: use reversible=True, or lossless filters"
        )
    return replace(stage, filter=item.with_error(bound), stored=None)
