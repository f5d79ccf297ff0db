"""Time the codec against libzfp, as zfpy ships it, in the same run: ``python benchmarks/codec.py [--quick] [--csv F]``.

Each case is timed in turns, ours and theirs, one thread; figures are medians of processor time, and bytes and values
are compared first. Read the ratios: the megabytes per second (10^6 bytes of uncompressed data) wander with the machine.
The last table holds them against what is aimed at. ``TAMIS_KERNEL=portable`` times another kernel.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import zfpy
from aims import AIMS, DTYPES, PORTABLE, Case, geometric_mean
from fields import CUTOFFS, field
from machine import machine
from turns import times_in_turns

import tamis
from tamis import zfp

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


def seconds(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """Median processor time of each call, called in turns."""
    clock = time.thread_time  # so that other programs on the machine do not count
    return [statistics.median(mine) for mine in times_in_turns(calls, rounds, clock)]


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


def print_means(done: list[Case]) -> None:
    """Print a row per rank and type, over all modes and fields."""
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


def print_aims(done: list[Case]) -> None:
    """Print each group of cases beside what it is held against; ``!`` marks what is below."""
    print("\n| encode / decode | mean | at least | aimed at | worst | at least |\n|---|---|---|---|---|---|")
    for aim in (*AIMS, PORTABLE) if tamis.config().kernel == "portable" else AIMS:
        rows = [case for case in done if case in aim]
        both = [[case.encode_ratio for case in rows], [case.decode_ratio for case in rows]]
        means = [geometric_mean(ratios) for ratios in both]
        print(
            f"| {aim.name} | {against(means, aim.mean)} | {pair(aim.mean)} | {pair(aim.goal)} |"
            f" {against([min(ratios) for ratios in both], aim.every)} | {pair(aim.every)} |"
        )


def pair(ratios: tuple[float, float]) -> str:
    return " / ".join(f"{ratio:g}×" for ratio in ratios)


def against(ratios: list[float], least: tuple[float, float]) -> str:
    return " / ".join(f"{ratio:.1f}×{'!' * (ratio < low)}" for ratio, low in zip(ratios, least, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="rough fields only, fewer rounds")
    parser.add_argument("--csv", type=Path, metavar="F", help="write the rows to a file, too, for plot.py")
    options = parser.parse_args()
    ran_on = {"machine": machine(), "kernel": tamis.config().kernel, "peer": f"zfpy {version('zfpy')}"}
    print(f"{ran_on['machine']}; {tamis.config()}; {ran_on['peer']}; one thread")
    print("× = times as fast as libzfp")
    done: list[Case] = []
    for case in cases(options.quick):
        done.append(case)
        print(
            f"{case.rank}-D {case.dtype:8} {case.field:6} {case.mode:14} encode {case.encode:6.0f} MB/s"
            f" {case.encode_ratio:5.2f}×  decode {case.decode:6.0f} MB/s {case.decode_ratio:5.2f}×"
            f"  {case.bits_per_value:5.1f} bits/value",
            flush=True,
        )
    print_means(done)
    print_aims(done)
    if options.csv:
        with options.csv.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, [*Case._fields, *ran_on])
            writer.writeheader()
            writer.writerows(case._asdict() | ran_on for case in done)


if __name__ == "__main__":
    main()
