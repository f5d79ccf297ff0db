"""Missing-value masks (companions): their names, their flags, and gaps that are filled from neighbouring values."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import within
from tamis.arrays.grid import shape_of
from tamis.arrays.reader import ArrayReader, put
from tamis.errors import DataError, FileError
from tamis.zfp.header import BLOCK_SIDE, MAX_RANK

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.meaning.missing import Flags

COMPANION_ENDING = "_missing"
"""Ending of the name of a companion, behind that of its array."""

MARK = "missing_companion"
"""Attribute of a variable: path of its companion."""

TABLE = "flag_missing_values"
"""Attribute of a companion: item k − 1 is the missing value of flag k."""

ANCILLARY = "ancillary_variables"
"""Attribute of CF: names of variables about the values of this one, separated by blanks."""

SHARED = ("coordinates", "grid_mapping")
"""Attributes about axes that a companion copies from its variable."""


def companion_names(path: str) -> Iterator[str]:
    """Yield names or paths for the companion of an array, from its own; the first free one is used."""
    yield f"{path}{COMPANION_ENDING}"
    yield from (f"{path}{COMPANION_ENDING}{number}" for number in itertools.count(2))


def companion_paths(variable: str, marked: str) -> tuple[str, str]:
    """Return where the companion of a variable may be: in the variable's own group first, as groups may be moved."""
    return posixpath.join(posixpath.dirname(variable), posixpath.basename(marked)), marked


def description(name: str, flags: Flags) -> dict[str, Any]:
    """Return the attributes of a companion for people and CF readers, from the name of its variable."""
    meanings = flags.words()
    return {
        "long_name": f"where {name} is missing",
        "standard_name": "status_flag",
        "flag_values": np.arange(len(meanings), dtype=np.uint8),
        "flag_meanings": " ".join(meanings),
    }


def other_ancillary(ancillary: str, marked: str) -> list[str]:
    """Return the names of the ancillary variables of an array, except its companion, by both attributes."""
    own = marked.rpartition("/")[2]
    return [name for name in ancillary.split() if name != own]


def without_companion(attributes: Mapping[str, Any], others: Iterable[str]) -> dict[str, Any]:
    """Return the attributes of an array without references to its companion; `others` as in `other_ancillary`."""
    own = {name: value for name, value in attributes.items() if name != MARK}
    if ANCILLARY in own:
        own[ANCILLARY] = " ".join(others)
        if not own[ANCILLARY]:
            del own[ANCILLARY]
    return own


_NO_VALUE = (1 << BLOCK_SIDE) - 1
_FOUR_GAPS = 0x01010101


def _nearest(gaps: int) -> list[int]:
    """Return the nearest valid value for each of four values of a line; bit i of `gaps` means that i is a gap."""
    valid = [i for i in range(BLOCK_SIDE) if not gaps >> i & 1]
    return [min(valid, key=lambda other: abs(other - i), default=i) for i in range(BLOCK_SIDE)]


_NEAREST = np.array([_nearest(gaps) for gaps in range(1 << BLOCK_SIDE)])


