"""Bounds for a variable from its own noise, with what each saves and changes: where to begin without a requirement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tamis.accuracy import SIGNIFICAND_BITS, ZEROED_SHARE
from tamis.errors import TamisError
from tamis.jobs.plan.measure import differences_of
from tamis.jobs.plan.noise import INFORMATION, Noise
from tamis.jobs.plan.planned import PlannedVariable, Rung, repack_options
from tamis.jobs.plan.requirements import PlanRequirement

if TYPE_CHECKING:
    from tamis.jobs.plan.candidates import VariableToPlan
    from tamis.jobs.plan.sample import Sample

SHARES = (0.1, 0.3, 1.0)
"""Bounds as shares of the noise level: the errors of the first are lost in it."""


class LadderStep(NamedTuple):
    """A requirement for a rung, and what it is in terms of the noise."""

    requirement: PlanRequirement
    about: str


def steps_of(noise: Noise, itemsize: int) -> Iterator[LadderStep]:
    """Yield requirements from tight to loose: bounds by the noise level, then the bits that carry information."""
    for share in SHARES:
        if noise.level > 0:
            bound = rounded_bound(share * noise.level)
            yield LadderStep(PlanRequirement({"abs": bound}), f"{bound / noise.level:.2g} of the noise")
    if noise.keepbits is not None and noise.keepbits < SIGNIFICAND_BITS[itemsize]:
        yield LadderStep(PlanRequirement({"bits": noise.keepbits}), f"{INFORMATION:.0%} of the information")


_RELATIVE = LadderStep(PlanRequirement({"digits": 3}), "three digits of each value")


def rounded_bound(bound: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above a bound."""
    power = math.floor(math.log10(bound))
    numbers = (float(f"{digit}e{power + shift}") for shift in (-1, 0) for digit in (1, 2, 5))
    return max(number for number in numbers if number <= bound)


def ladder_of(
    variable: VariableToPlan, sample: Sample, noise: Noise, plan: Callable[[VariableToPlan], PlannedVariable]
) -> tuple[Rung, ...]:
    """Return the rungs of a variable that save bytes; a sample shows what each found."""
    rungs: list[Rung] = []
    steps = [*steps_of(noise, variable.itemsize)]
    while steps:
        step = steps.pop(0)
        try:
            planned = plan(variable._replace(requirement=step.requirement, note=""))
        except TamisError:
            continue  # values that no filter here takes with such a bound
        chosen = planned.chosen
        if chosen is None or not chosen.largest_error:
            continue
        found = differences_of(variable.plans(chosen.pipeline), sample, variable.arrays[0].meaning.packing)
        bound = step.requirement.limits.get("abs")
        if not rungs and found.effects.zeroed_share > ZEROED_SHARE:
            steps.append(_RELATIVE)  # values of many magnitudes, such as precipitation
        rungs.append(
            Rung(
                str(step.requirement),
                step.about,
                chosen.filters,
                chosen.ratio,
                chosen.largest_error,
                *found.in_units[:4],
                found.effects.warnings(None if bound is None else float(bound), found.scale),
                repack_options(planned),
            )
        )
    return tuple(rungs)
