"""A verification as text: a row for each dataset whose values differ, then what else is not alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tamis.accuracy.statistics import Place
from tamis.formatting import plural, printable
from tamis.jobs.parts import Line, Part, Table, title
from tamis.jobs.verification.result import Compared, Finding, Verification

COLUMNS = ("dataset", "bound", "largest error", "relative", "RMSE", "PSNR", "missing", "checksum", "worst value")
_RIGHT = tuple(range(1, 7))
_FOLDED = (7, 8)


def parts_of(found: Verification) -> Iterator[Part]:
    """Yield both paths, a row for each dataset that differs, and the findings."""
    yield "file", f"{printable(found.source)} -> {printable(found.target)}"
    rows = [COLUMNS, *(row(each) for each in found.datasets if not each.equal)]
    yield Table(rows, folded=_FOLDED, right=_RIGHT)
    yield from _findings(found)


def _findings(found: Verification) -> Iterator[Line]:
    for checksum, paths in _identical(found).items():
        yield "", f"identical, {checksum}: {title(paths)}"
    for name, findings in (("violation", found.violations), ("problem", found.problems)):
        for each in findings:
            yield name, f"{name}: {printable(str(each))}"
    for text, paths in _alike(found.notes).items():
        yield "note", f"note: {title(paths)}: {text}"
    yield ("name" if found.ok else "problem"), verdict(found)


def _alike(findings: Iterable[Finding]) -> dict[str, tuple[str, ...]]:
    """Paths by what is said of them."""
    paths: dict[str, tuple[str, ...]] = {}
    for each in findings:
        text = printable(each.text)
        paths[text] = (*paths.get(text, ()), printable(each.path))
    return paths


def _identical(found: Verification) -> dict[str, tuple[str, ...]]:
    """Paths of the datasets of which nothing else is to be said, by what guards them."""
    paths: dict[str, tuple[str, ...]] = {}
    for each in found.datasets:
        if each.equal:
            paths[each.checksum] = (*paths.get(each.checksum, ()), printable(each.path))
    return paths


def verdict(found: Verification) -> str:
    """Return the outcome in one sentence."""
    compared = plural(len(found.datasets), "dataset") + " compared"
    if found.problems:
        problems, violations = plural(len(found.problems), "problem"), plural(len(found.violations), "violation")
        return f"failed: {compared}, {problems}, {violations}"
    if found.violations:
        datasets = {each.path for each in found.datasets}
        datasets |= {each.path for each in found.violations if each.code == "missing-dataset"}
        count = len(datasets & {each.path for each in found.violations})
        differ = f"{plural(count, 'dataset')} differ{'s' * (count == 1)}" if count else "groups or links differ"
        return f"{differ}: {compared}, {plural(len(found.violations), 'violation')}"
    if all(each.status == "equal" for each in found.datasets):
        return f"equal: {compared}"
    return f"within bounds: {compared}, {sum(each.status == 'equal' for each in found.datasets)} equal"


def row(each: Compared) -> tuple[str, ...]:
    """Cells of a dataset's row, one for each of `COLUMNS`."""
    bound = ("none" if each.bound is None else f"{each.bound:g}") + " recorded" * each.recorded
    name, tally = printable(each.path), each.tally
    if tally is None:
        said = "not compared" if each.equal is None else "differs"
        return (name, bound, said, "", "", "", "", each.checksum, "")
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
        each.checksum,
        "" if tally.worst is None else place_text(tally.worst),
    )


def number(value: float) -> str:
    """Write an integer in full, and a float in four digits."""
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def place_text(place: Place) -> str:
    """Say where a value is, what it was and what it is."""
    return f"[{', '.join(map(str, place.index))}] {place.source} -> {place.target}"
