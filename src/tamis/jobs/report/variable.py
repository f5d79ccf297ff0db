"""The report of one variable: one pass over its values, then some fields."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis import meaning
from tamis.accuracy import WHOLE, Spectra, is_missed
from tamis.errors import TamisError
from tamis.formatting import plural
from tamis.jobs.report import charts, findings
from tamis.jobs.report.axes import Axes, axes_of, names_of
from tamis.jobs.report.maps import FieldMap, field_map, reduced
from tamis.jobs.report.pair import Pair
from tamis.jobs.report.profiler import Found, Profiler
from tamis.jobs.report.reported import Chart, Facts, Reported, Series
from tamis.jobs.verify import Finding
from tamis.rounding import recorded_rounding
from tamis.safety import reading
from tamis.stores import size_of, values_nbytes_of

if TYPE_CHECKING:
    from tamis.accuracy import FieldProfile, Requirement
    from tamis.jobs.progress import Progress, Step
    from tamis.jobs.verify import Compared
    from tamis.stores import Store, StoredArray

_MAP_NBYTES = 36_000
"""Bytes of the pictures of one field."""

_LEAST_SIDE = 4
_NEAR = 200


class Wishes(NamedTuple):
    """What the caller asked for."""

    time: str | Sequence[int]
    also: tuple[str, ...]
    threads: int
    progress: Progress


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
    profiler: Profiler | None  # What is known from the comparison

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
        if not tally.compared or not size_of(source):
            tables = (charts.missing(tally),)
            return replace(reported, tables=tables, findings=tuple(findings.missing(path, tally)))
        with reading(self.before.path, self.after.path, dataset=path), Pair.open(source, target) as pair:
            return self._changed(reported, pair)

    def _facts(self, source: StoredArray, target: StoredArray, missed: tuple[str, ...]) -> Reported:
        compared, role = self.compared, self.before.roles.get(self.compared.path)
        texts = filter(None, (_rounding_text(target), str(target.storage.pipeline)))
        attributes = _attributes(self.before, compared.path, source)
        return Reported(
            compared.path,
            compared,
            units=meaning.text(attributes, "units"),
            long_name=meaning.text(attributes, "long_name") or meaning.text(attributes, "standard_name"),
            dimensions=names_of(self.before, compared.path),
            role="" if role is None else role.kind,
            filters=" | ".join(texts),
            nbytes=values_nbytes_of(source),
            source_nbytes=source.stored_nbytes,
            target_nbytes=target.stored_nbytes,
            requirement=self._requirement(),
            missed=missed,
        )

    def _requirement(self) -> str:
        """Return the requirements in words."""
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
        profiler = self.profiler or Profiler(pair.source, pair.target, self.required, self.wishes.threads)
        found = profiler.finish(pair, self._worst(), partial(self.wishes.progress, self.step))
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
            notes=(*profiler.notes, *self._absent_times(pair.shape)),
        )

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
            yield f"{plural(tally.crossed, 'value')} crossed a limit of the valid range"
        if required.sign and statistics["sign_changes"]:
            yield f"{plural(statistics['sign_changes'], 'value')} changed sign"
        if required.zeros and (statistics["zeros_lost"] or statistics["zeros_new"]):
            lost, new = statistics["zeros_lost"], statistics["zeros_new"]
            yield f"{plural(lost, 'zero')} became other values, and {plural(new, 'other value')} became zero"
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
        yield charts.histogram(profile, _finite(tally.error), self.compared.bound or 0.0, units)
        several: list[Chart | Facts | None] = []
        if fields is not None and axes.names:
            several += [charts.spectrum(fields, axes.extents[-1], axes.names[-1], difference)]
            several += [charts.autocorrelation(lags, lossy)]
        several += [charts.levels(profile, units), charts.tails(profile, tally)]
        if fields is not None and axes.names:
            several += [*charts.gradients(fields, axes.names[::-1], units)]
        if axes.names:
            several += [charts.over_steps(profile, axes.names[0], units)]
        with suppress(TamisError):
            several += [charts.chunks(target)]
        yield from (part for part in several if part is not None)

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
        for place, words in self._fields(pair.shape):
            named = ", ".join(f"{name} {index}" for name, index in zip(axes.names, place, strict=False))
            names = axes.names[-2], axes.names[-1]
            title = f"{named}{words}" or "the field"
            yield field_map(reduced(pair, place), title, _MAP_NBYTES, box=axes.box, flip=axes.flip, axes=names)

    def _absent_times(self, shape: tuple[int, ...]) -> Iterator[str]:
        """Yield a note if the variable lacks some of the requested steps."""
        if not isinstance(self.wishes.time, str) and len(shape) > 2:
            absent = [at for at in self.wishes.time if not has_step(shape[0], at)]
            if absent:
                yield f"It has {plural(shape[0], 'step')}, and no map of {', '.join(map(str, absent))}."

    def _fields(self, shape: tuple[int, ...]) -> Iterator[tuple[list[int], str]]:
        """Yield the leading indices of the fields to show, and what each is."""
        if len(shape) == 2:
            yield [], ""
            return
        first = shape[0]
        worst = list((self._worst() or tuple(extent // 2 for extent in shape))[:-2])
        if not isinstance(self.wishes.time, str):
            yield from (([at % first, *worst[1:]], "") for at in self.wishes.time if has_step(first, at))
            return
        yield worst, ", with the largest error"
        if first > 1:
            yield [(worst[0] + first // 2) % first, *worst[1:]], ""


def has_step(extent: int, at: int) -> bool:
    """Return whether an axis of this length has a step; -1 is the last one."""
    return -extent <= at < extent


def with_rates(before: Store, after: Store, reported: Reported, also: Sequence[str]) -> Reported:
    """Return the report of a variable with what alternatives would need, if they can be measured."""
    tally, source, target = reported.compared.tally, before.array(reported.path), after.array(reported.path)
    if not reported.charts or tally is None or not target.stored_nbytes:
        return reported
    from tamis.jobs.report.rates import Point, rates  # late: it needs most of the job plan, some 4 MB

    bits = 8 * target.stored_nbytes / size_of(source)
    file = Point("this file", str(target.storage.pipeline), bits, tally.rmse or 0.0, float(tally.error))
    parts = [*rates(before, source, target, file, also)]
    shown = tuple(part for part in parts if isinstance(part, Chart))
    rest = tuple(part for part in parts if isinstance(part, Facts))
    at = next((at for at, chart in enumerate(reported.charts) if chart.key == "chunks"), len(reported.charts))
    charts_before, charts_after = reported.charts[:at], reported.charts[at:]
    *tables, missing = reported.tables
    return replace(reported, charts=(*charts_before, *shown, *charts_after), tables=(*tables, *rest, missing))


def _attributes(store: Store, path: str, array: StoredArray) -> Any:
    """Return the attributes of a variable, also those without a meaning for tamis."""
    group, _, name = path.rpartition("/")
    with suppress(TamisError, KeyError):
        return store.model.group(group or "/").variables[name].attributes
    return array.attributes


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


def _rounding_text(array: Any) -> str:
    """Return the rounding that an array records; empty if it records none."""
    found = recorded_rounding(array.attributes, array.type.numbers)
    return "" if found is None else str(found)
