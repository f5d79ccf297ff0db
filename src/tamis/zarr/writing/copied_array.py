"""Arrays of Zarr whose chunk files are copied, because HDF5 has no filters for their codecs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.chunks.threads import ordered_map
from tamis.errors import FileError
from tamis.store.array import StoredArray
from tamis.store.data_model import NamedArray
from tamis.store.disk import disk_text
from tamis.zarr.attribute_types import Types, types_of, with_types_of
from tamis.zarr.references.array_metadata import DIMENSIONS
from tamis.zarr.stored.zarr_array import ZarrArray
from tamis.zarr.writing.zarr_form import ZarrForm

Json = dict[str, Any]

_OF_NCZARR = ("_nczarr", "_NCZARR")
"""Beginnings of attributes that name objects of the whole store."""


@dataclass(slots=True)
class CopiedArray:
    """A new array whose files are those of another one; see `tamis.zarr.writing.new_array.NewArray`.

    Parameters
    ----------
    source
        The folder of the other array.
    path
        Path in the new hierarchy.
    dimensions
        Name of each axis.
    attributes
        From its JSON.
    types
        Types of the attributes.
    """

    source: Path
    path: str
    dimensions: tuple[str, ...]
    attributes: Mapping[str, Any]
    types: Types

    def write_metadata(self, root: Path, form: ZarrForm) -> None:
        """Write the metadata of the other array, with names for all axes, into the folder of the array."""
        folder = root / self.path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        if form.zarr_format == 2:
            (folder / ".zarray").write_bytes((self.source / ".zarray").read_bytes())
            _write_json(
                folder / ".zattrs", {**self.attributes, DIMENSIONS: [*self.dimensions], **with_types_of(self.types)}
            )
            return
        metadata = json.loads((self.source / "zarr.json").read_text(encoding="utf-8"))
        metadata |= {"attributes": {**self.attributes}, "dimension_names": [*self.dimensions]}
        _write_json(folder / "zarr.json", metadata)


def copied(variable: NamedArray, array: StoredArray, root: Path, form: ZarrForm, threads: int) -> CopiedArray | None:
    """Copy the chunk files of an array, and compare the copies; None if the new hierarchy must have other chunks.

    Raises
    ------
    FileError
        If a file cannot be copied, or its copy has other bytes.
    """
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
            raise FileError(f"{place}: expected the bytes of {file}, read others back").at(path=place)

    with closing(ordered_map(copy, array.chunk_paths(), threads)) as done:
        for _ in done:
            pass
    attributes = {name: value for name, value in dict(array.array.attrs).items() if not name.startswith(_OF_NCZARR)}
    attributes.pop(DIMENSIONS, None)
    types = types_of(variable.attributes, variable.forms)
    return CopiedArray(array.folder, variable.path, variable.dimensions, attributes, types)


def stays(array: StoredArray, form: ZarrForm) -> bool:
    """Return whether the new hierarchy has chunks of the same files, and no filters of HDF5 make others."""
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


def _write_json(path: Path, content: Json) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
