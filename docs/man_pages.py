"""Write docs/man, a page for each command, from the texts that --help prints: python docs/man_pages.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tamis.cli import main

FOLDER = Path(__file__).with_name("man")
ROOT = FOLDER.parents[1]

_KEPT_LINES = "\b"
"""The line with which click begins a paragraph whose lines it keeps."""


def texts() -> dict[str, str]:
    """Return the text of each page in docs/man, by its name."""
    with main.make_context("tamis", [], resilient_parsing=True) as context:
        names = main.list_commands(context)
        pages = {"tamis.1": _page("tamis", main, context, [f"tamis-{name}" for name in names])}
        for name in names:
            command = main.get_command(context, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=context) as own:
                pages[f"tamis-{name}.1"] = _page(f"tamis-{name}", command, own, ["tamis"])
    return pages


def _page(name: str, command: click.Command, context: click.Context, related: list[str]) -> str:
    citation = (ROOT / "CITATION.cff").read_text()
    version, date = (re.search(rf"^{key}: (.+)$", citation, re.MULTILINE)[1] for key in ("version", "date-released"))  # type: ignore[index]
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    exit_codes = [text for text in paragraphs if text.startswith("Exit codes: ")]
    about = command.get_short_help_str(limit=200).rstrip(".")
    lines = [
        f'.TH {name.upper()} 1 {date} "tamis {version}" "User Commands"',
        ".ad l",
        *(".SH NAME", f"{_text(name)} \\- {_text(about[:1].lower() + about[1:])}"),
        *(".SH SYNOPSIS", f".B {_text(context.command_path)}", _text(" ".join(command.collect_usage_pieces(context)))),
        ".SH DESCRIPTION",
        *_paragraphs([text for text in paragraphs if text not in exit_codes]),
        *(".SH OPTIONS", *_options(command, context)),
    ]
    if isinstance(command, click.Group):
        lines += [".SH COMMANDS", *_commands(command, context)]
    if exit_codes:
        lines += [".SH EXIT STATUS", _text(" ".join(exit_codes[0].removeprefix("Exit codes: ").split()))]
    links = [f".BR {_text(each)} (1)" for each in related]
    return "\n".join([*lines, ".SH SEE ALSO", *(f"{link} ," for link in links[:-1]), links[-1]]) + "\n"


def _paragraphs(texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if number:
            yield ".PP"
        lines = text.strip("\n").split("\n")
        if lines[0] == _KEPT_LINES:
            yield from (".nf", *map(_text, lines[1:]), ".fi")
        else:
            yield _text(" ".join(lines))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None:
            yield from (".TP", f".B {_text(record[0])}", _text(" ".join(record[1].split())))


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from (".TP", f".BR {_text(f'tamis-{name}')} (1)", _text(command.get_short_help_str(limit=200)))


def _text(plain: str) -> str:
    """Return plain text as roff reads it: hyphens that can be searched and pasted, and ASCII alone."""
    escaped = plain.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    escaped = escaped.replace('"', "\\(dq").replace("^", "\\(ha").replace("~", "\\(ti")
    escaped = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in escaped)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
