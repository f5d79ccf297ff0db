"""The parts of `tamis.repack`: planning, free space, resuming, proof and results."""

from tamis.jobs.repack.result import DatasetPreview, Repacked, RepackPreview, RepackResult

__all__ = ["DatasetPreview", "RepackPreview", "RepackResult", "Repacked"]
