"""One file whose large datasets several processes encode: the same bytes as one process, whatever happens to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis.jobs.progress import Progress
from tamis.jobs.repack import spread
from tamis.jobs.workers import DaskWorkers, LocalWorkers, Progressed, _Worker
from tamis.rewrite.segments import Segment, SegmentReader
from tamis.xarray.dask_workers import _results

RECIPES = {
    "x": "zfp(accuracy=0.01)|shuffle|deflate(4)",
    "b": "zfp(bound=0.01)|shuffle|deflate(4)",
    "p": "pack(bound=0.01)|shuffle|deflate(4)",
    "z": "zfp(accuracy=0.01)|deflate(1)",
    "grp/*": "shuffle|deflate(4)",
}
CHUNKS = {"x": (4, 32, 32), "grp/y": (20, 32)}
SLAB_NBYTES = 100_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Make a file with datasets that are encoded, rechunked, packed, recoded after zfp, and copied."""
    path = tmp_path / "source.nc"
    values = np.random.default_rng(0).standard_normal((16, 128, 128)).cumsum(axis=1).cumsum(axis=2).astype("f4")
    with h5py.File(path, "w") as file:
        gappy = values.copy()
        gappy[:4, :32, :32] = np.nan
        file.create_dataset("x", data=gappy, chunks=(1, 128, 128), compression="gzip", compression_opts=1)
        file.create_dataset("b", data=values, chunks=(4, 64, 64))
        file.create_dataset("p", data=values + 280, chunks=(1, 128, 128))
        file.create_dataset("z", data=values, chunks=(2, 64, 64), **tamis.Zfp(accuracy=0.01))
        file["grp/y"] = np.arange(40_000, dtype="i4").reshape(200, 200)
        file["kept"] = np.arange(1000.0)
    return path


@pytest.fixture(autouse=True)
def small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "SLAB_NBYTES", SLAB_NBYTES)


def files_of(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def repack(source: Path, target: Path, **options: Any) -> tamis.RepackResult:
    return tamis.repack(source, target, RECIPES, chunks=CHUNKS, **options)


def facts_of(result: tamis.RepackResult) -> list[Any]:
    return [(item.path, item.largest_error, item.lossless_chunks, item.missing_values) for item in result.datasets]


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("target.nc", {}),
        ("target.nc", {"missing": "mask", "require": {"x": "rmse=1,limits"}}),
        ("target.zarr", {}),
        ("target.zarr", {"zarr_format": 2, "missing": "mask"}),
        ("target.zarr", {"shards": 1}),
        ("target.zarr", {"shards": 6, "missing": "mask"}),
        ("target.zarr", {"shards": 1000}),
    ],
)
def test_target_has_the_bytes_of_one_process(name: str, options: dict[str, Any], source: Path, tmp_path: Path) -> None:
    alone = repack(source, tmp_path / f"alone-{name}", **options)
    shared = repack(source, tmp_path / name, workers=2, **options)
    assert files_of(tmp_path / name) == files_of(tmp_path / f"alone-{name}")
    assert facts_of(shared) == facts_of(alone)
    assert len(os.listdir(tmp_path)) == 3


class Killed(LocalWorkers):
    """Workers of which one is killed when it has begun its second task, and once more."""

    kills = 2

    def submit(self, task: Any) -> None:
        super().submit(task)
        if task.number > 2 and self.kills:
            self.kills -= 1
            worker = next(worker for worker in self._workers if worker.task is task)
            assert worker._process is not None
            worker._process.kill()


