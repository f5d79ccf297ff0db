"""The parts of `tamis.repack`: what is to be done, whether there is room for it, what was done."""

from tamis.jobs.repacking.planned import PlannedDataset, RepackPlan
from tamis.jobs.repacking.results import Repacked, RepackResult

__all__ = ["PlannedDataset", "RepackPlan", "RepackResult", "Repacked"]
