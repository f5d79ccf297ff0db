"""What `tamis.repack` would do to each dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tamis.cf import Packing
from tamis.formatting import printable
from tamis.jobs.json_rule import SCHEMA, json_fields
from tamis.jobs.result import DatasetsResult

if TYPE_CHECKING:
    from tamis.jobs.parts import Part

Action = Literal["store", "copy", "keep", "drop"]


@dataclass(frozen=True, slots=True)
class DatasetPreview:
    """What would become of one dataset.

    Parameters
    ----------
    path
        In both files.
    action
        ``store``: through other filters or in other chunks. ``copy``: a recipe is for it, and it is stored that way
        already. ``keep``: as it is. ``drop``: the companion of a dataset that is stored anew, which gets
        a new one or none.
    reason
        Why it is kept or dropped; empty otherwise.
    dtype, shape
        Of the values.
    source_pipeline, source_chunks
        How it is stored; no chunks where it has none.
    pipeline, chunks
        How it would be stored.
    bound
        Largest absolute error that would be allowed, in units of the variable; 0 for lossless; None where none is.
    notes
        What else would be done.
    packing
        How stored values become those in units of the variable; None where they are in them.
    reusable_chunks
        Chunks that an interrupted run noted, to be taken over where they are in its file as noted.
    """

    path: str
    action: Action
    reason: str
    dtype: str
    shape: tuple[int, ...] | None
    source_pipeline: str
    source_chunks: tuple[int, ...] | None
    pipeline: str
    chunks: tuple[int, ...] | None
    bound: float | None
    notes: tuple[str, ...] = ()
    reusable_chunks: int = 0
    packing: Packing | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds: see docs/repack.md."""
        return json_fields(self)

    def __str__(self) -> str:
        return printable(f"{self.path} {self.action}: {self.reason or self.pipeline}")


@dataclass(frozen=True, slots=True)
class RepackPreview(DatasetsResult[DatasetPreview]):
    """What `repack` would do.

    Parameters
    ----------
    source, target
        Paths of the files; the target need not be there.
    datasets
        All of the source.
    notes
        What the user should know about runs that were interrupted, and about other files that the file names.
    """

    source: str
    target: str
    datasets: tuple[DatasetPreview, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds: see docs/repack.md."""
        return {"schema": SCHEMA, "dry_run": True, **json_fields(self)}

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.repacking.text import preview_parts

        return preview_parts(self)
