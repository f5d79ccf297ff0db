"""A warning if a lossy filter is skipped for most of the chunks that are written."""

from __future__ import annotations

from collections.abc import Collection

from tamis.caller import warn_caller
from tamis.formatting import plural
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import is_lossy


class KeptChunks:
    """Counts chunks that are written, and those of them that are stored without loss."""

    def __init__(self, pipeline: Pipeline, label: str) -> None:
        self._pipeline, self._label = pipeline, label
        self.written = self.kept = 0
        self._done = not is_lossy(pipeline)

    def count(self, masks: Collection[int]) -> None:
        """Count chunks by their filter masks."""
        self.written += len(masks)
        self.kept += sum(not is_lossy(self._pipeline, mask) for mask in masks)

    def warn(self, *, at_least: int = 1, advice: str = "") -> None:
        """Warn once if most of the chunks are stored without loss."""
        if self._done or self.written < at_least or 2 * self.kept <= self.written:
            return
        self._done = True
        lossy = next(each for each in self._pipeline.filters if each.error_bound != 0)
        warn_caller(
            f"{self._label}: {self.kept} of {plural(self.written, 'chunk')} stored without {lossy.name}, which"
            f" takes more room: they have missing values, or {lossy} does not keep the bound for them. Choose another"
            f" bound or filter{advice}"
        )
