"""U9: a dataset that would grow is kept as it is and listed, and what grows because it is named is said."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis.cli import main

ZFP = "zfp(accuracy=0.1)|shuffle|deflate(4)"
LOSSLESS = "shuffle|deflate(4)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write what deflate stores in few bytes, what zfp makes smaller, and small datasets without chunks."""
    path = tmp_path / "in.h5"
    steps = 280 + 10 * np.sin(np.linspace(0, 6, 200_000)).reshape(20, 100, 100).astype("f4")
    smooth = np.random.default_rng(0).normal(280, 1, (20, 100, 100)).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("quantized", data=np.round(steps / 10) * 10, chunks=(20, 100, 100), compression="gzip")
        file.create_dataset("rough", data=smooth, chunks=(20, 100, 100), compression="gzip")
        for number in range(20):
            file[f"small/{number}"] = np.arange(10.0) + number
    return path


def nbytes(path: Path, name: str) -> int:
    with h5py.File(path) as file:
        return int(file[name].id.get_storage_size())


def stored_bytes(path: Path, name: str) -> list[tuple[int, bytes]]:
    with h5py.File(path) as file:
        origins: list[tuple[int, ...]] = []
        file[name].id.chunk_iter(lambda each: origins.append(each.chunk_offset))
        return [file[name].id.read_direct_chunk(each) for each in origins]


def test_u09_dataset_that_would_grow_is_kept_verbatim_and_listed(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "out.h5", {"*": ZFP})
    assert [each.path for each in result.datasets] == ["/rough"]
    assert "would become larger" in dict(result.kept)["/quantized"]
    assert stored_bytes(tmp_path / "out.h5", "quantized") == stored_bytes(source, "quantized")
    assert result.target_nbytes < result.source_nbytes
    assert tamis.verify(source, tmp_path / "out.h5", bounds={"rough": 0.1}).ok


def test_u09_dataset_that_is_named_grows_and_a_note_says_so(source: Path, tmp_path: Path) -> None:
    done = tamis.repack(source, tmp_path / "out.h5", {"quantized": ZFP}).datasets[0]
    assert done.target_nbytes > done.source_nbytes
    assert any("larger than in the source" in each for each in done.notes)
    assert done.source_ratio is not None
    assert done.source_ratio < 1 < (done.ratio or 0)


def test_u09_chunks_that_are_named_and_larger_are_for_patterns_that_may_grow(source: Path, tmp_path: Path) -> None:
    by_chunks = tamis.repack(source, tmp_path / "a.h5", {"*": ZFP}, chunks={"quantized": (4, 100, 100)})
    asked = tamis.repack(source, tmp_path / "b.h5", {"q*": ZFP}, larger=True)
    assert "/quantized" in [each.path for each in by_chunks.datasets]
    assert [each.path for each in asked.datasets] == ["/quantized"]


@pytest.mark.parametrize("filters", ["none", "fletcher32", "shuffle"])
def test_u09_filters_that_do_not_compress_are_done(source: Path, tmp_path: Path, filters: str) -> None:
    result = tamis.repack(source, tmp_path / "out.h5", {"quant*": filters})
    assert [each.path for each in result.datasets] == ["/quantized"]
    assert not result.datasets[0].notes


def test_u09_small_datasets_without_chunks_are_left_by_patterns(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "out.h5", {"small/*": LOSSLESS})
    assert not result.datasets
    assert {reason for _, reason in result.kept} == {
        "patterns skip datasets of less than 4096 B (--min-size): name it to change it"
    }
    assert len(result.kept) == 20
    assert result.target_nbytes <= result.source_nbytes + 4096
    named = tamis.repack(source, tmp_path / "b.h5", {"small/3": LOSSLESS})
    assert [each.path for each in named.datasets] == ["/small/3"]
    # The index of a chunk takes more than the values: without a least size they would grow.
    forced = tamis.repack(source, tmp_path / "c.h5", {"small/*": LOSSLESS}, min_size=0)
    assert not forced.datasets
    assert all("would become larger" in reason for _, reason in forced.kept)


