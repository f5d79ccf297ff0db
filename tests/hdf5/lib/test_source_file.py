"""Opening source files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import netCDF4
import pytest

from tamis.errors import FileError
from tamis.hdf5.lib.source_file import open_source

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


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


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"", "an empty file"),
        (b"hello\n", "a file of another kind"),
        (b"CDF\x01" + bytes(60), "a netCDF classic file: tamis repack makes a netCDF-4 file of it"),
        (b"CDF\x02" + bytes(60), "a netCDF 64-bit offset file: tamis repack makes a netCDF-4 file of it"),
        (b"CDF\x05" + bytes(60), "a netCDF CDF-5 file: tamis repack makes a netCDF-4 file of it"),
        (b"\x0e\x03\x13\x01" + bytes(60), "an HDF4 file"),
        (b"GRIB" + bytes(60), "a GRIB file"),
        (b"PK\x03\x04" + bytes(60), "a zip archive"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_open_source_of_another_kind_refused_by_its_name(start: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(start)
    with pytest.raises(FileError) as refused:
        open_source(path)
    assert str(refused.value) == f"{path}: expected an HDF5 or netCDF-4 file, found {words}"


def test_open_source_of_netcdf_classic_that_netcdf_wrote_refused(tmp_path: Path) -> None:
    netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC").close()
    with pytest.raises(FileError, match=r"found a netCDF classic file: tamis repack"):
        open_source(tmp_path / "a.nc")


def test_open_source_of_nothing_or_folder_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.nc: No such file or directory$"):
        open_source(tmp_path / "none.nc")
    with pytest.raises(FileError, match=r"expected an HDF5 or netCDF-4 file, found a folder$"):
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
    with pytest.raises(FileError, match=r"a\.nc: (cannot be opened as HDF5|expected an HDF5 or netCDF-4 file)"):
        open_source(tmp_path / "a.nc")


def test_open_source_that_another_process_writes_refused_as_locked(tmp_path: Path) -> None:
    code = "import h5py, sys; file = h5py.File(sys.argv[1], 'w'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "a.h5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(FileError, match=r"a\.h5: cannot be opened as HDF5: .*lock"):
            open_source(tmp_path / "a.h5")
        writer.communicate()
    open_source(tmp_path / "a.h5").close()


def test_open_source_of_a_pipe_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="pipe: expected an HDF5 or netCDF-4 file, found a device or pipe"):
        open_source(tmp_path / "pipe")
