"""Record what some 2400 runs of tamis print, return and write, to show that a change of its code changes none of it.

    python tests/tools/recorded.py record before.json
    python tests/tools/recorded.py record after.json          # with the changed tamis installed
    python tests/tools/recorded.py compare before.json after.json

`compare` names the runs that differ and what of them, and exits with 1 if any does. A recording has a sha256 and a
length for each part of a run: standard output, standard error, exit code, result, error, and each file that it wrote.
`record --keep FOLDER` also keeps the parts themselves, so that `diff -r` shows what differs in two such folders;
`show NAME` runs again what has NAME in its name, and prints it. `recorded_runs.py` lists the runs, and
`recorded_sources.py` writes the files that they read.

A recording uses only public names of tamis. Record both sides on one machine, in one environment: messages, paths and
bytes depend on other libraries, too.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import pickle
import pkgutil
import platform
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads would not survive the forks below

import h5py
import netCDF4
import numpy as np
import xarray
import zarr
from input_files import field
from recorded_runs import Sequence, sequences
from recorded_sources import copy_source, write_sources

import tamis
from tamis.cli import main as command_line

Parts = dict[str, bytes]
"""What a run did, by the name of the part: exit code, stdout, stderr, result, error, gone, and ``file NAME``."""

LIBRARIES = ("numpy", "h5py", "netCDF4", "xarray", "zarr", "numcodecs", "imagecodecs", "click", "rich")

MOST_SECONDS = 900
"""A sequence of runs that takes longer is ended, and recorded as ended."""

# What no two runs share. Nothing else is replaced: not the sizes, counts, errors and ratios that results show.
REPLACED = (
    # How long something took, and speeds.
    (re.compile(r"""(["']\w*seconds["']: )[\d.e+-]+"""), r"\1N"),
    (re.compile(r": done in [\d.]+ m?s$", re.MULTILINE), ": done"),
    (re.compile(r"\bin [\d.]+ (m?s|min)\b"), "in N s"),
    (re.compile(r"\bseconds=[\d.e+-]+"), "seconds=N"),
    (re.compile(r'("(?:write|read)_mbs": )[\d.e+-]+'), r"\1N"),
    # The seconds of `tamis inspect --cost`: how many rounds of requests it counts depends on which thread is faster.
    (re.compile(r"^(\S.* \d+  +[\d.]+ \w*B +)\d+\.\d\d(?= +\d+\.\d{4}$)", re.MULTILINE), r"\1N"),
    # Times of the clock: in logs, and in the record of a folder.
    (re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:?\d\d|Z)?"), "TIME"),
    (re.compile(r'("time": )\d+\.\d+'), r"\1TIME"),
    # Numbers of files on their disk, by which the record of a folder knows its sources again.
    (re.compile(r'("identity": \[\s*\d+,\s*\d+,\s*)\d+'), r"\1NUMBER"),
    # Numbers of processes, ports, addresses in memory, and random parts of temporary names.
    (re.compile(r"^(TIME tamis [\w-]+)\[\d+\]", re.MULTILINE), r"\1[PROCESS]"),
    (re.compile(r'("process": )\d+'), r"\1PROCESS"),
    (re.compile(r"127\.0\.0\.1:\d{4,5}"), "127.0.0.1:PORT"),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "ADDRESS"),
    (re.compile(r"(HOST-)\d+-[0-9a-f]+"), r"\1PROCESS-TOKEN"),
    # Versions and the machine, which pages of `tamis report` and `tamis --version` show.
    (re.compile(r"(ZFP codec \d+, kernel ).*"), r"\1KERNEL"),
)

UNSTABLE_FILES = re.compile(r"\.svg$|\.icechunk/")
"""Files whose bytes no two runs share, of which only the name is recorded: pictures of measured speeds, and Icechunk's
files, which have random names and times."""


