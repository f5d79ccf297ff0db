"""Known defect U58: one dataset that Zarr cannot have blocks a whole file, and there is no way to leave it out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import zarr
from inprocess import run_tamis

import tamis

TAMIS = Path(sys.executable).with_name("tamis")
UNSTORABLE = ("/a b/pairs", "/lists", "/nothing", "/refs")


def run(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_tamis(*arguments, cwd=folder)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("ts", data=np.arange(1000.0), chunks=(100,))
        file.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
        file["nothing"] = h5py.Empty("f4")
        file["refs"] = np.array([file["ts"].ref], h5py.ref_dtype)
        file["a b/pairs"] = np.zeros(3, [("a", "f4"), ("b", "i4")])
    return path


def test_u58_all_that_zarr_cannot_have_is_listed_with_the_command_to_paste(odd: Path, tmp_path: Path) -> None:
    done = run("repack", "odd.h5", "out.zarr", "-f", "ts:shuffle|deflate(4)", folder=tmp_path)
    assert done.returncode == 1
    assert "odd.h5: the target cannot have 4 datasets, which must be left out" in done.stderr
    for path in UNSTORABLE:
        assert re.search(rf"^  {path}: (expected .*, got |tamis does not write the type )", done.stderr, re.MULTILINE)
    assert not (tmp_path / "out.zarr").exists()
    line = done.stderr.splitlines()[-1]
    assert line.startswith("tamis repack --drop ")
    pasted = subprocess.run(
        ["bash", "-c", line.replace("tamis", str(TAMIS), 1)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert pasted.returncode == 0, pasted.stderr
    assert "/lists: left out of the target (drop)" in pasted.stdout
    root = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    assert sorted(root.array_keys()) == ["ts"]
    np.testing.assert_array_equal(root["ts"][:], np.arange(1000.0))


def test_u58_dry_run_lists_them_too(odd: Path, tmp_path: Path) -> None:
    done = run("repack", "odd.h5", "out.zarr", "--dry-run", folder=tmp_path)
    assert done.returncode == 1
    assert all(f"  {path}: " in done.stderr for path in UNSTORABLE)
    with pytest.raises(tamis.FileError, match="the target cannot have 4 datasets, which must be left out"):
        tamis.preview_repack(odd, tmp_path / "out.zarr", {})


@pytest.mark.parametrize("name", ["out.h5", "out.zarr"])
def test_u58_drop_leaves_out_and_verify_is_told(odd: Path, name: str, tmp_path: Path) -> None:
    result = tamis.repack(odd, tmp_path / name, {}, drop=UNSTORABLE)
    assert [note for note in result.notes if "left out" in note] == [
        f"{path}: left out of the target (drop)" for path in UNSTORABLE
    ]
    drops = [word for path in UNSTORABLE for word in ("--drop", path)]
    assert run("verify", "odd.h5", name, folder=tmp_path).returncode == 3
    done = run("verify", "odd.h5", name, *drops, folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("left out on purpose, not compared") >= 1


def test_u58_drop_in_hdf5_leaves_out_links_and_nulls_references(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
        file["y"] = np.arange(4)
        file["group/hard"] = file["x"]
        file["soft"] = h5py.SoftLink("/x")
        file["refs"] = np.array([file["x"].ref, file["y"].ref], h5py.ref_dtype)
    done = run("repack", "a.h5", "b.h5", "--drop", "x", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "to a dataset that is left out became null" in done.stdout
    with h5py.File(tmp_path / "b.h5") as file:
        assert (sorted(file), list(file["group"])) == (["group", "refs", "y"], [])
        assert not file["refs"][0]
        assert file[file["refs"][1]].name == "/y"


def test_u58_drop_of_a_variable_leaves_dimensions_as_netcdf_reads_them(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 3)
        file.createVariable("x", "f8", ("x",))[:] = [1, 2, 3]
        file.createVariable("v", "f4", ("x",))[:] = [1, 2, 3]
        file.createVariable("w", "f4", ("x",))[:] = [4, 5, 6]
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {}, drop=["w"])
    with netCDF4.Dataset(tmp_path / "b.nc", "a") as file:
        assert list(file.variables) == ["x", "v"]
        file.createVariable("new", "f4", ("x",))[:] = [7, 8, 9]
    with h5py.File(tmp_path / "b.nc") as file:
        assert sorted(file[reference].name for reference, _ in file["x"].attrs["REFERENCE_LIST"]) == ["/new", "/v"]
    tamis.repack(tmp_path / "a.nc", tmp_path / "c.nc", {}, drop=["w"])
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "c.nc", drop=["w"]).ok
    with pytest.raises(tamis.FileError, match="/x: cannot be left out alone, because it is a dimension of"):
        tamis.repack(tmp_path / "a.nc", tmp_path / "d.nc", {}, drop=["x"])
    assert not (tmp_path / "d.nc").exists()
    tamis.repack(tmp_path / "a.nc", tmp_path / "d.nc", {}, drop=["x", "v", "w"])


def test_u58_drop_from_a_classic_file_keeps_the_dimension(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        file.createVariable("x", "f8", ("x",))[:] = [1, 2, 3]
        file.createVariable("v", "f4", ("x",))[:] = [1, 2, 3]
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {}, drop=["x"])
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert list(file.variables) == ["v"]
        assert file["v"].dimensions == ("x",)


def test_u58_recipes_have_drop(odd: Path, tmp_path: Path) -> None:
    recipe = tamis.Recipe({"ts": "deflate(4)"}, drop=UNSTORABLE)
    recipe.dump(tmp_path / "r.toml")
    assert tamis.Recipe.load(tmp_path / "r.toml") == recipe
    done = run("repack", "odd.h5", "out.zarr", "--recipe", "r.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "r.toml").write_text("schema = 1\ndrop = 3\n")
    with pytest.raises(tamis.ParameterError, match="line 2, column 8: expected a list of names"):
        tamis.Recipe.load(tmp_path / "r.toml")


def test_u58_drop_of_what_is_not_there_or_has_a_recipe_is_refused(odd: Path, tmp_path: Path) -> None:
    with pytest.raises(tamis.FileError, match="expected a dataset named 'absent'"):
        tamis.repack(odd, tmp_path / "b.h5", {}, drop="absent")
    with pytest.raises(tamis.ParameterError, match="has a recipe, and is left out"):
        tamis.repack(odd, tmp_path / "b.h5", {"ts": "deflate"}, drop="ts")
    result = tamis.repack(odd, tmp_path / "b.h5", {"*": "deflate"}, drop="absent*")
    assert "absent*: this pattern matches no dataset" in result.notes


def test_u58_resume_heeds_what_is_dropped(odd: Path, tmp_path: Path) -> None:
    tamis.repack(odd, tmp_path / "b.h5", {"ts": "deflate"}, drop="lists")
    assert tamis.repack(odd, tmp_path / "b.h5", {"ts": "deflate"}, drop="lists", resume=True).done_already
    assert not tamis.repack(odd, tmp_path / "b.h5", {"ts": "deflate"}, resume=True).done_already


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u58_long_doubles_are_refused_in_words(zarr_format: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros(3, np.longdouble)
    done = run("repack", "a.h5", "b.zarr", "--zarr-format", str(zarr_format), folder=tmp_path)
    assert done.returncode == 1
    assert "/x: tamis does not write the type " in done.stderr
    assert "Traceback" not in done.stderr


def test_u58_copy_leaves_out_what_its_error_lists(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("when", shape=(2,), dtype="datetime64[s]")
    group.create_array("x", data=np.arange(3))
    done = run("copy", "a.zarr", "b.nc", folder=tmp_path)
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line == "tamis copy --drop /when a.zarr b.nc"
    assert run(*line.split()[1:], folder=tmp_path).returncode == 0
    with netCDF4.Dataset(tmp_path / "b.nc") as dataset:
        assert [*dataset.variables] == ["x"]
    tamis.copy(tmp_path / "a.zarr", tmp_path / "c.nc", drop=["/when"])
    with pytest.raises(tamis.ParameterError, match="expected drop to be"):
        tamis.copy(tmp_path / "a.zarr", tmp_path / "d.nc", drop=1)


def test_u58_attribute_that_zarr_cannot_have_is_no_reason_to_leave_out_its_dataset(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(3)).attrs[b"ra\xff"] = 1
    done = run("repack", "a.h5", "a.zarr", folder=tmp_path)
    assert done.returncode == 1
    assert "the target cannot have these attributes:" in done.stderr
    assert "/x: expected the attribute 'ra\\udcff' to be numbers or text" in done.stderr
    assert "--drop" not in done.stderr


def test_u58_links_and_references_that_zarr_cannot_have_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
        file["g/far"] = h5py.ExternalLink("b.h5", "/y")
        file["group"], file["nowhere"] = h5py.SoftLink("/g"), h5py.SoftLink("/z")
        file["x"].attrs["self"] = file["x"].ref
        file["g"].attrs["pair"] = np.array([(file.ref, 1)], [("to", h5py.ref_dtype), ("n", "i4")])
    lost = {
        "/g/far": "external link to b.h5 /y",
        "/group": "soft link to /g",
        "/nowhere": "soft link to /z",
        "/x": "attribute 'self' of references",
        "/g": "attribute 'pair' of references",
    }
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {})
    notes = {note for note in result.notes if "left out" in note}
    assert notes == {f"{path}: {text}: left out" for path, text in lost.items()}
    done = run("verify", "a.h5", "a.zarr", folder=tmp_path)
    assert done.returncode == 0, done.stdout
    for path, text in lost.items():
        assert f"note: {path}: {text} is left out" in done.stdout
    assert not [note for note in tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {}).notes if "left out" in note]


@pytest.mark.parametrize(("form", "name"), [(2, ".zarray"), (2, ".zattrs"), (2, ".zmetadata"), (3, "zarr.json")])
def test_u58_names_of_metadata_files_are_refused_with_what_to_leave_out(form: int, name: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file[name], file[f"g/{name}"] = np.arange(3), 1.5, np.arange(2)
    done = run("repack", "--zarr-format", str(form), "a.h5", "a.zarr", folder=tmp_path)
    assert done.returncode == 1
    assert f"/{name}: expected a name other than those of Zarr's metadata" in done.stderr
    assert run(*done.stderr.splitlines()[-1].split()[1:], folder=tmp_path).returncode == 0
