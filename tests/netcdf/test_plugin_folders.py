"""Folders of plugins: netCDF-C's own list, and versions of netcdf-c that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

import tamis
from tamis import netcdf
from tamis.netcdf import library

needs_list = pytest.mark.skipif(not library.has("nc_plugin_path_set"), reason="netcdf-c before 4.9.3")


@needs_list
def test_plugin_path_set_append_prepend_get_in_order(tmp_path: Path) -> None:
    before = netcdf.plugin_path_get()
    try:
        for name in ("c", "ä"):
            (tmp_path / name).mkdir()
        netcdf.plugin_path_set([tmp_path / "b"])
        netcdf.plugin_path_append(str(tmp_path / "c"))
        netcdf.plugin_path_prepend(tmp_path / "ä")
        assert netcdf.plugin_path_get() == [str(tmp_path / name) for name in ("ä", "b", "c")]
        netcdf.plugin_path_set([])
        assert netcdf.plugin_path_get() == []
    finally:
        netcdf.plugin_path_set(before)
    assert netcdf.plugin_path_get() == before


@needs_list
def test_plugin_path_wrong_folders_refused(tmp_path: Path) -> None:
    for function in (netcdf.plugin_path_append, netcdf.plugin_path_prepend):
        with pytest.raises(tamis.FileError, match="absent: no such folder"):
            function(tmp_path / "absent")
    with pytest.raises(tamis.ParameterError, match=r"expected a list of folders, got '/a': write \['/a'\]"):
        netcdf.plugin_path_set("/a")
    with pytest.raises(tamis.ParameterError, match="expected folder to be a path"):
        netcdf.plugin_path_append("")
    with pytest.raises(tamis.ParameterError, match="expected the name of a folder, got 3"):
        netcdf.plugin_path_set([3])  # type: ignore[list-item]


def test_call_that_netcdf_c_lacks_names_the_first_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(library._ARGUMENTS, "nc_of_the_future", ())
    monkeypatch.setitem(library._SINCE, "nc_of_the_future", "5.0.0")
    version = library.version()
    with pytest.raises(tamis.FileError) as caught:
        library.call("nc_of_the_future")
    assert str(caught.value).startswith(
        f"expected netcdf-c 5.0.0, which has nc_of_the_future, got {version} in netCDF4 "
    )
    assert str(caught.value).endswith("upgrade netCDF4 to one with netcdf-c 5.0.0")


def test_netcdf4_absent_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "netCDF4", None)
    with pytest.raises(tamis.MissingFilterError, match=r"pip install 'tamis\[netcdf\]'"):
        library.netcdf4()
