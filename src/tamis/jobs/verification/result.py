"""What `tamis.verify` finds, as typed objects and as JSON; docs/verify.md describes the JSON, which is stable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tamis.accuracy.statistics import Tally
from tamis.formatting import printable
from tamis.jobs.json_rule import json_value
from tamis.jobs.result import DatasetsResult

if TYPE_CHECKING:
    from tamis.jobs.parts import Part

SCHEMA = 2
"""Number of the JSON schema: it changes where a key goes away or changes its meaning, not where one is added."""


Status = Literal["equal", "within-bound", "different"]
"""How the values of a dataset compare with those of the source."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the two files have not alike.

    Parameters
    ----------
    path
        Of the dataset or group.
    code
        What it is about, one of those in docs/verify.md: stable.
    text
        What is so.
    """

    path: str
    code: str
    text: str

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.text}")

    def to_dict(self) -> dict[str, str]:
        """Return what JSON can hold: see docs/verify.md."""
        return {"path": self.path, "code": self.code, "text": self.text}


@dataclass(frozen=True, slots=True)
class Compared:
    """One dataset of both files.

    Parameters
    ----------
    path
        In the source.
    shape
        Of the values; None where the dataset has none.
    source_type, target_type
        In words, with the byte order where that is not the machine's.
    bound
        Largest absolute error that is allowed, in units of the data; None, where there is no bound, and 0 ask for the
        same bits.
    recorded
        Whether that is what the filters of the target record; they may record none.
    status
        ``equal`` if all bits are the same, in any byte order; ``within-bound`` if all that differ keep the bound;
        ``different`` if they do not; None if the values could not be read.
    tally
        What comparing the values found; None where they are no numbers, or were not compared.
    equal
        Whether all bits are the same, in any byte order; None where they were not compared.
    checksum
        Whether a checksum guards the chunks of the target: ``fletcher32``, ``no checksum``, or which chunks have none.
    problem
        Why the values could not be read; empty otherwise.
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

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: see docs/verify.md."""
        return {
            "path": self.path,
            "shape": json_value(self.shape),
            "source_type": self.source_type,
            "target_type": self.target_type,
            "bound": self.bound,
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
    """What `verify` found.

    Parameters
    ----------
    source, target
        Paths of the files.
    datasets
        Those that both have, in the order of their paths.
    violations
        What must not be: a bound that is not kept, or something of the source that is not in the target as it was.
    notes
        What is different too, and no violation.
    problems
        What could not be read or compared.
    """

    source: str
    target: str
    datasets: tuple[Compared, ...]
    violations: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    problems: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether all was compared and nothing violates a bound."""
        return not self.violations and not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: see docs/verify.md."""
        return {
            "schema": SCHEMA,
            "source": self.source,
            "target": self.target,
            "ok": self.ok,
            "datasets": [each.to_dict() for each in self.datasets],
            "violations": [each.to_dict() for each in self.violations],
            "notes": [each.to_dict() for each in self.notes],
            "problems": [each.to_dict() for each in self.problems],
        }

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.verification.text import parts_of

        return parts_of(self)


def _numbers(tally: Tally) -> dict[str, Any]:
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
