"""The result of `tamis.repack` as typed objects and as JSON; docs/repack.md describes the JSON, which is stable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.cf import Packing
from tamis.formatting import plural, printable, ratio, size_text
from tamis.jobs.json_rule import SCHEMA, json_fields
from tamis.jobs.result import DatasetsResult

if TYPE_CHECKING:
    from tamis.jobs.parts import Part


@dataclass(frozen=True, slots=True)
class Repacked:
    """The result for one dataset.

    Parameters
    ----------
    path
        Path in both files.
    pipeline
        Text of the filters that the target records, after a rounding if there is one.
    nbytes, source_nbytes, target_nbytes
        Bytes of the values, and bytes that they take in source and target.
    bound
        Largest allowed absolute error, in units of the variable; 0 for lossless; None if the mode has none, or a
        rounding has a relative one.
    largest_error
        Largest absolute error of the decoded values, in the same units.
    chunks, lossless_chunks
        Number of chunks written, and how many of them are stored without zfp.
    notes
        Notes for the user.
    chunk_shape
        Chunk shape in the target, slowest axis first.
    missing_values
        Number of missing values in the chunks, all unchanged; 0 if nothing is lossy, because they are not counted then.
    lossless_for_missing
        Number of chunks stored without zfp that have missing values.
    copied
        Whether chunks were copied as stored because they already had these filters, type and shape.
    read_by_hdf5
        Number of chunks that HDF5 or zarr-python themselves read as tamis does; 0 outside their sample.
    companion
        Path of the dataset that records missing values; empty if there is none.
    companion_nbytes
        Bytes of the companion in the target.
    reused_chunks
        Number of chunks taken over from an interrupted run.
    lossless_for_range
        Number of chunks without missing values that are stored without zfp because it would make valid values invalid
        or invalid ones valid.
    lossless_for_growth
        Number of chunks stored without zfp because they are partial along an axis that can grow: steps that are left
        out there later must read as the fill value.
    packing
        Conversion of stored values to units of the variable; None if they are not packed. `pipeline` is in stored
        units.
    relative_bound
        Largest allowed error relative to a stored value, by a rounding; None without one.
    unrounded_values
        Number of valid values that are not rounded, because rounding would make them missing or let them cross a limit
        of the valid range; their bits are kept.
    tolerance
        Tolerance of zfp, in units of the variable, where another bound holds: the one that was found for
        ``zfp(bound=…)``, or that of ``zfp(accuracy=…)`` beside a smaller required error; None otherwise.
    require
        What was required, as text; empty if nothing was.
    missed_chunks
        Number of chunks stored without loss because zfp or a rounding does not keep what is required of each value.
    measures
        Measures of the whole dataset that were required, by word: see `tamis.Recipe`. None for one that is not defined.
        Values that were copied or stored without loss are not measured.
    left_out
        Text of the requested filters that the target does not record, because no chunk went through them; empty if
        there are none.
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
    relative_bound: float | None = None
    unrounded_values: int = 0
    tolerance: float | None = None
    require: str = ""
    missed_chunks: int = 0
    measures: Mapping[str, float | None] = field(default_factory=dict)
    left_out: str = ""

    @property
    def ratio(self) -> float | None:
        """Bytes of the values for each byte in the target and the companion; None if there are no bytes."""
        return ratio(self.nbytes, self.target_nbytes + self.companion_nbytes)

    @property
    def source_ratio(self) -> float | None:
        """Bytes in the source for each byte in target and companion, below 1 if it grew; None if there are no bytes."""
        return ratio(self.source_nbytes, self.target_nbytes + self.companion_nbytes)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/repack.md."""
        return {**json_fields(self), "ratio": self.ratio, "source_ratio": self.source_ratio}

    def __str__(self) -> str:
        sizes = f"{size_text(self.source_nbytes)} -> {size_text(self.target_nbytes + self.companion_nbytes)}"
        text = f"{self.path} {self.pipeline}: {sizes}, largest error {self.largest_error:.3g}"
        if self.tolerance is not None and self.bound is not None:
            text += f" of {self.bound:g}, tolerance {self.tolerance:g}"
            text += f", {self.lossless_chunks} of {plural(self.chunks, 'chunk')} without zfp"
        return printable(text)


@dataclass(frozen=True, slots=True)
class RepackResult(DatasetsResult[Repacked]):
    """Result of `repack`.

    Parameters
    ----------
    source, target
        Paths of the files.
    source_nbytes, target_nbytes
        Sizes of the files.
    datasets
        Datasets that a recipe matched; everything else was copied unchanged.
    kept
        Datasets that a pattern matched but that were kept, with the reason.
    seconds
        Time taken, verification included.
    notes
        Notes about interrupted runs, and about other files that the source names.
    unreadable
        Paths of the kept datasets whose values cannot be read; their bytes were copied unchanged.
    done_already
        Whether nothing was done because an earlier run made the target from this source by this recipe. `datasets` is
        empty then.
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
        """Return the content of the JSON: see docs/repack.md."""
        return {
            "schema": SCHEMA,
            **json_fields(self),
            "kept": [{"path": path, "reason": reason} for path, reason in self.kept],
        }

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.repacking.text import result_parts

        return result_parts(self)
