"""The job plan: which filters meet a requirement, measured on a sample of each variable, and which to choose.

- `requirements`, `recommended`: what is required, by the user or by publications.
- `sample`, `measure`, `candidates`, `planner`: a sample, what filters do to it, and the choice.
- `planned`: what a plan says of a variable.
- `costs`: what filters cost, in classes that are the same on each machine.
- `noise`, `ladder`: bounds from the noise of a variable, where nothing is required.
- `chunk_shapes`: chunk shapes for the ways in which an array is read.
- `foreign_filters`: filters that are measured for comparison, and never chosen.
- `choices`: the words that options may be.
- `readers`: who can read what is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.plan.candidates import VariableToPlan
    from tamis.jobs.plan.measure import cost_of, loss_of
    from tamis.jobs.plan.requirements import PlanRequirement
    from tamis.jobs.plan.sample import Sample, sample_of

__all__ = [
    "PlanRequirement",
    "Sample",
    "VariableToPlan",
    "cost_of",
    "loss_of",
    "sample_of",
]

__getattr__ = face_names(
    globals(),
    {
        "candidates": "VariableToPlan",
        "measure": "cost_of loss_of",
        "requirements": "PlanRequirement",
        "sample": "Sample sample_of",
    },
)
