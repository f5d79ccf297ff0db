"""Read a variable over HTTP with latency, against other readers: ``python benchmarks/remote.py [--latency SECONDS …]``.

The table has requests, bytes and seconds. It needs aiohttp, fsspec, kerchunk, pyfive and zarr. Each reader opens the
file anew, and reads one series, one map, or everything; readers take turns, and the median of the times is shown. The
server runs in another process on this machine. kerchunk's references are made before, so that it reads no index; nobody
but tamis reads zfp.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import tamis

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tools"))
from range_server import range_server

SHAPE = (600, 96, 144)
FILES: dict[str, dict[str, Any]] = {
    "180-deflate": {"chunks": (10, 32, 48), "filters": "shuffle|deflate(1)"},
    "180-zfp": {"chunks": (10, 32, 48), "filters": "zfp(accuracy=0.01)"},
    "3600-deflate": {"chunks": (10, 16, 16), "filters": "shuffle|deflate(1)"},
    "contiguous": {"chunks": None, "filters": ""},
}
KEYS: dict[str, Any] = {
    "series": (slice(None), 40, 70),
    "map": (300,),
    "whole": (...,),
}


def make_files(folder: Path) -> None:
    """Write the files, with one smooth variable of 33 MB."""
    chance = np.random.default_rng(1)
    values = chance.standard_normal(SHAPE).astype("f4").cumsum(axis=0)
    for name, form in FILES.items():
        with h5py.File(folder / f"{name}.h5", "w") as file:
            if form["chunks"]:
                tamis.hdf5.write(file, "v", values, chunks=form["chunks"], filters=form["filters"])
            else:
                file["v"] = values


def serve(folder: str, latency: float, pipe: Connection) -> None:
    """Serve a folder, and tell counters when asked; ends with the pipe."""
    with range_server(Path(folder), latency=latency) as server, suppress(EOFError):
        pipe.send(server.port)
        while True:
            if pipe.recv() == "reset":
                server.reset()
            pipe.send((server.requests, server.nbytes))


def by_tamis(url: str, key: Any, references: Path) -> Any:
    """Read by tamis, without metadata on disk."""
    with tamis.open(url) as file:
        return file["v"][key]


def by_h5py(url: str, key: Any, references: Path) -> Any:
    """Read by h5py through a file of fsspec, with its default cache."""
    import fsspec

    with fsspec.open(url, "rb") as stream, h5py.File(stream) as file:
        return file["v"][key]


def by_pyfive(url: str, key: Any, references: Path) -> Any:
    """Read by pyfive through a file of fsspec."""
    import fsspec
    import pyfive

    with fsspec.open(url, "rb") as stream, pyfive.File(stream) as file:
        return file["v"][key]


def by_kerchunk(url: str, key: Any, references: Path) -> Any:
    """Read by zarr-python through references that kerchunk made before."""
    import fsspec
    import zarr
    from zarr.storage import FsspecStore

    refs = json.loads(references.read_text().replace("URL", url))
    options = {"asynchronous": True}
    system = fsspec.filesystem("reference", fo=refs, remote_protocol="http", remote_options=options, **options)
    return zarr.open(FsspecStore(system), mode="r", zarr_format=2)["v"][key]


READERS: dict[str, Callable[[str, Any, Path], Any]] = {
    "tamis": by_tamis,
    "h5py + fsspec": by_h5py,
    "pyfive": by_pyfive,
    "kerchunk + zarr": by_kerchunk,
}


def make_references(path: Path) -> Path:
    """Let kerchunk make the references to a file; an empty file if it cannot."""
    target = path.with_suffix(".json")
    try:
        from kerchunk.hdf import SingleHdf5ToZarr

        document = SingleHdf5ToZarr(str(path), inline_threshold=0).translate()
        target.write_text(json.dumps(document).replace(str(path), "URL"))
    except Exception:
        target.write_text("")
    return target


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.0, 0.03, 0.1], help="seconds before an answer")
    parser.add_argument("--rounds", type=int, default=3, help="times that each reader reads")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        references = {name: make_references(Path(folder, f"{name}.h5")) for name in FILES}
        print(f"{'latency':>7}  {'file':<13} {'read':<7} {'reader':<16} {'requests':>8} {'MB':>7} {'seconds':>8}")
        for latency in options.latency:
            context = multiprocessing.get_context("spawn")
            pipe, other = context.Pipe()
            process = context.Process(target=serve, args=(folder, latency, other), daemon=True)
            process.start()
            port = pipe.recv()
            for name in FILES:
                measure(f"http://127.0.0.1:{port}/{name}.h5", name, latency, options.rounds, references[name], pipe)
            pipe.close()
            process.terminate()


def measure(url: str, name: str, latency: float, rounds: int, references: Path, pipe: Connection) -> None:
    """Print the rows of a file."""
    for word, key in KEYS.items():
        with h5py.File(references.with_suffix(".h5")) as file:
            expected = file["v"][key]
        seconds: dict[str, list[float]] = {reader: [] for reader in READERS}
        counts: dict[str, tuple[int, int]] = {}
        failed: dict[str, str] = {}
        for _ in range(rounds):
            for reader, read in READERS.items():
                if reader in failed:
                    continue
                pipe.send("reset")
                pipe.recv()
                began = time.perf_counter()
                try:
                    values = read(url, key, references)
                except Exception as error:
                    failed[reader] = type(error).__name__
                    continue
                seconds[reader].append(time.perf_counter() - began)
                if not np.array_equal(np.asarray(values), expected):
                    failed[reader] = "wrong values"
                pipe.send("tell")
                counts[reader] = pipe.recv()
        for reader in READERS:
            place = f"{latency * 1000:>4.0f} ms  {name:<13} {word:<7} {reader:<16}"
            if reader in failed:
                print(f"{place} {failed[reader]}")
                continue
            requests, nbytes = counts[reader]
            print(f"{place} {requests:>8} {nbytes / 1e6:>7.2f} {statistics.median(seconds[reader]):>8.3f}", flush=True)


if __name__ == "__main__":
    main()
