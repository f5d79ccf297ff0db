"""SZ3 and SPERR beside the candidates of a plan: measured, never chosen, and with what they lose."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis import MissingFilterError, ParameterError
from tamis.cli import main
from tamis.filters import plugin_client
from tamis.jobs.plan.foreign_filters import foreign_names
from tamis.jobs.plan.planned import Compared

SHAPE = (8, 40, 48)


def field(shape: tuple[int, ...] = SHAPE) -> Any:
    steps = np.random.default_rng(5).standard_normal(shape)
    return (np.cumsum(np.cumsum(steps, -1), -2) / 20 + 280).astype("f4")


def make(path: Path, values: Any, **attributes: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(*values.shape[:-2][:-1], 4, *values.shape[-2:]))
        file["v"].attrs.update(attributes)
    return path


def compared(path: Path, requirement: str, names: str = "sz3,sperr") -> dict[str, Compared]:
    plan = tamis.plan(path, {"v": requirement}, compare=names)
    return {each.filters.partition("(")[0]: each for each in plan["v"].compared}


def test_compared_filters_are_measured_and_change_nothing_else(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", field())
    found = compared(path, "abs=0.05")
    assert [*found] == ["sz3", "sperr"]
    for each in found.values():
        assert each.ratio is not None
        assert each.ratio_low is not None
        assert each.largest_error is not None
        assert each.largest_error == pytest.approx(0.05, rel=0.05)
        assert each.ratio > each.ratio_low - 1e-9 > 2
        assert (each.problem is None) == (each.largest_error <= 0.05)
    plan, without = tamis.plan(path, {"v": "abs=0.05"}, compare="sz3"), tamis.plan(path, {"v": "abs=0.05"})
    assert plan.recipe == without.recipe
    assert without["v"].compared == ()
    assert "compared" in str(plan)


def test_compared_filter_in_stored_units_keeps_measures_too(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", field(), scale_factor=0.5)
    (sz3,) = tamis.plan(path, {"v": "abs=0.05"}, compare=["sz3"])["v"].compared
    assert sz3.filters == "sz3(mode=absolute,bound=0.1)"
    assert sz3.largest_error == pytest.approx(0.05, rel=0.05)
    path = make(tmp_path / "big.h5", field().astype(">f4"))
    found = compared(path, "psnr=70,corr=0.9999")
    assert {each.problem for each in found.values()} == {None}


def test_compared_filters_tell_what_becomes_of_missing_values(tmp_path: Path) -> None:
    values = field()
    gaps = values > np.quantile(values, 0.8)
    values[gaps] = np.nan
    found = compared(make(tmp_path / "nan.h5", values), "abs=0.05")
    assert (
        found["sz3"].problem
        == "sz3 takes minutes for a chunk with NaN or infinity: use zfp or lossless filters for such values"
    )
    assert "missing_values=nan" in found["sperr"].filters
    assert "missing" not in (found["sperr"].problem or "")
    values[gaps] = -999
    found = compared(make(tmp_path / "mark.h5", values, _FillValue=np.float32(-999)), "abs=0.05")
    for each in found.values():
        assert re.match(r"reads (29|30)\d\d missing values of 15360 as valid", each.problem or "")
    values[gaps] = np.inf
    values[0, 0, 0] = np.nan
    found = compared(make(tmp_path / "both.h5", values), "abs=0.05")
    assert found["sperr"].ratio is None
    assert (found["sperr"].problem or "").startswith(
        "sperr takes chunks with some valid values, all of them below 5.76461e+16"
    )


def test_compared_filters_say_why_they_are_not_measured(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", field().reshape(2, 4, 40, 48))
    found = compared(path, "abs=0.05")
    assert found["sz3"].ratio is not None
    assert found["sperr"].problem == (
        "expected float32 or float64 in 2 or 3 axes for sperr, got float32 of shape (2, 4, 40, 48)"
    )
    (sz3,) = compared(path, "digits=3", "sz3").values()
    assert sz3 == Compared("sz3", problem="it cannot bound errors relative to each value")
    assert not compared(path, "lossless")
    with pytest.raises(ParameterError, match="expected filters to compare with from sz3, sperr, got 'zfp'"):
        tamis.plan(path, compare="zfp")


def test_compared_filters_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingFilterError, match=r"pip install 'tamis\[hdf5plugin\]'"):
        foreign_names("sz3")


def test_compared_rows_of_the_command(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", field())
    arguments = ["plan", str(path), "-r", "v:abs=0.05", "--compare", "sz3"]
    text = CliRunner().invoke(main, arguments).output
    assert re.search(r"compared +sz3\(mode=absolute,bound=0.05\)", text)
    assert "sz3" not in text.splitlines()[-1]
    (dataset,) = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)["datasets"]
    assert dataset["compared"][0]["filters"] == "sz3(mode=absolute,bound=0.05)"
    assert CliRunner().invoke(main, [*arguments[:-1], "sz"]).exit_code == 2


def test_worker_encodes_what_hdf5plugin_reads_and_gives_up_on_too_many_bytes() -> None:
    chunk = tamis.filters.ChunkType(np.dtype("f4"), SHAPE)
    sz3 = tamis.Sz3("absolute", 0.01)
    data = sz3.encode(field().tobytes(), chunk, sz3.stored(chunk))
    # SZ3 writes bytes of memory that it never set, so two runs differ in some bytes, and by them in length.
    again = plugin_client.encode(sz3.plugin, sz3.stored(chunk), field().tobytes(), 2 * len(data))
    for encoded in data, again:
        after = np.frombuffer(sz3.decode(encoded, chunk, sz3.stored(chunk)), "f4")
        assert np.abs(after - field().reshape(-1)).max() <= 0.01 * 1.001
    with pytest.raises(tamis.DataError, match=r"libh5sz3\.so refused the values of a chunk"):
        plugin_client.encode(sz3.plugin, sz3.stored(chunk), field().tobytes(), len(data) // 2)
