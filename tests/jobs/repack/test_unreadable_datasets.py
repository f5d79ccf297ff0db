"""Known defect U18: a dataset that cannot be read stops the repack of all others that a pattern matches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis import DataError, FileError
from tamis.cli import main

VALUES = np.arange(64.0).reshape(8, 8)


def damage(dataset: h5py.Dataset, origin: tuple[int, ...]) -> None:
    dataset.id.write_direct_chunk(origin, b"\xff" * 40, 0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name in ("a", "damaged", "z"):
            made = file.create_dataset(name, data=VALUES, chunks=(2, 8), compression="gzip", fletcher32=True)
            made.attrs["units"] = "K"
        damage(file["damaged"], (4, 0))
        file["also"] = file["damaged"]
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((1024,))  # so large that repack does not keep it for its size
        plist.set_filter(40_000, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        space = h5py.h5s.create_simple((2048,))
        unknown = h5py.h5d.create(file.id, b"unknown", h5py.h5t.NATIVE_FLOAT, space, plist)
        unknown.write_direct_chunk((0,), b"?" * 4096, 0)
    return path


def chunks(path: Path, name: str) -> list[tuple[int, bytes]]:
    with h5py.File(path) as file:
        made = file[name].id
        origins: list[Any] = []
        made.chunk_iter(lambda each: origins.append(each.chunk_offset))
        return [made.read_direct_chunk(each) for each in origins]


@pytest.mark.parametrize("filters", ["shuffle|deflate(9)", "zfp(accuracy=0.1)|deflate(1)", "none"])
@pytest.mark.parametrize("options", [{}, {"missing": "mask"}, {"resume": True}, {"threads": 1}])
def test_u18_unreadable_datasets_are_kept_as_they_are(
    source: Path, tmp_path: Path, filters: str, options: dict[str, Any]
) -> None:
    result = tamis.repack(source, tmp_path / "b.h5", {"*": filters}, **options)
    assert [each.path for each in result.datasets] == ["/a", "/z"]
    assert sorted(result.unreadable) == ["/also", "/unknown"]
    reasons = dict(result.kept)
    assert "its bytes are kept" in reasons["/also"]
    assert "40000" in reasons["/unknown"]
    for name in ("also", "unknown"):
        assert chunks(source, name) == chunks(tmp_path / "b.h5", name)
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["also"] == file["damaged"]
        assert dict(file["damaged"].attrs) == {"units": "K"}
        np.testing.assert_allclose(file["z"][()], VALUES, atol=0.1)


def test_u18_unreadable_datasets_are_in_the_json_and_on_standard_error(source: Path, tmp_path: Path) -> None:
    arguments = ["repack", str(source), str(tmp_path / "b.h5"), "-f", "*:shuffle", "--json"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1  # because of the damage, see U77
    assert sorted(json.loads(done.stdout)["unreadable"]) == ["/also", "/unknown"]
    assert [item["path"] for item in json.loads(done.stdout)["damaged"]] == ["/also"]
    assert "/also: damaged, and copied as it is: 1 of 4 chunks" in done.stderr
    assert "/unknown: its values cannot be read" in done.stderr


def test_u18_an_unreadable_dataset_is_an_error_by_its_name(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"damaged|cannot be decoded"):
        tamis.repack(source, tmp_path / "b.h5", {"damaged": "shuffle", "*": "shuffle"})
    assert not (tmp_path / "b.h5").exists()


def test_u18_missing_values_are_refused_beside_an_unreadable_dataset(source: Path, tmp_path: Path) -> None:
    recipes = {"*": "zfp(accuracy=0.1)|deflate(1)"}
    assert tamis.repack(source, tmp_path / "b.h5", recipes, missing="refuse").unreadable
    with h5py.File(source, "r+") as file:
        file["z"][0, 0] = np.nan
    with pytest.raises(DataError, match="1 NaN"):
        tamis.repack(source, tmp_path / "c.h5", recipes, missing="refuse", larger=True)


def test_u18_the_target_does_not_depend_on_the_number_of_threads(source: Path, tmp_path: Path) -> None:
    made = []
    for threads in (1, 2, 5):
        tamis.repack(source, tmp_path / f"{threads}.h5", {"*": "shuffle|deflate(1)"}, threads=threads)
        made.append((tmp_path / f"{threads}.h5").read_bytes())
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("filters", ["shuffle|deflate(9)", "zfp(accuracy=0.1)|deflate(1)"])
@pytest.mark.parametrize("bounds", [None, {"*": 0.1}, "recorded"])
def test_u18_copies_of_unreadable_datasets_are_equal_by_their_stored_bytes(
    source: Path, tmp_path: Path, filters: str, bounds: Any
) -> None:
    target = tmp_path / "b.h5"
    tamis.repack(source, target, {"*": filters})
    found = tamis.verify(source, target, bounds=bounds, keep_damaged=True)
    assert not found.problems
    assert {each.path for each in found.notes if each.code == "stored-bytes"} == {"/also", "/unknown"}
    for name in ("also", "unknown"):
        assert (found[name].status, found[name].equal, found[name].tally) == ("equal", True, None)
    if bounds is not None:
        assert found.ok
        arguments = ["verify", str(source), str(target), "--json", "--keep-damaged"]
        bound = "recorded" if bounds == "recorded" else "*:0.1"
        assert CliRunner().invoke(main, [*arguments, "--bound", bound]).exit_code == 0


def _other_byte(file: h5py.File) -> None:
    file["damaged"].id.write_direct_chunk((4, 0), b"\xff" * 39 + b"\xfe", 0)


def _other_length(file: h5py.File) -> None:
    file["damaged"].id.write_direct_chunk((4, 0), b"\xff" * 41, 0)


def _readable(file: h5py.File) -> None:
    attributes = dict(file["damaged"].attrs)
    del file["damaged"], file["also"]
    made = file.create_dataset("damaged", data=VALUES, chunks=(2, 8), compression="gzip", fletcher32=True)
    made.attrs.update(attributes)
    file["also"] = file["damaged"]


def _other_filters(file: h5py.File) -> None:
    stored = file["damaged"]
    chunks_at = [stored.id.get_chunk_info(i).chunk_offset for i in range(stored.id.get_num_chunks())]
    data = {at: stored.id.read_direct_chunk(at) for at in chunks_at}
    del file["damaged"], file["also"]
    options: Any = {"compression": "gzip", "shuffle": True, "fletcher32": True}
    made = file.create_dataset("damaged", VALUES.shape, VALUES.dtype, chunks=(2, 8), **options)
    made.attrs["units"] = "K"
    for at, (mask, raw) in data.items():
        made.id.write_direct_chunk(at, raw, mask)
    file["also"] = file["damaged"]


@pytest.mark.parametrize("change", [_other_byte, _other_length, _readable, _other_filters])
def test_u18_unreadable_datasets_of_other_bytes_or_filters_stay_a_problem(
    source: Path, tmp_path: Path, change: Any
) -> None:
    target = tmp_path / "b.h5"
    target.write_bytes(source.read_bytes())
    assert tamis.verify(source, target, keep_damaged=True).ok
    with h5py.File(target, "r+") as file:
        change(file)
    for pair in ((source, target), (target, source)):
        found = tamis.verify(*pair)
        assert [each.path for each in found.problems] == ["/also"]
        assert not found.ok


def test_u18_small_unreadable_dataset_that_would_grow_is_listed(tmp_path: Path) -> None:
    """Its index alone would take more space than the dataset does now, so nothing of it had to be read."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("sound", "damaged"):
            file.create_dataset(name, data=np.arange(2000.0), chunks=(1000,), compression="gzip", fletcher32=True)
        damage(file["damaged"], (1000,))
    recipes = {"*": "shuffle|deflate(9)"}
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", recipes, chunks={"*": (10,)})
    assert result.unreadable == ("/damaged",)
    assert "would become larger" in dict(result.kept)["/sound"]
    assert "its values cannot be read" in dict(result.kept)["/damaged"]
    assert chunks(tmp_path / "a.h5", "damaged") == chunks(tmp_path / "b.h5", "damaged")


_RUN = """if True:
    import tamis
    try:
        tamis.repack("source.h5", "target.h5", {"x": "deflate(1)"}, chunks={"x": (4, 32, 32)}, threads=2)
    except tamis.FileError as error:
        print(error)
"""


def test_damaged_chunk_does_not_stop_threads_for_ever(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((16, 128, 128)).astype("f4")
    with h5py.File(tmp_path / "source.h5", "w") as file:
        dataset = file.create_dataset("x", data=values, chunks=(1, 128, 128), compression="gzip")
        offset = dataset.id.get_chunk_info(9).byte_offset
    with (tmp_path / "source.h5").open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"damaged!")
    done = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert "/x" in done.stdout
