"""Known defects U98 and U107: workers filled a disk together, and what killed runs left stayed for ever."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from other_user import can_become

import tamis
from tamis.jobs.many import Choice, list_files, task
from tamis.jobs.many.state import begin_run
from tamis.jobs.repack import RepackOptions
from tamis.safety.room import Room

TAMIS = [sys.executable, "-m", "tamis"]
SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


def run(*words: str | Path, code: int = 0) -> str:
    """Run a command as a process; return what it said."""
    done = subprocess.run([*TAMIS, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_u98_room_is_reserved_beside_that_of_other_processes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    free = shutil.disk_usage(tmp_path).free
    first, second = Room(tmp_path / "room"), Room(tmp_path / "room")
    assert first.reserve(tmp_path, tmp_path / "data" / "a", free // 2, 0, waits=False)
    assert not second.reserve(tmp_path, tmp_path / "data" / "b", free * 3 // 4, 0, waits=False)
    assert second.reserve(tmp_path, tmp_path / "data" / "b", free // 8, 0, waits=False)
    second.close()
    threading.Timer(0.5, first.close).start()
    began = time.monotonic()
    assert second.reserve(tmp_path, tmp_path / "data" / "b", free * 3 // 4, 0, waits=True)
    assert time.monotonic() - began > 0.4
    second.close()
    assert not second.reserve(tmp_path, tmp_path / "data" / "b", 2 * free, 0, waits=True)
    assert not list((tmp_path / "room").glob("*.json"))


def test_u98_room_of_a_process_that_was_killed_is_free_again(tmp_path: Path) -> None:
    code = f"""