def run_apart(chosen: list[Sequence], folder: Path, processes: int, keep: Path | None) -> dict[str, dict[str, str]]:
    """Run sequences, each in a fork of this process, which did nothing else, and return the digests of all runs."""
    digests: dict[str, dict[str, str]] = {}
    # Names of folders are equally long, because sizes that are printed depend on the lengths of paths.
    waiting = [(folder / f"{number:04}", sequence) for number, sequence in enumerate(chosen)]
    running: dict[int, tuple[Path, Sequence]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            place, sequence = waiting.pop(0)
            sys.stdout.flush()
            if not (process := os.fork()):
                status = 1
                try:
                    run_in_fork(sequence, place)
                    status = 0
                finally:
                    os._exit(status)
            running[process] = place, sequence
        process, status = os.wait()
        if process not in running:
            continue
        place, sequence = running.pop(process)
        result = place.with_suffix(".result")
        done: dict[str, Parts] = pickle.loads(result.read_bytes()) if result.exists() else {}
        if status:
            line = sequence.lines[len(done)]
            done[f"{sequence.name}: {line}"] = {"error": f"the process ended with the status {status}".encode()}
        for name, parts in done.items():
            if name in digests:
                raise ValueError(f"expected each run once, got {name!r} twice")
            digests[name] = {part: digest(content) for part, content in parts.items()}
            if keep is not None:
                keep_parts(keep, name, parts)
        for path in folder.glob(f"{place.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return digests


def run_in_fork(sequence: Sequence, place: Path) -> None:
    """Run a sequence in a folder of its own, and leave the parts of its runs in a file beside it."""
    signal.alarm(MOST_SECONDS)
    temporary = place.with_suffix(".temporary")
    place.mkdir()
    temporary.mkdir()
    copy_source(sequence.sources, place.parent / "inputs", place)
    os.chdir(place)
    for name in [name for name in os.environ if name.startswith(("TAMIS", "HDF5"))]:
        del os.environ[name]
    tools = Path(sys.executable).parent
    os.environ |= {"COLUMNS": "100", "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary), "TZ": "UTC"}
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    tempfile.tempdir = None
    time.tzset()
    names: dict[str, Any] = {
        **{"tamis": tamis, "np": np, "h5py": h5py, "netCDF4": netCDF4, "xarray": xarray, "zarr": zarr, "Path": Path},
        **{"pickle": pickle, "field": field, "values_of": values_of, "run_tamis": run_command},
    }
    done: dict[str, Parts] = {}
    for line in sequence.lines:
        before = files_in(place)
        parts = run_line(line, names, temporary)
        after = files_in(place)
        parts |= {f"file {name}": content for name, content in after.items() if before.get(name) != content}
        if gone := sorted(before.keys() - after.keys()):
            parts["gone"] = "\n".join(gone).encode()
        name = f"{sequence.name}: {line}"
        done[name if name not in done else f"{name} (again)"] = stable_parts(parts, place)
        place.with_suffix(".result").write_bytes(pickle.dumps(done))


def run_line(line: str, names: dict[str, Any], temporary: Path) -> Parts:
    """Run one line, and return what it printed and gave."""
    parts: Parts = {}
    with printing_to(temporary / "stdout", temporary / "stderr"):
        try:
            if line.startswith("$ "):
                done = subprocess.run(["bash", "-c", line[2:]], stdin=subprocess.DEVNULL, check=False)
                parts["exit code"] = str(done.returncode).encode()
            elif line.startswith("tamis ") or line == "tamis":
                parts["exit code"] = str(run_command(*shlex.split(line)[1:])).encode()
            else:
                parts["result"] = described(run_python(line, names)).encode()
        except Exception as error:
            parts["error"] = described_error(error).encode()
    for stream in ("stdout", "stderr"):
        parts[stream] = (temporary / stream).read_bytes()
        (temporary / stream).unlink()
    return parts


@contextmanager
def printing_to(output: Path, errors: Path) -> Iterator[None]:
    """Send what this process prints into files, also what C libraries and other processes print."""
    kept = [os.dup(stream) for stream in (0, 1, 2)]
    sys.stdout.flush()
    with open(os.devnull, "rb") as nothing, output.open("ab") as first, errors.open("ab") as second:
        for stream, file in enumerate((nothing, first, second)):
            os.dup2(file.fileno(), stream)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, copy in enumerate(kept):
            os.dup2(copy, stream)
            os.close(copy)


def run_command(*words: str) -> int:
    """Run `tamis` with such words in this process, and return the exit code."""
    before = sys.argv
    sys.argv = ["tamis", *words]
    try:
        with every_warning():
            command_line([*words], prog_name="tamis")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.argv = before
    return 0


def run_python(line: str, names: dict[str, Any]) -> Any:
    """Run statements, and return the value of the last one if it is an expression."""
    body = ast.parse(line).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
    try:
        with every_warning():
            exec(compile(ast.Module(body, []), "line", "exec"), names)
            return eval(compile(ast.Expression(last.value), "line", "eval"), names) if last else None
    finally:
        warnings.formatwarning = before


@contextmanager
def every_warning() -> Iterator[None]:
    """Show warnings for users every time, and those for developers never."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        yield


def values_of(path: Any) -> dict[str, Any]:
    """Return all values of a file as `tamis.open` reads them; of a dataset that cannot be read, the error."""
    values: dict[str, Any] = {}
    with tamis.open(path) as file:
        for name in file:
            try:
                values[name] = file[name][()]
            except Exception as error:
                values[name] = described_error(error)
    return values


def described_error(error: BaseException) -> str:
    """Return the type and text of an error, without the lines of code where it was raised."""
    return f"{type(error).__name__}: {error}"


def described(value: Any) -> str:
    """Return a text of a result that differs if the result does."""
    if isinstance(value, xarray.DataTree):
        return "\n".join(f"group {path}\n{described(node.to_dataset())}" for path, node in value.subtree_with_keys)
    if isinstance(value, xarray.Dataset):
        lines = [f"dimensions {dict(value.sizes)}", f"attributes {described(value.attrs)}"]
        for name, variable in value.variables.items():
            encoding = {key: each for key, each in variable.encoding.items() if key not in ("source", "original_shape")}
            lines.append(f"{name} {variable.dims} {variable.dtype} chunks {variable.chunks}")
            lines += [f"  {described(variable.attrs)}", f"  {described(encoding)}"]
            try:
                lines.append(f"  {described(variable.values)}")
            except Exception as error:
                lines.append(f"  {described_error(error)}")
        return "\n".join(lines)
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return f"{value.dtype} {value.shape} {described(value.tolist())}"
    if isinstance(value, np.ndarray):
        some = np.array2string(value.ravel()[:4], separator=",")
        return f"{value.dtype} {value.shape} {digest(np.ascontiguousarray(value).tobytes())} {some}"
    if isinstance(value, Mapping) and not hasattr(value, "to_json"):
        return "{" + ", ".join(f"{key!r}: {described(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + "(" + ", ".join(map(described, value)) + ")"
    if isinstance(value, (bytes, bytearray, memoryview)) and len(value) > 64:
        return f"{len(value)} bytes {digest(bytes(value))}"
    if hasattr(value, "to_json"):  # results of tamis: their text, and all that they have
        return f"{type(value).__name__}\n{value}\n{value.to_json(indent=1)}"
    return repr(value)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files in a folder by name, and the empty folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if UNSTABLE_FILES.search(name):
            name = re.sub(r"\.icechunk/.*", ".icechunk/", name)
            found[name] = b""
        elif path.is_symlink():
            found[name] = f"link to {path.readlink()}".encode()
        elif path.is_file():
            found[name] = path.read_bytes()
        elif path.is_dir() and not any(path.iterdir()):
            found[f"{name}/"] = b""
    return found


def stable_parts(parts: Parts, folder: Path) -> Parts:
    """Return parts without what no two runs share, in names and texts; files that are no text stay as they are.

    Lines of JSON, of which each process writes a file, are in order of their text: the processes finish in any order.
    """
    stable: Parts = {}
    for part, content in parts.items():
        name = stable_text(part, folder)
        with suppress(UnicodeDecodeError):
            content = stable_text(content.decode(), folder).encode()  # noqa: PLW2901
        stable[name] = stable.get(name, b"") + content
        if name.endswith(".jsonl"):
            stable[name] = b"".join(sorted(stable[name].splitlines(keepends=True)))
    return stable


def stable_text(text: str, folder: Path) -> str:
    """Return a text with placeholders for what no two runs, folders, machines or environments share."""
    for path, instead in (
        (str(folder), "FOLDER"),
        (str(folder.with_suffix(".temporary")), "TEMPORARY"),
        (str(folder.parent), "RECORDER"),
        (sys.prefix, "PYTHON"),
        (sys.base_prefix, "BASE_PYTHON"),
    ):
        text = text.replace(path, instead)
    for fact, instead in (
        (platform.platform(), "SYSTEM"),
        (f"{platform.python_version()}, {np.__version__}", "PYTHON, NUMPY"),
        (f"tamis {tamis.__version__}", "tamis VERSION"),
    ):
        text = text.replace(fact, instead)
    host = socket.gethostname()
    text = re.sub(rf'(?<=["-]){re.escape(host)}(?=["-])', "HOST", text)
    for pattern, instead in REPLACED:
        text = pattern.sub(instead, text)
    return without_speeds(text)


def without_speeds(text: str) -> str:
    """Return a text without the numbers in the columns of tables of `tamis plan` that have measured speeds."""
    columns: list[tuple[int, int]] = []
    lines = []
    for line in text.splitlines(keepends=True):
        found = [match.span() for match in re.finditer(r"\w+ MB/s here", line)]
        letters = [*line]
        for start, end in () if found else columns:
            if set(line[start:end]) <= set(" .0123456789"):
                letters[start:end] = " " * len(letters[start:end])
        columns = found or columns
        lines.append("".join(letters))
    return "".join(lines)


def digest(content: bytes) -> str:
    return f"{hashlib.sha256(content).hexdigest()} {len(content)}"


def keep_parts(folder: Path, name: str, parts: Parts) -> None:
    """Write the parts of a run as files, in a folder that has its name."""
    words = re.sub(r"[^\w.=-]+", "_", name)[:100]
    place = folder / f"{words}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "name").write_text(f"{name}\n")
    for part, content in parts.items():
        (place / part.replace("/", "%")).write_bytes(content)


def import_all() -> None:
    """Import once what the forks need, rather than in each of them.

    Not hdf5plugin: it gives HDF5 filters that most users' processes lack, and HDF5 then copies datasets otherwise.
    """
    for name in ("h5netcdf", "dask.array", "imagecodecs", "fsspec", "obstore", "zarr.codecs"):
        with suppress(ImportError):
            importlib.import_module(name)
    for module in pkgutil.walk_packages(tamis.__path__, "tamis."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                importlib.import_module(module.name)
    xarray.backends.list_engines()


@contextmanager
def recorders_folder(folder: Path) -> Iterator[Path]:
    """Write the sources into a new folder of a fixed name, because some targets contain the paths of their sources."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        sys.exit(f"{folder}: exists: another recording is at work or was killed: remove it, or choose --folder")
    try:
        (folder / "inputs").mkdir()
        with every_warning(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write_sources(folder / "inputs")
        yield folder
    finally:
        shutil.rmtree(folder)


def runs_named(words: Iterable[str]) -> list[Sequence]:
    """Return the sequences of which some run has one of the words in its name; all if there are no words."""
    words = tuple(words)
    every = list(sequences())
    return [
        each
        for each in every
        if not words or any(word in f"{each.name}: {line}" for word in words for line in each.lines)
    ]


def record(output: Path, folder: Path, processes: int, keep: Path | None, only: list[str]) -> int:
    """Record runs, and the bytes of the sources."""
    began, chosen = time.monotonic(), runs_named(only)
    if keep is not None and keep.exists():
        sys.exit(f"{keep}: exists: choose a new folder for --keep")
    with recorders_folder(folder):
        sources = {name: digest(content) for name, content in files_in(folder / "inputs").items()}
        if len(chosen) > 20:
            import_all()
        runs = run_apart(chosen, folder, processes, keep)
    write_recording(output, sources, runs)
    print(f"{len(runs)} runs recorded in {output} in {time.monotonic() - began:.0f} s")
    return 0


def write_recording(output: Path, sources: dict[str, str], runs: dict[str, dict[str, str]]) -> None:
    about = {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}
    document = {"about": about, "sources": sources, "runs": dict(sorted(runs.items()))}
    output.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def compare(before: Path, after: Path) -> int:
    """Print the names of runs that differ, and the parts of each that do."""
    documents = [json.loads(path.read_text()) for path in (before, after)]
    for kind in ("about", "sources"):
        for name in differing(*(document[kind] for document in documents)):
            print(f"note: recorded with another {'version of ' if kind == 'about' else 'source '}{name}")
    recorded = [document["runs"] for document in documents]
    names = differing(*recorded)
    for name in names:
        if not all(name in runs for runs in recorded):
            print(f"{name}\n    only in {before if name in recorded[0] else after}")
            continue
        parts = [runs[name] for runs in recorded]
        print(f"{name}\n    " + "\n    ".join(f"{part}: {change(part, *parts)}" for part in differing(*parts)))
    total = len(recorded[0].keys() | recorded[1].keys())
    print(f"{len(names)} of {total} runs differ" if names else f"{total} runs: nothing differs")
    return 1 if names else 0


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]


def change(part: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return how a part changed: its length, or that it is there only before or after."""
    lengths = [parts[part].split()[1] if part in parts else "absent" for parts in (before, after)]
    return f"{lengths[0]} bytes, others" if lengths[0] == lengths[1] else f"{lengths[0]} bytes → {lengths[1]}"


def show(words: list[str], folder: Path) -> int:
    """Run what has one of the words in its name, and print all of it that is text."""
    kept = folder.with_name(f"{folder.name}-shown")
    try:
        with recorders_folder(folder):
            run_apart(runs_named(words), folder, 1, kept)
        for place in sorted(kept.iterdir()):
            name = (place / "name").read_text().rstrip()
            if not any(word in name for word in words):
                continue
            print(f"=== {name}")
            for path in sorted(place.iterdir()):
                content = path.read_bytes()
                is_file = path.name.startswith("file ")
                text = digest(content) if is_file else content.decode(errors="backslashreplace").rstrip()
                if path.name != "name" and text:
                    print(f"--- {path.name.replace('%', '/')}\n{text}")
    finally:
        shutil.rmtree(kept, ignore_errors=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, help_text in {"record": "run all, and write digests", "show": "run some, and print texts"}.items():
        each = verbs.add_parser(verb, help=help_text)
        if verb == "record":
            each.add_argument("output", type=Path, metavar="OUT.json")
            each.add_argument("-j", "--processes", type=int, default=2, metavar="N", help="sequences at a time")
            each.add_argument("--keep", type=Path, metavar="FOLDER", help="also keep texts and files, to compare them")
            each.add_argument(
                "--only", action="append", default=[], metavar="WORDS", help="runs with this in their name"
            )
        else:
            each.add_argument("words", nargs="+", metavar="NAME", help="names of runs, or parts of names")
        default = Path(tempfile.gettempdir()) / "tamis-recorded"
        each.add_argument("--folder", type=Path, default=default, help="the folder to work in, the same each time")
    each = verbs.add_parser("compare", help="name the runs that differ")
    for name in ("before", "after"):
        each.add_argument(name, type=Path, metavar=f"{name.upper()}.json")
    options = parser.parse_args()
    if options.verb == "compare":
        return compare(options.before, options.after)
    if options.verb == "show":
        return show(options.words, options.folder.resolve())
    return record(options.output, options.folder.resolve(), options.processes, options.keep, options.only)


if __name__ == "__main__":
    sys.exit(main())
