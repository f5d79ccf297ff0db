"""The parts of `tamis.repack`: planning, free space, resuming, proof and results."""

from tamis.jobs.repack.preview import DatasetPreview, RepackPreview
from tamis.jobs.repack.result import Repacked, RepackResult

__all__ = ["DatasetPreview", "RepackPreview", "RepackResult", "Repacked"]
