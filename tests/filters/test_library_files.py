"""Our filters against the libraries': chunks both ways, parameters as stored, for every filter, type and shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import pytest

from tamis import Blosc2, DataError, MissingFilterError, ParameterError, UnknownFilter
from tamis.filters import ChunkType, Filter, Request, from_values

pytestmark = [pytest.mark.slow, pytest.mark.check, pytest.mark.xdist_group("library files")]  # its cases are made once

NAMES = {"szip", "nbit", "scaleoffset", "lzf", "bzip2", "zstd", "lz4", "blosc", "blosc2", "bitshuffle"}
# The same code made theirs: the bytes are the same too. Theirs and ours differ in version for the others, and lzf's
# depend on what was in memory.
SAME_BYTES = NAMES - {"lzf", "blosc2"}


class Case(NamedTuple):
    """One chunk of the library's, and what it was made of."""

    name: str
    one: Filter
    words: tuple[int, ...]
    chunk: ChunkType
    mask: int
    data: bytes
    given: bytes
    expected: bytes
    info: str


@pytest.fixture(scope="module")
def cases(library_file: Path) -> list[Case]:
    with h5py.File(library_file) as file:
        return list(read_cases(file))


def read_cases(file: h5py.File) -> Iterator[Case]:
    for name, stored in file["expected"].items():
        dataset, expected = file[name], stored[...].tobytes()
        id_, _, values, label = dataset.id.get_create_plist().get_filter(0)
        words = tuple(value & 0xFFFFFFFF for value in values)
        mask, data = dataset.id.read_direct_chunk((0,) * dataset.ndim)
        chunk = ChunkType(dataset.dtype, dataset.chunks, np.asarray(dataset.fillvalue, dataset.dtype).tobytes())
        given = file["given"][name][...].tobytes() if name in file["given"] else expected
        one = from_values(Request(id_, words), label.decode(), stored=True)
        yield Case(
            name, one, words, chunk, mask, data, given, expected, f"{one} {dataset.dtype.str} {chunk.shape} {words}"
        )


def test_library_file_has_every_filter_many_times(cases: list[Case]) -> None:
    counts = Counter(case.one.name for case in cases)
    assert set(counts) == NAMES
    assert min(counts.values()) > 45


def test_decode_chunks_of_the_library_as_it_reads_them(cases: list[Case]) -> None:
    applied = [case for case in cases if not case.mask]
    wrong = [
        case.info for case in applied if bytes(case.one.decode(case.data, case.chunk, case.words)) != case.expected
    ]
    assert len(applied) > 2500
    assert not wrong


def test_stored_parameters_as_the_library_leaves_them(cases: list[Case]) -> None:
    wrong = []
    for case in cases:
        try:
            found = case.one.stored(case.chunk)
        except ParameterError:
            # HDF5 makes such datasets, and then no chunk of them can be filtered.
            assert case.one.name == "scaleoffset"
            assert case.mask
            continue
        # Blosc and bitshuffle keep fewer words where fewer were asked for.
        fewer = (0, {"blosc": 3, "bitshuffle": 2}.get(case.one.name, 0))
        if found[: len(case.words)] != case.words or len(found) - len(case.words) not in fewer:
            wrong.append((case.info, found))
    assert not wrong


def encoded(case: Case) -> bytes | None:
    """What we make of it; None where the library would leave the chunk as it is."""
    try:
        return bytes(case.one.encode(case.given, case.chunk, case.words))
    except DataError:
        return None


def is_read_only(case: Case) -> bool:
    return isinstance(case.one, Blosc2) and case.one.shuffle == "delta"


@pytest.fixture(scope="module")
def ours(cases: list[Case]) -> list[tuple[Case, bytes | None]]:
    return [(case, encoded(case)) for case in cases if not is_read_only(case)]


def test_encode_same_chunks_left_out_as_by_the_library(ours: list[tuple[Case, bytes | None]]) -> None:
    assert not [case.info for case, data in ours if (data is None) != bool(case.mask)]


def test_encode_same_bytes_as_the_library(ours: list[tuple[Case, bytes | None]]) -> None:
    same = [(case.info, data == case.data) for case, data in ours if data is not None and case.one.name in SAME_BYTES]
    assert len(same) > 1500
    assert not [info for info, equal in same if not equal]


def test_encode_blosc2_delta_refused(cases: list[Case]) -> None:
    case = next(filter(is_read_only, cases))
    with pytest.raises(MissingFilterError, match="tamis can decode blosc2 with shuffle=delta but not encode it"):
        case.one.encode(case.given, case.chunk, case.words)


def test_encoded_chunks_read_by_the_library(
    ours: list[tuple[Case, bytes | None]], library_file: Path, tmp_path: Path, run_script: Callable[..., str]
) -> None:
    path = tmp_path / "ours.h5"
    with h5py.File(library_file) as source, h5py.File(path, "w") as file:
        for case, data in ours:
            if data is None:
                continue
            theirs = source[case.name]
            plist = theirs.id.get_create_plist()
            if h5py.h5z.filter_avail(case.one.id):
                # A filter that is here, because another test imported hdf5plugin, completes what it finds once more.
                plist.remove_filter(case.one.id)
                plist.set_filter(case.one.id, h5py.h5z.FLAG_OPTIONAL, case.one.requested)
            made = file.create_dataset(case.name, theirs.shape, theirs.dtype, chunks=theirs.chunks, dcpl=plist)
            made.id.write_direct_chunk((0,) * made.ndim, data)
            file[f"expected/{case.name}"] = source["expected"][case.name][...]
        assert len(file["expected"]) > 2000
    assert run_script("library_files.py", "read", path) == ""


def test_from_values_no_filter_of_the_library_unknown(cases: list[Case]) -> None:
    assert not [case.info for case in cases if isinstance(case.one, UnknownFilter)]
