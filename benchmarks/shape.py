"""The shape of the package, in numbers: ``python benchmarks/shape.py [--json] [--before FILE] [--circles]``.

How many functions, files, names and places somebody meets who follows a chunk, a command, a class, an import or an
option through the package. With --json, the same for programs; with --before, what such a file says stands beside it.
With --circles, it says which imports make each circle of modules instead.

What runs is the package that is installed; what is read is `src/tamis` beside this folder. A note says if they differ.
The docstrings of `Trace`, `growing`, `at_first`, `start`, `classes`, `imports`, `options` and `size` say exactly how
each number is counted. None of them is a limit.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from source_tree import FUNCTIONS, Package, When, is_for_types, own_members, with_time
from turns import times_in_turns

SOURCES = Path(__file__).resolve().parents[1] / "src"
RECIPE = {"*": "zfp(accuracy=0.001)"}
CHUNKS = 10
PLANS = ("Copy", "Recompress", "Recode")
"""Records that say how an array is stored."""
OPTIONS = ("self_contained", "min_size")
"""Options of repack that reach from the command line to where they act."""
ARRAY_FACTS = (
    {"dtype", "type"},
    {"chunk_shape", "chunks", "chunk", "storage"},
    {"pipeline", "filters", "codecs", "storage"},
    {"attributes", "attrs"},
    {"dimensions", "dims"},
    {"layout"},
    {"fill", "fill_value"},
)
GROUP_FACTS = (
    {"arrays", "array", "variables", "datasets"},
    {"groups"},
    {"links"},
    {"attributes", "attrs"},
    {"dimensions", "dims"},
    {"header", "model"},
)


class Measure(NamedTuple):
    """A number, with what it is the number of."""

    name: str
    value: float
    details: str = ""


# What runs: each in a process of its own, as `shape.py --in-process NAME`.


class Trace:
    """The functions of tamis that run meanwhile, in all threads that are started.

    A function is a `def` or a `lambda`. Comprehensions and generator expressions are parts of theirs, and methods that
    `dataclass` makes are in no file. What runs while a module is imported does not count. The depth is the number of
    functions of tamis on the stack of the thread; those of other packages in between do not count.
    """

    def __init__(self) -> None:
        import tamis

        self.calls: Counter[tuple[str, str, int]] = Counter()
        self.depths: dict[tuple[str, str, int], int] = {}
        self._folder = str(Path(tamis.__file__).parent) + os.sep
        self._state = threading.local()
        self._lock = threading.Lock()

    def __enter__(self) -> Trace:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(self._folder):
            return
        state, step = vars(self._state), 1 if event == "call" else -1
        if code.co_name == "<module>":
            state["imports"] = state.get("imports", 0) + step
        elif not state.get("imports") and (not code.co_name.startswith("<") or code.co_name == "<lambda>"):
            state["depth"] = state.get("depth", 0) + step
            if step == 1:
                function = code.co_filename.removeprefix(self._folder), code.co_qualname, code.co_firstlineno
                with self._lock:
                    self.calls[function] += 1
                    self.depths[function] = max(self.depths.get(function, 0), state["depth"])


def traced(job: Callable[[], object]) -> Trace:
    """Run a job once, and return what ran."""
    with Trace() as trace:
        job()
    return trace


def write(path: Path, datasets: int, chunks: int) -> None:
    """Write a file with a title, and arrays with units and a fill value, in chunks of 1 MiB.

    Smaller ones would all be done in one native call.
    """
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        file.attrs["title"] = "a smooth field"
        for number in range(datasets):
            rows = np.linspace(number, number + 6, 512 * chunks)[:, np.newaxis] + np.linspace(0, 1, 512)
            made = file.create_dataset(f"v{number}", data=(280 + np.sin(rows)).astype("f4"), chunks=(512, 512))
            made.attrs.update({"units": "K", "_FillValue": np.float32(-999)})


def growing(folder: Path, few: tuple[int, int], many: tuple[int, int], ending: str) -> dict[str, float]:
    """Count the functions that run more often in a repack of a file of more datasets or chunks, and say how deep.

    Both files are repacked once before, so that what is imported or kept the first time does not count.
    """
    import tamis

    traces = []
    for name, counts in (("few", few), ("many", many)):
        source = folder / f"{name}.nc"
        write(source, *counts)
        job = partial(tamis.repack, source, folder / f"{name}-out{ending}", RECIPE, threads=1, overwrite=True)
        job()
        traces.append(traced(job))
    less, more = traces
    found = [function for function, count in more.calls.items() if count > less.calls[function]]
    return {
        "functions": len(found),
        "files": len({file for file, _, _ in found}),
        "depth": max(more.depths[function] for function in found),
        "encode": sum("encode" in name.rpartition(".")[2] for _, name, _ in found),
    }


def at_first(folder: Path, job: Callable[[Path, Path], object]) -> dict[str, float]:
    """Count the files with functions that run in the first job of a process, and the modules that are loaded then.

    Modules of tamis are those that a program has imported after the job, with the package itself and its native one.
    """
    write(folder / "a.nc", 1, CHUNKS)
    trace = traced(partial(job, folder / "a.nc", folder))
    loaded = [name for name in sys.modules if name.partition(".")[0] == "tamis"]
    return {
        "functions": len(trace.calls),
        "files": len({file for file, _, _ in trace.calls}),
        "loaded": len(loaded),
    }


def chunk(folder: Path) -> dict[str, float]:
    """Functions that run for each chunk: a repack to zfp of 20 chunks against one of 10."""
    return growing(folder, (1, CHUNKS), (1, 2 * CHUNKS), ".nc")


def dataset(folder: Path) -> dict[str, float]:
    """Functions that run for each dataset of ten chunks: a repack to zfp of two datasets against one of one."""
    return growing(folder, (1, CHUNKS), (2, CHUNKS), ".nc")


def chunk_to_zarr(folder: Path) -> dict[str, float]:
    """As `chunk`, with a Zarr store as the target."""
    return growing(folder, (1, CHUNKS), (1, 2 * CHUNKS), ".zarr")


def dataset_to_zarr(folder: Path) -> dict[str, float]:
    """As `dataset`, with a Zarr store as the target."""
    return growing(folder, (1, CHUNKS), (2, CHUNKS), ".zarr")


def repack(folder: Path) -> dict[str, float]:
    """`tamis.repack` of one dataset to zfp in an HDF5 file."""
    import tamis

    return at_first(folder, lambda source, _: tamis.repack(source, folder / "b.nc", RECIPE, threads=1))


def repack_to_zarr(folder: Path) -> dict[str, float]:
    """`tamis.repack` of one dataset to zfp in a Zarr store."""
    import tamis

    return at_first(folder, lambda source, _: tamis.repack(source, folder / "b.zarr", RECIPE, threads=1))


def inspect(folder: Path) -> dict[str, float]:
    """`tamis.inspect` of a file with one dataset, and its text."""
    import tamis

    return at_first(folder, lambda source, _: str(tamis.inspect(source)))


def read(folder: Path) -> dict[str, float]:
    """`tamis.open` of a file, and one dataset read whole."""
    import tamis

    def job(source: Path, _: Path) -> None:
        with tamis.open(source) as file:
            file["v0"][:]

    return at_first(folder, job)


RUNS = {
    run.__name__: run for run in (chunk, dataset, chunk_to_zarr, dataset_to_zarr, repack, repack_to_zarr, inspect, read)
}


def in_process(name: str) -> dict[str, Any]:
    """Run one of `RUNS` in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--in-process", name], check=True, stdout=subprocess.PIPE, env=environment()
    )
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts


