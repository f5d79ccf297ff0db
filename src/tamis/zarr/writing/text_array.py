"""Texts of varying length in a new Zarr hierarchy, encoded by zarr-python."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import zarr

from tamis.chunks.boxes import several_chunks
from tamis.chunks.grid import Grid
from tamis.chunks.regions import Parts
from tamis.store.array import StoredArray
from tamis.store.data_model import NamedArray
from tamis.zarr.attribute_types import types_of, with_types_of
from tamis.zarr.references.array_metadata import DIMENSIONS, json_attributes
from tamis.zarr.stored.zarr_store import quietly
from tamis.zarr.writing.zarr_form import ZarrForm

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
            fill_value=None if form.zarr_format == 2 else "",  # xarray takes the one of Zarr 2 for missing
            zarr_format=form.zarr_format,
            attributes=attributes,
            dimension_names=variable.dimensions if form.zarr_format == 3 else None,
        )
    with closing(array.open_reader()) as reader:
        for part in Parts(Grid(array.shape, steps)) if array.size else ():
            created[part or ...] = np.asarray(reader.read(part), object)
