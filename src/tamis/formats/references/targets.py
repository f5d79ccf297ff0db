"""References as documents of kerchunk, manifests, or a new Icechunk repository of Zarr 3, here or on S3."""

from __future__ import annotations

import base64
import json
import os
import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from tamis.access import NEW_FOLDER
from tamis.errors import FileError, ParameterError
from tamis.formats.zarr.array_metadata import attributes_2, json_attributes, metadata_2, metadata_3
from tamis.remote.address import Address
from tamis.remote.file import size_of
from tamis.remote.objects import failure, objects_of
from tamis.safety.journal import marked
from tamis.safety.transaction import FolderTransaction
from tamis.safety.whole_file import write_whole

if TYPE_CHECKING:
    from tamis.formats.references.hierarchy import Index, ReferencedArray, References


KINDS = ("kerchunk", "icechunk", "zarr-manifest")
"""What references are written as."""


def check_target(place: Path | Address, kind: str, *, overwrite: bool) -> None:
    """Raise an error unless references of this kind can be written to a place."""
    if isinstance(place, Address):
        _check_address(place, kind, overwrite=overwrite)
    elif os.path.lexists(place) and not (overwrite and kind == "kerchunk"):
        advice = "choose another name, or replace it: overwrite=True" if kind == "kerchunk" else "choose another name"
        raise FileError(f"{place}: File exists: {advice}").at(path=place)


def _check_address(place: Address, kind: str, *, overwrite: bool) -> None:
    if kind == "icechunk" and place.startswith("s3://") and place.store is None:
        return
    if kind != "kerchunk":
        raise ParameterError(f"{place}: only kerchunk can be written to an address, and icechunk to S3, got {kind!r}")
    if not overwrite and size_of(place) is not None:
        raise FileError(f"{place}: File exists: choose another name, or replace it: overwrite=True").at(path=place)


def write_references(
    references: References, place: Path | Address, kind: str, message: str, *, overwrite: bool
) -> None:
    """Write references as one of `KINDS`; a repository of Icechunk gets the message."""
    if isinstance(place, Address) and kind == "icechunk":
        _send_icechunk(references, place, message)
    elif isinstance(place, Address):
        _send_kerchunk(references, place)
    elif kind == "kerchunk":
        write_whole(place, json.dumps(kerchunk_document(references)), overwrite=overwrite)
    else:
        _write_folder(references, place, kind, message)


def _send_kerchunk(references: References, place: Address) -> None:
    objects, key = objects_of(place)
    try:
        objects.put(key, json.dumps(kerchunk_document(references)).encode())
    except Exception as error:  # obstore and fsspec raise many kinds
        raise failure(error, place, "written") from None


def _write_folder(references: References, place: Path, kind: str, message: str) -> None:
    """Write a folder that gets its name once it is complete."""
    from tamis.formats.zarr.writing.form import ZarrForm

    with FolderTransaction(place, ZarrForm(), overwrite=False) as transaction, marked(transaction):
        try:
            if kind == "icechunk":
                write_icechunk(references, transaction.path, message, transaction.mode)
            else:
                write_manifests(references, transaction.path, place.absolute().as_uri())
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{place}: cannot be written: {error.strerror}").at(path=place) from error
        transaction.commit()


def kerchunk_document(references: References) -> dict[str, Any]:
    """Return the JSON document, of Zarr 2."""
    refs: dict[str, Any] = {}
    for path, attributes in references.groups.items():
        key = f"{path.strip('/')}/".lstrip("/")
        refs[f"{key}.zgroup"] = json.dumps({"zarr_format": 2})
        refs[f"{key}.zattrs"] = json.dumps(json_attributes(path, attributes))
    for path, array in references.arrays.items():
        key = path.strip("/")
        refs[f"{key}/.zarray"] = json.dumps(metadata_2(array, array.absent))
        refs[f"{key}/.zattrs"] = json.dumps(attributes_2(array))
        for index, place in array.chunks.items():
            refs[f"{key}/{_chunk_key(index)}"] = [place.url, place.offset, place.nbytes]
        for index, data in array.inlined.items():
            refs[f"{key}/{_chunk_key(index)}"] = f"base64:{base64.standard_b64encode(data).decode()}"
    return {"version": 1, "refs": refs}


def _chunk_key(index: Index) -> str:
    return ".".join(map(str, index)) or "0"


_TRANSFORMER = {"name": "chunk-manifest-json", "configuration": {"manifest": "./manifest.json"}}


def _documents(references: References) -> dict[str, dict[str, Any]]:
    """Return the metadata of all groups and arrays in Zarr 3, by path."""
    arrays = {path: metadata_3(array) for path, array in references.arrays.items()}
    groups = {
        path: {"zarr_format": 3, "node_type": "group", "attributes": json_attributes(path, attributes)}
        for path, attributes in references.groups.items()
    }
    return groups | arrays


def write_manifests(references: References, folder: Path, url: str) -> None:
    """Create a folder of metadata and manifests."""
    for path, document in _documents(references).items():
        more = {"storage_transformers": [_TRANSFORMER]} if path in references.arrays else {}
        _write(folder / path.strip("/") / "zarr.json", document | more)
    for path, array in references.arrays.items():
        inner = folder / path.strip("/")
        for index, data in array.inlined.items():
            place = inner / _copied_key(index)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        _write(inner / "manifest.json", manifest(array, f"{url.rstrip('/')}/{path.strip('/')}"))


