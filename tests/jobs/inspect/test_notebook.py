"""An inspection in a notebook: well-formed HTML in which nothing of the file is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import tamis

VOID = ("br",)
HOSTILE = [
    b"<script>alert(1)<\\script>",
    b"<img src=x onerror=alert(1)>",
    b"\"><b>'&amp;",
    b"<\\style><!--",
    b"\xff\x1b[31m",
    "\u202eevil".encode(),
]


class Reader(HTMLParser):
    """Collects tags and text; every tag must be closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.opened: list[bool] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}
        if tag == "details":
            self.opened.append(("open", None) in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)


def read(path: Path) -> Reader:
    return Reader(tamis.inspect(path)._repr_html_())


def test_html_of_sample_has_rows_and_cards(sample: Path) -> None:
    found = read(sample)
    assert found.tags["tr"] == 1 + 6 + 2
    assert found.tags["details"] == 2
    for text in ("/TS", "30x192x288", "float32", "shuffle", "deflate(2)", "any HDF5", "Datasets (6)"):
        assert text in found.texts
    assert any(text.startswith(f"{sample} (") for text in found.texts)
    assert found.opened == [True, False]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_html_of_hostile_names_shows_them_as_text(name: bytes, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "<b>&'.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_filter(40000, h5z.FLAG_OPTIONAL, (1,))
        h5d.create(file.id, name, h5t.NATIVE_FLOAT, h5s.create_simple((20,)), plist)
    found = read(tmp_path / "<b>&'.h5")
    assert set(found.tags) <= {
        *("div", "style", "strong", "span", "details", "summary"),
        *("table", "thead", "tbody", "tr", "th", "td", "code", "br"),
    }
    assert found.attributes <= {"class", "open"}
    text = "".join(found.texts)
    shown = name.decode("utf-8", "surrogateescape")
    if shown.isprintable():
        assert f"/{shown}" in found.texts
    assert all(each.isprintable() or each == "\n" for each in text)


def test_html_of_many_datasets_is_cut_and_says_so(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i in range(600):
            file[f"v{i}"] = i
    found = read(tmp_path / "a.h5")
    assert found.tags["tr"] == 1 + 500
    assert "and 100 more, in " in found.texts
    assert found.opened == [False]


def test_html_of_problem_stands_open(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", data=np.ones((8, 8)), chunks=(8, 8), **tamis.Zfp(rate=8))
        words = made.id.get_create_plist().get_filter(0)[2]
    data = bytearray((tmp_path / "a.h5").read_bytes())
    start = data.index(b"".join(word.to_bytes(4, "little") for word in words))
    data[start + 4] ^= 0xFF  # the magic word of the ZFP header
    (tmp_path / "a.h5").write_bytes(data)
    found = read(tmp_path / "a.h5")
    assert found.opened == [True, True]
    assert "problem" in found.texts


def test_html_has_no_colours_of_its_own(sample: Path) -> None:
    """It is read on dark themes and on light ones."""
    style = tamis.inspect(sample)._repr_html_().partition("<style>")[2].partition("</style>")[0]
    assert "#" not in style
    assert "rgb" not in style
