"""Arrays of Zarr whose chunk files are copied, because HDF5 has no filters for their codecs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.arrays.grid import default_chunks
from tamis.arrays.threads import ordered_map
from tamis.errors import FileError
from tamis.filters import Deflate, Filter, Shuffle
from tamis.formats.zarr.array_metadata import DIMENSIONS, Json, write_json
from tamis.formats.zarr.codec_choice import choose_codecs
from tamis.formats.zarr.stored.array import ZarrArray
from tamis.formats.zarr.stored.attributes import Types, types_of, with_types_of
from tamis.pipeline import Pipeline
from tamis.rewrite.growth import compresses
from tamis.rewrite.rewrite import Rewrite
from tamis.rewrite.streams import as_stored, masks_of
from tamis.safety.library_errors import disk_text

if TYPE_CHECKING:
    from tamis.formats.zarr.writing.writer import ZarrForm
    from tamis.stores.data_model import NamedArray
    from tamis.stores.protocols import StoredArray

_LEVEL = 4


def kept_plan(array: StoredArray) -> Rewrite:
    """Return how an array is stored without a recipe.

    Chunks stay unchanged if every reader of Zarr has codecs for them, and also if filters were lossy, because their
    values would otherwise take more space. Other filters are replaced by shuffle and deflate, and other values get
    chunks.
    """
    carried = as_stored(array)
    if carried is not None:
        codecs = choose_codecs(carried.pipeline, array.chunk, dict.fromkeys(masks_of(array), 1))
        if codecs.masked is None or carried.pipeline.error_bound != 0:
            return carried
    if array.dtype is None:
        raise FileError(f"{array.label}: expected numbers, characters or text, got {array.type_text}").at(
            dataset=array.path
        )
    chunk_shape = array.chunk_shape or default_chunks(array.shape, array.dtype.itemsize, zfp=False)
    filters: list[Filter] = []
    if compresses(array.pipeline):
        filters = [*([Shuffle()] if array.dtype.itemsize > 1 else ()), Deflate(_LEVEL)]
    return Rewrite(array.path, Pipeline(filters), np.dtype(array.dtype), chunk_shape)


_OF_NCZARR = ("_nczarr", "_NCZARR")
"""Beginnings of attributes that name objects of the whole store."""


@dataclass(slots=True)
class CopiedArray:
    """A new array with the files of another one; see `tamis.formats.zarr.writing.new_array.NewArray`."""

    source: Path  # The folder of the other array
    path: str  # Path in the new hierarchy
    dimensions: tuple[str, ...]  # Name of each axis
    attributes: Mapping[str, Any]
    types: Types  # Types of the attributes

    def write_metadata(self, root: Path, form: ZarrForm) -> Json:
        """Write the metadata of the other array, with names for all axes, into the folder of the array."""
        folder = root / self.path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        if form.zarr_format == 2:
            (folder / ".zarray").write_bytes((self.source / ".zarray").read_bytes())
            return write_json(
                folder / ".zattrs", {**self.attributes, DIMENSIONS: [*self.dimensions], **with_types_of(self.types)}
            )
        metadata = json.loads((self.source / "zarr.json").read_text(encoding="utf-8"))
        metadata |= {"attributes": {**self.attributes}, "dimension_names": [*self.dimensions]}
        return write_json(folder / "zarr.json", metadata)


def copied(variable: NamedArray, array: StoredArray, root: Path, form: ZarrForm, threads: int) -> CopiedArray | None:
    """Copy the chunk files of an array, and compare the copies; None if the new hierarchy needs other chunks."""
    if not isinstance(array, ZarrArray) or not stays(array, form):
        return None
    target = root / variable.path.strip("/")

    def copy(file: Path) -> None:
        place = target / file.relative_to(array.folder)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            data = file.read_bytes()
            place.write_bytes(data)
            same = place.read_bytes() == data
        except OSError as error:
            raise FileError(f"{place}: cannot be copied from {file}: {disk_text(error)}").at(path=file) from error
        if not same:
            raise FileError(f"{place}: expected the bytes of {file}, read different ones back").at(path=place)

    with closing(ordered_map(copy, array.chunk_paths(), threads)) as done:
        for _ in done:
            pass
    attributes = {name: value for name, value in dict(array.array.attrs).items() if not name.startswith(_OF_NCZARR)}
    attributes.pop(DIMENSIONS, None)
    types = types_of(variable.attributes, variable.forms)
    return CopiedArray(array.folder, variable.path, variable.dimensions, attributes, types)


def stays(array: StoredArray, form: ZarrForm) -> bool:
    """Return whether the new hierarchy keeps the same chunk files, and no HDF5 filters replace them."""
    if not isinstance(array, ZarrArray):
        return False
    metadata = array.folder / ("zarr.json" if form.zarr_format == 3 else ".zarray")
    return (
        array.filters is None
        and array.zarr_format == form.zarr_format
        and not array.has_companion
        and not array.is_sharded
        and form.shard_counts(array.grid) is None
        and metadata.is_file()
    )
