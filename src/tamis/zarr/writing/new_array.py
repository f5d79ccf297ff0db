"""The metadata of a new Zarr array."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tamis.store.data_model import AttributeForm
from tamis.zarr.attribute_types import Types, types_of, with_types_of
from tamis.zarr.references.array_metadata import attributes_2, metadata_2, metadata_3
from tamis.zarr.references.codec_choice import Codecs
from tamis.zarr.writing.zarr_form import ZarrForm
from tamis.zarr.writing.zarr_writer import ZarrWriter

Json = dict[str, Any]


@dataclass(slots=True)
class NewArray:
    """A new array; see `tamis.zarr.references.array_metadata.Described`.

    Parameters
    ----------
    path
        Path in the hierarchy.
    dimensions
        Name of each axis.
    attributes
        As readers of netCDF have them.
    dtype
        Type of the values in the chunks.
    fill_value
        Value of chunks that are not stored.
    writer
        Writer of the chunks.
    forms
        Forms of the attributes that their values do not tell.
    """

    path: str
    dimensions: tuple[str, ...]
    attributes: Mapping[str, Any]
    dtype: np.dtype[Any]
    fill_value: Any
    writer: ZarrWriter
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

    def write_metadata(self, root: Path, form: ZarrForm) -> None:
        """Write the metadata into the folder of the array."""
        folder = root / self.path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        if form.zarr_format == 2:
            write_json(folder / ".zarray", metadata_2(self))
            write_json(folder / ".zattrs", attributes_2(self) | with_types_of(self.types))
            return
        metadata = metadata_3(self)
        if (counts := form.shard_counts(self.writer.grid)) is not None:
            metadata |= _sharded(metadata, counts)
        write_json(folder / "zarr.json", metadata)


def _sharded(metadata: Json, counts: tuple[int, ...]) -> Json:
    """Return what changes in metadata if files have several chunks."""
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


def write_json(path: Path, content: Json) -> None:
    """Write a metadata file."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
