"""The witness xarray: what it agrees to for every kind of target, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import run_tamis, threads_as_workers

import tamis

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")

from tamis.jobs.witness import process  # noqa: E402
from tamis.jobs.witness.look import Briefing, Expected, Sources, XarrayWitness  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "examples" / "data" / "cam_ts.nc"
ZFP = "TS:zfp(accuracy=0.1)|shuffle|deflate(4)"


def dataset(steps: int = 40, begin: int = 0) -> Any:
    """Return a dataset whose variables take several chunks, with gaps, texts, times and packed values."""
    values = np.random.default_rng(1).normal(280, 5, (steps, 30, 40)).astype("f4")
    values[5, :7] = np.nan
    times = xr.date_range("2000-01-01", periods=begin + steps)[begin:]
    ds = xr.Dataset(
        {"t": (("time", "y", "x"), values), "name": ("y", np.array(["a", "bé"] * 15)), "one": ((), 1.5)},
        {"time": times, "x": np.arange(40.0)},
        {"Conventions": "CF-1.8", "title": "é"},
    )
    ds["t"].attrs = {"units": "K", "long_name": "temperature"}
    ds["t"].encoding = {"chunksizes": (10, 30, 40)}
    ds["time"].encoding = {"units": "days since 2000-01-01", "dtype": "f8"}
    ds["packed"] = ds["t"] * 1
    ds["packed"].encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    return ds


def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    with threads_as_workers():
        done = run_tamis(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the same content in several formats."""
    folder, ds = tmp_path_factory.mktemp("sources"), dataset()
    ds.to_netcdf(folder / "a.nc", engine="h5netcdf", unlimited_dims=["time"])
    for number in (2, 3):
        chunks = {name: {"chunks": (10, 30, 40)} for name in ("t", "packed")}
        ds.drop_encoding().to_zarr(folder / f"a{number}.zarr", zarr_format=number, encoding=chunks)
    with h5py.File(folder / "plain.h5", "w") as file:
        file["group/t"] = ds["t"].values
        file["group/t"].attrs["units"] = "K"
        file["n"] = np.arange(10)
    return folder


TARGETS = [
    ("a.nc", "b.nc", ()),
    ("a.nc", "b.zarr", ()),
    ("a.nc", "b.zarr", ("--zarr-format", "2")),
    ("a.nc", "b.zarr", ("--shards", "4")),
    ("plain.h5", "b.h5", ()),
    ("a2.zarr", "b.zarr", ()),
    ("a3.zarr", "b.nc", ()),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("source", "target", "options"), TARGETS)
def test_witness_agrees_to_every_kind_of_target(
    sources: Path, tmp_path: Path, source: str, target: str, options: tuple[str, ...]
) -> None:
    given = "-f", "*t:zfp(accuracy=0.1)|shuffle|deflate(4)", *options, "--witness", "xarray", "--json"
    found = json.loads(run("repack", sources / source, tmp_path / target, *given).stdout)["witness"]
    assert found["reader"].startswith("xarray ")
    assert found["unread"] == []
    path = "/group/t" if source == "plain.h5" else "/t"
    assert found["chunks"][path] >= 1
    assert found["variables"] == (2 if source == "plain.h5" else 6)
    assert found["needs"][path] in (("tamis", "zfpy or tamis") if target.endswith(".zarr") else ("HDF5 with zfp",))


KEYWORDS: list[dict[str, Any]] = [{}, {"zarr_format": 2}, {"shards": 4}]


@pytest.mark.matrix
@pytest.mark.parametrize("source", ["a.nc", "a2.zarr", "a3.zarr", "plain.h5"])
@pytest.mark.parametrize("filters", ["", "pack(0.1)|shuffle|deflate(4)", "bitround(keepbits=12)|shuffle|deflate(4)"])
def test_witness_agrees_to_what_stock_readers_read(sources: Path, tmp_path: Path, source: str, filters: str) -> None:
    recipes = {"*t": filters} if filters else {}
    for number, keywords in enumerate(KEYWORDS):
        if source == "a3.zarr" and "zarr_format" in keywords:
            continue
        result = tamis.repack(sources / source, tmp_path / f"{number}.zarr", recipes, witness="xarray", **keywords)
        assert result.witness is not None
        assert result.witness.unread == ()
        assert not result.witness.needs
    result = tamis.repack(sources / source, tmp_path / "b.nc", recipes, witness="xarray")
    assert result.witness is not None
    assert result.witness.unread == ()


