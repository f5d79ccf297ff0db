"""U35, U49: every command ends as it should on every kind of file: exit code, standard error, and files left."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import forked
import identifiers
import pytest
from forked import Run
from input_files import write_all_kinds

COMMAND = (str(Path(sys.executable).parent / "tamis"),)
TOOLS = Path(identifiers.__file__).parent
BAD = re.compile(
    r"Traceback|Fatal|Segmentation|infinite loop|leak|Warning|Exception ignored|Error in |core dumped|"
    + identifiers.MARK
)

ZARR_ENDS_SLOWLY = re.compile(
    r"^Exception ignored in atexit callback: <function cleanup_resources.*?^RuntimeError: .*?$",
    re.MULTILINE | re.DOTALL,
)
"""What zarr-python prints if its thread takes longer than 0.2 s to end, as on a machine that does much else."""

COMMANDS = {
    "inspect": "inspect FILE --json",
    "header": "inspect FILE --cdl",
    "plan": "plan FILE --require *:abs=0.1",
    "repack": "repack FILE a.h5 -f *:shuffle|deflate(1)",
    "lossy": "repack FILE b.h5 -f *:zfp(accuracy=0.1) --larger --min-size 0 --resume",
    "to zarr": "repack FILE c.zarr -f *:shuffle|deflate(1)",
    "verify": "verify FILE FILE",
    "compare": "verify FILE a.h5",
    "export": "export FILE --to kerchunk -o d.json",
    "copy": "copy FILE e.nc -d 1 -s",
    "repair": "repair FILE",
}
"""Every command that takes a file, in an order in which later ones may read what earlier ones wrote."""

EXIT_CODES = {
    "parts/elsewhere.h5": "00000000101",
    "virtual.h5": "00000000101",
    "absent_source.h5": "00000100101",
    "own_source.h5": "00000000101",
    "external.h5": "00000000101",
    "references.h5": "00000100101",
    "cam.nc": "00000000001",
    "fields.h5": "00000100101",
    "types.h5": "00000100101",
    "gaps.h5": "00000000001",
    "block.h5": "00000000001",
    "nothing.h5": "00000000001",
    "damaged_chunk.h5": "00011111011",
    "damaged_header.h5": "11111111111",
    "short.h5": "11111111111",
    "classic.nc": "00000000001",
    "offset64.nc": "00000000001",
    "cdf5.nc": "00000000001",
    "groups.nc": "00000000001",
    "user_types.nc": "00000100101",
    "v2.zarr": "00000000100",
    "v3.zarr": "00000000100",
    "sharded.zarr": "00000000100",
    "references.json": "00000000101",
    "folder.zarr": "11111111111",
    "parts": "00000200111",
    "text.nc": "11111111111",
    "empty.h5": "11111111111",
    "absent.h5": "11111111111",
}
"""The expected exit code of each command, in their order."""

MOST_TELLING = ("parts/elsewhere.h5", "absent_source.h5", "damaged_chunk.h5")
"""Files with the most ways of ending wrong."""

WITHOUT_FILES = {
    "--help": 0,
    "--version": 0,
    "": 2,
    "nonsense": 2,
    "inspect": 2,
    "config": 0,
    "filters": 0,
    "filters --json": 0,
    "plugin-path": 0,
    "spec zfp(accuracy=1e-3)": 0,
    "spec zfp(accuracy=)": 2,
}
"""Commands without files, with their exit codes."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    write_all_kinds(folder)
    return folder


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TAMIS", "HDF5", "PYTHON"))}
    return kept | more


