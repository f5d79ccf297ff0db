"""Read a variable over HTTP with latency, against other readers: ``python benchmarks/remote.py [--latency SECONDS …]``.

The table has requests, bytes and seconds. It needs aiohttp, fsspec, icechunk, kerchunk, pyfive, virtualizarr and zarr.
Each reader opens the file anew, and reads one series, one map, or everything; readers take turns, and the median of the
times is shown. The server runs in another process on this machine. References (kerchunk, VirtualiZarr) are made before,
so that their readers read no index; nobody but tamis reads zfp. Who takes longer than ``--most`` seconds is not asked
again with more latency.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
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
from scipy.io import netcdf_file

import tamis

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tools"))
from range_server import range_server

os.environ["TAMIS_CACHE"] = ""  # no reader finds anything of an earlier run
SHAPE = (600, 96, 144)
DEFLATE, ZFP = "shuffle|deflate(1)", "zfp(accuracy=0.01)"
CASES: dict[str, tuple[tuple[int, ...] | None, str]] = {  # Chunk shape and filters
    "180-deflate.h5": ((30, 32, 48), DEFLATE),
    "180-zfp.h5": ((30, 32, 48), ZFP),
    "3600-deflate.h5": ((10, 16, 16), DEFLATE),
    "3600-zfp.h5": ((10, 16, 16), ZFP),
    "100000-deflate.h5": ((5, 4, 4), DEFLATE),
    "100000-zfp.h5": ((5, 4, 4), ZFP),
    "contiguous.h5": (None, ""),
    "classic.nc": (None, ""),
    "sharded.zarr": ((10, 32, 48), DEFLATE),
}
KEYS: dict[str, Any] = {
    "series": (slice(None), 40, 70),
    "map": (300,),
    "whole": (...,),
}


def make_files(folder: Path, names: list[str]) -> None:
    """Write the files, with one smooth variable of 33 MB."""
    chance = np.random.default_rng(1)
    values = chance.standard_normal(SHAPE).astype("f4").cumsum(axis=0)
    for name in names:
        chunks, filters = CASES[name]
        path = folder / Path(name).with_suffix(".h5")
        if path.suffix != Path(name).suffix:
            path = folder / "plain.h5"
        with h5py.File(path, "w") as file:
            if chunks:
                tamis.hdf5.write(file, "v", values, chunks=chunks, filters=filters)
            else:
                file["v"] = values
        if name.endswith(".zarr"):
            tamis.repack(path, folder / name, {}, shards=36)
        elif name.endswith(".nc"):
            with netcdf_file(folder / name, "w", version=2) as classic:
                for axis, extent in zip("tyx", SHAPE, strict=True):
                    classic.createDimension(axis, extent)
                classic.createVariable("v", "f4", tuple("tyx"))[:] = values


def serve(folder: str, latency: float, port: int, pipe: Connection) -> None:
    """Serve a folder, and tell counters when asked; ends with the pipe."""
    with range_server(Path(folder), latency=latency, port=port) as server, suppress(EOFError):
        pipe.send(server.port)
        while True:
            if pipe.recv() == "reset":
                server.reset()
            pipe.send((server.requests, server.nbytes))


def by_tamis(url: str, key: Any, made: Path) -> Any:
    """Read by tamis, without metadata on disk."""
    with tamis.open(url) as file:
        return file["v"][key]


def by_tamis_references(url: str, key: Any, made: Path) -> Any:
    """Read by tamis through references that it made before."""
    with tamis.open(made.with_suffix(".tamis.json")) as file:
        return file["v"][key]


def by_h5py(url: str, key: Any, made: Path) -> Any:
    """Read by h5py through a file of fsspec, with its default cache."""
    import fsspec

    with fsspec.open(url, "rb") as stream, h5py.File(stream) as file:
        return file["v"][key]


def by_pyfive(url: str, key: Any, made: Path) -> Any:
    """Read by pyfive through a file of fsspec."""
    import fsspec
    import pyfive

    with fsspec.open(url, "rb") as stream, pyfive.File(stream) as file:
        return file["v"][key]


def by_kerchunk(url: str, key: Any, made: Path) -> Any:
    """Read by zarr-python through references that kerchunk made before."""
    import fsspec
    import zarr
    from zarr.storage import FsspecStore

    refs = str(made.with_suffix(".json"))
    options = {"asynchronous": True}
    system = fsspec.filesystem("reference", fo=refs, remote_protocol="http", remote_options=options, **options)
    return zarr.open(FsspecStore(system), mode="r", zarr_format=2)["v"][key]


def by_icechunk(url: str, key: Any, made: Path) -> Any:
    """Read by zarr-python through a repository of Icechunk that VirtualiZarr made before."""
    import icechunk
    import zarr

    storage = icechunk.local_filesystem_storage(str(made.with_suffix(".icechunk")))
    allowed = icechunk.containers_credentials({f"{url.rpartition('/')[0]}/": None})
    repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=allowed)
    return zarr.open(repository.readonly_session("main").store, mode="r")["v"][key]


def by_zarr(url: str, key: Any, made: Path) -> Any:
    """Read by zarr-python through fsspec."""
    import zarr

    return zarr.open(url, mode="r")["v"][key]


TAMIS_REFERENCES, KERCHUNK = "tamis, references", "kerchunk + zarr"
READERS: dict[str, dict[str, Callable[[str, Any, Path], Any]]] = {
    ".h5": {
        "tamis": by_tamis,
        TAMIS_REFERENCES: by_tamis_references,
        "h5py + fsspec": by_h5py,
        "pyfive": by_pyfive,
        KERCHUNK: by_kerchunk,
        "VirtualiZarr + Icechunk": by_icechunk,
    },
    ".nc": {"tamis": by_tamis, KERCHUNK: by_kerchunk},
    ".zarr": {"tamis": by_tamis, "zarr + fsspec": by_zarr},
}


def make_references(path: Path, url: str) -> None:
    """Let kerchunk and tamis make references to a file; none if they cannot."""
    with suppress(Exception):
        if path.suffix == ".nc":
            from kerchunk.netCDF3 import NetCDF3ToZarr as Maker
        else:
            from kerchunk.hdf import SingleHdf5ToZarr as Maker
        text = json.dumps(Maker(str(path), inline_threshold=0).translate()).replace(str(path), url)
        path.with_suffix(".json").write_text(text)
    with suppress(tamis.TamisError):
        root = url.rpartition("/")[0]
        tamis.export(path, path.with_suffix(".tamis.json"), url=root, overwrite=True)


def make_repository(path: Path, url: str) -> None:
    """Let VirtualiZarr make a repository of Icechunk with references to a file; none if it cannot."""
    import icechunk
    import obstore
    import virtualizarr
    from obspec_utils.registry import ObjectStoreRegistry

    folder, root = path.with_suffix(".icechunk"), url.rpartition("/")[0]
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(Exception):
        store = obstore.store.HTTPStore.from_url(root, client_options={"allow_http": True})
        parser = virtualizarr.parsers.HDFParser()
        virtual = virtualizarr.open_virtual_dataset(url, registry=ObjectStoreRegistry({root: store}), parser=parser)
        config = icechunk.RepositoryConfig.default()
        config.set_virtual_chunk_container(
            icechunk.VirtualChunkContainer(f"{root}/", icechunk.http_store({"allow_http": "true"}))
        )
        repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)), config)
        session = repository.writable_session("main")
        virtual.vz.to_icechunk(session.store)
        session.commit("references")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.0, 0.03, 0.1], help="seconds before an answer")
    parser.add_argument("--rounds", type=int, default=3, help="times that each reader reads")
    parser.add_argument("--port", type=int, default=0, help="80 for Icechunk, which leaves out the port of an address")
    parser.add_argument("--most", type=float, default=30.0, help="seconds of a reader that is asked again")
    parser.add_argument("cases", nargs="*", default=[*CASES], help="names of files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder, options.cases)
        print("| latency | file | read | reader | requests | MB | seconds |\n|---|---|---|---|---|---|---|")
        slow: set[tuple[str, str, str]] = set()
        for latency in sorted(options.latency):
            context = multiprocessing.get_context("spawn")
            pipe, other = context.Pipe()
            process = context.Process(target=serve, args=(name, latency, options.port, other), daemon=True)
            process.start()
            root = f"http://127.0.0.1:{pipe.recv()}".removesuffix(":80")
            for case in options.cases:
                make_references(folder / case, f"{root}/{case}")
                if case.endswith(".h5"):
                    make_repository(folder / case, f"{root}/{case}")
                for read in READERS[Path(case).suffix].values():  # imports, and pages of the file
                    with suppress(Exception):
                        read(f"{root}/{case}", KEYS["map"], folder / case)
                for word in KEYS:
                    measure(f"{root}/{case}", folder / case, word, latency, options, pipe, slow)
            pipe.close()
            process.terminate()
            process.join()


def measure(
    url: str,
    path: Path,
    word: str,
    latency: float,
    options: argparse.Namespace,
    pipe: Connection,
    slow: set[tuple[str, str, str]],
) -> None:
    """Print the rows of one read of a file; readers that are slow are noted."""
    key, readers = KEYS[word], READERS[path.suffix]
    with tamis.open(path) as file:
        expected = file["v"][key]
    seconds: dict[str, list[float]] = {reader: [] for reader in readers}
    counts: dict[str, tuple[int, int]] = {}
    failed = {reader: f"more than {options.most:g} s" for reader in readers if (path.name, word, reader) in slow}
    for _ in range(options.rounds):
        for reader, read in readers.items():
            if reader in failed or (path.name, word, reader) in slow:
                continue
            pipe.send("reset")
            pipe.recv()
            began = time.perf_counter()
            try:
                values = read(url, key, path)
            except Exception as error:
                failed[reader] = type(error).__name__
                continue
            seconds[reader].append(time.perf_counter() - began)
            if not np.array_equal(np.asarray(values), expected):
                failed[reader] = "wrong values"
            if seconds[reader][-1] > options.most:
                slow.add((path.name, word, reader))
            pipe.send("tell")
            counts[reader] = pipe.recv()
    for reader in readers:
        place = f"| {latency * 1000:.0f} ms | {path.stem} | {word} | {reader} |"
        if reader in failed:
            print(f"{place} {failed[reader]} | | |", flush=True)
            continue
        requests, nbytes = counts[reader]
        print(f"{place} {requests} | {nbytes / 1e6:.2f} | {statistics.median(seconds[reader]):.3f} |", flush=True)


if __name__ == "__main__":
    main()
