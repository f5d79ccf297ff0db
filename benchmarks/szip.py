"""szip against libaec, which imagecodecs brings along: ``python benchmarks/szip.py [FILE:VARIABLE …] [--rounds N]``.

Chunks are steps, or levels, of packed fields: codes of 16 bits, of which one is 0.2 of the variable's unit, as
``pack(bound=0.1)`` makes them. Without arguments they are those of the sample, and where they are, of the files of
climate models in shared/data beside the repository; then made ones, and floats, whose bytes szip codes in planes.

Each kernel of this machine takes turns with libaec, in one thread; both must give the same bytes. Medians of CPU
seconds of the thread, as MB/s of decoded bytes, and how many times as fast as libaec. A high number is good.
``lengths`` is `Szip.encoded_nbytes` of six parameters in one call, nn and ec with 8, 16 and 32 pixels.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import imagecodecs
import numpy as np
from machine import machine
from numpy.typing import NDArray
from turns import times_in_turns

from tamis import Szip, _native
from tamis.filters import ChunkType

HERE = Path(__file__).resolve().parent
SAMPLE = [f"{HERE.parent}/examples/data/cam_ts.nc:TS"]
MODELS = ["cam_t_3months.nc:T", "cam_ts_100days.nc:TS", "pop_sst_60days.nc:SST"]
DATA = HERE.parents[1] / "shared" / "data"
STEP = 0.2
MOST_NBYTES = 8 << 20  # of a field
CANDIDATES = [Szip(coding, pixels) for coding in ("nn", "ec") for pixels in (8, 16, 32)]


class Case(NamedTuple):
    """A field, whose last two axes are those of a chunk, and a filter."""

    name: str
    values: NDArray[Any]
    filter: Szip


def packed(values: NDArray[Any]) -> NDArray[Any]:
    """Codes of 16 bits, the last one for missing values."""
    there = np.isfinite(values) & (np.abs(values) < 1e30)
    codes = np.full(values.shape, 65535, "<u2")
    codes[there] = np.rint((values[there] - values[there].min()) / STEP)
    return codes


def read(name: str) -> NDArray[Any]:
    """The first steps of a variable."""
    path, _, variable = name.rpartition(":")
    with h5py.File(path) as file:
        values: NDArray[Any] = file[variable][: max(1, 2 * MOST_NBYTES // file[variable][:1].nbytes)]
    return values


def made() -> Iterator[Case]:
    """Fields of other kinds."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:1024, :2048]
    waves = 20000 + 15000 * np.sin(x / 97) * np.cos(y / 61) + rng.normal(0, 2, x.shape)
    yield Case("waves", waves.astype("<u2"), Szip("nn", 16))
    yield Case("walk", (np.cumsum(rng.normal(0, 8, x.shape)) % 60000).reshape(x.shape).astype("<u2"), Szip("nn", 16))
    rain = np.maximum(0, rng.gamma(0.2, 30, x.shape) - 10).astype("<u2")
    yield from (Case("rain", rain, Szip(coding, 16)) for coding in ("nn", "ec"))


def cases(names: list[str]) -> Iterator[Case]:
    """All of them."""
    for name in names:
        values = read(name)
        codes = packed(values)
        label = f"{Path(name.rpartition(':')[0]).name}:{name.rpartition(':')[2]}"
        yield from (Case(label, codes, Szip("nn", pixels)) for pixels in (8, 16, 32))
        yield Case(f"{label} (floats)", values.astype("<f4"), Szip("nn", 16))
    yield from made()


def measure(case: Case, rounds: int) -> dict[str, tuple[float, float]]:
    """Print the row of a case for each kernel, and return how many times as fast as libaec it encodes and decodes."""
    one, chunk = case.filter, ChunkType(case.values.dtype, case.values.shape[-2:])
    words = one.stored(chunk)
    plain = [each.tobytes() for each in case.values.reshape(-1, *chunk.shape)]
    nbytes = sum(map(len, plain))
    encoded = [bytes(one.encode(data, chunk, words)) for data in plain]
    theirs = [data[4:] for data in encoded]
    assert theirs == [imagecodecs.szip_encode(data, *words, out=len(data)) for data in plain], "the same bytes"
    assert plain == [one.decode(data, chunk, words) for data in encoded], "the same values"

    def with_kernel(name: str) -> list[Any]:
        return [
            lambda: (_native.use_kernel(name), [one.encode(data, chunk, words) for data in plain]),
            lambda: (_native.use_kernel(name), [one.decode(data, chunk, words) for data in encoded]),
            lambda: (_native.use_kernel(name), [Szip.encoded_nbytes(data, chunk, CANDIDATES) for data in plain]),
        ]

    calls = [
        lambda: [imagecodecs.szip_encode(data, *words, out=len(data)) for data in plain],
        lambda: [imagecodecs.szip_decode(data, *words, out=chunk.nbytes) for data in theirs],
    ]
    kernels = [name for name in _native.kernels() if name != "avx2-tzcnt"]
    for name in kernels:
        calls += with_kernel(name)
    times_in_turns(calls, 1)
    spent = [statistics.median(times) for times in times_in_turns(calls, rounds, time.thread_time)]
    _native.use_kernel(kernels[0])
    speed = [nbytes / seconds / 1e6 for seconds in spent]
    ratio = nbytes / sum(map(len, encoded))
    print(f"{case.name:32} {one!s:26} {ratio:5.2f}   libaec {speed[0]:5.0f} {speed[1]:5.0f}", end="")
    faster = {}
    for i, name in enumerate(kernels):
        encode, decode, lengths = speed[2 + 3 * i : 5 + 3 * i]
        faster[name] = (encode / speed[0], decode / speed[1])
        print(
            f"   {name} {encode:5.0f} ({faster[name][0]:.1f}) {decode:5.0f} ({faster[name][1]:.1f})"
            f" lengths {lengths:4.0f}",
            end="",
        )
    print()
    return faster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fields", nargs="*", metavar="FILE:VARIABLE", help="instead of those of the files above")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each")
    arguments = parser.parse_args()
    models = [f"{DATA}/{name}" for name in MODELS if (DATA / name.partition(":")[0]).exists()]
    print(f"{machine()}; {imagecodecs.szip_version()}; MB/s of encoding and decoding, and times libaec's")
    found = [measure(case, arguments.rounds) for case in cases(arguments.fields or SAMPLE + models)]
    for name in found[0]:
        means = [math.exp(statistics.fmean(math.log(row[name][i]) for row in found)) for i in (0, 1)]
        print(f"{name}: encodes {means[0]:.2f} and decodes {means[1]:.2f} times as fast as libaec (geometric means)")


if __name__ == "__main__":
    main()
