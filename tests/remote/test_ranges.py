"""Which requests are made for ranges, and what is read from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from range_server import Faults, Server
from scipy.io import netcdf_file

import tamis
from tamis import Address
from tamis.reading.array import SelectedChunks
from tamis.remote import file as remote_file
from tamis.remote import nodes
from tamis.remote.file import RemoteFile, RemoteObjects, in_fewest_rounds, requests_for
from tamis.remote.object_store import Part

RANGES = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(1, 900)).map(lambda pair: (pair[0], sum(pair))), max_size=9
)


@given(RANGES, st.integers(0, 500), st.integers(1, 700))
def test_requests_cover_all_ranges_without_overlaps(ranges: list[tuple[int, int]], gap: int, most: int) -> None:
    requests = requests_for(ranges, gap, most)
    bytes_asked = [at for begin, end in requests for at in range(begin, end)]
    assert len(bytes_asked) == len(set(bytes_asked))
    assert set(bytes_asked) >= {at for begin, end in ranges for at in range(begin, end)}
    assert all(end - begin <= most for begin, end in requests)


def test_near_ranges_share_a_request_and_long_ones_are_cut() -> None:
    assert requests_for([(0, 10), (15, 20), (200, 210)], gap=10) == [(0, 20), (200, 210)]
    assert requests_for([(0, 25)], most=10) == [(0, 10), (10, 20), (20, 25)]


@given(data=st.data())
def test_any_sequence_of_reads_returns_the_bytes(data: st.DataObject) -> None:
    content = np.random.default_rng(1).bytes(1 << 16)
    remote = object.__new__(RemoteFile)
    remote_file.RemoteBytes.__init__(remote, Address("memory://x"))
    remote.nbytes = len(content)
    remote.fetch = lambda span: memoryview(content)[span[0] : span[1]]  # type: ignore[method-assign]
    for _ in range(data.draw(st.integers(1, 12))):
        spans = data.draw(st.lists(st.tuples(st.integers(0, 70000), st.integers(0, 20000)), min_size=1, max_size=4))
        assert remote.read_many(spans) == [content[at : at + nbytes] for at, nbytes in spans]
        begin, nbytes = spans[0]
        assert remote.read(begin, nbytes) == content[begin : begin + nbytes]


@pytest.mark.parametrize("options", [{}, {"libver": "latest"}, {"userblock_size": 512}])
def test_selections_are_those_of_the_local_file(
    server: Server, make_file: Callable[..., Path], options: dict[str, object]
) -> None:
    path = make_file(**options)
    with tamis.open(server.url(path.name)) as remote, tamis.open(path) as local:
        assert [*remote] == [*local]
        assert remote.path == server.url(path.name)
        for name in local:
            for key in (..., 0, (slice(None), *(3,) * (local[name].ndim - 1)), slice(1, 7, 2)):
                np.testing.assert_array_equal(remote[name][key], local[name][key])
        assert remote["group/x"].attrs == local["group/x"].attrs


def test_u71_opening_takes_one_round_where_metadata_are_at_both_ends(server: Server, tmp_path: Path) -> None:
    values = np.random.default_rng(5).random((60, 80, 80), np.float32)
    with h5py.File(tmp_path / "ends.h5", "w") as file:
        tamis.hdf5.write(file, "TS", values, chunks=(10, 40, 40), filters="shuffle|deflate(1)")
        file["TS"].attrs["units"] = "K"
    server.in_rounds = True
    with tamis.open(server.url("ends.h5")) as file:
        assert file["TS"].attrs["units"] == "K"
        assert server.rounds == 1
        np.testing.assert_array_equal(file["TS"][...], values)
    server.faults = Faults(no_ranges=True)  # the last bytes are those of the whole object
    with tamis.open(server.url("ends.h5")) as file:
        np.testing.assert_array_equal(file["TS"][...], values)


def test_a_series_takes_few_requests_at_once(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "series.h5"
    values = np.random.default_rng(5).random((60, 160, 160), np.float32)
    with h5py.File(path, "w") as file:
        file.create_dataset("TS", data=values, chunks=(2, 40, 40), compression=1)
    with tamis.open(server.url(path.name)) as file:
        array = file["TS"]
        server.reset()
        server.in_rounds = True
        array[:, 3, 5]
        assert server.requests <= 40  # 30 chunks, and 8 nodes of the index
        assert server.rounds <= 12
        assert server.nbytes < 0.35 * path.stat().st_size
        server.reset()
        array[:, 4, 6]
        assert server.requests == 0  # the same chunks


NEW = {"libver": "latest"}
INDEXES = {
    "tree": ({}, None),
    "tree behind a user block": ({"userblock_size": 512}, None),
    "fixed array": (NEW, None),
    "fixed array of a larger grid": (NEW, (300, 200, 400)),
    "extensible array": (NEW, (None, 96, 120)),
    "extensible array of a larger grid": (NEW, (None, 200, 400)),
    "new tree": (NEW, (None, None, 120)),
}


def write_many(path: Path, kind: str) -> np.ndarray:
    """Write 6,480 of 8,640 chunks, with such an index, and return the values."""
    options, limits = INDEXES[kind]
    values = np.random.default_rng(6).integers(0, 99, (120, 96, 120), np.int32)
    with h5py.File(path, "w", **options) as file:
        more = {"chunks": (2, 8, 10), "maxshape": limits, "shuffle": True, "fletcher32": True}
        file.create_dataset("v", values.shape, "i4", **more)[:90] = values[:90]
    values[90:] = 0
    return values


@pytest.mark.matrix
@pytest.mark.parametrize("kind", INDEXES)
def test_a_selection_of_a_large_index_reads_a_part_of_it(server: Server, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "many.h5"
    values = write_many(path, kind)
    with tamis.open(server.url("many.h5")) as file:
        for key in (7, 95, (slice(80, 100), 9, 11), (slice(None, None, 7), slice(5, 9), 3), ([1, 50, 119], 4)):
            np.testing.assert_array_equal(file["v"][key], values[key])
    with tamis.open(server.url("many.h5")) as file:
        server.reset()
        assert [*file] == ["v"]
        assert server.requests <= 1  # listing needs no index
        array = file["v"]
        server.reset()
        array[30]  # 144 of 8,640 chunks
        assert server.requests <= 12
        assert server.nbytes < 0.06 * path.stat().st_size
        for row in range(0, 90, 3):  # until all of the index is known
            np.testing.assert_array_equal(array[row], values[row])
        server.reset()
        np.testing.assert_array_equal(array[1], values[1])
        assert server.requests <= 1


@pytest.mark.matrix
@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_is_fetched_level_by_level(server: Server, tmp_path: Path, kind: str) -> None:
    values = write_many(tmp_path / "many.h5", kind)
    server.in_rounds = True
    for key in ((slice(None), 3, 5), ...):
        with tamis.open(server.url("many.h5")) as file:
            array = file["v"]
            server.reset()
            np.testing.assert_array_equal(array[key], values[key])
            assert server.rounds <= 8  # the depth of the index, and values; a node at a time would be 16 and more
    server.reset()
    assert tamis.inspect(server.url("many.h5"))["v"].stored_nbytes == 6480 * 644
    assert server.rounds <= 8


@pytest.mark.parametrize("kind", ["tree", "tree behind a user block"])
def test_a_map_comes_with_its_index(server: Server, tmp_path: Path, kind: str) -> None:
    values = write_many(tmp_path / "many.h5", kind)
    with tamis.open(server.url("many.h5")) as file:
        array = file["v"]
        server.reset()
        server.in_rounds = True
        np.testing.assert_array_equal(array[30], values[30])
        assert server.rounds == 2  # of the lower levels: the values come with the last one
        assert server.nbytes < 1.5 * 144 * 644
        server.reset()
        np.testing.assert_array_equal(array[31], values[31])
        assert server.requests == 0  # the same chunks


@pytest.mark.parametrize("guess", [(0, 9), (1000, 200_000), (1 << 40, 1 << 41)])
def test_a_wrong_guess_changes_no_values(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guess: tuple[int, int]
) -> None:
    values = write_many(tmp_path / "many.h5", "tree")
    monkeypatch.setattr(nodes, "_span_of", lambda *_: guess)
    with tamis.open(server.url("many.h5")) as file:
        for row in (30, 0, 89, 95):
            np.testing.assert_array_equal(file["v"][row], values[row])


def test_chunks_in_another_order_are_not_guessed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(6).integers(0, 99, (120, 48, 60), np.int32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        chunked = file.create_dataset("v", values.shape, "i4", chunks=(1, 4, 5), shuffle=True)
        for row in np.random.default_rng(7).permutation(120):
            chunked[row] = values[row]
    guesses: list[object] = []
    guess = nodes._span_of
    monkeypatch.setattr(nodes, "_span_of", lambda *facts: guesses.append(guess(*facts)) or guesses[-1])
    with tamis.open(server.url("a.h5")) as file:
        np.testing.assert_array_equal(file["v"][30], values[30])
    assert {*guesses} == {None}


def test_requests_that_would_need_another_round_are_joined() -> None:
    count = remote_file.AT_ONCE + 8
    spans = [(at * 65_000 + at * at, at * 65_000 + at * at + 10) for at in range(count)]
    assert len(in_fewest_rounds(spans, 0)) == remote_file.AT_ONCE
    assert len(in_fewest_rounds([(4 * begin, 4 * begin + 10) for begin, _ in spans], 0)) == count  # too far


def test_a_series_of_a_contiguous_variable_takes_few_requests(server: Server, make_file: Callable[..., Path]) -> None:
    path = make_file()
    with tamis.open(server.url(path.name)) as file, tamis.open(path) as local:
        for key in ((slice(None), 3, 5), (7, slice(2, 9)), (3, 4, 5), (slice(None, None, 2), 1, [1, 3])):
            np.testing.assert_array_equal(file["plain"][key], local["plain"][key])
        server.reset()
        file["plain"][:, 9, 11]
        assert server.requests <= 20


def test_a_classic_variable_is_fetched_in_one_round(server: Server, tmp_path: Path) -> None:
    values = np.random.default_rng(5).random((300, 80, 80), np.float32)
    with netcdf_file(tmp_path / "a.nc", "w", version=2) as classic:
        for axis, extent in zip("tyx", values.shape, strict=True):
            classic.createDimension(axis, extent)
        classic.createVariable("v", "f4", tuple("tyx"))[:] = values
    server.in_rounds = True
    with tamis.open(server.url("a.nc")) as file:
        for key in ((slice(None), 3, 5), (7, slice(2, 9)), (slice(3, 200),), (slice(None, None, 50), 1, [1, 3])):
            np.testing.assert_array_equal(file["v"][key], values[key])
        server.reset()
        np.testing.assert_array_equal(file["v"][...], values)
        assert server.rounds == 1


def test_a_whole_variable_is_fetched_once(server: Server, make_file: Callable[..., Path]) -> None:
    path = make_file()
    with tamis.open(server.url(path.name)) as file:
        array = file["TS"]
        stored = tamis.inspect(path)["TS"].stored_nbytes
        server.reset()
        array[...]
        assert server.nbytes <= stored + 64 * 1024


@pytest.mark.check
def test_an_index_among_small_chunks_is_fetched_with_them(server: Server, tmp_path: Path) -> None:
    values = np.random.default_rng(4).random((500, 80, 80), np.float32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(1, 10, 10), compression=1)
    server.reset()
    with tamis.open(server.url("a.h5")) as file:
        np.testing.assert_array_equal(file["v"][...], values)
    assert server.nbytes < 1.1 * (tmp_path / "a.h5").stat().st_size


def test_many_small_chunks_are_decoded_together(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(4).integers(0, 99, (300, 40, 64), np.int32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        chunked = file.create_dataset("v", values.shape, "i4", chunks=(5, 4, 4), compression=1, fillvalue=-1)
        chunked[:270] = values[:270]
    values[270:] = -1
    with tamis.open(server.url("a.h5")) as file:
        for key in (..., slice(3, 299), (slice(10, 290), slice(0, 39))):
            np.testing.assert_array_equal(file["v"][key], values[key])
        server.reset()
        file["v"][...]
        assert server.nbytes < 1.2 * (tmp_path / "a.h5").stat().st_size
    monkeypatch.setenv("TAMIS_CACHE", "")
    with tamis.open(server.url("a.h5")) as file:
        content = bytearray((tmp_path / "a.h5").read_bytes())
        content[-5000] ^= 1
        (tmp_path / "a.h5").write_bytes(content)
        with pytest.raises(tamis.FileError, match="the file changed while it was read"):
            file["v"][...]


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("key", "next_key"),
    [
        (7, 8),
        (302, 301),
        ((slice(None), 40, 65), (slice(9, None), 40, 64)),
        ((slice(101, 103), slice(3, 30)), (slice(100, 104), slice(0, 31), slice(None, None, 3))),
    ],
)
def test_parts_of_small_chunks_are_decoded_together_and_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: object, next_key: object
) -> None:
    values = np.random.default_rng(4).integers(0, 99, (303, 41, 66), np.int32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        chunked = file.create_dataset("v", values.shape, "i4", chunks=(5, 4, 4), compression=1, fillvalue=-1)
        chunked[:90] = values[:90]
        chunked[100:] = values[100:]
    values[90:100] = -1
    monkeypatch.delattr(SelectedChunks, "_place_decoded")  # which decodes one chunk
    with tamis.open(server.url("a.h5")) as file:
        np.testing.assert_array_equal(file["v"][key], values[key])
        server.reset()
        np.testing.assert_array_equal(file["v"][next_key], values[next_key])
        assert server.requests == 0


def test_the_next_opening_finds_the_metadata_on_disk(
    server: Server, make_file: Callable[..., Path], own_cache: Path
) -> None:
    path = make_file()
    requests = []
    for _ in range(2):
        server.reset()
        with tamis.open(server.url(path.name)) as file:
            series = file["TS"][:, 3, 5]
        requests.append(server.requests)
    assert requests[1] < requests[0]
    assert [*own_cache.glob("*.blocks")]
    for entry in own_cache.glob("*.blocks"):
        entry.write_bytes(entry.read_bytes()[:-9])  # damaged: not used
    with tamis.open(server.url(path.name)) as file:
        np.testing.assert_array_equal(file["TS"][:, 3, 5], series)


def test_no_metadata_is_kept_where_the_cache_is_off(
    server: Server, make_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TAMIS_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with tamis.open(server.url(make_file().name)) as file:
        file["TS"][0]
    assert not (tmp_path / "cache").exists()


@pytest.mark.matrix
@pytest.mark.parametrize(
    "faults",
    [
        Faults(unavailable=0.2),
        Faults(reset=0.2),
        Faults(truncated=0.2),
        Faults(weak_etag=True),
        Faults(no_etag=True),
        Faults(no_head=True),
    ],
    ids=str,
)
def test_faults_are_overcome(server: Server, make_file: Callable[..., Path], faults: Faults) -> None:
    path = make_file()
    server.faults = faults
    with tamis.open(server.url(path.name)) as remote, tamis.open(path) as local:
        np.testing.assert_array_equal(remote["TS"][:, 2:9], local["TS"][:, 2:9])
        np.testing.assert_array_equal(remote["plain"][...], local["plain"][...])


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        (Faults(encoding="gzip"), r"sent the file encoded \(gzip\)"),
        (Faults(wrong_range=True), "cannot be read"),
        (Faults(short=True), "the server cut the answer"),
        (Faults(status=403), r"access denied \(403\): the signed address may have expired"),
        (Faults(status=404), "no such object"),
    ],
    ids=str,
)
def test_what_is_wrong_is_an_error_that_tells_no_secret(
    server: Server, make_file: Callable[..., Path], faults: Faults, text: str
) -> None:
    path = make_file()
    server.faults = faults
    with pytest.raises(tamis.FileError, match=text) as caught:
        tamis.open(server.url(path.name) + "?signature=secret")["TS"][...]
    assert "secret" not in str(caught.value)
    assert caught.value.path == server.url(path.name)


def test_a_server_without_ranges_is_read_whole(
    server: Server, make_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_file()
    server.faults = Faults(no_ranges=True)
    with tamis.open(server.url(path.name)) as remote, tamis.open(path) as local:
        np.testing.assert_array_equal(remote["TS"][...], local["TS"][...])
    monkeypatch.setattr(remote_file, "MOST_WHOLE_NBYTES", 1000)
    with pytest.raises(tamis.FileError, match=r"only the whole object of .*: download it first"):
        tamis.open(server.url(path.name))


@pytest.mark.parametrize("ignores_match", [False, True])
def test_an_object_that_changes_is_an_error(
    server: Server, make_file: Callable[..., Path], *, ignores_match: bool
) -> None:
    path = make_file()
    server.faults = Faults(ignores_match=ignores_match)
    with tamis.open(server.url(path.name)) as file:
        array = file["TS"]
        array[0]
        content = bytearray(path.read_bytes())
        content[-5000] ^= 1
        path.write_bytes(content)
        with pytest.raises(tamis.FileError, match="the file changed while it was read: open it again"):
            array[40:]


def test_a_file_whose_size_came_without_a_version_must_not_change(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "chunk"
    path.write_bytes(bytes(1000))
    files = RemoteObjects(Address(server.url("")), np.array([1000]), lambda row: Address(server.url(path.name)))
    files.keep_ends([Part(b"", 1000, "")])
    assert files.fetch((0, 100)) == bytes(100)
    path.write_bytes(bytes(999) + b"1")
    with pytest.raises(tamis.FileError, match="the file changed while it was read: open it again"):
        files.fetch((900, 1000))


def test_values_of_other_files_are_refused(server: Server, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["x"] = np.arange(10.0)
    layout = h5py.VirtualLayout((10,), "f8")
    layout[:] = h5py.VirtualSource("source.h5", "x", (10,))
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
        file["link"] = h5py.ExternalLink("source.h5", "x")
    with tamis.open(server.url("virtual.h5")) as file:
        with pytest.raises(tamis.FileError, match="its values are in other files"):
            file["v"][...]
        with pytest.raises((tamis.FileError, KeyError)):
            file["link"]


def test_the_extra_is_named_where_it_is_missing(run_script: Callable[..., str], tmp_path: Path) -> None:
    script = tmp_path / "open.py"
    script.write_text(
        "import sys; sys.modules['obstore'] = None\n"
        "import tamis\n"
        "try: tamis.open('s3://bucket/a.nc')\n"
        "except tamis.MissingFilterError as error: print(error)"
    )
    assert "pip install 'tamis[remote]'" in run_script(script)


def test_a_forked_process_is_refused_instead_of_waiting_forever(
    server: Server, make_file: Callable[..., Path], run_script: Callable[..., str], tmp_path: Path
) -> None:
    script = tmp_path / "fork.py"
    script.write_text(
        "import os, sys, tamis\n"
        "file = tamis.open(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    try: file['TS'][...]\n"
        "    except tamis.FileError as error: print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert 'start processes by "spawn"' in run_script(script, server.url(make_file().name))
