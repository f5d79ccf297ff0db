"""Plan one variable: measure its candidates on a sample, and choose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis import meaning
from tamis.accuracy import FIELD_WORDS
from tamis.advice import oversized, oversized_note
from tamis.arrays import default_chunks, grid_of
from tamis.errors import ParameterError
from tamis.filters import Deflate, Filter, Zstd
from tamis.formatting import absent_text, ratio_text, shape_text, size_text
from tamis.jobs.plan.candidates import (
    FAST_SHARE,
    Candidates,
    VariableToPlan,
    eligible,
    front_of,
    winner_of,
)
from tamis.jobs.plan.choices import READERS, ChunkChoice, Preference, Readers, Risk, StorageName
from tamis.jobs.plan.chunk_shapes import (
    MODELS,
    SAME_RATIO,
    Access,
    Axes,
    Reads,
    shapes_of_kinds,
    with_best_shape,
)
from tamis.jobs.plan.foreign_filters import compared_with
from tamis.jobs.plan.ladder import SHARES, ladder_of, rounded_bound
from tamis.jobs.plan.noise import noise_of
from tamis.jobs.plan.planned import Candidate, Compared, Offer, PlannedVariable, Rechunked, Stored
from tamis.jobs.plan.readers import read_by
from tamis.jobs.plan.recommended import recommended_requirement
from tamis.jobs.plan.requirements import FROM_NOISE, RECOMMENDED, PlanRequirement
from tamis.jobs.plan.sample import Sample, sample_of
from tamis.jobs.recipes import Names, assigned, units_along
from tamis.pipeline import Pipeline
from tamis.rounding import recorded_rounding
from tamis.stores import ELSEWHERE, IN_MEMORY, Store, StoredArray, size_of, values_nbytes_of

if TYPE_CHECKING:
    from tamis.jobs.progress import Progress, Step
    from tamis.jobs.recipes import MissingPolicy

_LEAST_NBYTES = 1 << 16


def variables_of(
    stores: Sequence[Store], asked: Mapping[str, PlanRequirement], missing: MissingPolicy, *, keeps_chunks: bool = False
) -> tuple[list[VariableToPlan], dict[str, str]]:
    """Return the variables to plan, and for each other requested one the reason why it stays."""
    first = stores[0]
    first.check_listed()
    names = Names(first)
    requirements: dict[str, tuple[PlanRequirement, str]] = {}
    for entry in assigned(asked or {"*": PlanRequirement()}, names.match_any):
        requirements.setdefault(entry.path, (entry.value, "" if entry.exact else entry.name))
    variables: list[VariableToPlan] = []
    kept: dict[str, str] = {}
    for path, (asked_for, pattern) in requirements.items():
        role, exact = first.roles.get(path, meaning.DATA), not pattern
        requirement = PlanRequirement() if role.is_exact and not exact else asked_for
        every = [store.arrays[path] for store in stores if path in store.arrays]
        if len(every) < len(stores):
            kept[path] = "not planned: not in all of the files"
        elif reason := _reason_to_keep(every, exact):
            kept[path] = reason
        elif not (used := _with_values(path, every)):
            kept[path] = "not planned: never written"
        else:
            own, arrays = [stores[number] for number in used], [every[number] for number in used]
            note = ""
            if len(used) < len(stores):
                note = f"{len(stores) - len(used)} of {len(stores)} files without values of it"
            if requirement is RECOMMENDED:
                recommended, about = recommended_requirement(own[0], arrays[0], path.rpartition("/")[2])
                note = "; ".join(filter(None, (note, about)))
                requirement = FROM_NOISE if recommended is None else recommended
            if reason := _reason_of_packing(arrays, requirement):
                kept[path] = reason
                continue
            shape = _chunk_shape(arrays)
            if not keeps_chunks and (chunking := oversized(arrays[0])) is not None:
                shape = chunking.right_size
                note = "; ".join(filter(None, (note, chunking.oversized_text)))
            number = arrays[0].type.numbers
            is_float = number is not None and (number.kind == "f" or arrays[0].meaning.packing is not None)
            has_noise = is_float and not role.is_exact
            variables.append(VariableToPlan(path, requirement, own, arrays, shape, missing, note, has_noise, pattern))
    return variables, kept | {name: f"not planned: {reason}" for name, reason in names.unmatched.items()}


def _reason_to_keep(arrays: Sequence[StoredArray], exact: bool) -> str:
    """Return why an array stays as it is for any requirement; empty if it does not."""
    for array in arrays:
        if array.type.dtype is None or array.type.dtype.kind not in "iuf" or not array.shape:
            return "not planned: not an array of numbers"
        if array.storage.layout in ELSEWHERE:
            absent = f": {absent_text(array.elsewhere.absent_files)}" if array.elsewhere.absent_files else ""
            return f"not planned: values in other files ({array.storage.layout}){absent}"
        if array.marks.is_companion or array.marks.has_companion:
            return "not planned: has a missing-value mask, or is one"
        if array.storage.pipeline.error_bound != 0:
            return (
                f"not planned: went through {array.storage.pipeline} before, and a second error would add to the first"
            )
        if (rounding := recorded_rounding(array.attributes, array.type.numbers)) is not None:
            return f"not planned: rounded before, by {rounding}"
        if problem := array.storage.problem:
            return f"not planned: {problem}"
    sizes = [values_nbytes_of(array) for array in arrays if size_of(array)]
    if sizes and not exact and sum(sizes) < _LEAST_NBYTES * len(sizes):
        return f"not planned: less than {size_text(_LEAST_NBYTES)} (name it exactly in a requirement to plan it)"
    return ""


def _with_values(path: str, arrays: Sequence[StoredArray]) -> list[int]:
    """Return the numbers of the files that have values of a variable: others have no steps yet, or never wrote it."""
    _check_alike(path, arrays)
    sized = [number for number, array in enumerate(arrays) if size_of(array)]
    shape = _chunk_shape([arrays[number] for number in sized]) if sized else ()
    return [number for number in sized if arrays[number].parts(grid_of(arrays[number].shape, shape))]


def _reason_of_packing(arrays: Sequence[StoredArray], requirement: PlanRequirement) -> str:
    """Return why arrays cannot be measured together; empty if they can, because errors are combined in stored units."""
    dtype = np.dtype(arrays[0].type.dtype)
    never_lossy = dtype.kind in "iu" and dtype.itemsize < 4
    if requirement.is_lossless or never_lossy or len({array.meaning.packing for array in arrays}) == 1:
        return ""
    return (
        "not planned: scale_factor or add_offset differ between the files, so their errors cannot be combined: plan "
        "each of these files"
    )


def _check_alike(path: str, arrays: Sequence[StoredArray]) -> None:
    """Raise ParameterError if an array has another type or number of axes in one of the files."""
    array = arrays[0]
    for other in arrays[1:]:
        if other.type.dtype != array.type.dtype or len(other.shape) != len(array.shape):
            raise ParameterError(
                f"{path}: expected the same type and number of axes in all files, got {array.type.text} with"
                f" {len(array.shape)} axes in {array.label}, {other.type.text} with {len(other.shape)} in {other.label}"
            )


def _chunk_shape(arrays: Sequence[StoredArray]) -> tuple[int, ...]:
    """Return the chunk shape of the first array; for arrays without chunks, one that fits all of them."""
    array = arrays[0]
    least = tuple(min(extents) for extents in zip(*(other.shape for other in arrays), strict=True))
    if array.storage.chunk_shape is not None:
        return tuple(map(min, array.storage.chunk_shape, least)) if len(arrays) > 1 else array.storage.chunk_shape
    return default_chunks(least, np.dtype(array.type.dtype).itemsize, zfp=np.dtype(array.type.dtype).kind == "f")


def rechunked(stores: Sequence[Store], planned: Collection[str], kept: Collection[str]) -> tuple[Rechunked, ...]:
    """Return chunk shapes for variables without a plan whose chunks are much larger than all of their values.

    Those that no requirement names are only noted: a recipe changes nothing that nobody requested.
    """
    found = []
    for path, array in stores[0].arrays.items():
        if path not in planned and (chunking := oversized(array)) is not None:
            found.append(Rechunked(path, chunking.right_size, oversized_note(path, chunking), path in kept))
    return tuple(found)


LEAST_SAMPLE, USUAL_SAMPLE = 1_000_000, 16_000_000
_FASTER: Mapping[Filter, Filter] = {Deflate(9): Deflate(4), Zstd(9): Zstd(3), Zstd(19): Zstd(3)}
"""Slow filters, each with a faster one for the same values."""
_LITTLE_SHARE = 4
_SCREENED_SHARE, _MEASURED_SHARE = 16, 3
"""Shares of the sampled bytes that candidates are measured on first, and then, while their ratios are uncertain."""
_SHAPES_NBYTES, _ARCHIVE_TIMES = 5_000_000, 3
"""Bytes on which chunk shapes are compared, and by how much they are multiplied for archives."""
_LIKELY_IN_OTHERS, _MOST_KINDS = 0.5, 6
"""Candidates with a smaller share of the best ratio will not be the best in other chunks; and how many are tried."""
_LIKELY_SHARE = 0.8
"""Candidates with less of the best ratio on a part of the sample will not have the best ratio on all of it."""
_SLOW_NBYTES = 2_000_000
"""Bytes on which slow filters are measured themselves, instead of being estimated from fast ones."""


class Settings(NamedTuple):
    """The settings for all variables: see `tamis.plan`."""

    prefer: Preference
    readers: Readers
    sample: int
    access: Access | None
    storage: StorageName
    compare: tuple[str, ...] = ()
    chunks: ChunkChoice | None = None
    allow: tuple[Risk, ...] = ()
    offers: bool = True  # Whether filters for other readers are measured, too
    ladders: bool = False  # Whether variables get bounds by their noise

    def shapes(self, variable: VariableToPlan) -> bool:
        """Return whether several chunk shapes are tried for the best ratio."""
        if self.chunks is None:
            return any(array.storage.chunk_shape is None for array in variable.arrays)
        return self.chunks == "auto"

    def eligible(self, front: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that may be chosen."""
        return [candidate for candidate in front if not candidate.needs and self.allows(candidate)]

    def allows(self, candidate: Candidate) -> bool:
        """Return whether a candidate has no risk but those that the user takes."""
        return "unstable" in self.allow or not candidate.is_unstable

    @property
    def little(self) -> int:
        """Bytes on which several chunk shapes, or errors, are compared."""
        return max(min(self.sample, USUAL_SAMPLE) // _LITTLE_SHARE, LEAST_SAMPLE)


class Work:
    """The work on one variable, in encoded bytes, as a step of the progress."""

    def __init__(self, progress: Progress | None, step: Step) -> None:
        self._progress, self._step = progress, step
        self._done, self._total = 0, 1  # one is left until all is done

    def add(self, nbytes: int) -> None:
        """Add work to be done."""
        self._total += nbytes

    def advance(self, nbytes: int) -> None:
        """Report that some of it is done."""
        self._done += nbytes
        if self._progress is not None:
            self._progress(self._step, self._done, self._total)

    def finish(self) -> None:
        """Report that all is done."""
        self._done = self._total - 1
        self.advance(1)


def planned(variable: VariableToPlan, settings: Settings, work: Work) -> PlannedVariable:
    """Measure the candidates of a variable, and choose; if reads are given, in several chunk shapes."""
    if variable.requirement is FROM_NOISE:
        variable = _with_own_bound(variable, settings)

    def measure(variable: VariableToPlan, little: bool) -> PlannedVariable:
        return measured(variable, settings, settings.little if little else settings.sample, work)

    if settings.access is not None:
        result = with_best_shape(variable, Reads(settings.access, _axes(variable), MODELS[settings.storage]), measure)
    elif settings.shapes(variable):
        result = _with_best_ratio(variable, settings, work)
    else:
        result = measure(variable, False)
    if settings.compare and not variable.requirement.is_lossless:
        result = replace(result, compared=tuple(_compared(variable, settings, result.chunks, work)))
    if settings.ladders and variable.has_noise:
        result = _with_ladder(result, variable, settings, work)
    work.finish()
    return result.with_note(f"; {variable.note}") if variable.note else result


def _with_best_ratio(variable: VariableToPlan, settings: Settings, work: Work) -> PlannedVariable:
    """Return the plan for a variable in the chunk shape with the best ratio; in its own, if that is about as good."""
    own, every = _measured(variable, settings, settings.sample, work)
    # Also those that others beat in these chunks: bzip2 and sperr gain most from larger ones.
    likely = _one_of_each_kind(settings.eligible(every))
    shapes = dict.fromkeys((variable.chunk_shape, *shapes_of_kinds(variable.extents, variable.itemsize)))
    nbytes = _SHAPES_NBYTES * (_ARCHIVE_TIMES if settings.prefer == "archive" else 1)
    ratios = {shape: _relative_ratio(variable._replace(chunk_shape=shape), likely, nbytes, work) for shape in shapes}
    best = max(ratios, key=lambda shape: ratios[shape])
    same = 1.0 if settings.prefer == "archive" else SAME_RATIO
    if own.chosen is None or best == variable.chunk_shape or ratios[variable.chunk_shape] >= same * ratios[best]:
        return own
    result = measured(variable._replace(chunk_shape=best), settings, settings.sample, work)
    if result.chosen is None or own.chosen.ratio >= same * result.chosen.ratio:
        return own
    instead = f"; its chunks are {shape_text(best)} instead of {shape_text(variable.chunk_shape)}"
    return result.with_note(f"{instead}, where the ratio is {ratio_text(own.chosen.ratio)}")


def _one_of_each_kind(candidates: Sequence[Candidate]) -> list[Pipeline]:
    """Return the best filters of each kind, by their last one: kinds suit different shapes; not those far behind."""
    likely: dict[str, Pipeline] = {}
    for candidate in sorted(eligible(candidates, _LIKELY_IN_OTHERS) if candidates else [], key=lambda one: -one.ratio):
        filters = candidate.pipeline
        likely.setdefault((filters.bounded or filters.filters[-1]).name, filters)
    return [*likely.values()][:_MOST_KINDS]


def _relative_ratio(variable: VariableToPlan, likely: Sequence[Pipeline], nbytes: int, work: Work) -> float:
    """Return the best ratio of filters in a chunk shape, for values of average roughness; 0 if all refuse."""
    candidates = Candidates(variable, _sample(variable, nbytes))
    allowed = [filters for filters in likely if candidates.allowed(filters)]
    work.add(nbytes)
    best = max(map(candidates.ratio, allowed), default=0.0)
    work.advance(nbytes)
    return best * candidates.roughness


def _compared(
    variable: VariableToPlan, settings: Settings, chunks: tuple[int, ...] | None, work: Work
) -> Iterator[Compared]:
    """Yield foreign filters, measured on some of the variable's new chunks, because all would take minutes."""
    variable = variable._replace(chunk_shape=chunks or variable.chunk_shape)
    usual = min(settings.sample, USUAL_SAMPLE)
    sample = _sample(variable, usual)
    few = sample.thinned(usual // _MEASURED_SHARE)
    work.add(few.nbytes * len(settings.compare))
    return compared_with(settings.compare, variable, sample, few, work.advance)


def _sample(variable: VariableToPlan, nbytes: int) -> Sample:
    """Read a sample of a variable, in whole fields if the requirement is about them."""
    about_fields = FIELD_WORDS if len(variable.chunk_shape) > 1 else ("spectrum",)
    fields = not variable.requirement.limits.keys().isdisjoint(about_fields)
    return sample_of(variable.arrays, variable.chunk_shape, nbytes, fields=fields)


def _axes(variable: VariableToPlan) -> Axes:
    """Return the axes of a variable; the units of a coordinate identify time."""
    store = variable.stores[0]
    times = [name for name, units in units_along(store, variable.path).items() if " since " in units]
    return Axes.of(variable.dimensions or (), len(variable.chunk_shape), times)


def measured(variable: VariableToPlan, settings: Settings, nbytes: int, work: Work) -> PlannedVariable:
    """Measure the candidates of a variable in its chunk shape, on a number of bytes, and choose."""
    return _measured(variable, settings, nbytes, work)[0]


def _measured(
    variable: VariableToPlan, settings: Settings, nbytes: int, work: Work
) -> tuple[PlannedVariable, Sequence[Candidate]]:
    """Return the plan of `measured`, and all candidates, as measured on little."""
    arrays = variable.arrays
    sample = _sample(variable, nbytes)
    candidates = Candidates(variable, sample, settings.prefer, settings.readers)
    pipelines = [
        filters
        for filters in candidates.pipelines()
        if candidates.allowed(filters) and (settings.offers or candidates.is_readable(filters))
    ]
    front, every = _front(candidates, pipelines, sample, nbytes, settings, work)
    source_ratio = variable.source_ratio
    chosen, reason = _choice(front, settings, source_ratio, candidates)
    ratio = next((each.ratio for each in front if each.pipeline == chosen), source_ratio or 1.0)
    front = [candidate for candidate in front if not candidate.needs or candidate.ratio > ratio]
    front = [candidates.judged(candidate) for candidate in front]
    if not (variable.requirement.is_lossless or any(map(candidates.changes_values, pipelines))):
        reason += "; no lossy filters meet the requirement on the sample"
    own_chunks, dimensions = (
        all(array.storage.chunk_shape == variable.chunk_shape for array in arrays),
        variable.dimensions,
    )
    result = PlannedVariable(
        variable.path,
        str(variable.requirement),
        variable.nbytes,
        source_ratio,
        sample.nbytes,
        None if own_chunks else variable.chunk_shape,
        tuple(front),
        None if chosen is None else str(chosen),
        reason,
        candidates.required(chosen),
        tuple(candidates.refused.items()),
        dimensions if dimensions and len(set(dimensions)) == len(dimensions) else None,
        offers=tuple(_offers([each for each in front if each.needs and settings.allows(each)], candidates, ratio)),
        stored=_stored(variable, settings),
    )
    return result, every


def _stored(variable: VariableToPlan, settings: Settings) -> Stored | None:
    """Return what a variable is stored as now; None for one in memory."""
    if variable.arrays[0].storage.layout == IN_MEMORY:
        return None
    pipeline = variable.arrays[0].storage.pipeline
    nbytes = sum(array.stored_nbytes for array in variable.arrays)
    return Stored(str(pipeline), variable.source_ratio, nbytes, read_by(pipeline.filters, settings.readers))


def _with_own_bound(variable: VariableToPlan, settings: Settings) -> VariableToPlan:
    """Return a variable with the smallest bound of its ladder as the requirement; lossless if it has no noise."""
    level = noise_of(variable, _sample(variable, settings.little)).level if variable.has_noise else 0.0
    if not level > 0:
        return variable._replace(
            requirement=PlanRequirement(), note=f"{variable.note}, and its values show no noise: it stays lossless"
        )
    bound = rounded_bound(SHARES[0] * level)
    note = f"{variable.note}, so the bound is at most a tenth of its own noise level, {level:.2g}, found on the sample"
    return variable._replace(requirement=PlanRequirement({"abs": bound}), note=note)


def _with_ladder(result: PlannedVariable, variable: VariableToPlan, settings: Settings, work: Work) -> PlannedVariable:
    """Return the plan of a variable with bounds by its noise."""
    variable = variable._replace(chunk_shape=result.chunks or variable.chunk_shape)
    settings = settings._replace(offers=False)
    sample = _sample(variable, settings.little)
    noise = noise_of(variable, sample)

    def plan(step: VariableToPlan) -> PlannedVariable:
        return measured(step, settings, settings.little, work)

    rungs = ladder_of(variable, sample, noise, plan)
    result = replace(result, noise=noise.level, ladder=rungs)
    return result.with_note(f"; its noise level is about {noise.level:.2g}, judged by neighbours") if rungs else result


_WORTH_SAYING = 1.001
"""How much better the ratio of an offer is at least: less would be 0.0 % of the bytes."""


def _offers(others: Sequence[Candidate], candidates: Candidates, ratio: float) -> Iterator[Offer]:
    """Yield the best of the candidates for each kind of other readers, where it is better than for those before."""
    best: dict[str, Offer] = {}
    for candidate in others:  # by falling ratio
        offer = candidates.offer(candidate, ratio)
        best.setdefault(offer.readers, offer)
    for readers in READERS:
        if readers in best and best[readers].ratio > _WORTH_SAYING * ratio:
            ratio = best[readers].ratio
            yield best[readers]


def _front(
    candidates: Candidates,
    pipelines: Sequence[Pipeline],
    sample: Sample,
    nbytes: int,
    settings: Settings,
    work: Work,
) -> tuple[list[Candidate], Sequence[Candidate]]:
    """Return the unbeaten candidates, by falling ratio, and all: these are measured on little, the best on more."""
    usual = min(nbytes, USUAL_SAMPLE)
    few = sample.thinned(usual // _SCREENED_SHARE)
    more = sample if sample.is_all else sample.thinned(usual // _MEASURED_SHARE)
    work.add(few.nbytes * len(pipelines))
    tried = {filters: candidates.tried(filters, few, work.advance) for filters in pipelines}
    screened = {filters: candidate for filters, candidate in tried.items() if candidate is not None}
    front = front_of([*screened.values()])
    for enough in (more,) if more is sample else (more, sample):
        stable = settings.eligible(front)
        if not stable or not (enough is more or winner_of(stable, settings.prefer)[0].is_uncertain):
            break
        if enough.nbytes > few.nbytes:
            share = (
                _LIKELY_SHARE if enough is sample and enough is not more and settings.prefer != "speed" else FAST_SHARE
            )
            better: dict[Pipeline, Candidate] = {}
            # Compare all on the same chunks: otherwise the one with the luckiest chunks is chosen.
            while near := [
                candidate.pipeline
                for candidate in (front if sample.is_all else _likely(front, settings, share))
                if candidate.pipeline not in better
            ]:
                better |= _better(candidates, near, enough, screened, work)
                left = [each for each in front if not candidates.is_refused(each.pipeline)]
                front = [better.get(candidate.pipeline, candidate) for candidate in left]
            few = enough
    return front_of(front), [*screened.values()]


def _likely(front: Sequence[Candidate], settings: Settings, share: float) -> list[Candidate]:
    """Return the candidates that may be chosen, or offered, after they are measured on more."""
    near = eligible(settings.eligible(front), share)
    most = max(candidate.ratio for candidate in near)
    return [*near, *(each for each in front if each.needs and settings.allows(each) and each.ratio > most)]


def _better(
    candidates: Candidates, near: Sequence[Pipeline], enough: Sample, screened: Mapping[Pipeline, Candidate], work: Work
) -> dict[Pipeline, Candidate]:
    """Return candidates, measured on more data than in the screening."""
    # The advantage of slow filters over fast ones hardly depends on the chunk, so it was measured on a few.
    slow = [] if enough.is_all or enough.nbytes <= _SLOW_NBYTES else near
    fast = {filters: quick for filters in slow if (quick := _faster(filters)) != filters and quick in screened}
    whole = dict.fromkeys((*(filters for filters in near if filters not in fast), *fast.values()))
    work.add(enough.nbytes * len(whole))
    tried = {filters: candidates.tried(filters, enough, work.advance) for filters in whole}
    better = {filters: candidate for filters, candidate in tried.items() if candidate is not None}
    for slow_filters, quick in fast.items():
        if quick in better:
            better[slow_filters] = screened[slow_filters].scaled(screened[quick], better[quick])
        else:
            candidates.refuse_as(slow_filters, quick)
    return better


def _faster(filters: Pipeline) -> Pipeline:
    stages = (replace(stage, filter=_FASTER.get(stage.filter, stage.filter)) for stage in filters.stages)
    return Pipeline(stages if filters.rounding is None else (filters.rounding, *stages), bound=filters.bound)


def _choice(
    front: Sequence[Candidate], settings: Settings, source_ratio: float | None, candidates: Candidates
) -> tuple[Pipeline | None, str]:
    """Return the chosen filters, and the reason in a sentence."""
    if not (stable := settings.eligible(front)):
        return None, "stays as it is, because no filters here can store it for these readers"
    winner, why = winner_of(stable, settings.prefer)
    if source_ratio is not None and winner.ratio <= source_ratio:
        return None, f"stays as it is, because none of these beats its present ratio, {ratio_text(source_ratio)}"
    if any(other.needs and other.ratio > winner.ratio for other in front):
        why = re.sub(r"\b(best ratio|to the best)\b", r"\1 for these readers", why, count=1)
    return winner.pipeline, f"{winner.filters}, because {why}{candidates.condition(winner.pipeline)}"
