"""Stores: S3, obstore's, fsspec's; Zarr hierarchies on them; commands."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import h5py
import needs
import numpy as np
import obstore
import pytest
import xarray as xr
from inprocess import run_tamis
from range_server import Faults, Server

import tamis
from tamis import Address

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
COMMAND = [str(Path(sys.executable).with_name("tamis"))]


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """Return the values of the sample's TS."""
    with tamis.open(SAMPLE) as file:
        return np.asarray(file["TS"][...])


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["a.nc", "two.zarr", "three.zarr", "sharded.zarr"])
def test_a_target_on_s3_is_read_and_verified(s3: str, name: str, values: np.ndarray) -> None:
    options = {"two.zarr": {"zarr_format": 2}, "sharded.zarr": {"shards": 8}}.get(name, {})
    address = f"s3://bucket/test_stores/{name}"
    result = tamis.repack(SAMPLE, address, {"TS": "zfp(accuracy=0.1)"}, **options)
    assert result.target == address
    assert tamis.verify(SAMPLE, address, bounds={"TS": 0.1}).ok
    with tamis.open(address) as file:
        assert abs(file["TS"][...] - values).max() <= 0.1
        np.testing.assert_array_equal(file["TS"][:, 20, 30], file["TS"][...][:, 20, 30])
        assert pickle.loads(pickle.dumps(file["TS"]))[3, 4, 5] == file["TS"][3, 4, 5]
    with xr.open_dataset(address, engine="tamis") as dataset:
        assert abs(dataset.TS.values - values).max() <= 0.1
    with pytest.raises(tamis.FileError, match="File exists: choose another name, or replace it"):
        tamis.repack(SAMPLE, address, {})
    tamis.repack(SAMPLE, address, {"TS": "shuffle|deflate(1)"}, overwrite=True)
    with tamis.open(address) as file:
        np.testing.assert_array_equal(file["TS"][...], values)


