"""The last witness of a target: xarray's own engines read it in a process without tamis.

- `stock_reader`: what runs in that process, which `process` starts.
- `look`, `loss`: the comparison of what it reads of source and target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.witness.look import Witnessed
    from tamis.jobs.witness.process import check_installed

__all__ = [
    "Witnessed",
    "check_installed",
]

__getattr__ = face_names(
    globals(),
    {
        "look": "Witnessed",
        "process": "check_installed",
    },
)
