"""The result of `tamis.inspect`, and its forms: terminal, JSON, notebook, arguments of other programs."""

from __future__ import annotations

from tamis.jobs.inspect.result import ChunkGroup, DatasetInfo, GroupInfo, Inspection, json_document

__all__ = ["ChunkGroup", "DatasetInfo", "GroupInfo", "Inspection", "json_document"]
