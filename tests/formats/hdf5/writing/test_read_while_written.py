"""U23: threads that read a dataset while it is written see whole steps, and never what HDF5 takes a chunk for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis.formats.hdf5 import writer
from tamis.formats.hdf5.writing import appender as appending
from tamis.hdf5 import Appender, create_dataset, write, write_stream

FILTERS = "zfp(accuracy=0.01)|shuffle|deflate(1)|fletcher32"
STEPS = np.cumsum(np.random.default_rng(0).normal(size=(24, 16, 16)), axis=0).astype("f4") + 1000
Part = tuple[slice, ...]
Read = Callable[[h5py.Dataset, Part], NDArray[Any]]
ALL = (slice(None),) * 3


def by_same_object(dataset: h5py.Dataset, part: Part) -> NDArray[Any]:
    return np.asarray(dataset[part])


def by_another_object(dataset: h5py.Dataset, part: Part) -> NDArray[Any]:
    return np.asarray(h5py.Dataset(h5py.h5d.open(dataset.file.id, dataset.name.encode()))[part])


def by_another_file(dataset: h5py.Dataset, part: Part) -> NDArray[Any]:
    with h5py.File(dataset.file.filename) as file:
        return np.asarray(file[dataset.name][part])


def by_tamis(dataset: h5py.Dataset, part: Part) -> NDArray[Any]:
    with tamis.open(dataset.file.filename) as file:
        return np.asarray(file[dataset.name][part])


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        yield opened


WAYS = [by_same_object, by_another_object, by_another_file, by_tamis]


def is_kept(values: NDArray[Any], part: Part = ALL) -> bool:
    """Whether values are steps, as many as there were when they were read."""
    steps = STEPS[part]
    return bool(np.abs(values - steps[: len(values)]).max(initial=0) <= 0.01)


class Probe:
    """A reader in another thread, which gets its chance between the write of a chunk and what comes after it.

    It reads that chunk alone: HDF5 forgets what it takes it for as soon as it looks at another one.
    """

    def __init__(self, read: Read, settle: Callable[..., None]) -> None:
        self.read, self.settle = read, settle
        self.results: list[tuple[Part, Any]] = []
        self.threads: list[threading.Thread] = []

    def look(self, dataset: h5py.Dataset, part: Part) -> None:
        try:
            self.results.append((part, self.read(dataset, part)))
        except (OSError, tamis.TamisError) as error:
            self.results.append((part, error))

    def __call__(self, dataset: h5py.Dataset, origin: tuple[int, ...], mask: int, **options: bool) -> None:
        part = tuple(slice(at, at + step) for at, step in zip(origin, dataset.chunks, strict=True))
        self.threads.append(threading.Thread(target=self.look, args=(dataset, part)))
        self.threads[-1].start()
        self.threads[-1].join(0.1)  # a reader that has to wait reads later
        self.settle(dataset, origin, mask, **options)

    def ended(self) -> list[tuple[Part, Any]]:
        for each in self.threads:
            each.join()
        return self.results


@pytest.mark.parametrize("read", WAYS)
def test_u23_reader_beside_an_appender_sees_whole_steps(
    read: Read, file: h5py.File, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = create_dataset(file, "x", (0, 16, 16), "f4", maxshape=(None, 16, 16), chunks=(4, 8, 8), filters=FILTERS)
    probe = Probe(read, appending.settle)
    monkeypatch.setattr(appending, "settle", probe)
    with Appender(dataset, threads=1) as appender:
        for number, step in enumerate(STEPS[:10]):
            appender.append(step)
            if number in (1, 2, 5, 8):
                appender.flush()
                assert is_kept(read(dataset, (slice(None), slice(8, 16), slice(8, 16))), np.s_[:, 8:, 8:])
    results = probe.ended()
    assert len(results) == 7  # four flushes, the last one, and two full chunks
    for part, values in results:
        assert isinstance(values, np.ndarray), values
        assert len(values)
        assert is_kept(values, part)


@pytest.mark.parametrize("read", WAYS)
def test_u23_reader_beside_write_into_a_dataset_sees_whole_chunks(
    read: Read, file: h5py.File, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = create_dataset(file, "x", STEPS.shape, "f4", chunks=(4, 16, 16), filters=FILTERS)
    data = STEPS.copy()
    data[::4, 0, 0] = np.nan  # so that every chunk goes without zfp
    probe = Probe(read, writer.settle)
    monkeypatch.setattr(writer, "settle", probe)
    write(dataset, data, threads=1)
    results = probe.ended()
    assert len(results) == 6
    for part, values in results:
        np.testing.assert_array_equal(values, data[part])


def test_u23_reader_beside_write_stream_sees_it_whole(file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = tamis.zfp.Rate(24)
    dataset = create_dataset(file, "x", (8, 16), "f4", chunks=(4, 16), filters=f"zfp({mode})|lzf")
    noise = np.random.default_rng(0).normal(size=(8, 16)).astype("f4")
    probe = Probe(by_another_object, writer.settle)
    monkeypatch.setattr(writer, "settle", probe)
    for start in (0, 4):
        write_stream(dataset, (start, 0), tamis.zfp.encode(noise[start : start + 4], mode), mode)
    for part, values in probe.ended():
        np.testing.assert_allclose(values, noise[part], atol=1e-4)


def test_u23_readers_in_threads_of_their_own_never_see_garbage(file: h5py.File) -> None:
    wrong: list[str] = []
    ended = threading.Event()
    dataset = create_dataset(file, "x", (0, 16, 16), "f4", maxshape=(None, 16, 16), chunks=(4, 8, 8), filters=FILTERS)

    def look(read: Read, part: Part) -> None:
        while not ended.is_set():
            if not is_kept(read(dataset, part), part):
                wrong.append(f"{read.__name__} of {part}")

    parts = itertools.cycle([ALL, np.s_[:, 8:, 8:]])
    readers = [threading.Thread(target=look, args=each) for each in zip(WAYS, parts, strict=False)]
    for each in readers:
        each.start()
    try:
        with Appender(dataset, threads=2) as appender:
            for step in STEPS:
                appender.append(step)
                appender.flush()
    finally:
        ended.set()
        for each in readers:
            each.join()
    assert not wrong
    assert dataset.shape == STEPS.shape
    assert is_kept(dataset[()])
