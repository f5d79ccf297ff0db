"""Opening source files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from tamis import FileError
from tamis.formats.hdf5.lib.files import open_source

SAMPLE = Path(__file__).resolve().parents[4] / "examples" / "data" / "cam_ts.nc"


def test_open_source_is_for_reading_only(tmp_path: Path) -> None:
    h5py.File(tmp_path / "a.h5", "w").close()
    with open_source(os.fspath(tmp_path / "a.h5")) as file:
        assert file.mode == "r"
        with pytest.raises(ValueError, match="no write intent"):
            file.create_group("g")


def test_open_source_with_user_block_opened(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file["v"] = 1
    with open_source(tmp_path / "a.h5") as file:
        assert list(file) == ["v"]


def test_open_source_of_another_kind_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(b"GRIB" + bytes(60))
    with pytest.raises(FileError, match=r"or references \(kerchunk\), got GRIB data: convert it first") as refused:
        open_source(path)
    assert refused.value.path == str(path)


def test_open_source_of_nothing_or_folder_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.nc: No such file or directory$"):
        open_source(tmp_path / "none.nc")
    with pytest.raises(FileError, match=r"got an empty folder"):
        open_source(tmp_path)
    (tmp_path / "link.nc").symlink_to("none.nc")
    with pytest.raises(FileError, match=r"link\.nc: No such file or directory$"):
        open_source(tmp_path / "link.nc")


def test_open_source_name_too_long_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"[Nn]ame too long"):
        open_source(tmp_path / ("n" * 300))


@pytest.mark.parametrize("nbytes", [9, 100, 4096, 1_000_000])
def test_open_source_truncated_refused(nbytes: int, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(SAMPLE.read_bytes()[:nbytes])
    with pytest.raises(FileError, match=r"a\.nc: (cannot be opened as HDF5|expected an HDF5, netCDF-4)"):
        open_source(tmp_path / "a.nc")


def test_open_source_that_another_process_writes_refused_as_locked(tmp_path: Path) -> None:
    code = "import h5py, sys; file = h5py.File(sys.argv[1], 'w'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "a.h5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(FileError, match=r"a\.h5: another program has it open for writing"):
            open_source(tmp_path / "a.h5")
        writer.communicate()
    open_source(tmp_path / "a.h5").close()


def test_open_source_of_a_pipe_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match=r"pipe: expected an HDF5, .* got a device or pipe"):
        open_source(tmp_path / "pipe")
