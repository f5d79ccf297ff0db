"""Python's own web server, which has no ranges: it returns whole files, and lists folders as pages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis import Address
from tamis.remote import file as remote_file
from tamis.remote.file import RemoteObjects

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
FORMS = {"plain.zarr": {}, "shards.zarr": {"shards": 8}, "two.zarr": {"zarr_format": 2}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the server, with stores of each form."""
    path = tmp_path_factory.mktemp("www")
    for name, form in FORMS.items():
        tamis.repack(SAMPLE, path / name, {}, **form)
    return path


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """Return the address of `python -m http.server`."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().split(" port ")[1].split()[0]
        yield f"http://127.0.0.1:{port}"
        process.terminate()


@pytest.mark.check
@pytest.mark.parametrize("name", FORMS)
def test_stores_are_read_repacked_and_verified(folder: Path, url: str, tmp_path: Path, name: str) -> None:
    with tamis.open(f"{url}/{name}") as file, tamis.open(folder / name) as local:
        np.testing.assert_array_equal(file["TS"][3:9, 5, 7], local["TS"][3:9, 5, 7])
        np.testing.assert_array_equal(file["TS"][...], local["TS"][...])
    for target in ("a.zarr", "a.nc"):
        tamis.repack(f"{url}/{name}", tmp_path / target, {})
        assert tamis.verify(f"{url}/{name}", tmp_path / target).ok
    done = run_tamis("inspect", f"{url}/{name}")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_only_so_many_bytes_are_kept(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number}.bin" for number in range(4)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(bytes([number]) * 1000)
    monkeypatch.setattr(remote_file, "MOST_WHOLE_NBYTES", 2500)
    objects = RemoteObjects(Address(url), np.array([1000] * 4), lambda row: Address(f"{url}/{names[row]}"))
    for _ in range(2):
        parts = objects.read_many([(1000 * number + 10, 20) for number in range(4)])
        assert parts == [bytes([number]) * 20 for number in range(4)]
        assert 0 < len(objects._wholes) <= 2
    assert objects.read(990, 20) == bytes(10) + b"\x01" * 10
    monkeypatch.setattr(remote_file, "MOST_WHOLE_NBYTES", 500)
    objects._wholes = []
    with pytest.raises(tamis.FileError, match=r"0\.bin: the server returns no ranges, only the whole object of 1"):
        objects.fetch((10, 20))


def test_an_object_that_changed_is_an_error(folder: Path, url: str) -> None:
    (folder / "changes.bin").write_bytes(bytes(1000))
    objects = RemoteObjects(Address(url), np.array([999]), lambda _: Address(f"{url}/changes.bin"))
    with pytest.raises(tamis.FileError, match="the file changed while it was read: open it again"):
        objects.fetch((0, 10))


@pytest.mark.check
@pytest.mark.parametrize("name", FORMS)
def test_the_size_is_that_of_the_files(folder: Path, url: str, tmp_path: Path, name: str) -> None:
    nbytes = sum(path.stat().st_size for path in (folder / name).rglob("*") if path.is_file())
    found = tamis.inspect(f"{url}/{name}").nbytes
    assert 0.8 * nbytes < found <= nbytes
    assert tamis.repack(f"{url}/{name}", tmp_path / "a.nc", {}).source_nbytes == found


@pytest.mark.parametrize("name", ["plain.zarr/TS", "two.zarr/TS", "plain.zarr/", "shards.zarr/TS/"])
def test_what_is_inside_a_store_has_an_address(url: str, name: str) -> None:
    with tamis.open(f"{url}/{name}") as file:
        assert file["TS"].shape == (30, 192, 288)


def test_a_page_that_is_no_folder_of_zarr_is_named(folder: Path, url: str) -> None:
    (folder / "empty").mkdir(exist_ok=True)
    with pytest.raises(tamis.FileError, match="an HTML page"):
        tamis.open(f"{url}/empty")
