"""The results of `tamis.repack` and of its preview; docs/repack.md describes their JSON, which is stable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from tamis.formatting import bound_text, plural, printable, ratio, ratio_text, shape_text, size_text
from tamis.jobs.result import SCHEMA, DatasetsResult, Fields, Part, Table, json_fields, shared
from tamis.jobs.witness.look import Witnessed
from tamis.old_names import has_old_keys
from tamis.pipeline import Pipeline
from tamis.rewrite.damage import Damage
from tamis.rewrite.spread import Warned
from tamis.stores.other_files import OtherFile, TakenIn, needed_text

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.meaning import Packing


@has_old_keys
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
        Number of chunks that HDF5 or zarr-python themselves read identically; 0 outside their sample.
    missing_mask
        Path of the missing-value mask, the dataset that records missing values; empty if there is none.
    missing_mask_nbytes
        Bytes of the mask in the target.
    reused_chunks
        Number of chunks reused from an interrupted run.
    lossless_for_range
        Number of chunks without missing values that are stored without zfp because it would make valid values invalid
        or invalid ones valid.
    lossless_for_growth
        Number of chunks stored without zfp because they are partial along an axis that can grow: steps left out there
        later must read as the fill value.
    packing
        Conversion of stored values to units of the variable; None if they are not packed. `pipeline` is in stored
        units.
    relative_bound
        Largest allowed error relative to a stored value, by a rounding; None without one.
    unrounded_values
        Number of valid values that are not rounded, because rounding would make them missing or let them cross a limit
        of the valid range; their bits are kept.
    tolerance
        Tolerance of zfp, in units of the variable, if another bound applies: the one found for ``zfp(bound=…)``, or
        that of ``zfp(accuracy=…)`` with a smaller required error; None otherwise.
    require
        Requirements, as text; empty if there were none.
    missed_chunks
        Number of chunks stored without loss because zfp or a rounding does not meet the requirements on each value.
    measures
        Required measures of the whole dataset, by word: see `tamis.Recipe`. None for an undefined one. Values that were
        copied or stored without loss are not measured.
    left_out
        Text of the requested filters that the target does not record, because no chunk went through them; empty if
        there are none.
    worst
        Part of the array with the largest error; None if nothing changed, or if it is not known. Not in the JSON.
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
    missing_mask: str = ""
    missing_mask_nbytes: int = 0
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
    worst: Region | None = None

    @property
    def ratio(self) -> float | None:
        """Bytes of the values for each byte in the target and the missing-value mask; None if there are no bytes."""
        return ratio(self.nbytes, self.target_nbytes + self.missing_mask_nbytes)

    @property
    def source_ratio(self) -> float | None:
        """Bytes in the source for each byte in target and mask, below 1 if it grew; None if there are no bytes."""
        return ratio(self.source_nbytes, self.target_nbytes + self.missing_mask_nbytes)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/repack.md."""
        fields = json_fields(self)
        del fields["worst"]
        return {**fields, "ratio": self.ratio, "source_ratio": self.source_ratio}

    def __str__(self) -> str:
        sizes = f"{size_text(self.source_nbytes)} -> {size_text(self.target_nbytes + self.missing_mask_nbytes)}"
        text = f"{self.path} {self.pipeline}: {sizes}, largest error {self.largest_error:.3g}"
        if self.tolerance is not None and self.bound is not None:
            text += f" of {self.bound:g}, tolerance {self.tolerance:g}"
            first = _optional_name(self.pipeline)
            text += f", {self.lossless_chunks} of {plural(self.chunks, 'chunk')} without {first}"
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
        Datasets that a pattern matched but that were kept, with the reason; of a dataset of xarray that is saved, also
        large variables that nobody named filters for.
    seconds
        Time taken, including verification.
    notes
        Notes about interrupted runs, and about other files that the source refers to.
    unreadable
        Paths of the kept datasets whose values cannot be read; their bytes were copied unchanged.
    done_already
        Whether nothing was done because an earlier run made the target from this source by this recipe. `datasets` is
        empty then.
    unmatched
        Names and patterns of the recipe that match no dataset.
    other_files
        Files that the target leads to by links, virtual datasets or raw files, and that this run does not make.
    damaged
        Datasets with chunks that cannot be decoded, whose bytes were copied unchanged, with the reason.
    warnings
        Bounds that are too large for the values, judging by a sample, by path or pattern.
    taken_in
        Files whose objects or values the target has itself (``self_contained``), as they were before.
    witness
        What xarray read of source and target and found alike, if it was asked for (``witness="xarray"``); None
        otherwise.
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
    unmatched: tuple[str, ...] = ()
    other_files: tuple[OtherFile, ...] = ()
    damaged: tuple[Damage, ...] = ()
    warnings: tuple[Warned, ...] = ()
    taken_in: tuple[TakenIn, ...] = ()
    witness: Witnessed | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/repack.md."""
        return {
            "schema": SCHEMA,
            **json_fields(self),
            "kept": [{"path": path, "reason": reason} for path, reason in self.kept],
            "other_files": [other._asdict() for other in self.other_files],
            "damaged": [item._asdict() for item in self.damaged],
            "warnings": [item._asdict() for item in self.warnings],
            "taken_in": [item._asdict() for item in self.taken_in],
        }

    def _parts(self) -> Iterator[Part]:
        yield Table(
            [_result_header(self.datasets), *map(_result_row, self.datasets)], folded=[1], right=_RESULT_RIGHT, code=[1]
        )
        for paths, note in shared((dataset.path, note) for dataset in self.datasets for note in dataset.notes):
            yield "note", printable(f"{paths}: {note}")
        damaged = {path for path, _ in self.damaged}
        for paths, reason in shared((path, reason) for path, reason in self.kept if path not in damaged):
            yield "note", printable(f"{paths}: kept as it is: {reason}")
        for note in self.notes:
            yield "note", printable(note)
        if self.other_files:
            yield "note", f"the target {needed_text(self.other_files)}"
        for path, text in self.warnings:
            yield "problem", printable(f"{path}: {text}")
        for path, reason in self.damaged:
            yield "problem", printable(f"{path}: damaged, and copied as it is: {reason}")
        if self.witness is not None:
            yield from self.witness.lines()
        if self.done_already:
            return
        if reused := sum(dataset.reused_chunks for dataset in self.datasets):
            chunks = sum(dataset.chunks for dataset in self.datasets if not dataset.copied)
            yield "", f"{reused} of {chunks} chunks were reused from an interrupted run"
        copied = sum(dataset.copied for dataset in self.datasets)
        anew = len(self.datasets) - copied
        counts = []
        if anew:
            counts.append(f"{plural(anew, 'dataset')} rewritten")
        if copied:
            counts.append(f"{copied} copied as stored")
        done = ", ".join(counts) or "no dataset rewritten"
        yield (
            "name",
            f"{printable(self.source)} ({size_text(self.source_nbytes)}) -> {printable(self.target)}"
            f" ({size_text(self.target_nbytes)}) in {self.seconds:.2f} s: {done}, read back and verified",
        )


Action = Literal["store", "copy", "keep", "drop"]


@dataclass(frozen=True, slots=True)
class DatasetPreview(Fields):
    """The change that `repack` would make to one dataset.

    Parameters
    ----------
    path
        Path in both files.
    action
        ``store``: with other filters or chunks. ``copy``: a recipe matches, and the dataset is already stored that way.
        ``keep``: unchanged. ``drop``: the missing-value mask of a dataset that is stored anew, which gets a new one or
        none.
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
    other_files
        Files that the target would lead to, and that the run would not make.
    warnings, taken_in
        As in `RepackResult`.
    """

    source: str
    target: str
    datasets: tuple[DatasetPreview, ...]
    notes: tuple[str, ...] = ()
    other_files: tuple[OtherFile, ...] = ()
    warnings: tuple[Warned, ...] = ()
    taken_in: tuple[TakenIn, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/repack.md."""
        named = {
            "other_files": [other._asdict() for other in self.other_files],
            "warnings": [item._asdict() for item in self.warnings],
            "taken_in": [item._asdict() for item in self.taken_in],
        }
        return {"schema": SCHEMA, "dry_run": True, **json_fields(self), **named}

    def _parts(self) -> Iterator[Part]:
        rows = [_PREVIEW, *map(_preview_row, self.datasets)]
        yield Table(rows, folded=_PREVIEW_CODE, right=_PREVIEW_RIGHT, code=_PREVIEW_CODE)
        for paths, note in shared((dataset.path, note) for dataset in self.datasets for note in _notes_of(dataset)):
            yield "note", printable(f"{paths}: {note}")
        for note in self.notes:
            yield "note", printable(note)
        if self.other_files:
            yield "note", f"the target {needed_text(self.other_files)}"
        for path, text in self.warnings:
            yield "problem", printable(f"{path}: {text}")
        yield "name", f"{printable(self.target)}: dry run, nothing was written"


