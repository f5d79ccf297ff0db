"""What `tamis.repack` did, as typed objects and as JSON; docs/repack.md describes the JSON, which is stable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.cf import Packing
from tamis.formatting import printable, ratio, size_text
from tamis.jobs.json_rule import SCHEMA, json_fields
from tamis.jobs.result import DatasetsResult

if TYPE_CHECKING:
    from tamis.jobs.parts import Part


@dataclass(frozen=True, slots=True)
class Repacked:
    """What became of one dataset.

    Parameters
    ----------
    path
        In both files.
    pipeline
        Through which it was stored; the text of a pipeline.
    nbytes, source_nbytes, target_nbytes
        Bytes of the values, and bytes that they take in source and target.
    bound
        Largest absolute error that was allowed, in units of the variable; 0 for lossless; None where the mode has none.
    largest_error
        Largest absolute error of what the stored bytes decode to, in the same units.
    chunks, lossless_chunks
        Chunks written, and those of them that were stored without zfp.
    notes
        What else a reader of the result should know.
    chunk_shape
        Slowest axis first.
    missing_values
        Missing values in the chunks, each of which is what it was; 0 where nothing is lossy, and nobody counted.
    lossless_for_missing
        Chunks stored without zfp that hold missing values.
    copied
        Whether its chunks were copied as they are stored, since they had these filters, type and shape already.
    read_by_hdf5
        Chunks that HDF5 itself was seen to read as tamis does.
    companion
        Path of the dataset that says where values are missing; empty where there is none.
    companion_nbytes
        Bytes that it takes in the target.
    reused_chunks
        Chunks taken over from a run that was interrupted.
    lossless_for_range
        Chunks without missing values that were stored without zfp, which would have made valid values invalid or
        invalid ones valid.
    lossless_for_growth
        Chunks stored without zfp that are partial along an axis that can grow: what is left out there later has to
        read as the fill value.
    packing
        How stored values become those in units of the variable, which `pipeline` does not use; None where they are in
        these units.
    """

    path: str
    pipeline: str
    nbytes: int
    source_nbytes: int
    target_nbytes: int
    bound: float | None
    largest_error: float
    chunks: int
    lossless_chunks: int
    notes: tuple[str, ...]
    chunk_shape: tuple[int, ...] = ()
    missing_values: int = 0
    lossless_for_missing: int = 0
    copied: bool = False
    read_by_hdf5: int = 0
    companion: str = ""
    companion_nbytes: int = 0
    reused_chunks: int = 0
    lossless_for_range: int = 0
    lossless_for_growth: int = 0
    packing: Packing | None = None

    @property
    def ratio(self) -> float | None:
        """Bytes of the values for each byte in the target and the companion; None where there are no bytes."""
        return ratio(self.nbytes, self.target_nbytes + self.companion_nbytes)

    @property
    def source_ratio(self) -> float | None:
        """Bytes in the source for each byte in the target and the companion, below 1 where it grew; None for none."""
        return ratio(self.source_nbytes, self.target_nbytes + self.companion_nbytes)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds: see docs/repack.md."""
        return {**json_fields(self), "ratio": self.ratio, "source_ratio": self.source_ratio}

    def __str__(self) -> str:
        sizes = f"{size_text(self.source_nbytes)} -> {size_text(self.target_nbytes + self.companion_nbytes)}"
        return printable(f"{self.path} {self.pipeline}: {sizes}, largest error {self.largest_error:.3g}")


@dataclass(frozen=True, slots=True)
class RepackResult(DatasetsResult[Repacked]):
    """What `repack` did.

    Parameters
    ----------
    source, target
        Paths of the files.
    source_nbytes, target_nbytes
        Their sizes.
    datasets
        Those that a recipe was for; everything else was copied as it was.
    kept
        Datasets that a pattern matched but that cannot take the filters, with the reason.
    seconds
        Time taken, verification included.
    notes
        What the user should know about runs that were interrupted, and about other files that the file names.
    unreadable
        Paths of the datasets among those kept whose values cannot be read; their bytes were copied as they are.
    done_already
        Whether nothing was done, since the target is what an earlier run made of this source by this recipe.
        `datasets` is empty then.
    """

    source: str
    target: str
    source_nbytes: int
    target_nbytes: int
    datasets: tuple[Repacked, ...]
    kept: tuple[tuple[str, str], ...]
    seconds: float
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    done_already: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds: see docs/repack.md."""
        return {
            "schema": SCHEMA,
            **json_fields(self),
            "kept": [{"path": path, "reason": reason} for path, reason in self.kept],
        }

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.repacking.text import result_parts

        return result_parts(self)
