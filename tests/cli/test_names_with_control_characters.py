"""Known defect U29: names in a file hold what a terminal acts on, and texts for people do not."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis.cli import main

EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e\r\n\x7f"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / f"a{EVIL.strip()}.h5"
    with h5py.File(place, "w") as file:
        group = file.create_group(f"g{EVIL}")
        made = group.create_dataset(f"x{EVIL}", data=np.zeros((8, 8), "f4"), chunks=(4, 4))
        made.attrs[f"units{EVIL}"] = f"K{EVIL}"
        group.create_dataset("damaged", data=np.zeros(8, "f4"), chunks=(4,), compression="gzip")
        group["damaged"].id.write_direct_chunk((0,), b"no zlib", 0)
    return place


def assert_printable(text: str) -> None:
    assert all(line.isprintable() for line in text.split("\n")), repr(text)


@pytest.mark.parametrize(
    "text_of",
    [
        lambda path: repr(tamis.open(path)),
        lambda path: repr(tamis.open(path)[f"g{EVIL}"]),
        lambda path: repr(tamis.open(path)[f"g{EVIL}/x{EVIL}"]),
        lambda path: str(pickle.loads(pickle.dumps(tamis.open(path)[f"g{EVIL}/x{EVIL}"]))),
        lambda path: str(tamis.inspect(path)),
        lambda path: "\n".join(map(str, tamis.inspect(path).datasets)),
        lambda path: tamis.inspect(path).to_json(),
        lambda path: str(tamis.verify(path, path)),
        lambda path: tamis.verify(path, path).to_json(),
        lambda path: tamis.preview_repack(path, path.with_name("b.h5"), {"*": "shuffle"}).to_json(),
        lambda path: str(tamis.spec("zfp(rate=8)", variable=f"TS{EVIL}")),
        lambda path: tamis.spec("zfp(rate=8)", variable=f"TS{EVIL}").to_json(),
    ],
)
def test_u29_texts_have_no_control_characters(path: Path, text_of: Callable[[Path], str]) -> None:
    text = text_of(path)
    assert_printable(text)
    assert "\\x1b" in text or "\\u001b" in text


@pytest.mark.parametrize(
    "fail",
    [
        lambda path: tamis.open(path)[f"none{EVIL}"],
        lambda path: tamis.open(path)[f"g{EVIL}/damaged"][:],
        lambda path: tamis.repack(path, path.with_name("b.h5"), {f"none{EVIL}": "shuffle"}),
        lambda path: tamis.repack(path, path.with_name("b.h5"), {f"g{EVIL}/damaged": "shuffle"}),
        lambda path: tamis.open(path.with_name(f"none{EVIL}")),
        lambda path: tamis.Pipeline.parse(f"zfp{EVIL}"),
        lambda path: tamis.spec(f"TS{EVIL},32013,9,9"),
    ],
)
def test_u29_errors_have_no_control_characters(path: Path, fail: Callable[[Path], object]) -> None:
    with pytest.raises(tamis.TamisError) as caught:
        fail(path)
    assert_printable(str(caught.value))


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "{}"],
        ["inspect", "{}", "--json"],
        ["verify", "{}", "{}"],
        ["repack", "{}", "{}.out", "-f", "*:shuffle", "--dry-run"],
        ["repack", "{}", "{}.out", "-f", f"none{EVIL}:shuffle"],
        ["spec", "zfp(rate=8)", "--variable", f"TS{EVIL}"],
        ["spec", f"TS{EVIL},32013,9,9"],
        ["filters", f"zfp{EVIL}"],
    ],
)
def test_u29_commands_print_no_control_characters(path: Path, arguments: list[str]) -> None:
    done = CliRunner().invoke(main, [each.replace("{}", str(path)) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert_printable(done.output)
    if "--json" in arguments:
        assert json.loads(done.output)
