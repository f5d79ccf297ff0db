"""Time one large array in one thread and in several: ``python benchmarks/threads.py [--threads N] [--mib N]``.

Elapsed time, calls in turns, the least of each; bytes and values are compared first. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from fields import field
from turns import times_in_turns

import tamis
from tamis import zfp

MODES = {
    "accuracy 1e-3": zfp.Accuracy(1e-3),
    "rate 8": zfp.Rate(8),
    "precision 16": zfp.Precision(16),
    "reversible": zfp.Reversible(),
}


def seconds(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """Least elapsed time of each call, called in turns: what other programs take from threads is no fault of theirs."""
    return [min(mine) for mine in times_in_turns(calls, rounds)]


def large(rank: int, dtype: str, nbytes: int) -> np.ndarray[Any, Any]:
    """Repeat a rough field along its slowest axis."""
    values = field(rank, "rough", dtype)
    return np.concatenate([values] * max(nbytes // values.nbytes, 1))


def measure(values: np.ndarray[Any, Any], mode: zfp.Mode, threads: int, rounds: int) -> tuple[float, ...]:
    """Compare what one thread and several give, then time both: encode, decode."""
    stream, out = zfp.encode(values, mode), np.empty_like(values)
    if zfp.encode(values, mode, threads=threads) != stream:
        raise SystemExit("bytes differ")
    one = zfp.decode(stream, values.shape, values.dtype, mode)
    if zfp.decode(stream, values.shape, values.dtype, mode, threads=threads).tobytes() != one.tobytes():
        raise SystemExit("values differ")
    return tuple(
        seconds(
            [
                lambda: zfp.encode(values, mode),
                lambda: zfp.encode(values, mode, threads=threads),
                lambda: zfp.decode(stream, values.shape, values.dtype, mode, out),
                lambda: zfp.decode(stream, values.shape, values.dtype, mode, out, threads=threads),
            ],
            rounds,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    parser.add_argument("--mib", type=float, default=256, metavar="N", help="size of the arrays")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {platform.system()}; {tamis.config()}; {options.mib:g} MiB, {options.threads} threads"
    )
    print("\n| | encode, 1 thread | more | | decode, 1 thread | more | |\n|---|---|---|---|---|---|---|")
    for rank in range(1, 5):
        for dtype in ("float32", "float64"):
            values = large(rank, dtype, int(options.mib * (1 << 20)))
            for name, mode in MODES.items():
                times = measure(values, mode, options.threads, options.rounds)
                speeds = [f"{values.nbytes / 1e6 / each:.0f} MB/s" for each in times]
                print(
                    f"| {rank}-D {dtype}, {name} | {speeds[0]} | {speeds[1]} | {times[0] / times[1]:.2f}× |"
                    f" {speeds[2]} | {speeds[3]} | {times[2] / times[3]:.2f}× |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
