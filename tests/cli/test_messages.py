"""U115: messages name what the user named, and say what to change in words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis.safety import Transaction


def said(*words: str | Path) -> str:
    done = run_tamis(*words)
    assert done.returncode in (1, 2), done
    assert "Traceback" not in done.stderr
    return done.stderr


def test_u115_error_about_an_unfinished_target_names_the_target(tmp_path: Path) -> None:
    target = tmp_path / "out.nc"
    with pytest.raises(tamis.FileError) as raised, Transaction(target) as transaction:
        raise tamis.FileError(f"{transaction.path}: /v: damaged").at(path=transaction.path)
    assert str(raised.value) == f"{target}: /v: damaged"
    assert raised.value.path == str(target)


@pytest.mark.parametrize("scheme", ["ftp", "s4", "htp"])
def test_u115_unknown_kind_of_address_is_named(scheme: str) -> None:
    pytest.importorskip("obstore")
    message = said("inspect", f"{scheme}://host/a.nc")
    assert f"tamis does not know {scheme}:// addresses, only s3://" in message


def test_u115_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "inside"):
        assert f"{file} is a file: name a folder to install to" in said("config", "--install", place)


def test_u115_folder_without_files_to_read(tmp_path: Path) -> None:
    assert said("inspect", tmp_path).endswith("got an empty folder\n")
    (tmp_path / "notes.txt").write_text("of the author")
    message = said("inspect", tmp_path)
    assert "no file in this folder is an HDF5, " in message
    assert message.endswith("no metadata (zarr.json, .zgroup or .zarray)\n")


def test_u115_question_without_a_terminal_names_the_option(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.arange(1000.0), chunks=(100,))
    message = said("repack", tmp_path, "--replace", "-f", "*:deflate(1)", "--settle", "0")
    assert "There is no terminal to ask at: add --yes to replace them" in message


def test_u115_articles_fit_their_words(tmp_path: Path) -> None:
    np.arange(10.0).tofile(tmp_path / "raw")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", (10,), "f8", external=[("raw", 0, 80)])
    message = said("export", tmp_path / "a.h5", "--to", "kerchunk", "-o", tmp_path / "refs.json")
    assert "those of an external dataset" in message


@pytest.mark.parametrize("count", [3, 100_000])
def test_u115_messages_are_short(count: int) -> None:
    with pytest.raises(tamis.TamisError) as raised:
        tamis.repack("a.nc", "b.nc", {"v": "x" * count})
    assert len(str(raised.value)) < 5000
    error = tamis.FileError("a" * 100_000)
    assert len(str(error)) < 5000
    assert "(100000 letters)" in str(error)


def test_u115_all_texts_that_users_see_are_listed_and_say_what_is_wrong() -> None:
    script = Path(__file__).parents[1] / "tools" / "messages.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    texts = re.findall(r"^((?:src|native)/\S+?:\d+): (.*)$", done.stdout, re.MULTILINE)
    assert len(texts) > 2000
    for known in (
        "{self.path}: the file is closed: open it again",  # an error
        "Also record the SHA-256 of sources; ",  # the help of an option
        "Show the datasets of FILES:",  # the help of a command
        "zfp: no memory for %zu bytes",  # an error of the plugin
    ):
        assert any(text.startswith(known) for _, text in texts), known
    # "expected no X, got it" makes the reader turn a sentence around; say what is wrong instead.
    turned = re.compile(r"expected (no|not) .*, (got|found) (it|one|some|none)\b|, got one that ")
    assert not [(place, text) for place, text in texts if turned.search(text)]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("repack a.nc b.nc TS:pack=0.1", 2, "TS:pack=0.1: expected a file, found what is said of a dataset: filters"),
        ("repack a.nc b.nc TS:zfp(accuracy=0.1)|shuffle", 2, "filters follow -f, and requirements --require"),
        ("plan a.nc TS:abs=0.1", 2, "requirements follow --require"),
        ("inspect a.nc TS:zfp(accuracy=0.1)", 2, "the name of a dataset follows --variable"),
        ("repack a.nc b.nc -f zfp(accuracy=0.1)", 2, "'*:zfp(accuracy=0.1)' is for all datasets"),
        ("verify a.nc a.nc --bound TS:abs=0.1", 2, "got 'abs=0.1': leave out abs="),
        ("repack folder a.nc", 1, "a.nc: expected a folder for the targets, found a file"),
        ("status a.nc", 1, "a.nc: expected the folder of targets, found a file"),
        ("manifest nowhere", 1, "nowhere: expected the folder of targets, found none"),
    ],
)
def test_what_is_at_the_wrong_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("a.nc", "folder/c.nc"):
        with h5py.File(name, "w") as file:
            file["TS"] = np.zeros(4, "f4")
    done = run_tamis(*words.split(" "))
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "folder"]