def environment() -> dict[str, str]:
    """Return an environment in which modules are compiled once."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def runs() -> Iterator[Measure]:
    """What a chunk, a dataset and a command pass: see `Trace`, `growing` and `at_first`."""
    for name in ("chunk", "dataset", "chunk_to_zarr", "dataset_to_zarr"):
        found = in_process(name)
        of = "a dataset of ten chunks" if name.startswith("dataset") else "a chunk"
        to = " to Zarr" if name.endswith("zarr") else ""
        words = f"in {found['files']} files, {found['encode']} named encode"
        yield Measure(f"functions {of} passes{to}", found["functions"], words)
        if of == "a chunk":
            yield Measure(f"depth of {of}{to}", found["depth"], "functions of tamis on the stack")
    for name, words in (
        ("repack", "repack HDF5 to HDF5"),
        ("repack_to_zarr", "repack HDF5 to Zarr"),
        ("inspect", "inspect"),
        ("read", "open and read"),
    ):
        found = in_process(name)
        yield Measure(f"files of {words}", found["files"], f"whose functions run: {found['functions']} functions")
        yield Measure(f"modules loaded by {words}", found["loaded"])


def start(rounds: int) -> Iterator[Measure]:
    """The time that `tamis inspect FILE` takes as a process, against Python that imports numpy and h5py.

    They take turns. The medians of all rounds are given, of elapsed seconds and of those of the processor, which differ
    less on a busy machine.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.nc"
        write(path, 1, 1)
        commands = (
            [str(Path(sys.executable).with_name("tamis")), "inspect", str(path)],
            [sys.executable, "-c", "import numpy, h5py"],
        )
        call = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL, env=environment())
        calls: list[Callable[[], object]] = [partial(call, command) for command in commands]
        times_in_turns(calls, 1)  # which may compile modules
        for name, clock in (("elapsed", time.perf_counter), ("processor", processor)):
            own, imports = map(statistics.median, times_in_turns(calls, rounds, clock))
            words = f"tamis inspect {own:.3f} s, numpy and h5py {imports:.3f} s"
            yield Measure(f"start of inspect, times numpy and h5py, {name}", round(own / imports, 2), words)


