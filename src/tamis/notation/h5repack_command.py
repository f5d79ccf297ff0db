"""Options of h5repack in a shell command: ``-f TS:SHUF -f TS:GZIP=4 -l TS:CHUNK=4x96x144``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tamis.errors import ParameterError
from tamis.filters import Stage
from tamis.notation.chain import Chain
from tamis.notation.h5repack import (
    MAX_FILTERS,
    FilterArgument,
    LayoutArgument,
    filter_arguments,
    layout_argument,
    parse_filter,
    parse_layout,
)
from tamis.notation.positions import malformed


@dataclass(frozen=True, slots=True)
class Command:
    """The options ``-f`` and ``-l`` of one command, parsed.

    Parameters
    ----------
    objects
        Names of datasets, the same in all options; empty for all datasets of the file.
    chain
        Filters in their order; None if there is no ``-f``.
    layout
        None if there is no ``-l``.
    """

    objects: tuple[str, ...]
    chain: tuple[Stage, ...] | None
    layout: LayoutArgument | None = None


def parse_command(text: str) -> Command:
    """Read ``-f`` and ``-l`` of a shell command: ``-f TS:SHUF -f TS:GZIP=4 -l TS:CHUNK=4x96x144``.

    Parameters
    ----------
    text
        The options, optionally with ``h5repack`` before and files after them; or one argument of ``-f`` alone.

    Raises
    ------
    ParameterError
        If it is malformed, with the position; or if its options name different datasets.
    """
    if not re.match(r"\s*(h5repack\s|-)", text):
        single = parse_filter(text.strip())
        return Command(single.objects, () if single.filter is None else (single.filter,))
    filters, layouts = _options(text)
    objects = {*(argument.objects for argument in filters), *(argument.objects for argument in layouts)}
    if len(objects) > 1 or len(layouts) > 1:
        raise ParameterError(f"expected -f and one -l for the same datasets, got {text!r}")
    if len(filters) > 1 and any(argument.filter is None for argument in filters):
        raise ParameterError(f"expected NONE or filters, got both in {text!r}: h5repack ignores NONE")
    chain = tuple(argument.filter for argument in filters if argument.filter is not None)
    if len(chain) > MAX_FILTERS:
        raise ParameterError(f"expected at most {MAX_FILTERS} filters for h5repack, got {len(chain)}")
    return Command(objects.pop(), chain if filters else None, layouts[0] if layouts else None)


_OPTION = re.compile(r"(?P<option>-f|-l|--filter|--layout)(?P<value>=.*|(?<=^-[fl]).+)?", re.DOTALL)


def _options(text: str) -> tuple[list[FilterArgument], list[LayoutArgument]]:
    try:
        tokens = shlex.split(text)
    except ValueError as error:
        raise malformed(text, len(text), f"a closing quote ({error})") from error
    remaining = iter(tokens[1:] if tokens[0] == "h5repack" else tokens)
    filters, layouts = [], []
    for token in remaining:
        match = _OPTION.fullmatch(token)
        if match is None:
            if token.startswith("-"):
                raise malformed(text, max(text.find(token), 0), "-f or -l, the options that tamis reads")
            continue  # a file name
        value = (match["value"] or "").removeprefix("=") or next(remaining, None)
        if value is None:
            raise malformed(text, len(text), f"an argument after {token}")
        if match["option"] in ("-f", "--filter"):
            filters.append(parse_filter(value))
        else:
            layouts.append(parse_layout(value))
    if not filters and not layouts:
        raise malformed(text, len(text), "-f or -l and an argument")
    return filters, layouts


def command_text(chain: Chain, objects: Sequence[str] = (), chunk_shape: Sequence[int] | None = None) -> str:
    """Write options of a shell command, as `parse_command` reads them.

    Raises
    ------
    ParameterError
        If h5repack cannot write such a pipeline, or name the datasets.
    """
    options = [("-f", argument) for argument in filter_arguments(chain, objects)]
    if chunk_shape:
        options.append(("-l", layout_argument(chunk_shape, objects)))
    return " ".join(f"{option} {shlex.quote(argument)}" for option, argument in options)
