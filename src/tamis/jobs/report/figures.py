"""Figures of how the chunks of an array are stored: a map, and a chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.jobs.report import charts
from tamis.jobs.report.maps import CIVIDIS, png
from tamis.jobs.report.parts import bar_of, chart_figure, picture_rule, text

if TYPE_CHECKING:
    from tamis.stores import StoredArray

_MOST_SIDE = 256
_LEVELS = 127


class ChunkFigures(NamedTuple):
    """Figures of the chunks of an array in a page; empty where there is nothing to show."""

    lines: tuple[str, ...] = ()  # HTML
    styles: str = ""  # Rules for these lines
    charts: tuple[dict[str, Any], ...] = ()  # What the script of the page draws, for its document


def chunk_figures(array: StoredArray, path: str, number: int) -> ChunkFigures:
    """Return the figures of an array that a page shows by some path, as the variable of this number."""
    if not array.shape or array.storage.chunk_shape is None:
        return ChunkFigures()
    chart, chunk_map = charts.chunks(array), _chunk_map(array)
    lines: list[str] = []
    if chunk_map is not None:
        lines += _map_figure(chunk_map, path, number)
    if chart is not None:
        lines += chart_figure(number, 0, chart, None, path)
    styles = "" if chunk_map is None else picture_rule(f"k{number}", chunk_map.picture)
    return ChunkFigures(tuple(lines), styles, () if chart is None else (chart.to_dict(),))


class _ChunkMap(NamedTuple):
    """Stored bytes over the last two axes of the grid of chunks."""

    picture: bytes
    shape: tuple[int, int]
    low: float
    high: float


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


def _map_figure(drawn: _ChunkMap, path: str, number: int) -> Iterator[str]:
    words = f"Stored bytes per chunk over the last two axes of {text(path)}"
    ratio = f"aspect-ratio:{drawn.shape[1]}/{drawn.shape[0]};max-height:24rem"
    yield f'<figure><h3>Chunk map</h3><div class="view error" role="img" aria-label="{words}" style="{ratio}">'
    yield f'<div class="layer k{number}"></div></div>'
    yield bar_of(CIVIDIS, f"{drawn.low:.5g}", f"{drawn.high:.5g}", "bytes")
    yield f"<figcaption>{words}; the mean along the others. Grey: never written.</figcaption></figure>"
