"""What `tamis.verify` finds, and its text."""

from __future__ import annotations

from tamis.jobs.verification.found import Compared, Finding, Verification

__all__ = ["Compared", "Finding", "Verification"]
