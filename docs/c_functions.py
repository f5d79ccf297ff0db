"""Write the second part of docs/c-functions.md from the headers of the C interface: python docs/c_functions.py.

A comment of a header describes the declarations that follow it, up to the next comment.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("c-functions.md")
HEADERS = PAGE.parents[1] / "native" / "capi" / "include"
BEGIN, END = "<!-- functions: begin -->\n", "<!-- functions: end -->\n"
TITLES = {
    "H5Zzfp_props.h": "The properties interface",
    "H5Zzfp_lib.h": "The filter in a program that links it",
    "H5Zzfp_plugin.h": "cd_values",
    "tamis.h": "The codec",
}
"""The headers, in the order of the page."""

_PARTS = re.compile(r"^/\*(?P<comment>.*?)\*/\n(?P<code>.*?)(?=^/\*|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"^static inline (?P<head>[^{]*?) \{.*?^\}$", re.MULTILINE | re.DOTALL)
_DIRECTIVE = re.compile(r"^#(?:.*\\\n)*.*\n|^extern \"C\" \{\n|^\}\n", re.MULTILINE)
_NAME = re.compile(r"(\w+)\(|\} (\w+);")
_MACRO = re.compile(r"^#define (H5P\w+\([^)]*\))", re.MULTILINE)


def tables() -> str:
    """Return the sections of all headers."""
    lines: list[str] = []
    for header, title in TITLES.items():
        first, *parts = _PARTS.finditer((HEADERS / header).read_text())
        lines += [f"## {title}", "", f"`{header}`. {text_of(first['comment'])}", ""]
        lines += entry("", first["code"])
        for part in parts:
            lines += entry(part["comment"], part["code"])
    return "\n".join(lines)


def entry(comment: str, code: str) -> Iterator[str]:
    """Yield the lines of some declarations and of the comment above them."""
    macros = _MACRO.findall(code)
    declared = _INLINE.sub(lambda match: f"{match['head']};", code)
    declared = re.sub(r"^extern ", "", _DIRECTIVE.sub("", declared), flags=re.MULTILINE)
    declared = re.sub(r"\n\n+", "\n", declared).strip()
    declared = re.sub(r"\n {20,}", "\n    ", declared)
    shown = "\n".join(filter(None, [declared, *macros]))
    names = [first or second for first, second in _NAME.findall(shown)]
    if not names:
        return
    yield f"### {', '.join(f'`{name}`' for name in dict.fromkeys(names))}"
    yield from ("", "```c", shown, "```", "")
    if comment:
        yield from (text_of(comment), "")


def text_of(comment: str) -> str:
    """Return a comment as Markdown: tables stay as they are, other lines are joined to paragraphs."""
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip("\n").split("\n")]
    text = "\n".join(lines).strip()
    if re.search(r"^cd_values {4}", text, re.MULTILINE):
        before, _, table = text.partition("\ncd_values")
        return f"{text_of_paragraphs(before)}\n\n```text\ncd_values{table}\n```"
    return text_of_paragraphs(text)


def text_of_paragraphs(text: str) -> str:
    """Return text with lines as long as on other pages."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return "\n\n".join(textwrap.fill(each, 128, break_long_words=False, break_on_hyphens=False) for each in paragraphs)


def with_table(page: str) -> str:
    """Put the sections between their two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{tables()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
