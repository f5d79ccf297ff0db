"""Chunked arrays in any storage: the grid of chunks, their index, sources of bytes, readers, selections, threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.arrays.gather import block_shape, read_slab_by_slab, whole
    from tamis.arrays.grid import (
        LARGE_AXES,
        MOST_OBJECT_VALUES_NBYTES,
        OBJECT_NBYTES,
        Grid,
        Origin,
        Region,
        default_chunks,
        grid_of,
        origin_of,
        whole_blocks,
        zfp_padding,
    )
    from tamis.arrays.index import Parts, UnsureIndexError, joined
    from tamis.arrays.reader import ArrayReader, ContiguousReader
    from tamis.arrays.selection import Selection
    from tamis.arrays.threads import checked_threads, ordered_map

__all__ = [
    "LARGE_AXES",
    "MOST_OBJECT_VALUES_NBYTES",
    "OBJECT_NBYTES",
    "ArrayReader",
    "ContiguousReader",
    "Grid",
    "Origin",
    "Parts",
    "Region",
    "Selection",
    "UnsureIndexError",
    "block_shape",
    "checked_threads",
    "default_chunks",
    "grid_of",
    "joined",
    "ordered_map",
    "origin_of",
    "read_slab_by_slab",
    "whole",
    "whole_blocks",
    "zfp_padding",
]

__getattr__ = face_names(
    globals(),
    {
        "gather": "block_shape read_slab_by_slab whole",
        "grid": "Grid LARGE_AXES MOST_OBJECT_VALUES_NBYTES OBJECT_NBYTES Origin Region default_chunks grid_of"
        " origin_of whole_blocks zfp_padding",
        "index": "Parts UnsureIndexError joined",
        "reader": "ArrayReader ContiguousReader",
        "selection": "Selection",
        "threads": "checked_threads ordered_map",
    },
)
