"""References as a folder of Zarr 3 metadata with chunk manifests in JSON, as proposed in zarr-specs issue 287.

An array's ``manifest.json`` has the place of each chunk by its key, ``{"0.0": {"path": …, "offset": …, "length": …}}``,
as VirtualiZarr's ``ChunkManifest`` takes it. Its metadata name the manifest as a storage transformer, which readers
have to know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tamis.zarr.references.array_metadata import json_attributes, metadata_3
from tamis.zarr.references.hierarchy import References
from tamis.zarr.references.referenced_array import Index, ReferencedArray

_TRANSFORMER = {"name": "chunk-manifest-json", "configuration": {"manifest": "./manifest.json"}}


def write_manifests(references: References, folder: Path, url: str) -> None:
    """Create a folder of metadata and manifests.

    Parameters
    ----------
    references
        References to files.
    folder
        Path of the new folder.
    url
        Address of the folder for readers: chunks that must be copied are files in it.

    Raises
    ------
    FileError
        If Zarr 3 does not have the type of an array.
    """
    documents = {path: metadata_3(array) for path, array in references.arrays.items()}
    for path, attributes in references.groups.items():
        group = {"zarr_format": 3, "node_type": "group", "attributes": json_attributes(path, attributes)}
        _write(folder / path.strip("/") / "zarr.json", group)
    for path, array in references.arrays.items():
        inner = folder / path.strip("/")
        _write(inner / "zarr.json", documents[path] | {"storage_transformers": [_TRANSFORMER]})
        for index, data in array.inlined.items():
            place = inner / _copied_key(index)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        _write(inner / "manifest.json", manifest(array, f"{url.rstrip('/')}/{path.strip('/')}"))


def manifest(array: ReferencedArray, url: str) -> dict[str, Any]:
    """Return the places of all stored chunks of an array, by key.

    Parameters
    ----------
    array
        The array.
    url
        Address of its folder, where copied chunks are.
    """
    entries = {
        _key(index): {"path": place.url, "offset": place.offset, "length": place.nbytes}
        for index, place in array.chunks.items()
    }
    for index, data in array.inlined.items():
        entries[_key(index)] = {"path": f"{url}/{_copied_key(index)}", "offset": 0, "length": len(data)}
    return entries


def _key(index: Index) -> str:
    return ".".join(map(str, index)) or "0"


def _copied_key(index: Index) -> str:
    """Return the path of a copied chunk in its array's folder: that of an ordinary chunk of Zarr 3."""
    return "/".join(["c", *map(str, index)])


def _write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
