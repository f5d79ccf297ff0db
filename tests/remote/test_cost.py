"""What reading over a network costs, beside what it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from range_server import Server

import tamis
from tamis.jobs.inspect.cost import reading_cost


def test_costs_are_those_of_a_real_server(
    server: Server, make_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_CACHE", "")
    path = make_file()
    costs = {access.name: access for access in reading_cost(path, ["TS"]).accesses}
    for access in reading_cost(server.url(path.name), ["TS"]).accesses:
        assert (access.requests, access.nbytes) == (costs[access.name].requests, costs[access.name].nbytes)
    assert costs["open"].seconds >= 0.03
    for word, key in {"map": 30, "series": (slice(None), 32, 48), "whole": ...}.items():
        with tamis.open(server.url(path.name)) as file:
            server.reset()
            file["TS"][key]
            assert (server.requests, server.nbytes) == pytest.approx(
                (costs[f"/TS {word}"].requests, costs[f"/TS {word}"].nbytes), rel=0.35
            )


def test_the_largest_variable_is_chosen_and_runs_are_counted(make_file: Callable[..., Path]) -> None:
    path = make_file()
    assert [access.name for access in reading_cost(path).accesses] == ["open", "/TS map", "/TS series", "/TS whole"]
    costs = {access.name: access for access in reading_cost(path, ["/plain"]).accesses}
    assert costs["/plain map"].nbytes == pytest.approx(64 * 96 * 4, abs=4096)
    assert costs["/plain whole"].nbytes >= 20 * 64 * 96 * 4


def test_a_folder_has_no_such_costs(tmp_path: Path) -> None:
    with pytest.raises(tamis.FileError, match="in Zarr, each chunk is a request"):
        reading_cost(tmp_path)


def test_values_in_other_files_have_no_such_costs(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("outside", (8,), "f4", external=[("values.raw", 0, h5py.h5f.UNLIMITED)])
    with pytest.raises(tamis.FileError, match="its values are in other files"):
        reading_cost(tmp_path / "a.h5")
