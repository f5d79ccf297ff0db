"""Requirements for a variable under lossy compression, as people write them: ``abs=0.1,psnr=80``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis.accuracy import (
    EACH_VALUE,
    FLAGS,
    RELATIVE_WORDS,
    WHOLE,
    Requirement,
    Vocabulary,
    relative_of,
    share,
    text_of,
)
from tamis.errors import ParameterError
from tamis.jobs.recipes import split_recipe

if TYPE_CHECKING:
    from tamis.filters import Parameter

LOSSLESS = "lossless"

KINDS: Mapping[str, Parameter] = {
    **EACH_VALUE,
    "information": share("share of the real information in the bits"),
    **WHOLE,
}
"""All requirements, each with its meaning and allowed values."""

_VOCABULARY = Vocabulary(KINDS, FLAGS, alone=(LOSSLESS, "recommended"))

ABSOLUTE = ("abs", "range", "std")
"""Requirements that come to a largest absolute error."""

RELATIVE = (*RELATIVE_WORDS, "information")
"""Requirements about each value relative to itself, which rounding bounds and zfp does not."""


@dataclass(frozen=True, slots=True)
class PlanRequirement:
    """Limits that must all hold; if there are none, the bits stay unchanged."""

    # Values by name: see `KINDS`; True for words without a number
    limits: Mapping[str, float | bool] = field(default_factory=dict)

    @property
    def is_lossless(self) -> bool:
        """True if no bit may change: nothing allows an error."""
        return all(name in FLAGS for name in self.limits)

    @property
    def relative(self) -> float | None:
        """The largest error relative to a value, by ``rel``, ``digits`` and ``bits``; None if none is given."""
        return relative_of(self.limits)

    def required(self, absolute: float | None = None, *, measures: bool = False) -> Requirement | None:
        """Return what repack must prove for each value; None if the requirement has no such limit."""
        known = (*EACH_VALUE, *FLAGS, *(WHOLE if measures else ()))
        words = {name: value for name, value in self.limits.items() if name in known}
        if absolute is not None:
            words = {name: value for name, value in words.items() if name not in ABSOLUTE} | {"abs": absolute}
        return Requirement(**words) if words else None  # type: ignore[arg-type]

    def __str__(self) -> str:
        return text_of(self.limits) or LOSSLESS


RECOMMENDED = PlanRequirement({"recommended": True})
"""Whatever is recommended for a variable of its name: see `tamis.jobs.plan.recommended`."""


FROM_NOISE = PlanRequirement({"noise": True})
"""A bound from the noise of the variable itself, which its values tell."""


def as_plan_requirement(value: object) -> PlanRequirement:
    """Return a requirement from its text, such as ``abs=0.1,psnr=80`` or ``lossless``, or from values by name."""
    if isinstance(value, PlanRequirement):
        return value
    if isinstance(value, str):
        if value.strip() == str(RECOMMENDED):
            return RECOMMENDED
        return PlanRequirement() if value.strip() == LOSSLESS else PlanRequirement(_VOCABULARY.parsed(value))
    if isinstance(value, Mapping):
        return PlanRequirement(_VOCABULARY.checked(value))
    raise ParameterError(f"expected a requirement such as 'abs=0.1' or {{'abs': 0.1}}, got {value!r}")


def parse_requirements(texts: Iterable[str]) -> list[tuple[str, PlanRequirement]]:
    """Return name and requirement of texts such as ``T*:abs=0.1``."""
    pairs = [split_recipe(text, "NAME:REQUIREMENT", "TS:abs=0.1") for text in texts]
    return [(name, as_plan_requirement(requirement)) for name, requirement in pairs]


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``16MB``, in units of powers of 1000."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(B|kB|MB|GB)", text)
    if match is None:
        raise ParameterError(f"expected a size such as 16MB, a number with B, kB, MB or GB, got {text[:40]!r}")
    return int(float(match[1]) * 1000 ** ("B", "kB", "MB", "GB").index(match[2]))