def manifest(array: ReferencedArray, url: str) -> dict[str, Any]:
    """Return the places of all stored chunks of an array, by key."""
    entries = {
        _chunk_key(index): {"path": place.url, "offset": place.offset, "length": place.nbytes}
        for index, place in array.chunks.items()
    }
    for index, data in array.inlined.items():
        entries[_chunk_key(index)] = {"path": f"{url}/{_copied_key(index)}", "offset": 0, "length": len(data)}
    return entries


def _copied_key(index: Index) -> str:
    """Return the path of a copied chunk in its array's folder: that of an ordinary chunk of Zarr 3."""
    return "/".join(["c", *map(str, index)])


def _write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def manifest_store(references: References, registry: Any, group: str | None = None) -> Any:
    """Return a ``ManifestStore`` of VirtualiZarr."""
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


def write_icechunk(references: References, place: Path | Address, message: str, mode: int = NEW_FOLDER) -> str:
    """Create a repository with one commit, and return the number of its snapshot; `mode` is that of a folder here.

    Readers must allow the folders of the referenced files: ``authorize_virtual_chunk_access``. Icechunk 1 and newer
    open the repository.
    """
    import icechunk

    if isinstance(place, Path):
        place.mkdir(mode)  # icechunk panics where it cannot make a folder
    icechunk.set_logs_filter("error")  # it warns on standard output that local folders allow one writer at a time
    documents = _documents(references)
    config = icechunk.RepositoryConfig.default()
    for container in containers_of(references):
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(container, _container_store(container)))
    # Icechunk 2 reads both versions of its format, and Icechunk 1, the last one for Python 3.11, only the first.
    version: Any = {"spec_version": 1} if hasattr(icechunk, "supported_spec_versions") else {}
    repository = icechunk.Repository.create(_repository_storage(place), config, **version)
    session = repository.writable_session("main")
    import asyncio  # late: Icechunk alone needs it, and it takes 15 ms

    asyncio.run(_fill(session.store, references, documents))
    for path, array in references.arrays.items():
        places = [
            icechunk.VirtualChunkSpec([*index], place.url, place.offset, place.nbytes)
            for index, place in array.chunks.items()
        ]
        if places and (refused := session.store.set_virtual_refs(path, places)):
            raise FileError(f"{references.label}: {path}: Icechunk refuses the reference {refused[0]}")
    return str(session.commit(message))


def _send_icechunk(references: References, place: Address, message: str) -> None:
    """Create a repository elsewhere, as `write_icechunk` does; raise FileError if that fails."""
    from icechunk import IcechunkError

    try:
        write_icechunk(references, place, message)
    except IcechunkError as error:
        reason = str(error).strip().splitlines()[-1].strip(" `->|")
        raise FileError(f"{place}: cannot be written: {reason[:200]}").at(path=place) from None


def _repository_storage(place: Path | Address) -> Any:
    """Return where a repository is: a new folder, or a place on S3 that nothing is at."""
    import icechunk

    if not isinstance(place, Address):
        return icechunk.local_filesystem_storage(str(place))
    bucket, _, prefix = place.url.partition("://")[2].partition("/")
    keys = ("access_key_id", "secret_access_key", "session_token")
    given = {key: value for key in keys if (value := _setting(place.options, key))}
    credentials: dict[str, Any] = {**given} or {"from_env": True}
    storage = icechunk.s3_storage(
        bucket=bucket, prefix=prefix.rstrip("/"), **credentials, **_s3_settings(place.options)
    )
    if icechunk.Repository.exists(storage):
        raise FileError(f"{place}: File exists: choose another name").at(path=place)
    return storage


def _container_store(container: str) -> Any:
    """Return how Icechunk reads a folder of referenced files."""
    import icechunk

    if container.startswith("file://"):
        return icechunk.local_filesystem_store(container.removeprefix("file://"))
    if container.startswith("s3://"):
        return icechunk.s3_store(s3_compatible=True, **_s3_settings({}))
    return icechunk.http_store({"allow_http": "true"} if container.startswith("http://") else None)


def _s3_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return region and server as Icechunk takes them, by the options of an address or the environment."""
    endpoint = _setting(options, "endpoint_url") or _setting(options, "endpoint")
    settings: dict[str, Any] = {"region": _setting(options, "region") or _setting(options, "default_region") or None}
    if not endpoint:
        return settings
    is_open = endpoint.startswith("http://")
    return {**settings, "endpoint_url": endpoint, "allow_http": is_open, "force_path_style": True}


def _setting(options: Mapping[str, Any], name: str) -> str:
    """Return a setting of S3; empty if there is none."""
    known = {key.lower().removeprefix("aws_"): value for key, value in options.items()}
    return str(known.get(name) or os.environ.get(f"AWS_{name.upper()}", ""))


def containers_of(references: References) -> list[str]:
    """Return the addresses of the folders of all referenced files."""
    urls = {place.url for array in references.arrays.values() for place in array.chunks.values()}
    for url in urls:
        address = urlsplit(url)
        if not (url.startswith(("file:///", "s3://")) or (address.scheme in ("http", "https") and not address.port)):
            raise FileError(
                "an Icechunk repository can refer only to files here, on S3, or on a web server at its usual "
                f"port, got {url.partition('?')[0]}: export to kerchunk instead"
            )
    return sorted({posixpath.dirname(url) + "/" for url in urls})


async def _fill(store: Any, references: References, documents: Mapping[str, Any]) -> None:
    from zarr.core.buffer.cpu import Buffer

    for path, document in documents.items():
        key = f"{path.strip('/')}/zarr.json".lstrip("/")
        await store.set(key, Buffer.from_bytes(json.dumps(document).encode()))
    for path, array in references.arrays.items():
        for index, data in array.inlined.items():
            await store.set(f"{path.strip('/')}/{_copied_key(index)}", Buffer.from_bytes(data))
