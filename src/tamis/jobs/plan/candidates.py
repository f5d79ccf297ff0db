"""The candidates of a variable: filters that meet the requirement on its sample, their costs, and the best of them."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial, reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.accuracy import FLAGS, SIGNIFICAND_BITS, Requirement
from tamis.arrays import grid_of
from tamis.errors import DataError, MissingFilterError, ParameterError
from tamis.filters import ChunkType, Filter, Sperr, Sz3, Szip, Zfp
from tamis.formatting import ratio, ratio_text
from tamis.jobs.plan.choices import Preference, Readers
from tamis.jobs.plan.costs import cost_class
from tamis.jobs.plan.measure import (
    Cost,
    Differences,
    absolute_bound,
    absolute_errors,
    cost_of,
    differences_of,
    expected_effects,
    facts_of,
    failures,
    finite,
    kept_bits,
    loosest,
    loss_of,
    losses_of_modes,
    magnitude,
    packing_errors,
    values_for,
    zfp_ladders,
)
from tamis.jobs.plan.planned import Candidate, Offer
from tamis.jobs.plan.readers import least_readers, needs_of, read_by, readable
from tamis.jobs.plan.requirements import ABSOLUTE, RELATIVE, PlanRequirement
from tamis.jobs.recipes import Recipe, dimensions_of
from tamis.jobs.repack import ReadSurvey, RepackOptions, packs, plan_datasets
from tamis.pipeline import Pipeline
from tamis.rewrite import ArrayPlan, Copy, as_floats, fill_of, marks_of, unpacked_type
from tamis.rounding import Absolute, BitRound, Pack, PackingRange, Rounding
from tamis.stores import EVERY_PROGRAM, is_zarr, values_nbytes_of
from tamis.zfp import Accuracy, Precision

if TYPE_CHECKING:
    from tamis.accuracy import Measured
    from tamis.jobs.plan.sample import Piece, Sample
    from tamis.jobs.recipes import MissingPolicy
    from tamis.jobs.repack import Survey
    from tamis.stores import Store, StoredArray


_MARGIN = 0.1
"""For several files, the range of the packing is wider than that of the sample by this share, on either side."""

_LOSS, _PACKING = "loss", "packing"
_ABOUT_SAME = 0.03
"""Ratios that differ by less are equal for the choice."""
_FOREIGN_GAIN = 1.1
_WORTH = 1.5
"""Filters must be this many times as fast as others that have a slightly better ratio."""
FAST_SHARE = 2 / 3
"""A fast choice has at least this share of the best ratio."""
_USUAL_BITS = 12
_SLOW_NBYTES = 4_000_000
"""Bytes of chunks on which filters of hdf5plugin are measured."""


def front_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no other beats in ratio, speed and readers together, by falling ratio."""
    ordered = sorted(candidates, key=lambda candidate: -candidate.ratio)
    return [candidate for candidate in ordered if not any(_surpasses(other, candidate) for other in ordered)]


def _surpasses(one: Candidate, other: Candidate) -> bool:
    """Return whether one is as good as the other in everything, and better in ratio or reader requirements."""
    demands, others = _demands(one.pipeline), _demands(other.pipeline)
    as_good = one.ratio >= other.ratio and demands <= others and _effort(one) <= _effort(other)
    return as_good and (one.ratio > other.ratio or demands < others)


@lru_cache(maxsize=256)  # each candidate is compared with all others
def _demands(pipeline: Pipeline) -> frozenset[str]:
    """Return the plugins that readers need, ``loss`` if they get other values, and ``packing`` if they must unpack."""
    names = {item.name for item in pipeline.filters} - EVERY_PROGRAM
    packing = {_PACKING} if packs(pipeline) else set()
    return frozenset(names | packing | {_LOSS} if pipeline.error_bound != 0 else names)


def _effort(candidate: Candidate) -> float:
    """Return the seconds to write and to read a megabyte, by its class: measured times are different in each run."""
    return cost_class(candidate.pipeline).effort


def eligible(candidates: Sequence[Candidate], share: float = FAST_SHARE) -> list[Candidate]:
    """Return the candidates with at least this share of the best ratio."""
    best = max(candidate.ratio for candidate in candidates)
    return [candidate for candidate in candidates if candidate.ratio >= share * best]


