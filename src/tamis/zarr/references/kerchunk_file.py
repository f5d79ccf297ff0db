"""References as a file of kerchunk: JSON, version 1, for fsspec's reference file system."""

from __future__ import annotations

import base64
import json
from typing import Any

from tamis.zarr.references.array_metadata import attributes_2, json_attributes, metadata_2
from tamis.zarr.references.hierarchy import References


def kerchunk_document(references: References) -> dict[str, Any]:
    """Return the JSON document, of Zarr 2."""
    refs: dict[str, Any] = {}
    for path, attributes in references.groups.items():
        key = f"{path.strip('/')}/".lstrip("/")
        refs[f"{key}.zgroup"] = json.dumps({"zarr_format": 2})
        refs[f"{key}.zattrs"] = json.dumps(json_attributes(path, attributes))
    for path, array in references.arrays.items():
        key = path.strip("/")
        refs[f"{key}/.zarray"] = json.dumps(metadata_2(array))
        refs[f"{key}/.zattrs"] = json.dumps(attributes_2(array))
        for index, place in array.chunks.items():
            refs[f"{key}/{_chunk_key(index)}"] = [place.url, place.offset, place.nbytes]
        for index, data in array.inlined.items():
            refs[f"{key}/{_chunk_key(index)}"] = f"base64:{base64.standard_b64encode(data).decode()}"
    return {"version": 1, "refs": refs}


def _chunk_key(index: tuple[int, ...]) -> str:
    return ".".join(map(str, index)) or "0"
