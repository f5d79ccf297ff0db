"""Known defect U75: verify follows links and virtual datasets, and says whose values it compared."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

VALUES = np.cumsum(np.random.default_rng(75).normal(size=(16, 32, 32)), axis=0).astype("f4")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a master, a file with data, and a lossy copy of it."""
    monkeypatch.chdir(tmp_path)
    top = tmp_path / "in"
    top.mkdir()
    with h5py.File(top / "d.h5", "w") as file:
        file.create_dataset("g/x", data=VALUES, chunks=(4, 32, 32))
    with h5py.File(top / "m.h5", "w") as file:
        layout = h5py.VirtualLayout(VALUES.shape, "f4")
        layout[:] = h5py.VirtualSource("d.h5", "g/x", VALUES.shape)
        file.create_virtual_dataset("v", layout)
        file["link"] = h5py.ExternalLink("d.h5", "/g/x")
        file["group"] = h5py.ExternalLink("d.h5", "/g")
        file["own"] = h5py.ExternalLink("m.h5", "/v")
    status = tamis.repack_many(top, tmp_path / "out", {"g/x": "zfp(accuracy=0.5)"}, workers=1)
    assert status.ok, status
    return top


def change(path: Path) -> None:
    """Change a value far beyond the bound."""
    with h5py.File(path, "a") as file:
        values = file["g/x"][()]
        values[3, 4, 5] += 100
        del file["g/x"]
        file["g/x"] = values


def test_u75_verify_recorded_bound_is_that_of_the_files_with_the_values(folder: Path) -> None:
    result = tamis.verify("in/m.h5", "out/m.h5", bounds="recorded")
    assert result.ok, result
    assert {path: result[path].bound for path in ("/v", "/link", "/group/x")} == dict.fromkeys(
        ("/v", "/link", "/group/x"), 0.5
    )
    assert 0 < result["/link"].tally.error <= 0.5
    codes = {(note.path, note.code) for note in result.notes}
    assert {("/v", "linked"), ("/link", "linked"), ("/group", "linked"), ("/own", "linked")} <= codes
    assert f"compared values of {folder / 'd.h5'} with those of {folder.parent / 'out/d.h5'}" in str(result)


def test_verify_recorded_bound_is_that_of_the_values_through_any_number_of_views(folder: Path) -> None:
    for before, name in ("mn", "no"):
        layout = h5py.VirtualLayout(VALUES.shape, "f4")
        layout[:] = h5py.VirtualSource(f"{before}.h5", "v", VALUES.shape)
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file.create_virtual_dataset("v", layout)
            circle = h5py.VirtualLayout(VALUES.shape, "f4")
            circle[:] = h5py.VirtualSource("n.h5" if name == "o" else "o.h5", "circle", VALUES.shape)
            file.create_virtual_dataset("circle", circle, fillvalue=7)
    assert tamis.repack_many(folder, "out", {"g/x": "zfp(accuracy=0.5)"}, workers=1).ok
    for name in ("n", "o"):
        result = tamis.verify(f"in/{name}.h5", f"out/{name}.h5", variables="v", bounds="recorded")
        assert result.ok, result
        assert (result["/v"].bound, result["/v"].recorded) == (0.5, True)
        assert 0 < result["/v"].tally.error <= 0.5
    change(folder.parent / "out/d.h5")
    assert not tamis.verify("in/o.h5", "out/o.h5", variables="v", bounds="recorded").ok


@pytest.mark.matrix
@pytest.mark.parametrize("path", ["/v", "/link", "/group/x"])
def test_u75_verify_value_of_a_linked_file_that_differs_is_a_violation(folder: Path, path: str) -> None:
    change(folder.parent / "out/d.h5")
    result = tamis.verify("in/m.h5", "out/m.h5", bounds={"*": 0.5})
    assert path in {violation.path for violation in result.violations}


def test_u75_verify_link_that_leads_nowhere_in_the_target_is_a_violation(folder: Path) -> None:
    (folder.parent / "out/d.h5").unlink()
    result = tamis.verify("in/m.h5", "out/m.h5", bounds="recorded")
    assert {"/link", "/group"} <= {violation.path for violation in result.violations}
    assert not result.ok


def test_u75_verify_many_links_lead_to_files_that_are_compared_themselves(folder: Path) -> None:
    result = tamis.verify_many("in", "out", bounds="recorded")
    assert result.ok, result
    change(folder.parent / "out/d.h5")
    found = json.loads(tamis.verify_many("in", "out", bounds={"*": 0.5}).to_json())
    assert [file["verdict"] for file in found["files"]] == ["different", "different"]  # the virtual dataset reads it
