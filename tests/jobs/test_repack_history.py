"""The line that repack adds to the history of a file by the netCDF conventions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import tamis
from tamis.cli import main
from tamis.meaning.variables import added_line, with_line

Run = Callable[..., str]


def start(command: str) -> str:
    return f"tamis {tamis.__version__}: {command}"


RECIPE = {"TS": "bitround(keepbits=7)|shuffle|deflate(4)"}
LINE = f"{start('repack')} -f 'TS:bitround(keepbits=7)|shuffle|deflate(4)'"


def history(path: Path) -> str:
    with netCDF4.Dataset(path) as file:
        return str(file.history)


def make(path: Path, **attributes: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name in ("v", "w"):
            dataset = file.create_dataset(
                name, data=np.linspace(200, 300, 960, dtype="f4").reshape(24, 40), chunks=(8, 40)
            )
        dataset.attrs["scale_factor"] = 0.5
        file.attrs.update(attributes)
    return path


def test_the_line_stands_first_and_the_attribute_in_its_place(sample: Path, tmp_path: Path, tool: Run) -> None:
    before = history(sample)
    tamis.repack(sample, tmp_path / "a.nc", RECIPE)
    assert history(tmp_path / "a.nc") == f"{LINE}\n{before}"
    with h5py.File(sample) as old, h5py.File(tmp_path / "a.nc") as new:
        assert [*old.attrs] == [*new.attrs]
    assert LINE.replace("'", "\\'") in tool("ncdump", "-h", tmp_path / "a.nc")
    found = tamis.verify(sample, tmp_path / "a.nc", bounds="recorded")
    assert found.ok
    assert [item.text for item in found.notes if "history" in item.text] == [
        f"attribute 'history' has a new line: {LINE}"
    ]
    tamis.repack(sample, tmp_path / "b.nc", RECIPE, threads=1)
    assert (tmp_path / "b.nc").read_bytes() == (tmp_path / "a.nc").read_bytes()
    tamis.repack(tmp_path / "a.nc", tmp_path / "c.nc", {"TS": "zstd"}, chunks={"TS": (10, 32, 32)})
    lines = history(tmp_path / "c.nc").split("\n")
    assert lines[0] == f"tamis {tamis.__version__}: repack -f 'TS:zstd(3)' -c 'TS:10x32x32'"
    assert lines[1] == LINE
    assert tamis.verify(sample, tmp_path / "c.nc", bounds={"TS": 2.0}).ok


def test_copy_and_to_netcdf_add_a_line_if_asked(sample: Path, tmp_path: Path) -> None:
    before = history(sample)
    arguments = ["copy", str(sample), "-F", "TS,1,5"]
    for name, options, line in (("a.nc", ["--history"], f"{start('copy')} -f 'TS:deflate(5)'\n"), ("b.nc", [], "")):
        target = tmp_path / name
        assert CliRunner().invoke(main, [*arguments[:2], str(target), *arguments[2:], *options]).exit_code == 0
        assert history(target) == f"{line}{before}"
    with xr.open_dataset(sample, engine="tamis") as ds:
        ds.tamis.to_netcdf(tmp_path / "c.nc", RECIPE, history=True)
        ds.tamis.to_netcdf(tmp_path / "d.nc", RECIPE)
        line = f"{start('to_netcdf')} -f 'TS:{RECIPE['TS']}'"
        assert history(tmp_path / "c.nc").split("\n")[0].startswith(line)
        assert history(tmp_path / "c.nc").endswith(before)
        assert history(tmp_path / "d.nc") == before


def test_a_changed_history_is_a_violation(sample: Path, tmp_path: Path) -> None:
    tamis.repack(sample, tmp_path / "a.nc", RECIPE)
    with h5py.File(tmp_path / "a.nc", "r+") as file:
        file.attrs["history"] = f"{LINE}\nanother"
    assert not tamis.verify(sample, tmp_path / "a.nc", bounds="recorded").ok


def test_no_line_without_the_conventions_a_change_or_the_wish(sample: Path, tmp_path: Path) -> None:
    tamis.repack(make(tmp_path / "a.h5"), tmp_path / "b.h5", {"*": "deflate(1)"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert not file.attrs
    tamis.repack(sample, tmp_path / "c.nc", RECIPE, history=False)
    assert history(tmp_path / "c.nc") == history(sample)
    tamis.repack(tmp_path / "c.nc", tmp_path / "d.nc", RECIPE)  # all chunks are copied
    assert history(tmp_path / "d.nc") == history(sample)
    again = tamis.repack(sample, tmp_path / "c.nc", RECIPE, resume=True, overwrite=True)
    assert not again.done_already
    arguments = ["repack", str(sample), str(tmp_path / "e.nc"), "-f", f"TS:{RECIPE['TS']}", "--no-history"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert history(tmp_path / "e.nc") == history(sample)


@pytest.mark.parametrize("name", ["b.h5", "b.zarr"])
def test_conventions_alone_and_options_in_units_of_the_variable(name: str, tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", Conventions="CF-1.12")
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    tamis.repack(source, tmp_path / name, {"v": "zfp(bound=0.1)", "w": "absolute(0.1)|deflate(1)"}, checksum=False)
    with tamis.open(tmp_path / name) as file:
        (line,) = np.char.decode(np.atleast_1d(np.asarray(file.attrs["history"], "S")))
    assert line == f"tamis {tamis.__version__}: repack -f 'v:zfp(bound=0.1)' -f 'w:absolute(bound=0.1)|deflate(1)'"
    assert tamis.verify(source, tmp_path / name, bounds={"v": 0.1, "w": 0.1}).ok


def test_a_classic_file_keeps_the_order_of_its_attributes(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.setncatts({"title": "t", "history": "made", "institution": "i"})
        file.createDimension("x", 5000)
        file.createVariable("v", "f4", ("x",))[:] = np.arange(5000)
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"v": "deflate(1)"})
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file.ncattrs() == ["title", "history", "institution"]
        assert file.history == f"tamis {tamis.__version__}: repack -f 'v:deflate(1)' -c 'v:5000'\nmade"
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc").ok


@pytest.mark.parametrize("raw", [b"made \xff", "gr\u00f6\u00dfe".encode()])
@pytest.mark.parametrize("varying", [False, True])
def test_any_text_is_kept(raw: bytes, varying: bool, tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5")
    with h5py.File(source, "r+") as file:
        file.attrs.create("history", *((raw, None, h5py.string_dtype()) if varying else (np.bytes_(raw),)))
    tamis.repack(source, tmp_path / "b.h5", {"v": "deflate(1)"})
    with h5py.File(tmp_path / "b.h5") as file:
        text = file.attrs["history"]
        assert file.attrs.get_id("history").get_type().is_variable_str() == varying
    assert (text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text).endswith(b"\n" + raw)
    assert tamis.verify(source, tmp_path / "b.h5").ok


def test_many_variables_are_counted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["history"] = "made"
        for number in range(60):
            file.create_dataset(f"v{number:02}", data=np.arange(4000.0), chunks=(4000,))
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "shuffle|deflate(1)"})
    with h5py.File(tmp_path / "b.h5") as file:
        line, before = file.attrs["history"].split("\n")
    assert before == "made"
    assert len(line) < 1100
    assert line.endswith("other variables")


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ""),
        ({"Conventions": "CF-1.0"}, "line"),
        ({"history": "a\nb"}, "line\na\nb"),
        ({"history": np.arange(3), "Conventions": "CF"}, ""),
        ({"history": "x" * 60000}, ""),
    ],
)
def test_with_line(attributes: dict[str, Any], expected: str) -> None:
    assert with_line(attributes, "line") == expected
    assert with_line(attributes, "") == ""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a", "tamis 1: repack\na", "tamis 1: repack"),
        ("a", "tamis 2: x\ntamis 1: y\na", "tamis 2: x\ntamis 1: y"),
        ("a", "nco\na", ""),
        ("a", "a", ""),
        ("a", "tamis 1: repack\nb", ""),
        ("", "tamis 1: repack\n", ""),
    ],
)
def test_added_line(before: str, after: str, expected: str) -> None:
    assert added_line(before, after) == expected


def test_what_was_required_is_said(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", history="made")
    recipe = {"v": "zfp(accuracy=1)|deflate(1)"}
    tamis.repack(source, tmp_path / "b.h5", recipe, require={"v": "abs=0.1"}, checksum=False)
    with h5py.File(tmp_path / "b.h5") as file:
        line = file.attrs["history"].split("\n")[0]
    assert line == f"tamis {tamis.__version__}: repack -f 'v:zfp(accuracy=1)|deflate(1)' --require 'v:abs=0.1'"


def test_line_says_that_codecs_pack(sample: Path, tmp_path: Path) -> None:
    recipe = {"TS": "pack(bound=0.1)|shuffle|deflate(4)"}
    lines = {}
    for name, options in (("codecs", {"packed_as": "codecs"}), ("attributes", {})):
        tamis.repack(sample, tmp_path / f"{name}.zarr", recipe, **options)
        attributes = json.loads((tmp_path / f"{name}.zarr" / "zarr.json").read_text())["attributes"]
        lines[name] = attributes["history"].split("\n")[0]
    assert lines["codecs"] == f"{start('repack')} --packed-as codecs -f 'TS:pack(bound=0.1)|shuffle|deflate(4)'"
    assert lines["attributes"] == lines["codecs"].replace(" --packed-as codecs", "")
