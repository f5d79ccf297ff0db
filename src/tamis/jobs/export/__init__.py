"""Results of `tamis.export`."""

from __future__ import annotations

from tamis.jobs.export.result import ExportedArray, ExportResult

__all__ = ["ExportResult", "ExportedArray"]
