"""What `files.py` has done in processes of their own: ``python benchmarks/file_jobs.py JOB JSON`` prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deflate
import h5py
import numpy as np

CHUNK = 64
ACCURACY, SHUFFLED, RATE = "zfp(accuracy=0.001)", "shuffle|deflate(4)", "zfp(rate=8)"
PARTS = {"x[100, 100, 100]": (100, 100, 100), "x[100]": (100,), "x[:, 100]": (slice(None), 100)}

# The job, the program, seconds of the clock and of the processor, and a number by which its results are compared.
Timing = tuple[str, str, float, float, int]


def prepare(folder: str, extent: int, *accuracies: float) -> dict[str, Any]:
    """Write one field, raw and with each pipeline; return the plugin's folder and words for tolerances."""
    import tamis

    values = np.random.default_rng(0).standard_normal((extent,) * 3, dtype="f4")
    for axis in range(3):
        np.cumsum(values, axis=axis, out=values)
    values /= values.std()
    with h5py.File(f"{folder}/raw.h5", "w") as file:
        made = file.create_dataset("x", data=values)
        for axis, name in enumerate("abc"):  # nccopy names chunks by dimensions
            file[name] = np.arange(extent, dtype="f4")
            file[name].make_scale(name)
            made.dims[axis].attach_scale(file[name])
    with h5py.File(f"{folder}/chunked.h5", "w") as file:
        for pipeline in (ACCURACY, SHUFFLED, RATE):
            tamis.hdf5.write(file, pipeline, values, filters=pipeline, chunks=(CHUNK,) * 3)
    words = {str(each): tamis.Zfp(accuracy=each).requested for each in accuracies}
    return {"plugin": str(tamis.plugin_path()), "words": words}


def by_hdf5plugin(folder: str, rounds: int) -> list[Timing]:
    """Time h5py with the filter of hdf5plugin, which must be the only ZFP of this process."""
    import hdf5plugin

    values, out = fields(folder)
    pipelines = (ACCURACY, SHUFFLED, RATE)
    zfp = hdf5plugin.Zfp(accuracy=1e-3)
    return [each for _ in range(rounds) for each in through_h5py("h5py", folder, values, out, zfp, pipelines)]


def by_tamis(folder: str, rounds: int) -> list[Timing]:
    """Time tamis, and h5py with its filter."""
    import tamis

    values, out = fields(folder)
    zfp = tamis.Zfp(accuracy=1e-3)
    found: list[Timing] = []
    for _ in range(rounds):
        found += through_h5py("h5py, tamis' plugin", folder, values, out, zfp, (ACCURACY, RATE))
        found += through_tamis(folder, values, out)
    return found


def fields(folder: str) -> tuple[Any, Any]:
    """Return the values, and an array to read into, whose memory is there already."""
    with h5py.File(f"{folder}/raw.h5") as file:
        values = file["x"][()]
    return values, np.zeros_like(values)


def through_h5py(
    program: str, folder: str, values: Any, out: Any, zfp: Any, pipelines: tuple[str, ...]
) -> Iterator[Timing]:
    """Time h5py, with whichever filter 32013 this process has."""

    def write() -> None:
        with h5py.File(f"{folder}/written.h5", "w") as file:
            file.create_dataset("x", data=values, chunks=(CHUNK,) * 3, **zfp)

    yield written(folder, program, write)
    with h5py.File(f"{folder}/chunked.h5") as file:
        for pipeline in pipelines:
            yield whole(pipeline, program, file[pipeline].read_direct, out)
    for part, key in PARTS.items():
        with h5py.File(f"{folder}/chunked.h5") as file:  # opened anew, it keeps no decoded chunks
            yield some(part, program, file[RATE], key)


def through_tamis(folder: str, values: Any, out: Any) -> Iterator[Timing]:
    """Time `tamis.hdf5.write` and `tamis.open`."""
    import tamis

    def write(threads: int) -> None:
        with h5py.File(f"{folder}/written.h5", "w") as file:
            tamis.hdf5.write(file, "x", values, filters=ACCURACY, chunks=(CHUNK,) * 3, threads=threads)

    for threads in (1, 2):
        program = f"tamis {threads}"
        yield written(folder, program, lambda threads=threads: write(threads))
        with tamis.open(f"{folder}/chunked.h5", threads=threads) as opened:
            for pipeline in (ACCURACY, SHUFFLED, RATE):
                yield whole(pipeline, program, opened[pipeline].read, out)
        for part, key in PARTS.items():
            with tamis.open(f"{folder}/chunked.h5", threads=threads) as opened:
                yield some(part, program, opened[RATE], key)


def written(folder: str, program: str, write: Callable[[], None]) -> Timing:
    """Time writing a file; streams are the same where their sizes are, to all appearance."""
    path = f"{folder}/written.h5"
    Path(path).unlink(missing_ok=True)
    taken, _ = timed(write)
    with h5py.File(path) as file:
        return f"write `{ACCURACY}`", program, *taken, file["x"].id.get_storage_size()


def whole(pipeline: str, program: str, read: Callable[[Any], object], out: Any) -> Timing:
    """Time reading a dataset into an array."""
    out.fill(np.nan)
    taken, _ = timed(lambda: read(out))
    return f"read `{pipeline}`", program, *taken, deflate.crc32(out)


def some(part: str, program: str, dataset: Any, key: tuple[Any, ...]) -> Timing:
    """Time reading a part of the dataset at a fixed rate."""
    taken, values = timed(lambda: dataset[key])
    return f"read `{part}` of `{RATE}`", program, *taken, deflate.crc32(np.ascontiguousarray(values))


def timed(call: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    """Seconds of the clock, and of the processor in all threads; and what the call returns."""
    began, used = time.perf_counter(), time.process_time()
    got = call()
    return (time.perf_counter() - began, time.process_time() - used), got


def repack(source: str, target: str, recipes: dict[str, str], chunks: dict[str, list[int]]) -> tuple[float, ...]:
    """Time the call from a Python that has imported it; the last figure is the memory at most."""
    import tamis

    job = tamis.repack
    shapes = {name: tuple(shape) for name, shape in chunks.items()}
    taken, _ = timed(lambda: job(source, target, recipes, chunks=shapes, overwrite=True, threads=2))
    return *taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def filtered(path: str, name: str) -> bool:
    """Whether a dataset has ZFP: h5repack and nccopy leave a filter out without a word."""
    with h5py.File(path) as file:
        plist = file[name].id.get_create_plist()
        return 32013 in [plist.get_filter(index)[0] for index in range(plist.get_nfilters())]


def main() -> None:
    """Run the job of this name with arguments in JSON."""
    job, arguments = sys.argv[1:]
    jobs: tuple[Callable[..., Any], ...] = (prepare, by_hdf5plugin, by_tamis, repack, filtered)
    print(json.dumps({each.__name__: each for each in jobs}[job](*json.loads(arguments))))


if __name__ == "__main__":
    main()
