"""Arrays of other files as Zarr arrays: references to their chunks, with the codecs that decode them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.formats.references.hierarchy import References, joined, references_of
    from tamis.formats.references.targets import KINDS, check_target, manifest_store, write_references

__all__ = [
    "KINDS",
    "References",
    "check_target",
    "joined",
    "manifest_store",
    "references_of",
    "write_references",
]

__getattr__ = face_names(
    globals(),
    {
        "hierarchy": "References joined references_of",
        "targets": "KINDS check_target manifest_store write_references",
    },
)