import os, pathlib, time
from tamis.safety.room import Room
folder = pathlib.Path({str(tmp_path)!r})
room = Room(folder / "room")
print(room.reserve(folder, folder / "a", {shutil.disk_usage(tmp_path).free // 2}, 0, waits=False), flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        other, large = Room(tmp_path / "room"), shutil.disk_usage(tmp_path).free * 3 // 4
        assert not other.reserve(tmp_path, tmp_path / "b", large, 0, waits=False)
        process.kill()
        process.wait()
    assert other.reserve(tmp_path, tmp_path / "b", large, 0, waits=False)
    other.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 20 MB with four files."""
    if os.geteuid() != 0 or not can_become():
        pytest.skip("only root can mount a file system")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", place], check=True)
    try:
        for number in range(1, 5):
            shutil.copy(SAMPLE, place / f"{number}.nc")
            os.utime(place / f"{number}.nc", (1e9, 1e9))
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.check
def test_u98_two_workers_share_the_room_for_one_file(small: Path) -> None:
    (small / "fill").write_bytes(bytes(shutil.disk_usage(small).free - 2_300_000))
    words = ("repack", small, "--replace", "--yes", "--workers", "2", "-f", "TS:zfp(accuracy=0.1)", "--retries", "0")
    assert "4 of 4 files done" in run(*words)
    assert names(small) == [".tamis", "1.nc", "2.nc", "3.nc", "4.nc", "fill"]


@pytest.mark.check
def test_u98_a_full_disk_says_what_is_needed_and_nothing_stays(small: Path) -> None:
    (small / "fill").write_bytes(bytes(shutil.disk_usage(small).free - 600_000))
    words = ("repack", small, "--replace", "--yes", "--workers", "2", "-f", "TS:zfp(accuracy=0.1)", "--retries", "0")
    said = run(*words, code=1)
    assert said.count("No space left: expected about 1.8") == 4 or "of free space, found" in said
    assert names(small) == [".tamis", "1.nc", "2.nc", "3.nc", "4.nc", "fill"]
    (small / "fill").unlink()
    assert "4 of 4 files done" in run(*words)


def test_u98_leftovers_of_other_targets_are_removed_and_named(tmp_path: Path) -> None:
    """A run is killed; then its source goes, so that no run continues its part."""
    (tmp_path / "in").mkdir()
    for name in ("a.nc", "b.nc"):
        shutil.copy(SAMPLE, tmp_path / "in" / name)
    out = tmp_path / "out"
    code = f"""
import os, signal
import tamis
from tamis.jobs.repack import job
job.prove = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
tamis.repack({str(tmp_path / "in" / "b.nc")!r}, {str(out / "b.nc")!r}, {{"TS": "deflate(4)"}}, resume=True)
"""
    out.mkdir()
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    (out / ".tamis-new-b.nc").write_bytes(b"left")
    assert len([name for name in names(out) if name.startswith(".b.nc.")]) == 2
    (tmp_path / "in" / "b.nc").unlink()
    said = run("repack", tmp_path / "in", out, "-f", "TS:deflate", "--workers", "1")
    assert said.count("left by a run that has ended") == 2
    assert names(out) == [".tamis", "a.nc"]


def killed(words: list[str | Path], folder: Path) -> None:
    """Kill a command as soon as it has a hidden file that grows."""
    with subprocess.Popen([*TAMIS, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if any(path.stat().st_size for path in folder.glob(".*.tamis") if path.is_file()) or [
                *folder.glob(".*.tamis/*")
            ]:
                process.send_signal(signal.SIGKILL)
                process.wait()
            time.sleep(0.002)


@pytest.mark.matrix
@pytest.mark.parametrize("target", ["all.nc", "all.zarr"])
def test_u107_a_killed_combine_leaves_nothing_to_the_next_run(tmp_path: Path, target: str) -> None:
    with xr.open_dataset(SAMPLE, decode_times=False) as ds:
        ds.isel(time=slice(0, 50)).to_netcdf(tmp_path / "a.nc")
        ds.isel(time=slice(50, 100)).to_netcdf(tmp_path / "b.nc")
    words: list[str | Path] = ["repack", tmp_path / "a.nc", tmp_path / "b.nc", tmp_path / target]
    words += ["--combine", "time", "-f", "TS:zfp(accuracy=0.001)|shuffle|deflate(9)"]
    killed(words, tmp_path)
    assert [name for name in names(tmp_path) if name.startswith(f".{target}.")]
    run(*words, "-q")
    assert names(tmp_path) == sorted(["a.nc", "b.nc", target])


@pytest.mark.check
@pytest.mark.parametrize("target", ["out.nc", "out.zarr"])
def test_u107_a_killed_to_netcdf_leaves_nothing_to_the_next_run(tmp_path: Path, target: str) -> None:
    call = "to_netcdf" if target.endswith(".nc") else "to_zarr"
    code = f"""
import os, signal, sys, threading, time
import tamis, xarray
from tamis.jobs.repack import job
ds = xarray.open_dataset({str(SAMPLE)!r}, decode_times=False)
if sys.argv[1] == "dies":
    job.prove = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ds.tamis.{call}({str(tmp_path / target)!r}, {{"TS": "shuffle|deflate(4)"}})
"""
    assert subprocess.run([sys.executable, "-c", code, "dies"], check=False).returncode == -signal.SIGKILL
    assert names(tmp_path)
    subprocess.run([sys.executable, "-c", code, "lives"], check=True)
    assert names(tmp_path) == [target]


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["kerchunk", "zarr-manifest", "icechunk"])
def test_u107_a_killed_export_leaves_nothing_to_the_next_run(tmp_path: Path, kind: str) -> None:
    if kind == "icechunk":
        pytest.importorskip("icechunk")
    target = tmp_path / {"kerchunk": "refs.json", "zarr-manifest": "manifests", "icechunk": "ice"}[kind]
    code = f"""
import os, signal, sys
import tamis
from tamis.safety import transaction
if sys.argv[1] == "dies":
    transaction.Transaction.commit = lambda _: os.kill(os.getpid(), signal.SIGKILL)
tamis.export({str(SAMPLE)!r}, {str(target)!r}, {kind!r})
"""
    first = subprocess.run([sys.executable, "-c", code, "dies"], capture_output=True, text=True, check=False)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert names(tmp_path)
    subprocess.run([sys.executable, "-c", code, "lives"], check=True)
    assert names(tmp_path) == [target.name]


@pytest.mark.check
def test_u107_what_a_live_process_writes_stays(tmp_path: Path) -> None:
    code = f"""
import sys, time
import tamis, xarray
from tamis.jobs.repack import job
prove = job.prove
def wait(*arguments):
    print("written", flush=True)
    sys.stdin.readline()
    return prove(*arguments)
job.prove = wait
ds = xarray.open_dataset({str(SAMPLE)!r}, decode_times=False)
ds.tamis.to_netcdf({str(tmp_path / "out.nc")!r}, {{"TS": "shuffle|deflate(4)"}}, overwrite=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "written\n"
        hidden = [name for name in names(tmp_path) if name.endswith(".tamis")]
        ds = xr.Dataset({"x": ("t", np.arange(5.0))})
        ds.tamis.to_netcdf(tmp_path / "out.nc", {})
        assert [name for name in names(tmp_path) if name.endswith(".tamis")] == hidden
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(60) == 0
    assert names(tmp_path) == ["out.nc"]
    assert "TS" in tamis.inspect(tmp_path / "out.nc")


def test_room_stays_reserved_until_the_replaced_file_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another process would find neither the room nor somebody to wait for."""
    shutil.copy(SAMPLE, tmp_path / "a.nc")
    os.utime(tmp_path / "a.nc", (1e9, 1e9))
    reserved: list[int] = []
    take_place = task._take_place

    def noted(*arguments: Any) -> None:
        reserved.append(len([*(tmp_path / ".tamis" / "room").glob("*.json")]))
        take_place(*arguments)
        reserved.append(len([*(tmp_path / ".tamis" / "room").glob("*.json")]))

    monkeypatch.setattr(task, "_take_place", noted)
    options = task.FolderOptions(str(tmp_path), RepackOptions.asked({"TS": "zfp(accuracy=0.1)"}), replace=True)
    file = list_files([tmp_path], Choice()).files["a.nc"]
    with begin_run(tmp_path, {"key": options.key}):
        record = task.FileTask(file, options).run(lambda *_: None)
    assert record.action == "repacked", record.error
    assert reserved == [1, 1]
    assert not [*(tmp_path / ".tamis" / "room").glob("*.json")]
