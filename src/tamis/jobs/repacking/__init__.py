"""The parts of `tamis.repack`: what is to be done, whether there is room for it, what was done."""

from tamis.jobs.repacking.preview import DatasetPreview, RepackPreview
from tamis.jobs.repacking.result import Repacked, RepackResult

__all__ = ["DatasetPreview", "RepackPreview", "RepackResult", "Repacked"]
