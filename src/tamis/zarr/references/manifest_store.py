"""References as a store of VirtualiZarr."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.errors import FileError
from tamis.zarr.references.array_metadata import json_attributes, metadata_3
from tamis.zarr.references.hierarchy import References
from tamis.zarr.references.referenced_array import ReferencedArray


def manifest_store(references: References, registry: Any, group: str | None = None) -> Any:
    """Return a ``ManifestStore`` of VirtualiZarr.

    Parameters
    ----------
    references
        References to files of the registry.
    registry
        VirtualiZarr's ``ObjectStoreRegistry``.
    group
        Path of the group that becomes the root; by default the root itself.

    Raises
    ------
    FileError
        If there is no such group; or if VirtualiZarr cannot have an array, because some of its chunks are copied.
    """
    from virtualizarr.manifests import ManifestStore

    top = f"/{(group or '').strip('/')}"
    if top not in references.groups:
        known = ", ".join(references.groups)
        raise FileError(f"{references.label}: expected one of the groups {known}, got {group!r}")
    return ManifestStore(registry=registry, group=_group(references, top))


def _group(references: References, path: str) -> Any:
    from virtualizarr.manifests import ManifestGroup

    prefix = f"{path.rstrip('/')}/"

    def is_child(other: str) -> bool:
        return other != path and other.startswith(prefix) and "/" not in other[len(prefix) :]

    return ManifestGroup(
        arrays={other[len(prefix) :]: _array(array) for other, array in references.arrays.items() if is_child(other)},
        groups={other[len(prefix) :]: _group(references, other) for other in references.groups if is_child(other)},
        attributes=json_attributes(path, references.groups[path]),
    )


def _array(array: ReferencedArray) -> Any:
    from virtualizarr.manifests import ChunkManifest, ManifestArray
    from zarr.core.metadata.v3 import ArrayV3Metadata

    if array.inlined:
        raise FileError(
            f"{array.path}: expected chunks that are all in the file as they are, found {len(array.inlined)} that must"
            " be copied, for which VirtualiZarr has no place: leave the dataset out (drop_variables), or use"
            " tamis.export"
        ).at(dataset=array.path)
    grid = tuple(-(-extent // step) for extent, step in zip(array.shape, array.chunk_shape, strict=True))
    urls = np.full(grid, "", np.dtypes.StringDType())
    offsets, sizes = np.zeros(grid, np.uint64), np.zeros(grid, np.uint64)
    for index, place in array.chunks.items():
        urls[index], offsets[index], sizes[index] = place.url, place.offset, place.nbytes
    manifest = ChunkManifest.from_arrays(paths=urls, offsets=offsets, lengths=sizes)
    return ManifestArray(metadata=ArrayV3Metadata.from_dict(metadata_3(array)), chunkmanifest=manifest)
