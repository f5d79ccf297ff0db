"""Addresses and references as stores of zarr-python, which reads metadata, and what tamis does not decode."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from zarr.core.buffer import Buffer
from zarr.core.buffer.cpu import Buffer as HostBuffer
from zarr.storage import FsspecStore, MemoryStore, ObjectStore, StorePath

from tamis.remote.address import Address
from tamis.remote.objects import ObstoreObjects, objects_of
from tamis.remote.references import ReferenceObjects


def place_for_zarr(address: Address) -> Any:
    """Return what zarr-python opens for an address."""
    objects, key = objects_of(address)
    key = key.rstrip("/")
    if isinstance(objects, ReferenceObjects):
        return _ReferenceStore(_Fetched(objects, key), read_only=True)  # type: ignore[arg-type]  # only read
    if isinstance(objects, ObstoreObjects):
        return StorePath(ObjectStore(objects.store, read_only=True), key)
    filesystem = objects.store
    if not getattr(filesystem, "async_impl", False):
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

        filesystem = AsyncFileSystemWrapper(filesystem, asynchronous=True)
    elif not filesystem.asynchronous:
        options = {**filesystem.storage_options, "asynchronous": True}
        filesystem = type(filesystem)(*filesystem.storage_args, **options)
    return FsspecStore(filesystem, path=f"/{key}" if address.startswith("memory://") else key, read_only=True)


class _Fetched(Mapping[str, Buffer]):
    """The objects of references by key, each fetched when it is used."""

    def __init__(self, objects: ReferenceObjects, folder: str) -> None:
        self._objects, self._folder, self._start = objects, folder, f"{folder}/"

    def __getitem__(self, name: str) -> Buffer:
        if name not in self:
            raise KeyError(name)
        return HostBuffer.from_bytes(bytes(self._objects.get(self._start + name, None, "").data))

    def __contains__(self, name: object) -> bool:
        return f"{self._start}{name}" in self._objects

    def __iter__(self) -> Iterator[str]:
        return (key.removeprefix(self._start) for key in self._objects.keys(self._folder))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _ReferenceStore(MemoryStore):
    """References for reading."""

    async def get(self, *arguments: Any, **options: Any) -> Buffer | None:
        """Return an object, or a range of it, without making other requests wait."""
        return await asyncio.to_thread(self.get_sync, *arguments, **options)
