r"""Code in tables: GitHub reads ``\|`` in it as a bar, Python-Markdown as two characters."""

from __future__ import annotations

import html
import re
from pathlib import Path

_CODE = re.compile(r"(`+)(.+?)\1(?!`)")


def mend(pages: Path) -> None:
    """Write code with bars in the tables of all pages as HTML, which both read alike."""
    for page in pages.rglob("*.md"):
        lines = page.read_text().splitlines(keepends=True)
        page.write_text("".join(_CODE.sub(_as_html, line) if line.startswith("|") else line for line in lines))


def _as_html(code: re.Match[str]) -> str:
    """Return a piece of code as HTML, if it has a bar."""
    if r"\|" not in code[2]:
        return code[0]
    text = html.escape(code[2].strip().replace(r"\|", "|"), quote=False)
    return "<code>" + re.sub(r"[|*_\[\\]", lambda mark: f"&#{ord(mark[0])};", text) + "</code>"
