"""Addresses and references as stores of zarr-python, which reads metadata, and what tamis does not decode."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
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
        kind = ObjectStore if objects.can_list else _WholeObjectStore  # web servers may have no ranges
        return StorePath(kind(objects.store, read_only=True), key)
    filesystem = objects.store
    if not getattr(filesystem, "async_impl", False):
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

        filesystem = AsyncFileSystemWrapper(filesystem, asynchronous=True)
    elif not filesystem.asynchronous:
        options = {**filesystem.storage_options, "asynchronous": True}
        filesystem = type(filesystem)(*filesystem.storage_args, **options)
    return FsspecStore(filesystem, path=f"/{key}" if address.startswith("memory://") else key, read_only=True)


class _WholeObjectStore(ObjectStore[Any]):
    """Objects of a web server; if it has no ranges, those of the last object are taken from all of it."""

    _last: tuple[str, Buffer] | None = None

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return an object, or a range of it."""
        if byte_range is None:
            return await super().get(key, prototype)
        from obstore.exceptions import NotSupportedError

        if self._last is None:
            with suppress(NotSupportedError):
                return await super().get(key, prototype, byte_range)
        whole = await self._whole(key, prototype)
        return None if whole is None else whole[_slice_of(byte_range, len(whole))]

    async def _whole(self, key: str, prototype: BufferPrototype) -> Buffer | None:
        """Return all of an object, and keep it for its other ranges."""
        last = self._last
        if last is not None and last[0] == key:
            return last[1]
        if (whole := await super().get(key, prototype)) is not None:
            self._last = key, whole
        return whole

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return ranges of several objects."""
        return await asyncio.gather(*(self.get(key, prototype, byte_range) for key, byte_range in key_ranges))


def _slice_of(byte_range: ByteRequest, nbytes: int) -> slice:
    """Return where a range is in an object of this size."""
    if isinstance(byte_range, RangeByteRequest):
        return slice(byte_range.start, byte_range.end)
    if isinstance(byte_range, OffsetByteRequest):
        return slice(byte_range.offset, nbytes)
    assert isinstance(byte_range, SuffixByteRequest)
    return slice(max(nbytes - byte_range.suffix, 0), nbytes)


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
