"""The result and the preview of `tamis.repack` as text and in notebooks: a row for each dataset, then notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from tamis.formatting import plural, printable, ratio_text, relative_text, shape_text, size_text
from tamis.jobs.parts import Line, Part, Table, title
from tamis.jobs.repacking.preview import DatasetPreview, RepackPreview
from tamis.jobs.repacking.result import Repacked, RepackResult
from tamis.pipeline import Pipeline

_RESULT = ("dataset", "filters", "in", "out", "in/out", "ratio", "largest error", "bound", "chunks without zfp")
_RESULT_RIGHT = tuple(range(2, len(_RESULT)))
_PREVIEW = ("dataset", "action", "filters now", "new filters", "chunks now", "new chunks", "bound")
_PREVIEW_CODE = (2, 3)
_PREVIEW_RIGHT = (6,)


def result_parts(result: RepackResult) -> Iterator[Part]:
    """Yield the parts of a result: a row for each dataset, then notes."""
    yield Table([_RESULT, *map(_result_row, result.datasets)], folded=[1], right=_RESULT_RIGHT, code=[1])
    yield from _result_notes(result)


def preview_parts(preview: RepackPreview) -> Iterator[Part]:
    """Yield the parts of a preview: a row for each dataset, then notes."""
    rows = [_PREVIEW, *map(_preview_row, preview.datasets)]
    yield Table(rows, folded=_PREVIEW_CODE, right=_PREVIEW_RIGHT, code=_PREVIEW_CODE)
    yield from _preview_notes(preview)


def _result_row(dataset: Repacked) -> tuple[str, ...]:
    return (
        printable(dataset.path),
        _filters(dataset.pipeline),
        size_text(dataset.source_nbytes),
        size_text(dataset.target_nbytes + dataset.companion_nbytes),
        ratio_text(dataset.source_ratio),
        ratio_text(dataset.ratio),
        f"{dataset.largest_error:.3g}",
        _bound(dataset),
        f"{dataset.lossless_chunks} of {dataset.chunks}" if _has_zfp(dataset) else "",
    )


def _has_zfp(dataset: Repacked) -> bool:
    """Return whether zfp was requested, even if no chunk went through it."""
    return any(_names_zfp(text) for text in (dataset.pipeline, dataset.left_out) if text)


@lru_cache  # most datasets have the same filters
def _names_zfp(pipeline: str) -> bool:
    return Pipeline.parse(pipeline).zfp is not None


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
    if dataset.bound is not None:
        return f"{dataset.bound:g}"
    return "none" if dataset.relative_bound is None else relative_text(dataset.relative_bound)


def _result_notes(result: RepackResult) -> Iterator[Line]:
    for text in _shared((dataset.path, note) for dataset in result.datasets for note in dataset.notes):
        yield "note", text
    for text in _shared((path, f"kept as it is: {reason}") for path, reason in result.kept):
        yield "note", text
    for note in result.notes:
        yield "note", printable(note)
    if result.done_already:
        return
    if reused := sum(dataset.reused_chunks for dataset in result.datasets):
        chunks = sum(dataset.chunks for dataset in result.datasets if not dataset.copied)
        yield "", f"{reused} of {chunks} chunks were taken over from an interrupted run"
    copied = sum(dataset.copied for dataset in result.datasets)
    anew = len(result.datasets) - copied
    counts = [f"{plural(anew, 'dataset')} stored anew"] * bool(anew) + [f"{copied} copied as stored"] * bool(copied)
    counts = counts or ["no dataset stored anew"]
    yield (
        "name",
        f"{printable(result.source)} ({size_text(result.source_nbytes)}) -> {printable(result.target)}"
        f" ({size_text(result.target_nbytes)}) in {result.seconds:.2f} s: {', '.join(counts)}, read back and verified",
    )


def _preview_notes(preview: RepackPreview) -> Iterator[Line]:
    for text in _shared((dataset.path, note) for dataset in preview.datasets for note in _notes_of(dataset)):
        yield "note", text
    for note in preview.notes:
        yield "note", printable(note)
    yield "name", f"{printable(preview.target)}: dry run, nothing was written"


def _notes_of(dataset: DatasetPreview) -> Iterator[str]:
    if dataset.reusable_chunks:
        yield f"{plural(dataset.reusable_chunks, 'chunk')} can be taken over from an interrupted run"
    if dataset.reason:
        yield f"{'dropped' if dataset.action == 'drop' else 'kept as it is'}: {dataset.reason}"
    yield from dataset.notes


def _shared(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Return each different note once, with the datasets that share it."""
    paths: dict[str, list[str]] = {}
    for path, note in notes:
        paths.setdefault(note, []).append(path)
    return (printable(f"{title(names)}: {note}") for note, names in paths.items())
