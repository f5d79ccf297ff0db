"""Choose among measured filters: the candidates that no other beats, and the winner with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from tamis.formatting import ratio_text

if TYPE_CHECKING:
    from tamis.filters import Filter
    from tamis.jobs.plan.result import Candidate
    from tamis.pipeline import Pipeline

Readers = Literal["any", "netcdf", "zfp", "all"]
READERS = get_args(Readers)
Preference = Literal["size", "speed"]
PREFERENCES = get_args(Preference)

_BASE = frozenset(("shuffle", "deflate", "fletcher32"))
"""Filters of every HDF5 library."""
_ALLOWED = {"any": _BASE, "netcdf": _BASE | {"zstd"}, "zfp": _BASE | {"zfp"}}
"""Filters that readers have; netCDF-C is installed with zstd."""

_LOSS = "loss"
_ABOUT_SAME = 0.03
"""Ratios that differ by less are equal for the choice."""
FAST_SHARE = 2 / 3
"""A fast choice has at least this share of the best ratio."""
_NOISE = 1.1
"""Times that differ by a smaller factor may differ by chance."""


def readable(filters: Sequence[Filter], readers: str) -> bool:
    """Return whether readers can read what these filters store."""
    return readers not in _ALLOWED or {item.name for item in filters} <= _ALLOWED[readers]


def read_by(filters: Sequence[Filter]) -> str:
    """Return which HDF5 libraries can read what these filters store."""
    plugins = dict.fromkeys(item.name for item in filters if item.name not in _BASE)
    return f"HDF5 with {' and '.join(plugins)}" if plugins else "any HDF5"


def front_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no other beats in ratio, speed and readers together, by falling ratio."""
    ordered = sorted(candidates, key=lambda candidate: -candidate.ratio)
    return [candidate for candidate in ordered if not any(_surpasses(other, candidate) for other in ordered)]


def _surpasses(one: Candidate, other: Candidate) -> bool:
    """Return whether one is as good as the other in everything, and better in ratio or reader requirements."""
    demands, others = _demands(one), _demands(other)
    as_good = one.ratio >= other.ratio and demands <= others and _effort(one) <= _effort(other) * _NOISE
    return as_good and (one.ratio > other.ratio or demands < others)


def _demands(candidate: Candidate) -> frozenset[str]:
    """Return the plugins that readers need, and ``loss`` if they get other values."""
    return _demands_of(candidate.pipeline)


@lru_cache(maxsize=256)  # each candidate is compared with all others
def _demands_of(pipeline: Pipeline) -> frozenset[str]:
    names = {item.name for item in pipeline.filters} - _BASE
    return frozenset(names | {_LOSS} if pipeline.error_bound != 0 else names)


def _effort(candidate: Candidate) -> float:
    """Return the seconds to write and to read a megabyte."""
    return 1 / candidate.write_mbs + 1 / candidate.read_mbs


def eligible(candidates: Sequence[Candidate], share: float = FAST_SHARE) -> list[Candidate]:
    """Return the candidates with at least this share of the best ratio."""
    best = max(candidate.ratio for candidate in candidates)
    return [candidate for candidate in candidates if candidate.ratio >= share * best]


def winner_of(candidates: Sequence[Candidate], prefer: Preference) -> tuple[Candidate, str]:
    """Return the best candidate, and why it is, in words.

    For size this is the best ratio; among similar ratios, lossless first, then the fewest plugins, then the fastest.
    For speed it is the fastest with at least two thirds of the best ratio.
    """
    best = max(candidates, key=lambda candidate: candidate.ratio)
    if prefer == "speed":
        fast = min(eligible(candidates), key=_effort)
        if fast == best:
            return best, "it has the best ratio, and no other is faster"
        return fast, f"it is the fastest with at least two thirds of the best ratio, {ratio_text(best.ratio)}"
    near = [candidate for candidate in candidates if candidate.ratio >= (1 - _ABOUT_SAME) * best.ratio]
    chosen = min(
        near, key=lambda candidate: (_LOSS in _demands(candidate), len(_demands(candidate)), _effort(candidate))
    )
    if chosen == best:
        return best, "it has the best ratio of all that meet the want"
    demands, others = _demands(chosen), _demands(best)
    why = (
        "loses nothing" if others - demands == {_LOSS} else "asks less of readers" if demands < others else "is faster"
    )
    return chosen, f"it {why}, and its ratio is close to the best, {ratio_text(best.ratio)}"
