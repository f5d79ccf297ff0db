"""An inspection as text: within the width of a terminal, and in full through a pipe."""

from __future__ import annotations

import io
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z
from rich.console import Console

import tamis
from tamis import Inspection
from tamis.cli.output import paint
from tamis.jobs.result import Table

LONG = "group_" + "n" * 60 + "/" + "variable_" * 8
HOSTILE = b"\x1b[31m[bold]\x07\xe2\x80\xae"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A file with long, hostile and unknown names, and much to be said."""
    values = np.arange(6400.0).reshape(80, 80)
    values[0, 0] = np.inf
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(LONG, data=values, chunks=(10, 10), **tamis.Zfp(accuracy=0.1))
        zfp = tamis.Zfp(minbits=1, maxbits=900, maxprec=20, minexp=-10)
        file.create_dataset("expert", data=np.ones((64, 64)), chunks=(8, 8), **zfp)
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_filter(40000, h5z.FLAG_OPTIONAL, tuple(range(40)))
        h5d.create(file.id, HOSTILE, h5t.NATIVE_FLOAT, h5s.create_simple((20,)), plist)
        file["scalar"] = 1.5
    return tmp_path / "a.h5"


def shown(path: Path, width: int, *, color: str | None = None) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=color is not None, color_system=color)  # type: ignore[arg-type]
    paint(tamis.inspect(path).lines, console, width)
    return text.getvalue().splitlines()


def lines(found: Inspection) -> list[str]:
    return [text for _, text in found.lines()]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_show_lines_stay_within_the_terminal_but_for_names(width: int, odd: Path) -> None:
    for line in shown(odd, width)[1:]:
        assert len(line) <= width or " " not in line.strip()  # a long word stays whole, so that it can be pasted


def test_show_at_80_columns_is_a_readable_table(odd: Path) -> None:
    got = shown(odd, 80)
    at = got.index(f"/{LONG}")
    # The name has a line of its own, its row follows.
    assert got[at + 1].split() == ["80x80", "float64", "10x10", "zfp(accuracy=0.0625)", *got[at + 1].split()[4:]]
    assert any(line.split()[:4] == ["/expert", "64x64", "float64", "8x8"] for line in got)
    assert "  blocks   4x4 values, in chunks of 10x10: 31 % padding" in got
    assert "  blocks   4x4 values, in chunks of 8x8: no padding" in got
    assert "  chunks   63 of 64 chunks: zfp; 1: no filter (zfp skipped)" in got
    (header,) = [line for line in got if line.startswith("dataset ")]
    starts = [header.find(title) for title in ("shape", "type", "chunks", "filters")]
    assert starts == sorted(starts)
    assert -1 not in starts


def test_show_facts_continue_under_their_text(odd: Path) -> None:
    got = shown(odd, 80)
    at = next(i for i, line in enumerate(got) if line.startswith("  note     no checksum"))
    assert got[at + 1].startswith(" " * 11)
    assert got[at + 1][11] != " "


def test_show_colours_nothing_but_whole_lines(odd: Path) -> None:
    """Names from the file never reach the terminal as sequences of their own."""
    for line in shown(odd, 80, color="standard"):
        assert line.count("\x1b") in (0, 2)
    plain = "\n".join(shown(odd, 80))
    assert "\x1b" not in plain
    assert "\x07" not in plain
    assert r"/\x1b[31m[bold]\x07\u202e" in plain


def test_lines_have_one_for_each_dataset_and_fact(odd: Path) -> None:
    got = lines(tamis.inspect(odd))
    assert got[0] == f"{odd} ({odd.stat().st_size / 1000:.3g} kB, 4 datasets)"
    (row,) = [line for line in got if line.startswith(f"/{LONG} ")]
    assert "zfp(accuracy=0.0625)" in row
    (fact,) = [line for line in got if "effective tolerance" in line]
    assert fact == "  filters  zfp accuracy, effective tolerance 2^-4 = 0.0625 (H5Z-ZFP 1.1.1, zfp 1.0.1)"
    (unknown,) = [line for line in got if line.startswith("  filters  filter [40000] ")]
    assert unknown.endswith(",38,39")
    assert "  read by  HDF5 with the plugin of filter 40000 (here: h5py no; tamis no)" in got
    assert all("\n" not in line for line in got)


def test_lines_of_file_without_datasets_is_one(tmp_path: Path) -> None:
    h5py.File(tmp_path / "a.h5", "w").close()
    assert (lines(tamis.inspect(tmp_path / "a.h5"))) == [f"{tmp_path}/a.h5 (800 B, 0 datasets)"]


def test_lines_say_once_what_holds_for_many_datasets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i in range(30):
            file.create_dataset(f"v{i:02}", data=np.arange(100.0), chunks=(50,), shuffle=True, compression=4)
        file["plain"] = 1
    got = lines(tamis.inspect(tmp_path / "a.h5"))
    assert got[-3:] == [
        "/v00, /v01, /v02, /v03 and 26 more",
        "  filters  shuffle | deflate level 4",
        "  read by  any HDF5",
    ]
    assert len(got) == 1 + 1 + 31 + 1 + 3


def aligned(rows: list[tuple[str, ...]], width: int | None) -> list[str]:
    return [text for _, text in Table(rows, folded=[2], right=(3,)).lines(width)]


CELLS = [("name", "shape", "filters", "n"), ("a", "10", "zfp(accuracy=0.5)\nfletcher32", "1"), ("bb", "2", "", "22")]


@pytest.mark.parametrize("width", [None, 60])
def test_aligned_rows_with_room_have_a_line_each(width: int | None) -> None:
    assert aligned(CELLS, width) == [
        "name  shape  filters                        n",
        "a     10     zfp(accuracy=0.5)|fletcher32   1",
        "bb    2                                    22",
    ]


def test_aligned_rows_count_wide_characters_twice() -> None:
    rows = [("name", "n", "", ""), ("気温", "1", "", ""), ("a", "2", "", "")]
    assert [line.replace("気温", "....") for line in aligned(rows, None)] == [
        "name  n",
        "....  1",
        "a     2",
    ]


def test_aligned_rows_fold_parts_then_narrow_then_break_where_parameters_begin() -> None:
    assert aligned(CELLS, 40) == [
        "name  shape  filters              n",
        "a     10     zfp(accuracy=0.5)|   1",
        "             fletcher32",
        "bb    2                          22",
    ]
    assert aligned(CELLS, 27) == [
        "name shape filters        n",
        "a    10    zfp(accuracy=  1",
        "           0.5)|",
        "           fletcher32",
        "bb   2                   22",
    ]