def fill_gaps(values: NDArray[Any], gaps: NDArray[np.bool_], chunk: tuple[int, ...]) -> NDArray[Any]:
    """Return values whose gaps are filled.

    In a block of 4^d with valid values, each gap gets the nearest of them along the second axis, then the third, …, and
    last along the slowest, which is usually time, because coasts do not move. Blocks without valid values get one value
    of the chunk, which takes almost no space, or 0 if the chunk has none. Values are only copied, never computed, so
    any type works.
    """
    if not gaps.any():
        return values
    valid = np.flatnonzero(~gaps)
    usual = values.reshape(-1)[valid[valid.size // 2]] if valid.size else values.dtype.type(0)
    filled = np.where(gaps, usual, values)
    shape = tuple(extent for extent, step in zip(values.shape, chunk, strict=True) if step > 1)
    if valid.size and 0 < len(shape) <= MAX_RANK:
        _fill_blocks(filled.reshape(shape), gaps.reshape(shape))
    return filled


def _fill_blocks(values: NDArray[Any], gaps: NDArray[np.bool_]) -> None:
    """Fill blocks with both gaps and valid values, in place."""
    padding = [-extent % BLOCK_SIDE for extent in values.shape]
    whole, whole_gaps = values, gaps
    if any(padding):
        whole, whole_gaps = (np.pad(array, [(0, n) for n in padding], mode="edge") for array in (values, gaps))
    # (blocks, 4) for each axis
    split = list(itertools.chain.from_iterable((extent // BLOCK_SIDE, BLOCK_SIDE) for extent in whole.shape))
    blocks, holes = whole.reshape(split), whole_gaps.reshape(split)
    mixed = np.nonzero(_mixed(np.ascontiguousarray(holes)))
    if not mixed[0].size:
        return
    # Numbers of the mixed blocks and all their values: numpy puts the axis of the numbers first.
    index: Any = tuple(itertools.chain.from_iterable((numbers, slice(None)) for numbers in mixed))
    blocks[index] = _flow(blocks[index], holes[index])
    if any(padding):
        values[...] = whole[tuple(slice(extent) for extent in values.shape)]


def _mixed(holes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which blocks have both gaps and valid values."""
    any_gap = all_gaps = holes.view("u4")[..., 0]  # the four bytes of a line at once
    for axis in range(holes.ndim - 3, 0, -2):
        any_gap = np.bitwise_or.reduce(any_gap, axis)
        all_gaps = np.bitwise_and.reduce(all_gaps, axis)
    mixed: NDArray[np.bool_] = (any_gap != 0) & (all_gaps != _FOUR_GAPS)
    return mixed


def _flow(blocks: NDArray[Any], gaps: NDArray[np.bool_]) -> NDArray[Any]:
    """Return blocks, numbered along the first axis, filled along one axis after the other."""
    rank = blocks.ndim - 1
    for axis in (*range(2, rank + 1), 1):
        lines = np.moveaxis(gaps, axis, 0).view(np.uint8)
        line_gaps = lines[0] | lines[1] << 1 | lines[2] << 2 | lines[3] << 3
        source = np.moveaxis(_NEAREST[line_gaps], -1, axis)
        blocks = np.take_along_axis(blocks, source, axis)
        gaps = np.broadcast_to(np.expand_dims(line_gaps == _NO_VALUE, axis), gaps.shape)
    return blocks


@dataclass(frozen=True, slots=True)
class CompanionFlags:
    """The flags of a variable, with their meaning."""

    flags: Flags  # The table of missing values
    label: str  # File and path of the companion, for messages
    path: str  # Path of the companion
    # Shape of the companion. It may differ from that of the variable, if another program changed the variable.
    shape: tuple[int, ...]

    def read(self, part: Region, read: Callable[[Region], NDArray[Any]]) -> NDArray[Any]:
        """Return the flags of a part of the variable, read by a function; beyond the companion they are 0."""
        inside = tuple(slice(axis.start, min(axis.stop, n)) for axis, n in zip(part, self.shape, strict=True))
        if inside == part:
            return read(part)
        flags = np.zeros(shape_of(part), np.uint8)
        if all(axis.start < axis.stop for axis in inside):
            flags[within(inside, part)] = read(inside)
        return flags

    def other_shape(self, shape: tuple[int, ...] | None) -> str:
        """Return a text if the companion and the variable have different shapes; empty if not."""
        if self.shape == shape:
            return ""
        difference = f"its missing-value mask {self.path} has shape {self.shape}, not {shape}"
        return f"{difference}: values beyond it are read as stored"

    def restore(self, values: NDArray[Any], flags: NDArray[np.uint8]) -> NDArray[Any]:
        """Restore missing values, in place; see `Flags.restore`."""
        try:
            self.flags.restore(values, flags)
        except DataError as error:
            raise FileError(f"{self.label}: {error}") from error
        return values


class RestoredReader:
    """Values of a variable with restored missing values. Threads may share it."""

    def __init__(self, values: ArrayReader, companion: CompanionFlags, flags: ArrayReader) -> None:
        self.shape = values.shape
        self.dtype = values.dtype
        self.chunk_shape = values.chunk_shape
        self._values = values
        self._companion = companion
        self._flags = flags

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""
        values = self._values.read(part)
        flags = self._companion.read(part, self._flags.read)
        if flags.any():
            values = self._companion.restore(np.array(values), flags)
        return put(values, out)

    def close(self) -> None:
        """Close values and flags."""
        self._values.close()
        self._flags.close()
