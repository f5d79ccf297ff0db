"""The attribute actual_range of a variable that gets more values, of which it must be true, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis import meaning
from tamis.arrays.grid import grid_of
from tamis.formats.registry import open_store
from tamis.rewrite.packed_array import packing_range_of
from tamis.stores.extension import Piece
from tamis.xarray.appended_content import Change

ACTUAL_RANGE = "actual_range"


def range_of_both(change: Change, pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return the actual_range of a variable with its new values, as they are stored; nothing if the file has none.

    It is in units of the variable, or in those of packed integers if the file has integers there.
    """
    found = change.found
    known = meaning.numbers(found.array.attributes, ACTUAL_RANGE)
    if known.size != 2 or found.array.type.numbers is None:
        return {}
    packing = found.array.meaning.packing if known.dtype.kind in "iu" else None
    ends = [known] if change.grows else []
    for piece in pieces:
        with open_store(piece.path) as store:
            array = store.array(piece.array)
            shape = array.storage.chunk_shape or tuple(max(extent, 1) for extent in array.shape)
            new = packing_range_of(array, grid_of(array.shape, shape))
        if new.low <= new.high:
            values = np.array([new.low, new.high])
            ends.append(values if packing is None else np.rint((values - packing.offset) / packing.scale))
    if not ends:
        return {}
    result = np.array([np.min(ends), np.max(ends)]).astype(known.dtype)
    return {} if np.array_equal(result, known) else {ACTUAL_RANGE: result}
