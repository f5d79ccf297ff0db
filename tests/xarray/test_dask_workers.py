"""Dask arrays that the workers of a cluster encode: the bytes of one process, and what happens if something fails."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import h5py
import needs
import numpy as np
import pytest
import xarray as xr

import tamis
from tamis import ParameterError, TamisError
from tamis.rounding import PackingRange
from tamis.xarray import dask_workers

pytestmark = pytest.mark.xdist_group("dask workers")  # its cluster is started once

distributed = pytest.importorskip("distributed")

RECIPES = {
    "A": "zfp(accuracy=0.01)|shuffle|deflate(4)",
    "B": "shuffle|deflate(4)|fletcher32",
    "C": "bitround(7)|shuffle|deflate(4)",
    "D": "pack(bound=0.01)|shuffle|deflate(4)",
}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    needs.need_shared_memory()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def dataset(blocks: tuple[int, ...] = (10, 40, 60)) -> xr.Dataset:
    """Return fields with gaps as dask arrays."""
    grid = np.linspace(0, 9, 60 * 50 * 70, dtype="f4").reshape(60, 50, 70)
    values = np.sin(grid) * 20 + 280
    values[7, :20, :20] = np.nan
    ds = xr.Dataset({name: (("time", "lat", "lon"), da.from_array(values, chunks=blocks)) for name in RECIPES})
    for variable in ds.variables.values():
        variable.encoding["_FillValue"] = np.float32(-9e9)
    return ds.assign_coords(time=np.arange(60.0), mean=("time", da.from_array(values.mean((1, 2)), chunks=7)))


@pytest.mark.check
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("blocks", "name", "options"),
    [
        ((10, 40, 60), "a.nc", {}),
        ((60, 7, 9), "a.nc", {}),
        ((1, 50, 70), "a.zarr", {}),
        ((60, 7, 9), "a.zarr", {"shards": 6}),
        ((10, 40, 60), "a.zarr", {"shards": 6}),
    ],
)
def test_chunks_of_workers_are_those_of_one_process(
    client: Any,
    blocks: tuple[int, ...],
    name: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask_workers, "_SLAB_NBYTES", 100_000)
    (tmp_path / "own").mkdir()
    chunks = dict.fromkeys(RECIPES, (4, 16, 32))
    counts: list[tuple[str, int, int]] = []
    method = "to_zarr" if name.endswith("zarr") else "to_netcdf"
    save, save_here = (getattr(dataset(blocks).tamis, method) for _ in range(2))
    result = save(tmp_path / name, RECIPES, chunks=chunks, progress=lambda *step: counts.append(step), **options)
    with dask.config.set(scheduler="threads"):
        expected = save_here(tmp_path / "own" / name, RECIPES, chunks=chunks, **options)
    assert contents(tmp_path / name) == contents(tmp_path / "own" / name)
    assert [entry.largest_error for entry in result.datasets] == [entry.largest_error for entry in expected.datasets]
    assert any(step.startswith("writing /A") and done == total for step, done, total in counts)
    assert sorted(os.listdir(tmp_path)) == [name, "own"]


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@pytest.mark.check
def test_values_do_not_come_to_this_process(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[int] = []
    result = dask_workers._result

    def counted(*arguments: Any) -> Any:
        found = result(*arguments)
        received.append(0 if isinstance(found, PackingRange) else sum(len(chunk.data) for chunk in found[0]))
        return found

    monkeypatch.setattr(dask_workers, "_result", counted)
    monkeypatch.setattr("tamis.xarray.dataset_store._VariableReader._gathered", refuse)
    monkeypatch.setattr("tamis.jobs.repack.notes.better_chunks", lambda *_: None)  # it reads a sample
    dataset()[[*RECIPES]].tamis.to_netcdf(tmp_path / "a.nc", RECIPES)
    with h5py.File(tmp_path / "a.nc") as file:
        stored = sum(file[name].id.get_storage_size() for name in RECIPES)
    assert stored <= sum(received) <= stored + 1000  # with the coordinate


@pytest.mark.check
@pytest.mark.parametrize("is_shared", [True, False])
def test_chunks_of_a_folder_come_only_from_workers_that_do_not_see_it(
    is_shared: bool, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: set[str] = set()
    result = dask_workers._result

    def noted(*arguments: Any) -> Any:
        chunks, error = result(*arguments)
        received.add(type(chunks).__name__)
        return chunks, error

    monkeypatch.setattr(dask_workers, "_result", noted)
    if not is_shared:
        slabs, absent = dask_workers._slabs, tmp_path / "seen by one machine"
        monkeypatch.setattr(
            dask_workers, "_slabs", lambda *given: (slab._replace(folder=absent) for slab in slabs(*given))
        )
    dataset()[["A"]].tamis.to_zarr(tmp_path / "a.zarr", {"A": RECIPES["A"]}, chunks={"A": (4, 16, 32)})
    assert received == {"Segment" if is_shared else "list"}
    with xr.open_dataset(tmp_path / "a.zarr", engine="tamis") as ds:
        assert float(ds["A"].max()) > 299


def refuse(*_: Any) -> None:
    raise AssertionError("values are read in this process")


def fails(block: np.ndarray) -> np.ndarray:
    if block.shape and block.flat[0] == 5:
        raise ZeroDivisionError("no such field")
    return block


@pytest.mark.check
def test_error_of_a_task_names_the_variable_and_leaves_nothing(client: Any, tmp_path: Path) -> None:
    values = da.arange(10, chunks=1, dtype="f4").reshape(10, 1).map_blocks(fails, dtype="f4")
    ds = xr.Dataset({"T": (("x", "y"), values)})
    with pytest.raises(TamisError, match=r"/T: chunks from \(.*no such field"):
        ds.tamis.to_netcdf(tmp_path / "a.nc", {"T": "shuffle|deflate(4)"}, chunks={"T": (1, 1)})
    assert not [*tmp_path.iterdir()]


@pytest.mark.check
def test_error_of_a_range_names_the_variable_and_the_block(client: Any, tmp_path: Path) -> None:
    values = da.arange(10, chunks=2, dtype="f4").reshape(10, 1)
    ds = xr.Dataset({"T": (("x", "y"), da.where(values == 5, np.inf, values))})
    with pytest.raises(TamisError, match=r"/T: chunk at \(4, 0\): expected finite or missing values"):
        ds.tamis.to_netcdf(tmp_path / "a.nc", {"T": "pack(bound=0.1)"})
    assert not [*tmp_path.iterdir()]


def ends_once(block: np.ndarray, marker: str) -> np.ndarray:
    if block.flat[0] == 5 and not os.path.exists(marker):
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.check
def test_worker_that_is_killed_is_replaced(client: Any, tmp_path: Path) -> None:
    values = da.arange(10, chunks=1, dtype="f4").reshape(10, 1)
    values = values.map_blocks(ends_once, marker=str(tmp_path / "marker"), dtype="f4")
    xr.Dataset({"T": (("x", "y"), values)}).tamis.to_netcdf(tmp_path / "a.nc", {"T": "shuffle|deflate(4)"})
    assert (tmp_path / "marker").exists()
    with xr.open_dataset(tmp_path / "a.nc", engine="tamis") as ds:
        np.testing.assert_array_equal(ds["T"].values[:, 0], np.arange(10))


@pytest.mark.check
def test_few_tasks_are_under_way(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_workers, "_SLAB_NBYTES", 4000)
    pending: list[int] = []
    submit = client.submit

    def counted(*arguments: Any, **keywords: Any) -> Any:
        future = submit(*arguments, **keywords)
        alive.append(future)
        pending.append(len([future for future in alive if future.status == "pending"]))
        return future

    alive: list[Any] = []
    monkeypatch.setattr(client, "submit", counted)
    values = da.zeros((400, 1000), chunks=(1, 1000), dtype="f4")
    xr.Dataset({"T": (("x", "y"), values)}).tamis.to_netcdf(
        tmp_path / "a.nc", {"T": "shuffle|deflate(4)"}, chunks={"T": (1, 1000)}
    )
    assert len(pending) == 400
    assert max(pending) <= 4


def test_results_come_although_workers_have_ended() -> None:
    class Task:
        def result(self) -> int:
            return 7

    threads = iter([4, 1, *[1] * 9])
    client = type("", (), {"nthreads": lambda _: {"worker": next(threads)}})()
    tasks = iter([dask_workers._Task("/T", (0,), Task())] * 9)
    assert [*dask_workers._results(client, tasks)] == [7] * 9


@pytest.mark.check
def test_pattern_hides_no_error_of_a_task(client: Any, tmp_path: Path) -> None:
    values = da.arange(10, chunks=1, dtype="f4").reshape(10, 1).map_blocks(fails, dtype="f4")
    with pytest.raises(TamisError, match="no such field"):
        xr.Dataset({"T": (("x", "y"), values)}).tamis.to_zarr(
            tmp_path / "a.zarr", {"*": "shuffle|deflate(4)"}, chunks={"T": (1, 1)}
        )
    assert not [*tmp_path.iterdir()]


def test_to_zarr_expects_the_ending(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"expected the path of a new folder that ends with \.zarr, got '.*a.nc'"):
        xr.Dataset().tamis.to_zarr(tmp_path / "a.nc")


@pytest.mark.check
@pytest.mark.parametrize("source", ["tamis.open", "engine"])
def test_graph_is_sent_in_100_bytes_a_chunk(source: str, tmp_path: Path) -> None:
    from dask.base import collections_to_expr
    from distributed.protocol.pickle import dumps, loads

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", shape=(20_000, 4), chunks=(1, 4), dtype="f4")[-1] = 7
    with (
        tamis.open(tmp_path / "a.h5") as opened,
        xr.open_dataset(tmp_path / "a.h5", engine="tamis", chunks={}) as ds,
    ):
        own = opened["x"]
        array = da.from_array(own, chunks=own.chunks) if source == "tamis.open" else ds["x"].data
        assert array.npartitions == 20_000
        sent = dumps(collections_to_expr([array]))  # as a client does
        assert len(sent) <= 2_000_000
        graph = loads(sent).__dask_graph__()
        value = dask.get(graph, (array.name, 19_999, 0))
        np.testing.assert_array_equal(value, [[7, 7, 7, 7]])
