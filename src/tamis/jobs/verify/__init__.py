"""The job verify: compare a file with its source, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.verify.bounds import RECORDED, Bound, Bounds, checked_bounds
    from tamis.jobs.verify.job import COARSE, FileComparison, asks_recorded, losses_of, run_verify, take_in_as
    from tamis.jobs.verify.result import Compared, Finding, Verification, number

__all__ = [
    "COARSE",
    "RECORDED",
    "Bound",
    "Bounds",
    "Compared",
    "FileComparison",
    "Finding",
    "Verification",
    "asks_recorded",
    "checked_bounds",
    "losses_of",
    "number",
    "run_verify",
    "take_in_as",
]

__getattr__ = face_names(
    globals(),
    {
        "bounds": "Bound Bounds RECORDED checked_bounds",
        "job": "COARSE FileComparison asks_recorded losses_of run_verify take_in_as",
        "result": "Compared Finding Verification number",
    },
)
