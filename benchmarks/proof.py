"""What the plugin's proof costs a chunk: ``python benchmarks/proof.py [--rounds N]``.

The filter of libh5ztamis.so is called as libhdf5 calls it, in turns with and without the proof, on chunks of
turbulence: *ordinary* ones, which pass by their largest magnitude; *doubtful* ones, which hold one large value
and are decoded and compared; and ordinary ones with a *fill value* of ordinary size noted. Medians of CPU seconds.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as np
from fields import SHAPES, field
from numpy.typing import NDArray
from turns import times_in_turns

import tamis
from tamis.filters import ChunkType
from tamis.filters._plugin_worker import LIBC, Callback, load_class

UNPROVEN = 0x666F7270
OPTIONAL = 1


def plugin_filter() -> Callback:
    """The callback of the installed plugin."""
    return load_class(str(tamis.plugin_path() / "libh5ztamis.so")).filter


def encoder(callback: Callback, values: NDArray[np.generic], words: tuple[int, ...]) -> Callable[[], float]:
    """A call that encodes a chunk and gives its CPU seconds, without those that make the buffer."""
    numbers = (ctypes.c_uint * len(words))(*words)

    def call() -> float:
        memory = ctypes.c_void_p(LIBC.malloc(values.nbytes))
        size = ctypes.c_size_t(values.nbytes)
        ctypes.memmove(memory, values.ctypes.data, values.nbytes)
        began = time.process_time()
        callback(OPTIONAL, len(words), numbers, values.nbytes, ctypes.byref(size), ctypes.byref(memory))
        spent = time.process_time() - began
        LIBC.free(memory)
        return spent

    return call


def cost(
    callback: Callback, values: NDArray[np.generic], accuracy: float, fill: bytes, rounds: int
) -> tuple[float, float]:
    """MiB/s without the proof, and what the proof adds in per cent: medians, the second of both in the same round."""
    words = tamis.Zfp(accuracy=accuracy).stored(ChunkType(values.dtype, values.shape, fill))
    spent: list[list[float]] = [[], []]
    calls = [encoder(callback, values, words), encoder(callback, values, (*words[:4], UNPROVEN))]
    times_in_turns([lambda i=i: spent[i].append(calls[i]()) for i in (0, 1)], rounds)
    without = statistics.median(spent[1])
    return values.nbytes / without / (1 << 20), 100 * (statistics.median(spent[0]) / without - 1)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41, help="of each pair of calls (default: %(default)s)")
    rounds = parser.parse_args().rounds
    callback = plugin_filter()
    print("proof of a chunk: MiB/s without it, and what it adds to encoding")
    print("axes type    accuracy |    MiB/s  ordinary  fill value  doubtful")
    for dtype in ("float32", "float64"):
        for rank in SHAPES:
            values = field(rank, "smooth", dtype)
            spiked = values.copy()
            spiked.flat[values.size // 2] = 1e12 if dtype == "float32" else 1e20
            fill = np.array(-999, dtype).tobytes()
            for accuracy in (0.1, 0.001):
                speed, ordinary = cost(callback, values, accuracy, b"", rounds)
                filled = cost(callback, values, accuracy, fill, rounds)[1]
                doubtful = cost(callback, spiked, accuracy, b"", rounds)[1]
                print(
                    f"{rank}    {dtype} {accuracy:8g} | {speed:8.0f} {ordinary:8.1f}% {filled:10.1f}% {doubtful:8.1f}%"
                )


if __name__ == "__main__":
    main()
