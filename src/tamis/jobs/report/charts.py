"""The charts and tables of one variable, from the profiles of its errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.accuracy import period_of
from tamis.formatting import plural, shape_text
from tamis.jobs.report.reported import Chart, Facts, Series
from tamis.stores import size_of

if TYPE_CHECKING:
    from tamis.accuracy import ErrorProfile, FieldProfile, Tally
    from tamis.stores import StoredArray

_MOST_POINTS = 400
_ZFP_SIDE = 4
_FAR = 4  # times the largest error


def short(values: Iterable[Any]) -> tuple[float | None, ...]:
    """Return numbers in six digits; None for those that are not finite."""
    return tuple(
        None if value is None or not math.isfinite(value) else float(f"{float(value):.6g}") for value in values
    )


def places(values: Iterable[Any]) -> tuple[float, ...]:
    """Return numbers in six digits."""
    return tuple(float(f"{float(value):.6g}") for value in values)


def histogram(profile: ErrorProfile, error: float, bound: float, units: str) -> Chart:
    """Return the histogram of the errors, with the bound unless this is far beyond them."""
    reach = max(error, bound) if bound <= _FAR * error else error
    centres, counts = profile.histogram(reach)
    share = 100 * counts / max(profile.count, 1)
    beyond = f" The lines mark the bound, ±{bound:g}." if bound else ""
    marks = ((-bound, "bound"), (bound, "bound")) if bound else ()
    width = 2 * reach / len(share)
    central = share[len(share) // 2]
    words = (
        f"{plural(profile.count, 'error')} in {len(share)} bins of {width:.3g}; {central:.1f} % are in the middle one."
        f"{beyond}"
    )
    series = (Series("values, %", short(share), "bars"),)
    label = _with_units("error, target − source", units)
    return Chart("histogram", "Errors", words, label, places(centres), series, "%", log_y=True, marks=marks)


def spectrum(fields: FieldProfile, extent: int, axis: str, difference: float | None) -> Chart | None:
    """Return the power spectra along the last axis; None without whole rows."""
    power = fields.mean_power
    count = power.shape[1]
    if count < 2:
        return None
    waves = np.arange(1, count + 1)
    groups = np.unique(np.geomspace(1, count + 1, 160).astype(int))
    starts = groups[groups <= count] - 1
    sizes = np.diff([*starts, count])
    table = np.add.reduceat(power, starts, axis=1) / sizes
    mean_waves = np.add.reduceat(waves, starts) / sizes
    names = (("source", "line"), ("target", "dashes"), ("error", "dots"))
    series = tuple(Series(name, short(row), style) for (name, style), row in zip(names, table, strict=True))
    words = f"Mean power along {axis}, from {plural(fields.row_count, 'row')} without missing values."
    if difference is not None and math.isfinite(difference):
        words += f" Up to wavelengths of 4 values, the power differs by at most {100 * difference:.3g} %."
    crossing = next(
        (extent / wave for wave, row in zip(mean_waves, table.T, strict=True) if row[2] >= row[0] > 0), None
    )
    if crossing:
        words += f" Below a wavelength of about {crossing:.3g} values, the error has more power than the source."
    label = f"waves along {axis} ({extent} values)"
    return Chart("spectrum", "Power spectra", words, label, places(mean_waves), series, "power", log_x=True, log_y=True)


def autocorrelation(correlations: Sequence[tuple[str, list[float]]], lossy: str) -> Chart | None:
    """Return the autocorrelation of the error along some axes; None where it is not defined."""
    known = [(axis, values) for axis, values in correlations if len(values) > 1]
    if not known:
        return None
    most = max(len(values) for _, values in known)
    sentences = [correlation_words(axis, values, lossy) for axis, values in known]
    styles = ("line", "dashes")
    series = tuple(
        Series(f"along {axis}", short([*values, *[math.nan] * (most - len(values))]), style)
        for (axis, values), style in zip(known, styles, strict=False)
    )
    return Chart(
        "autocorrelation",
        "Autocorrelation of the error",
        " ".join(sentences),
        "lag, values",
        places(range(most)),
        series,
        "r",
    )


def correlation_words(axis: str, values: list[float], lossy: str) -> str:
    """Return an autocorrelation in words."""
    if found := period_of(values):
        period, strength = found
        cause = ": ZFP's blocks" if period == _ZFP_SIDE and "zfp" in lossy else ""
        return f"Along {axis}, errors repeat with period {period}{cause} (r = {strength:.2f})."
    first = values[1]
    if abs(first) < 0.1:
        return f"Along {axis}, errors of neighbours are not correlated (r = {first:.2f})."
    length = next((lag for lag, value in enumerate(values) if value < 1 / math.e), len(values))
    return f"Along {axis}, errors are correlated (r = {first:.2f} of neighbours), over about {plural(length, 'value')}."


def gradients(fields: FieldProfile, axes: Sequence[str], units: str) -> Iterator[Chart | Facts]:
    """Yield the sizes of differences of neighbours, and their table."""
    present = [(axis, found) for axis, found in zip(axes, fields.gradients, strict=False) if found.pair_count]
    if not present:
        return
    axis, first = present[0]
    middles, counts = first.octaves()
    if middles.size:
        sizes = 100 * counts / first.pair_count
        series = tuple(
            Series(name, short(row), style)
            for (name, style), row in zip((("source", "line"), ("target", "dashes")), sizes, strict=True)
        )
        words = f"Sizes of differences between neighbours along {axis}. {_flat(first.flat, first.pair_count)}"
        label = _with_units("size of the difference", units)
        yield Chart("gradients", "Gradients", words, label, places(middles), series, "%", log_x=True)
    rows = []
    for axis, found in present:
        before, after, error = found.roots
        flat = (f"{100 * count / found.pair_count:.3g} %" for count in found.flat)
        rows.append((axis, f"{before:.4g}", f"{after:.4g}", f"{error:.4g}", f"{found.largest:.4g}", *flat))
    header = (
        "along",
        "RMS source",
        "RMS target",
        "RMS of the error",
        "largest error",
        "flat in source",
        "flat in target",
    )
    yield Facts("gradients", "Gradients", "Differences between neighbours.", header, tuple(rows))


def _flat(flat: tuple[int, int], count: int) -> str:
    before, after = (100 * number / max(count, 1) for number in flat)
    return f"{before:.3g} % of neighbours are equal in the source, {after:.3g} % in the target."


def over_steps(profile: ErrorProfile, axis: str, units: str) -> Chart | None:
    """Return errors along the first axis; None for fewer than two steps."""
    counts, totals, squares, largest = profile.steps
    if len(counts) < 2:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        root, mean = np.sqrt(squares / counts), totals / counts
    extent = profile.extent
    is_joined = len(counts) < extent
    x = (np.arange(len(counts)) + 0.5) * extent / len(counts) - 0.5 if is_joined else np.arange(extent)
    series = (
        Series("largest", short(np.where(counts > 0, largest, np.nan)), "line"),
        Series("RMSE", short(root), "dashes"),
        Series("mean", short(mean), "dots"),
    )
    worst = int(np.argmax(largest))
    joined = f" Each point joins about {extent / len(counts):.3g} steps." if is_joined else ""
    words = f"Errors at each step along {axis}; the largest are at {axis} {round(float(x[worst]))}.{joined}"
    return Chart(
        "steps", f"Errors along {axis}", words, f"{axis}, index", places(x), series, _with_units("error", units)
    )


def levels(profile: ErrorProfile, units: str) -> Chart | None:
    """Return the error by the source's value; None where values have no range."""
    if profile.levels is None or profile.levels.window.bin_count < 2:
        return None
    counts, totals, squares = profile.levels.table
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, root = totals / counts, np.sqrt(squares / counts)
    words = (
        "Mean error and RMSE of values by size: a mean that leaves zero at an end shows tails that are cut or moved."
    )
    series = Series("RMSE", short(root), "dashes"), Series("mean error", short(mean), "line")
    x = places(profile.levels.window.centres)
    return Chart(
        "levels",
        "Errors by value",
        words,
        _with_units("value in the source", units),
        x,
        series,
        _with_units("error", units),
    )


