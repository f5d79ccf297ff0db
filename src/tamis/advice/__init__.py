"""Advice: chunk shapes that waste less."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.advice.chunk_shapes import BetterChunks, Chunking, Note, oversized, oversized_note

__all__ = [
    "BetterChunks",
    "Chunking",
    "Note",
    "oversized",
    "oversized_note",
]

__getattr__ = face_names(
    globals(),
    {
        "chunk_shapes": "BetterChunks Chunking Note oversized oversized_note",
    },
)
