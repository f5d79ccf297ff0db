"""The job of many files: listed, given to processes or a cluster, and recorded beside the targets.

`job` has what callers use. `prepared` checks the options, and `listing` finds sources and targets; `again` says which
files are made, and `run` gives these to processes: `order` says which wait for others, and each is a `task` for a
process, which writes a record (`state`).

- `preview`: what a run would make.
- `ranges`: one packing of a variable for all files.
- `look_ahead`: mistakes that are found before the first file is made.
- `leftovers`: what killed runs left.
- `manifest`, `result`: what was done.
- `losses`: what earlier runs did to a file that is replaced once more.
- `other_writers`: whether another program writes a file.
- `verify`: two folders compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.many.listing import Choice, left_out_notes, list_files
    from tamis.jobs.many.losses import Loss, recorded_of
    from tamis.jobs.many.manifest import state_of
    from tamis.jobs.many.result import worst_of
    from tamis.jobs.many.state import FileRecord

__all__ = [
    "Choice",
    "FileRecord",
    "Loss",
    "left_out_notes",
    "list_files",
    "recorded_of",
    "state_of",
    "worst_of",
]

__getattr__ = face_names(
    globals(),
    {
        "listing": "Choice left_out_notes list_files",
        "losses": "Loss recorded_of",
        "manifest": "state_of",
        "result": "worst_of",
        "state": "FileRecord",
    },
)
