"""What `tamis repack` costs beside the codec: ``python benchmarks/costs.py [split] [chunks] [objects] [memory]``.

split
    CPU of a repack of 512 MiB of raw float32, 512³ in chunks of 64³, to zfp(accuracy=0.001), by what it went into: the
    codec (encoding, and decoding to compare), checks of values and bytes, reading, writing, all else; with 1 and 2
    threads.
chunks
    CPU for each of 20,000 chunks of 4 KiB: of a repack, in all and beyond encoding and decoding, and of reading what it
    wrote by `tamis.open`; with 1 and 2 threads.
objects
    CPU and peak memory of a repack of 3,000 nested groups, and of 4,000 datasets.
memory
    Peak memory of a repack of 4 GiB in chunks of 1 MiB with 2 threads: of raw chunks, and of deflated ones to other
    chunks; 8 GiB of disk are needed.

All of them if none is named. Each run is a process of its own, whose peak memory `getrusage` says; files are written
piece by piece, by others.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIB = 1 << 20


def tile(extent: int) -> Any:
    """A cube of turbulence: random phases under a spectrum that falls as that of a rough field does."""
    import numpy as np

    spectrum = np.fft.rfftn(np.random.default_rng(0).standard_normal((extent,) * 3))
    waves = [np.fft.fftfreq(extent) * extent] * 2 + [np.fft.rfftfreq(extent) * extent]
    squares = sum(np.square(axis) for axis in np.meshgrid(*waves, indexing="ij", sparse=True))
    squares[0, 0, 0] = 1
    values = np.fft.irfftn(spectrum * squares ** (-11 / 12) * np.exp(-squares / (0.35 * extent) ** 2), axes=(0, 1, 2))
    return (values / values.std()).astype("f4")


def write_cubes(path: Path, count: int, **options: Any) -> None:
    """Write a dataset of `count`³ cubes of 128³ values in chunks of 64³, that repeat each other but for a shift."""
    import h5py
    import numpy as np

    cube = tile(128)
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", (128 * count,) * 3, "f4", chunks=(64, 64, 64), **options)
        for at in np.ndindex((count,) * 3):
            made[tuple(slice(128 * i, 128 * i + 128) for i in at)] = np.roll(cube, sum(at), axis=1)


def write_small(path: Path) -> None:
    """Write small chunks."""
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.tile(tile(160), (1, 2, 3))[:, :, :400], chunks=(16, 16, 4))


def write_nested(path: Path) -> None:
    """Write groups in groups."""
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        group: Any = file
        for number in range(3000):
            group = group.create_group(f"g{number}")
        group.create_dataset("v", data=np.arange(100.0), chunks=(100,))


def write_flat(path: Path) -> None:
    """Write many datasets."""
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        for number in range(4000):
            file.create_dataset(f"v{number}", data=np.arange(100.0), chunks=(100,))


spent: Counter[str] = Counter()
_lock = threading.Lock()


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Note the CPU time of calls, of the thread that makes them."""

    def call(*arguments: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            taken = time.thread_time() - began
            with _lock:
                spent[name] += taken

    return call


def rewritten(path: Path) -> float:
    """CPU seconds that h5py takes to write the stored chunks of a dataset to another file."""
    import h5py

    taken = 0.0
    with h5py.File(path) as file, h5py.File(path.with_suffix(".copy"), "w") as copy:
        source = file["x"]
        made = copy.create_dataset("x", source.shape, source.dtype, chunks=source.chunks).id
        stored: list[Any] = []
        source.id.chunk_iter(stored.append)
        for each in stored:
            mask, data = source.id.read_direct_chunk(each.chunk_offset)
            began = time.thread_time()
            made.write_direct_chunk(each.chunk_offset, data, mask)
            taken += time.thread_time() - began
    return taken


def watched() -> None:
    """Take note of what the codec, checks of values and reading cost from now on."""
    import deflate

    from tamis import _native

    deflate.crc32 = timed("checks", deflate.crc32)
    for name, function in (("codec", "encode"), ("codec", "decode"), ("checks", "survey"), ("checks", "compare")):
        setattr(_native, function, timed(name, getattr(_native, function)))
    for name, function in (("codec", "encode"), ("reading", "read")):  # of many small chunks
        setattr(_native.ChunkPipeline, function, timed(name, getattr(_native.ChunkPipeline, function)))
    os.pread, os.preadv = timed("reading", os.pread), timed("reading", os.preadv)
    os.fsync = timed("writing", os.fsync)


def repacked(path: Path, recipe: str, chunks: dict[str, tuple[int, ...]] | None = None, threads: int = 1) -> float:
    """Repack all datasets of a file; return the seconds of CPU."""
    import tamis

    spent.clear()
    began = time.process_time()
    tamis.repack(path, path.with_suffix(".out"), {"*": recipe}, chunks=chunks, overwrite=True, threads=threads)
    return time.process_time() - began


def split(path: Path) -> None:
    """Say where the CPU goes."""
    watched()
    for threads in (1, 2):
        began = time.perf_counter()
        cpu = repacked(path, "zfp(accuracy=0.001)", threads=threads)
        clock = time.perf_counter() - began
        spent["writing"] += rewritten(path.with_suffix(".out"))
        path.with_suffix(".copy").unlink()
        parts = ", ".join(f"{name} {each / cpu:.0%}" for name, each in spent.most_common())
        rest = 1 - sum(spent.values()) / cpu
        print(f"512 MiB raw -> zfp, threads={threads}: {clock:.2f} s, CPU {cpu:.2f} s: {parts}, all else {rest:.0%}")


def read_again(path: Path, threads: int) -> float:
    """Read a dataset into memory that is there already, the second time; return the seconds of CPU."""
    import tamis

    with tamis.open(path, threads=threads) as file:
        values = file["x"].read()
        began = time.process_time()
        file["x"].read(out=values)
        return time.process_time() - began


def chunks(path: Path) -> None:
    """Say what a small chunk costs."""
    repacked(path, "zfp(accuracy=0.001)")  # which imports everything
    watched()
    for threads in (1, 2):
        cpu = repacked(path, "zfp(accuracy=0.001)", threads=threads)
        print(f"20,000 chunks of 4 KiB, threads={threads}: {cpu / 20_000 * 1e6:.0f} us of CPU a chunk,", end=" ")
        print(f"{(cpu - spent['codec']) / 20_000 * 1e6:.0f} beyond encoding and decoding,", end=" ")
        print(f"{read_again(path.with_suffix('.out'), threads) / 20_000 * 1e6:.1f} to read it")


def nested(path: Path) -> None:
    """Groups in groups."""
    print(f"3,000 nested groups: CPU {repacked(path, 'deflate'):.1f} s")


def flat(path: Path) -> None:
    """Many datasets."""
    print(f"4,000 datasets: CPU {repacked(path, 'deflate'):.1f} s")


def raw(path: Path) -> None:
    """A large file, chunk by chunk."""
    print(f"4 GiB raw -> zfp, threads=2: CPU {repacked(path, 'zfp(accuracy=0.001)', threads=2):.1f} s")


def rechunked(path: Path) -> None:
    """A large file, to chunks of another shape."""
    cpu = repacked(path, "zfp(accuracy=0.001)", {"x": (16, 256, 64)}, threads=2)
    print(f"4 GiB deflate -> zfp in other chunks, threads=2: CPU {cpu:.1f} s")


def write_half(path: Path) -> None:
    """Write 512 MiB."""
    write_cubes(path, 4)


def write_large(path: Path) -> None:
    """Write 4 GiB."""
    write_cubes(path, 8)


def write_deflated(path: Path) -> None:
    """Write 4 GiB, deflated."""
    write_cubes(path, 8, shuffle=True, compression=1)


RUNS = {
    "split": ((write_half, split),),
    "chunks": ((write_small, chunks),),
    "objects": ((write_nested, nested), (write_flat, flat)),
    "memory": ((write_large, raw), (write_deflated, rechunked)),
}


def main() -> None:
    """Make each file, and use it in a process of its own."""
    if sys.argv[1:2] == ["--in-process"]:
        globals()[sys.argv[2]](Path(sys.argv[3]))
        print(f"    peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB:.0f} MiB")
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(RUNS)}: all, if none is named")
    asked = parser.parse_args().what or list(RUNS)
    if unknown := sorted(set(asked) - set(RUNS)):
        parser.error(f"expected some of {', '.join(RUNS)}, got {', '.join(unknown)}")
    for name in asked:
        for write, use in RUNS[name]:
            with tempfile.TemporaryDirectory() as folder:
                for step in (write, use):
                    command = [sys.executable, __file__, "--in-process", step.__name__, f"{folder}/x.h5"]
                    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                print(said, end="", flush=True)


if __name__ == "__main__":
    main()
