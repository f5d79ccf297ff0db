"""Maps of one field as PNG with a palette: source and target side by side, and the error."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.jobs.result import json_fields

if TYPE_CHECKING:
    from tamis.jobs.report.pair import Pair

Floats = NDArray[np.float64]
Starts = NDArray[np.int64]

CIVIDIS = (
    "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8b8778 9a9376 aaa073 bbad6d ccba64 ddc858 efd748"
    " fee838"
)
"""Colours of values, from low to high: the same order for all kinds of colour vision."""
RED_BLUE = "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f"
"""Colours of errors, symmetric, from negative to positive."""

_SIDE = 512
_LEAST_SIDE = 96
_THIN = 4  # rows or columns that a picture has at least, if the field has them
_MISSING = 255
_VALUE_LEVELS, _ERROR_LEVELS = 127, 15
_BAND_COUNT = 1 << 17


class Box(NamedTuple):
    """Edges of a map in degrees, where its axes are longitude and latitude."""

    west: float
    east: float
    south: float
    north: float


@dataclass(frozen=True, slots=True)
class FieldMap:
    """The pictures of one field.

    Parameters
    ----------
    title
        The field in words.
    width, height
        Size of each picture.
    pair, error
        PNG of source and target side by side, and of the error; empty if they were left out.
    low, high
        Range of the colours of the values.
    reach
        Largest error of the colours.
    worst
        Place of the largest error in the picture, as shares of width and height from the upper left.
    box
        Edges in degrees, if coastlines fit.
    directions
        What goes up or down, and right, in words.
    """

    title: str
    width: int
    height: int
    pair: bytes = field(repr=False)
    error: bytes = field(repr=False)
    low: float
    high: float
    reach: float
    worst: tuple[float, float] | None = None
    box: Box | None = None
    directions: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of both pictures."""
        return len(self.pair) + len(self.error)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON, without the pictures."""
        document = json_fields(self)
        del document["pair"], document["error"]
        return document


class Reduced(NamedTuple):
    """A field at the size of its picture, missing values as NaN."""

    before: Floats
    after: Floats
    error: Floats  # Of each picture element the largest error, with its sign
    worst: tuple[int, int] | None  # The worst value in the field
    extents: tuple[int, int]  # Of the field


def reduced(pair: Pair, lead: Sequence[int], side: int = _SIDE) -> Reduced:
    """Read a field in bands of rows, and make it small enough."""
    rows, columns = pair.shape[-2:]
    height, width = _extents((rows, columns), side)
    starts, across = _starts(rows, height), _starts(columns, width)
    band = max(1, _BAND_COUNT // max(columns, 1) * height // rows)
    first: tuple[slice, ...] = tuple(slice(at, at + 1) for at in lead)
    parts: list[list[Floats]] = []
    worst, index = 0.0, None
    for number in range(0, height, band):
        own = starts[number : number + band]
        start, stop = int(own[0]), int(starts[number + band]) if number + band < height else rows
        values = pair.read((*first, slice(start, stop), slice(0, columns)))
        shape = stop - start, columns
        before, after = (part.reshape(shape).astype(np.float64) for part in (values.before, values.after))
        error = after - before
        largest = np.abs(error)
        if float(largest.max()) > worst:
            worst = float(largest.max())
            row, column = np.unravel_index(int(largest.argmax()), shape)
            index = start + int(row), int(column)
        if values.valid is not None:
            absent = ~values.valid.reshape(shape)
            before[absent] = after[absent] = error[absent] = np.nan
        parts.append([how(table, own - start, across) for table, how in zip((before, after, error), _HOW, strict=True)])
    tables = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Reduced(tables[0], tables[1], tables[2], index, (rows, columns))


def _extents(shape: tuple[int, int], side: int) -> tuple[int, int]:
    """Return the size of a picture whose longer side is limited."""
    share = min(1.0, side / max(shape))
    height, width = (min(extent, max(round(extent * share), _THIN)) for extent in shape)
    return height, width


def _starts(extent: int, count: int) -> Starts:
    """Return where each of a number of parts of an axis begins, as even as whole numbers can be."""
    return np.arange(count) * extent // count


def _mean(table: Floats, rows: Starts, columns: Starts) -> Floats:
    """Return the means of the valid values in each part of a table."""
    valid = np.isfinite(table)
    count = _in_parts(np.add, valid.astype(np.float64), rows, columns)
    total = _in_parts(np.add, np.where(valid, table, 0.0), rows, columns)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _farthest(table: Floats, rows: Starts, columns: Starts) -> Floats:
    """Return the valid value with the largest magnitude in each part of a table."""
    low, high = (_in_parts(extreme, table, rows, columns) for extreme in (np.fmin, np.fmax))
    return np.asarray(np.where(-low > high, low, high))


def _in_parts(function: np.ufunc, table: Floats, rows: Starts, columns: Starts) -> Floats:
    return np.asarray(function.reduceat(function.reduceat(table, rows, axis=0), columns, axis=1))


_HOW = _mean, _mean, _farthest
"""How source, target and error become smaller."""


def field_map(
    field_of: Reduced, title: str, most_nbytes: int, *, box: Box | None, flip: bool, axes: tuple[str, str]
) -> FieldMap:
    """Draw a field, as large as the bytes allow."""
    valid = np.isfinite(field_of.before)
    low, high = (float(end(field_of.before[valid])) if valid.any() else 0.0 for end in (np.min, np.max))
    reach = float(np.abs(field_of.error[np.isfinite(field_of.error)]).max(initial=0.0))
    tables = [table[::-1] if flip else table for table in field_of[:3]]
    worst = None
    if field_of.worst is not None and reach:
        y, x = ((at + 0.5) / extent for at, extent in zip(field_of.worst, field_of.extents, strict=True))
        worst = x, 1 - y if flip else y
    drawn, side = tables, max(tables[0].shape)
    while True:
        before, after = (_levels(table, low, high, _VALUE_LEVELS) for table in drawn[:2])
        errors = _levels(drawn[2], -reach, reach, _ERROR_LEVELS)
        pictures = png(np.hstack([before, after]), CIVIDIS, _VALUE_LEVELS), png(errors, RED_BLUE, _ERROR_LEVELS)
        nbytes = sum(map(len, pictures))
        if nbytes <= most_nbytes or side <= _LEAST_SIDE:
            break
        side = max(_LEAST_SIDE, int(side * math.sqrt(most_nbytes / nbytes) * 0.97))
        shape = tables[0].shape
        parts = [_starts(*both) for both in zip(shape, _extents((shape[0], shape[1]), side), strict=True)]
        drawn = [how(table, *parts) for table, how in zip(tables, _HOW, strict=True)]
    height, width = drawn[0].shape
    directions = f"{axes[0]} goes {'up' if flip else 'down'}, {axes[1]} to the right"
    return FieldMap(title, width, height, *pictures, low, high, reach, worst, box, directions)


def _levels(table: Floats, low: float, high: float, count: int) -> NDArray[np.uint8]:
    """Return the level of each value between two ends; missing ones have their own."""
    span = high - low
    with np.errstate(invalid="ignore", over="ignore"):
        share = (table - low) / span if span > 0 and math.isfinite(span) else np.where(np.isfinite(table), 0.5, np.nan)
    levels: NDArray[np.uint8] = np.clip(np.nan_to_num(share) * count, 0, count - 1).astype(np.uint8)
    levels[~np.isfinite(table)] = _MISSING
    return levels


def palette(colours: str, count: int) -> NDArray[np.uint8]:
    """Return this many colours between given ones, in equal steps."""
    given = np.array([list(bytes.fromhex(colour)) for colour in colours.split()], float)
    at = np.linspace(0, len(given) - 1, count)
    table: Floats = np.stack([np.interp(at, np.arange(len(given)), part) for part in given.T], 1)
    return table.round().astype(np.uint8)


def png(levels: NDArray[np.uint8], colours: str, count: int) -> bytes:
    """Return an image with a palette; missing elements are transparent."""
    height, width = levels.shape
    table = np.zeros((256, 3), np.uint8)
    table[:count] = palette(colours, count)
    opaque = bytes([255] * 255 + [0])
    rows = min((_filtered(levels, kind) for kind in range(3)), key=lambda data: len(zlib.compress(data, 1)))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (b"IHDR", header), (b"PLTE", table.tobytes()), (b"tRNS", opaque), (b"IDAT", zlib.compress(rows, 9))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in (*chunks, (b"IEND", b"")))


def _filtered(levels: NDArray[np.uint8], kind: int) -> bytes:
    """Return the rows after one of PNG's filters: 0 none, 1 the value before, 2 the value above."""
    rows = np.zeros((levels.shape[0], levels.shape[1] + 1), np.uint8)
    rows[:, 0] = kind
    rows[:, 1:] = levels
    if kind == 1:
        rows[:, 2:] -= levels[:, :-1]
    elif kind == 2:
        rows[1:, 1:] -= levels[:-1]
    return rows.tobytes()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
