"""The documentation site: built without a warning, every link leads somewhere, and it works offline in a browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import needs
import pytest

import tamis
from tamis.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
TEN = (
    *("index", "start", "climate", "lossy", "errors", "gallery", "coming-from/nco"),
    *("reference/commands/tamis-repack", "reference/names/tamis.repack", "reference/json/plan"),
)
"""Pages of each kind, which are looked at in a browser."""

pytestmark = [pytest.mark.check, pytest.mark.xdist_group("site")]  # it is built once


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, ROOT / "docs" / "site" / "build.py", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "site"


class Page(HTMLParser):
    """What a page refers to, and the names in it that links lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names = {"", "__top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        self.names |= {own[key] or "" for key in ("id", "name") if key in own}
        values = [own.get("src"), own.get("srcset"), own.get("href") if tag in ("a", "link") else None]
        self.targets += [value for value in values if value]


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    # The page for absent addresses is served anywhere, so its links begin at the root.
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def places(page: Path, targets: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the file and the name in it that each link of a page leads to, if it is in the site."""
    for target in targets:
        parts = urlsplit(target)
        if not parts.scheme and not parts.netloc:
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            yield path, unquote(parts.fragment)


def test_every_link_leads_to_a_file_and_a_name_in_it(pages: dict[Path, Page], site: Path) -> None:
    assert len(pages) > 150
    broken = [
        f"{path.relative_to(site)}: {place.relative_to(site)}#{name}"
        for path, page in pages.items()
        for place, name in places(path, page.targets)
        if not place.is_file() or (place in pages and name not in pages[place].names)
    ]
    assert not broken, "\n".join(sorted(set(broken)))


def test_every_page_is_reached_from_the_first(pages: dict[Path, Page], site: Path) -> None:
    reached = {site / "index.html"}
    to_do = [*reached]
    while to_do:
        path = to_do.pop()
        new = {place for place, _ in places(path, pages[path].targets) if place in pages} - reached
        reached |= new
        to_do += new
    assert not {path.relative_to(site) for path in pages} - {path.relative_to(site) for path in reached}


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    """Scripts, styles, pictures and frames are files of the site."""
    for path in site.rglob("*.html"):
        fetched = [value for value in Page(path).targets if value.startswith(("http:", "https:", "//"))]
        text = path.read_text(encoding="utf-8")
        assert not [value for value in fetched if f'src="{value}"' in text or f'srcset="{value}"' in text]


def test_every_name_and_command_has_a_page(site: Path) -> None:
    names = {path.stem for path in (site / "reference" / "names").glob("*.html")}
    assert {f"tamis.{name}" for name in tamis.__all__} <= names
    commands = {path.stem for path in (site / "reference" / "commands").glob("*.html")}
    assert {f"tamis-{name}" for name in main.list_commands(None)} <= commands  # type: ignore[arg-type]


def test_pages_show_signature_and_options(site: Path) -> None:
    assert "keep_classic" in (site / "reference" / "names" / "tamis.repack.html").read_text()
    assert "--keep-classic" in (site / "reference" / "commands" / "tamis-repack.html").read_text()
    assert "128 + n" in (site / "reference" / "commands" / "exit-codes.html").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield chromium
        chromium.close()


@needs.needs("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", TEN)
def test_page_has_no_barriers(name: str, scheme: str, site: Path, browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(color_scheme=scheme, offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_function("[...document.querySelectorAll('.md-code__nav')].every(bar => bar.ariaLabel)")
    violations = axe.run(page, options={"preload": False}).response["violations"]
    assert [(item["id"], item["nodes"][0]["html"]) for item in violations] == []
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    context.close()


@needs.needs("chromium")
def test_search_finds_a_page_that_is_opened_as_a_file(site: Path, browser: Any) -> None:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto((site / "start.html").as_uri())
    page.wait_for_timeout(500)
    page.keyboard.press("/")
    page.keyboard.type("missing-value mask", delay=20)
    page.get_by_text("results").first.wait_for()
    assert page.locator("a[href*='missing.html']").count() > 0
    context.close()
