"""The shape of the code: which module may import which, stubs, docstrings."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tamis
from tamis import _native

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tamis"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Arrows go down: a module imports from its own line or from one below (the design's house).
LAYERS = [
    ("cli", "__main__"),
    ("",),  # tamis/__init__.py, the flat public list
    ("netcdf", "xarray"),
    ("jobs",),
    ("hdf5", "zarr", "cf"),  # public names of rooms below
    ("formats",),
    ("reading",),
    ("advice",),
    ("rewrite",),
    ("safety",),
    ("stores",),
    ("remote",),
    ("accuracy",),
    ("meaning",),
    ("arrays",),
    ("pipeline",),
    ("notation",),
    ("rounding",),
    ("filters",),
    ("zfp",),
    ("_native",),
    ("access", "arguments", "old_names"),
    (
        "caller",
        "distinct",
        "errors",
        "forks",
        "formatting",
        "import_hook",
        "lazy_names",
        "lazy_property",
        "library_lock",
        "optional",
        "system",
    ),
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# The folders that each file format library belongs to.
LIBRARIES = {
    "h5py": "formats/hdf5",
    "netCDF4": "netcdf",
    "numcodecs": "formats/zarr formats/references",
    "zarr": "formats/zarr formats/references",
    "icechunk": "formats/references",
    "virtualizarr": "formats/references",
    "hdf5plugin": "",
    "zfpy": "",
    "h5netcdf": "xarray",
    "xarray": "xarray jobs/witness",
    "matplotlib": "jobs/plan",
}


def name_of(path: Path) -> str:
    return ".".join(["tamis", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


NAMES = {name_of(path): path for path in MODULES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), path)


def layer_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py").replace("__init__", "")


def is_within(path: Path, *folders: str) -> bool:
    return any(path.is_relative_to(PACKAGE / folder) for folder in folders)


def is_at_home(path: Path, library: str) -> bool:
    return library not in LIBRARIES or is_within(path, *LIBRARIES[library].split())


@cache
def imports(path: Path, *, late: bool = True) -> list[tuple[int, str]]:
    """Return the modules that a file names, with their lines: for type checkers, too, and, if `late`, in functions."""
    return list(_imports(path, late))


def _imports(path: Path, late: bool) -> Iterator[tuple[int, str]]:
    def nodes(parent: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(parent):
            yield child
            if late or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from nodes(child)

    for node in nodes(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield node.lineno, name if name in NAMES or name == "tamis._native" else str(node.module)
        elif late and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "imported":
            yield from ((node.lineno, name.value) for name in node.args if isinstance(name, ast.Constant))


def test_package_found_with_a_file_in_each_layer_so_far() -> None:
    without = {layer_of(path) for path in MODULES} - set(LEVEL)
    assert not without, f"give {sorted(without)} a place in LAYERS of this test, and in the tree of docs/structure.md"
    assert {"", "cli", "jobs", "formats", "arrays", "pipeline", "notation", "filters", "zfp", "errors"} <= {
        layer_of(path) for path in MODULES
    }


def test_modules_import_only_from_their_layer_or_below() -> None:
    against = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in MODULES
        for line, name in imports(path)
        if name.split(".")[0] == "tamis" and LEVEL[[*name.split("."), ""][1]] < LEVEL[layer_of(path)]
    ]
    assert not against, "\n".join(["folders import from those below them in docs/structure.md only:", *against])


def test_modules_import_file_format_libraries_only_in_their_folder() -> None:
    against = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in MODULES
        for line, name in imports(path)
        if not is_at_home(path, name.split(".")[0])
    ]
    assert not against, "\n".join(["each of these libraries has its folder, see LIBRARIES of this test:", *against])


def test_modules_import_in_no_circle() -> None:
    left = {name: {found for _, found in imports(path, late=False)} & NAMES.keys() for name, path in NAMES.items()}
    while ready := [name for name, needed in left.items() if not needed & left.keys() - {name}]:
        for name in ready:
            del left[name]
    assert not left, f"these modules import each other in a circle, or from one: {sorted(left)}"


def test_jobs_know_formats_by_the_registry_alone() -> None:
    about_one_format = ("jobs/export.py", "jobs/repair.py")
    against = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in MODULES
        if is_within(path, "jobs") and not is_within(path, *about_one_format)
        for line, name in imports(path)
        if name.startswith("tamis.formats.") and not name.startswith("tamis.formats.registry")
    ]
    assert not against, "\n".join(["jobs take formats from tamis.formats.registry only:", *against])


# Rooms in jobs/ that the tools stand on. All else there are tools, and what they share.
BELOW_TOOLS = ("jobs/recipes", "jobs/repack", "jobs/witness")
FACES = [name for name, path in NAMES.items() if path.name == "__init__.py" and "face_names(" in path.read_text()]


def is_package(name: str) -> bool:
    return name in NAMES and NAMES[name].name == "__init__.py"


def face_of(name: str) -> str:
    """Return the face of the room that a module is in; a module outside of rooms is its own face."""
    parts = name.split(".")
    in_row = ".".join(parts[:3])
    if parts[1] == "jobs" or (parts[1] == "formats" and is_package(in_row)):
        return in_row
    return ".".join(parts[:2])


def origins(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the names of the package that a file imports: line, module and name, which is empty for a whole module."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names if alias.name.startswith("tamis."))
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("tamis."):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_exported = f'"{alias.name}"' in NAMES[str(node.module)].read_text()
                is_module = inner in NAMES and not is_exported
                yield node.lineno, *((inner, "") if is_module else (str(node.module), alias.name))


def tools() -> list[Path]:
    return [path for path in MODULES if is_within(path, "jobs") and not is_within(path, *BELOW_TOOLS)]


def test_tools_import_from_their_own_folder_and_from_faces() -> None:
    against = [
        f"{path.relative_to(PACKAGE)}:{line}: import {name or module} from {face_of(module)}, the face of its room, "
        f"instead of {module}; if the face does not have it, see docs/structure.md"
        for path in tools()
        for line, module, name in origins(path)
        if module != face_of(module) != face_of(name_of(path))
    ]
    assert not against, "\n".join(against)


def test_faces_have_no_name_that_no_tool_uses() -> None:
    used = {(module, name) for path in tools() for _, module, name in origins(path)}
    listed = {(face, name) for face in FACES for name in importlib.import_module(face).__all__}
    assert not sorted(listed - used)


@pytest.mark.parametrize("name", FACES)
def test_face_has_the_names_that_it_lists(name: str) -> None:
    face, path = importlib.import_module(name), NAMES[name]
    for_types = {own: module for _, module, own in origins(path) if module.startswith(name)}
    assert sorted(for_types) == sorted(face.__all__) == sorted(dir(face))
    for own, module in for_types.items():
        is_module = module == name
        found = importlib.import_module(f"{name}.{own}" if is_module else module)
        assert getattr(face, own) is (found if is_module else getattr(found, own))
        assert is_module or f"{name}.{own}" not in NAMES, f"the module {own} hides the name"


def test_importing_all_faces_imports_nothing_else() -> None:
    code = f"import sys; sys.modules['tamis_command'] = sys; import {', '.join(FACES)}; print(*sys.modules)"
    loaded = {*subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()}
    assert {*FACES} <= loaded
    assert not {"numpy", "h5py"} & loaded
    assert not {module for module in loaded - {"tamis", *FACES} if module in NAMES and face_of(module) in FACES}


def test_modules_call_h5py_on_low_level_only_in_its_folder() -> None:
    low_level = [path for path in MODULES if re.search(r"\.id\.\w+", path.read_text())]
    assert not [str(path) for path in low_level if not is_within(path, "formats/hdf5")]


def test_modules_keep_values_without_a_lock() -> None:
    own = [path for path in MODULES if path.name != "lazy_property.py"]
    assert not [str(path) for path in own if "cached_property" in path.read_text()]


def test_modules_that_reading_needs_import_nothing_in_functions() -> None:
    """A thread that reads must not wait for one that imports; `library_lock.imported` is made for what must be late."""
    code = "import json, sys, tamis; print(json.dumps([*sys.modules]))"
    loaded = set(json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
    assert {"tamis.formats.hdf5.reader", "tamis.arrays.chunk_reader", "tamis.reading.file"} <= loaded
    late = [
        f"{name}:{line}: {module}"
        for name, path in NAMES.items()
        if name in loaded
        for line, module in {*imports(path)}.difference(imports(path, late=False), _called(path))
        if module not in loaded
    ]
    assert not late


def _called(path: Path) -> list[tuple[int, str]]:
    """Return what a file imports by `imported`."""
    return [(line, name) for line, name in imports(path) if f'imported("{name}")' in path.read_text()]


# Where modules may ask for a system: all others ask these.
OF_SYSTEMS = ("system", "forks.py")
MODULES_OF_SOME_SYSTEMS = {
    *("_winapi", "fcntl", "grp", "mmap", "msvcrt", "posix", "pty", "pwd", "resource", "select", "syslog", "termios"),
    *("tty", "winreg"),
}
OS_ON_ALL_SYSTEMS = {
    *("DirEntry", "O_APPEND", "O_CREAT", "O_EXCL", "O_RDONLY", "O_RDWR", "O_TRUNC", "O_WRONLY", "PathLike", "R_OK"),
    *("SEEK_CUR", "SEEK_END", "SEEK_SET", "W_OK", "X_OK", "_exit", "access", "chmod", "close", "curdir", "devnull"),
    *(
        "cpu_count",
        "dup",
        "dup2",
        "environ",
        "fdopen",
        "fsdecode",
        "fsencode",
        "fspath",
        "fstat",
        "ftruncate",
        "getcwd",
        "getpid",
    ),
    *("link", "linesep", "listdir", "lseek", "lstat", "makedirs", "mkdir", "open", "pardir", "path", "pathsep"),
    *("read", "readlink", "remove", "rename", "replace", "rmdir", "scandir", "sep", "stat", "stat_result"),
    *("strerror", "unlink", "urandom", "utime", "walk", "write"),
}
"""What `os` has on Linux, macOS and Windows."""
SIGNAL_ON_ALL_SYSTEMS = {"SIGINT", "SIG_DFL", "SIG_IGN", "default_int_handler", "getsignal", "set_wakeup_fd", "signal"}
ARGUMENTS_OF_SOME_SYSTEMS = {
    *("creationflags", "dir_fd", "dst_dir_fd", "pass_fds", "preexec_fn", "process_group", "src_dir_fd"),
    *("start_new_session", "startupinfo"),
}


def test_modules_ask_for_the_system_in_one_folder_only() -> None:
    against = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if not is_within(path, *OF_SYSTEMS)
        for line, what in of_some_systems(tree_of(path))
    ]
    advice = (
        "not the same on Linux, macOS and Windows: call a function of tamis.system, which says what takes the place of"
        " a call where a system lacks it; what all three have alike belongs in OS_ON_ALL_SYSTEMS of this test:"
    )
    assert not against, "\n".join([advice, *against])


def of_some_systems(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield what a module uses that some systems lack, with its lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((node.lineno, name) for name in _imported_of_some_systems(node))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            known = {"os": OS_ON_ALL_SYSTEMS, "signal": SIGNAL_ON_ALL_SYSTEMS}.get(node.value.id, {node.attr})
            if node.attr not in known or name in ("sys.platform", "platform.system"):
                yield node.lineno, name
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, what) for what in _called_of_some_systems(node))
        elif isinstance(node, ast.Constant) and str(node.value).startswith(("/proc/", "/sys/", "/dev/")):
            yield node.lineno, repr(node.value)


def _imported_of_some_systems(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES_OF_SOME_SYSTEMS)
    elif node.module in {*MODULES_OF_SOME_SYSTEMS, "os", "signal"}:
        yield f"from {node.module} import"  # of os and signal, too, whose names are then not seen


def _called_of_some_systems(node: ast.Call) -> Iterator[str]:
    called, first = ast.unparse(node.func), ast.unparse(node.args[0]) if node.args else ""
    yield from (f"{word.arg}=" for word in node.keywords if word.arg in ARGUMENTS_OF_SOME_SYSTEMS)
    # On Windows it changes the ends of lines, and a file that it opens cannot be renamed.
    is_file = called == "os.open" and first != "os.devnull"
    asks = called in ("hasattr", "getattr") and first in ("os", "signal")
    if is_file or asks or (called.endswith("DLL") and first == "None"):
        yield ast.unparse(node)


@pytest.mark.parametrize(
    "line",
    [
        "import fcntl",
        "from os import pread",
        "os.pread(1, 2, 3)",
        "os.fsync(3)",
        "hasattr(os, 'pread')",
        "os.open(path, os.O_RDONLY)",
        "os.open(os.devnull, os.O_NOFOLLOW)",
        "os.stat('a', dir_fd=3)",
        "signal.SIGHUP",
        "sys.platform == 'linux'",
        "open('/proc/self/maps')",
        "ctypes.CDLL(None)",
        "subprocess.Popen([], pass_fds=(3,))",
    ],
)
def test_what_some_systems_lack_is_found(line: str) -> None:
    assert [*of_some_systems(ast.parse(line))]


# Their locks live as long as one call or one job, which no forked process goes on with.
OF_ONE_JOB = {
    "arrays/gather.py",
    "arrays/threads.py",
    "cli/ending.py",
    "filters/_plugin_worker.py",
    "jobs/doctor/readers.py",
    "jobs/report/profiler.py",
    "remote/counted.py",
    "rewrite/packed_array.py",
    "stores/joined.py",
    "system/processes.py",
    "xarray/dataset_store.py",
}


def test_modules_with_locks_make_them_anew_in_forked_processes() -> None:
    makes = re.compile(r"(?<!asyncio\.)\b(R?Lock|Condition|Event|(Bounded)?Semaphore|Thread(PoolExecutor)?)\(")
    texts = {str(path.relative_to(PACKAGE)): path.read_text() for path in MODULES}
    assert {name for name, text in texts.items() if makes.search(text) and "tamis.forks" not in text} == OF_ONE_JOB


def folders(top: str, *kinds: str) -> set[str]:
    """Folders below `top` with files of these kinds in them."""
    found = (path for kind in kinds for path in (ROOT / top).rglob(f"*{kind}"))
    return {f"{path.parent.relative_to(ROOT)}/" for path in found}


def structure_page() -> str:
    return (ROOT / "docs" / "structure.md").read_text()


def folders_of_the_tree() -> list[str]:
    """Folders in the tree of the page: a line has one or more, each below the nearest line above with less indent."""
    around = {-1: ""}
    found = []
    for line in structure_page().split("```")[1].splitlines()[1:]:
        line_of_tree = re.fullmatch(r"( *)(\S+/(?:  \S+/)*|\S+) {2,}\S.*", line)
        assert line_of_tree, line
        indent, names = len(line_of_tree[1]), line_of_tree[2].split()
        within = around[max(level for level in around if level < indent)]
        here = [within + name for name in names if name.endswith("/")]
        found += here
        around = {level: name for level, name in around.items() if level < indent} | {indent: here[0] if here else ""}
    return found


def test_structure_page_names_every_folder_once_and_nothing_else() -> None:
    named = folders_of_the_tree()
    twice = [folder for folder, count in Counter(named).items() if count > 1]
    assert not twice, f"folders twice in the tree of docs/structure.md: {twice}"
    there = folders("src", ".py") | folders("native", ".hpp", ".cpp", ".h", ".c", ".f90", ".F90")
    assert not there - set(named), f"give these folders a line in the tree of docs/structure.md: {there - set(named)}"
    assert not set(named) - there, f"docs/structure.md has folders that do not exist: {set(named) - there}"


def test_structure_page_names_folders_of_the_package_from_the_top_down() -> None:
    named = [folder.removeprefix("src/tamis/") for folder in folders_of_the_tree() if folder.startswith("src/tamis/")]
    levels = [LEVEL[folder.split("/")[0]] for folder in named if folder]
    assert levels == sorted(levels), "the tree of docs/structure.md has the order of LAYERS in this test"


def test_structure_page_names_places_that_are_there() -> None:
    below = structure_page().split("```")[2]
    places = re.findall(r"`([\w.-]+(?:/[\w.-]+)*/|[\w.-]+(?:/[\w.-]+)*\.(?:py|cpp|txt))`", below)
    assert len(places) > 30
    absent = [place for place in places if not (PACKAGE / place).exists() and not (ROOT / place).exists()]
    assert not absent, f"docs/structure.md names places that do not exist: {absent}"


def test_package_docstrings_name_modules_that_are_there() -> None:
    """A word in backticks that begins a line of a list in the docstring of a folder is a module or a folder in it."""
    folders_with_lists = 0
    for path in MODULES:
        if path.name == "__init__.py":
            names = re.findall(r"^- `(\w+)`", ast.get_docstring(tree_of(path)) or "", re.MULTILINE)
            folders_with_lists += bool(names)
            there = {other.stem for other in path.parent.iterdir()}
            assert not set(names) - there, f"the docstring of {path} lists modules that do not exist"
    assert folders_with_lists


def test_tests_mirror_the_package() -> None:
    own = {
        "capi",
        "conformance",
        "faults",
        "frozen",
        "known_defects",
        "native",
        "packaging",
        "plugin",
        "programs",
        "properties",
        "starts",
    }
    beside = [path.relative_to(ROOT / "tests").parent for path in (ROOT / "tests").rglob("test_*.py")]
    mirrors = {folder for folder in beside if folder.parts and folder.parts[0] not in own}
    alone = [f"tests/{folder}" for folder in mirrors if not (PACKAGE / folder).is_dir()]
    assert not alone, f"these folders of tests have no folder in src/tamis/: {alone}"


def source_files() -> list[Path]:
    kinds = (".py", ".hpp", ".cpp", ".h", ".c", ".f90", ".txt", ".map")  # .pyi: nanobind writes it
    return sorted(path for top in ("src", "native") for path in (ROOT / top).rglob("*") if path.suffix in kinds)


def test_source_file_names_say_their_subject() -> None:
    vague = ("utils", "util", "helpers", "helper", "common", "misc")
    assert not [str(path) for path in source_files() if path.stem in vague]


@pytest.mark.skipif(importlib.util.find_spec("nanobind") is None, reason="nanobind is not installed: make test does")
def test_native_stub_as_nanobind_makes_it(tmp_path: Path) -> None:
    made = tmp_path / "_native.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "tamis._native", "-o", str(made)]
    subprocess.run(command, check=True)
    # ruff orders and breaks the committed text; what it says is compared.
    ours, theirs = (sorted(map(ast.dump, ast.parse(stub.read_text()).body)) for stub in (PACKAGE / "_native.pyi", made))
    assert ours == theirs


def test_native_stub_names_all_that_the_module_has() -> None:
    tree = ast.parse((PACKAGE / "_native.pyi").read_text())
    named = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    named |= {
        node.target.id for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert named == {name for name in vars(_native) if not name.startswith("__")}


def test_public_list_every_name_there_and_sorted() -> None:
    assert tamis.__all__ == sorted(tamis.__all__)
    assert not [name for name in tamis.__all__ if not hasattr(tamis, name)]


@pytest.mark.parametrize("name", [name for name in tamis.__all__ if name != "__version__"])
def test_public_name_has_docstring_imperative_first_line(name: str) -> None:
    item = getattr(tamis, name)
    text = inspect.getdoc(item)
    assert text
    if inspect.isclass(item):
        assert item.__doc__, "inherited"
        methods = [(key, value) for key, value in vars(item).items() if not key.startswith("_")]
        undocumented = [
            key
            for key, value in methods
            if isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)
            if not inspect.getdoc(value)
        ]
        assert not undocumented
    assert text.splitlines()[0].endswith((".", ":")), "the first line is a sentence"


def test_import_tamis_heavy_optional_packages_not_imported() -> None:
    heavy = ("netCDF4", "xarray", "zarr", "dask", "zfpy", "hdf5plugin")
    code = f"import sys, tamis; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_no_imports_make_a_circle() -> None:
    """Also those inside functions, and those for types alone."""
    words = [sys.executable, str(ROOT / "benchmarks" / "shape.py"), "--circles"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""
