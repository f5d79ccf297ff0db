"""Shapes, sizes, ratios and filters as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.filters import Filter, UnknownFilter
from tamis.filters.registered import REGISTERED

_LONGEST_LABEL = 30


def shape_text(shape: Sequence[int] | None) -> str:
    """Return a shape as ``4x96x144``, slowest axis first; ``scalar`` without axes, ``null`` without values."""
    return "null" if shape is None else "x".join(map(str, shape)) or "scalar"


def ratio(nbytes: int, stored_nbytes: int) -> float | None:
    """Return bytes of values for each byte that stores them; None where there are no bytes of either."""
    return nbytes / stored_nbytes if nbytes and stored_nbytes else None


def ratio_text(value: float | None) -> str:
    """Return a ratio with two decimals, or none where it is large; empty where there is none."""
    return "" if value is None else f"{value:.2f}" if value < 1000 else f"{value:.0f}"


def size_text(nbytes: float) -> str:
    """Return a number of bytes in three digits and a unit of powers of 1000."""
    number = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def percent_text(fraction: float) -> str:
    """Return a fraction as per cent: whole ones, and below 10 % with one decimal."""
    percent = 100 * fraction
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def filter_name(each: Filter) -> str:
    """Name a filter: one that tamis has no type for by what its writer called it, and its number."""
    if not isinstance(each, UnknownFilter):
        return each.name
    # Some writers give whole sentences, or add where to get it after a semicolon.
    label = each.label.partition(";")[0].strip()
    if len(label) > _LONGEST_LABEL:
        label = REGISTERED.get(each.id, label)
    return f"{label or 'filter'} [{each.id}]"
