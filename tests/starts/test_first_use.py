"""The first thing that a process does with tamis: each text, name, command and page in a fresh process.

What one use of a class or module leaves behind can hide that the first use fails, so no two cases share a process.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from document_blocks import DOCUMENTS, ROOT, Block, blocks, run_blocks, skip_without_programs

import tamis
from tamis.cli import main
from tamis.filters import by_name
from tamis.rounding import BY_NAME as ROUNDINGS

pytestmark = pytest.mark.starts

SAMPLE = ROOT / "examples" / "data" / "cam_ts.nc"
TAMIS = Path(sys.executable).parent / "tamis"

TEXTS = {
    "deflate": ["deflate", "deflate(9)", "shuffle|deflate(level=4)"],
    "shuffle": ["shuffle|lzf"],
    "fletcher32": ["fletcher32", "shuffle|deflate(4)|fletcher32"],
    "szip": ["szip(coding=ec,pixels=32)", "szip(nn,16)"],
    "nbit": ["nbit"],
    "scaleoffset": ["scaleoffset(kind=decimal,factor=2)"],
    "bzip2": ["bzip2", "bzip2(9)"],
    "lzf": ["lzf"],
    "blosc": ["blosc", "blosc(compressor=zstd,level=3)", "blosc(lz4,5,byte)"],
    "lz4": ["lz4", "lz4(block=4096)"],
    "bitshuffle": ["bitshuffle", "bitshuffle(compressor=zstd,level=3)"],
    "zfp": ["zfp(accuracy=0.1)", "zfp(rate=16)", "zfp(precision=20)", "zfp(reversible=true)", "zfp(bound=0.1)"],
    "zstd": ["zstd", "zstd(3)", "zstd:3"],
    "sz3": ["sz3(bound=0.1)", "sz3(mode=absolute,bound=0.1)"],
    "blosc2": ["blosc2", "blosc2(zstd,9,bytedelta)"],
    "sperr": ["sperr(bound=0.1)", "sperr(mode=absolute,quality=0.1)"],
    "pcodec": ["pcodec", "pcodec(8)"],
    "bitgroom": ["bitgroom(digits=4)|shuffle|deflate(1)"],
    "granular": ["granular(4)|shuffle|deflate(1)"],
    "bitround": ["bitround(keepbits=12)|shuffle|deflate(1)"],
    "bits": ["bits(12)|shuffle|deflate(1)"],
    "digits": ["digits(4)|shuffle|deflate(1)"],
    "absolute": ["absolute(bound=0.1)|shuffle|deflate(1)"],
    "pack": ["pack(bound=0.1)|shuffle|deflate(1)", "pack(bound=0.1,range=100:400)|zstd(3)"],
}
"""Texts of each filter and rounding, by name."""

COMMANDS = {
    "completion": ["fish"],
    "config": ["--cflags"],
    "copy": ["cam_ts.nc", "out.nc", "-d", "4", "-s"],
    "doctor": [],
    "export": ["zfp.nc", "--to", "kerchunk", "-o", "refs.json"],
    "filters": [],
    "inspect": ["cam_ts.nc"],
    "manifest": ["folder"],
    "plan": ["cam_ts.nc"],
    "plugin-path": [],
    "repack": ["cam_ts.nc", "out.nc", "-f", "TS:zfp(accuracy=0.1)"],
    "repair": ["store.zarr"],
    "report": ["cam_ts.nc", "zfp.nc", "-o", "report.html"],
    "sample": ["sources", "--overwrite"],
    "spec": ["shuffle|deflate(4)"],
    "status": ["folder"],
    "verify": ["cam_ts.nc", "zfp.nc", "--bound", "TS:0.1"],
}
"""Arguments of each command, for the files of `files`."""


def run(*command: object, folder: Path) -> str:
    """Run a command in a folder, check that it succeeds without a traceback, and return what it printed."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with what the commands read."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copy(SAMPLE, folder / "cam_ts.nc")
    tamis.repack(SAMPLE, folder / "zfp.nc", {"TS": "zfp(accuracy=0.1)"})
    tamis.repack(SAMPLE, folder / "store.zarr", {"*": "shuffle|deflate(4)"})
    (folder / "sources").mkdir()
    shutil.copy(SAMPLE, folder / "sources" / "cam_ts.nc")
    tamis.repack_many([folder / "sources"], folder / "folder", {"TS": "zfp(accuracy=0.1)"})
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """Copy what the commands read, so that no case sees the files of another."""
    return Path(shutil.copytree(files, tmp_path / "case"))


def test_texts_are_those_of_all_filters_and_roundings() -> None:
    assert TEXTS.keys() == {*by_name(), *ROUNDINGS}


def test_commands_are_all() -> None:
    with click.Context(main) as context:
        assert [*COMMANDS] == main.list_commands(context)


@pytest.mark.parametrize("text", [text for texts in TEXTS.values() for text in texts])
def test_u63_text_is_read_in_every_way(text: str, folder: Path) -> None:
    """By the command `spec`, by Python, and by a repack that reads the values back."""
    target = "out.zarr" if "pcodec" in text else "out.nc"
    if text == "nbit":  # refused for floats, but read
        assert "nbit" in run(TAMIS, "spec", text, folder=folder)
        return
    code = "import sys, tamis; print(tamis.Pipeline.parse(sys.argv[1]))"
    printed = run(sys.executable, "-c", code, text, folder=folder).strip()
    assert printed == str(tamis.Pipeline.parse(text))
    bounded = tamis.Pipeline.parse(text).bounded
    if bounded is None or bounded.open_bound is None:  # else its parameters are found from the values
        assert "tamis:" in run(TAMIS, "spec", text, "--dtype", "f4", folder=folder)
    assert "verified" in run(TAMIS, "repack", "cam_ts.nc", target, "-f", f"TS:{text}", folder=folder)


PARAMETERS = """
import inspect, sys, tamis
value = getattr(tamis, sys.argv[1])
if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
    print(*inspect.signature(value).parameters)
"""


@pytest.mark.parametrize("name", tamis.__all__)
def test_u63_public_name_is_found_first(name: str, tmp_path: Path) -> None:
    assert "self" not in run(sys.executable, "-c", PARAMETERS, name, folder=tmp_path).split()


@pytest.mark.parametrize("name", COMMANDS)
def test_command_ends_well(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "doctor":  # which finds fault with the folder that the tests name there
        monkeypatch.delenv("HDF5_PLUGIN_PATH", raising=False)
    run(TAMIS, name, *COMMANDS[name], folder=folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_command_is_printed(name: str, tmp_path: Path) -> None:
    assert "Usage: tamis" in run(TAMIS, name, "--help", folder=tmp_path)


def first_blocks() -> Iterator[tuple[Path, list[Block]]]:
    """Yield each page that has a block to run, with its first one, after the files that the page gives before it."""
    for path in DOCUMENTS:
        files: list[Block] = []
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.file:
                files.append(block)
            elif block.run and block.language in ("python", "sh"):
                yield path, [*files, block]
                break


@pytest.mark.parametrize(("path", "first"), [*first_blocks()], ids=lambda value: getattr(value, "name", ""))
def test_first_block_of_page_runs(path: Path, first: list[Block], tmp_path: Path) -> None:
    skip_without_programs(first)
    if "tamis sample" not in first[-1].text:  # which a session before it has copied
        shutil.copy(SAMPLE, tmp_path)
    done = run_blocks(path.name, first, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