def processor() -> float:
    """Seconds that the processor worked for commands so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# What is read.


def describes_array(names: set[str]) -> bool:
    """Return whether a class with such members describes an array: `shape`, and at least two of `ARRAY_FACTS`."""
    return "shape" in names and sum(bool(names & fact) for fact in ARRAY_FACTS) >= 2


def describes_group(names: set[str]) -> bool:
    """Return whether a class with such members describes a file or group: no `shape`, but two of `GROUP_FACTS`.

    One of them must be the arrays or groups that it has.
    """
    found = [bool(names & fact) for fact in GROUP_FACTS]
    return "shape" not in names and any(found[:2]) and sum(found) >= 2


def classes(package: Package) -> Iterator[Measure]:
    """Classes that describe a file, group or array, the largest ones for an array, and the plan.

    Members of a class are its fields, methods, properties, and attributes that its methods set; with those of its bases
    in the package to find what it describes, and without them to say how large it is. Public are those that begin with
    no underscore. Fields of a plan are the names that its class and its bases annotate.
    """
    members = {name: package.members(name) for name in package.classes}
    arrays = [name for name, found in members.items() if describes_array(found)]
    groups = [name for name, found in members.items() if describes_group(found) and name not in arrays]
    yield Measure("classes that describe a file, group or array", len(arrays) + len(groups), f"{len(arrays)} an array")
    nodes = [package.classes[name] for name in arrays + groups]
    yield Measure("lines of these classes", sum((node.end_lineno or 0) - node.lineno + 1 for node in nodes))
    own = {name: own_members(package.classes[name]) for name in arrays}
    by_size = sorted(arrays, key=lambda name: (-len(own[name]), name))
    for place, name in zip(("largest", "second largest", "third largest"), by_size, strict=False):
        public = sum(not member.startswith("_") for member in own[name])
        words = f"{name}: {public} public, {len(members[name])} with its bases"
        yield Measure(f"members of the {place} class of an array", len(own[name]), words)
    if protocols := [name for name in by_size if is_protocol(package.classes[name])]:
        yield Measure("members of the largest protocol of an array", len(own[protocols[0]]), protocols[0])
    fields = {name: package.fields(name) for name in package.classes if name.rpartition(".")[2] in PLANS}
    if fields:
        largest = max(fields, key=lambda name: len(fields[name]))
        yield Measure("fields of the largest plan", len(fields[largest]), largest)


def is_protocol(node: ast.ClassDef) -> bool:
    """Return whether a class is derived from `Protocol` itself."""
    return any(getattr(base, "id", "") == "Protocol" for base in node.bases)


ALL_TIMES: tuple[When, ...] = ("at once", "late", "for types")


def imports(package: Package) -> Iterator[Measure]:
    """Circles of imports, and imports that are not at the top of a module, by line.

    A circle is a group of modules that all lead to each other (a strongly connected component). Late imports are those
    in functions and those by name, as `Package` finds them; `from tamis import _native` leads to the native module and
    not to the package. That a module's packages are imported before it does not count.
    """
    for words, times in (
        ("at the top of modules", ALL_TIMES[:1]),
        ("late ones counted", ALL_TIMES[:2]),
        ("late ones and those for types counted", ALL_TIMES),
    ):
        circles = package.circles(*times)
        sizes = f"of {' + '.join(str(len(circle)) for circle in circles)} modules" if circles else ""
        yield Measure(f"import circles, {words}", len(circles), sizes)
        largest = max(map(len, circles), default=0)
    yield Measure("modules in the largest circle", largest)
    late: set[tuple[str, int]] = set()
    own: set[tuple[str, int]] = set()
    blocks = 0
    for name, module in package.modules.items():
        for node, when in with_time(module.tree):
            blocks += is_for_types(node)
            if when == "late" and isinstance(node, ast.Import | ast.ImportFrom):
                late.add((name, node.lineno))
        own |= {(name, each.line) for each in package.imports[name] if each.when == "late"}
    yield Measure("imports inside functions", len(late), f"{len(late & own)} of tamis itself")
    yield Measure("lines that import modules of tamis by their names", len(own - late))
    yield Measure("TYPE_CHECKING blocks", blocks)


def options(package: Package) -> Iterator[Measure]:
    """Places that name an option of repack.

    A place is the innermost function or class, or else the statement at the top of a module, with one line or more that
    has the option's name, as in Python or as on the command line; comments and docstrings count.
    """
    for option in OPTIONS:
        words = re.compile(rf"\b{option}\b|--(no-)?{option.replace('_', '-')}\b")
        places = {
            (module.name, place_of(module.tree, number))
            for module in package.modules.values()
            for number, line in enumerate(module.text.splitlines(), start=1)
            if words.search(line)
        }
        files = len({module for module, _ in places})
        yield Measure(f"places that name the option {option}", len(places), f"in {files} files")


def place_of(tree: ast.Module, line: int) -> int:
    """Return the first line of the innermost function or class, or of the statement of a module, at a line."""
    within = [
        node
        for node in (*tree.body, *(node for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, ast.ClassDef))))
        if first_line(node) <= line <= (node.end_lineno or 0)
    ]
    return max(map(first_line, within), default=0)


def first_line(node: ast.stmt) -> int:
    """Return the first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def size(package: Package) -> Iterator[Measure]:
    """Lines and files of Python in the package: all lines, and those that are neither empty nor a comment."""
    lines = [line for module in package.modules.values() for line in module.text.splitlines()]
    code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    yield Measure("lines of Python", len(lines), f"{len(code)} without empty ones and comments")
    yield Measure("files of Python", len(package.modules))


