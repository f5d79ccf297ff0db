"""Pages of the commands, each from its own help, and of their exit codes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tamis.cli.main import main

FOLDER = "reference/commands"
_EXIT = "Exit codes: "
_COMMAND_LINE = ("tamis ", "h5cc ", "h5fc ", "cc ", "cmake ", "HDF5_PLUGIN_PATH=")


def write(pages: Path) -> list[dict[str, str]]:
    """Write a page for each command and one of all; return them for the navigation."""
    (pages / FOLDER).mkdir(parents=True)
    found = [*commands()]
    text = [heading("tamis"), *help_of(main), "## Commands\n\n| command | what it does |\n|---|---|\n"]
    for name, command in found:
        text.append(f"| [`tamis {name}`](tamis-{name}.md) | {plain(command.get_short_help_str(limit=200))} |\n")
    (pages / FOLDER / "tamis.md").write_text("".join(text))
    for name, command in found:
        made = [heading(f"tamis {name}"), *usage(name, command), *help_of(command), *options(command)]
        (pages / FOLDER / f"tamis-{name}.md").write_text("".join(made))
    (pages / FOLDER / "exit-codes.md").write_text("".join(exit_codes(found)))
    items = [{"tamis": f"{FOLDER}/tamis.md"}]
    items += [{name: f"{FOLDER}/tamis-{name}.md"} for name, _ in found]
    return [*items, {"Exit codes": f"{FOLDER}/exit-codes.md"}]


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its name."""
    with click.Context(main) as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            assert command is not None
            yield name, command


def heading(title: str) -> str:
    """Return the title of a page."""
    return f"# {title}\n\n"


def usage(name: str, command: click.Command) -> Iterator[str]:
    """Yield how a command is called."""
    with click.Context(command, info_name=f"tamis {name}") as context:
        yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n\n"


def paragraphs(command: click.Command) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs of a help, each with whether it stands as it is written."""
    for text in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        yield text.removeprefix("\b\n"), text.startswith("\b")


def help_of(command: click.Command) -> Iterator[str]:
    """Yield the paragraphs of a help as Markdown."""
    for text, stands in paragraphs(command):
        if stands:
            language = "sh" if text.lstrip().startswith(_COMMAND_LINE) else "text"
            yield f"```{language}\n{text}\n```\n\n"
        else:
            yield f"{plain(' '.join(text.split()))}\n\n"


def options(command: click.Command) -> Iterator[str]:
    """Yield the options of a command as a list of definitions."""
    yield "## Options\n\n"
    with click.Context(command) as context:
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None:
                yield f"`{record[0]}`\n:   {plain(' '.join(record[1].split()))}\n\n"


def exit_codes(found: list[tuple[str, click.Command]]) -> Iterator[str]:
    """Yield the page of exit codes."""
    yield heading("Exit codes")
    yield "Each command says its own in its help. They are stable: scripts may rely on them.\n\n"
    yield "If several things happen in one command, 3 comes before 1: 3 says that values or files are "
    yield "proven to differ, 1 that something could not be done or looked at. 2 comes before anything is read.\n\n"
    for name, command in [("", main), *found]:
        for text, _ in paragraphs(command):
            said = " ".join(text.split())
            if said.startswith(_EXIT):
                codes = [f"- **{code}** {plain(words)}\n" for code, words in _codes(said)]
                yield f"## `{f'tamis {name}'.rstrip()}`\n\n"
                yield f"{''.join(codes)}\n"


def _codes(said: str) -> Iterator[tuple[str, str]]:
    """Yield each exit code of a sentence with what it means."""
    parts = re.split(r"(?:^|, )(\d+(?: \+ n)?) ", said.removeprefix(_EXIT).rstrip("."))
    yield from zip(parts[1::2], parts[2::2], strict=True)


def plain(text: str) -> str:
    """Return text in which Markdown has no marks but those of code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_\[\]|\\#~^])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)
