"""The page of `tamis inspect --html`: what takes the space in a file, its filters, and its chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.errors import TamisError
from tamis.formats.registry import open_store
from tamis.formatting import percent_text, plural, ratio_text, shape_text, size_text
from tamis.jobs.inspect.dataset_info import COLUMNS, DatasetInfo, row
from tamis.jobs.report import charts
from tamis.jobs.report.maps import CIVIDIS, png
from tamis.jobs.report.parts import (
    MADE_BY,
    bar_of,
    chart_figure,
    items_of,
    picture_rule,
    table_of_rows,
    text,
    whole_page,
)
from tamis.safety.library_errors import reading

if TYPE_CHECKING:
    from tamis.jobs.report.reported import Chart
    from tamis.stores.protocols import StoredArray

_MOST_BARS, _MOST_DATASETS, _MOST_ROWS = 40, 20, 400
_MOST_SIDE = 256
_LEVELS = 127


class _ChunkMap(NamedTuple):
    """Stored bytes over the last two axes of the grid of chunks."""

    picture: bytes
    shape: tuple[int, int]
    low: float
    high: float


class _Detail(NamedTuple):
    """The chunks of a dataset."""

    chart: Chart | None
    chunk_map: _ChunkMap | None


def file_page(path: str, nbytes: int, datasets: Sequence[DatasetInfo], document: Mapping[str, Any]) -> str:
    """Return the page of a file, which carries the JSON of its inspection."""
    largest = sorted(datasets, key=lambda dataset: -dataset.stored_nbytes)
    shown = largest[:_MOST_DATASETS]
    details = _details(path, shown)
    title = os.path.basename(path.rstrip("/")) or path
    body = [
        f"<header><h1>{text(title)}</h1>",
        f'<div class="verdict"><p>{text(_sentence(nbytes, largest), 2000)}</p></div></header><main>',
        *_bars(nbytes, largest),
        *_table(datasets),
    ]
    styles, charts_by_dataset = [], []
    for number, (dataset, detail) in enumerate(zip(shown, details, strict=True)):
        charts_by_dataset.append(
            {"path": dataset.path, "charts": [] if detail.chart is None else [detail.chart.to_dict()]}
        )
        if detail.chunk_map is not None:
            styles.append(picture_rule(f"k{number}", detail.chunk_map.picture))
        body += _section(number, dataset, detail)
    body.append(f"</main><footer>{MADE_BY}</footer>")
    content = {"datasets": charts_by_dataset, "file": document}
    return whole_page(f"tamis inspect: {title}", body, content, styles="".join(styles))


def _sentence(whole: int, largest: Sequence[DatasetInfo]) -> str:
    """Return what takes the space, in one sentence."""
    stored = sum(dataset.stored_nbytes for dataset in largest)
    values = sum(dataset.nbytes for dataset in largest)
    texts = [f"{size_text(whole)} in {plural(len(largest), 'dataset')}"]
    if stored:
        texts.append(f"{size_text(values)} of values, ratio {ratio_text(values / stored)}" if values else "")
        first = largest[0]
        texts.append(f"{first.path} takes {percent_text(first.stored_nbytes / max(whole, stored))}")
    return "; ".join(filter(None, texts)) + "."


def _bars(whole: int, largest: Sequence[DatasetInfo]) -> Iterator[str]:
    """Yield one bar for each of the largest datasets, and one for the rest of the file."""
    entries = [(dataset.path, dataset.stored_nbytes) for dataset in largest[:_MOST_BARS] if dataset.stored_nbytes]
    others = sum(dataset.stored_nbytes for dataset in largest[_MOST_BARS:])
    rest = max(whole - others - sum(nbytes for _, nbytes in entries), 0)
    entries += [(f"{len(largest) - _MOST_BARS} other datasets", others)] if others else []
    entries += [("metadata, and free space", rest)] if rest else []
    most = max((nbytes for _, nbytes in entries), default=0)
    yield '<h2 id="space">What takes the space</h2><div class="wide" tabindex="0" role="region" aria-label="Sizes">'
    head = "".join(f'<th scope="col">{name}</th>' for name in ("dataset", "stored", "share", "size"))
    yield f'<table class="bars"><thead><tr>{head}</tr></thead><tbody>'
    for name, nbytes in entries:
        share = percent_text(nbytes / whole) if whole else ""
        width = f'<div class="size" style="width:{100 * nbytes / most:.2f}%"></div>'
        yield f"<tr><td>{text(name, 80)}</td><td>{size_text(nbytes)}</td><td>{share}</td><td>{width}</td></tr>"
    yield "</tbody></table></div>"


def _table(datasets: Iterable[DatasetInfo]) -> Iterator[str]:
    cells = ([text(cell.replace("\n", " | ")) for cell in row(dataset)] for dataset in datasets)
    rows = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in own)}</tr>" for own in cells]
    yield '<h2 id="all">All datasets</h2>'
    yield from table_of_rows("All datasets", COLUMNS, rows, _MOST_ROWS)


def _details(path: str, datasets: Sequence[DatasetInfo]) -> list[_Detail]:
    """Return the chunks of datasets; none where they are not known."""
    details = []
    with open_store(path) as store:
        for dataset in datasets:
            detail = _Detail(None, None)
            with suppress(TamisError, KeyError), reading(path, dataset=dataset.path):
                array = store.array(dataset.path)
                if array.shape and array.storage.chunk_shape is not None:
                    detail = _Detail(charts.chunks(array), _chunk_map(array))
            details.append(detail)
    return details


def _chunk_map(array: StoredArray) -> _ChunkMap | None:
    """Return the mean stored bytes over the last two axes of the grid, coarser if it is large; None for one row."""
    index = array.chunk_index()
    counts = tuple(
        -(-extent // step) for extent, step in zip(array.shape, array.storage.chunk_shape or (), strict=True)
    )
    if len(counts) < 2 or min(counts[-2:]) < 2 or not len(index):
        return None
    origins = index.parts.origin_table()[:, -2:] // np.array((array.storage.chunk_shape or ())[-2:])
    steps = [-(-count // _MOST_SIDE) for count in counts[-2:]]
    shape = -(-counts[-2] // steps[0]), -(-counts[-1] // steps[1])
    places = origins[:, 0] // steps[0] * shape[1] + origins[:, 1] // steps[1]
    size = shape[0] * shape[1]
    totals, numbers = np.bincount(places, np.asarray(index.sizes, float), size), np.bincount(places, minlength=size)
    mean = totals / np.maximum(numbers, 1)
    there = numbers > 0
    low, high = float(mean[there].min()), float(mean[there].max())
    levels = np.clip((mean - low) / ((high - low) or 1.0) * _LEVELS, 0, _LEVELS - 1).astype(np.uint8)
    levels[~there] = 255
    return _ChunkMap(png(levels.reshape(shape), CIVIDIS, _LEVELS), shape, low, high)


def _section(number: int, dataset: DatasetInfo, detail: _Detail) -> Iterator[str]:
    yield f'<section aria-labelledby="v{number}"><h2 id="v{number}">{text(dataset.path)}</h2>'
    facts = [
        f"{shape_text(dataset.shape)}, {dataset.dtype}, {dataset.layout}",
        f"{size_text(dataset.nbytes)} of values, stored as {size_text(dataset.stored_nbytes)}",
        f"ratio {ratio_text(dataset.ratio)}" if dataset.ratio else "",
        str(dataset.role.reason),
    ]
    yield f'<p class="words">{"; ".join(text(fact) for fact in facts if fact)}</p>'
    lines = [f"filters: {' | '.join(dataset.filters)}" if dataset.filters else "no filters"]
    lines += [dataset.chunks_in_words] if dataset.chunks_in_words else []
    lines += [f"values: {dataset.values_in_words}"] if dataset.values_in_words else []
    lines += [f"read by {dataset.readers}"] if dataset.filters else []
    lines += [dataset.problem] if dataset.problem else []
    yield items_of([*lines, *(note.text for note in dataset.notes)]) + '<div class="grid">'
    if detail.chunk_map is not None:
        drawn = detail.chunk_map
        words = f"Stored bytes per chunk over the last two axes of {text(dataset.path)}"
        ratio = f"aspect-ratio:{drawn.shape[1]}/{drawn.shape[0]};max-height:24rem"
        yield f'<figure><h3>Chunk map</h3><div class="view error" role="img" aria-label="{words}" style="{ratio}">'
        yield f'<div class="layer k{number}"></div></div>'
        yield bar_of(CIVIDIS, f"{drawn.low:.5g}", f"{drawn.high:.5g}", "bytes")
        yield f"<figcaption>{words}; the mean along the others. Grey: never written.</figcaption></figure>"
    if detail.chart is not None:
        yield from chart_figure(number, 0, detail.chart, None, dataset.path)
    yield "</div></section>"
