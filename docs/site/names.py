"""Pages of the public names: those of docs/names.md, each from its docstring."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import tamis

FOLDER = "reference/names"
PAGE = Path(__file__).resolve().parents[1] / "names.md"
_ROW = re.compile(r"^\| `(tamis\.\S+)` \|", re.MULTILINE)


def write(pages: Path) -> list[dict[str, Any]]:
    """Write a page for each name; return the pages for the navigation, as docs/names.md groups them."""
    (pages / FOLDER).mkdir(parents=True)
    items: list[dict[str, Any]] = [{"All names": "names.md"}]
    public = (pages / "names.md").read_text().partition("\n## For those")[0]
    for section in public.split("\n### ")[1:]:
        title = section.partition("\n")[0]
        names = _ROW.findall(section)
        for name in names:
            (pages / FOLDER / f"{name}.md").write_text(page(name))
        items.append({title: [{name: f"{FOLDER}/{name}.md"} for name in names]})
    return items


def public_names() -> list[str]:
    """Return all public names."""
    return _ROW.findall(PAGE.read_text().partition("\n## For those")[0])


def page(name: str) -> str:
    """Return the page of a name; that of a module lists what it has, because each of its names has a page."""
    found = value(name)
    if not isinstance(found, ModuleType):
        return f"---\ntitle: {name}\n---\n\n::: {name}\n"
    summary = (inspect.getdoc(found) or "").partition("\n\n")
    lines = [f"# {name}\n\n{summary[0]}\n\n| name | what it is |\n|---|---|\n"]
    for own in found.__all__:
        first = (inspect.getdoc(getattr(found, own)) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        lines.append(f"| [`{name}.{own}`]({target(name, own)}) | {first} |\n")
    return "".join(lines)


def target(module: str, own: str) -> str:
    """Return the page of a name of a module; some are names of tamis, too, and have their page there."""
    is_same = own in tamis.__all__ and getattr(tamis, own) is value(f"{module}.{own}")
    return f"tamis.{own}.md" if is_same else f"{module}.{own}.md"


def value(name: str) -> Any:
    """Return what a name is."""
    found: Any = tamis
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def link(path: Path) -> None:
    """Let each name in the tables of docs/names.md lead to its page."""
    public, mark, rest = path.read_text().partition("\n## For those")
    path.write_text(_ROW.sub(rf"| [`\1`]({FOLDER}/\1.md) |", public) + mark + rest)