def tails(profile: ErrorProfile, tally: Tally) -> Facts:
    """Return quantiles, extremes, signs, zeros and limits."""
    rows = [("smallest", *_ends(profile.lows))]
    for share, one, two in profile.quantiles():
        rows.append((f"{100 * share:g} %", f"{one:.6g}", f"{two:.6g}", f"{two - one:.3g}"))
    rows.append(("largest", *_ends(profile.highs)))
    rows += [
        ("values exactly at the smallest", f"{profile.lows[0][1]}", f"{profile.lows[1][1]}", ""),
        ("values exactly at the largest", f"{profile.highs[0][1]}", f"{profile.highs[1][1]}", ""),
        ("changed signs", "", f"{profile.sign_changes}", ""),
        ("zeros that became other values", "", f"{profile.zeros_lost}", ""),
        ("new zeros", "", f"{profile.zeros_new}", ""),
        ("values that crossed a limit", "", f"{tally.crossed}", ""),
    ]
    assert profile.values is not None
    words = f"Quantiles are accurate to {profile.values.window.width:.2g}."
    return Facts("tails", "Tails and extremes", words, ("", "source", "target", "difference"), tuple(rows))


def _ends(ends: tuple[tuple[float, int], tuple[float, int]]) -> tuple[str, str, str]:
    (one, _), (two, _) = ends
    return f"{one:.9g}", f"{two:.9g}", f"{two - one:.3g}"


