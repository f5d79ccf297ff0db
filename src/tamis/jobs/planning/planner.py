"""Plan one variable: measure its candidates on a sample, and choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tamis.accuracy.field_measures import FIELD_WORDS
from tamis.formatting import ratio_text
from tamis.jobs.planning import choose
from tamis.jobs.planning.access import MODELS, Access, Axes, StorageName
from tamis.jobs.planning.candidates import Candidates, Variable
from tamis.jobs.planning.chunk_shapes import Reads, with_best_shape
from tamis.jobs.planning.comparison.foreign_filters import compared_with
from tamis.jobs.planning.result import Candidate, Compared, PlannedVariable
from tamis.jobs.planning.sample import Sample, sample_of
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipes.dimension_chunks import units_along

LEAST_SAMPLE, USUAL_SAMPLE = 1_000_000, 16_000_000
_FASTER = {"deflate(9)": "deflate(4)", "zstd(9)": "zstd(3)"}
"""Filters that take long, each with one that takes less of the same values."""
_LITTLE_SHARE = 4
_SCREENED_SHARE, _MEASURED_SHARE = 16, 3
"""Shares of the sampled bytes that candidates are measured on first, and then, while their ratios are uncertain."""
_LIKELY_SHARE = 0.8
"""Candidates with less of the best ratio on a part of the sample will not have the best ratio on all of it."""
_SLOW_NBYTES = 2_000_000
"""Bytes on which slow filters are measured, too, and not estimated by what fast ones need."""


class Settings(NamedTuple):
    """What is asked of all variables alike: see `tamis.plan`."""

    prefer: choose.Preference
    readers: choose.Readers
    sample: int
    access: Access | None
    storage: StorageName
    compare: tuple[str, ...] = ()

    @property
    def little(self) -> int:
        """Bytes on which several chunk shapes, or errors, are compared."""
        return max(min(self.sample, USUAL_SAMPLE) // _LITTLE_SHARE, LEAST_SAMPLE)


class Work:
    """The work on one variable, in bytes that are encoded, as a step of the progress."""

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


def planned(variable: Variable, settings: Settings, work: Work) -> PlannedVariable:
    """Measure the candidates of a variable, and choose; where reads are given, in several chunk shapes."""
    if settings.access is None:
        result = measured(variable, settings, settings.sample, work)
    else:
        reads = Reads(settings.access, _axes(variable), MODELS[settings.storage])

        def measure(variable: Variable, little: bool) -> PlannedVariable:
            return measured(variable, settings, settings.little if little else settings.sample, work)

        result = with_best_shape(variable, reads, measure)
    if settings.compare and not variable.want.is_lossless:
        result = replace(result, compared=tuple(_compared(variable, settings, result.chunks, work)))
    work.finish()
    return result.with_note(f"; {variable.note}") if variable.note else result


def _compared(variable: Variable, settings: Settings, chunks: tuple[int, ...] | None, work: Work) -> Iterator[Compared]:
    """Yield filters of others, on some of the chunks that the variable gets: they take minutes for all of them."""
    variable = variable._replace(chunk_shape=chunks or variable.chunk_shape)
    usual = min(settings.sample, USUAL_SAMPLE)
    sample = _sample(variable, usual)
    few = sample.thinned(usual // _MEASURED_SHARE)
    work.add(few.nbytes * len(settings.compare))
    return compared_with(settings.compare, variable, sample, few, work.advance)


def _sample(variable: Variable, nbytes: int) -> Sample:
    """Read a sample of a variable, in whole fields if what is wanted is about them."""
    about_fields = FIELD_WORDS if len(variable.chunk_shape) > 1 else ("spectrum",)
    fields = not variable.want.limits.keys().isdisjoint(about_fields)
    return sample_of(variable.arrays, variable.chunk_shape, nbytes, fields=fields)


def _axes(variable: Variable) -> Axes:
    """Return the axes of a variable: the units of a coordinate tell which is time."""
    store = variable.stores[0]
    times = [name for name, units in units_along(store, variable.path).items() if " since " in units]
    return Axes.of(variable.dimensions or (), len(variable.chunk_shape), times)


def measured(variable: Variable, settings: Settings, nbytes: int, work: Work) -> PlannedVariable:
    """Measure the candidates of a variable in its chunk shape, on so many bytes, and choose."""
    arrays, prefer = variable.arrays, settings.prefer
    sample = _sample(variable, nbytes)
    candidates = Candidates(variable, sample)
    texts = [text for text in candidates.texts() if candidates.allowed(text, settings.readers)]
    front = _front(candidates, texts, sample, nbytes, prefer, work)
    source_ratio = variable.source_ratio
    filters, reason = _choice(front, prefer, source_ratio, candidates)
    if not (variable.want.is_lossless or any(map(candidates.changes_values, texts))):
        reason += "; no lossy filters keep it on the sample"
    own_chunks = all(array.chunk_shape == variable.chunk_shape for array in arrays)
    return PlannedVariable(
        variable.path,
        str(variable.want),
        variable.nbytes,
        source_ratio,
        sample.nbytes,
        None if own_chunks else variable.chunk_shape,
        tuple(front),
        filters,
        reason,
        candidates.required(filters),
        tuple(candidates.refused.items()),
        _named(variable.dimensions),
    )


def _named(dimensions: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return names of dimensions, if each names one axis."""
    return dimensions if dimensions and len(set(dimensions)) == len(dimensions) else None


