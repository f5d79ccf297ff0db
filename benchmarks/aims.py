"""What `codec.py` measures and `plot.py` draws: a case, the groups of cases, and what these are held against."""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

DTYPES = ("float32", "float64", "int32", "int64")


class Case(NamedTuple):
    """One row: speeds in MB/s, and how many times as fast as libzfp."""

    rank: int
    dtype: str
    field: str
    mode: str
    encode: float
    encode_ratio: float
    decode: float
    decode_ratio: float
    bits_per_value: float


class Aim(NamedTuple):
    """What a group of cases is held against: least ratios of each case and of the mean, and a goal; encode, decode."""

    name: str
    every: tuple[float, float]
    mean: tuple[float, float]
    goal: tuple[float, float]
    ranks: tuple[int, ...]
    dtypes: tuple[str, ...]
    reversible: bool = False

    def __contains__(self, case: object) -> bool:
        return (
            isinstance(case, Case)
            and case.rank in self.ranks
            and case.dtype in self.dtypes
            and (case.mode == "reversible") == self.reversible
        )


AIMS = (
    Aim("3-D float32", (3, 2), (5, 3.5), (8, 5), (3,), ("float32",)),
    Aim("3-D float64", (3, 2), (4.5, 3), (6.5, 4.5), (3,), ("float64",)),
    Aim("2-D float32", (2.5, 1.7), (4, 2.5), (5.5, 3.5), (2,), ("float32",)),
    Aim("2-D float64", (2, 1.7), (3, 2.5), (4, 3.5), (2,), ("float64",)),
    Aim("1-D float32, float64", (1.5, 1), (3, 1.8), (4, 2.5), (1,), ("float32", "float64")),
    Aim("4-D float32, float64", (2, 3), (3, 4), (5, 8), (4,), ("float32", "float64")),
    Aim("int32, int64", (1.5, 1.5), (3, 3), (5, 5), (1, 2, 3, 4), ("int32", "int64")),
    Aim("reversible", (1.5, 1.5), (3, 3), (5, 5), (1, 2, 3, 4), DTYPES, reversible=True),
)
PORTABLE = Aim("all, portable kernel", (1.2, 1.2), (2, 2), (3, 3), (1, 2, 3, 4), ("float32", "float64"))


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))
