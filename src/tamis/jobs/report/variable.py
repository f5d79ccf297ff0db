"""The report of one variable: one pass over its values, then some fields."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis import meaning
from tamis.accuracy.error_profile import ErrorProfile, Scale
from tamis.accuracy.field_profile import FieldProfile
from tamis.accuracy.fields import Spectra
from tamis.accuracy.measured import Measured, is_missed
from tamis.accuracy.requirement import WHOLE
from tamis.errors import TamisError
from tamis.jobs.report import charts, findings
from tamis.jobs.report.axes import Axes, axes_of, names_of
from tamis.jobs.report.maps import FieldMap, field_map, reduced
from tamis.jobs.report.pair import Pair, Values, mapped
from tamis.jobs.report.provenance import rounding_text
from tamis.jobs.report.result import Chart, Facts, Reported, Series
from tamis.jobs.verify.result import Finding
from tamis.meaning.missing import NONE_MISSING
from tamis.safety.library_errors import reading

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement
    from tamis.arrays.grid import Region
    from tamis.jobs.progress import Progress, Step
    from tamis.jobs.verify.result import Compared
    from tamis.stores.protocols import Store, StoredArray

_MOST_FIELD_VALUES = 1 << 25
"""Values whose fields are all examined; of larger variables some are."""

_SHARED_COUNT = 1 << 19
"""Values of blocks that several threads have in work: memory is bounded for any number of threads."""

_SAMPLE_COUNT = 1 << 20
_SAMPLES = 8
_MAP_NBYTES = 48_000
"""Bytes of the pictures of one field."""

_LEAST_SIDE = 4
_NEAR = 200


class Wishes(NamedTuple):
    """What the caller asked for."""

    time: str | Sequence[int]
    also: tuple[str, ...]
    threads: int
    progress: Progress
    rates: bool = True  # Whether alternatives are measured


class Found(NamedTuple):
    """The statistics of some blocks."""

    profile: ErrorProfile
    measured: Measured
    fields: FieldProfile | None

    def plus(self, other: Found) -> Found:
        """Return the statistics of these blocks and of others."""
        both = self.fields.plus(other.fields) if self.fields and other.fields else self.fields or other.fields
        return Found(self.profile.plus(other.profile), self.measured.plus(other.measured), both)


@dataclass(slots=True)
class VariableReport:
    """The work on one variable."""

    before: Store
    after: Store
    compared: Compared
    required: Requirement | None
    violations: Sequence[Finding]
    wishes: Wishes
    step: Step
    notes: list[str] = field(default_factory=list)

    def result(self) -> Reported:
        """Return the report of the variable; an error is a problem of it."""
        path = self.compared.path
        missed = [finding.text for finding in self.violations]
        try:
            with reading(self.before.path, dataset=path):
                source = self.before.array(path)
            with reading(self.after.path, dataset=path):
                target = self.after.array(path)
        except (TamisError, KeyError) as error:
            return Reported(path, self.compared, missed=(*missed, str(error)))
        reported = self._facts(source, target, tuple(missed))
        tally = self.compared.tally
        if self.compared.equal or self.compared.problem or tally is None or source.shape != target.shape:
            return reported
        if not tally.compared or not source.size:
            tables = (charts.missing(tally),)
            return replace(reported, tables=tables, findings=tuple(findings.missing(path, tally)))
        with reading(self.before.path, self.after.path, dataset=path), Pair.open(source, target) as pair:
            return self._changed(reported, pair)

    def _facts(self, source: StoredArray, target: StoredArray, missed: tuple[str, ...]) -> Reported:
        compared, role = self.compared, self.before.roles.get(self.compared.path)
        texts = filter(None, (rounding_text(target), str(target.pipeline)))
        attributes = _attributes(self.before, compared.path, source)
        return Reported(
            compared.path,
            compared,
            units=meaning.text(attributes, "units"),
            long_name=meaning.text(attributes, "long_name") or meaning.text(attributes, "standard_name"),
            dimensions=names_of(self.before, compared.path),
            role="" if role is None else role.kind,
            filters=" | ".join(texts),
            nbytes=source.values_nbytes,
            source_nbytes=source.stored_nbytes,
            target_nbytes=target.stored_nbytes,
            requirement=self._requirement(),
            missed=missed,
        )

    def _requirement(self) -> str:
        """Return what was asked for in words."""
        texts = [str(self.required)] if self.required is not None else []
        compared = self.compared
        if compared.bound and not (self.required and self.required.abs == compared.bound):
            texts.append(f"abs={compared.bound:g}" + ", recorded by the filters" * compared.recorded)
        elif compared.relative_bound is not None:
            texts.append(f"rel={compared.relative_bound:.3g}, recorded")
        elif compared.bound == 0 and not compared.recorded:
            texts.append("same bits")
        return "; ".join(texts)

    def _changed(self, reported: Reported, pair: Pair) -> Reported:
        """Return the report with all that follows from values."""
        axes = axes_of(self.before, self.compared.path, pair.shape)
        found = self._pass(pair)
        tally, profile, fields = self.compared.tally, found.profile, found.fields
        assert tally is not None
        difference = None if fields is None else _spectral_difference(fields)
        lags = _correlations(found, axes)
        path, units, lossy = self.compared.path, reported.units, reported.filters
        told = [
            *findings.missing(path, tally),
            *findings.bias(path, profile, units),
            *findings.clipped(path, profile, units),
            *findings.shifted(path, pair, profile, axes.names[0] if axes.names else ""),
            *findings.pattern(path, lags, lossy),
            *findings.signs(path, profile),
        ]
        statistics = self._statistics(found, difference, lags)
        missed = (*reported.missed, *self._missed(found, statistics))
        sections = [*self._charts(found, axes, units, difference, lags, lossy), *self._near(pair, axes, units)]
        return replace(
            reported,
            missed=missed,
            findings=tuple(told),
            statistics=statistics,
            charts=tuple(part for part in sections if isinstance(part, Chart)),
            tables=(*(part for part in sections if isinstance(part, Facts)), charts.missing(tally)),
            maps=tuple(self._maps(pair, axes)),
            notes=tuple(self.notes),
        )

    def _pass(self, pair: Pair) -> Found:
        """Read all blocks once, and where these have no whole rows some fields or parts of them."""
        tally = self.compared.tally
        assert tally is not None
        low, high, error = (_finite(value) for value in (tally.low, tally.high, tally.error))
        bound = self.compared.bound or 0.0
        reach = max(error, bound) if bound <= 4 * error else error
        scale = Scale(reach, low - error, high + error, pair.shape[0] if pair.shape else 1)
        words = {"corr"} | ({"ks"} if self.required is not None and self.required.ks is not None else set())
        blocks, regions = pair.blocks, pair.regions()
        chosen = self._chosen(regions, blocks.shape) if blocks.has_rows and pair.shape else set()
        total = math.prod(pair.shape)
        count = 0

        threads = self.wishes.threads if math.prod(blocks.shape) <= _SHARED_COUNT else 1
        lock = Lock()  # fields need more memory than anything else

        def work(item: tuple[int, Region]) -> Found:
            number, region = item
            values = pair.read(region)
            fields = None
            if number in chosen:
                with lock:
                    fields = self._fields(values, scale, whole=blocks.has_fields)
            return Found(_profile(scale, values), _measured(values, words), fields)

        self.wishes.progress(self.step, 0, total)
        result: Found | None = None
        for number, part in enumerate(mapped(work, [*enumerate(regions)], threads)):
            result = part if result is None else result.plus(part)
            count += math.prod(axis.stop - axis.start for axis in regions[number])
            self.wishes.progress(self.step, count, total)
        assert result is not None
        if blocks.has_rows or not pair.shape:
            return result
        for region, whole in self._samples(pair.shape):
            fields = self._fields(pair.read(region), scale, whole=whole)
            result = result._replace(fields=fields if result.fields is None else result.fields.plus(fields))
        self.notes.append(f"Spectra, autocorrelation, gradients and DSSIM are from {_SAMPLES} parts of some fields.")
        return result

    def _chosen(self, regions: Sequence[Region], shape: Sequence[int]) -> set[int]:
        """Return the numbers of the blocks whose fields are examined: all, or some with the worst value's."""
        most = max(1, _MOST_FIELD_VALUES // max(math.prod(shape), 1))
        needs_all = self.required is not None and (
            self.required.dssim is not None or self.required.spectrum is not None
        )
        if len(regions) <= most or needs_all:
            return {*range(len(regions))}
        chosen = {int(number) for number in np.linspace(0, len(regions) - 1, most)}
        worst = self._worst()
        chosen |= {
            number
            for number, region in enumerate(regions)
            if worst is not None and all(axis.start <= at < axis.stop for axis, at in zip(region, worst, strict=True))
        }
        self.notes.append(
            f"Spectra, autocorrelation, gradients and DSSIM are from {len(chosen)} of {len(regions)} blocks of fields."
        )
        return chosen

    def _samples(self, shape: tuple[int, ...]) -> Iterator[tuple[Region, bool]]:
        """Yield parts of fields of one shape, spread evenly, and whether each is a whole field."""
        width = min(shape[-1], _SAMPLE_COUNT)
        rows = min(shape[-2], max(1, _SAMPLE_COUNT // width)) if len(shape) > 1 else 1
        extents = (*(1 for _ in shape[:-2]), *((rows,) if len(shape) > 1 else ()), width)
        for number in range(_SAMPLES):
            share = (number + 0.5) / _SAMPLES
            starts = [int((extent - step) * share) for extent, step in zip(shape, extents, strict=True)]
            region = tuple(slice(start, start + step) for start, step in zip(starts, extents, strict=True))
            yield region, extents[-2:] == shape[-2:]

    def _fields(self, values: Values, scale: Scale, *, whole: bool) -> FieldProfile:
        return FieldProfile.of(values.before, values.after, values.valid, scale.high - scale.low, whole=whole)

    def _worst(self) -> tuple[int, ...] | None:
        tally = self.compared.tally
        return None if tally is None or tally.worst is None else tally.worst.index

    def _statistics(
        self, found: Found, difference: float | None, lags: Sequence[tuple[str, list[float]]]
    ) -> dict[str, Any]:
        """Return the numbers of the variable, beyond those of the comparison."""
        profile, fields = found.profile, found.fields
        similarities = fields.similarities if fields else ()
        return {
            "bias": profile.bias,
            "rmse": profile.rmse,
            "correlation": found.measured.moments.correlation,
            "dssim_least": min(similarities, default=None),
            "dssim_mean": sum(similarities) / len(similarities) if similarities else None,
            "dssim_fields": len(similarities),
            "spectrum_difference": difference,
            "sign_changes": profile.sign_changes,
            "zeros_lost": profile.zeros_lost,
            "zeros_new": profile.zeros_new,
            "autocorrelation_lag_1": {axis: values[1] for axis, values in lags if len(values) > 1},
        }

    def _missed(self, found: Found, statistics: dict[str, Any]) -> Iterator[str]:
        """Yield the requirements that are missed; those of verify are known already."""
        required, tally, measured = self.required, self.compared.tally, found.measured
        if required is None or tally is None:
            return
        span = _finite(tally.high) - _finite(tally.low)
        limits = (
            ("abs", required.abs, 1.0, tally.error),
            ("range", required.range, span, tally.error),
            ("std", required.std, measured.deviation or 0.0, tally.error),
            ("rel", required.relative, 1.0, tally.stored_relative),
        )
        for word, limit, unit, value in limits:
            if limit is not None and value > limit * unit:
                yield f"expected {word} of at most {limit:g}, found {value / (unit or 1.0):.4g}"
        if required.limits and tally.crossed:
            yield f"expected values on their side of the limits, {tally.crossed} crossed one"
        if required.sign and statistics["sign_changes"]:
            yield f"expected the same signs, {statistics['sign_changes']} changed"
        if required.zeros and (statistics["zeros_lost"] or statistics["zeros_new"]):
            lost, new = statistics["zeros_lost"], statistics["zeros_new"]
            yield f"expected the same zeros, {lost} became other values, {new} are new"
        values = {
            "rmse": tally.rmse,
            "psnr": tally.psnr,
            "corr": statistics["correlation"],
            "dssim": statistics["dssim_least"],
            "ks": measured.ks_probability if required.ks is not None else None,
            "spectrum": statistics["spectrum_difference"],
        }
        for word in WHOLE:
            asked = getattr(required, word)
            if asked is not None and is_missed(word, asked, values[word]):
                yield f"expected {word}={asked:g}, found {'none' if values[word] is None else f'{values[word]:.6g}'}"

    def _charts(
        self,
        found: Found,
        axes: Axes,
        units: str,
        difference: float | None,
        lags: Sequence[tuple[str, list[float]]],
        lossy: str,
    ) -> Iterator[Chart | Facts]:
        """Yield the sections in their order."""
        profile, fields, tally = found.profile, found.fields, self.compared.tally
        assert tally is not None
        target = self.after.array(self.compared.path)
        span = profile.scale.high - profile.scale.low
        yield charts.histogram(profile, self.compared.bound, units)
        several: list[Chart | Facts | None] = []
        if fields is not None and axes.names:
            several += [charts.spectrum(fields, axes.extents[-1], axes.names[-1], difference)]
            several += [charts.autocorrelation(lags, lossy)]
        several += [charts.levels(profile, units), charts.tails(profile, tally)]
        if fields is not None and axes.names:
            several += [*charts.gradients(fields, axes.names[::-1], span, units)]
        if axes.names:
            several += [charts.over_steps(profile, axes.names[0], units)]
        several += [*self._rates(target)]
        with suppress(TamisError):
            several += [charts.chunks(target)]
        yield from (part for part in several if part is not None)

    def _rates(self, target: StoredArray) -> Iterator[Chart | Facts]:
        """Yield what alternatives would need, if the variable is among those for which they are measured."""
        tally, source = self.compared.tally, self.before.array(self.compared.path)
        if not self.wishes.rates or tally is None or not target.stored_nbytes or not source.size:
            return
        from tamis.jobs.report.rates import Point, rates  # late: it needs most of the job plan

        bits = 8 * target.stored_nbytes / source.size
        file = Point("this file", str(target.pipeline), bits, tally.rmse or 0.0, float(tally.error))
        yield from rates(self.before, source, target, file, self.wishes.also)

    def _near(self, pair: Pair, axes: Axes, units: str) -> Iterator[Chart]:
        """Yield the values around the worst one of an array without fields."""
        worst = self._worst()
        if len(pair.shape) != 1 or worst is None:
            return
        start = max(0, min(worst[0] - _NEAR // 2, pair.shape[0] - _NEAR))
        values = pair.read((slice(start, min(start + _NEAR, pair.shape[0])),))
        x = range(start, start + len(values.before))
        both = [np.where(values.valid, part, np.nan) if values.valid is not None else part for part in values[1:3]]
        series = tuple(
            Series(name, charts.short(part), style)
            for part, (name, style) in zip(both, (("source", "line"), ("target", "dashes")), strict=True)
        )
        words = f"The values around the largest error, at {worst[0]}."
        yield Chart("near", "Values", words, f"{axes.names[0]}, index", charts.places(x), series, units[:40])

    def _maps(self, pair: Pair, axes: Axes) -> Iterator[FieldMap]:
        """Yield maps of the chosen fields."""
        if len(pair.shape) < 2 or min(pair.shape[-2:]) < _LEAST_SIDE:
            return
        lead = list((self._worst() or tuple(extent // 2 for extent in pair.shape))[:-2])
        times: list[tuple[int, str]] = []
        if lead:
            extent = pair.shape[0]
            if isinstance(self.wishes.time, str):
                times = [(lead[0], "the field with the largest error, ")]
                times += [((lead[0] + extent // 2) % extent, "")] if extent > 1 else []
            else:
                times = [(int(at), "") for at in self.wishes.time if -extent <= int(at) < extent]
        for at, words in times or [(0, "the field")]:
            place = [at % pair.shape[0], *lead[1:]] if lead else []
            named = ", ".join(f"{name} {index}" for name, index in zip(axes.names, place, strict=False))
            pictures = reduced(pair, place)
            most = _MAP_NBYTES
            yield field_map(pictures, words + named, most, box=axes.box, flip=axes.flip, axes=axes.names[-2:])  # type: ignore[arg-type]


def _attributes(store: Store, path: str, array: StoredArray) -> Any:
    """Return the attributes of a variable, also those without a meaning for tamis."""
    group, _, name = path.rpartition("/")
    with suppress(TamisError, KeyError):
        return store.model.group(group or "/").variables[name].attributes
    return array.attributes


def _profile(scale: Scale, values: Values) -> ErrorProfile:
    start = values.region[0].start if values.region else 0
    return ErrorProfile.of(scale, values.before, values.after, values.valid, start)


def _measured(values: Values, words: set[str]) -> Measured:
    before, after = values.before, values.after
    if values.valid is not None:
        before, after = before[values.valid], after[values.valid]
    return Measured.of(before.reshape(-1), after.reshape(-1), NONE_MISSING, words)


def _correlations(found: Found, axes: Axes) -> list[tuple[str, list[float]]]:
    """Return the autocorrelation of the error along the last axis, and along the one before."""
    if found.fields is None or not axes.names:
        return []
    mean = found.profile.bias or 0.0
    names = axes.names[::-1][:2]
    return [(name, lags.correlation(mean)) for name, lags in zip(names, found.fields.lags, strict=False)]


def _spectral_difference(fields: FieldProfile) -> float | None:
    power = fields.mean_power
    last = (2 * (fields.power.shape[1] - 1)) // 4
    return Spectra(power[0, :last], power[1, :last]).difference if last and power.size else None


def _finite(value: Any) -> float:
    """Return a number as a float; 0 for none, and for one that is not finite."""
    number = 0.0 if value is None else float(value)
    return number if math.isfinite(number) else 0.0
