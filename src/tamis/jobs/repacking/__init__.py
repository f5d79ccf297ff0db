"""The parts of `tamis.repack`: planning, free space, resuming, proof and results."""

from tamis.jobs.repacking.preview import DatasetPreview, RepackPreview
from tamis.jobs.repacking.result import Repacked, RepackResult

__all__ = ["DatasetPreview", "RepackPreview", "RepackResult", "Repacked"]
