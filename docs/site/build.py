"""Build the documentation site: python docs/site/build.py FOLDER.

FOLDER/pages gets the Markdown of docs/, and the pages that are made from the code. FOLDER/site gets the site, whose
pages open in a browser without a server and without a network. A warning of the site generator ends the build.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cells
import commands
import gallery
import links
import names
import schemas
import yaml

HERE = Path(__file__).parent
DOCS = HERE.parent

MADE = {
    "@commands": commands.write,
    "@decisions": lambda pages: sorted(path.relative_to(pages).as_posix() for path in (pages / "design").glob("2*.md")),
    "@files": links.write,
    "@names": names.write,
    "@schemas": schemas.write,
}
"""What makes the pages of an item of the navigation, and returns the items below it."""


def main(folder: Path) -> None:
    """Write the pages, then the site."""
    pages = folder / "pages"
    for name in ("pages", "site", ".cache"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("site", "*.py", "__pycache__"))
    shutil.copytree(HERE / "assets", pages / "assets")
    gallery.write(pages)
    settings = settings_with_paths()
    settings["nav"] = [expanded(item, pages) for item in settings["nav"]]
    names.link(pages / "names.md")
    links.lead_into_site(pages)
    cells.mend(pages)
    without = sorted(page_paths(pages) - {*leaves(settings["nav"])})
    if without:
        raise SystemExit(f"expected each page in the navigation: add {', '.join(without)} to docs/site/site.yml")
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False))
    build(folder / "mkdocs.yml")


def settings_with_paths() -> dict[str, Any]:
    """Return the settings of the site, with the paths of what mkdocstrings reads."""
    settings: dict[str, Any] = yaml.safe_load((HERE / "site.yml").read_text())
    python = next(each for each in settings["plugins"] if "mkdocstrings" in each)["mkdocstrings"]["handlers"]["python"]
    python["paths"] = [str(DOCS.parent / "src")]
    python["options"]["extensions"] = [str(HERE / "signatures.py")]
    return settings


def build(settings: Path) -> None:
    """Build the site; a warning is an error."""
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict", "--config-file", settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    # What griffe says of docstrings is a warning, too, which the program does not count.
    if done.returncode or "griffe:" in done.stdout:
        raise SystemExit("expected a build without warnings")


def expanded(item: Any, pages: Path) -> Any:
    """Return an item of the navigation with the pages that are made, which are written."""
    if not isinstance(item, dict):
        return item
    ((title, below),) = item.items()
    if isinstance(below, list):
        return {title: [expanded(each, pages) for each in below]}
    return {title: MADE[below](pages) if below in MADE else below}


def leaves(items: list[Any]) -> list[str]:
    """Return the pages of a navigation."""
    found = []
    for item in items:
        below = next(iter(item.values())) if isinstance(item, dict) else item
        found += leaves(below) if isinstance(below, list) else [below]
    return found


def page_paths(pages: Path) -> set[str]:
    """Return the paths of all pages, as the navigation has them."""
    return {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