@pytest.mark.check
def test_a_complete_target_on_s3_is_left_alone_by_resume(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_STAGING", str(tmp_path / "staging"))
    address, recipe = "s3://bucket/test_resume/a.zarr", {"TS": "zfp(rate=8)"}
    assert not tamis.repack(SAMPLE, address, recipe, resume=True).done_already
    assert tamis.repack(SAMPLE, address, recipe, resume=True).done_already
    assert tamis.repack(SAMPLE, address, recipe, resume=True, overwrite=True).done_already
    assert not [*(tmp_path / "staging").rglob("*.zarr")]
    tamis.repack(SAMPLE, address, {"TS": "zfp(rate=8)|fletcher32"}, checksum=False, resume=True)
    again = tamis.repack(SAMPLE, address, {"TS": "shuffle|deflate(1)"}, resume=True)  # another recipe: made anew
    assert not again.done_already
    assert tamis.verify(SAMPLE, address).ok


def test_preview_of_an_address_looks_where_its_run_does(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_STAGING", str(tmp_path / "staging"))
    monkeypatch.chdir(tmp_path)
    address, recipe = "s3://bucket/test_preview/out.nc", {"TS": "zfp(rate=8)"}
    tamis.repack(SAMPLE, "out.nc", recipe)  # a file of that name, which has nothing to do with the address

    def notes(**options: Any) -> str:
        return "\n".join(tamis.preview_repack(SAMPLE, address, recipe, **options).notes)

    assert "out.nc" not in notes(resume=True) + notes()
    tamis.repack(SAMPLE, address, recipe, resume=True)
    assert notes(resume=True) == f"{address}: made from {SAMPLE} by the same recipe, and both are unchanged since"
    assert "unchanged since" not in notes()


def test_a_run_that_ends_while_it_cleans_up_is_repeated(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_STAGING", str(tmp_path))
    address, recipe = "s3://bucket/test_cleaning/a.zarr", {"TS": "zfp(rate=8)"}

    def remove_a_part(path: Path) -> None:
        if path.exists():
            (path / "zarr.json").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tamis.jobs.repack.upload.remove", remove_a_part)
        with pytest.raises(KeyboardInterrupt):
            tamis.repack(SAMPLE, address, recipe, resume=True)
    assert tamis.repack(SAMPLE, address, recipe, resume=True).done_already
    assert not [*tmp_path.rglob("*.zarr"), *tmp_path.rglob("removed")]


@pytest.mark.check
def test_a_store_that_fails_leaves_a_target_whose_place_the_error_says(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_STAGING", str(tmp_path))
    address, recipe = "s3://bucket/test_failing/a.zarr", {"TS": "zfp(rate=8)"}

    def fail(*_: object) -> None:
        raise OSError("status code: 503")

    with monkeypatch.context() as patched:
        patched.setattr("tamis.remote.objects.ObstoreObjects.put", fail)
        with pytest.raises(tamis.FileError, match=r"answered 503 again and again; resume=True keeps what was made"):
            tamis.repack(SAMPLE, address, recipe)
        assert not [*tmp_path.rglob("*.zarr")]
        with pytest.raises(tamis.FileError, match=r"; what was made is in (.*): repeat the call") as caught:
            tamis.repack(SAMPLE, address, recipe, resume=True)
    (folder,) = {path.parent for path in tmp_path.rglob("*.zarr")}
    assert str(folder) in str(caught.value)
    tamis.repack(SAMPLE, address, recipe, resume=True)
    assert tamis.verify(SAMPLE, address, bounds={"TS": 20}).ok


def test_targets_that_nobody_continued_are_removed(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STAGING", str(tmp_path))
    for days, name in ((15, "0123456789abcdef"), (13, "123456789abcdef0"), (15, "of_others")):
        (tmp_path / name / "a.zarr").mkdir(parents=True)
        (tmp_path / name / "sent.json").write_text("{}")
        for path in (tmp_path / name, *(tmp_path / name).iterdir()):
            os.utime(path, (time.time() - 86400 * days,) * 2)
    tamis.repack(SAMPLE, "s3://bucket/test_swept/a.nc", {"TS": "zfp(rate=8)"})
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")}
    records = {f"{name}/sent.json" for name in ("0123456789abcdef", "123456789abcdef0", "of_others")}
    assert left == records | {"123456789abcdef0/a.zarr", "of_others/a.zarr"}


@pytest.mark.check
def test_nothing_looks_whole_before_all_is_there(s3: str, tmp_path: Path) -> None:
    address = "s3://bucket/test_killed/a.zarr"
    environment = os.environ | {"TAMIS_STAGING": str(tmp_path)}
    arguments = ["repack", str(SAMPLE), address, "-f", "TS:zfp(accuracy=0.01)", "-c", "TS:2x48x48", "--resume"]
    store = obstore.store.from_url("s3://bucket/test_killed", client_options={"allow_http": True})

    def names() -> set[str]:
        return {item["path"] for batch in obstore.list(store) for item in batch}

    process = subprocess.Popen([*COMMAND, *arguments], env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not names() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert "a.zarr/zarr.json" not in names()
    with pytest.raises(tamis.FileError):
        tamis.open(address)
    before = names()
    done = subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert before
    assert before <= names()
    assert tamis.verify(SAMPLE, address, bounds={"TS": 0.01}).ok


def test_a_zarr_store_on_a_web_server(server: Server, tmp_path: Path, values: np.ndarray) -> None:
    for name, options in {"a.zarr": {}, "b.zarr": {"shards": 8}, "c.zarr": {"zarr_format": 2}}.items():
        tamis.repack(SAMPLE, tmp_path / name, {"TS": "shuffle|deflate(1)"}, **options)
        with tamis.open(server.url(name)) as file:
            np.testing.assert_array_equal(file["TS"][...], values)
            np.testing.assert_array_equal(file["TS"][:, 20, 30], values[:, 20, 30])
    (next((tmp_path / "b.zarr" / "TS").rglob("c/0/0/0"))).write_bytes(b"short")
    with tamis.open(server.url("b.zarr")) as file, pytest.raises(tamis.FileError, match="truncated or damaged"):
        file["TS"][...]


def test_stores_of_obstore_and_fsspec(values: np.ndarray) -> None:
    store, memory = obstore.store.MemoryStore(), fsspec.filesystem("memory")
    store.put("x/a.nc", SAMPLE.read_bytes())
    memory.pipe_file("/test_stores/a.nc", SAMPLE.read_bytes())
    local = fsspec.filesystem("file")
    for address in (
        Address("x/a.nc", store),
        Address("test_stores/a.nc", memory),
        "memory://test_stores/a.nc",
        Address(str(SAMPLE), local),
    ):
        with tamis.open(address) as file:
            np.testing.assert_array_equal(file["TS"][:, 7], values[:, 7])
    for opened in (memory.open("/test_stores/a.nc"), fsspec.open("memory://test_stores/a.nc")):
        with tamis.open(opened) as file:
            np.testing.assert_array_equal(file["TS"][3], values[3])
    memory.rm("/test_stores", recursive=True)


def test_a_web_server_through_fsspec(server: Server, tmp_path: Path, values: np.ndarray) -> None:
    (tmp_path / "a.nc").write_bytes(SAMPLE.read_bytes())
    url, system = server.url("a.nc"), fsspec.filesystem("http")
    for place in (tamis.Address(url, system), system.open(url), fsspec.open(url)):
        with tamis.open(place) as file:
            np.testing.assert_array_equal(file["TS"][:, 7], values[:, 7])


def test_an_object_of_fsspec_that_changes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(SAMPLE.read_bytes())
    with tamis.open(Address(str(path), fsspec.filesystem("file"))) as file:
        file["TS"][0]
        path.write_bytes(SAMPLE.read_bytes()[:-100])
        with pytest.raises(tamis.FileError, match="the file changed while it was read"):
            file["TS"][20]


def test_open_mfdataset_of_addresses(server: Server, tmp_path: Path, values: np.ndarray) -> None:
    for name in ("a.nc", "b.nc"):
        (tmp_path / name).write_bytes(SAMPLE.read_bytes())
    urls = [server.url("a.nc"), server.url("b.nc")]
    with xr.open_mfdataset(urls, engine="tamis", combine="nested", concat_dim="time", parallel=True) as dataset:
        np.testing.assert_array_equal(dataset.TS[:, 3, 4].values, np.tile(values[:, 3, 4], 2))


@pytest.mark.check
def test_workers_of_dask_and_processes_read_addresses(
    server: Server, tmp_path: Path, run_script: Callable[..., str]
) -> None:
    needs.need_shared_memory()
    (tmp_path / "a.nc").write_bytes(SAMPLE.read_bytes())
    script = tmp_path / "workers.py"
    script.write_text(
        "import sys, multiprocessing, dask.array, distributed, numpy, tamis\n"
        "def mean(array): return float(array[3].mean())\n"
        "if __name__ == '__main__':\n"
        "    array = tamis.open(sys.argv[1])['TS']\n"
        "    expected = array[...].mean(axis=0)\n"
        "    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:\n"
        "        with distributed.Client(cluster):\n"
        "            found = dask.array.from_array(array, chunks=(10, -1, -1)).mean(axis=0).compute()\n"
        "    assert numpy.allclose(found, expected)\n"
        "    for method in ('spawn', 'forkserver'):\n"
        "        with multiprocessing.get_context(method).Pool(2) as pool:\n"
        "            assert pool.map(mean, [array] * 2) == [mean(array)] * 2\n"
        "    print('done')\n"
    )
    assert "done" in run_script(script, server.url("a.nc"))


@pytest.mark.check
def test_commands_take_addresses(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(SAMPLE.read_bytes())
    url = server.url("a.nc")
    shown = run_tamis("inspect", url)
    assert shown.returncode == 0, shown.stderr
    assert url in shown.stdout
    assert run_tamis("verify", url, SAMPLE).returncode == 0
    assert run_tamis("plan", url, "--require", "TS:abs=0.1").returncode == 0
    done = run_tamis("repack", url, tmp_path / "out.nc", "-f", "TS:zfp(accuracy=0.1)")
    assert done.returncode == 0, done.stderr
    assert tamis.verify(SAMPLE, tmp_path / "out.nc", bounds={"TS": 0.1}).ok
    assert run_tamis("repack", url, tmp_path / "out.nc", "-f", "TS:zfp(accuracy=0.1)", "--resume").returncode == 0
    assert run_tamis("export", url, "--to", "kerchunk", "-o", tmp_path / "refs.json").returncode == 0
    refs = json.loads((tmp_path / "refs.json").read_text())["refs"]
    assert refs["TS/0.0.0"][0] == url


@pytest.mark.check
def test_many_addresses_are_repacked_into_a_folder(s3: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "b.nc").write_bytes(SAMPLE.read_bytes())
    tamis.repack(SAMPLE, "s3://bucket/test_many/a.nc", {})
    tamis.repack(SAMPLE, "s3://bucket/test_many/below/c.zarr", {})
    words = ["-f", "TS:zfp(accuracy=0.1)", "--workers", "2"]
    sources = ["s3://bucket/test_many/", server.url("b.nc"), SAMPLE]
    done = run_tamis("repack", *sources, tmp_path / "out/", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    names = "a.nc", "b.nc", "below/c.zarr", SAMPLE.name
    for name in names:
        assert tamis.verify(SAMPLE, tmp_path / "out" / name, bounds={"TS": 0.1}).ok
    made = (tmp_path / "out" / "a.nc").stat().st_mtime_ns
    assert run_tamis("repack", *sources, tmp_path / "out/", *words).returncode == 0
    assert (tmp_path / "out" / "a.nc").stat().st_mtime_ns == made
    alone = run_tamis("repack", server.url("b.nc"), f"{tmp_path / 'alone'}/", *words)
    assert alone.returncode == 0, alone.stderr
    assert (tmp_path / "alone" / "b.nc").exists()
    joined = run_tamis("repack", server.url("b.nc"), tmp_path / "two.nc", "--combine", "time")
    assert joined.returncode == 0, joined.stderr
    shown = run_tamis("inspect", server.url("b.nc"), "s3://bucket/test_many/")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("/TS") >= 3


def test_what_many_addresses_cannot_be_is_said(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(SAMPLE.read_bytes())
    url = server.url("a.nc")
    for words, text in (
        (
            [url, tmp_path / "a.nc", "s3://bucket/out/"],
            "several files cannot be written to an address",
        ),
        (
            [url, tmp_path / "a.nc", "s3://bucket/out.nc", "--combine", "time"],
            "files can be combined only into a target here",
        ),
        ([url, "--replace", "--yes"], "only files here can be replaced, not an address"),
        ([url.replace("a.nc", "folder/"), tmp_path / "out/"], "this server does not list files: give the address"),
    ):
        done = run_tamis("repack", *words, "-f", "TS:deflate(1)")
        assert done.returncode in (1, 2)
        assert text in " ".join(done.stderr.split())


def test_failing_commands_tell_no_secret(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(SAMPLE.read_bytes())
    server.faults = Faults(status=403)
    for arguments in (["inspect"], ["plan", "--require", "TS:abs=1"], ["verify", SAMPLE]):
        done = run_tamis(*arguments, server.url("a.nc") + "?X-Amz-Signature=topsecret")
        assert done.returncode == 1
        assert "access denied (403)" in done.stderr
        assert "topsecret" not in done.stdout + done.stderr
    done = run_tamis("inspect", "--storage-option", "nonsense", server.url("a.nc"))
    assert done.returncode == 2
    assert "expected KEY=VALUE" in done.stderr
    done = run_tamis("inspect", "--storage-option", "nonsense=1", "s3://bucket/a.nc")
    assert done.returncode == 1
    assert "cannot be opened" in done.stderr


@pytest.mark.check
def test_many_reads_with_faults_have_no_wrong_value(server: Server, make_file: Callable[..., Path]) -> None:
    path = make_file()
    server.faults = Faults(unavailable=0.05, reset=0.05, truncated=0.025)
    chance = np.random.default_rng(11)
    with tamis.open(path) as local:
        expected = local["TS"][...]
    reads = 0
    while reads < 4_000:
        with tamis.open(server.url(path.name)) as file:
            array = file["TS"]
            for _ in range(200):
                t, y, x = (int(chance.integers(0, extent - 3)) for extent in array.shape)
                np.testing.assert_array_equal(array[t : t + 3, y, x : x + 2], expected[t : t + 3, y, x : x + 2])
                reads += 1


@pytest.mark.check
def test_threads_with_garbage_collection_do_not_wait_for_each_other(
    server: Server, make_file: Callable[..., Path], run_script: Callable[..., str], tmp_path: Path
) -> None:
    """The deadlock of h5py's issue 2019: a collection in a thread of the network, while h5py's lock is held."""
    script = tmp_path / "threads.py"
    script.write_text(
        "import gc, itertools, sys, threading, time, faulthandler, h5py, tamis, fsspec\n"
        "faulthandler.dump_traceback_later(110, exit=True)\n"
        "gc.set_threshold(5)\n"
        "url, end = sys.argv[1], time.monotonic() + 30\n"
        "http, names, done = fsspec.filesystem('http'), itertools.count(), [0] * 100\n"
        "def work(number):\n"
        "    while time.monotonic() < end:\n"
        "        loop = [h5py.File(f'{number}-{next(names)}', 'w', driver='core', backing_store=False)]\n"
        "        loop.append(loop); del loop\n"
        "        with tamis.open(tamis.Address(url, http) if number % 4 == 0 else url) as file:\n"
        "            file['TS'][number % 50, 3]; file['group/x'][...]\n"
        "    done[number] = 1\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(100)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "print(sum(done), 'done')\n"
    )
    assert "100 done" in run_script(script, server.url(make_file().name))


@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}, {"shards": 4}], ids=["flat", "2", "sharded"])
@pytest.mark.matrix
def test_a_web_server_is_asked_only_for_what_is_read(options: dict[str, Any], server: Server, tmp_path: Path) -> None:
    values = np.random.default_rng(3).standard_normal((40, 20, 20)).cumsum(axis=0).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = file.create_dataset("v", values.shape, "f4", chunks=(1, 4, 4), compression="gzip")
        stored[:5], stored[8:] = values[:5], values[8:]  # 125 of 1000 chunks are absent
    tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {}, **options)
    values[5:8] = 0
    with tamis.open(server.url("a.zarr")) as file:
        array = file["v"]
        server.reset()
        np.testing.assert_array_equal(array[30], values[30])
        first = server.requests
        np.testing.assert_array_equal(array[30, 3], values[30, 3])
        assert first <= 25
        assert server.requests <= first + 5
        np.testing.assert_array_equal(array[4:9, :2, 7], values[4:9, :2, 7])
        np.testing.assert_array_equal(array[::13, ::3, [1, 18]], values[::13, ::3, [1, 18]])
        np.testing.assert_array_equal(array[...], values)


@pytest.mark.check
def test_a_chunk_on_a_web_server_that_changes_is_an_error(server: Server, tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "a.zarr", {"TS": "shuffle|deflate(1)"}, chunks={"TS": (1, 16, 16)}, shards=4)
    with tamis.open(server.url("a.zarr")) as file:
        file["TS"][0, :4, :4]
        for path in (tmp_path / "a.zarr" / "TS" / "c").rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes() + b"1234")
        with pytest.raises(tamis.FileError, match="the file changed while it was read"):
            file["TS"][0, :4, 20:24]  # in the same file
