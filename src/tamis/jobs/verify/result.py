"""The result of `tamis.verify` as typed objects and as JSON; docs/verify.md describes the JSON, which is stable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from tamis.formatting import plural, printable, relative_text
from tamis.jobs.result import DatasetsResult, Fields, Line, Part, Table, json_fields, json_value, shared

if TYPE_CHECKING:
    from tamis.accuracy import Number, Place, Tally

SCHEMA = 2
"""Number of the JSON schema: it changes where a key goes away or changes its meaning, not where one is added."""


Status = Literal["equal", "within-bound", "different"]
"""The values of a dataset, compared with those of the source."""


class NumbersDict(TypedDict):
    """Statistics of a comparison in JSON."""

    count: int
    different: int
    largest_error: Number
    largest_relative_error: float
    zeros_changed: int
    rmse: float | None
    psnr: float | None
    low: Number | None
    high: Number | None
    missing: int
    missing_changed: int
    missing_new: int
    validity_changed: int
    worst: Place | None
    first_different: Place | None
    first_missing_changed: Place | None
    first_missing_new: Place | None
    first_validity_changed: Place | None


class ComparedDict(TypedDict):
    """A dataset of both files in JSON."""

    path: str
    shape: list[int] | None
    source_type: str
    target_type: str
    bound: float | None
    relative_bound: float | None
    recorded: bool
    status: Status | None
    equal: bool | None
    numbers: NumbersDict | None
    checksum: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class Finding(Fields):
    """A difference between the two files.

    Parameters
    ----------
    path
        Path of the dataset or group.
    code
        Kind of the difference, one of the codes in docs/verify.md; stable.
    text
        The difference.
    """

    path: str
    code: str
    text: str

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.text}")


@dataclass(frozen=True, slots=True)
class Compared:
    """One dataset of both files.

    Parameters
    ----------
    path
        Path in the source.
    shape
        Shape of the dataset; None for a null dataspace.
    source_type, target_type
        Types in words, with the byte order if it is not the machine's.
    bound
        Largest allowed absolute error, in units of the data. If it is None or 0, bits must be the same, unless there is
        a relative bound.
    recorded
        Whether the bound is that of the target's filters, which may have none, or of a rounding that it records.
    status
        ``equal`` if all bits are the same, in any byte order; ``within-bound`` if all differences keep the bound;
        ``different`` if they do not; None if the values cannot be read.
    tally
        Statistics of the comparison; None if the values are not numbers, or were not compared.
    equal
        Whether all bits are the same, in any byte order; None if they were not compared.
    checksum
        Checksum of the target's chunks: ``fletcher32``, ``no checksum``, or how many chunks have none.
    problem
        Why the values cannot be read; empty otherwise.
    relative_bound
        Largest allowed error relative to a stored value, by a rounding that the target records; None without one.
    """

    path: str
    shape: tuple[int, ...] | None = None
    source_type: str = ""
    target_type: str = ""
    bound: float | None = None
    recorded: bool = False
    status: Status | None = None
    tally: Tally | None = None
    equal: bool | None = None
    checksum: str = ""
    problem: str = ""
    relative_bound: float | None = None

    def to_dict(self) -> ComparedDict:
        """Return the content of the JSON: see docs/verify.md."""
        return {
            "path": self.path,
            "shape": json_value(self.shape),
            "source_type": self.source_type,
            "target_type": self.target_type,
            "bound": self.bound,
            "relative_bound": self.relative_bound,
            "recorded": self.recorded,
            "status": self.status,
            "equal": self.equal,
            "numbers": None if self.tally is None else json_value(_numbers(self.tally)),
            "checksum": self.checksum,
            "problem": self.problem or None,
        }

    def __str__(self) -> str:
        error = f", largest error {self.tally.error:.3g}" if self.tally else ""
        return printable(f"{self.path} {self.problem or self.status or 'not compared'}{error}")


@dataclass(frozen=True, slots=True)
class Verification(DatasetsResult[Compared]):
    """Result of `verify`.

    Parameters
    ----------
    source, target
        Paths of the files.
    datasets
        Datasets of both files, in the order of their paths.
    violations
        Broken bounds, and parts of the source that are absent or changed in the target.
    notes
        Differences that are not violations.
    problems
        Datasets and groups that cannot be read or compared.
    """

    source: str
    target: str
    datasets: tuple[Compared, ...]
    violations: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    problems: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if all was compared, without a violation."""
        return not self.violations and not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/verify.md."""
        return {"schema": SCHEMA, "source": self.source, "target": self.target, "ok": self.ok} | json_fields(self)

    def _parts(self) -> Iterator[Part]:
        yield "file", f"{printable(self.source)} -> {printable(self.target)}"
        rows = [COLUMNS, *(row(dataset) for dataset in self.datasets if not dataset.equal)]
        yield Table(rows, folded=_FOLDED, right=_RIGHT)
        yield from _findings(self)


def _numbers(tally: Tally) -> NumbersDict:
    return {
        "count": tally.count,
        "different": tally.different,
        "largest_error": tally.error,
        "largest_relative_error": tally.relative,
        "zeros_changed": tally.zeros_changed,
        "rmse": tally.rmse,
        "psnr": tally.psnr,
        "low": tally.low,
        "high": tally.high,
        "missing": tally.missing,
        "missing_changed": tally.lost,
        "missing_new": tally.gained,
        "validity_changed": tally.crossed,
        "worst": tally.worst,
        "first_different": tally.first_different,
        "first_missing_changed": tally.first_lost,
        "first_missing_new": tally.first_gained,
        "first_validity_changed": tally.first_crossed,
    }


COLUMNS = ("dataset", "bound", "largest error", "relative", "RMSE", "PSNR", "missing", "checksum", "worst value")
_RIGHT = tuple(range(1, 7))
_FOLDED = (7, 8)


def _findings(result: Verification) -> Iterator[Line]:
    equal = ((printable(dataset.path), dataset.checksum) for dataset in result.datasets if dataset.equal)
    for paths, checksum in shared(equal):
        yield "", f"identical, {checksum}: {paths}"
    for name, findings in (("violation", result.violations), ("problem", result.problems)):
        for finding in findings:
            yield name, f"{name}: {printable(str(finding))}"
    for paths, text in shared((printable(note.path), printable(note.text)) for note in result.notes):
        yield "note", f"note: {paths}: {text}"
    yield ("name" if result.ok else "problem"), verdict(result)


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
    worst = tally.worst
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
        "" if worst is None else f"[{', '.join(map(str, worst.index))}] {worst.source} -> {worst.target}",
    )


def number(value: float) -> str:
    """Return the text of a number: an integer in full, a float with four digits."""
    return str(value) if isinstance(value, int) else f"{value:.4g}"
