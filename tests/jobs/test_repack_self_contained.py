"""`--self-contained`: targets need no other file. Plain h5py reads them in an empty folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis import FileError

VALUES = np.sin(np.arange(6000, dtype="f4")).reshape(100, 60)

READ = """
import json, sys
import h5py
found = {}
with h5py.File(sys.argv[1]) as file:
    for path in sys.argv[2:]:
        dataset = file[path]
        assert not dataset.is_virtual and not dataset.external, path
        found[path] = [dataset[()].tolist(), dataset.compression]
    links = []
    file.visititems_links(lambda name, link: links.append(type(link).__name__) and None)
    assert "ExternalLink" not in links, links
print(json.dumps(found))
"""


def command(*arguments: object, code: int = 0) -> str:
    """Run tamis to its exit code, and return what it prints."""
    done = run_tamis(*arguments)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout if "--json" in arguments else done.stdout + done.stderr


@pytest.fixture
def alone(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return what reads a file by plain h5py in another process, moved to an empty folder, without the sources."""

    def read(target: Path, *paths: str) -> dict[str, Any]:
        folder = tmp_path / "empty"
        folder.mkdir(exist_ok=True)
        moved = shutil.copy(target, folder / "alone.h5")
        away = tmp_path / "in"
        away.rename(tmp_path / "away")
        try:
            line = [sys.executable, "-c", READ, str(moved), *paths]
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True, cwd=folder)
        finally:
            (tmp_path / "away").rename(away)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return read


