"""Files and folders that appear complete or not at all, and runs that can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.safety.disk import Identity, nbytes_of, sha256_of
    from tamis.safety.journal import find_leftovers, marked
    from tamis.safety.library_errors import disk_text, may_pass, reading
    from tamis.safety.room import Room
    from tamis.safety.transaction import Transaction, remove
    from tamis.safety.whole_file import write_whole

__all__ = [
    "Identity",
    "Room",
    "Transaction",
    "disk_text",
    "find_leftovers",
    "marked",
    "may_pass",
    "nbytes_of",
    "reading",
    "remove",
    "sha256_of",
    "write_whole",
]

__getattr__ = face_names(
    globals(),
    {
        "disk": "Identity nbytes_of sha256_of",
        "journal": "find_leftovers marked",
        "library_errors": "disk_text may_pass reading",
        "room": "Room",
        "transaction": "Transaction remove",
        "whole_file": "write_whole",
    },
)