_RESULT = ("dataset", "filters", "in", "out", "in/out", "ratio", "largest error", "bound")
_RESULT_RIGHT = tuple(range(2, len(_RESULT) + 1))
_PREVIEW = ("dataset", "action", "filters now", "new filters", "chunks now", "new chunks", "bound")
_PREVIEW_CODE = (2, 3)
_PREVIEW_RIGHT = (6,)


def _result_header(datasets: Iterable[Repacked]) -> tuple[str, ...]:
    names = {name for dataset in datasets for name in _optional_names(dataset)}
    what = "loss" if len(names) > 1 else next(iter(names), "zfp")
    return (*_RESULT, f"chunks without {what}")


def _result_row(dataset: Repacked) -> tuple[str, ...]:
    return (
        printable(dataset.path),
        _filters(dataset.pipeline),
        size_text(dataset.source_nbytes),
        size_text(dataset.target_nbytes + dataset.missing_mask_nbytes),
        ratio_text(dataset.source_ratio),
        ratio_text(dataset.ratio),
        f"{dataset.largest_error:.3g}",
        _bound(dataset),
        f"{dataset.lossless_chunks} of {dataset.chunks}" if _optional_names(dataset) else "",
    )


def _optional_names(dataset: Repacked) -> tuple[str, ...]:
    """Return the names of requested filters that some chunks may be stored without, even if none went through them."""
    names = (_optional_name(dataset.pipeline), _optional_name(dataset.left_out))
    return tuple(name for name in names if name)


@lru_cache  # most datasets have the same filters
def _optional_name(pipeline: str) -> str:
    first = Pipeline.parse(pipeline or "none").bounded
    return "" if first is None else first.name


def _preview_row(dataset: DatasetPreview) -> tuple[str, ...]:
    anew = dataset.action == "store"
    return (
        printable(dataset.path),
        dataset.action,
        _filters(dataset.source_pipeline),
        _filters(dataset.pipeline) if anew else "",
        "" if dataset.source_chunks is None else shape_text(dataset.source_chunks),
        "" if dataset.chunks is None or not anew else shape_text(dataset.chunks),
        _bound(dataset) if anew else "",
    )


def _filters(pipeline: str) -> str:
    return printable(pipeline).replace("|", "\n")


def _bound(dataset: Repacked | DatasetPreview) -> str:
    return bound_text(dataset.bound, dataset.relative_bound) or "none"


def _notes_of(dataset: DatasetPreview) -> Iterator[str]:
    if dataset.reusable_chunks:
        yield f"{plural(dataset.reusable_chunks, 'chunk')} can be reused from an interrupted run"
    if dataset.reason:
        yield f"{'dropped' if dataset.action == 'drop' else 'kept as it is'}: {dataset.reason}"
    yield from dataset.notes
