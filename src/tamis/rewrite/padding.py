"""What a chunk holds beyond the edge of its array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import largest_error, same_bits
from tamis.chunks.grid import pads_little
from tamis.zfp.checks import BLOCK_SIDE

_MOST_COUNTS = 64
"""Numbers of chunks along an axis that are tried."""


@dataclass(frozen=True, slots=True)
class Padding:
    """The values of a chunk beyond the array: the fill value along axes that can grow, the last values along others.

    Other programs make arrays longer, and may leave steps out. They read such a step from what the chunk holds, so that
    it has to be the fill value, as HDF5 itself pads. Beyond other axes nobody reads; repeated values cost few bytes
    there and do no harm to the blocks of zfp.

    Parameters
    ----------
    growing
        For each axis whether it can grow; without axes none can.
    fill
        The fill value, of the type of the chunks.
    exact
        Whether it has to keep its bits, since somebody chose it. The 0 that HDF5 has by default keeps the bound of the
        filters, or its bits where they have no bound.
    """

    growing: tuple[bool, ...] = ()
    fill: Any = 0
    exact: bool = True

    def pad(self, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a whole chunk that begins with some values."""
        whole = values
        if self.is_read(values.shape, shape):
            whole = np.full(self._readable(values.shape, shape), self.fill, values.dtype)
            whole[tuple(map(slice, values.shape))] = values
        if whole.shape == shape:
            return whole
        return np.pad(whole, [(0, step - n) for step, n in zip(shape, whole.shape, strict=True)], mode="edge")

    def is_read(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """Return whether a chunk with so many values reaches beyond the array along an axis that can grow."""
        return next(self._beyond(extents, shape), None) is not None

    def is_kept(
        self, whole: NDArray[Any], decoded: NDArray[Any], extents: tuple[int, ...], bound: float | None
    ) -> bool:
        """Return whether what may be read later of a padded chunk decodes to what it should be.

        Parameters
        ----------
        whole, decoded
            All of a chunk before and after encoding.
        extents
            Of its values.
        bound
            Of the filters.
        """
        for part in self._beyond(extents, whole.shape):
            before, after = whole[part], decoded[part]
            if self.exact or bound is None:
                if not same_bits(before, after):
                    return False
            elif largest_error(before, after) > bound:
                return False
        return True

    def shares_blocks(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """Return whether zfp codes what may be read later together with values, or cannot code it at all."""
        if np.asarray(self.fill).dtype.kind == "f" and not np.isfinite(self.fill):
            return self.is_read(extents, shape)
        axes = zip(self.growing, extents, shape, strict=False)
        return any(grows and 0 < n < step and n % BLOCK_SIDE for grows, n, step in axes)

    def lossless_steps(self, axis: int, extent: int, step: int) -> int:
        """Return how many steps at the end of an axis lie in chunks that zfp cannot take, cut by so many steps."""
        left = extent % step
        shape = tuple(step if at == axis else 1 for at in range(len(self.growing)))
        extents = tuple(left if at == axis else 1 for at in range(len(self.growing)))
        return left if self.shares_blocks(extents, shape) else 0

    def lossless_share(self, shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> float:
        """Return the fraction of the values of an array that lie in chunks that zfp cannot take."""
        axes = enumerate(zip(shape, chunk_shape, strict=True))
        return 1 - math.prod(1 - self.lossless_steps(axis, n, step) / max(n, 1) for axis, (n, step) in axes)

    def best_chunks(self, shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return chunks up to twice as long, of which zfp can take more where some are partial."""
        axes = enumerate(zip(shape, chunk_shape, strict=True))
        return tuple(
            self._better_step(axis, n, min(2 * step, n)) if self.lossless_steps(axis, n, step) else step
            for axis, (n, step) in axes
        )

    def _better_step(self, axis: int, extent: int, most: int) -> int:
        """Return whole blocks, or even parts of the extent, nearly whole blocks, if that is better."""
        steps = (extent // count for count in _counts(extent, most) if extent % count == 0)
        even = [step for step in steps if step >= BLOCK_SIDE and pads_little(step)]
        return min([self.best_step(axis, extent, most), *even[:1]], key=partial(self.lossless_steps, axis, extent))

    def best_step(self, axis: int, extent: int, most: int, least: int = BLOCK_SIDE) -> int:
        """Return the extent of chunks along an axis, whole blocks of zfp, with which it can take most of the steps.

        Parameters
        ----------
        axis, extent
            The axis, and how long it is.
        most, least
            Longest and shortest chunk.
        """
        even = (extent // count // BLOCK_SIDE * BLOCK_SIDE for count in _counts(extent, most))
        steps = [most // BLOCK_SIDE * BLOCK_SIDE or most, *(step for step in even if max(least, BLOCK_SIDE) <= step)]
        # In steps of 5 %: less is not worth smaller chunks.
        return min(steps, key=lambda step: (20 * self.lossless_steps(axis, extent, step) // max(extent, 1), -step))

    def _readable(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
        axes = zip(self.growing, extents, shape, strict=True)
        return tuple(step if grows else n for grows, n, step in axes)

    def _beyond(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
        """Yield the parts of a chunk beyond each axis that can grow."""
        for axis, (grows, n, step) in enumerate(zip(self.growing, extents, shape, strict=False)):
            if grows and 0 < n < step:
                part = [*map(slice, self._readable(extents, shape))]
                part[axis] = slice(n, step)
                yield tuple(part)


def _counts(extent: int, most: int) -> range:
    """Return numbers of chunks along an axis, from those of the longest chunks on."""
    fewest = -(-extent // most)
    return range(max(fewest, 1), fewest + _MOST_COUNTS)
