"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from tamis.errors import ParameterError
from tamis.jobs.repack.option_table import Option
from tamis.old_names import OPTIONS, current_value

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tamis.jobs.verify.bounds import Bounds

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


class _FileName(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """The name of a file or folder; ``-``, which means standard input or output elsewhere, is refused."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; refuse ``-``."""
        if value == "-":
            self.fail(
                (
                    "tamis neither reads files from standard input nor writes them to standard output; for a file "
                    "named -, write ./-"
                ),
                param,
                ctx,
            )
        from tamis.remote.address import is_address, located_path

        settings = {} if ctx is None else ctx.meta.get(_STORAGE, {})
        takes_settings = is_address(value) or (settings and value.endswith(".json") and os.path.isfile(value))
        return located_path(value, settings) if takes_settings else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete names of files."""
        from click.shell_completion import CompletionItem  # late: only shells ask for it

        return [CompletionItem(incomplete, type="file")]


FILE = _FileName()
_STORAGE = "tamis.storage_options"


def _keep_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...] | bool) -> None:
    """Keep the settings of remote stores until the names of files are read."""
    settings = ctx.meta.setdefault(_STORAGE, {})
    if values is True:
        settings["skip_signature"] = True
    for text in values if isinstance(values, tuple) else ():
        key, mark, value = text.partition("=")
        if not (key and mark):
            raise click.BadParameter(f"expected KEY=VALUE, got {text!r}", ctx, param)
        settings[key] = value


def _keep_allowed(ctx: click.Context, _: click.Parameter, is_allowed: bool) -> None:
    """Keep, until the names of files are read, that references may lead outside their folder."""
    if is_allowed:
        ctx.meta.setdefault(_STORAGE, {})["allow_outside"] = True


def remote_options(command: Command) -> Command:
    """Add the options for files that are elsewhere."""
    command = click.option(
        "--allow-outside",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_keep_allowed,
        help="Let a local JSON file of references (kerchunk) lead to files outside its folder.",
    )(command)
    command = click.option(
        "--anonymous",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_keep_settings,
        help="Read addresses such as s3://bucket/a.nc without credentials.",
    )(command)
    return click.option(
        "--storage-option",
        multiple=True,
        metavar="KEY=VALUE",
        is_eager=True,
        expose_value=False,
        callback=_keep_settings,
        help="A setting for addresses such as s3://bucket/a.nc: region=eu-west-1, endpoint=URL …; "
        "repeatable. Credentials come from the environment.",
    )(command)


variables_option = click.option(
    "-v",
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME",
    help="Only this dataset, or all that match a pattern such as '/grp/*'; repeatable.",
)
threads_option = click.option(
    "-j",
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of threads; all cores by default. The result does not depend on it.",
)


def bound_option(words: str) -> Callable[[Command], Command]:
    """Return the option --bound, whose help ends with these words."""
    return click.option(
        "--bound",
        "bounds",
        multiple=True,
        metavar="NAME:BOUND",
        help="Error bound of a dataset, or of all that match a pattern: the largest absolute error allowed, in units"
        f" of the variable; repeatable. {words}",
    )


def bounds_of(texts: Iterable[str]) -> Bounds:
    """Return the values of --bound."""
    from tamis.jobs.recipes.names import split_recipe
    from tamis.jobs.verify.bounds import RECORDED, parse_bound

    # `recorded` comes last, so that it applies to datasets without their own bound.
    named = [f"*:{text}" if text == RECORDED else text for text in sorted(texts, key=RECORDED.__eq__)]
    limits = by_name("--bound", [split_recipe(text, "NAME:BOUND", "TS:0.1") for text in named])
    return RECORDED if named == [f"*:{RECORDED}"] else {name: parse_bound(text) for name, text in limits.items()}


keep_damaged_option = click.option(
    "--keep-damaged",
    is_flag=True,
    help="Exit with 0 even if damaged chunks were copied as they are; they are listed all the same.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document, also on failure.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only errors, and JSON with --json.")
log_option = click.option(
    "--log",
    metavar="FILE",
    type=FILE,
    help="Append a log to FILE, with times: what is done to each dataset, the result, and errors.",
)


def output_options(command: Command) -> Command:
    """Add the output options of a long job."""
    return quiet_option(log_option(json_option(command)))


def options_of(table: Sequence[Option]) -> Callable[[Command], Command]:
    """Return a decorator that adds the options that a table describes."""

    def decorate(command: Command) -> Command:
        for option in reversed(table):
            if option.help:
                command = _option_of(option)(command)
        return command

    return decorate


def _option_of(option: Option) -> Callable[[Command], Command]:
    """Return an option of a table as one of the command line."""
    name = f"--{option.name.replace('_', '-')}"
    name += f"/--no-{name[2:]}" if option.is_negated else ""
    flags = option.flags or (name,)
    about: dict[str, Any] = {"help": option.help, "show_default": option.shows_default}
    if option.is_flag:
        about |= {"default": option.default} if option.is_negated else {"is_flag": True}
    elif option.is_repeated:
        about |= {"multiple": True, "metavar": option.metavar}
    elif option.choices:
        about |= {"type": RenamedChoice(option.choices), "default": option.default}
    elif option.least is not None:
        about |= {"type": click.IntRange(option.least, option.most), "metavar": option.metavar}
    else:
        about |= {"metavar": option.metavar}
    return click.option(*flags, option.name, **about)


class RenamedChoice(click.Choice):  # type: ignore[type-arg]  # generic only in newer versions of click
    """One of a few values; their old names are taken as well, and never shown."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value by its present name."""
        return super().convert(current_value(str(param.name), value) if param else value, param, ctx)


def old_options(name: str) -> Callable[[Command], Command]:
    """Return a decorator that lets a command also take the old names of its options, which its help does not show."""
    renamed = [option for option in OPTIONS if option.command == name]

    def decorate(command: Command) -> Command:
        places = [(option, _option_named(option.new, command), f"old_{option.new[2:]}") for option in renamed]

        @functools.wraps(command)
        def call(**values: Any) -> Any:
            for option, present, old in places:
                given = values.pop(old)
                if given and values[str(present.name)]:
                    raise click.UsageError(f"expected {option.new} or its old name {option.old[-1]}, got both")
                values[str(present.name)] = given or values[str(present.name)]
            return command(**values)

        for option, present, old in places:
            click.option(*option.old, old, type=present.type, multiple=present.multiple, hidden=True)(call)
        return cast("Command", call)

    return decorate


def _option_named(name: str, command: Callable[..., Any]) -> click.Option:
    """Return an option of a command that is being made, by its name."""
    known: list[click.Option] = command.__click_params__  # type: ignore[attr-defined]
    return next(option for option in known if name in option.opts)


def by_name(option: str, pairs: list[tuple[str, T]]) -> dict[str, T]:
    """Return the values of a repeatable option by name; raise ParameterError if a name occurs twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ParameterError(f"expected each name once in {option}, got {', '.join(name for name, _ in pairs)}")
    return values


def is_folder(path: str) -> bool:
    """Return whether a path leads to a folder that is no store; an address that ends with a slash does."""
    from tamis.remote.address import is_address
    from tamis.stores import first_bytes

    if is_address(path):
        return path.endswith("/") and not first_bytes.is_folder_store(path)
    return first_bytes.is_folder(path)


def files_of(paths: Iterable[str]) -> Iterator[str]:
    """Yield paths, with each folder replaced by the files in it that tamis reads."""
    for path in paths:
        if not is_folder(path):
            yield path
            continue
        from tamis.jobs.many.listing import Choice, list_files, nothing_in

        listing = list_files([path], Choice())
        sources = {target: file.source for target, file in listing.files.items()}
        sources |= {target: source for target, (source, _) in listing.failed.items()}  # opening them says why
        if not sources:
            raise nothing_in(path, listing)
        yield from (sources[target] for target in sorted(sources))
