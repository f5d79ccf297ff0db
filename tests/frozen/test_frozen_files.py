"""Files that released versions wrote are read as they were read then, and their records are understood."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.safety import Identity

HERE = Path(__file__).parent
ARCHIVES = sorted(HERE.glob("tamis-*-files.zip"))
CASES = [
    (archive, name) for archive in ARCHIVES for name in json.loads(zipfile.ZipFile(archive).read("files.json"))["files"]
]
PACKAGES = ("imagecodecs", "hdf5plugin")
"""What some of the filters need."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Unpack each archive into a folder."""
    found = {}
    for archive in ARCHIVES:
        found[archive] = tmp_path_factory.mktemp(archive.stem)
        shutil.unpack_archive(archive, found[archive])
    return found


def described(folder: Path) -> dict[str, Any]:
    """Return what the version that wrote an archive read of it."""
    found: dict[str, Any] = json.loads((folder / "files.json").read_text())
    return found


def test_there_are_files_of_this_version() -> None:
    version = tamis.__version__.rsplit(".", 1)[0]
    assert HERE / f"tamis-{version}-files.zip" in ARCHIVES, "run: python tests/frozen/make_files.py"
    assert any(HERE.glob(f"tamis-{version}-*.bin")), "run: python tests/frozen/make.py"


@pytest.mark.parametrize(("archive", "name"), CASES, ids=lambda value: getattr(value, "stem", value))
def test_frozen_file_same_values(archive: Path, name: str, folders: dict[Path, Path]) -> None:
    path = folders[archive] / name
    if path.suffix == ".zarr":
        pytest.importorskip("zarr")
    if name == "filters.h5":
        for package in PACKAGES:
            if find_spec(package) is None:  # not imported: hdf5plugin changes what h5py reads
                pytest.skip(f"could not import '{package}'")
    expected = described(folders[archive])["files"][name]
    with tamis.open(path) as file:
        assert sorted(file) == [*expected]
        for array, how in expected.items():
            values = np.ascontiguousarray(file[array][...])
            assert (values.dtype.str, list(values.shape)) == (how["dtype"], how["shape"])
            assert hashlib.sha256(values.tobytes()).hexdigest() == how["sha256"], array


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.stem)
@pytest.mark.parametrize("name", ["repacked.nc", "zarr3.zarr", "zarr2.zarr", "shards.zarr", "done/0.nc"])
def test_frozen_file_keeps_its_recorded_bounds(name: str, archive: Path, folders: dict[Path, Path]) -> None:
    if name.endswith(".zarr"):
        pytest.importorskip("zarr")
    found = tamis.verify(folders[archive] / "source.nc", folders[archive] / name, bounds="recorded")
    assert found.ok
    lossy = {each.path.strip("/") for each in found.datasets if each.bound}
    assert lossy >= {"t", "packed"}


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.stem)
def test_frozen_record_of_a_folder_is_understood(archive: Path, folders: dict[Path, Path], tmp_path: Path) -> None:
    done = shutil.copytree(folders[archive] / "done", tmp_path / "done")
    status = tamis.status(done)
    assert (status.done, status.failures) == (2, ())
    assert {record.path for record in tamis.manifest(done).files} == {"0.nc", "1.nc"}
    assert tamis.check_manifest(done).ok


def move_record(record: Path, folder: Path) -> None:
    """Let a record be about the sources in a folder, as if they were those that the older version read."""
    for path in record.glob("*.json*"):
        path.write_text(path.read_text().replace("/data/", f"{folder}/"))
    for path in record.glob("state-*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line.get("identity"):
                line["identity"] = [*Identity.of(line["source"])]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.stem)
def test_frozen_run_goes_on_with_another_version(archive: Path, folders: dict[Path, Path], tmp_path: Path) -> None:
    """A folder that an older version half finished: the next run leaves what is done as it is."""
    shutil.copytree(folders[archive], tmp_path, dirs_exist_ok=True)
    (tmp_path / "done" / "1.nc").unlink()
    move_record(tmp_path / "done" / ".tamis", tmp_path)
    before = (tmp_path / "done" / "0.nc").read_bytes()
    recipes = described(tmp_path)["recipes"]
    found = tamis.repack_many(tmp_path / "many", tmp_path / "done", recipes, checksums=True, workers=1)
    assert found.done == 2
    assert (tmp_path / "done" / "0.nc").read_bytes() == before
    assert tamis.verify(tmp_path / "many" / "1.nc", tmp_path / "done" / "1.nc", bounds="recorded").ok


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.stem)
def test_frozen_recipe_is_loaded_and_used(archive: Path, folders: dict[Path, Path], tmp_path: Path) -> None:
    recipe = tamis.Recipe.load(folders[archive] / "recipe.toml")
    assert recipe.filters
    result = tamis.repack(folders[archive] / "source.nc", tmp_path / "new.nc", recipe)
    assert tamis.verify(folders[archive] / "source.nc", tmp_path / "new.nc", bounds={"t": 0.1}).ok
    assert [each.path for each in result.datasets] == ["/t"]