def winner_of(candidates: Sequence[Candidate], prefer: Preference) -> tuple[Candidate, str]:
    """Return the best candidate, and why it is, in words.

    For size this is the best ratio; among similar ratios, lossless first, then the fewest plugins, then the fastest.
    Filters of hdf5plugin, which are slow, and few programs read, must save a tenth more than others. For speed it is
    the fastest with at least two thirds of the best ratio, and for archives the best ratio alone.
    """
    best = max(candidates, key=lambda candidate: candidate.ratio)
    if prefer == "archive":
        return best, "it has the best ratio"
    if prefer == "speed":
        fast = min(eligible(candidates), key=_effort)
        if fast == best:
            return best, "it has the best ratio, and no other is faster"
        return fast, f"it is the fastest with at least two thirds of the best ratio, {ratio_text(best.ratio)}"
    common = [candidate for candidate in candidates if not _is_foreign(candidate.pipeline)]
    if common and (most := max(candidate.ratio for candidate in common)) * _FOREIGN_GAIN > best.ratio:
        candidates, best = common, next(candidate for candidate in common if candidate.ratio == most)
    near = [candidate for candidate in candidates if candidate.ratio >= (1 - _ABOUT_SAME) * best.ratio]
    demands = {candidate: _demands(candidate.pipeline) for candidate in near}
    asks = {candidate: (_LOSS in demands[candidate], len(demands[candidate])) for candidate in near}
    alike = [candidate for candidate in near if asks[candidate] == min(asks.values())]
    chosen, fastest = max(alike, key=lambda each: each.ratio), min(alike, key=_effort)
    chosen = fastest if _effort(fastest) * _WORTH < _effort(chosen) else chosen
    if chosen == best:
        return best, "it has the best ratio of all that meet the requirement"
    own, others = demands[chosen], demands[best]
    why = "loses nothing" if others - own == {_LOSS} else "asks less of readers" if own < others else "is faster"
    return chosen, f"it {why}, and its ratio is close to the best, {ratio_text(best.ratio)}"


def _is_foreign(filters: Pipeline) -> bool:
    """Return whether hdf5plugin runs a filter, in a separate process."""
    return filters.bounded is not None and filters.bounded.is_foreign


_CHAINS = tuple(
    map(
        Pipeline.parse,
        (
            "shuffle|deflate(4)",
            "shuffle|deflate(9)",
            "shuffle|zstd(9)",
            "shuffle|zstd(3)",
            "shuffle|lz4",
            "bitshuffle(compressor=zstd)",
        ),
    )
)
"""Lossless filters that are measured, alone and after a rounding."""
_SZIPS = tuple(Szip(coding, pixels) for coding in ("nn", "ec") for pixels in (16, 8, 32))
"""Settings of szip. The bytes of each are counted without encoding, and the best one is measured."""
_PACKED_CHAINS = (
    Pipeline.parse("bzip2(9)"),
    *(chain for chain in _CHAINS if chain.filters[-1].name in ("deflate", "zstd")),
)
"""Lossless filters that are measured after packing, besides szip."""
_ZARR_CHAINS = ("pcodec(8)", "blosc(zstd,5,byte)", "blosc(zstd,5,bit)")
"""Lossless filters that are measured for readers of Zarr, alone, after a rounding and after packing."""
_SLOWEST = Pipeline.parse("shuffle|zstd(19)")
_BYTEDELTA = "blosc2(zstd,9,bytedelta)"
"""Lossless filters that are measured for archives."""
_FALLBACK = _CHAINS[0]
"""Filters of chunks that zfp cannot keep."""


class VariableToPlan(NamedTuple):
    """A variable of all files that is planned."""

    path: str
    requirement: PlanRequirement
    stores: Sequence[Store]
    arrays: Sequence[StoredArray]
    chunk_shape: tuple[int, ...]
    missing: MissingPolicy
    note: str = ""
    """A remark about the requirement."""
    has_noise: bool = False
    """Whether its values are measurements or the like, floats or packed, which can do without their last bits."""
    pattern: str = ""
    """The pattern that has the requirement; empty for an exact name."""

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape that fits into the arrays of all files."""
        return tuple(min(lengths) for lengths in zip(*(array.shape for array in self.arrays), strict=True))

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return np.dtype(self.arrays[0].type.dtype).itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the values in all files."""
        return sum(values_nbytes_of(array) for array in self.arrays)

    @property
    def dimensions(self) -> tuple[str, ...] | None:
        """Names of the dimensions; None if they have none."""
        return dimensions_of(self.stores[0], self.path)

    @property
    def is_in_zarr(self) -> bool:
        """True if a Zarr store has it."""
        return any(is_zarr(store.path) for store in self.stores)

    @property
    def source_ratio(self) -> float | None:
        """Bytes of the values for each byte that they take in the files; None if they take none."""
        return ratio(self.nbytes, sum(array.stored_nbytes for array in self.arrays))

    def plans(
        self, filters: Pipeline, required: Requirement | None = None, surveys: Sequence[Survey] = ()
    ) -> list[ArrayPlan]:
        """Return repack's plan for each file, by surveys or else all of its values; raises its errors."""
        recipe = Recipe(
            {self.path: filters},
            chunks={self.path: self.chunk_shape},
            require={} if required is None else {self.path: required},
            missing=self.missing,
        )
        options = RepackOptions(recipe)
        pairs = zip(self.stores, surveys or [ReadSurvey()] * len(self.stores), strict=True)
        return [plan_datasets(store, options, survey).plans[self.path] for store, survey in pairs]


