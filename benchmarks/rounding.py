"""Rounding against netCDF-C's quantization and memcpy: ``python benchmarks/rounding.py [--rounds N]``.

netCDF-C's own loop, ``nc4_convert_type`` of the libnetcdf that netCDF4 brings along, is called with the same values
in turns with ours; both results must have the same bits. Medians of CPU seconds, in one thread, for 4 MiB of values:
a *field* without missing values, and one with 30 % of *fill* values. A high number is good.

Packing is measured on smooth fields in chunks of 4 MiB: the search for the range; the codes, each of which is proven
for both types of readers; codes and szip(nn,16); and a whole write, where szip's chunk is decoded and compared, too.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import statistics
import time
from pathlib import Path

import netCDF4
import numpy as np
from turns import times_in_turns

import tamis
from tamis import _native
from tamis.rounding import KINDS, PackingRange, Rounding, relative_error

NBYTES = 4 << 20
FILL = 9.969209968386869e36
NC_TYPES = {"f4": 5, "f8": 6}
LIMITS = (-math.inf, math.inf)


def convert_type() -> ctypes._NamedFuncPointer:
    """The function of netCDF-C that converts and quantizes values."""
    netCDF4.getlibversion()
    names = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libnetcdf" in line}
    function = ctypes.CDLL(names.pop()).nc4_convert_type
    pointer, number = ctypes.c_void_p, ctypes.c_int
    function.argtypes = (pointer, pointer, number, number, ctypes.c_size_t, pointer, pointer, number, number, number)
    return function


def measure(dtype: str, share: float, rounding: Rounding, rounds: int) -> str:
    """One row of the table."""
    random = np.random.default_rng(0)
    size = NBYTES // np.dtype(dtype).itemsize
    values = (280 + 10 * random.normal(size=size)).astype(dtype)
    values[random.random(size) < share] = FILL
    ours, theirs, copied = (np.empty_like(values) for _ in range(3))
    marks, even, error = np.array([FILL], dtype), np.zeros(1, np.uint8), ctypes.c_int()
    quantizer = _native.Quantizer(rounding.name, rounding.number, values.itemsize)
    netcdf, kind = convert_type(), NC_TYPES[dtype]
    mode = KINDS.index(type(rounding)) + 1
    ends = (kind, kind, size, ctypes.byref(error), marks.ctypes.data, 0, mode, rounding.number)
    calls = [
        lambda: quantizer.round(values, ours, even, marks, LIMITS),
        lambda: netcdf(values.ctypes.data, theirs.ctypes.data, *ends),
        lambda: np.copyto(copied, values),
        lambda: relative_error(values, ours),
    ]
    round_time, netcdf_time, copy_time, proof_time = map(
        statistics.median, times_in_turns(calls, rounds, time.process_time)
    )
    assert ours.tobytes() == theirs.tobytes()
    return (
        f"{dtype}  {'fill ' if share else 'field'}  {rounding!s:22} {NBYTES / round_time / 1e9:6.2f} GB/s"
        f" {netcdf_time / round_time:6.1f} x netCDF-C {copy_time / round_time:5.2f} x memcpy"
        f"   proof {NBYTES / proof_time / 1e9:5.2f} GB/s"
    )


def measure_pack(dtype: str, share: float, rounds: int) -> str:
    """One row of the table of packing."""
    random = np.random.default_rng(0)
    side = math.isqrt(NBYTES // np.dtype(dtype).itemsize)
    waves = np.sin(np.arange(side) / 50)
    values = (280 + 20 * waves[:, None] * waves + 0.1 * random.normal(size=(side, side))).astype(dtype)
    values[random.random(values.shape) < share] = FILL
    copied, marks = np.empty_like(values), np.array([FILL], dtype)
    packing, szip = tamis.Pack(bound=0.1), tamis.Pipeline.parse("szip(nn,16)")
    codes = packing.codes(values.dtype, PackingRange.of(values, marks))
    chunk = tamis.filters.ChunkType(codes.dtype, values.shape)
    packed = codes.pack(values)[0]
    encoded, mask = szip.encode(packed)

    def written() -> None:
        integers = codes.pack(values)[0]
        data, skipped = szip.encode(integers)
        assert (szip.decode(data, skipped, chunk) == integers).all()

    calls = [
        lambda: PackingRange.of(values, marks),
        lambda: codes.pack(values),
        lambda: szip.encode(codes.pack(values)[0]),
        written,
        lambda: szip.decode(encoded, mask, chunk),
        lambda: np.copyto(copied, values),
    ]
    *seconds, copy_time = map(statistics.median, times_in_turns(calls, rounds, time.process_time))
    names = ("range", "codes", "codes and szip", "written and proven", "szip decoded")
    nbytes = values.nbytes
    speeds = [f"{name} {nbytes / spent / 1e9:5.2f} GB/s" for name, spent in zip(names, seconds, strict=True)]
    return (
        f"{dtype}  {'fill ' if share else 'field'}  {packing!s:22} {', '.join(speeds)},"
        f" memcpy {nbytes / copy_time / 1e9:.2f} GB/s, ratio {nbytes / len(encoded):.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="calls of each")
    arguments = parser.parse_args()
    for dtype in NC_TYPES:
        for share in (0.0, 0.3):
            for rounding in (tamis.BitRound(7), tamis.Granular(3), tamis.BitGroom(3)):
                print(measure(dtype, share, rounding, arguments.rounds))
            print(measure_pack(dtype, share, arguments.rounds))


if __name__ == "__main__":
    main()
