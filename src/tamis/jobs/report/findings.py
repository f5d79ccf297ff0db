"""What a reader has to know of a variable: faults of its values that the largest error does not show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.accuracy import period_of
from tamis.formatting import plural
from tamis.jobs.verify import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.accuracy import ErrorProfile, Tally
    from tamis.jobs.report.pair import Pair
    from tamis.jobs.report.reported import Reported

_LEAST_BIAS = 0.2  # of the rmse
_CERTAIN = 6.0  # standard errors
_LEAST_CLIPPED = 8
_SHORTER = 3.0  # rmse; rounding moves an end by less
_CLIPPED = 4  # times as many values at the end as in the source
_STANDS_OUT = 4.0  # times the median rmse of all steps
_MOST_TOLD = 6
_SHIFTED = 0.25  # of the rmse against the own step


def bias(path: str, profile: ErrorProfile, units: str) -> Iterator[Finding]:
    """Yield whether values are shifted on average."""
    mean, root = profile.bias, profile.rmse
    if mean is None or not root or abs(mean) < _LEAST_BIAS * root:
        return
    if abs(mean) > _CERTAIN * root / math.sqrt(profile.count):
        text = f"biased: the mean error is {mean:+.3g}{_of(units)}, {100 * abs(mean) / root:.0f} % of the RMSE"
        yield Finding(path, "bias", text)


def clipped(path: str, profile: ErrorProfile, units: str) -> Iterator[Finding]:
    """Yield whether a tail ends early, with many values exactly at its end."""
    ends = (("upper", profile.highs, 1.0), ("lower", profile.lows, -1.0))
    for name, ((before, count_before), (after, count_after)), sign in ends:
        shorter = sign * (before - after)
        if shorter <= _SHORTER * (profile.rmse or 0.0) or count_after < max(_LEAST_CLIPPED, _CLIPPED * count_before):
            continue
        text = (
            f"the {name} tail is clipped: {count_after} values are exactly {after:.6g}{_of(units)}, the source goes to"
            f" {before:.6g}"
        )
        yield Finding(path, "clipped", text)


def pattern(path: str, correlations: Sequence[tuple[str, list[float]]], lossy: str) -> Iterator[Finding]:
    """Yield whether the error repeats along axes."""
    found = [(axis, *period) for axis, values in correlations if (period := period_of(values))]
    if not found:
        return
    periods = sorted({period for _, period, _ in found})
    size = "x".join(str(period) for _, period, _ in reversed(found)) if len(found) > 1 else str(periods[0])
    cause = ", ZFP's blocks" if periods == [4] and "zfp" in lossy else ""
    axes = " and ".join(axis for axis, _, _ in found)
    strength = max(value for _, _, value in found)
    yield Finding(path, "pattern", f"the error has a pattern of {size} values along {axes}{cause} (r = {strength:.2f})")


def missing(path: str, tally: Tally) -> Iterator[Finding]:
    """Yield whether missing values changed."""
    if tally.lost:
        yield Finding(path, "missing", f"the mask changed: {tally.lost} of {tally.missing} missing values are not kept")
    if tally.gained:
        yield Finding(path, "missing", f"the mask changed: {plural(tally.gained, 'valid value')} became missing")


def shifted(path: str, pair: Pair, profile: ErrorProfile, axis: str) -> Iterator[Finding]:
    """Yield whether steps along the first axis have the values of a neighbour."""
    counts, _, squares, _ = profile.steps
    extent = profile.extent
    if len(pair.shape) < 2 or extent < 2 or extent != len(counts):
        return
    with np.errstate(invalid="ignore", divide="ignore"):
        roots = np.sqrt(squares / counts)
    roots[~np.isfinite(roots)] = 0.0
    worst = np.argsort(roots)[::-1][:3]
    steps = []
    for step in map(int, worst):
        if roots[step] > 0 and (found := _neighbour(pair, step)):
            steps.append((step, found))
    stand_out = roots.max() > _STANDS_OUT * np.median(roots)
    for step, (neighbour, share) in sorted(steps):
        many = "" if stand_out else ", as others may have"
        text = (
            f"shifted: {axis} {step} has the values of {axis} {neighbour}{many} (RMSE {100 * share:.0f} % of its own)"
        )
        yield Finding(path, "shifted", text)


def _neighbour(pair: Pair, step: int) -> tuple[int, float] | None:
    """Return the neighbour whose values a step has, and its share of the rmse; None if it has its own."""
    lead = [extent // 2 for extent in pair.shape[1:-2]]
    inner: tuple[Any, ...] = tuple(slice(at, at + 1) for at in lead)
    rest = tuple(slice(0, min(extent, 1 << 10)) for extent in pair.shape[max(1, len(pair.shape) - 2) :])

    def read(at: int) -> Any:
        return pair.read((slice(at, at + 1), *inner, *rest))

    own = read(step)
    best: tuple[int, float] | None = None
    base = _rmse(own.before, own.after, own.valid)
    if not base:
        return None
    for neighbour in (step - 1, step + 1):
        if not 0 <= neighbour < pair.shape[0]:
            continue
        other = read(neighbour)
        valid = own.valid if other.valid is None else other.valid if own.valid is None else own.valid & other.valid
        share = _rmse(other.before, own.after, valid) / base
        if share < (_SHIFTED if best is None else best[1]):
            best = neighbour, share
    return best


def _rmse(one: Any, other: Any, valid: Any) -> float:
    difference = other.astype(np.float64) - one
    difference = difference if valid is None else difference[valid]
    return math.sqrt(float(np.square(difference).mean())) if difference.size else 0.0


def signs(path: str, profile: ErrorProfile) -> Iterator[Finding]:
    """Yield whether zeros and signs changed where the source has no negative values."""
    (low, _), (low_after, _) = profile.lows
    if low >= 0 > low_after:
        yield Finding(
            path, "negative", f"new negative values: the source has none, the target goes down to {low_after:.3g}"
        )
    if profile.zeros_lost:
        yield Finding(path, "zeros", f"{plural(profile.zeros_lost, 'zero')} became other values")


def _of(units: str) -> str:
    return f" {units[:40]}" if units else ""


def verdict_of(
    target: str,
    datasets: Sequence[Reported],
    absent: Sequence[Finding],
    problems: Sequence[Finding],
    facts: Mapping[str, str],
) -> str:
    """Return the outcome in one sentence, which names all that a reader has to know."""
    name = PurePath(target).name
    changed = [dataset for dataset in datasets if not dataset.compared.equal]
    missed = [dataset for dataset in datasets if dataset.missed]
    asked = [dataset for dataset in changed if dataset.requirement]
    size = _size(facts)
    if problems:
        start = f"{name} could not be judged: {plural(len(problems), 'problem')}, first {problems[0]}"
    elif absent:
        start = f"{name} lacks {', '.join(finding.path for finding in absent[:3])}{_more(absent, 3)}"
    elif missed:
        which = ", ".join(dataset.path for dataset in missed[:3])
        start = f"{name} misses what was asked of {which}{_more(missed, 3)}: {missed[0].missed[0]}"
    elif not changed:
        start = f"{name} has the same values as its source, bit by bit{size}"
    elif asked:
        start = f"{name} keeps what was asked of {plural(len(asked), 'variable')}{_largest(asked)}{size}"
    else:
        start = (
            f"{name} differs from its source in {plural(len(changed), 'variable')}, of which nothing was asked{size}"
        )
    paths: dict[str, list[str]] = {}
    for dataset in datasets:
        for finding in dataset.findings:
            paths.setdefault(finding.text, []).append(dataset.path)
    told = [f"{', '.join(names[:3])}{_more(names, 3)}: {text}" for text, names in paths.items()]
    notable = f"; but note: {'; '.join(told[:_MOST_TOLD])}{_more(told, _MOST_TOLD)}" if told else ""
    return f"{start}{notable}."


def _size(facts: Mapping[str, str]) -> str:
    sizes = [int(facts.get(f"size of {name}", "0").split()[0]) for name in ("source", "target")]
    if not all(sizes) or sizes[0] == sizes[1]:
        return ""
    return f", and takes {100 * sizes[1] / sizes[0]:.3g} % of its bytes"


def _largest(asked: Sequence[Reported]) -> str:
    """Return the largest error relative to a bound in words; empty without bounds."""
    shares = [
        (float(dataset.compared.tally.error) / dataset.compared.bound, dataset)
        for dataset in asked
        if dataset.compared.tally is not None and dataset.compared.bound
    ]
    if not shares:
        return ""
    _, dataset = max(shares, key=lambda item: item[0])
    tally = dataset.compared.tally
    assert tally is not None
    error, bound = f"{tally.error:.3g}{_of(dataset.units)}", f"{dataset.compared.bound:g}"
    return f" (largest error {error} of {bound} allowed{f', in {dataset.path}' if len(shares) > 1 else ''})"


def _more(items: Sequence[object], most: int) -> str:
    return f" and {len(items) - most} more" if len(items) > most else ""
