"""The metadata of a new Zarr array."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from tamis.arrays.gather import several_chunks
from tamis.arrays.grid import Grid
from tamis.arrays.index import Parts
from tamis.errors import FileError
from tamis.formats.zarr.array_metadata import (
    DIMENSIONS,
    Json,
    attributes_2,
    has_type,
    json_attributes,
    metadata_2,
    metadata_3,
    write_json,
)
from tamis.formats.zarr.stored.attributes import Types, types_of, with_types_of
from tamis.formats.zarr.stored.store import quietly
from tamis.formats.zarr.writing.copied_array import stays

if TYPE_CHECKING:
    from tamis.formats.zarr.codec_choice import Codecs
    from tamis.formats.zarr.writing.writer import ZarrForm, ZarrWriter
    from tamis.stores.data_model import AttributeForm, NamedArray
    from tamis.stores.protocols import StoredArray


def check_array(form: ZarrForm, variable: NamedArray, array: StoredArray) -> None:
    """Raise FileError if a store of this form does not support the values or attributes of an array."""
    if variable.shape != tuple(array.shape):
        raise FileError(
            f"expected as many values as its dimensions have, {variable.shape}, found {array.shape}:"
            " extend the variable in the source"
        )
    json_attributes(variable.path, variable.attributes)
    if variable.is_text or stays(array, form):
        return
    if array.dtype is None:
        raise FileError(f"expected numbers, characters or text, got {array.type_text}")
    dtype = variable.dtype if array.dtype.kind == "V" else array.dtype
    if not has_type(dtype, form.zarr_format):
        raise FileError(f"expected a type that Zarr {form.zarr_format} has, got {array.type_words}")


@dataclass(slots=True)
class NewArray:
    """A new array."""

    path: str  # Path in the hierarchy
    dimensions: tuple[str, ...]  # Name of each axis
    attributes: Mapping[str, Any]  # As readers of netCDF have them
    dtype: np.dtype[Any]  # Type of the values in the chunks
    fill_value: Any  # Value of chunks that are not stored
    writer: ZarrWriter  # Writer of the chunks
    # Forms of the attributes that do not follow from their values
    forms: Mapping[str, AttributeForm] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, slowest axis first."""
        return self.writer.grid.shape

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Chunk shape."""
        return self.writer.grid.chunk_shape

    @property
    def codecs(self) -> Codecs:
        """The codecs of the chunks."""
        return self.writer.codecs

    @property
    def types(self) -> Types:
        """Types of the attributes."""
        return types_of(self.attributes, self.forms)

    @property
    def absent(self) -> int:
        """Number of chunks that are not stored."""
        return self.writer.grid.chunk_count - self.writer.count

    def write_metadata(self, root: Path, form: ZarrForm) -> Json:
        """Write the metadata into the array's folder, which exists if it has chunks, and return them."""
        folder = root / self.path.strip("/")
        if not self.writer.count:
            folder.mkdir(parents=True, exist_ok=True)
        if form.zarr_format == 2:
            write_json(folder / ".zattrs", attributes_2(self) | with_types_of(self.types))
            return write_json(folder / ".zarray", metadata_2(self))
        metadata = metadata_3(self)
        if (counts := form.shard_counts(self.writer.grid)) is not None:
            metadata |= _sharded(metadata, counts)
        return write_json(folder / "zarr.json", metadata)


def _sharded(metadata: Json, counts: tuple[int, ...]) -> Json:
    """Return the changes of metadata for files with several chunks."""
    chunk_shape = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    shard_shape = [step * count for step, count in zip(chunk_shape, counts, strict=True)]
    sharding = {
        "chunk_shape": chunk_shape,
        "codecs": metadata["codecs"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "end",
    }
    return {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard_shape}},
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
    }


_COUNT = 1 << 16
"""Texts in a chunk."""


def write_texts(root: Path, form: ZarrForm, variable: NamedArray, array: StoredArray) -> None:
    """Write an array of texts, in chunks of whole rows, with zarr-python's own codecs."""
    steps = several_chunks(array.shape, (1,) * len(array.shape), _COUNT)
    attributes = json_attributes(variable.path, variable.attributes)
    if form.zarr_format == 2:
        types = types_of(variable.attributes, variable.forms)
        attributes |= {DIMENSIONS: [*variable.dimensions], **with_types_of(types)}
    with quietly():
        created = zarr.create_array(
            str(root / variable.path.strip("/")),
            shape=array.shape,
            dtype=str,
            chunks=tuple(max(step, 1) for step in steps) or "auto",
            fill_value=None if form.zarr_format == 2 else "",  # xarray treats that of Zarr 2 as missing
            zarr_format=form.zarr_format,
            attributes=attributes,
            dimension_names=variable.dimensions if form.zarr_format == 3 else None,
        )
    with closing(array.open_reader()) as reader:
        for part in Parts(Grid(array.shape, steps)) if array.size else ():
            created[part or ...] = np.asarray(reader.read(part), object)
