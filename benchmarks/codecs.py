"""Time libraries that do the same codec: ``python benchmarks/codecs.py [FILE:VARIABLE …] [--codec zstd] [--rounds N]``.

Fields are shuffled first, as repack's are, but for blosc, which does that itself; without a file, those of `fields.py`.
Each row is a library at one level, run in turns with the others: read the ratios to the first one, the megabytes per
second (10^6 bytes of uncompressed data) wander with the machine. "held" is the longest time that another thread waited
during a call, in hundredths of the call: near 100 where the library keeps the interpreter's lock. All libraries decode
the first one's streams. One that is not installed is left out.

``python benchmarks/codecs.py --costs`` prints the table of `tamis.jobs.plan.costs` instead: what each candidate of plan
costs, in classes.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import math
import statistics
import tempfile
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from fields import field
from turns import times_in_turns

from tamis.formats.registry import open_store
from tamis.jobs.plan.candidates import Candidates
from tamis.jobs.plan.costs import kind_of
from tamis.jobs.plan.planner import variables_of
from tamis.jobs.plan.requirements import as_plan_requirement
from tamis.jobs.plan.sample import ALL, sample_of

CHUNKS = {"64 KiB": 1 << 16, "1 MiB": 1 << 20, "4 MiB": 1 << 22}
LEVELS = {"deflate": (1, 4, 6, 9), "zstd": (-5, 1, 3, 9), "lz4": (1,), "blosc": (5,)}

Maker = Callable[[Any], "Library"]


class Library(NamedTuple):
    """How a library encodes bytes at a level, and decodes to as many bytes as it is told."""

    encode: Callable[[bytes, int], Any]
    decode: Callable[[Any, int], Any]


def _isal_level(level: int) -> int:
    return min(3, (level + 2) // 3)  # it has 0 to 3


MAKERS: dict[str, dict[str, Maker]] = {
    "deflate": {
        "zlib": lambda m: Library(m.compress, lambda data, size: m.decompress(data)),
        "isal.isal_zlib": lambda m: Library(
            lambda data, level: m.compress(data, _isal_level(level)), lambda data, size: m.decompress(data)
        ),
        "deflate": lambda m: Library(m.zlib_compress, m.zlib_decompress),
        "zlib_ng.zlib_ng": lambda m: Library(m.compress, lambda data, size: m.decompress(data)),
        "imagecodecs": lambda m: Library(m.deflate_encode, lambda data, size: m.deflate_decode(data, out=size)),
        "numcodecs.zlib": lambda m: Library(
            lambda data, level: m.Zlib(level).encode(data), lambda data, size: m.Zlib().decode(data)
        ),
        "cramjam": lambda m: Library(m.zlib.compress, lambda data, size: m.zlib.decompress(data, output_len=size)),
    },
    "zstd": {
        "zstandard": lambda m: Library(
            lambda data, level: m.ZstdCompressor(level=level).compress(data),
            lambda data, size: m.ZstdDecompressor().decompress(data, max_output_size=size),
        ),
        "imagecodecs": lambda m: Library(m.zstd_encode, lambda data, size: m.zstd_decode(data, out=size)),
        "backports.zstd": lambda m: Library(
            m.compress, lambda data, size: m.ZstdDecompressor().decompress(data, max_length=size)
        ),
        "cramjam": lambda m: Library(m.zstd.compress, lambda data, size: m.zstd.decompress(data, output_len=size)),
    },
    "lz4": {
        "imagecodecs": lambda m: Library(
            lambda data, level: m.lz4_encode(data), lambda data, size: m.lz4_decode(data, out=size)
        ),
        "lz4.block": lambda m: Library(
            lambda data, level: m.compress(data, store_size=False),
            lambda data, size: m.decompress(data, uncompressed_size=size),
        ),
    },
    "blosc": {
        "imagecodecs": lambda m: Library(
            lambda data, level: m.blosc_encode(np.frombuffer(data, "V4"), level, compressor="zstd", numthreads=1),
            lambda data, size: m.blosc_decode(data, out=size, numthreads=1),
        ),
        "blosc": lambda m: Library(
            lambda data, level: m.compress(data, typesize=4, clevel=level, cname="zstd"),
            lambda data, size: m.decompress(data),
        ),
        "numcodecs.blosc": lambda m: Library(
            lambda data, level: m.Blosc("zstd", level).encode(np.frombuffer(data, "i4")),
            lambda data, size: m.Blosc().decode(data),
        ),
    },
}


def libraries(codec: str) -> dict[str, Library]:
    """Those that are installed here."""
    found = {}
    for name, make in MAKERS[codec].items():
        try:
            found[name] = make(importlib.import_module(name))
        except ImportError:
            print(f"{name} is not installed: left out")
    return found


def pieces_of(values: np.ndarray[Any, Any], nbytes: int, shuffle: bool) -> list[bytes]:
    """Up to eight pieces of so many bytes, spread over the field."""
    flat = np.ascontiguousarray(values).reshape(-1)
    per = nbytes // flat.itemsize
    starts = np.linspace(0, max(0, flat.size - per), num=max(1, min(8, (8 << 20) // nbytes)), dtype=int)
    pieces = [flat[start : start + per].view(np.uint8).reshape(-1, flat.itemsize) for start in starts]
    return [(piece.T if shuffle else piece).tobytes() for piece in pieces]


def seconds(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """Median time of each call, called in turns."""
    return [statistics.median(mine) for mine in times_in_turns(calls, rounds)]


def held(call: Callable[[], Any], rounds: int) -> float:
    """Longest time that this thread waits while another one calls, in hundredths of the call: the least of some."""
    found = []
    for _ in range(rounds):
        other = threading.Thread(target=call)
        began = last = time.perf_counter()
        longest = 0.0
        other.start()
        while other.is_alive():
            time.sleep(0.0001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        now = time.perf_counter()
        found.append(100 * max(longest, now - last) / (now - began))
    return min(found)


def rows(codec: str, pieces: list[bytes], level: int, rounds: int) -> Iterator[str]:
    """One line for each library."""
    total, size = sum(map(len, pieces)), len(pieces[0])
    known = libraries(codec)
    encoded = {name: [bytes(one.encode(piece, level)) for piece in pieces] for name, one in known.items()}
    first = next(iter(encoded.values()))
    for name, one in known.items():
        for piece, theirs, mine in zip(pieces, first, encoded[name], strict=True):
            assert bytes(one.decode(theirs, size)) == piece, name
            assert codec != "deflate" or zlib.decompress(mine) == piece, name
    encodes = [lambda one=one: [one.encode(piece, level) for piece in pieces] for one in known.values()]
    decodes = [lambda one=one: [one.decode(each, size) for each in first] for one in known.values()]
    encode_times, decode_times = seconds(encodes, rounds), seconds(decodes, rounds)
    long = b"".join(pieces)
    for at, (name, one) in enumerate(known.items()):
        stream = one.encode(long, level)
        stalls = held(partial(one.encode, long, level), 3), held(partial(one.decode, stream, len(long)), 3)
        yield (
            f"| {name} | {total / encode_times[at] / 1e6:.0f} | {encode_times[0] / encode_times[at]:.2f} "
            f"| {total / sum(map(len, encoded[name])):.3f} | {total / decode_times[at] / 1e6:.0f} "
            f"| {decode_times[0] / decode_times[at]:.2f} | {stalls[0]:.0f}, {stalls[1]:.0f} |"
        )


def sources(names: list[str]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Fields by name: of files, or made."""
    for name in names:
        path, _, variable = name.rpartition(":")
        with h5py.File(path) as file:
            yield variable, file[variable][...].astype(file[variable].dtype.newbyteorder("="))
    if not names:
        yield "rough", field(3, "rough", "float32")
        yield "smooth", field(3, "smooth", "float64")


