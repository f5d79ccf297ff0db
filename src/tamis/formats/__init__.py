"""Storage formats, one folder each, behind the protocols of `tamis.stores`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.formats.registry import comparison_of, open_packed, open_store, target_form

__all__ = [
    "comparison_of",
    "open_packed",
    "open_store",
    "target_form",
]

__getattr__ = face_names(
    globals(),
    {
        "registry": "comparison_of open_packed open_store target_form",
    },
)
