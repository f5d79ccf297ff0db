"""Threads that read, callbacks of h5py and forks, all at once: ``python threads_and_forks.py SCENARIO ROUNDS``.

It ends by itself. A hang ends it with the stacks of all threads after some time.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress

import h5py
import numpy as np
from h5py import h5f
from h5py._objects import phil

import tamis

Work = Callable[[], object]

FILE, STORE = "a.h5", "a.zarr"
SHAPE, CHUNKS = (32, 24, 40), (2, 24, 40)
VALUES = np.cumsum(np.random.default_rng(68).random(SHAPE), axis=0).astype("f4")
GAPS = np.where(VALUES < 1, np.float32(1e20), VALUES)
FORK_SECONDS, SECONDS = 60, int(os.environ.get("SECONDS", "100"))


def make_files() -> None:
    with h5py.File("source.h5", "w") as file:
        file.create_dataset("deflate", data=VALUES, chunks=CHUNKS, compression="gzip")
        file.create_dataset("zfp", data=VALUES, chunks=CHUNKS, **tamis.Zfp(accuracy=1e-3))
        file.create_dataset("rate", data=VALUES, chunks=CHUNKS, **tamis.Zfp(rate=16))
        file.create_dataset("small", data=VALUES[:, :5, :5], chunks=(1, 5, 5), compression="gzip")
        file.create_dataset("contiguous", data=VALUES)
        file.create_dataset("text", data=np.array([b"a", b"bc"], h5py.string_dtype()))
        file.create_dataset("gaps", data=GAPS, chunks=CHUNKS, fillvalue=1e20).attrs["_FillValue"] = np.float32(1e20)
        layout = h5py.VirtualLayout(SHAPE, "f4")
        layout[:] = h5py.VirtualSource(".", "deflate", SHAPE)
        file.create_virtual_dataset("virtual", layout)
    tamis.repack("source.h5", FILE, {"gaps": "zfp(accuracy=0.01)|shuffle|deflate(4)"}, missing="mask")


def make_store() -> None:
    tamis.repack(FILE, STORE, {}, overwrite=True)


def read(file: tamis.reading.file.File) -> None:
    """Read parts of all arrays, by chunks and through HDF5."""
    step = time.perf_counter_ns() % (SHAPE[0] - 9)
    for name in ("deflate", "contiguous", "virtual"):
        assert np.array_equal(file[name][step : step + 9], VALUES[step : step + 9]), name
    for name in ("zfp", "rate"):
        assert abs(file[name][step : step + 9, :, 3:5] - VALUES[step : step + 9, :, 3:5]).max() < 0.1, name
    assert np.array_equal(file["small"][:], VALUES[:, :5, :5])
    assert np.array_equal(file["gaps"][step] == 1e20, GAPS[step] == 1e20)
    assert list(file["text"][:]) == [b"a", b"bc"]


def read_anew() -> None:
    with tamis.open(FILE) as file:
        read(file)


def read_store() -> None:
    with tamis.open(STORE) as store:
        assert np.array_equal(store["deflate"][3:12], VALUES[3:12])


def read_by_xarray() -> None:
    with xarray.open_dataset(FILE, engine="tamis") as dataset:
        assert np.array_equal(dataset["deflate"][3:9].values, VALUES[3:9])
        assert np.array_equal(dataset["virtual"][3].values, VALUES[3])
    with xarray.open_dataset(FILE, engine="tamis", chunks={}) as dataset:
        assert float(dataset["deflate"].max().compute()) == VALUES.max()


def repack() -> None:
    target = f"{os.getpid()}-{threading.get_ident()}.h5"
    tamis.repack(FILE, target, {"deflate": "zfp(accuracy=0.01)"}, threads=2)
    os.remove(target)


def in_callback(work: Work) -> Work:
    """Return work in a callback of h5py, which holds its lock."""

    def visit() -> None:
        with h5py.File(FILE) as file:
            file.visititems(lambda name, _: work() if name in ("deflate", "zfp") else None)

    return visit


def with_lock(work: Work) -> Work:
    def hold() -> None:
        with phil:
            work()

    return hold


def make_garbage() -> None:
    """Leave objects of h5py to the garbage collector, which closes them in any thread."""
    file = h5py.File(FILE)
    cycle: list[object] = [file, file["zfp"]]
    cycle.append(cycle)


def in_threads(*works: Work) -> None:
    """Do the work in threads that begin together, for some rounds."""
    barrier = threading.Barrier(len(works))

    def repeat(work: Work) -> None:
        barrier.wait()
        for _ in range(ROUNDS):
            work()

    with ThreadPoolExecutor(len(works)) as threads:
        for done in [threads.submit(repeat, work) for work in works]:
            done.result()


@contextmanager
def beside(*works: Work) -> Iterator[None]:
    """Do the work in threads again and again until the end of the context."""
    stop = threading.Event()

    def repeat(work: Work) -> None:
        while not stop.is_set():
            work()

    with ThreadPoolExecutor(len(works)) as threads:
        running = [threads.submit(repeat, work) for work in works]
        try:
            yield
        finally:
            stop.set()
        for done in running:
            done.result()


def forked(work: Work) -> None:
    """Do the work in a forked process."""
    child = os.fork()
    if not child:
        code = 1
        with suppress(BaseException):
            try:
                work()
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
        os._exit(code)
    end = time.monotonic() + FORK_SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            assert status == 0, f"a forked process ended with status {status}"
            return
        time.sleep(0.002)
    os.kill(child, signal.SIGUSR1)  # prints its stacks
    time.sleep(1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise SystemExit("a forked process hangs")


def in_forks(*works: Work) -> None:
    for _ in range(ROUNDS):
        for work in works:
            forked(work)


def read_kept(_: int = 0) -> None:
    read(KEPT)


def sum_of(array: tamis.reading.array.Array) -> float:
    return float(array[:].sum())


# Scenarios


def callbacks() -> None:
    in_threads(read_anew, read_anew, in_callback(read_anew), with_lock(read_anew))


def shared_file() -> None:
    in_threads(read_kept, read_kept, in_callback(read_kept), with_lock(read_kept))


def collector() -> None:
    gc.set_threshold(50, 2, 2)
    in_threads(read_kept, in_callback(read_kept), with_lock(read_kept), read_anew, make_garbage)


def jobs() -> None:
    in_threads(repack, in_callback(repack), read_anew)


def stores() -> None:
    make_store()
    in_threads(read_store, in_callback(read_store), with_lock(read_store), read_anew)


def datasets() -> None:
    read_by_xarray()
    in_threads(read_by_xarray, in_callback(read_by_xarray), with_lock(read_by_xarray))


def forks_at_first_use() -> None:
    with beside(read_anew):
        in_forks(read_anew)


def forks() -> None:
    read_kept()
    with beside(read_kept, read_kept, read_anew, in_callback(read_kept)):
        in_forks(read_kept, read_anew, in_callback(read_kept))


def forks_of_forks() -> None:
    def read_in_thread() -> None:
        with beside(read_kept):
            forked(read_kept)

    with beside(read_kept, read_anew):
        in_forks(read_in_thread)


def forks_in_callbacks() -> None:
    with beside(read_kept, read_anew):
        for _ in range(ROUNDS):
            in_callback(lambda: forked(read_kept))()


def forks_of_jobs() -> None:
    repack()
    with beside(repack):
        in_forks(read_kept, repack)


def forks_that_exit() -> None:
    """When a forked process ends as C programs do, HDF5 writes what it has in memory."""
    repack()
    with beside(repack):
        for _ in range(ROUNDS):
            if not os.fork():
                ctypes.CDLL(None).exit(0)
            os.wait()


def forks_beside_new_files() -> None:
    """A process that is forked when its parent has just made a file cannot write to that file."""
    create, made = h5f.create, threading.Event()

    def create_slowly(*arguments: object) -> h5f.FileID:
        file = create(*arguments)
        made.set()
        time.sleep(0.02)
        return file

    def check_left_to_parent() -> None:
        for file in h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE):
            if file.get_intent() & h5f.ACC_RDWR:
                with suppress(FileNotFoundError):  # it has another name by now
                    assert not os.path.samestat(os.fstat(file.get_vfd_handle()), os.stat(file.name))

    repack()
    h5f.create = create_slowly
    with beside(repack):
        for _ in range(ROUNDS):
            made.clear()
            made.wait()
            forked(check_left_to_parent)


def forks_of_stores() -> None:
    make_store()
    read_store()
    with beside(read_store, read_store):
        in_forks(read_store)


def forks_of_datasets() -> None:
    kept = xarray.open_dataset(FILE, engine="tamis")

    def read_dataset() -> None:
        assert np.array_equal(kept["deflate"][3:9].copy(deep=True).values, VALUES[3:9])
        with xarray.open_dataset(FILE, engine="tamis") as dataset:
            assert np.array_equal(dataset["virtual"][3].values, VALUES[3])

    read_dataset()
    with beside(read_dataset, read_dataset):
        in_forks(read_dataset)


def pools() -> None:
    """Read in pools of processes, as PyTorch's DataLoader does."""
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with beside(read_kept, read_anew):
            with context.Pool(2) as pool:
                pool.map_async(sum_of, [KEPT["deflate"]] * ROUNDS).get(FORK_SECONDS)
            with ProcessPoolExecutor(2, mp_context=context) as executor:
                list(executor.map(sum_of, [KEPT["deflate"]] * ROUNDS, timeout=FORK_SECONDS))


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of forks beside threads
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    faulthandler.register(signal.SIGUSR1)
    name, ROUNDS = sys.argv[1], int(sys.argv[2])
    if name != "make_files" and not os.path.exists(FILE):
        make_files()
    if "datasets" in name:
        import xarray
    is_first_use = name in ("make_files", "callbacks", "forks_at_first_use")
    KEPT = None if is_first_use else tamis.open(FILE, threads=2)
    globals()[name]()
    print("done", flush=True)
    os._exit(0)
