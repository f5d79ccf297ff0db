"""Run every command and every reader of tamis over a folder of files, and list what is wrong.

python tests/tools/sweep.py FOLDER -o problems.jsonl

Files are known by their first bytes, Zarr stores by their metadata. Each command is a process with a time limit; values
are compared with those that h5py, netCDF4 and zarr-python read, in processes of their own. A file may be refused only
where the library of its format cannot open it, or h5repack or nccopy cannot copy it. The exit code is 1 if anything is
wrong. `--fast` runs ten times as many files in the same time.

The steps `same` and `ways` copy a file in its own format, send it to the other one and back, and ask
`sweep_witness.py`, a process without tamis, what differs and was not listed. `other_writers.py` writes files to sweep.

Verdicts:
  traceback   a command or a reader fails with an error that is not one of tamis
  signal      a process dies
  timeout     a process takes longer than it may
  noise       a command that succeeds writes errors of a library
  silent      a command fails without a word
  leftovers   a command leaves files that nobody asked for
  refused     a file or an array is refused that the usual library reads and copies
  verify      verify calls a copy different, which repack calls equal
  values      values, types, shapes or attributes are not those of the usual library
  note        Zarr or references cannot hold what the file has; no fault
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

TAMIS = Path(sys.executable).with_name("tamis")
TOLERANCE = 0.001
NOISE = re.compile(
    r"Fatal Python|HDF5-DIAG|infinite loop|Exception ignored|ResourceWarning|RuntimeWarning|leaked|core dumped"
)
SIGNATURE = b"\x89HDF\r\n\x1a\n"
ZARR_METADATA = (".zgroup", ".zarray", "zarr.json")


@dataclass(frozen=True)
class Problem:
    """What is wrong with one file."""

    file: str
    step: str
    verdict: str
    text: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Done:
    """How a process ended; `code` is None if it took too long."""

    code: int | None
    output: str
    errors: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.code == 0

    @property
    def last_line(self) -> str:
        """The end of what it said."""
        lines = [line for line in (self.errors or self.output).strip().splitlines() if not line.endswith(": done")]
        return " ".join(lines[-3:])[-600:]


class Sweep:
    """All steps for one file, in a folder of its own.

    Parameters
    ----------
    path, name
        The file, and how problems name it.
    folder
        A new folder for targets.
    limit
        Seconds that a process may take.
    steps
        Names of steps to run; all if empty.
    """

    def __init__(self, path: Path, name: str, folder: Path, limit: float, steps: frozenset[str], fast: bool) -> None:
        self.fast = fast
        self.path, self.name, self.folder, self.limit, self.steps = path, name, folder, limit, steps
        self.problems: list[Problem] = []
        self.expected: set[str] = set()
        self.pending: list[tuple[str, list[Any]]] = []
        self.kind = kind_of(path)
        self.readable = not self.read("readable", "can_open", path, judge=False)

    def run(self) -> list[Problem]:
        """Run the steps and return what is wrong."""
        for step in (
            self.look,
            self.plan,
            self.opened,
            self.lossless,
            self.lossy,
            self.rounded,
            self.zarr,
            self.export,
            self.same,
            self.ways,
        ):
            if not self.steps or step.__name__ in self.steps:
                step()
        return self.problems

    def look(self) -> None:
        """Inspect as text, JSON and CDL."""
        for options in ((), ("--json",), ("--cdl",)):
            self.must(f"inspect {' '.join(options)}".strip(), "inspect", self.path, *options)

    def plan(self) -> None:
        """Plan for a bound."""
        self.must("plan", "plan", self.path, "--require", "*:rel=0.01")

    def opened(self) -> None:
        """Read every array by `tamis.open` and by xarray."""
        if self.readable:
            self.read("open", "tamis_opens", self.path)
            if (
                isinstance(answer := self.read("reference", "usual_engine", self.path, judge=False), list)
                and not answer
            ):
                self.read("xarray", "engines", self.path)
            else:
                self.read("xarray", "engine_opens", self.path)

    def lossless(self) -> None:
        """Repack without loss and verify; copy as nccopy does."""
        filters = ("-f", "*:shuffle|deflate(1)", "--min-size", 1, "--larger", "--no-history")
        self.copied("lossless", "lossless.h5", *filters, tolerance=None)
        target = self.folder / "copy.nc"
        call = self.with_drops if self.kind == "zarr" else self.must
        call("copy", "copy", self.path, target, "-d", 1, "-s", target=target)

    def lossy(self) -> None:
        """Repack by zfp, and verify what its filters record."""
        filters = ("-f", f"*:zfp(accuracy={TOLERANCE})", "--min-size", 1, "--larger")
        self.copied("zfp", "zfp.h5", *filters, tolerance=TOLERANCE)

    def rounded(self) -> None:
        """Repack with rounded values, and verify what their attributes record."""
        filters = ("-f", f"*:absolute({TOLERANCE})|shuffle|deflate(1)", "--min-size", 1, "--larger")
        self.copied("absolute", "absolute.h5", *filters, tolerance=TOLERANCE)

    def zarr(self) -> None:
        """Repack to Zarr and back."""
        for version in (2, 3):
            name = f"v{version}.zarr"
            if not self.copied(f"zarr {version}", name, "--zarr-format", version, tolerance=None):
                continue
            self.copied(f"zarr {version} back", f"v{version}.h5", tolerance=None, source=self.folder / name)

    def export(self) -> None:
        """Write references, where the file is HDF5."""
        if self.kind == "hdf5":
            target = self.folder / "references.json"
            self.with_drops("export", "export", self.path, "--to", "kerchunk", "-o", target, target=target)

    def same(self) -> None:
        """Copy in the same format, as it is and with other filters; all of it must be there by other readers."""
        version = 2 if self.path.is_dir() and (self.path / "zarr.json").exists() is False else 3
        for step, options in (("same", ()), ("filtered", ("-f", "*:shuffle|deflate(4)", "--min-size", 1, "--larger"))):
            name = f"{step}.{'zarr' if self.kind == 'zarr' else 'nc' if self.path.suffix == '.nc' else 'h5'}"
            target = self.folder / name
            words = ("--no-history", "--zarr-format", version) if self.kind == "zarr" else ("--no-history",)
            drops, notes = self.listed(step, self.path, target, *options, *words[1:])
            if notes is not None:
                self.verified(step, self.path, target, *drops)
                names = [text.removeprefix("--drop=") for text in drops]
                self.witness(step, "copy", self.path, target, bool(options), names)

    def ways(self) -> None:
        """Send a file to the other format and back; what other readers miss must be listed."""
        first, second = ("there.nc", "back.zarr") if self.kind == "zarr" else ("there.zarr", "back.h5")
        there, back = self.folder / first, self.folder / second
        drops, notes = self.listed("there", self.path, there)
        if notes is None:
            return
        self.verified("there", self.path, there, *drops)
        self.witness("there", "ways", self.path, there, notes)
        version = 2 if self.path.is_dir() and (self.path / "zarr.json").exists() is False else 3
        more, others = self.listed(
            "back", there, back, *(("--zarr-format", version) if second.endswith("zarr") else ())
        )
        if others is None:
            return
        self.verified("back", there, back, *more)
        names = [name.removeprefix("--drop=") for name in (*drops, *more)]
        if self.kind == "zarr":
            self.witness("back", "back", self.path, back, [*notes, *others], names)
        else:
            self.witness("back", "back", self.path, back, [*notes, *others], names)

    def listed(self, step: str, source: Path, target: Path, *words: object) -> tuple[list[str], list[str] | None]:
        """Repack; return the options for what is left out, and the notes, None if it failed."""
        options = ("--no-history", "--json", *words)
        done = self.command(step, "repack", source, target, *options, target=target)
        drops: list[str] = []
        if done.code == 1:
            self.add(step, "note" if self.readable else "", done.last_line, done.seconds)
            found = re.findall(r"--drop (?:'([^']+)'|(\S+))", done.errors)
            drops = [f"--drop={quoted or plain}" for quoted, plain in found]
            if drops:
                done = self.command(f"{step} with --drop", "repack", source, target, *drops, *options, target=target)
                if done.code == 1:
                    self.add(f"{step} with --drop", "refused", done.last_line, done.seconds)
        if not done.ok:
            return drops, None
        return drops, json.loads(done.output)["notes"]

    def verified(self, step: str, source: Path, target: Path, *options: str) -> None:
        """Ask verify, which must call a copy equal."""
        done = self.command(f"{step}, verify", "verify", source, target, *options)
        if done.code not in (0, None):
            self.add(f"{step}, verify", "verify", done.last_line or done.output[-300:], done.seconds)

    def witness(self, step: str, function: str, *arguments: Any) -> None:
        """Keep a question for `sweep_witness`, which knows no tamis."""
        self.pending.append((step, [function, *(str(item) if isinstance(item, Path) else item for item in arguments)]))

    def ask(self) -> None:
        """Ask all that is pending of `sweep_witness`."""
        for (step, _), texts in zip(self.pending, witness([words for _, words in self.pending]), strict=True):
            for text in texts:
                self.add(f"{step}, witness", "values", text, 0.0)

    def copied(
        self, step: str, name: str, *options: object, tolerance: float | None, source: Path | None = None
    ) -> bool:
        """Repack, verify and compare the values; return whether there is a copy."""
        origin, target = source or self.path, self.folder / name
        call = self.with_drops if name.endswith(".zarr") or origin.is_dir() else self.must
        done = call(step, "repack", origin, target, *options, target=target)
        if not done.ok:
            return False
        bound = () if tolerance is None else ("--bound", "recorded")
        verified = self.command(f"{step}, verify", "verify", origin, target, *bound)
        dropped = "left out" in done.output
        if verified.code not in (0, None) and not dropped:
            self.add(f"{step}, verify", "verify", verified.last_line or verified.output[-300:], verified.seconds)
        if self.readable and not dropped:
            self.read(f"{step}, values", "copies", origin, target, tolerance)
        return True

    def must(self, step: str, *arguments: object, target: Path | None = None) -> Done:
        """Run a command that may fail only where others fail, too."""
        done = self.command(step, *arguments, target=target)
        told = step.startswith("inspect") and re.search(r'problem(  |": ")', done.output)  # it fails to say so
        if done.code in (1, 2, 3) and not told and self.readable and not self.others_refuse():
            self.add(step, "refused", done.last_line, done.seconds)
        return done

    def with_drops(self, step: str, *arguments: object, target: Path) -> Done:
        """Run a command that may refuse some arrays, and again without those that its error says to leave out."""
        done = self.command(step, *arguments, target=target)
        if done.code != 1:
            return done
        self.add(step, "note" if self.readable else "", done.last_line, done.seconds)
        drops = re.findall(r"--drop (?:'([^']+)'|(\S+))", done.errors)
        if not drops:
            return done
        options = [text for names in drops for text in ("--drop", names[0] or names[1])]
        return self.command(f"{step} with --drop", *arguments, *options, target=target)

    def command(self, step: str, *arguments: object, target: Path | None = None) -> Done:
        """Run a command and judge how it ends."""
        words = [str(item) for item in arguments]
        done = run_here(words, self.folder) if self.fast else run([TAMIS, *words], self.limit, self.folder)
        if done.code is None:
            self.add(step, "timeout", f"more than {self.limit:g} s", done.seconds)
        elif done.code < 0 or done.code > 3:
            self.add(step, "signal", f"exit code {done.code}: {done.last_line}", done.seconds)
        elif "Traceback (most recent call last)" in done.errors:
            self.add(step, "traceback", done.last_line, done.seconds)
        elif NOISE.search(done.errors):
            self.add(step, "noise", done.errors[-300:], done.seconds)
        elif done.code and not (done.errors + done.output).strip():
            self.add(step, "silent", f"exit code {done.code}", done.seconds)
        if target is not None and done.ok:
            self.expected.add(target.name)
        if surplus := sorted({item.name for item in self.folder.iterdir()} - self.expected):
            self.add(step, "leftovers", ", ".join(surplus), done.seconds)
            self.expected.update(surplus)
        return done

    def read(self, step: str, function: str, *arguments: Any, judge: bool = True) -> list[str]:
        """Call a function of `sweep_readers` in a process of its own and judge what it returns."""
        started = time.monotonic()
        answer: Any = call_reader(function, arguments) if self.fast else in_process(function, arguments, self.limit)
        seconds = time.monotonic() - started
        if judge and isinstance(answer, list):
            for text in answer:
                failed = "traceback" if text.startswith("traceback: ") else "values"
                refused = "cannot" in text or "is not there by engine" in text or re.match(r"\w+Error: ", text)
                self.add(step, failed if failed == "traceback" or not refused else "refused", text, seconds)
        elif judge:
            self.add(step, "timeout" if answer is None else "signal", f"exit code {answer}", seconds)
        return answer if isinstance(answer, list) else [f"exit code {answer}"]

    def others_refuse(self) -> bool:
        """Return whether the usual program cannot copy the file, either."""
        if self.kind == "zarr":
            return bool(self.read("readable", "can_read", self.path, judge=False))
        target = self.folder / "others"
        program = ["nccopy", "-4"] if self.kind == "classic" else ["h5repack"]
        done = run([*program, str(self.path), str(target)], self.limit, self.folder)
        target.unlink(missing_ok=True)
        return not done.ok

    def add(self, step: str, verdict: str, text: str, seconds: float) -> None:
        """Note a problem."""
        if verdict:
            text = text.replace(str(self.folder), "TARGET").replace(str(self.path), "SOURCE")
            self.problems.append(Problem(self.name, step, verdict, text, round(seconds, 2)))


def run(arguments: list[Any], limit: float, folder: Path) -> Done:
    """Run a program in a folder, at most for so many seconds."""
    started = time.monotonic()
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            code = None
    texts = [text.decode(errors="replace") for text in (output, errors)]
    return Done(code, texts[0], texts[1], time.monotonic() - started)


def run_here(arguments: list[str], folder: Path) -> Done:
    """Run a command in this process."""
    import sweep_readers

    started = time.monotonic()
    code, output, errors = sweep_readers.command(arguments, folder)
    return Done(code, output, errors, time.monotonic() - started)


LOCAL = threading.local()


def witness(questions: list[list[Any]]) -> list[list[str]]:
    """Return what functions of `sweep_witness` find, asked of a process of this thread."""
    if not questions:
        return []
    if not hasattr(LOCAL, "witness") or LOCAL.witness.poll() is not None:
        LOCAL.witness = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("sweep_witness.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
    LOCAL.witness.stdin.write(json.dumps(questions) + "\n")
    LOCAL.witness.stdin.flush()
    answers: list[list[str]] = json.loads(LOCAL.witness.stdout.readline())
    if len(questions) > 1 and any(text.startswith("witness: died") for texts in answers for text in texts):
        return [witness([question])[0] for question in questions]
    return answers


def call_reader(function: str, arguments: tuple[Any, ...]) -> list[str]:
    """Return what a function of `sweep_readers` returns or raises, in this process."""
    import sweep_readers

    return sweep_readers.called(function, arguments)


def whole(path: Path, name: str, folder: Path, limit: float, steps: frozenset[str]) -> Any:
    """Run all steps in this process; return the problems, and what is to be asked of the witness."""
    own = Sweep(path, name, folder, limit, steps, fast=True)
    return own.run(), own.pending


def start_server() -> None:
    """Start the process that has imported everything and is forked for each call of `in_process`."""
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), before)))
    multiprocessing.set_forkserver_preload(["sweep_readers"])
    forkserver.ensure_running()
    os.environ["PYTHONPATH"] = before


def in_process(function: str, arguments: tuple[Any, ...], limit: float) -> list[str] | int | None:
    """Return what a function of `sweep_readers` returns.

    Its process's exit code if it dies; None if it takes too long.
    """
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(function, arguments, sender))
    process.start()
    sender.close()
    try:
        answer = receiver.recv() if receiver.poll(limit) else None
    except EOFError:
        process.join()
        return process.exitcode or 1
    finally:
        receiver.close()
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()
    return answer


def _answer(function: str, arguments: tuple[Any, ...], results: Any) -> None:
    """Call `sweep_readers`, in a process that may import its libraries."""
    import sweep_readers

    sweep_readers.run(function, arguments, results)


def kind_of(path: Path) -> str | None:
    """Return whether there is a Zarr store, an HDF5 file, or a classic netCDF file."""
    if path.is_dir():
        return "zarr" if any((path / name).exists() for name in ZARR_METADATA) else None
    with path.open("rb") as file:
        start = file.read(4)
        if start[:3] == b"CDF" and start[3:] in (b"\1", b"\2", b"\5"):
            return "classic"
        offset, size = 0, path.stat().st_size
        while offset + len(SIGNATURE) <= size:
            file.seek(offset)
            if file.read(len(SIGNATURE)) == SIGNATURE:
                return "hdf5"
            offset = max(512, 2 * offset)
    return None


def files_in(folder: Path) -> Iterator[Path]:
    """Return the files and stores in a folder and below it, or the one that is named."""
    if folder.is_file() or kind_of(folder):
        yield folder
        return
    for item in sorted(folder.iterdir()):
        if item.is_dir() or kind_of(item):
            yield from files_in(item)


def sweep(path: Path, root: Path, limit: float, steps: frozenset[str], fast: bool) -> list[Problem]:
    """Run the steps for one file."""
    name = str(path.relative_to(root)) if path != root else path.name
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        own = None
        if fast:
            answer: Any = in_process("whole", (path, name, Path(folder), limit, steps), limit)
            if not isinstance(answer, tuple):
                text = f"more than {limit:g} s" if answer is None else f"{answer}"
                return [Problem(name, "all", "timeout" if answer is None else "signal", text)]
            own = Sweep.__new__(Sweep)
            own.name, own.path, own.folder = name, path, Path(folder)
            own.problems, own.pending = answer
        else:
            own = Sweep(path, name, Path(folder), limit, steps, fast)
            own.run()
        own.ask()
    return own.problems


def chosen(options: argparse.Namespace) -> list[Path]:
    """Return the files to sweep, in random order if only some of them are wanted."""
    done = set()
    if options.skip_done and options.output and options.output.exists():
        done = {json.loads(line)["file"] for line in options.output.read_text().splitlines()}
    files = [path for path in files_in(options.folder) if str(path.relative_to(options.folder)) not in done]
    files = [path for path in files if path.is_dir() or path.stat().st_size <= options.max_bytes]
    if options.sample:
        random.Random(options.seed).shuffle(files)
    return files[: options.sample or None]


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: Path(text).resolve(), help="a folder, a file or a Zarr store")
    parser.add_argument("-o", "--output", type=Path, help="file for one line of JSON for each problem and each file")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="files at a time (2)")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a process may take (120)")
    parser.add_argument(
        "--steps", default="", help="only these: look,plan,opened,lossless,lossy,rounded,zarr,export,same,ways"
    )
    parser.add_argument("--sample", type=int, default=0, help="only so many files, chosen at random")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--max-bytes", type=int, default=50_000_000, help="leave out larger files (50000000)")
    parser.add_argument(
        "--fast", action="store_true", help="fork commands from one process: does not show how they end"
    )
    parser.add_argument("--skip-done", action="store_true", help="leave out files that are in the output; add to it")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Sweep a folder, print what is wrong, and return the exit code."""
    options = parsed(arguments)
    steps = frozenset(filter(None, options.steps.split(",")))
    files = chosen(options)
    start_server()
    output = options.output.open("a" if options.skip_done else "w") if options.output else None
    counts: Counter[str] = Counter()

    def one(path: Path) -> tuple[Path, list[Problem]]:
        return path, sweep(path, options.folder, options.limit, steps, options.fast)

    with ThreadPoolExecutor(options.jobs) as pool:
        for path, problems in pool.map(one, files):
            counts.update(problem.verdict for problem in problems)
            name = str(path.relative_to(options.folder))
            lines = [asdict(problem) for problem in problems] or [
                {"file": name, "step": "", "verdict": "ok", "text": ""}
            ]
            for line in lines:
                if line["verdict"] not in ("ok", "note"):
                    print(f"{line['verdict']:<10} {line['file']}: {line['step']}: {line['text']}", flush=True)
                if output:
                    output.write(json.dumps(line) + "\n")
                    output.flush()
    print(f"{len(files)} files: " + (", ".join(f"{count} {name}" for name, count in counts.most_common()) or "ok"))
    return 1 if set(counts) - {"note"} else 0


if __name__ == "__main__":
    if shutil.which("h5repack") is None:
        sys.exit("expected h5repack, which tells what may be refused, found none: apt-get install hdf5-tools")
    sys.exit(main())
