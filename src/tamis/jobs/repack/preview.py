"""The preview of `tamis.repack`: what it would do to each dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tamis.formatting import printable
from tamis.jobs.result import SCHEMA, DatasetsResult, json_fields

if TYPE_CHECKING:
    from tamis.jobs.parts import Part
    from tamis.meaning import Packing

Action = Literal["store", "copy", "keep", "drop"]


@dataclass(frozen=True, slots=True)
class DatasetPreview:
    """The change that `repack` would make to one dataset.

    Parameters
    ----------
    path
        Path in both files.
    action
        ``store``: with other filters or chunks. ``copy``: a recipe matches, and the dataset is already stored that way.
        ``keep``: unchanged. ``drop``: the companion of a dataset that is stored anew, which gets a new one or none.
    reason
        Why the dataset is kept or dropped; empty otherwise.
    dtype, shape
        Type and shape of the values.
    source_pipeline, source_chunks
        Filters and chunk shape in the source; None if it is not chunked.
    pipeline, chunks
        Filters and chunk shape in the target.
    bound
        Largest allowed absolute error, in units of the variable; 0 for lossless; None without a bound, or with a
        relative one.
    relative_bound
        Largest allowed error relative to a stored value, by a rounding; None without one.
    notes
        Notes for the user.
    packing
        Conversion of stored values to units of the variable; None if they are not packed.
    reusable_chunks
        Number of chunks that an interrupted run recorded; each is reused if its bytes match the record.
    tolerance
        Tolerance of zfp, in units of the variable, if another bound applies; None otherwise.
    require
        Requirements, as text; empty if there are none.
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
    relative_bound: float | None = None
    tolerance: float | None = None
    require: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/repack.md."""
        return json_fields(self)

    def __str__(self) -> str:
        return printable(f"{self.path} {self.action}: {self.reason or self.pipeline}")


@dataclass(frozen=True, slots=True)
class RepackPreview(DatasetsResult[DatasetPreview]):
    """Result of `preview_repack`.

    Parameters
    ----------
    source, target
        Paths of the files; the target need not exist.
    datasets
        All datasets of the source.
    notes
        Notes about interrupted runs, and about other files that the source refers to.
    """

    source: str
    target: str
    datasets: tuple[DatasetPreview, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/repack.md."""
        return {"schema": SCHEMA, "dry_run": True, **json_fields(self)}

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.repack.result import preview_parts

        return preview_parts(self)