def _front(
    candidates: Candidates, texts: Sequence[str], sample: Sample, nbytes: int, prefer: choose.Preference, work: Work
) -> list[Candidate]:
    """Return the front of the candidates, by falling ratio: all are measured on little, the best of them on more."""
    usual = min(nbytes, USUAL_SAMPLE)
    few = sample.thinned(usual // _SCREENED_SHARE)
    more = sample if sample.is_all else sample.thinned(usual // _MEASURED_SHARE)
    work.add(few.nbytes * len(texts))
    screened = {text: candidates.measured(text, few, work.advance) for text in texts}
    front = choose.front_of([*screened.values()])
    for enough in (more,) if more is sample else (more, sample):
        if not front or not (enough is more or choose.winner_of(front, prefer)[0].is_uncertain):
            break
        if enough.nbytes > few.nbytes:
            share = _LIKELY_SHARE if enough is sample and enough is not more and prefer == "size" else choose.FAST_SHARE
            better: dict[str, Candidate] = {}
            # All that may be chosen on the same chunks: otherwise the one with the luckiest chunks is.
            while near := [
                each.filters
                for each in (front if sample.is_all else choose.eligible(front, share))
                if each.filters not in better
            ]:
                better |= _better(candidates, near, enough, screened, work)
                front = [better.get(each.filters, each) for each in front]
            few = enough
    return choose.front_of(front)


def _better(
    candidates: Candidates, near: Sequence[str], enough: Sample, screened: Mapping[str, Candidate], work: Work
) -> dict[str, Candidate]:
    """Return candidates, measured on more than they were screened on."""
    # What slow filters save beyond fast ones hardly depends on the chunk: that was measured on a few.
    slow = [] if enough.is_all or enough.nbytes <= _SLOW_NBYTES else near
    fast = {text: quick for text in slow if (quick := _faster(text)) != text and quick in screened}
    whole = dict.fromkeys((*(text for text in near if text not in fast), *fast.values()))
    work.add(enough.nbytes * len(whole))
    better = {text: candidates.measured(text, enough, work.advance) for text in whole}
    return better | {text: screened[text].scaled(screened[quick], better[quick]) for text, quick in fast.items()}


def _faster(text: str) -> str:
    for slow, fast in _FASTER.items():
        text = text.replace(slow, fast)
    return text


def _choice(
    front: Sequence[Candidate], prefer: choose.Preference, source_ratio: float | None, candidates: Candidates
) -> tuple[str | None, str]:
    """Return the chosen filters, and the reason in a sentence."""
    if not front:
        return None, "stays as it is, because no filters here can store it so that these readers read it"
    winner, why = choose.winner_of(front, prefer)
    if source_ratio is not None and winner.ratio <= source_ratio:
        return None, f"stays as it is, because none of these is better than its ratio now, {ratio_text(source_ratio)}"
    return winner.filters, f"{winner.filters}, because {why}{candidates.condition(winner.filters)}"
