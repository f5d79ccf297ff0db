"""The page of `tamis inspect --html`: what takes the space in a file, its filters, and its chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tamis.errors import TamisError
from tamis.formats import open_store
from tamis.formatting import percent_text, plural, ratio_text, shape_text, size_text
from tamis.jobs.inspect.dataset_info import COLUMNS, DatasetInfo, row
from tamis.jobs.report import MADE_BY, ChunkFigures, chunk_figures, items_of, table_of_rows, text, whole_page
from tamis.safety import reading

_MOST_BARS, _MOST_DATASETS, _MOST_ROWS = 40, 20, 400


def file_page(path: str, nbytes: int, datasets: Sequence[DatasetInfo], document: Mapping[str, Any]) -> str:
    """Return the page of a file, which carries the JSON of its inspection."""
    largest = sorted(datasets, key=lambda dataset: -dataset.stored_nbytes)
    shown = largest[:_MOST_DATASETS]
    figures = _figures(path, shown)
    title = os.path.basename(path.rstrip("/")) or path
    body = [
        f"<header><h1>{text(title)}</h1>",
        f'<div class="verdict"><p>{text(_sentence(nbytes, largest), 2000)}</p></div></header><main>',
        *_bars(nbytes, largest),
        *_table(datasets),
    ]
    for number, (dataset, own) in enumerate(zip(shown, figures, strict=True)):
        body += _section(number, dataset, own)
    body.append(f"</main><footer>{MADE_BY}</footer>")
    charts = [{"path": dataset.path, "charts": own.charts} for dataset, own in zip(shown, figures, strict=True)]
    styles = "".join(own.styles for own in figures)
    return whole_page(f"tamis inspect: {title}", body, {"datasets": charts, "file": document}, styles=styles)


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


def _figures(path: str, datasets: Sequence[DatasetInfo]) -> list[ChunkFigures]:
    """Return the figures of the chunks of datasets; none where they are not known."""
    figures = []
    with open_store(path) as store:
        for number, dataset in enumerate(datasets):
            own = ChunkFigures()
            with suppress(TamisError, KeyError), reading(path, dataset=dataset.path):
                own = chunk_figures(store.array(dataset.path), dataset.path, number)
            figures.append(own)
    return figures


def _section(number: int, dataset: DatasetInfo, figures: ChunkFigures) -> Iterator[str]:
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
    yield from figures.lines
    yield "</div></section>"
