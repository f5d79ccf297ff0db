"""The result of `tamis.repair`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.formatting import plural, printable
from tamis.jobs.json_rule import SCHEMA, json_fields
from tamis.jobs.result import DatasetsResult

if TYPE_CHECKING:
    from tamis.jobs.parts import Part


@dataclass(frozen=True, slots=True)
class RepairedArray:
    """An array whose metadata were wrong.

    Parameters
    ----------
    path
        Path of the array.
    dtype
        Type of the values, whose size shuffle needs.
    filters
        The filters of its chunks.
    """

    path: str
    dtype: str
    filters: str


@dataclass(frozen=True, slots=True)
class RepairResult(DatasetsResult[RepairedArray]):
    """Result of `tamis.repair`.

    Parameters
    ----------
    store
        Path of the store.
    dry_run
        Whether nothing was written.
    datasets
        Arrays that were wrong; none if there was nothing to repair.
    """

    store: str
    dry_run: bool
    datasets: tuple[RepairedArray, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return {"schema": SCHEMA, **json_fields(self)}

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.parts import Table

        if not self.datasets:
            yield "file", printable(f"{self.store}: nothing to repair")
            return
        verb = "would be repaired" if self.dry_run else "repaired"
        arrays = plural(len(self.datasets), "array")
        yield "file", printable(f"{self.store}: {arrays} {verb}: shuffle has the size of the values")
        rows = [(printable(array.path), array.dtype, array.filters) for array in self.datasets]
        yield Table([("dataset", "type", "filters"), *rows])
