"""Known defects U2, U5 and U12 in `tamis.encoding`, and what inspect shows of roles, packing and limits."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import tamis
from tamis import DataError, ParameterError, cf

LOSSY = {"*": "zfp(accuracy=0.5)"}


def field() -> Any:
    return 280 + 10 * np.sin(np.arange(8 * 16 * 32) / 50).reshape(8, 16, 32)


def made(**more: Any) -> xarray.Dataset:
    variables = {"TS": (("time", "lat", "lon"), field(), {"units": "K"}), **more}
    coords = {
        "time": ("time", np.arange(8.0), {"bounds": "time_bnds"}),
        "lat": np.linspace(-90, 90, 16),
        "area": (("lat", "lon"), field()[0]),
    }
    return xarray.Dataset({**variables, "time_bnds": (("time", "nv"), np.ones((8, 8)))}, coords=coords)


def lossy(ds: xarray.Dataset, recipes: Any = LOSSY) -> tuple[set[str], str]:
    """Return the variables that get filters, and what is said of the others."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = tamis.encoding(ds, recipes)
    return {name for name, each in found.items() if "compression" in each}, "; ".join(
        str(each.message) for each in said
    )


def test_u05_encoding_by_lossy_pattern_passes_over_what_must_be_exact() -> None:
    counts = (("time", "lat", "lon"), np.ones((8, 16, 32), "i4"))
    flags = (("time", "lat", "lon"), field(), {"flag_values": [1.0, 2.0]})
    times = (("time", "lat", "lon"), np.full((8, 16, 32), np.datetime64("2000-01-01", "ns")))
    found, said = lossy(made(counts=counts, flags=flags, times=times))
    assert found == {"TS"}
    for text in (
        "time_bnds: bounds of time; name it to store it lossily",
        "lat: coordinate of TS, counts and 3 more; name it to store it lossily",
        "area: coordinate of the dataset;",
        "counts: integers, which may be counts or labels;",
        "times: integers",
        "flags: flags, by its attribute flag_values;",
    ):
        assert text in said


def test_u05_encoding_by_name_and_without_loss_is_done() -> None:
    assert lossy(made(), {"lat": "zfp(accuracy=0.5)"}) == ({"lat"}, "")
    found, said = lossy(made(), {"*": "shuffle|deflate(4)"})
    assert found >= {"TS", "lat", "area", "time_bnds"}
    assert "name it" not in said
    found, said = lossy(made(), {"*S": "zfp(accuracy=0.5)", "*": "shuffle|deflate(4)"})
    assert found >= {"TS", "lat"}


def test_u12_encoding_is_in_units_of_the_variable(tmp_path: Path) -> None:
    ds = made()
    ds["TS"].encoding.update(scale_factor=0.01, add_offset=200.0)
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=tamis.encoding(ds, {"TS": "zfp(accuracy=0.5)"}))
    assert str(tamis.inspect(tmp_path / "a.nc", ["TS"]).datasets[0].pipeline) == "zfp(accuracy=32)"
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as again:
        error = np.abs(again["TS"].values - field()).max()
        assert 0.01 < error <= 0.5
        # Filters that the file has are about stored values already.
        again.load().to_netcdf(tmp_path / "b.nc", engine="h5netcdf", encoding=tamis.encoding(again))
    assert str(tamis.inspect(tmp_path / "b.nc", ["TS"]).datasets[0].pipeline) == "zfp(accuracy=32)"


def test_u12_encoding_of_packed_integers_is_refused_with_the_arithmetic() -> None:
    ds = made()
    ds["TS"] = (ds["TS"] / 10).round() * 10  # values that the encoding keeps; others make tamis leave it out
    ds["TS"].encoding.update(dtype="i4", scale_factor=10.0)
    with pytest.raises(ParameterError, match=r"TS: expected an accuracy of 10 or more, .* 0.5 / 10 = 0.05 of"):
        tamis.encoding(ds, {"TS": "zfp(accuracy=0.5)"})


@pytest.mark.parametrize("packing", [{}, {"scale_factor": 0.1, "add_offset": 5.0}])
def test_u02_encoding_refuses_values_that_may_become_invalid(packing: dict[str, float]) -> None:
    ds = made()
    limit = float(field().min()) - 0.3
    stored = (limit - packing.get("add_offset", 0)) / packing.get("scale_factor", 1)
    ds["TS"].encoding.update(packing)
    ds["TS"].attrs["valid_min"] = np.float64(stored)
    with pytest.raises(DataError, match=r"TS: .* within 0.5 of 269.7, the smallest valid one"):
        tamis.encoding(ds, {"TS": "zfp(accuracy=0.5)"})
    with pytest.raises(DataError, match="the smallest valid one"):
        tamis.encoding(ds, {"TS": "zfp(rate=8)"})
    assert "TS" in tamis.encoding(ds, {"TS": "zfp(accuracy=0.25)"})
    assert "TS" in tamis.encoding(ds, {"TS": "zfp(reversible=True)"})


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A file with a packed variable, limits, and a coordinate."""
    ds = made()
    ds["TS"].encoding.update(dtype="i2", scale_factor=0.01, add_offset=250.0, zlib=True, _FillValue=-32768)
    ds["TS"].attrs.update(valid_min=np.int16(-30000), valid_max=np.int16(30000))
    ds["lat"].encoding.update(zlib=True)
    ds["time_bnds"].attrs["valid_max"] = 9.5
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    return tmp_path / "a.nc"


def test_inspect_shows_roles_packing_and_limits(described: Path) -> None:
    found = tamis.inspect(described)
    document = {each["path"]: each for each in json.loads(found.to_json())["datasets"]}
    assert document["/TS"]["role"] == "data"
    assert document["/TS"]["packing"] == {"scale_factor": 0.01, "add_offset": 250.0}
    assert document["/TS"]["valid_range"] == [-30000, 30000]
    assert document["/time_bnds"]["role"] == "bounds"
    assert document["/time_bnds"]["valid_range"] == [None, 9.5]
    assert (document["/lat"]["role"], document["/lat"]["packing"], document["/lat"]["valid_range"]) == (
        "coordinate",
        None,
        None,
    )
    text = "\n".join(text for _, text in found.lines()) + "\n"
    assert "  values   packed by scale_factor 0.01 and add_offset 250; valid from -30000 to 30000 as stored\n" in text
    assert text.count("  values ") == 1


def test_inspect_by_name_and_by_another_hard_link_shows_the_same_role(described: Path) -> None:
    with h5py.File(described, "r+") as file:
        file["z_other"] = file["lat"]
    for name in ("lat", "z_other"):
        assert tamis.inspect(described, [name]).datasets[0].role.kind == "coordinate"


def test_docs_name_all_roles() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "metadata.md").read_text()
    for kind in cf.KINDS:
        assert f"`{kind}`" in page
