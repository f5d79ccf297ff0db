"""The result and the preview of `tamis.repack` as text and in notebooks: a row for each dataset, then notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tamis.formatting import plural, printable, ratio_text, shape_text, size_text
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
    """Yield what `repack` did: a row for each dataset, then notes."""
    yield Table([_RESULT, *map(_result_row, result.datasets)], folded=[1], right=_RESULT_RIGHT, code=[1])
    yield from _result_notes(result)


def preview_parts(preview: RepackPreview) -> Iterator[Part]:
    """Yield what `repack` would do: a row for each dataset, then notes."""
    rows = [_PREVIEW, *map(_preview_row, preview.datasets)]
    yield Table(rows, folded=_PREVIEW_CODE, right=_PREVIEW_RIGHT, code=_PREVIEW_CODE)
    yield from _preview_notes(preview)


def _result_row(each: Repacked) -> tuple[str, ...]:
    return (
        printable(each.path),
        _filters(each.pipeline),
        size_text(each.source_nbytes),
        size_text(each.target_nbytes + each.companion_nbytes),
        ratio_text(each.source_ratio),
        ratio_text(each.ratio),
        f"{each.largest_error:.3g}",
        _bound(each.bound),
        f"{each.lossless_chunks} of {each.chunks}" if Pipeline.parse(each.pipeline).zfp else "",
    )


def _preview_row(each: DatasetPreview) -> tuple[str, ...]:
    anew = each.action == "store"
    return (
        printable(each.path),
        each.action,
        _filters(each.source_pipeline),
        _filters(each.pipeline) if anew else "",
        "" if each.source_chunks is None else shape_text(each.source_chunks),
        "" if each.chunks is None or not anew else shape_text(each.chunks),
        _bound(each.bound) if anew else "",
    )


def _filters(pipeline: str) -> str:
    return printable(pipeline).replace("|", "\n")


def _bound(bound: float | None) -> str:
    return "none" if bound is None else f"{bound:g}"


def _result_notes(result: RepackResult) -> Iterator[Line]:
    for text in _shared((each.path, note) for each in result.datasets for note in each.notes):
        yield "note", text
    for text in _shared((path, f"kept as it is: {reason}") for path, reason in result.kept):
        yield "note", text
    for note in result.notes:
        yield "note", printable(note)
    if result.done_already:
        return
    if reused := sum(each.reused_chunks for each in result.datasets):
        chunks = sum(each.chunks for each in result.datasets if not each.copied)
        yield "", f"{reused} of {chunks} chunks were taken over from an interrupted run"
    copied = sum(each.copied for each in result.datasets)
    anew = len(result.datasets) - copied
    done = [f"{plural(anew, 'dataset')} stored anew"] * bool(anew) + [f"{copied} copied as stored"] * bool(copied)
    done = done or ["no dataset stored anew"]
    yield (
        "name",
        f"{printable(result.source)} ({size_text(result.source_nbytes)}) -> {printable(result.target)}"
        f" ({size_text(result.target_nbytes)}) in {result.seconds:.2f} s: {', '.join(done)}, read back and verified",
    )


def _preview_notes(preview: RepackPreview) -> Iterator[Line]:
    for text in _shared((each.path, note) for each in preview.datasets for note in _notes_of(each)):
        yield "note", text
    for note in preview.notes:
        yield "note", printable(note)
    yield "name", f"{printable(preview.target)}: dry run, nothing was written"


def _notes_of(each: DatasetPreview) -> Iterator[str]:
    if each.reusable_chunks:
        yield f"{plural(each.reusable_chunks, 'chunk')} can be taken over from an interrupted run"
    if each.reason:
        yield f"{'dropped' if each.action == 'drop' else 'kept as it is'}: {each.reason}"
    yield from each.notes


def _shared(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield notes with the datasets that they are about, once for all that share one."""
    paths: dict[str, list[str]] = {}
    for path, note in notes:
        paths.setdefault(note, []).append(path)
    return (printable(f"{title(names)}: {note}") for note, names in paths.items())