def costs(rounds: int) -> Iterator[str]:
    """Lines of the table of `tamis.jobs.plan.costs`: the median speed of each kind of candidate, as a power of two."""
    speeds: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("rough", "smooth"):
            path = str(Path(folder) / f"{kind}.h5")
            with h5py.File(path, "w") as file:
                file.create_dataset("v", data=field(3, kind, "float32"), chunks=(16, 80, 80))
            with open_store(path) as store:
                variable = variables_of([store], {"v": as_plan_requirement("std=0.001")}, "exact")[0][0]
                sample = sample_of(variable.arrays, variable.chunk_shape, ALL)
                for readers in ("all", "zarr"):
                    candidates = Candidates(variable, sample, "archive", readers)
                    every = [filters for filters in candidates.pipelines() if candidates.allowed(filters)]
                    for _, filters in itertools.product(range(rounds), every):
                        each = candidates.measured(filters, sample, lambda _: None)
                        speeds[kind_of(filters)].append((each.write_mbs, each.read_mbs))
    for name, pairs in speeds.items():
        write, read = (2 ** round(math.log2(statistics.median(own))) for own in zip(*pairs, strict=True))
        yield f'    "{name}": Cost({write}, {read}),'


def main() -> None:
    """Print a table for each field, chunk size and level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fields", nargs="*", metavar="FILE:VARIABLE")
    parser.add_argument("--codec", choices=list(MAKERS), default="deflate")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--levels", type=int, nargs="*")
    parser.add_argument("--costs", action="store_true", help="print the table of tamis.jobs.plan.costs instead")
    parser.add_argument("--chunks", nargs="*", default=list(CHUNKS), choices=list(CHUNKS))
    options = parser.parse_args()
    if options.costs:
        for line in costs(options.rounds):
            print(line, flush=True)
        return
    for name, values in sources(options.fields):
        for chunk in options.chunks:
            pieces = pieces_of(values, CHUNKS[chunk], options.codec != "blosc")
            for level in options.levels or LEVELS[options.codec]:
                print(f"\n{options.codec}: {name}, {values.dtype}, chunks of {chunk}, level {level}\n")
                print("| library | encode MB/s | × first | ratio | decode MB/s | × first | held: encode, decode |")
                print("|---|---|---|---|---|---|---|")
                for row in rows(options.codec, pieces, level, options.rounds):
                    print(row, flush=True)


if __name__ == "__main__":
    main()
