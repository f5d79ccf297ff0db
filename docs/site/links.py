"""Links that leave docs/: the site has a copy of each file that a page leads to, and a list for each folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "files"
FIRST = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages beside docs/ that the navigation has, whether or not a page leads to them."""

_LINK = re.compile(r"""(\]\(|src="|srcset=")([^)#:\s"]+)((?:\#[^)\s]*)?[)"])""")


def write(pages: Path) -> list[dict[str, str]]:
    """Copy pages beside docs/, and list folders, that any page leads to; return them for the navigation."""
    items = []
    to_do = [ROOT / name for name in FIRST if (ROOT / name).exists()]
    to_do += sorted({place for page in pages.rglob("*.md") for place in targets(page, pages)})
    done: set[Path] = {ROOT}
    while to_do:
        place = to_do.pop(0)
        is_page = place.is_dir() or place.suffix == ".md"
        if not is_page or place in done or place.is_relative_to(ROOT / "docs"):
            continue
        done.add(place)
        name = place.relative_to(ROOT).as_posix()
        page = pages / FOLDER / (f"{name}/index.md" if place.is_dir() else name)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(listing(place) if place.is_dir() else place.read_text())
        items.append({name: page.relative_to(pages).as_posix()})
        to_do += targets(page, pages)
    return items


def lead_into_site(pages: Path) -> None:
    """Let links to files outside docs/ lead to copies of them in the site."""
    for page in sorted(pages.rglob("*.md")):
        folder = _original(page, pages).parent

        def led(found: re.Match[str], page: Path = page, folder: Path = folder) -> str:
            place = Path(os.path.normpath(folder / found[2]))
            if not place.exists():  # a page that is made
                return found[0]
            copy = _copied(place, pages)
            return f"{found[1]}{os.path.relpath(copy, page.parent)}{found[3]}"

        page.write_text(_LINK.sub(led, page.read_text()))


def _original(page: Path, pages: Path) -> Path:
    """Return where a page is in the project."""
    below = page.relative_to(pages)
    return ROOT / below.relative_to(FOLDER) if below.parts[0] == FOLDER else ROOT / "docs" / below


def targets(page: Path, pages: Path) -> Iterator[Path]:
    """Yield the files and folders of the project that a page leads to."""
    folder = _original(page, pages).parent
    for _, target, _ in _LINK.findall(page.read_text()):
        place = Path(os.path.normpath(folder / target))
        if place.is_relative_to(ROOT) and place.exists():
            yield place


def listing(folder: Path) -> str:
    """Return a page that lists the files of a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    lines = [f"# {folder.relative_to(ROOT)}\n\n"]
    for path in paths:
        lines.append(f"- [{path.relative_to(folder)}]({path.relative_to(folder).as_posix()})\n")
    return "".join(lines)


def _copied(place: Path, pages: Path) -> Path:
    """Return the copy of a file of the project, which is made unless it is there, or the list of a folder."""
    if place.is_relative_to(ROOT / "docs"):
        copy = pages / place.relative_to(ROOT / "docs")
    else:  # the site has no folders whose names begin with a dot
        copy = pages / FOLDER / Path(*[part.lstrip(".") for part in place.relative_to(ROOT).parts])
    if place.is_dir():
        return copy / "index.md"
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place, copy)
    return copy
