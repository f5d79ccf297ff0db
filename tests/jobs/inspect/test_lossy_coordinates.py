"""Inspect notes variables that should be exact, and are stored with loss."""

from __future__ import annotations

from pathlib import Path

import pytest

import tamis

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


def notes_of(path: Path, name: str) -> list[str]:
    return [note.text for note in tamis.inspect(path)[name].notes if note.code == "lossy-coordinate"]


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ("zfp(accuracy=0.1)", "zfp(accuracy=0.0625)"),
        ("zfp(rate=16)|fletcher32", "zfp(rate=16)"),
        ("absolute(bound=0.1)|shuffle|deflate(4)", "absolute(bound="),
        ("scaleoffset(kind=decimal,factor=2)", "scaleoffset("),
    ],
)
def test_coordinate_with_lossy_filter_or_rounding_has_a_note(filters: str, named: str, tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "a.nc", {"lat": filters, "TS": filters})
    (note,) = notes_of(tmp_path / "a.nc", "lat")
    assert note.startswith(f"coordinate of TS: its values are not exact, because of {named}")
    assert "through lossless filters" in note
    assert not notes_of(tmp_path / "a.nc", "TS")
    assert not notes_of(tmp_path / "a.nc", "lon")


def test_coordinate_with_lossless_filters_has_no_note(tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "a.nc", {"lat": "zfp(reversible=true)|fletcher32", "lon": "shuffle|deflate(9)"})
    assert not notes_of(tmp_path / "a.nc", "lat")
    assert not notes_of(tmp_path / "a.nc", "lon")
    assert not notes_of(SAMPLE, "lat")
