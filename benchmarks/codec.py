"""Time the codec against libzfp, as zfpy ships it, in the same run: ``python benchmarks/codec.py [--quick] [--csv F]``.

Each case is timed in turns, ours and theirs, one thread; figures are medians, and bytes and values are compared first.
Read the ratios: the megabytes per second (10^6 bytes of uncompressed data) wander with the machine.
"""

from __future__ import annotations

import argparse
import csv
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zfpy
from fields import CUTOFFS, field

from tamis import zfp

DTYPES = ("float32", "float64", "int32", "int64")
FLOAT_MODES: dict[str, tuple[zfp.Mode, dict[str, float]]] = {
    "accuracy 1e-3": (zfp.Accuracy(1e-3), {"tolerance": 1e-3}),
    "accuracy 1e-6": (zfp.Accuracy(1e-6), {"tolerance": 1e-6}),
}
MODES: dict[str, tuple[zfp.Mode, dict[str, float]]] = {
    "rate 4": (zfp.Rate(4), {"rate": 4}),
    "rate 8": (zfp.Rate(8), {"rate": 8}),
    "rate 16": (zfp.Rate(16), {"rate": 16}),
    "precision 16": (zfp.Precision(16), {"precision": 16}),
    "reversible": (zfp.Reversible(), {}),
}


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


def seconds(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """Median time of each call, called in turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, mine in zip(calls, times, strict=True):
            began = time.perf_counter()
            call()
            mine.append(time.perf_counter() - began)
    return [statistics.median(mine) for mine in times]


def cases(quick: bool) -> Iterator[Case]:
    rounds = 3 if quick else 9
    for rank in range(1, 5):
        for dtype in DTYPES:
            floating = dtype.startswith("float")
            for kind in CUTOFFS if floating and not quick else ("rough",):
                values = field(rank, kind, dtype)
                for name, (mode, keywords) in (MODES | (FLOAT_MODES if floating else {})).items():
                    yield measure(values, kind, name, mode, keywords, rounds)


def measure(
    values: np.ndarray[Any, Any], kind: str, name: str, mode: zfp.Mode, keywords: dict[str, float], rounds: int
) -> Case:
    """Compare bytes and values with libzfp's, then time both."""
    theirs = zfpy.compress_numpy(values, write_header=True, **keywords)
    if zfp.encode_with_header(values, mode) != theirs:
        raise SystemExit(f"bytes differ from libzfp's: {values.dtype} {values.ndim}-D {name}")
    ours, out = zfp.encode(values, mode), np.empty_like(values)
    zfp.decode(ours, values.shape, values.dtype, mode, out=out)
    if out.tobytes() != zfpy.decompress_numpy(theirs).tobytes():
        raise SystemExit(f"values differ from libzfp's: {values.dtype} {values.ndim}-D {name}")
    encode, their_encode, decode, their_decode = seconds(
        [
            lambda: zfp.encode(values, mode),
            lambda: zfpy.compress_numpy(values, write_header=True, **keywords),
            lambda: zfp.decode(ours, values.shape, values.dtype, mode, out=out),
            lambda: zfpy.decompress_numpy(theirs),
        ],
        rounds,
    )
    megabytes = values.nbytes / 1e6
    return Case(
        values.ndim,
        str(values.dtype),
        kind,
        name,
        megabytes / encode,
        their_encode / encode,
        megabytes / decode,
        their_decode / decode,
        8 * len(ours) / values.size,
    )


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="rough fields only, fewer rounds")
    parser.add_argument("--csv", type=Path, metavar="F", help="write the rows to a file, too")
    options = parser.parse_args()
    print(f"{platform.machine()}, {platform.system()}; zfpy {version('zfpy')}; one thread; × = times as fast as libzfp")
    done: list[Case] = []
    for case in cases(options.quick):
        done.append(case)
        print(
            f"{case.rank}-D {case.dtype:8} {case.field:6} {case.mode:14} encode {case.encode:6.0f} MB/s"
            f" {case.encode_ratio:5.2f}×  decode {case.decode:6.0f} MB/s {case.decode_ratio:5.2f}×"
            f"  {case.bits_per_value:5.1f} bits/value",
            flush=True,
        )
    print("\n| | encode: mean | worst | decode: mean | worst |\n|---|---|---|---|---|")
    for rank in range(1, 5):
        for dtype in DTYPES:
            rows = [case for case in done if (case.rank, case.dtype) == (rank, dtype)]
            encode = [case.encode_ratio for case in rows]
            decode = [case.decode_ratio for case in rows]
            print(
                f"| {rank}-D {dtype} | {geometric_mean(encode):.1f}× | {min(encode):.1f}× |"
                f" {geometric_mean(decode):.1f}× | {min(decode):.1f}× |"
            )
    if options.csv:
        with options.csv.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(Case._fields)
            writer.writerows(done)


if __name__ == "__main__":
    main()
