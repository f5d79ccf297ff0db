"""Files that are elsewhere, on object stores and web servers.

- `address`: texts that go wherever a path goes.
- `object_store`: what a store of objects can do, and the files of this machine as one.
- `objects`: stores of objects by address, through obstore or fsspec.
- `counted`: a store that counts what is asked of it.
- `file`: the bytes of an object, in parallel ranges.
- `metadata`: what libhdf5 reads, filled ahead by `nodes`, and kept by `disk_cache`.
- `references`: a document of references (kerchunk) as a store.
- `waiting`: a warning about requests without an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.remote.address import Address, is_address, located_path, place_of
    from tamis.remote.counted import CountedObjects, counted_at
    from tamis.remote.file import can_list, list_below

__all__ = [
    "Address",
    "CountedObjects",
    "can_list",
    "counted_at",
    "is_address",
    "list_below",
    "located_path",
    "place_of",
]

__getattr__ = face_names(
    globals(),
    {
        "address": "Address is_address located_path place_of",
        "counted": "CountedObjects counted_at",
        "file": "can_list list_below",
    },
)
