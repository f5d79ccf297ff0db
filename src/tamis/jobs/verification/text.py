"""The text of a verification: a row for each dataset whose values differ, then all other differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tamis.accuracy.statistics import Place
from tamis.formatting import plural, printable, relative_text
from tamis.jobs.parts import Line, Part, Table, title
from tamis.jobs.verification.result import Compared, Finding, Verification

COLUMNS = ("dataset", "bound", "largest error", "relative", "RMSE", "PSNR", "missing", "checksum", "worst value")
_RIGHT = tuple(range(1, 7))
_FOLDED = (7, 8)


def parts_of(result: Verification) -> Iterator[Part]:
    """Yield both paths, a row for each dataset that differs, and the findings."""
    yield "file", f"{printable(result.source)} -> {printable(result.target)}"
    rows = [COLUMNS, *(row(dataset) for dataset in result.datasets if not dataset.equal)]
    yield Table(rows, folded=_FOLDED, right=_RIGHT)
    yield from _findings(result)


def _findings(result: Verification) -> Iterator[Line]:
    for checksum, paths in _identical(result).items():
        yield "", f"identical, {checksum}: {title(paths)}"
    for name, findings in (("violation", result.violations), ("problem", result.problems)):
        for finding in findings:
            yield name, f"{name}: {printable(str(finding))}"
    for text, paths in _by_text(result.notes).items():
        yield "note", f"note: {title(paths)}: {text}"
    yield ("name" if result.ok else "problem"), verdict(result)


def _by_text(findings: Iterable[Finding]) -> dict[str, tuple[str, ...]]:
    """Return, for each text, the paths of its findings."""
    paths: dict[str, tuple[str, ...]] = {}
    for finding in findings:
        text = printable(finding.text)
        paths[text] = (*paths.get(text, ()), printable(finding.path))
    return paths


def _identical(result: Verification) -> dict[str, tuple[str, ...]]:
    """Return, for each kind of checksum, the paths of the equal datasets."""
    paths: dict[str, tuple[str, ...]] = {}
    for dataset in result.datasets:
        if dataset.equal:
            paths[dataset.checksum] = (*paths.get(dataset.checksum, ()), printable(dataset.path))
    return paths


def verdict(result: Verification) -> str:
    """Return the outcome in one sentence."""
    compared = plural(len(result.datasets), "dataset") + " compared"
    if result.problems:
        problems, violations = plural(len(result.problems), "problem"), plural(len(result.violations), "violation")
        return f"failed: {compared}, {problems}, {violations}"
    if result.violations:
        datasets = {dataset.path for dataset in result.datasets}
        datasets |= {finding.path for finding in result.violations if finding.code == "missing-dataset"}
        count = len(datasets & {finding.path for finding in result.violations})
        differ = f"{plural(count, 'dataset')} differ{'s' * (count == 1)}" if count else "groups or links differ"
        return f"{differ}: {compared}, {plural(len(result.violations), 'violation')}"
    equal_count = sum(dataset.status == "equal" for dataset in result.datasets)
    if equal_count == len(result.datasets):
        return f"equal: {compared}"
    return f"within bounds: {compared}, {equal_count} equal"


def row(dataset: Compared) -> tuple[str, ...]:
    """Return the cells of a dataset's row, one for each of `COLUMNS`."""
    bound = "none" if dataset.bound is None else f"{dataset.bound:g}"
    if dataset.relative_bound is not None:
        bound = relative_text(dataset.relative_bound)
    bound += " recorded" * dataset.recorded
    name, tally = printable(dataset.path), dataset.tally
    if tally is None:
        outcome = "not compared" if dataset.equal is None else "differs"
        return (name, bound, outcome, "", "", "", "", dataset.checksum, "")
    missing = str(tally.missing) if tally.missing or tally.gained else ""
    if tally.lost or tally.gained:
        missing = f"{missing} ({tally.lost} changed, {tally.gained} new)"
    return (
        name,
        bound,
        number(tally.error),
        number(tally.relative),
        "" if tally.rmse is None else number(tally.rmse),
        "" if tally.psnr is None else f"{tally.psnr:.1f} dB",
        missing,
        dataset.checksum,
        "" if tally.worst is None else place_text(tally.worst),
    )


def number(value: float) -> str:
    """Return the text of a number: an integer in full, a float with four digits."""
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def place_text(place: Place) -> str:
    """Return index, old and new value as text."""
    return f"[{', '.join(map(str, place.index))}] {place.source} -> {place.target}"
