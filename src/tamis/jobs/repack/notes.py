"""Notes about a dataset in the result of a repack, and chunk shapes that let zfp store more of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.accuracy.requirement import Requirement, text_of
from tamis.arrays.gather import whole
from tamis.filters import Stage
from tamis.filters.plugin_client import hdf5plugin_version
from tamis.formatting import change_text, percent_text, plural, printable, shape_text, size_text
from tamis.old_names import recorded_text
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import fallback_text
from tamis.rewrite.growth import RECORD_NBYTES, compresses
from tamis.rewrite.plan import ArrayPlan, Copy, Recode
from tamis.rewrite.steps import PackStep
from tamis.rounding import Absolute
from tamis.stores.facts import ArrayFacts
from tamis.stores.readers import package_text
from tamis.zfp.header import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.rewrite.outcome import Outcome
    from tamis.stores.protocols import Arrays, StoredArray


_NO_FILTERS = Pipeline()

_LEFT_OUT = "recorded without {}, which no chunk needs"

GROWN = "it would become larger than in the source: name it to store it anyway, or use --larger"
"""Reason for keeping a dataset that a pattern matches."""


def written_notes(
    plan: ArrayPlan, source: StoredArray, target: StoredArray, outcome: Outcome, partial_count: int, left_out: Pipeline
) -> Iterator[str]:
    """Yield notes about chunks that are not stored through the whole pipeline: why, and what may help."""
    if left_out.stages:
        yield _LEFT_OUT.format(left_out)
    companion = target.companion
    before, after = source.stored_nbytes, target.stored_nbytes
    if companion is not None:
        after += companion.stored_nbytes
    if after > before and compresses(plan.pipeline):
        yield f"larger than in the source: {change_text(before, after)}"
    yield from reader_note(target)
    for text, count in outcome.skipped.items():
        yield f"{count} of {plural(outcome.chunks, 'chunk')} stored without {text}, which could not be applied there"
    yield from _missing_note(plan, outcome, companion)
    yield from _range_note(plan, outcome)
    yield from _missed_note(plan, outcome)
    if partial_count:
        yield (
            f"{partial_count} of {plural(outcome.chunks, 'chunk')} stored without {_first(plan)}: partial chunks"
            f" along an axis that can grow, where steps left out later must read as missing"
            f"{_better_chunks(plan, source.shape)}"
        )
    else:
        yield from _required_note(plan, source.shape)
    if 2 * partial_count <= outcome.lossless_chunks:  # otherwise the note about partial chunks already has advice
        yield from _advice(plan, source, outcome)


def reader_note(target: ArrayFacts) -> Iterator[str]:
    """Yield a note if the library of the format needs a package to read an array."""
    if target.storage.reader_package:
        yield package_text(target.storage.reader_package, bars_store=target.storage.bars_store)
    if target.storage.unread_here:
        yield target.storage.unread_here


def recorded_filters(plan: ArrayPlan, target: ArrayFacts) -> tuple[Pipeline, Pipeline]:
    """Return the requested filters that a target records, after a rounding if there is one, and the others."""
    stages = plan.pipeline.stages
    if plan.rounding is None and not (stages and stages[0].filter.needs_values):
        # No filter is for some chunks alone.
        return plan.pipeline if plan.codes is None else plan.requested, _NO_FILTERS
    if len(target.storage.pipeline.stages) == len(stages):
        return plan.requested, _NO_FILTERS
    return _divided(plan.requested, tuple([stage.filter.id for stage in target.storage.pipeline.stages]))


@lru_cache  # most datasets have the same filters
def _divided(requested: Pipeline, ids: tuple[int, ...]) -> tuple[Pipeline, Pipeline]:
    """Return a rounding and the filters of such numbers, and the other filters."""
    rounding = () if requested.rounding is None else (requested.rounding,)
    recorded = [stage for stage in requested.stages if stage.filter.id in ids]
    return Pipeline((*rounding, *recorded)), Pipeline(stage for stage in requested.stages if stage.filter.id not in ids)


def range_text(plan: ArrayPlan) -> str:
    """Return the range of valid stored values as text; empty if there is no limit."""
    limits = (("from", plan.checks.missing.low), ("to", plan.checks.missing.high))
    return " ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


def _first(plan: ArrayPlan) -> str:
    """Return the name of the filter that only some chunks go through."""
    return plan.pipeline.filters[0].name


def _range_note(plan: ArrayPlan, outcome: Outcome) -> Iterator[str]:
    if outcome.unrounded_values:
        limits = f" or let them cross a limit of the valid range ({range_text(plan)})" if range_text(plan) else ""
        values = plural(outcome.unrounded_values, "value")
        yield f"{values} not rounded, because rounding would make them missing{limits}"
        return
    if not outcome.lossless_for_range:
        return
    text = (
        f"{outcome.lossless_for_range} of {plural(outcome.chunks, 'chunk')} stored without {_first(plan)}, which would"
        f" move values across the limits of the valid range ({range_text(plan)})"
    )
    if 2 * outcome.lossless_for_range > outcome.chunks:
        text += ": use filters that keep zeros and signs, such as shuffle|deflate(4)"
    yield text


def _missed_note(plan: ArrayPlan, outcome: Outcome) -> Iterator[str]:
    """Yield a note about chunks that fail the requirements on each value."""
    if plan.required is None or not outcome.missed_chunks:
        return
    text = (
        f"{outcome.missed_chunks} of {plural(outcome.chunks, 'chunk')} stored without loss, because {plan.requested}"
        f" does not keep {_each_value(plan.required)} there"
    )
    required = plan.required
    rounds = plan.rounding is not None
    if 2 * outcome.missed_chunks > outcome.chunks:
        text += ": filters that lose less may take fewer bytes"
        if required.abs is not None and not rounds:
            text += f", such as zfp(bound={required.abs:g})"
        if (required.sign or required.zeros) and not rounds:
            text += "; a rounding such as bitround keeps signs and zeros"
    yield text


def planned_notes(plan: ArrayPlan, shape: tuple[int, ...] | None) -> Iterator[str]:
    """Yield the notes of a plan, including possible needs of its values, without reading them."""
    yield from plan.notes
    if fallback := "" if isinstance(plan, Copy) else fallback_text(plan.pipeline):
        if plan.pipeline.stages[0].optional:
            yield f"{fallback} is recorded only if a chunk is stored without {plan.pipeline.filters[0].name}"
        else:
            yield _LEFT_OUT.format(fallback)
    if plan.flags is not None:
        yield "missing values, if any, go to a missing-value mask, and neighbouring values fill the gaps"
    if plan.lossy and (limits := range_text(plan)):
        if plan.rounding is not None:
            yield f"values that rounding would move across the limits of the valid range ({limits}) stay as they are"
        else:
            yield (
                f"chunks whose values {_first(plan)} would move across the limits of the valid range ({limits}) are"
                f" stored without {_first(plan)}"
            )
    yield from _expected_partial_note(plan, shape)
    if plan.required is not None and plan.lossy:
        if words := _each_value(plan.required):
            yield f"every value is proven to keep {words}; chunks that do not are stored without loss"
        if plan.measures:
            yield f"measured before the target gets its name: {text_of(plan.required.measures)}"


def _each_value(required: Requirement) -> str:
    """Return the requirements on each value, as text."""
    return text_of({word: value for word, value in required.given.items() if word not in required.measures})


def measures_note(plan: ArrayPlan, measures: Mapping[str, float | None]) -> Iterator[str]:
    """Yield a note about the required measures of a whole dataset: reached and requested values."""
    if plan.required is None or not measures:
        return
    asked = plan.required.measures
    texts = (
        f"{word} {'not defined' if value is None else f'{value:.9g}'} ({asked[word]!r} required)"
        for word, value in measures.items()
    )
    yield f"measured: {', '.join(texts)}"


def _expected_partial_note(plan: ArrayPlan, shape: tuple[int, ...] | None) -> Iterator[str]:
    """Yield a note about values in partial chunks that zfp cannot encode, without reading them."""
    if shape is None or not (share := _partial_share(plan, shape)):
        return
    if not plan.pipeline.stages[0].optional:
        yield from _required_note(plan, shape)
        return
    yield (
        f"partial chunks along an axis that can grow, with {percent_text(share)} of the values, are stored without"
        f" {_first(plan)}: steps left out there later must read as missing{_better_chunks(plan, shape)}"
    )


def _required_note(plan: ArrayPlan, shape: tuple[int, ...]) -> Iterator[str]:
    """Yield a note that partial chunks cannot contain the fill value because zfp is required."""
    if _partial_share(plan, shape) and not plan.pipeline.stages[0].optional:
        yield (
            f"partial chunks along an axis that can grow repeat their last values, because {_first(plan)} is required:"
            " steps left out there later read as copies; as an optional filter,"
            f" {plan.pipeline.filters[0]}?, {_first(plan)} is left out of such chunks"
        )


def _partial_share(plan: ArrayPlan, shape: tuple[int, ...]) -> float:
    """Return the fraction of values in chunks that zfp cannot encode because of the fill value beyond the array."""
    exact = plan.padding.exact or plan.bound is None
    if plan.pipeline.bounded is None or not (plan.lossy and exact):
        return 0.0
    return plan.padding.lossless_share(shape, plan.chunk_shape)


def _better_chunks(plan: ArrayPlan, shape: tuple[int, ...]) -> str:
    """Return advice for chunks with at most half as many values in partial chunks; empty if there are none."""
    better = plan.padding.best_chunks(shape, plan.chunk_shape)
    present, left = (plan.padding.lossless_share(shape, chunk_shape) for chunk_shape in (plan.chunk_shape, better))
    if not present or left > present / 2:
        return ""
    return (
        f"; with -c '{plan.path}:{shape_text(better)}' such chunks hold {percent_text(left) if left else 'none'} of the"
        f" values, not {percent_text(present)}"
    )


def _missing_note(plan: ArrayPlan, outcome: Outcome, companion: StoredArray | None) -> Iterator[str]:
    if not outcome.missing_values:
        return
    kept = f"{plural(outcome.missing_values, 'missing value')} kept"
    if companion is not None:
        yield (
            f"{kept} in {companion.path} ({size_text(companion.stored_nbytes)}): tamis.open restores each of them;"
            " other readers see invented values there"
        )
    elif plan.rounding is not None:
        yield f"{kept} exactly"
    else:
        chunks = f"{outcome.lossless_for_missing} of {plural(outcome.chunks, 'chunk')}"
        cause = "it" if outcome.missing_values == 1 else "them"
        yield f"{kept} exactly; {chunks} stored without {_first(plan)} because of {cause}"


def _advice(plan: ArrayPlan, source: StoredArray, outcome: Outcome) -> Iterator[str]:
    if not isinstance(plan, Recode) or 2 * outcome.lossless_chunks <= outcome.chunks:
        return
    shape = shape_text(plan.chunk_shape)
    text = (
        f"{outcome.lossless_chunks} of {plural(outcome.chunks, 'chunk')} stored without {_first(plan)}, which cannot"
        " keep them within the bound"
    )
    if 2 * outcome.lossless_for_range > outcome.lossless_chunks:
        return  # the note about the range already has advice
    if plan.required is not None and 2 * outcome.missed_chunks > outcome.lossless_chunks:
        return  # the note about the requirement already has advice
    if 2 * outcome.lossless_for_missing <= outcome.lossless_chunks:
        yield f"{text}: is the bound too small for such values? If not, chunks smaller than {shape} (-c) may help"
        return
    text += " next to missing values"
    # Even with a companion, NaN with other bits and valid values that would become missing prevent zfp.
    companion = ""
    if plan.flags is None:
        companion = f"; with --missing mask, which only tamis.open understands, all could go through {_first(plan)}"
    if (better := better_chunks(plan, source)) is None:
        yield f"{text}; chunks smaller than {shape} would not help much{companion}"
        return
    chunks, left = better
    yield (
        f"{text}: chunks smaller than {shape} help; with -c '{plan.path}:{shape_text(chunks)}' about"
        f" {percent_text(left)} of the values would be stored without {_first(plan)}{companion}"
    )


_MOST = 1000
"""Characters of a line, after which variables are only counted."""


def history_line(
    command: str, plans: Mapping[str, ArrayPlan], written: Collection[str], datasets: Arrays[StoredArray]
) -> str:
    """Return the run as options of repack; empty if no dataset was encoded anew."""
    changed = [plan for path, plan in plans.items() if path in written]
    if not changed:
        return ""
    line = f"tamis {_native.version}{_other_versions(changed)}: {command}"
    if any(isinstance(step, PackStep) and step.codes.is_divided for plan in changed for step in plan.steps):
        line += " --packed-as codecs"
    for number, plan in enumerate(changed):
        option = _option(plan, datasets[plan.path])
        if len(line) + len(option) > _MOST and number:
            return f"{line}, and {plural(len(changed) - number, 'other variable')}"
        line += option
    return line


def _other_versions(plans: Iterable[ArrayPlan]) -> str:
    """Return the version of hdf5plugin if it encodes; chunks of sz3 are read only by versions with the same SZ3."""
    if not any(item.is_foreign for plan in plans for item in plan.pipeline.filters[:1]):
        return ""
    return f" with hdf5plugin {hdf5plugin_version()}"


def _option(plan: ArrayPlan, source: ArrayFacts) -> str:
    name = plan.path[1:] if plan.path.count("/") == 1 else plan.path
    text = f" -f '{name}:{recorded_text(str(_as_asked(plan)))}'"
    if plan.required is not None:
        text += f" --require '{name}:{plan.required}'"
    if plan.chunk_shape != source.storage.chunk_shape:
        text += f" -c '{name}:{shape_text(plan.chunk_shape)}'"
    return printable(text)


def _as_asked(plan: ArrayPlan) -> Pipeline:
    """Return the filters of a plan in units of the variable, with the requested bound instead of its tolerance."""
    steps: list[Stage | Absolute] = [_stage(stage, plan) for stage in plan.requested.stages]
    rounding = plan.requested.rounding
    if rounding is None:
        return Pipeline(steps)
    bound = rounding.bound if isinstance(rounding, Absolute) else None
    return Pipeline((rounding if bound is None else Absolute(_in_units(bound, plan)), *steps))


def _stage(stage: Stage, plan: ArrayPlan) -> Stage:
    item = stage.filter
    if not item.bounds_errors or not item.error_bound:
        return stage
    if plan.pipeline.bound and plan.required is None:
        return replace(stage, filter=item.with_bound(_in_units(plan.pipeline.bound, plan)))
    return replace(stage, filter=item.with_error(_in_units(item.error_bound, plan)))


def _in_units(bound: float, plan: ArrayPlan) -> float:
    return bound if plan.packing is None else float(f"{plan.in_units(bound):.6g}")


_SAMPLE_NBYTES = 4 << 20
_SIDES = (64, 32, 16, 8)
_CHUNK_SIZE = 16384

# Roughly, the stored bytes for one byte of values, without zfp and with it.
_LOSSLESS, _LOSSY = 0.75, 0.15
# A shape is far better if both costs fall below this fraction of the present ones.
_WORTH_IT = 0.85


def better_chunks(plan: ArrayPlan, source: StoredArray) -> tuple[tuple[int, ...], float] | None:
    """Return a chunk shape in which far fewer values are stored without zfp, judged by a sample of the values."""
    box = _sample(source.shape, plan.dtype.itemsize)
    with closing(source.open_reader()) as reader:
        data = reader.read(whole(box)).astype(plan.dtype, copy=False)
    missing = plan.checks.missing.find(data)
    if missing is None:
        return None
    refused = ~np.isfinite(data) if data.dtype.kind == "f" else np.zeros(data.shape, bool)

    def cost(chunk_shape: tuple[int, ...]) -> tuple[float, float]:
        fraction = _fraction_without_zfp(missing, refused, chunk_shape)
        per_value = RECORD_NBYTES / (math.prod(chunk_shape) * plan.dtype.itemsize)
        return fraction * _LOSSLESS + (1 - fraction) * _LOSSY + per_value, fraction

    present_cost, present_fraction = cost(plan.chunk_shape)
    best = min(((*cost(shape), shape) for shape in _candidates(source.shape)), default=None)
    if best is not None and best[0] < _WORTH_IT * present_cost and best[1] < _WORTH_IT * present_fraction:
        return best[2], best[1]
    return None


def _sample(shape: tuple[int, ...], itemsize: int) -> list[int]:
    """Return the extents of a sample at the beginning of the array, cut along the slowest axes first."""
    box = list(shape)
    for axis in range(len(box)):
        others = math.prod(box) // box[axis] * itemsize
        if math.prod(box) * itemsize > _SAMPLE_NBYTES:
            box[axis] = min(box[axis], max(BLOCK_SIDE, _SAMPLE_NBYTES // others // BLOCK_SIDE * BLOCK_SIDE))
    return box


def _candidates(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    longer = [axis for axis, extent in enumerate(shape) if extent >= BLOCK_SIDE]
    for side in _SIDES:
        chunk_shape = [1] * len(shape)
        for axis in longer[-2:]:
            chunk_shape[axis] = min(side, shape[axis])
        for axis in longer[-3:-2]:
            room = _CHUNK_SIZE // math.prod(chunk_shape) // BLOCK_SIDE * BLOCK_SIDE
            chunk_shape[axis] = min(shape[axis], max(BLOCK_SIDE, room))
        if longer:
            yield tuple(chunk_shape)


def _fraction_without_zfp(
    missing: NDArray[np.bool_], refused: NDArray[np.bool_], chunk_shape: tuple[int, ...]
) -> float:
    """Return the fraction of values in chunks with a block that mixes missing and valid values, or a refused value."""
    missing_counts = missing.astype(np.int64)
    any_refused = refused
    sizes = np.ones((1,) * missing.ndim, np.int64)
    for axis, step in enumerate(chunk_shape):
        # Each chunk begins with a new block; a block cut by an edge is padded with similar values.
        starts = _block_starts(missing.shape[axis], step)
        missing_counts = np.add.reduceat(missing_counts, starts, axis)
        any_refused = np.logical_or.reduceat(any_refused, starts, axis)
        extents = np.diff([*starts, missing.shape[axis]])
        sizes = sizes * np.expand_dims(extents, [other for other in range(missing.ndim) if other != axis])
    mixed: Any = (missing_counts > 0) & (missing_counts < sizes) | any_refused
    counts: Any = sizes
    for axis, step in enumerate(chunk_shape):
        starts = _block_starts(missing.shape[axis], step)
        firsts = np.flatnonzero(np.asarray(starts) % step == 0)
        mixed = np.logical_or.reduceat(mixed, firsts, axis)
        counts = np.add.reduceat(counts, firsts, axis)
    return float(counts[mixed].sum() / counts.sum())


def _block_starts(extent: int, step: int) -> list[int]:
    return [at + block for at in range(0, extent, step) for block in range(0, min(step, extent - at), BLOCK_SIDE)]
