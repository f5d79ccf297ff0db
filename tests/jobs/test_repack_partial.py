"""Partial chunks along axes that can grow: counted, with the reason, and with better chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

FILTERS = "zfp(accuracy=0.1)|shuffle|deflate(4)"


def make(path: Path, steps: int, fill: float | None = -999, **options: Any) -> Path:
    noise = np.random.default_rng(0).normal(0, 0.3, (steps, 96, 80))
    values = (280 + 10 * np.sin(np.arange(96 * 80).reshape(96, 80) / 999) + noise).astype("f4")
    kind = {} if fill is None else {"fillvalue": np.float32(fill)}
    with h5py.File(path, "w") as file:
        file.create_dataset("T", data=values, **{"chunks": (1, 96, 80), "maxshape": (None, 96, 80), **kind, **options})
    return path


def notes(path: Path, chunks: tuple[int, ...], filters: str = FILTERS) -> tuple[str, str, tamis.Repacked]:
    """Return what the preview and the result say."""
    target = path.with_name("out.h5")
    arguments: Any = path, target, {"T": filters}
    preview = tamis.preview_repack(*arguments, chunks={"T": chunks}).datasets[0].notes
    made = tamis.repack(*arguments, chunks={"T": chunks}, overwrite=True).datasets[0]
    return " ".join(preview), " ".join(made.notes), made


def test_partial_chunks_without_zfp_are_counted_with_the_reason_and_better_chunks(tmp_path: Path) -> None:
    preview, result, made = notes(make(tmp_path / "a.h5", 31), (16, 48, 80))
    reason = "steps left out later must read as missing"
    advice = "; with -c '/T:31x48x80' such chunks hold none of the values, not 48 %"
    assert (
        f"2 of 4 chunks stored without zfp: partial chunks along an axis that can grow, where {reason}{advice}"
        in result
    )
    assert "partial chunks along an axis that can grow, with 48 % of the values, are stored without zfp" in preview
    assert preview.endswith(advice)
    assert (made.lossless_chunks, made.lossless_for_growth, made.to_dict()["lossless_for_growth"]) == (2, 2, 2)
    better = notes(tmp_path / "a.h5", (31, 48, 80))[2]
    assert better.lossless_for_growth == 0
    assert better.target_nbytes < made.target_nbytes
    preview, result, short = notes(tmp_path / "a.h5", (4, 48, 80))
    assert short.lossless_for_growth == 2
    assert "with -c" not in preview + result


@pytest.mark.parametrize(
    ("steps", "fill", "options"),
    [
        (32, -999, {}),
        (36, -999, {}),  # whole blocks of the fill value
        (31, None, {}),  # HDF5's own 0 keeps the bound
        (31, -999, {"maxshape": (31, 96, 80)}),
    ],
)
def test_chunks_that_zfp_takes_are_no_matter(tmp_path: Path, steps: int, fill: Any, options: Any) -> None:
    preview, result, made = notes(make(tmp_path / "a.h5", steps, fill, **options), (16, 48, 80))
    assert made.lossless_for_growth == made.lossless_chunks == 0
    assert "partial" not in preview + result


def test_partial_chunks_of_a_required_filter_repeat_values_which_is_said(tmp_path: Path) -> None:
    filters = FILTERS.replace(")", ")!", 1)
    preview, result, made = notes(make(tmp_path / "a.h5", 31), (16, 48, 80), filters)
    assert preview == result
    assert "repeat their last values, because zfp is required: steps left out there later read as copies" in result
    assert "as an optional filter, zfp(accuracy=0.1)?" in result
    assert made.lossless_chunks == 0


def test_partial_chunks_are_no_reason_to_doubt_the_bound(tmp_path: Path) -> None:
    """All chunks go without zfp, which is no sign of a bound that is too small."""
    _, result, made = notes(make(tmp_path / "a.h5", 3), (4, 96, 80))
    assert (made.lossless_for_growth, made.chunks) == (1, 1)
    assert "1 of 1 chunk stored without zfp: partial chunks" in result
    assert "too small for such values" not in result


def test_fill_value_nan_leaves_all_partial_chunks_to_the_rest(tmp_path: Path) -> None:
    _, result, made = notes(make(tmp_path / "a.h5", 36, np.nan), (16, 96, 80))
    assert made.lossless_for_growth == 1
    assert "with -c '/T:12x96x80' such chunks hold none of the values, not 11 %" in result
    assert notes(tmp_path / "a.h5", (12, 96, 80))[2].lossless_chunks == 0


def test_partial_chunks_with_a_companion_are_counted_too(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", 31)
    with h5py.File(path, "r+") as file:
        file["T"][:, :9, :9] = -999
    made = tamis.repack(path, tmp_path / "b.h5", {"T": FILTERS}, chunks={"T": (16, 48, 80)}, missing="mask")
    assert (made["T"].lossless_for_growth, made["T"].lossless_chunks) == (2, 2)
    assert "2 of 4 chunks stored without zfp: partial chunks" in " ".join(made["T"].notes)