def started(start: tuple[str, ...] = COMMAND, env: dict[str, str] | None = None) -> Run:
    """Return a function that starts a command and returns its exit code and standard error."""
    env = environment() if env is None else env

    def run(words: list[str], folder: Path) -> tuple[int, str]:
        done = subprocess.run(
            [*start, *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    return run


def ending(run: Run, words: list[str], folder: Path) -> tuple[int, str]:
    """Run a command; return its exit code, and what must not be on its standard error or in its folder."""
    before = names(folder)
    code, errors = run(words, folder)
    is_kept = code in (0, 3) or "damaged_chunk.h5" in words  # what is damaged is copied, and said by the exit code
    outputs = {word for word in words if word[0] in "abcde" and word[1:2] == "."} if is_kept else set()
    wrong = [line for line in ZARR_ENDS_SLOWLY.sub("", errors).splitlines() if BAD.search(line)]
    wrong += [f"left: {name}" for name in sorted(names(folder) - before - outputs)]
    return code, "\n".join(wrong)


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def run_all(run: Run, file: str, inputs: Path, folder: Path) -> Iterator[str]:
    """Yield what is not as it should be when all commands run on a file, in a copy of the folder."""
    shutil.copytree(inputs, folder)
    for (name, text), code in zip(COMMANDS.items(), EXIT_CODES[file], strict=True):
        words = [file if word == "FILE" else word for word in text.split()]
        yield from problems(f"{name} {file}", int(code), ending(run, words, folder))
    shutil.rmtree(folder)


def problems(label: str, expected: int, ending: tuple[int, str]) -> Iterator[str]:
    code, wrong = ending
    if code != expected or wrong:
        yield f"{label}: expected exit code {expected}, got {code}\n{wrong}"


def check(files: Iterable[str], inputs: Path, folder: Path, run: Run) -> Iterator[str]:
    """Yield what is not as it should be when every command runs on every file, and those without files run."""
    for number, file in enumerate(files):
        yield from run_all(run, file, inputs, folder / str(number))
    for text, code in WITHOUT_FILES.items():
        yield from problems(text, code, ending(run, text.split(), folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", [MOST_TELLING[0], *(pytest.param(file, marks=pytest.mark.check) for file in MOST_TELLING[1:])]
)
def test_u35_commands_end_with_their_exit_code(file: str, inputs: Path, tmp_path: Path) -> None:
    assert not [*run_all(started(env=environment(TMPDIR=str(tmp_path))), file, inputs, tmp_path / "copy")]


@pytest.mark.check
def test_u35_commands_without_files_end_with_their_exit_code(tmp_path: Path) -> None:
    assert not [*check((), tmp_path, tmp_path, started())]


def check_copies(files: Sequence[str], inputs: Path, folder: Path, python: tuple[str, ...], *words: str) -> None:
    """Run every command on every file in copies of a process that has imported all, in two of them at a time."""

    def half(number: int) -> list[str]:
        (own := folder / str(number)).mkdir()
        env = environment(TMPDIR=str(own))
        with forked.server(python, words, env, folder / f"errors-{number}") as run:
            return [*check(files[number::2], inputs, own, run)]

    with ThreadPoolExecutor(2) as pool:
        assert not [text for texts in pool.map(half, range(2)) for text in texts]


@pytest.mark.check
def test_u35_commands_end_with_their_exit_code_on_every_kind_of_file(
    inputs: Path, tmp_path: Path, share: Callable[[Sequence[str]], list[str]]
) -> None:
    check_copies(share([*EXIT_CODES]), inputs, tmp_path, (sys.executable,))


@pytest.mark.check
def test_u35_no_identifier_and_no_warning_is_left_at_the_end(
    inputs: Path, tmp_path: Path, share: Callable[[Sequence[str]], list[str]]
) -> None:
    # Python's developer mode also checks memory as PYTHONMALLOC=debug does.
    python = (sys.executable, "-X", "dev", "-W", "error")
    check_copies(share([*EXIT_CODES]), inputs, tmp_path, python, "identifiers")


def test_u49_no_identifier_is_left_of_virtual_datasets(inputs: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(inputs, tmp_path / "copies")
    run = started((sys.executable, str(TOOLS / "identifiers.py")))
    for name in ("inspect", "verify", "export"):
        words = [MOST_TELLING[0] if word == "FILE" else word for word in COMMANDS[name].split()]
        code = int(EXIT_CODES[MOST_TELLING[0]][[*COMMANDS].index(name)])
        assert not [*problems(name, code, ending(run, words, folder))]


_WAITS_FOR_WORK = """
import signal, subprocess, sys
from tamis.cli.ending import ended_while_waiting

WORK = "import time; end = time.process_time() + 1.5\\nwhile time.process_time() < end: pass"

def finish(*_):
    subprocess.run([sys.executable, "-c", WORK], check=True)
    print("finished")
    sys.exit(3)

signal.signal(signal.SIGINT, finish)
with ended_while_waiting():
    print("begun", flush=True)
    signal.pause()
"""


@pytest.mark.check
def test_signal_does_not_cut_off_a_wait_for_a_process_that_works() -> None:
    """On a machine that does much else, the processes of a run take long to end."""
    process = subprocess.Popen([sys.executable, "-c", _WAITS_FOR_WORK], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert (process.communicate()[0], process.returncode) == ("finished\n", 3)
