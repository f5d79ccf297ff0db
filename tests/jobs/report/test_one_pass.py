"""Values are read once: while they are compared; fields of maps are read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis.accuracy import statistics
from tamis.jobs.report import pair, profiler

SHAPE = (24, 64, 96)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Return the parts that are read while values are compared, and later; blocks have one field."""
    found: dict[str, list[Any]] = {"compared": [], "later": []}
    read = statistics.read_slab_by_slab
    for name, module in (("compared", statistics), ("later", pair)):

        def spy(reader: Any, part: Any, parts: list[Any] = found[name]) -> Any:
            parts.append(part)
            return read(reader, part)

        monkeypatch.setattr(module, "read_slab_by_slab", spy)
    monkeypatch.setattr(pair, "_BLOCK_COUNT", SHAPE[1] * SHAPE[2])
    return found


def files(folder: Path, changed: slice) -> tuple[Path, Path]:
    rng = np.random.default_rng(8)
    values = np.cumsum(rng.normal(size=SHAPE), axis=2).astype("f4")
    for name in ("a.nc", "b.nc"):
        with h5py.File(folder / name, "w") as file:
            file.create_dataset("T", data=values, chunks=(1, 32, 96))
        values[changed] += rng.uniform(-0.01, 0.01, values[changed].shape).astype("f4")
    return folder / "a.nc", folder / "b.nc"


def test_all_values_are_read_once(tmp_path: Path, reads: dict[str, list[Any]]) -> None:
    result = tamis.report(*files(tmp_path, slice(None)), threads=1)
    assert len(reads["compared"]) == 2 * SHAPE[0]
    others = {part[0].start for part in reads["later"]}  # of maps, and of the steps with the largest errors
    assert len(others) <= 12
    assert result["T"].statistics["dssim_fields"] == SHAPE[0]


def test_files_without_changes_have_no_other_statistics(
    tmp_path: Path, reads: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiler.Profiler, "_statistics", lambda *_: pytest.fail("not needed"))
    assert tamis.report(*files(tmp_path, slice(0, 0)), threads=2)["T"].outcome == "same bits"
    assert not reads["later"]


@pytest.mark.parametrize("changed", [slice(0, 3), slice(20, None), slice(23, None)])
@pytest.mark.matrix
def test_blocks_before_the_first_change_count_as_all_others(
    changed: slice, tmp_path: Path, reads: dict[str, list[Any]]
) -> None:
    source, target = files(tmp_path, changed)
    one, two = (tamis.report(source, target, threads=threads)["T"] for threads in (1, 3))
    assert [chart.to_dict() for chart in one.charts] == [chart.to_dict() for chart in two.charts]
    assert one.statistics == two.statistics
    with h5py.File(source) as file, h5py.File(target) as other:
        before, after = (each["T"][...].astype("f8") for each in (file, other))
    errors = after - before
    assert one.statistics["bias"] == pytest.approx(errors.mean())
    assert one.statistics["correlation"] == pytest.approx(np.corrcoef(before.ravel(), after.ravel())[0, 1])
    assert one.statistics["dssim_fields"] == SHAPE[0]
    assert one.compared.tally is not None
    assert one.compared.tally.worst is not None
    assert one.compared.tally.worst.index == np.unravel_index(np.abs(errors).argmax(), SHAPE)


@pytest.mark.parametrize("changed", [False, True])
def test_chunks_that_fields_share_are_decoded_again_only_after_a_change(
    changed: bool, tmp_path: Path, reads: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "_MOST_COUNT", 6 * SHAPE[1] * SHAPE[2])
    values = np.random.default_rng(9).normal(size=SHAPE)
    for name, shift in (("a.nc", 0.0), ("b.nc", 0.01 * changed)):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("T", data=values + shift, chunks=(24, 16, 16))
    result = tamis.report(tmp_path / "a.nc", tmp_path / "b.nc")["T"]
    assert not reads["compared"]
    assert bool(reads["later"]) is changed
    assert result.statistics.get("bias", 0.01) == pytest.approx(0.01)


def test_worst_field_is_examined_even_if_it_is_not_among_some(
    tmp_path: Path, reads: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiler, "_MOST_FIELD_VALUES", 4 * SHAPE[1] * SHAPE[2])
    source, target = files(tmp_path, slice(None))
    with h5py.File(target, "r+") as file:
        file["T"][11, 5, 5] += 3
    result = tamis.report(source, target)["T"]
    assert result.notes == ("Spectra, autocorrelation, gradients and DSSIM are from 5 of 24 blocks of fields.",)
    assert result.statistics["dssim_fields"] == 5
    gradients = next(table for table in result.tables if table.key == "gradients")
    assert float(gradients.rows[0][4]) > 2.5


def test_report_and_verify_have_the_same_numbers(tmp_path: Path) -> None:
    """Also where several values have the largest error: the first by index is told, whatever the blocks."""
    before = np.zeros((6, 40, 50), "f4")
    after = before.copy()
    after[1, 30:, 2:], after[4, 0, 0] = 0.5, 0.5
    for name, values, chunks in (("a.nc", before, (6, 10, 10)), ("b.nc", after, (3, 40, 5))):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("T", data=values, chunks=chunks)
    verified = tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc", bounds={"T": 1})["T"].tally
    reported = tamis.report(tmp_path / "a.nc", tmp_path / "b.nc", bounds={"T": 1})["T"].compared.tally
    assert verified == reported
    assert verified is not None
    assert verified.worst is not None
    assert verified.worst.index == (1, 30, 2)
    assert verified.first_different == verified.worst