def print_circles(package: Package) -> None:
    """Print the modules of each circle, and which imports lead from one to another."""
    for circle in package.circles(*ALL_TIMES):
        print(f"{len(circle)} modules: {', '.join(circle)}")
        for name in circle:
            for found in package.imports[name]:
                if found.module in circle:
                    print(f"    {name}:{found.line} imports {found.module} {found.when}")


def differing(package: Package) -> int:
    """Count the modules whose installed text is another one."""
    import tamis

    folder = Path(tamis.__file__).parent
    own = {module.path.relative_to(SOURCES / "tamis"): module.path for module in package.modules.values()}
    installed = {path.relative_to(folder): path for path in folder.rglob("*.py")}
    return sum(
        not (name in own and name in installed and own[name].read_bytes() == installed[name].read_bytes())
        for name in own.keys() | installed.keys()
    )


def print_table(measures: list[Measure], before: dict[str, float] | None) -> None:
    """Print a line for each measure, with an earlier value if there are some."""
    width = max(len(measure.name) for measure in measures)
    for name, value, details in measures:
        earlier = "" if before is None else f"{before.get(name, '-'):>9}  "
        print(f"{name:<{width}}  {earlier}{value:>9}  {details}".rstrip())


def main() -> None:
    """Print all measures."""
    if sys.argv[1:2] == ["--in-process"]:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(RUNS[sys.argv[2]](Path(folder))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a JSON object of names and values")
    parser.add_argument("--before", type=Path, metavar="FILE", help="JSON of an earlier run, to print beside it")
    parser.add_argument("--circles", action="store_true", help="print the imports of each circle, and nothing else")
    parser.add_argument(
        "--rounds", type=int, default=7, help="of each process whose start is timed (default: %(default)s)"
    )
    asked = parser.parse_args()
    package = Package(SOURCES / "tamis")
    if asked.circles:
        print_circles(package)
        return
    if count := differing(package):
        print(f"note: {count} modules in src are not as installed: what runs is what is installed", file=sys.stderr)
    before = json.loads(asked.before.read_text()) if asked.before else None
    read_only = (classes, imports, options, size)
    measures = [*runs(), *(measure for measured in read_only for measure in measured(package)), *start(asked.rounds)]
    if asked.json:
        print(json.dumps({measure.name: measure.value for measure in measures}, indent=2))
    else:
        print_table(measures, before)


if __name__ == "__main__":
    main()
