"""Write the second half of docs/names.md, the faces of the rooms, from what they list: python docs/tool_names.py."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import tamis

PAGE = Path(__file__).with_name("names.md")
BEGIN, END = "<!-- faces: begin -->\n", "<!-- faces: end -->\n"
PACKAGE = Path(tamis.__file__).parent
BELOW_TOOLS = ("recipes", "repack", "witness")


def faces() -> Iterator[ModuleType]:
    """Yield the faces of all rooms, by name; public modules are in the first half of the page."""
    for path in sorted(PACKAGE.rglob("__init__.py")):
        name = ".".join(["tamis", *path.parent.relative_to(PACKAGE).parts])
        if "face_names(" in path.read_text() or name in ("tamis.meaning", "tamis.rounding"):
            yield importlib.import_module(name)


def line_of(face: ModuleType, name: str) -> str:
    """Return what a name is: the first line of its docstring, or of the text below a constant."""
    found: Any = getattr(face, name)
    if inspect.ismodule(found) or inspect.isclass(found) or inspect.isfunction(found) or hasattr(found, "__wrapped__"):
        text = inspect.getdoc(found) or ""
    else:
        text = _text_below(face, name)
    return text.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _text_below(face: ModuleType, name: str) -> str:
    """Return the text below the assignment of a constant, in the module that the face imports it from."""
    path = str(face.__file__)
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            path = str(importlib.import_module(str(node.module)).__file__)
    body = ast.parse(Path(path).read_text()).body
    for node, below in pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        is_named = any(isinstance(each, ast.Name) and each.id == name for each in targets)
        if is_named and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return inspect.cleandoc(str(below.value.value))
    return ""


def single_modules() -> Iterator[tuple[ModuleType, list[str]]]:
    """Yield the modules outside of rooms that tools import from, each with the names that they import."""
    imported: dict[str, set[str]] = {}
    jobs = PACKAGE / "jobs"
    tools = [path for path in jobs.rglob("*.py") if path.relative_to(jobs).parts[0] not in BELOW_TOOLS]
    for path in tools:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and path.name != "__init__.py":
                imported.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
    for path in sorted([*PACKAGE.glob("*.py"), *(PACKAGE / "jobs").glob("*.py")]):
        name = ".".join(["tamis", *path.relative_to(PACKAGE).with_suffix("").parts])
        if name in imported and path.name != "__init__.py":
            yield importlib.import_module(name), sorted(imported[name])


def title_of(module: ModuleType) -> str:
    """Return the first sentence of a module."""
    return (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")


def tables() -> str:
    """Make a table of the modules outside of rooms, and one for each face."""
    lines = ["| module | what it has | names that tools use |", "|---|---|---|"]
    for module, names in single_modules():
        lines.append(f"| `{module.__name__}` | {title_of(module)} | {', '.join(f'`{name}`' for name in names)} |")
    lines.append("")
    for face in faces():
        lines += [f"### `{face.__name__}`", "", title_of(face), "", "| name | what it is |", "|---|---|"]
        lines += [f"| `{name}` | {line_of(face, name)} |" for name in face.__all__]
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def with_table(page: str) -> str:
    """Put the tables between their two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{tables()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