def linked_to(path: Path, file: str, inner: str) -> Path:
    """Make a file with an external link."""
    with h5py.File(path, "w") as new:
        new["link"] = h5py.ExternalLink(file, inner)
    return path


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a master with links, chains, circles, virtual datasets and raw files."""
    for name in ("HDF5_VDS_PREFIX", "HDF5_EXT_PREFIX", "HDF5_EXTFILE_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    top = tmp_path / "in"
    (top / "data").mkdir(parents=True)
    with h5py.File(top / "data/c.h5", "w") as file:
        file.create_dataset("deep/z", data=VALUES + 3, chunks=(10, 60), compression="gzip")
    with h5py.File(top / "data/b.h5", "w") as file:
        group = file.create_group("g")
        group.attrs["title"] = "linked"
        x = group.create_dataset("x", data=VALUES, chunks=(10, 60), compression="gzip")
        time, column = group.create_dataset("time", data=np.arange(100.0)), file.create_dataset("col", data=VALUES[0])
        for axis, (scale, name) in enumerate(((time, "time"), (column, "col"))):
            scale.make_scale(name)
            x.dims[axis].attach_scale(scale)
        file.create_dataset("far/w", data=[7.0, 8.0])
        group["soft"], group["out"] = h5py.SoftLink("/g/x"), h5py.SoftLink("/far/w")
        group["gone"] = h5py.SoftLink("nowhere")
        group["chain"] = h5py.ExternalLink("c.h5", "/deep/z")
        group["back"] = h5py.ExternalLink("../m.h5", "/")
        group["words"] = np.array(["a", "bc"], object)
        group["kind"] = np.dtype([("n", "i4")])
        group["named"] = np.zeros(3, "i4")
        group.create_dataset("typed", (2,), dtype=group["kind"])
        references = [x.ref, file["far/w"].ref, column.ref]
        group["references"] = np.array(references, h5py.ref_dtype)
    np.arange(50.0).tofile(top / "data/raw.bin")
    with h5py.File(top / "m.h5", "w") as file:
        file["one"], file["two"] = (h5py.ExternalLink("data/b.h5", inner) for inner in ("/g", "/g/x"))
        file["again"] = h5py.ExternalLink("data/b.h5", "/g")
        layout = h5py.VirtualLayout((200, 60), "f4")
        layout[:100] = h5py.VirtualSource("data/b.h5", "g/x", (100, 60))
        layout[100:] = h5py.VirtualSource("data/c.h5", "deep/z", (100, 60))
        file.create_virtual_dataset("v", layout)
        file.create_dataset("raw", (50,), "f8", external=[(str(top / "data/raw.bin"), 0, 400)])
        file["own"] = np.arange(10)
        file["reference"] = np.array([file["own"].ref], h5py.ref_dtype)
    return top / "m.h5"


PATHS = ("one/x", "two", "again/x", "one/soft", "one/out", "one/chain", "v", "raw", "own")
EXPECTED = {
    **dict.fromkeys(("one/x", "two", "again/x", "one/soft"), VALUES),
    "one/out": np.array([7.0, 8.0]),
    "one/chain": VALUES + 3,
    "v": np.concatenate([VALUES, VALUES + 3]),
    "raw": np.arange(50.0),
    "own": np.arange(10),
}


def check_values(found: dict[str, Any]) -> None:
    """Compare all that was read with what the sources have."""
    assert {path: values for path, (values, _) in found.items()} == {path: EXPECTED[path].tolist() for path in found}


@pytest.mark.parametrize("filters", [(), ("-f", "*:shuffle|deflate(4)", "-f", "/one/x:shuffle|deflate(1)")])
def test_self_contained_file_needs_no_other(
    filters: tuple[str, ...], source: Path, tmp_path: Path, alone: Callable[..., dict[str, Any]]
) -> None:
    printed = command("repack", source, tmp_path / "out.h5", "--self-contained", *filters)
    assert "takes in" in printed
    found = alone(tmp_path / "out.h5", *PATHS)
    check_values(found)
    assert {found[path][1] for path in ("one/x", "one/chain", "v")} == {"gzip"}  # of their sources without a recipe
    assert "equal" in command("verify", source, tmp_path / "out.h5")


def test_self_contained_links_to_one_object_are_hard_links(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "out.h5", {}, self_contained=True)
    with h5py.File(tmp_path / "out.h5") as file:
        x = file["one/x"]
        assert all(file[path] == x for path in ("two", "again/x", "one/soft"))
        assert file["one/back"] == file["/"]  # a circle between files
        assert file["again"] == file["one"]
        assert dict(file["one"].attrs) == {"title": "linked"}
        assert isinstance(file["one"].get("gone", getlink=True), h5py.SoftLink)
        references = file["one/references"][()]
        assert [file[reference] for reference in references[:2]] == [x, file["one/out"]]
        assert file[file["reference"][0]] == file["own"]
        assert file["one/typed"].id.get_type().equal(file["one/kind"].id)
        assert file["one/words"][()].tolist() == [b"a", b"bc"]


def test_self_contained_lists_references_that_lead_nowhere(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "out.h5", {}, self_contained=True)
    lost = [note for note in result.notes if "where no link leads, became null" in note]
    assert [note.partition(":")[0] for note in lost] == ["/two (attribute 'DIMENSION_LIST')", "/again/references"]
    with h5py.File(tmp_path / "out.h5") as file:
        assert not file["one/references"][2]
        assert [[scale.name for scale in axis.values()] for axis in file["two"].dims] == [["/again/time"], []]


def test_self_contained_says_what_it_takes_in(source: Path, tmp_path: Path) -> None:
    dry = json.loads(command("repack", source, tmp_path / "out.h5", "--self-contained", "--dry-run", "--json"))
    assert dry["other_files"] == []
    files = {Path(item["file"]).name: item["nbytes"] for item in dry["taken_in"]}
    assert files == {path.name: path.stat().st_size for path in (source.parent / "data").iterdir()}
    assert sum("takes in" in note and "of values)" in note for note in dry["notes"]) == 3
    assert not (tmp_path / "out.h5").exists()
    done = json.loads(command("repack", source, tmp_path / "out.h5", "--self-contained", "--json"))
    assert (done["other_files"], done["taken_in"]) == ([], dry["taken_in"])
    again = json.loads(command("repack", source, tmp_path / "out.h5", "--self-contained", "--resume", "--json"))
    assert again["done_already"]


def test_self_contained_zarr(source: Path, tmp_path: Path) -> None:
    drop = ("--drop", "*reference*", "--drop", "*typed")
    command("repack", source, tmp_path / "out.zarr", "--self-contained", *drop)
    assert "equal" in command("verify", source, tmp_path / "out.zarr", *drop)
    source.parent.rename(tmp_path / "away")
    zarr = pytest.importorskip("zarr")
    store = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    for path, values in EXPECTED.items():
        assert store[path][...].tolist() == values.tolist(), path
    assert store["one"].attrs["title"] == "linked"


@pytest.mark.check
def test_self_contained_folder(source: Path, tmp_path: Path, alone: Callable[..., dict[str, Any]]) -> None:
    out = tmp_path / "out"
    line = ("repack", source.parent, out, "--self-contained", "-f", "*:deflate(2)", "--workers", "1")
    command(*line)
    check_values(alone(out / "m.h5", *PATHS))
    found = alone(out / "data/b.h5", "g/x", "g/chain", "g/back/v")
    assert found["g/back/v"][0] == EXPECTED["v"].tolist()
    status = json.loads(command("status", out, "--json"))
    assert (status["done"], status["other_files"]) == (3, {})
    assert "3 equal" in command("verify", source.parent, out)
    with h5py.File(source.parent / "data/c.h5", "a") as file:
        file["deep/z"][0, 0] = -1
    assert "2 files made again: a file that the target has taken in was changed" in command(*line)
    with h5py.File(out / "m.h5") as file:
        assert file["one/chain"][0, 0] == file["v"][100, 0] == -1


def test_self_contained_in_place(source: Path, tmp_path: Path, alone: Callable[..., dict[str, Any]]) -> None:
    line = ("repack", source.parent, "--replace", "--yes", "--self-contained", "--settle", "0")
    text = command(*line, "-f", "*:zfp(accuracy=0.1)", code=1)
    assert "which this run replaces with a loss" in text
    command(*line, "-f", "*:shuffle|deflate(2)")
    check_values(alone(source, *PATHS))


def test_self_contained_bound_of_linked_values(source: Path, tmp_path: Path) -> None:
    command("repack", source, tmp_path / "out.h5", "--self-contained", "-f", "/one/x:zfp(accuracy=0.05)")
    command("verify", source, tmp_path / "out.h5", "--bound", "/one/x:0.05")
    assert sum("zfp" in str(dataset.pipeline) for dataset in tamis.inspect(tmp_path / "out.h5").datasets) == 1
    with tamis.open(tmp_path / "out.h5") as file:
        assert 0 < np.abs(file["two"][...] - VALUES).max() <= 0.05


def test_self_contained_combine(tmp_path: Path) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"part{number}.h5", "w") as file:
            file["x"] = np.arange(3.0) + 3 * number
            file["time"] = np.arange(3) + 3 * number
            file["time"].make_scale("time")
            file["x"].dims[0].attach_scale(file["time"])
        linked_to(tmp_path / f"m{number}.h5", f"part{number}.h5", "/")
    masters = [tmp_path / f"m{number}.h5" for number in range(2)]
    command("repack", *masters, tmp_path / "all.nc", "--combine", "time", "--self-contained")
    with h5py.File(tmp_path / "all.nc") as file:
        assert file["link/x"][()].tolist() == list(range(6))


def test_self_contained_copy(source: Path, tmp_path: Path, alone: Callable[..., dict[str, Any]]) -> None:
    command("copy", source, tmp_path / "out.h5", "--self-contained", "-d", "2")
    check_values(alone(tmp_path / "out.h5", *PATHS))


def test_self_contained_scalars_in_raw_files(tmp_path: Path, alone: Callable[..., dict[str, Any]]) -> None:
    (tmp_path / "in").mkdir()
    with h5py.File(tmp_path / "in/a.h5", "w") as file:
        layout = h5py.VirtualLayout((), "f8")
        file["x"] = 2.5
        layout[()] = h5py.VirtualSource(str(tmp_path / "in/b.h5"), "x", ())
        file.create_virtual_dataset("v", layout)
    with h5py.File(tmp_path / "in/b.h5", "w") as file:
        file["x"] = 3.5
    command("repack", tmp_path / "in/a.h5", tmp_path / "out.h5", "--self-contained")
    assert alone(tmp_path / "out.h5", "v") == {"v": [3.5, None]}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("file", "inner", "expected"),
    [
        ("gone.h5", "/x", "/link: leads to the file gone.h5: No such file or directory"),
        ("b.h5", "/nope", "/link: leads to /nope in"),
        ("m.h5", "/link", "/link: expected at most 64 links on the way to an object, got more: a circle"),
        ("text.txt", "/x", "text.txt: expected an HDF5"),
        ("folder.h5", "/x", "expected a file, found a folder"),
    ],
)
def test_self_contained_links_that_lead_nowhere_are_errors(
    file: str, inner: str, expected: str, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as other:
        other["x"] = 1
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "folder.h5").mkdir()
    linked_to(tmp_path / "m.h5", file, inner)
    for target in ("out.h5", "out.zarr"):
        text = command("repack", tmp_path / "m.h5", tmp_path / target, "--self-contained", code=1)
        assert expected in text
        assert "m.h5" in text
        assert not (tmp_path / target).exists()


def test_self_contained_absent_sources_are_errors(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource("gone.h5", "x", (3,))
        file.create_virtual_dataset("v", layout)
    with pytest.raises(FileError, match=r"/v: its values are in gone\.h5, which does not exist"):
        tamis.repack(tmp_path / "m.h5", tmp_path / "out.h5", {}, self_contained=True)
    tamis.repack(tmp_path / "m.h5", tmp_path / "out.h5", {}, self_contained=True, drop=["v"])
    with h5py.File(tmp_path / "out.h5") as file:
        assert not len(file)


@pytest.mark.check
def test_self_contained_with_workers(tmp_path: Path) -> None:
    values = np.arange(24_000_000, dtype="f4")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(1_000_000,))
    linked_to(tmp_path / "m.h5", "b.h5", "/")
    command(
        "repack", tmp_path / "m.h5", tmp_path / "out.h5", "--self-contained", "-f", "*:deflate(1)", "--workers", "2"
    )
    with h5py.File(tmp_path / "out.h5") as file:
        assert (file["link/x"][...] == values).all()
        assert file["link/x"].compression == "gzip"