def test_workers_write_the_files_of_a_folder_themselves(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: set[tuple[str, str]] = set()
    can_move = SegmentReader._can_move

    def noted(self: SegmentReader, segment: Segment, name: str) -> bool:
        moves = can_move(self, segment, name)
        if not moves:
            loaded.add((self._path, name))
        return moves

    monkeypatch.setattr(SegmentReader, "_can_move", noted)
    repack(source, tmp_path / "target.zarr", workers=2, shards=4)
    # Its first chunk is unlike others: tasks may begin before that is known.
    assert {path for path, _ in loaded} <= {"/x"}
    assert len(loaded) <= 4


@pytest.mark.check
@pytest.mark.parametrize(("name", "options"), [("target.nc", {}), ("target.zarr", {"shards": 8})])
def test_killed_workers_change_nothing(
    name: str, options: dict[str, Any], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repack(source, tmp_path / f"alone-{name}", **options)
    monkeypatch.setattr(spread, "LocalWorkers", Killed)
    repack(source, tmp_path / name, workers=2, **options)
    assert files_of(tmp_path / name) == files_of(tmp_path / f"alone-{name}")
    assert len(os.listdir(tmp_path)) == 3
    monkeypatch.setattr(Killed, "kills", 1000)
    with pytest.raises(tamis.FileError, match=r"/[bp]: the process that encodes chunks was ended by SIGKILL, 3 times"):
        repack(source, tmp_path / f"other-{name}", workers=2, **options)
    assert len(os.listdir(tmp_path)) == 3


def kill_in(folder: Path, dataset: str, done: int, target: str = "target.nc", **options: Any) -> None:
    """Kill a run, and not its workers, when it has written so many chunks, and all workers wait for it."""
    code = f"""if True:
        import os, pathlib, signal, time, tamis
        from tamis.jobs.repack import spread
        spread.SLAB_NBYTES = {SLAB_NBYTES}
        def progress(step, done, total):
            if step == "writing {dataset}" and done == {done}:
                before, now = 0, 1
                while now != before:
                    time.sleep(0.5)
                    before, now = now, sum(path.stat().st_size for path in pathlib.Path().glob(".*-chunks/**/*"))
                os.kill(os.getpid(), signal.SIGKILL)
        options = dict({options}, workers=2, resume=True, progress=progress)
        tamis.repack("source.nc", "{target}", {RECIPES}, chunks={CHUNKS}, **options)
    """
    done_run = subprocess.run([sys.executable, "-c", code], cwd=folder, check=False, capture_output=True, text=True)
    assert done_run.returncode == -signal.SIGKILL, done_run.stderr


@pytest.mark.check
def test_run_that_was_killed_is_continued_from_its_segments(source: Path, tmp_path: Path) -> None:
    repack(source, tmp_path / "alone.nc")
    kill_in(tmp_path, "/x", 3)
    assert [*tmp_path.glob(".*-chunks")]
    found = repack(source, tmp_path / "target.nc", resume=True, workers=2)
    reused = {item.path: item.reused_chunks for item in found.datasets}
    assert reused["/b"] == 16  # all
    assert reused["/x"] > 16  # those in the target, and in segments
    assert reused["/z"] == 0
    assert (tmp_path / "target.nc").read_bytes() == (tmp_path / "alone.nc").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["alone.nc", "source.nc", "target.nc"]


@pytest.mark.check
@pytest.mark.parametrize(
    ("options", "workers"), [({}, 2), ({"shards": 6, "missing": "mask"}, 2), ({"shards": 30}, None)]
)
def test_killed_run_for_a_folder_is_continued(
    options: dict[str, Any], workers: int | None, source: Path, tmp_path: Path
) -> None:
    repack(source, tmp_path / "alone.zarr", **options)
    for done in (11, 37):
        kill_in(tmp_path, "/x", done, "target.zarr", **options)
    assert [*tmp_path.glob(".*-chunks")]
    found = repack(source, tmp_path / "target.zarr", resume=True, workers=workers, **options)
    reused = {item.path: item.reused_chunks for item in found.datasets}
    assert reused["/b"] == 16  # all
    assert reused["/x"] >= 37
    assert files_of(tmp_path / "target.zarr") == files_of(tmp_path / "alone.zarr")
    assert sorted(os.listdir(tmp_path)) == ["alone.zarr", "source.nc", "target.zarr"]


@pytest.mark.check
def test_damaged_segment_is_encoded_again(source: Path, tmp_path: Path) -> None:
    repack(source, tmp_path / "alone.nc")
    kill_in(tmp_path, "/x", 3)
    (folder,) = tmp_path.glob(".*-chunks")
    segments = [path for path in folder.iterdir() if not path.name.endswith("-journal")]
    for path in segments:
        path.write_bytes(path.read_bytes()[:-5] + b"other")
    repack(source, tmp_path / "target.nc", resume=True, workers=2)
    assert (tmp_path / "target.nc").read_bytes() == (tmp_path / "alone.nc").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["alone.nc", "source.nc", "target.nc"]


@pytest.mark.check
def test_run_that_does_not_resume_removes_segments(source: Path, tmp_path: Path) -> None:
    kill_in(tmp_path, "/x", 3)
    assert [*tmp_path.glob(".*-chunks")]
    repack(source, tmp_path / "target.nc")
    assert sorted(os.listdir(tmp_path)) == ["source.nc", "target.nc"]


@pytest.mark.check
def test_error_of_a_worker_is_that_of_one_process(source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "r+") as file:
        offset = file["x"].id.get_chunk_info(9).byte_offset
    with source.open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"damaged!")
    told = []
    for workers in (None, 2):
        with pytest.raises(tamis.TamisError) as caught:
            repack(source, tmp_path / "target.nc", workers=workers)
        told.append((type(caught.value), str(caught.value), caught.value.dataset, caught.value.chunk))
    assert told[0] == told[1]
    assert os.listdir(tmp_path) == ["source.nc"]


def test_source_that_changes_is_refused(source: Path, tmp_path: Path) -> None:
    def progress(step: str, done: int, total: int) -> None:
        if step == "writing /b" and done == 1:
            os.utime(source, ns=(1, 1))

    with pytest.raises(tamis.FileError, match="changed while it was read"):
        repack(source, tmp_path / "target.nc", workers=2, progress=progress)
    assert os.listdir(tmp_path) == ["source.nc"]


@pytest.mark.check
def test_interrupt_leaves_nothing(source: Path, tmp_path: Path) -> None:
    def progress(step: str, done: int, total: int) -> None:
        if step == "writing /b" and done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repack(source, tmp_path / "target.nc", workers=2, progress=progress)
    assert os.listdir(tmp_path) == ["source.nc"]


def test_scheduler_that_has_ended_is_named() -> None:
    pytest.importorskip("distributed")

    def fails(*_: object) -> None:
        raise ConnectionResetError("reset by peer")

    client = SimpleNamespace(nthreads=fails, cancel=fails, scheduler=SimpleNamespace(address="tcp://1.2.3.4:5"))
    workers = DaskWorkers(client)
    with pytest.raises(tamis.FileError, match=r"tcp://1.2.3.4:5: the scheduler of Dask does not answer: reset by peer"):
        _ = workers.idle
    workers.stop()
    with pytest.raises(tamis.FileError, match=r"tcp://1.2.3.4:5: the scheduler of Dask does not answer: reset by peer"):
        next(_results(client, iter(())))


@pytest.mark.check
def test_disk_that_is_full_for_workers_is_told(source: Path, tmp_path: Path) -> None:
    code = f"""if True:
        import os, resource, signal, sys, tamis
        from tamis.jobs.repack import spread
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # Python 3.13.0 keeps files that the limit cut off
        sys.dont_write_bytecode = True
        spread.SLAB_NBYTES = {SLAB_NBYTES}
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            tamis.repack("source.nc", "target.nc", {RECIPES}, chunks={CHUNKS}, workers=2)
        except tamis.FileError as error:
            print(error)
    """
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert told.stdout.startswith("target.nc: cannot be written: the file system, or ulimit -f, takes no file"), told
    assert os.listdir(tmp_path) == ["source.nc"]


class TaskWhoseEndPythonDrops:
    """A task that a signal asks to end during the callback of a weak reference."""

    def run(self, report: Progress) -> None:
        value = {1}  # weak references to sets are allowed
        reference = weakref.ref(value, lambda _: signal.raise_signal(signal.SIGTERM))
        del value
        assert reference() is None
        while True:
            report("waiting", 0, 1)


def test_end_that_python_drops_comes_with_the_next_report_and_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    worker = _Worker()
    worker.begin(TaskWhoseEndPythonDrops())
    event = worker.event()
    while isinstance(event, Progressed):
        event = worker.event()
    assert event is not None
    assert event[1:] == ("ended with exit code 143", False)
    assert capfd.readouterr().err == ""


def test_process_that_starts_is_not_interrupted_by_the_terminal() -> None:
    worker = _Worker()
    worker._start()
    try:
        status = Path(f"/proc/{worker._process.pid}/status").read_text()  # type: ignore[union-attr]
        blocked = int(next(line for line in status.splitlines() if line.startswith("SigBlk")).split()[1], 16)
        assert blocked & 1 << signal.SIGINT - 1
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        worker.ask_to_end()
        worker.end()


@pytest.mark.matrix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("resume", [False, True])
def test_signal_ends_all_processes_and_a_run_that_resumes_continues(
    number: signal.Signals, code: int, resume: bool, source: Path, tmp_path: Path, tmp_path_factory: Any
) -> None:
    begun = tmp_path_factory.mktemp("begun") / "begun"
    script = f"""if True:
        import pathlib, sys, time, tamis_command
        from tamis.jobs.repack import spread
        spread.SLAB_NBYTES = {SLAB_NBYTES}
        def chunks(self, segment, own=spread.SegmentReader.chunks):
            time.sleep(0.1)
            yield from own(self, segment)
            pathlib.Path({str(begun)!r}).touch()
        spread.SegmentReader.chunks = chunks
        tamis_command.main()
    """
    words = [word for item in RECIPES.items() for word in ("-f", ":".join(item))]
    words += [word for name, shape in CHUNKS.items() for word in ("-c", f"{name}:{'x'.join(map(str, shape))}")]
    command = [sys.executable, "-c", script, "repack", "source.nc", "target.nc", "--workers", "2", *words]
    process = subprocess.Popen(
        [*command, *["--resume"] * resume], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not begun.exists() and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, number)
    told = process.communicate()[1]
    assert process.returncode == code, told
    assert "Traceback" not in told
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert bool([*tmp_path.glob(".*-chunks")]) == resume
    assert len(os.listdir(tmp_path)) == (4 if resume else 1)  # the source, the target, its journal and segments
    repack(source, tmp_path / "alone.nc", history=False)
    repack(source, tmp_path / "target.nc", history=False, workers=2, resume=True)
    assert (tmp_path / "target.nc").read_bytes() == (tmp_path / "alone.nc").read_bytes()


def test_room_for_segments_is_asked_for(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = {"x": "shuffle|deflate(1)"}
    (stored,) = tamis.repack(source, tmp_path / "alone.nc", recipe).datasets
    room = source.stat().st_size - stored.source_nbytes + 1.5 * stored.target_nbytes
    monkeypatch.setattr(
        "tamis.jobs.repack.new_target.shutil.disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, room)
    )
    tamis.repack(source, tmp_path / "target.nc", recipe)
    monkeypatch.setattr(spread, "SLAB_NBYTES", 64 << 20)
    with pytest.raises(tamis.FileError, match="No space left"):
        tamis.repack(source, tmp_path / "other.nc", recipe, workers=2)
    tamis.repack(source, tmp_path / "target.zarr", recipe, workers=2)
