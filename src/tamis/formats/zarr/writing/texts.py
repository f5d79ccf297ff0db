"""How texts of varying length are stored in a new array of Zarr: like those of Zarr that they are copied from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numcodecs
import numpy as np
from zarr.registry import get_codec_class

from tamis.arrays.gather import several_chunks
from tamis.arrays.grid import Grid
from tamis.filters import ChunkType
from tamis.formats.zarr.codec_choice import choose_codecs
from tamis.formats.zarr.stored.array import ZarrArray
from tamis.formats.zarr.stored.codecs import chunk_filters

if TYPE_CHECKING:
    from tamis.formats.zarr.array_metadata import Json
    from tamis.formats.zarr.writing.layout import ZarrLayout
    from tamis.stores.protocols import StoredArray

_COUNT = 1 << 16
"""Texts in a chunk of an array that has no chunks."""

_TEXT = "vlen-utf8"
"""The codec that makes bytes of texts, in both versions of Zarr."""

_BYTES = ChunkType(np.dtype(np.uint8), (1,))
"""What the codecs after it get."""


class TextLayout(NamedTuple):
    """The layout of an array of texts of varying length."""

    chunk_shape: tuple[int, ...]
    shard_shape: tuple[int, ...] | None
    fill_value: str | None
    codecs: dict[str, Any]  # As zarr-python's functions take them
    notes: tuple[str, ...]  # What the new array does not have of its source

    @classmethod
    def of(cls, array: StoredArray, form: ZarrLayout) -> TextLayout:
        """Return the layout of a copy: that of the array, if that is one of Zarr and the version has it."""
        chunk_shape = array.storage.chunk_shape if isinstance(array, ZarrArray) else None
        if chunk_shape is None:
            steps = several_chunks(array.shape, (1,) * len(array.shape), _COUNT)
            chunk_shape = tuple(max(step, 1) for step in steps)
        counts = form.shard_counts(Grid(array.shape, chunk_shape))
        shards = None if counts is None else tuple(map(int.__mul__, chunk_shape, counts))
        # xarray treats the fill value of Zarr 2 as missing
        usual = None if form.zarr_format == 2 else ""
        if not isinstance(array, ZarrArray):
            return cls(chunk_shape, shards, usual, {}, ())
        codecs = _codecs_of(array, form.zarr_format)
        notes = [lost_fill(array)] if array.zarr_format > form.zarr_format else []
        if codecs is None:
            names = "|".join(str(codec.get("id", codec.get("name"))) for codec in _after_text(array))
            notes.append(f"{names} became the filters that zarr-python chooses for texts in Zarr {form.zarr_format}")
        if array.varying is not None:
            notes.append(f"its chunks of several shapes became chunks of {chunk_shape}")
        fill = str(array.fill.value) if array.fill.is_chosen and array.zarr_format <= form.zarr_format else usual
        return cls(chunk_shape, shards, fill, codecs or {}, tuple(filter(None, notes)))

    def arguments(self, *, is_copy: bool) -> dict[str, Any]:
        """Return arguments of ``zarr.create_array``; chunks of a copy that only have its fill value are not stored."""
        is_full = self.fill_value is None or not is_copy  # values of absent chunks are undefined without a fill value
        return {
            "chunks": self.chunk_shape or "auto",
            "shards": self.shard_shape,
            "fill_value": self.fill_value,
            "config": {"write_empty_chunks": is_full},
            **self.codecs,
        }


def lost_fill(array: ZarrArray) -> str:
    """Return the note that texts lose their fill value in Zarr 2; empty if that is the empty text."""
    if not (fill := str(array.fill.value)):
        return ""
    return f"its fill value {fill!r} is left out, and all chunks are stored: xarray takes that of Zarr 2 for missing"


def _after_text(array: ZarrArray) -> list[Json]:
    return [codec for codec in array.chunk_codecs if codec.get("id", codec.get("name")) != _TEXT]


def _codecs_of(array: ZarrArray, zarr_format: int) -> dict[str, Any] | None:
    """Return the codecs of an array, without that of texts, as arguments of zarr-python; None if a version lacks them.

    They stay the same if the version stays; otherwise they are those of the same filters.
    """
    if array.zarr_format == zarr_format == 3:
        return {"filters": array.array.filters or None, "compressors": array.array.compressors or None}
    configs = tuple(_after_text(array))
    if array.zarr_format != zarr_format:
        known = chunk_filters(json.dumps(configs, default=str), _BYTES)
        if known is None or known.marked is not None:
            return None
        chosen = choose_codecs(known.pipeline, _BYTES, {})
        configs = chosen.version_2 if zarr_format == 2 else (chosen.version_3 or ())[1:]
    if zarr_format == 2:
        members = [numcodecs.get_codec(config) for config in configs]
        return {"filters": [numcodecs.VLenUTF8(), *members[:-1]], "compressors": members[-1] if members else None}
    return {"compressors": [get_codec_class(codec["name"]).from_dict(codec) for codec in configs] or None}