def missing(tally: Tally) -> Facts:
    """Return what happened to missing values."""
    rows = (
        ("values", f"{tally.count}"),
        ("missing in the source", f"{tally.missing}"),
        ("of these with other bits, or valid, in the target", f"{tally.lost}"),
        ("missing only in the target", f"{tally.gained}"),
    )
    kept = not (tally.lost or tally.gained)
    words = "All missing values are kept, bit by bit." if kept else "Missing values changed."
    if not tally.missing and kept:
        words = "Neither source nor target has missing values."
    return Facts("missing", "Missing values", words, ("", "count"), rows)


def chunks(target: StoredArray) -> Chart | None:
    """Return the stored bytes of each chunk, with those that are stored without loss; None without chunks."""
    if target.storage.chunk_shape is None or not size_of(target):
        return None
    index = target.chunk_index()
    count = len(index)
    if count < 2:
        return None
    sizes, masks = np.asarray(index.sizes, float), np.asarray(index.masks)
    lossy = 0
    for number, stage in enumerate(target.storage.pipeline.stages):
        if stage.filter.name in _LOSSY:
            lossy |= 1 << number
    lossless = (masks & lossy) != 0 if lossy else np.zeros(count, bool)
    groups = min(count, _MOST_POINTS)
    starts = np.arange(groups) * count // groups
    widths = np.diff([*starts, count])
    mean = np.add.reduceat(sizes, starts) / widths
    share = np.add.reduceat(lossless.astype(float), starts)
    marked = np.where(share > 0, mean, np.nan)
    series = [Series("stored bytes", short(mean), "bars")]
    if share.any():
        series.append(Series("stored without loss", short(marked), "points"))
    shape = shape_text(target.storage.chunk_shape)
    words = f"{plural(count, 'chunk')} of {shape} values, {sizes.mean():.0f} bytes on average."
    if lossy:
        count_kept = int(lossless.sum())
        kept = f"{count_kept} of them are" if count_kept > 1 else "1 of them is" if count_kept else "None of them is"
        words += f" {kept} stored without loss, to keep the bound or missing values."
    if groups < count:
        words += f" Each bar is the mean of about {count / groups:.3g} chunks."
    x = places((starts + (starts + widths - 1)) / 2)
    return Chart("chunks", "Stored bytes per chunk", words, "chunk, in order", x, tuple(series), "bytes")


_LOSSY = ("zfp", "sz3", "sperr", "scaleoffset")


def _with_units(text: str, units: str) -> str:
    return f"{text} ({units[:40]})" if units else text