def test_u09_least_size_holds_for_chunked_datasets_too(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "out.h5", {"rough": ZFP, "*": LOSSLESS}, min_size=1 << 30)
    assert [each.path for each in result.datasets] == ["/rough"]
    preview = tamis.preview_repack(source, tmp_path / "b.h5", {"*": ZFP}, min_size=1 << 30)
    assert {each.action for each in preview.datasets} == {"keep"}
    with pytest.raises(tamis.ParameterError, match="min_size to be a whole number, 0 or more, got -1"):
        tamis.repack(source, tmp_path / "c.h5", {"*": ZFP}, min_size=-1)


def test_u09_companion_counts_and_leaves_nothing_behind(tmp_path: Path) -> None:
    source = tmp_path / "in.h5"
    random = np.random.default_rng(0)
    values = random.choice(np.array([0, 100, np.nan], "f4"), (64, 64))
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(64, 64), compression="gzip", compression_opts=9)
    result = tamis.repack(source, tmp_path / "out.h5", {"*": ZFP}, missing="mask")
    assert [path for path, _ in result.kept] == ["/x"]
    with h5py.File(tmp_path / "out.h5") as file:
        assert [*file] == ["x"]
        assert not file["x"].attrs
    assert stored_bytes(tmp_path / "out.h5", "x") == stored_bytes(source, "x")


def test_u09_output_does_not_depend_on_threads_and_has_no_hole(source: Path, tmp_path: Path) -> None:
    hashes = set()
    for threads in (1, 2):
        tamis.repack(source, tmp_path / "out.h5", {"*": ZFP}, threads=threads, overwrite=True)
        hashes.add(hashlib.sha256((tmp_path / "out.h5").read_bytes()).hexdigest())
    assert len(hashes) == 1
    tamis.repack(source, tmp_path / "alone.h5", {"rough": ZFP})
    assert abs(os.path.getsize(tmp_path / "out.h5") - os.path.getsize(tmp_path / "alone.h5")) < 4096


def test_u09_large_dataset_is_judged_by_some_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "in.h5"
    with h5py.File(source, "w") as file:
        noise = np.random.default_rng(0).integers(0, 4, 1 << 20, "u1")
        file.create_dataset("x", data=noise, chunks=(1 << 15,), compression="gzip")
        file.create_dataset("y", data=noise, chunks=(1 << 15,), compression="lzf")
    monkeypatch.setattr("tamis.rewrite.growth._HELD_NBYTES", 1 << 10)
    result = tamis.repack(source, tmp_path / "out.h5", {"x*": "lzf", "y*": "deflate(9)"})
    assert [path for path, _ in result.kept] == ["/x"]
    assert [each.path for each in result.datasets] == ["/y"]
    assert result.datasets[0].target_nbytes < nbytes(source, "y")


def test_u09_resumed_run_decides_the_same(source: Path, tmp_path: Path) -> None:
    once = tamis.repack(source, tmp_path / "a.h5", {"*": ZFP})
    again = tamis.repack(source, tmp_path / "b.h5", {"*": ZFP}, resume=True)
    assert once.kept == again.kept
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_u09_command_shows_both_ratios_in_table_and_json(source: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    shown = runner.invoke(main, ["repack", str(source), str(tmp_path / "a.h5"), "-f", f"quantized:{ZFP}"])
    assert "in/out" in shown.output
    assert "larger than in the source" in shown.output
    command = ["repack", str(source), str(tmp_path / "b.h5"), "-f", f"*:{ZFP}", "--larger", "--min-size", "0", "--json"]
    found = json.loads(runner.invoke(main, command).stdout)
    by_path = {each["path"]: each for each in found["datasets"]}
    assert by_path["/quantized"]["source_ratio"] < 1 < by_path["/quantized"]["ratio"]
    assert len(found["datasets"]) == 22
    kept = runner.invoke(main, ["repack", str(source), str(tmp_path / "c.h5"), "-f", f"*:{ZFP}", "--min-size", "4096"])
    assert "kept as it is: it would become larger" in kept.output
