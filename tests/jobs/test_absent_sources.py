"""Known defect U51: nothing says that the files are absent in which a virtual dataset has its values."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from inprocess import said_by_tamis

VALUES = np.arange(30.0).reshape(3, 10)


def virtual(file: h5py.File, name: str, sources: list[tuple[str, str]]) -> None:
    layout = h5py.VirtualLayout((len(sources), 10), "f8")
    for index, (path, inner) in enumerate(sources):
        layout[index] = h5py.VirtualSource(path, inner, (10,))
    file.create_virtual_dataset(name, layout, fillvalue=-1.0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for index in (0, 2):
        with h5py.File(tmp_path / f"part{index}.h5", "w") as file:
            file["d"] = VALUES[index]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        virtual(file, "some", [(f"part{index}.h5", "d") for index in range(3)])
        virtual(file, "all", [(f"gone{index}.h5", "d") for index in range(3)])
        # As NeXus files have it: the sources are in the same file, behind links into others.
        file["entry/link"] = h5py.ExternalLink("lost.h5", "/data")
        file["entry/soft"] = h5py.SoftLink("link")
        file["entry/there"] = h5py.ExternalLink("part0.h5", "/d")
        virtual(file, "links", [(".", "/entry/soft"), (".", "/entry/there"), (".", "/none")])
        virtual(file, "complete", [("part0.h5", "d"), ("part2.h5", "d"), (".", "/entry/there")])
        virtual(file, "inner", [("part0.h5", "other"), ("part2.h5", "d")])
        file.create_dataset("raw", (5,), "f8", external=[(str(tmp_path / "raw"), 0, 40)])
    return tmp_path / "a.h5"


NAMED = {
    "/some": "part1.h5",
    "/all": "gone0.h5 and 2 more",
    "/links": "/entry/soft in this file and 1 more",
    "/raw": "raw",
}


def test_u51_inspect_names_absent_files(source: Path) -> None:
    (described,) = json.loads(said_by_tamis("inspect", source, "--json"))["files"]
    notes = {each["path"]: [note["text"] for note in each["notes"]] for each in described["datasets"]}
    for path, name in NAMED.items():
        assert any("these files do not exist" in text and text.endswith(name) for text in notes[path]), notes[path]
    assert not notes["/complete"]


def test_u51_repack_and_verify_name_absent_files_and_do_not_read(source: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "b.h5", tmp_path / "folder" / "b.h5"):
        said = said_by_tamis("repack", source, target, "-f", "*:deflate(1)")
        assert "/some: refers to the file 'part1.h5', which does not exist: kept unchanged" in said
        assert "/all: refers to the file 'gone0.h5', which does not exist: kept unchanged (3 files in all)" in said
        verified = said_by_tamis(
            "verify", source, target, *(f"-v{name}" for name in ("/some", "/all", "/raw", "/links"))
        )
        assert "equal: 4 datasets compared" in verified
        assert "/some: values are missing, because these files do not exist: part1.h5" in verified
        assert "/all, /links, /raw, /some: not read: the same parts of the same other files" in verified


def test_u51_sources_in_the_same_file_are_read(tmp_path: Path) -> None:
    for name, value in (("a.h5", 1.0), ("b.h5", 2.0)):
        with h5py.File(tmp_path / name, "w") as file:
            file["d"] = np.full(10, value)
            virtual(file, "v", [(".", "/d")])
    assert "violation: /v" in said_by_tamis("verify", tmp_path / "a.h5", tmp_path / "b.h5", "-v", "/v", code=3)


def test_u51_other_parts_are_read_and_differ(source: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as file:
        virtual(file, "complete", [("part2.h5", "d"), ("part0.h5", "d"), ("part0.h5", "d")])
    assert "violation: /complete" in said_by_tamis("verify", source, tmp_path / "b.h5", "-v", "/complete", code=3)


@pytest.mark.parametrize("name", ["some", "all", "links", "inner"])
def test_u51_zarr_gets_no_invented_values(source: Path, tmp_path: Path, name: str) -> None:
    with h5py.File(source) as file, h5py.File(tmp_path / "one.h5", "w") as one:
        for each in (name, "entry"):
            file.copy(each, one, expand_external=False)
    said = said_by_tamis("repack", tmp_path / "one.h5", tmp_path / "b.zarr", "-f", "*:deflate(1)", code=1)
    assert "a source of this virtual dataset" in said
    assert not (tmp_path / "b.zarr").exists()


def test_u51_plan_and_export_name_absent_files(source: Path, tmp_path: Path) -> None:
    assert "these files do not exist: part1.h5" in said_by_tamis("plan", source)
    assert "these files do not exist: gone0.h5" in said_by_tamis(
        "export", source, "--to", "kerchunk", "-o", tmp_path / "b.json", code=1
    )


def test_u51_progress_of_verify_is_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis import verify
    from tamis.cli import output

    monkeypatch.setattr(output, "_LONG_SECONDS", 0.0)
    for name in "ab":
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["v"] = np.arange(4_000_000.0)
    lines: list[str] = []
    assert verify(tmp_path / "a.h5", tmp_path / "b.h5", progress=output.Steps(lines.append)).ok
    assert any(line.endswith(" % of 32 MB") for line in lines), lines
