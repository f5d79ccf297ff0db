"""The result of `tamis.verify`, and its text."""

from __future__ import annotations

from tamis.jobs.verify.result import Compared, Finding, Verification

__all__ = ["Compared", "Finding", "Verification"]