def test_witness_said_in_the_text_with_what_others_need(tmp_path: Path) -> None:
    text = run("repack", SAMPLE, tmp_path / "b.nc", "-f", ZFP, "--witness", "xarray").stdout
    assert "/TS: other readers need HDF5 with zfp" in text
    assert (
        "reads 5 variables as in the source: dimensions, types and attributes, and 7 chunks of the values of 5" in text
    )


def test_witness_reads_the_chunk_with_the_largest_error(tmp_path: Path) -> None:
    values = np.zeros((10, 64, 64), "f4")
    values[4] = np.random.default_rng(2).normal(size=(64, 64))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(1, 64, 64))
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.01)"}, witness="xarray")
    assert result["v"].worst is not None
    assert result["v"].worst[0] == slice(4, 5)
    assert result.witness is not None
    assert result.witness.chunks == {"/v": 3}


DAMAGE = """
import sys, h5py
from pathlib import Path
from tamis.jobs.witness.look import XarrayWitness
from tamis_command import main
look = XarrayWitness.look
def damaged(self, target, *others, **options):
    with h5py.File(target, "r+") as file:
        {damage}
    return look(self, target, *others, **options)
XarrayWitness.look = damaged
sys.argv[0] = "tamis"
main()
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ('file["TS"][0, 0, 0] += 1', r"/TS: expected .* within 0.0625 at [0, 0, 0] as in the source, xarray reads"),
        ('file["lat"][3] += 1e-9', "/lat: expected "),
        (
            'file["TS"].attrs["units"] = "degC"',
            "/TS: expected the attribute units ['K'] as in the source, xarray reads",
        ),
        ('file["TS"].attrs["more"] = 1', None),
        ('file.attrs["title"] = 7', "/: expected "),
        ('del file["time_bnds"]', "/time_bnds: expected the variable as in the source, xarray reads none"),
    ],
)
def test_target_damaged_before_the_witness_reads_it_gets_no_name(
    tmp_path: Path, damage: str, message: str | None
) -> None:
    options = ["repack", str(SAMPLE), str(tmp_path / "b.nc"), "-f", "TS:absolute(0.1)|shuffle|deflate(4)", "--json"]
    code = DAMAGE.format(damage=damage)
    command = [sys.executable, "-c", code, *options, "--witness", "xarray"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if message is None:  # an attribute of a variable that was written anew
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 3, done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "BoundError"
    assert error["message"].startswith(message.partition(" .* ")[0])
    assert message.partition(" .* ")[2] in error["message"]
    assert os.listdir(tmp_path) == []


WRONG = {
    "beyond the bound": (lambda ds: ds["t"].values.__setitem__((0, 0, 0), 999), "expected .* within 0.1 at"),
    "a missing value more": (lambda ds: ds["t"].values.__setitem__((0, 0, 0), np.nan), "xarray reads nan"),
    "a missing value less": (lambda ds: ds["t"].values.__setitem__((5, 0, 0), 0), "expected nan within 0.1"),
    "another text": (lambda ds: ds["name"].values.__setitem__(1, "be"), "expected bé at"),
    "another unit": (lambda ds: ds["t"].attrs.update(units="C"), "the attribute units"),
    "a coordinate less": (lambda ds: ds.__delitem__("x"), "expected the variable as in the source"),
    "another time": (lambda ds: ds.update({"time": ds["time"] + np.timedelta64(1, "s")}), "/time: expected"),
}


@pytest.mark.matrix
@pytest.mark.parametrize("ending", ["nc", "zarr"])
@pytest.mark.parametrize("case", WRONG)
def test_witness_refuses_a_wrong_target(sources: Path, tmp_path: Path, case: str, ending: str) -> None:
    ds = xr.open_dataset(sources / "a.nc", engine="h5netcdf").load()
    change, message = WRONG[case]
    change(ds)
    target = tmp_path / f"b.{ending}"
    if ending == "nc":
        ds.to_netcdf(target, engine="h5netcdf")
    else:
        ds.drop_encoding().to_zarr(target)
    witness = XarrayWitness(Sources([sources / "a.nc"], with_codecs=False))
    with pytest.raises(tamis.BoundError, match=message):
        witness.look(target, Briefing({"/t": Expected(0.1)}))


def test_witness_without_xarray_names_the_extra_before_anything_is_written(tmp_path: Path) -> None:
    code = "import sys; sys.modules['xarray'] = None; from tamis_command import main; sys.argv[0] = 'tamis'; main()"
    command = [sys.executable, "-c", code, "repack", str(SAMPLE), str(tmp_path / "b.nc"), "--witness", "xarray"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'tamis[xarray]'" in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_source_that_xarray_does_not_open_is_refused_at_the_start(tmp_path: Path, options: tuple[str, ...]) -> None:
    import zarr

    zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2).create_array("v", data=np.arange(4))
    done = run("repack", tmp_path / "a.zarr", tmp_path / "b.zarr", "--witness", "xarray", *options, code=1)
    assert "a.zarr: the witness xarray cannot open it: KeyError" in done.stderr
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_witness_of_another_name_is_an_error_of_usage(tmp_path: Path) -> None:
    run("repack", SAMPLE, tmp_path / "b.nc", "--witness", "ncdump", code=2)
    with pytest.raises(tamis.ParameterError, match="expected witness to be xarray or None, got 'ncdump'"):
        tamis.repack(SAMPLE, tmp_path / "b.nc", {}, witness="ncdump")  # type: ignore[arg-type]


def test_witness_looks_at_a_target_that_is_done_already(tmp_path: Path) -> None:
    arguments = "repack", SAMPLE, tmp_path / "b.nc", "-f", ZFP, "--resume", "--json"
    assert json.loads(run(*arguments).stdout)["witness"] is None
    found = json.loads(run(*arguments, "--witness", "xarray").stdout)
    assert found["done_already"]
    assert found["witness"]["chunks"]["/TS"] == 2


@pytest.mark.check
def test_companion_seen_filled_by_the_witness(sources: Path, tmp_path: Path) -> None:
    options = "-f", "t:zfp(accuracy=0.1)", "--missing", "companion", "--witness", "xarray", "--json"
    found = json.loads(run("repack", sources / "a.nc", tmp_path / "b.nc", *options).stdout)
    assert found["datasets"][0]["companion"]
    assert found["witness"]["chunks"]["/t"] >= 2


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_combined_files_seen_by_the_witness(tmp_path: Path, ending: str) -> None:
    for number in range(3):
        dataset(10, 10 * number).to_netcdf(tmp_path / f"{number}.nc", engine="h5netcdf")
    files, target = sorted(tmp_path.glob("*.nc")), tmp_path / f"all.{ending}"
    done = run(
        *("repack", *files, target, "--combine", "time", "-f", "t:zfp(accuracy=0.1)", "-c", "t:8x30x40"),
        *("--witness", "xarray", "--json"),
    )
    found = json.loads(done.stdout)["witness"]
    assert found["unread"] == []
    assert found["chunks"].keys() >= {"/t", "/time", "/packed"}


@pytest.mark.check
def test_files_of_a_folder_each_seen_by_the_witness(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        dataset(10, 10 * number).to_netcdf(tmp_path / "in" / f"{number}.nc", engine="h5netcdf")
    arguments = "repack", tmp_path / "in", tmp_path / "out", "-f", "t:zfp(accuracy=0.1)|shuffle|deflate(4)", "--json"
    assert json.loads(run(*arguments).stdout)["witnessed"] == 0
    found = json.loads(run(*arguments, "--witness", "xarray").stdout)
    assert (found["witnessed"], found["done"]) == (3, 3)
    assert found["again"] == {"the witness xarray has not seen the target": 3}
    assert json.loads(run(*arguments).stdout)["made"] == 0
    records = json.loads(run("manifest", tmp_path / "out", "--json").stdout)["files"]
    assert all(record["witness"]["chunks"]["/t"] >= 1 for record in records)


@pytest.mark.check
def test_process_has_no_tamis(tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "b.zarr", {"TS": "zfp(accuracy=0.1)"})
    with pytest.raises(process.UnopenedError, match="tamis"):
        process.read(tmp_path / "b.zarr")
    assert process.read(tmp_path / "b.zarr", with_codecs=True).variables["/", "TS"].reason == ""


def test_process_that_was_ended_is_started_again() -> None:
    assert process.read(SAMPLE).variables
    idle = process._idle[-1]
    os.kill(idle._process.pid, signal.SIGKILL)
    idle._process.wait()
    assert process.read(SAMPLE).variables


def test_combined_files_with_a_variable_without_values(tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        own = dataset(10, 10 * number).assign(e=("nothing", np.zeros(0, "f4")))
        paths.append(tmp_path / f"{number}.nc")
        own.to_netcdf(paths[-1], engine="h5netcdf", unlimited_dims=["time"])
    result = tamis.combine(paths, tmp_path / "all.nc", {"t": "deflate(1)"}, "time", witness="xarray")
    assert result.witness.chunks["/t"] >= 1
    assert "/e" not in result.witness.chunks
