"""Requirements beyond a largest error on the values of a variable, tested on what xarray reads of its encoded ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.accuracy.fields import FieldMeasures
from tamis.accuracy.measured import Measured, is_missed, reached
from tamis.formatting import plural
from tamis.meaning.missing import NONE_MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.accuracy.requirement import Requirement
    from tamis.xarray.encoding_loss import ComparedPart


def missed_in(parts: Iterable[ComparedPart], required: Requirement) -> str:
    """Return what values miss of a requirement, in words; an empty text if they meet it.

    Parameters
    ----------
    parts
        Parts of a variable with whole fields.
    required
        The requirement; what it says about the absolute and the relative error is not tested.
    """
    seen = _Seen(required)
    for part in parts:
        seen.add(part)
    return "; ".join(seen.missed())


@dataclass(slots=True)
class _Seen:
    """What is known of some parts."""

    required: Requirement
    measured: Measured = field(default_factory=Measured)
    crossed: int = 0  # Values on the other side of a valid limit
    changed_sign: int = 0
    changed_zero: int = 0  # Zeros that became other values, and other values that became zero

    def add(self, part: ComparedPart) -> None:
        """Add a part."""
        wide = np.result_type(part.given, np.float32)
        before, after = part.given.astype(wide), part.found.astype(wide)
        is_valid = ~np.isnan(before)
        words = self.required.measures
        here = Measured.of(before, after, NONE_MISSING, {*words, "corr"})  # "corr" has the standard deviation
        fields = FieldMeasures.of(before, after, NONE_MISSING, None, words)
        self.measured = self.measured.plus(here._replace(fields=fields))
        self.changed_sign += _count((np.sign(before) * np.sign(after) < 0) | ((before >= 0) & (after < 0)), is_valid)
        self.changed_zero += _count((before == 0) != (after == 0), is_valid)
        self.crossed += _count(_crossed(part, before), is_valid)

    def missed(self) -> list[str]:
        """Return what the values miss, in words."""
        required, measured = self.required, self.measured
        missed: list[str] = []
        error = float(measured.tally.error)
        for word, limit, unit in (
            ("range", required.range, measured.span),
            ("std", required.std, measured.deviation),
        ):
            if limit is not None and error > limit * (unit or 0.0):
                missed.append(f"expected {word}={limit!r}, found {error / unit:.4g}" if unit else f"no {word} to go by")
        for is_asked, count, what in (
            (required.limits, self.crossed, "crossed a limit of the valid range"),
            (required.sign, self.changed_sign, "changed sign"),
            (required.zeros, self.changed_zero, "became zero, or were"),
        ):
            if is_asked and count:
                missed.append(f"{plural(count, 'value')} {what}")
        if error:
            values = reached(measured, required.measures, 1.0) | measured.fields.by_word
            for word, asked in required.measures.items():
                if is_missed(word, asked, value := values[word]):
                    missed.append(f"expected {word}={asked!r}, found {'none' if value is None else f'{value:.6g}'}")
        return missed


def _count(wrong: NDArray[np.bool_], is_valid: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(wrong & is_valid))


def _crossed(part: ComparedPart, before: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are on the other side of a valid limit once they are stored."""
    crossed = np.zeros(before.shape, bool)
    packing = meaning.packing_of(part.attributes)
    for limit, is_beyond in zip(
        meaning.valid_range(part.attributes, part.stored.dtype.newbyteorder("=")), (np.less, np.greater), strict=True
    ):
        if limit is not None:
            in_units = float(limit) if packing is None else packing.unpacked(limit)
            # What is stored is compared as it is stored, as readers do who look at limits first.
            crossed |= is_beyond(before, in_units) != is_beyond(part.stored, limit)
    return crossed
