"""References as a new Icechunk repository of Zarr 3, in a local folder."""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tamis.errors import FileError
from tamis.zarr.references.array_metadata import json_attributes, metadata_3
from tamis.zarr.references.hierarchy import References

_GROUP = {"zarr_format": 3, "node_type": "group"}


def write_icechunk(references: References, folder: Path, message: str) -> str:
    """Create a repository with one commit, and return the number of its snapshot.

    Readers must allow the folders of the referenced files: ``authorize_virtual_chunk_access``.

    Parameters
    ----------
    references
        References to local files, by ``file://`` addresses.
    folder
        Path of the new repository.
    message
        Message of the commit.

    Raises
    ------
    FileError
        If an array is of a type that Zarr 3 does not have, or a file is not local.
    """
    import icechunk

    icechunk.set_logs_filter("error")  # it warns on standard output that local folders take one writer at a time
    metadata = {path: metadata_3(array) for path, array in references.arrays.items()}
    config = icechunk.RepositoryConfig.default()
    for container in containers_of(references):
        store = icechunk.local_filesystem_store(container.removeprefix("file://"))
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(container, store))
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)), config)
    session = repository.writable_session("main")
    documents: dict[str, Any] = {
        path: {**_GROUP, "attributes": json_attributes(path, attributes)}
        for path, attributes in references.groups.items()
    }
    asyncio.run(_fill(session.store, references, {**documents, **metadata}))
    for path, array in references.arrays.items():
        places = [
            icechunk.VirtualChunkSpec([*index], place.url, place.offset, place.nbytes)
            for index, place in array.chunks.items()
        ]
        if places and (refused := session.store.set_virtual_refs(path, places)):
            raise FileError(
                f"{references.label}: {path}: expected references that Icechunk takes, refused {refused[0]}"
            )
    return str(session.commit(message))


def containers_of(references: References) -> list[str]:
    """Return the addresses of the folders of all referenced files.

    Raises
    ------
    FileError
        If a file is not local.
    """
    urls = {place.url for array in references.arrays.values() for place in array.chunks.values()}
    for url in urls:
        if not url.startswith("file:///"):
            raise FileError(f"expected local files for an Icechunk repository, got {url}: export to kerchunk instead")
    return sorted({posixpath.dirname(url) + "/" for url in urls})


async def _fill(store: Any, references: References, documents: Mapping[str, Any]) -> None:
    from zarr.core.buffer.cpu import Buffer

    for path, document in documents.items():
        key = f"{path.strip('/')}/zarr.json".lstrip("/")
        await store.set(key, Buffer.from_bytes(json.dumps(document).encode()))
    for path, array in references.arrays.items():
        for index, data in array.inlined.items():
            key = "/".join([path.strip("/"), "c", *map(str, index)])
            await store.set(key, Buffer.from_bytes(data))
