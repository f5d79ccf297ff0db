"""The pages in a browser, offline: no error, no request, no violation of accessibility, all reached by keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest

import tamis

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.check,
    needs.needs("chromium"),
]

REACHED = """() => [...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')]
    .filter(item => item.checkVisibility()).length"""
FOCUSED = "() => { const e = document.activeElement; e.dataset.met = 1; return e === document.body; }"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("pages")
    (top / "old").mkdir()
    shutil.copy(SAMPLE, top / "old" / "a.nc")
    tamis.repack_many(top / "old", top / "new", {"TS": "zfp(accuracy=0.1)"}, workers=1)
    tamis.report(SAMPLE, top / "new" / "a.nc").save(top / "report.html")
    tamis.inspect(top / "new" / "a.nc").save(top / "inspect.html")
    tamis.report_many(top / "new").save(top / "folder.html", each=1)
    for name, shift in (("x.nc", 0.0), ("y.nc", 0.01)):
        with h5py.File(top / name, "w") as file:
            own = file.create_dataset("<script>alert(1)</script>".replace("/", "|"), data=np.arange(600.0) + shift)
            own.attrs["units"] = "</script><img src=x onerror=alert(1)>\u202e"
    tamis.report(top / "x.nc", top / "y.nc").save(top / "hostile.html")
    return {path.stem: path for path in top.glob("*.html")}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "inspect", "folder", "hostile"])
def test_page_works_offline_for_everyone(name: str, scheme: str, pages: dict[str, Path], browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(color_scheme=scheme, offline=True, viewport={"width": 1000, "height": 800})
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", lambda dialog: told.append(dialog.message))
    page.on("request", lambda request: told.append(request.url) if request.url.startswith("http") else None)
    page.goto(pages[name].as_uri())
    for plot in page.query_selector_all(".plot"):
        plot.scroll_into_view_if_needed()
        plot.wait_for_selector("canvas", state="attached")
    for summary in page.query_selector_all("summary"):
        summary.click()
    # Filled after the click. A function to wait for would be evaluated, which the page's policy forbids.
    page.wait_for_selector("details.numbers:not(:has(td))", state="detached")
    violations = axe.run(page).response["violations"]
    assert [(item["id"], item["nodes"][0]["html"]) for item in violations] == []
    assert told == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    context.close()


def test_keyboard_reaches_everything_and_moves_the_swipe(pages: dict[str, Path], browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(pages["report"].as_uri())
    count = page.evaluate(REACHED)
    for _ in range(count):
        page.keyboard.press("Tab")
        assert not page.evaluate(FOCUSED)
    assert page.evaluate("document.querySelectorAll('[data-met]').length") == count > 10
    clip = "document.querySelector('.second').style.clipPath"
    assert page.evaluate(clip) == "inset(0px 0px 0px 50%)"
    page.focus("input[type=range]")
    page.keyboard.press("End")
    assert page.evaluate(clip) == "inset(0px 0px 0px 100%)"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("output:text('compressed')")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('output').textContent") == ""
    page.close()
