"""What docs/cluster.md shows, as far as one machine can: arrays of jobs, GNU parallel, Dask, also by Slurm and MPI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"
FILES = 8


def block(*words: str) -> str:
    """Return the block of the page that has all of these words."""
    blocks = re.findall(r"^```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (found,) = [text for text in blocks if all(word in text for word in words)]
    return str(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with sources and a recipe."""
    for number in range(FILES):
        path = tmp_path / "data" / f"{number}.nc"
        path.parent.mkdir(exist_ok=True)
        with h5py.File(path, "w") as file:
            file["TS"] = np.linspace(number, number + 1, 4096, dtype="f4").reshape(64, 64)
    tamis.Recipe({"TS": "zfp(accuracy=0.1)"}).dump(tmp_path / "recipe.toml")
    return tmp_path


def run(script: str, folder: Path, **variables: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def assert_made(folder: Path) -> None:
    """Check that all files are done, and each was made once."""
    found = tamis.status(folder / "small")
    assert found.ok
    assert found.done == FILES
    lines = [line for path in (folder / "small" / ".tamis").glob("state-*") for line in path.read_bytes().splitlines()]
    assert len(lines) == FILES


@pytest.mark.check
def test_script_of_an_array_makes_all_parts(folder: Path) -> None:
    for number in range(1, 9):
        variables = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_CPUS_PER_TASK": "1"}
        run(block("#SBATCH --array"), folder, DATA="data", SMALL="small/", **variables)
    assert_made(folder)


@pytest.mark.check
def test_gnu_parallel_makes_all_parts_at_once(folder: Path) -> None:
    needs.need("parallel")
    run(block("parallel tamis").replace("parallel", "parallel --will-cite", 1), folder)
    assert_made(folder)


@pytest.mark.check
def test_dask_makes_all_files(folder: Path) -> None:
    pytest.importorskip("distributed")
    needs.need_shared_memory()
    (folder / "make.py").write_text(block("tamis.repack_many(", "LocalCluster"))
    run(f"{sys.executable} make.py", folder)
    assert_made(folder)


@pytest.mark.check
def test_scheduler_of_a_file_is_found(folder: Path) -> None:
    pytest.importorskip("distributed")
    needs.need_shared_memory()
    (line,) = [line for line in block("--scheduler-file", "tcp://").splitlines() if "--scheduler-file" in line]
    dask = f"{sys.executable} -m distributed.cli"
    run(
        f"""
        {dask}.dask_scheduler --port 0 --no-dashboard --scheduler-file scheduler.json 2> scheduler.log &
        {dask}.dask_worker --scheduler-file scheduler.json --no-dashboard --nthreads 1 2> worker.log &
        trap 'kill %1 %2' EXIT
        {line}
        """,
        folder,
    )
    assert_made(folder)


@pytest.mark.check
def test_slurm_runs_the_array(folder: Path) -> None:
    needs_slurm()
    (folder / "array.sh").write_text(block("#SBATCH --array"))
    run("sbatch --wait array.sh", folder, DATA="data", SMALL="small/")
    assert_made(folder)


@pytest.mark.check
def test_dask_jobqueue_starts_workers_as_jobs_of_slurm(folder: Path) -> None:
    needs_slurm()
    pytest.importorskip("dask_jobqueue")
    (folder / "make.py").write_text(block("SLURMCluster"))
    run(f"{sys.executable} make.py", folder)
    assert_made(folder)


@pytest.mark.check
def test_dask_mpi_starts_scheduler_and_workers(folder: Path) -> None:
    pytest.importorskip("dask_mpi")
    needs.need("mpirun")
    script = block("dask-mpi").replace("mpirun", "mpirun --oversubscribe -n 4")
    run(script, folder, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    assert_made(folder)


def needs_slurm() -> None:
    needs.need("sinfo")
    if subprocess.run(["sinfo"], capture_output=True, check=False).returncode:
        pytest.skip("no Slurm answers here")
