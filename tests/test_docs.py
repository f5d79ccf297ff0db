"""What the documentation takes from the code is as the code has it."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import needs
import pytest
from click.testing import CliRunner

import tamis
from tamis.cli import main

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize(
    ("name", "page", "line"),
    [
        ("c_functions", "c-functions.md", "### `tamis_zfp_set_rate`"),
        ("filter_table", "filters.md", "| 32013 | `zfp` |"),
        ("format_table", "format.md", "| several links to an array, hard or soft,"),
        ("tool_names", "names.md", "| `open_store` | Open the store at a path"),
    ],
)
def test_table_as_the_code_makes_it(name: str, page: str, line: str) -> None:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (DOCS / page).read_text()
    assert line in text
    assert module.with_table(text) == text, f"run: python docs/{name}.py"


def test_page_of_c_functions_has_each_that_the_libraries_export() -> None:
    needs.need("nm")
    page = (DOCS / "c-functions.md").read_text()
    exported: set[str] = set()
    for library in tamis.config().library_path.glob("lib*.so"):
        listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
        exported |= {line.split()[-1] for line in listed.stdout.splitlines() if line.split()[-2] == "T"}
    assert {"H5Pset_zfp_rate", "tamis_zfp_encode"} <= exported
    assert not [name for name in exported if f"`{name}`" not in page]


def test_page_of_public_names_has_each_once() -> None:
    public = (DOCS / "names.md").read_text().partition("\n## For those")[0]
    named = re.findall(r"^\| `(\S+)` \|", public, re.MULTILINE)
    assert not [name for name, count in Counter(named).items() if count > 1]
    modules = {name: getattr(tamis, name) for name in ("cf", "filters", "hdf5", "netcdf", "zarr", "zfp")}
    expected = {f"tamis.{name}" for name in tamis.__all__}
    for name, module in modules.items():
        own = [each for each in module.__all__ if getattr(module, each) is not getattr(tamis, each, None)]
        expected |= {f"tamis.{name}.{each}" for each in own}
    assert {*named} == expected


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its name."""
    with click.Context(main) as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            assert command is not None
            yield name, command


def is_in(text: str, option: str) -> bool:
    """Return whether a text has an option, not only as the beginning of another."""
    return re.search(rf"(?<![\w-]){option}(?![\w-])", text) is not None


@pytest.mark.parametrize(("name", "command"), [*commands()])
def test_each_option_is_in_the_documentation(name: str, command: click.Command) -> None:
    # That of repack is where a reader looks for what it can do.
    pages = [DOCS / "repack.md"] if name == "repack" else sorted(DOCS.rglob("*.md"))
    text = "\n".join(page.read_text() for page in pages)
    missing = [
        parameter.opts
        for parameter in command.params
        if isinstance(parameter, click.Option)
        and not any(
            re.search(rf"(?<![\w-]){opt}(?![\w-])", text) for opt in (*parameter.opts, *parameter.secondary_opts)
        )
    ]
    assert not missing


ERRORS = re.findall(r"^\| `(tamis .*?)` \| `(.*?)` \|", (DOCS / "errors.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def files_of_errors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("errors")
    sample = DOCS.parent / "examples" / "data" / "cam_ts.nc"
    shutil.copy(sample, folder / "a.nc")
    tamis.repack(sample, folder / "b.nc", {"TS": "zfp(accuracy=0.1)"})
    (folder / "text.nc").write_text("text")
    (folder / "cut.nc").write_bytes(sample.read_bytes()[:100_000])
    (folder / "folder").mkdir()
    shutil.copy(sample, folder / "folder")
    return folder


@pytest.mark.parametrize(("command", "message"), ERRORS)
def test_command_of_the_page_of_errors_prints_its_message(
    command: str, message: str, files_of_errors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files_of_errors)
    arguments = shlex.split(command.replace("\\|", "|"))[1:]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code in (1, 2, 3)
    assert message in done.output


def test_page_of_errors_has_commands() -> None:
    assert len(ERRORS) > 10


def test_readme_says_at_its_top_what_the_package_says() -> None:
    top = (DOCS.parent / "README.md").read_text().split("\n\n")[1]
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    minors = [int(each) for each in re.findall(r"Python :: 3\.(\d+)", " ".join(project["classifiers"]))]
    assert f"[{project['license'].split(' AND ')[0]}](LICENSE)" in top
    assert f"Python 3.{min(minors)} to 3.{max(minors)}" in top
    assert project["requires-python"] == f">=3.{min(minors)}"