class _Sampled(NamedTuple):
    """What a sample tells of the values of an array."""

    pieces: tuple[Iterable[Piece], ...]

    def measured(self, plan: ArrayPlan, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`: this reads all values."""
        return ReadSurvey().measured(plan, source, moments=moments)

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`: range and missing values of the sample."""
        marks = marks_of(source)
        pieces = itertools.chain.from_iterable(self.pieces)
        every = (PackingRange.of(as_floats(source, piece.values), marks) for piece in pieces)
        is_full = source.parts(grid_of(source.shape, chunk_shape)).are_all
        rest = PackingRange() if is_full else PackingRange.of(fill_of(source).reshape(1), marks)
        return reduce(PackingRange.plus, every, rest)


def _after(first: Filter | Rounding, filters: Pipeline) -> Pipeline:
    """Return filters after another filter or after a rounding."""
    return Pipeline((first, *filters.stages))


def rungs_to_try(requirement: PlanRequirement) -> int | None:
    """Return the number of rungs to try: the first keeps a bound; others are for measures of many values.

    None means all.
    """
    return 1 if all(name in ABSOLUTE or name in FLAGS for name in requirement.limits) else None


class Candidates:
    """The candidates of a variable that meet the requirement on its sample."""

    def __init__(
        self, variable: VariableToPlan, sample: Sample, prefer: Preference = "size", readers: Readers = "all"
    ) -> None:
        self._variable, self._sample, self._readers = variable, sample, readers
        self._from_zarr = variable.is_in_zarr
        more = [_SLOWEST] if prefer == "archive" else []
        more += [Pipeline.parse(_BYTEDELTA)] if prefer == "archive" and readers in ("hdf5plugin", "all") else []
        more += map(Pipeline.parse, _ZARR_CHAINS) if readers == "zarr" else ()
        self._chains, self._packed_chains = (*_CHAINS, *more), (*_PACKED_CHAINS, *more)
        self._refused: dict[Pipeline, str] = {}
        surveys = [_Sampled(pieces) for pieces in zip(sample.chunks, sample.tiles, strict=True)]
        self._cached_plans = cache(partial(variable.plans, surveys=surveys))
        self._errors: dict[Pipeline, float] = {}
        self._slow: dict[Pipeline, Candidate] = {}
        self._differences: dict[Rounding | Pipeline, Differences] = {}
        array = variable.arrays[0]
        self._dtype = np.dtype(array.type.dtype)
        self._packing = array.meaning.packing
        missing = [array.meaning.missing for array in variable.arrays]
        self._facts = facts_of(sample, missing, array.meaning.packing, variable.requirement)
        # The filters already bound errors, and no other limit of a requirement makes chunks lossless.
        flags = any(name in variable.requirement.limits for name in ("sign", "zeros"))
        bound = absolute_bound(variable.requirement, self._facts)
        # Nothing may change if the bound is 0, as a share of the range of equal values.
        self._required = variable.requirement.required(bound) if flags and bound != 0 else None

    @property
    def refused(self) -> dict[str, str]:
        """Why filters are no candidates, by their text."""
        return {str(filters): reason for filters, reason in self._refused.items()}

    def pipelines(self) -> Iterator[Pipeline]:
        """Yield the filters to measure."""
        requirement, facts = self._variable.requirement, self._facts
        yield from self._chains
        yield _after(Zfp(reversible=True), _FALLBACK)
        if requirement.is_lossless or not finite(facts):
            return
        for ladder_of_mode in zfp_ladders(requirement, facts, self._dtype.itemsize):
            rungs = [_after(zfp, _FALLBACK) for zfp in ladder_of_mode[: rungs_to_try(requirement)]]
            best = loosest(rungs, lambda filters: self._keeps(filters, rounds=False), self._likely(rungs))
            if best is not None:
                yield best
                if not self._errors[best]:  # zfp can keep no chunk, in any mode
                    break
        if self._dtype.kind == "f" and self._dtype.itemsize in SIGNIFICAND_BITS:
            yield from self._rounded()
        yield from self._packed()
        yield from self._foreign()

    def _rounded(self) -> Iterator[Pipeline]:
        """Yield roundings of floats."""
        rounding = loosest(
            [*self._roundings()][: rungs_to_try(self._variable.requirement)],
            lambda rounding: self._keeps(_after(rounding, _FALLBACK), rounds=True),
        )
        if rounding is not None:
            error = self._errors[_after(rounding, _FALLBACK)]
            for chain in self._chains:
                self._errors[rounded := _after(rounding, chain)] = error
                yield rounded

    def _foreign(self) -> Iterator[Pipeline]:
        """Yield filters of hdf5plugin, for absolute errors."""
        requirement = self._variable.requirement
        if rungs_to_try(requirement) is None:
            return
        for error in itertools.islice(absolute_errors(requirement, self._facts), 1):
            if self._dtype.kind == "f":  # sperr takes no integers
                yield _after(Sperr(bound=error), _FALLBACK)
            yield _after(Sz3("absolute", error), _FALLBACK)

    def _packed(self) -> Iterator[Pipeline]:
        """Yield packings to integers, with fewer bits than those of the source, for absolute errors."""
        requirement = self._variable.requirement
        if any(name in requirement.limits for name in RELATIVE):
            return
        errors = [*packing_errors(requirement, self._facts)][: rungs_to_try(requirement)]
        packings = [Pack(bound=error, range=self._common_range()) for error in errors if error <= Pack.most[8]]
        # Integers of 32 bits are too few for the tight end of the ladder, which says nothing about its looser rungs.
        count = bisect_left(packings, True, key=lambda packing: not self._can_plan(_after(packing, _FALLBACK)))
        if count:
            self._refused = {
                filters: why for filters, why in self._refused.items() if filters.rounding not in packings[count:]
            }
        packing = loosest(
            packings[:count],
            lambda packing: self._keeps(_after(packing, _FALLBACK), rounds=False),
        )
        if packing is not None:
            error = self._errors[_after(packing, _FALLBACK)]
            for chain in (*self._szip(packing), *self._packed_chains):
                self._errors[packed := _after(packing, chain)] = error
                yield packed

    def _szip(self, packing: Pack) -> list[Pipeline]:
        """Return szip as it makes the packed sample smallest; none if chunks are too small for it."""
        totals = [0] * len(_SZIPS)
        plans = self._plans(_after(packing, Pipeline([_SZIPS[0]])))
        try:
            for plan, pieces in zip(plans, self._sample.chunks, strict=True):
                for piece in pieces:
                    codes = plan.as_stored(values_for(plan, piece.values, self._sample))
                    sizes = Szip.encoded_nbytes(codes.tobytes(), ChunkType(codes.dtype, codes.shape), _SZIPS)
                    totals = [total + nbytes for total, nbytes in zip(totals, sizes, strict=True)]
        except ParameterError:
            return []
        return [Pipeline([_SZIPS[totals.index(min(totals))]])]

    def _common_range(self) -> tuple[float, float] | None:
        """Return a range for all of several files, so that all get the same attributes; None for a single file."""
        if len(self._variable.arrays) == 1:
            return None
        facts = self._facts
        margin = _MARGIN * (facts.span or abs(facts.low) or 1.0)
        places = math.floor(math.log10(margin))
        low = float(f"{math.floor((facts.low - margin) / 10.0**places)}e{places}")
        high = float(f"{math.ceil((facts.high + margin) / 10.0**places)}e{places}")
        return (0.0 if low < 0 <= facts.low else low), (0.0 if high > 0 >= facts.high else high)

    def _plans(self, filters: Pipeline, required: Requirement | None = None) -> list[ArrayPlan]:
        return self._cached_plans(filters, required)

    def _roundings(self) -> Iterator[Rounding]:
        """Yield roundings from loose to tight: to bits of each value for relative errors, to a step for others."""
        requirement = self._variable.requirement
        if any(name in requirement.limits for name in RELATIVE):
            kept = kept_bits(requirement, self._facts, self._dtype.itemsize)
            return (BitRound(keepbits=bits) for bits in kept)
        return (Absolute(bound=error) for error in absolute_errors(requirement, self._facts))

    def _keeps(self, filters: Pipeline, *, rounds: bool) -> bool:
        """Return whether filters meet the requirement on the sample."""
        if filters in self._refused or not self._can_plan(filters):
            return False
        try:
            loss = loss_of(self._plans(filters), self._sample, self._variable.requirement)
        except DataError as error:  # a packing may have no code for a value
            self._refused[filters] = str(error)
            return False
        facts = self._facts._replace(scale=1.0) if packs(filters) else self._facts  # they are measured in its units
        self._errors[filters] = float(loss.tally.error) * facts.scale
        stored = rounds and self._packing is None
        return not failures(self._variable.requirement, loss, facts, stored_relative=stored, rounds=rounds)

    def _can_plan(self, filters: Pipeline) -> bool:
        """Return whether repack can store the variable with filters; record why not."""
        try:
            self._plans(filters)
        except (ParameterError, DataError, MissingFilterError) as error:
            self._refused[filters] = str(error)
            return False
        return True

    def _likely(self, rungs: Sequence[Pipeline]) -> int | None:
        """Return the loosest rung of zfp that meets the requirement by its errors; None if errors do not decide."""
        requirement = self._variable.requirement
        filters = [rung.filters[0] for rung in rungs]
        modes = [
            item.mode
            for item in filters
            if isinstance(item, Zfp) and item.bound is None and isinstance(item.mode, Accuracy | Precision)
        ]
        if not modes or len(modes) < len(rungs) or not requirement.limits.keys() <= {"rmse", "psnr", *FLAGS}:
            return None
        try:
            losses = losses_of_modes(self._plans(rungs[-1]), self._sample, modes)
        except (ParameterError, MissingFilterError):
            return None  # a rung that is tried says so
        kept = [
            not failures(requirement, loss, self._facts, stored_relative=False, rounds=False) for loss in losses or ()
        ]
        return next((i for i, keeps in enumerate(kept) if keeps and all(kept[i + 1 : i + 2])), None)

    def changes_values(self, filters: Pipeline) -> bool:
        """Return whether filters change any value of the sample."""
        return bool(self._errors.get(filters))

    def allowed(self, filters: Pipeline) -> bool:
        """Return whether filters can be encoded here; record why not."""
        if self._can_plan(filters):
            return True
        if not self.is_readable(filters):
            self._refused[filters] = f"not for the readers {self._readers!r}"
        return False

    def is_readable(self, filters: Pipeline) -> bool:
        """Return whether the readers can read what filters store."""
        return readable(filters.filters, self._readers, from_zarr=self._from_zarr)

    def offer(self, candidate: Candidate, ratio: float) -> Offer:
        """Return a candidate for other readers as an offer, compared with a ratio for these."""
        filters = candidate.pipeline.filters
        readers = least_readers(filters, self._readers, from_zarr=self._from_zarr)
        return Offer(candidate.filters, candidate.ratio, 1 - ratio / candidate.ratio, candidate.needs, readers)

    def is_refused(self, filters: Pipeline) -> bool:
        """Return whether filters are no candidates."""
        return filters in self._refused

    def refuse_as(self, filters: Pipeline, other: Pipeline) -> None:
        """Record that filters are no candidates for the reason that others are none."""
        self._refused[filters] = self._refused[other]

    def tried(self, filters: Pipeline, sample: Sample, advance: Callable[[int], None]) -> Candidate | None:
        """Return a candidate with its costs on a sample; None, with the reason recorded, if it cannot keep a value."""
        try:
            return self.measured(filters, sample, advance)
        except DataError as error:  # such as a packing that would make a value zero, where zeros matter
            self._refused[filters] = str(error)
            return None

    def measured(self, filters: Pipeline, sample: Sample, advance: Callable[[int], None]) -> Candidate:
        """Return a candidate with its costs on a sample."""
        plans = self._plans(filters, self._required)
        if _is_foreign(filters):
            return self._measured_once(filters, plans, sample, advance)
        return self._candidate(filters, plans, cost_of(plans, sample, advance))

    def _measured_once(
        self, filters: Pipeline, plans: Sequence[ArrayPlan], sample: Sample, advance: Callable[[int], None]
    ) -> Candidate:
        """Return a candidate whose filter is slow, and gains from large chunks: measured once, on whole chunks."""
        if filters not in self._slow:
            cost_of(plans, self._sample.whole(1), lambda _: None)  # starts the process
            cost = cost_of(plans, self._sample.whole(_SLOW_NBYTES), lambda _: None)
            self._errors[filters] = cost.error * self._facts.scale
            self._slow[filters] = self._candidate(filters, plans, cost)
        advance(sample.nbytes)
        return self._slow[filters]

    def _candidate(self, filters: Pipeline, plans: Sequence[ArrayPlan], cost: Cost) -> Candidate:
        if all(isinstance(plan, Copy) for plan in plans) and (known := self._variable.source_ratio) is not None:
            cost = cost._replace(ratio=known, low=known, high=known)
        return Candidate(
            filters=str(filters),
            ratio=cost.ratio,
            ratio_low=cost.low,
            ratio_high=cost.high,
            largest_error=self._errors.get(filters, 0.0),
            write_mbs=cost.write_mbs,
            read_mbs=cost.read_mbs,
            read_by=read_by(filters.filters, self._readers),
            fallbacks=cost.fallbacks,
            needs="" if self.is_readable(filters) else needs_of(filters.filters, self._readers),
        )

    def judged(self, candidate: Candidate) -> Candidate:
        """Return a candidate with warnings where its error is large for the values."""
        filters = candidate.pipeline
        if not candidate.largest_error:
            return candidate
        relative = any(name in self._variable.requirement.limits for name in RELATIVE)
        asked = absolute_bound(self._variable.requirement, self._facts)
        bound = None if relative else candidate.largest_error if asked is None else asked
        packing, first = self._packing, Pipeline(filters.stages[:1], bound=filters.bound)
        if _is_foreign(filters):  # they are slow, and need whole chunks
            allowed = candidate.largest_error / self._facts.scale
            effects = expected_effects(self._plans(self._chains[0]), self._sample, allowed, packing)
            return replace(candidate, warnings=effects.warnings(bound, self._facts.scale, may=True))
        key = filters.rounding or first
        if key not in self._differences:
            self._differences[key] = differences_of(self._plans(filters), self._sample, packing)
        found = self._differences[key]
        return replace(candidate, warnings=found.effects.warnings(bound, found.scale))

    @property
    def roughness(self) -> float:
        """See `Sample.roughness`, in steps of the required error."""
        bound = absolute_bound(self._variable.requirement, self._facts) or math.ldexp(self._facts.largest, -_USUAL_BITS)
        missing = [array.meaning.missing for array in self._variable.arrays]
        return self._sample.roughness(missing, bound / self._facts.scale) if bound > 0 else 0.0

    def ratio(self, filters: Pipeline) -> float:
        """Return the ratio of the sample, in whole chunks; 0 if filters cannot keep a value."""
        try:
            return cost_of(self._plans(filters, self._required), self._sample, lambda _: None).ratio
        except DataError:
            return 0.0

    def required(self, filters: Pipeline | None) -> str | None:
        """Return what repack must prove for each value with the chosen filters; None for lossless ones."""
        required = self._variable.requirement.required()
        return None if filters is None or required is None or filters.error_bound == 0 else str(required)

    def condition(self, filters: Pipeline) -> str:
        """Return what else to know of a choice: that it packs, or when rounding keeps an absolute bound."""
        if packs(filters):
            text = "; readers unpack its integers by scale_factor and add_offset"
            if self._dtype.kind in "iu" and self._packing is None:
                text += f", and get {unpacked_type(self._variable.arrays[0])} instead of {self._dtype}"
            if self._from_zarr or self._readers == "zarr":
                text += "; in Zarr 3, --packed-as codecs makes them floats for readers without CF"
            if (ends := self._common_range()) is None:
                return text
            return (
                f"{text}, which are the same in all files while values are from {ends[0]:g} to {ends[1]:g}, the range"
                f" of the sample and {_MARGIN:.0%} of it on either side"
            )
        bound = absolute_bound(self._variable.requirement, self._facts)
        rounding = filters.rounding
        if bound is None or rounding is None or rounding.absolute_bound is not None:
            return ""
        most = math.ldexp(self._facts.scale, magnitude(self._facts))
        return f"; it keeps {bound:.3g} for all stored values below {most:g} in magnitude"
