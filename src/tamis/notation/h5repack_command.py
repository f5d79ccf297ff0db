"""Options of h5repack as they stand in a shell: ``-f TS:SHUF -f TS:GZIP=4 -l TS:CHUNK=4x96x144``."""

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
from tamis.notation.places import malformed


@dataclass(frozen=True, slots=True)
class Command:
    """What ``-f`` and ``-l`` of one command say.

    Parameters
    ----------
    objects
        Names that all of them have; none for all datasets of the file.
    chain
        Filters in their order; None where there is no ``-f``.
    layout
        None where there is no ``-l``.
    """

    objects: tuple[str, ...]
    chain: tuple[Stage, ...] | None
    layout: LayoutArgument | None = None


def parse_command(text: str) -> Command:
    """Read ``-f`` and ``-l`` as they stand in a shell: ``-f TS:SHUF -f TS:GZIP=4 -l TS:CHUNK=4x96x144``.

    Parameters
    ----------
    text
        Also with ``h5repack`` before and files after the options; or one argument of ``-f`` alone.

    Raises
    ------
    ParameterError
        If it is malformed, with the place; or if its options are about different datasets.
    """
    if not re.match(r"\s*(h5repack\s|-)", text):
        single = parse_filter(text.strip())
        return Command(single.objects, () if single.filter is None else (single.filter,))
    filters, layouts = _options(text)
    objects = {*(each.objects for each in filters), *(each.objects for each in layouts)}
    if len(objects) > 1 or len(layouts) > 1:
        raise ParameterError(f"expected -f and one -l for the same datasets, got {text!r}")
    if len(filters) > 1 and any(each.filter is None for each in filters):
        raise ParameterError(f"expected NONE or filters, got both in {text!r}: h5repack goes by the filters")
    chain = tuple(each.filter for each in filters if each.filter is not None)
    if len(chain) > MAX_FILTERS:
        raise ParameterError(f"expected at most {MAX_FILTERS} filters for h5repack, got {len(chain)}")
    return Command(objects.pop(), chain if filters else None, layouts[0] if layouts else None)


_OPTION = re.compile(r"(?P<option>-f|-l|--filter|--layout)(?P<value>=.*|(?<=^-[fl]).+)?", re.DOTALL)


def _options(text: str) -> tuple[list[FilterArgument], list[LayoutArgument]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise malformed(text, len(text), f"a closing quote ({error})") from error
    rest = iter(words[1:] if words[0] == "h5repack" else words)
    filters, layouts = [], []
    for word in rest:
        found = _OPTION.fullmatch(word)
        if found is None:
            if word.startswith("-"):
                raise malformed(text, max(text.find(word), 0), "-f or -l, the options that tamis reads")
            continue  # the name of a file
        value = (found["value"] or "").removeprefix("=") or next(rest, None)
        if value is None:
            raise malformed(text, len(text), f"an argument after {word}")
        if found["option"] in ("-f", "--filter"):
            filters.append(parse_filter(value))
        else:
            layouts.append(parse_layout(value))
    if not filters and not layouts:
        raise malformed(text, len(text), "-f or -l and an argument")
    return filters, layouts


def command_text(chain: Chain, objects: Sequence[str] = (), chunks: Sequence[int] | None = None) -> str:
    """Write options for a shell, as `parse_command` reads them.

    Raises
    ------
    ParameterError
        If h5repack cannot make such a pipeline, or name the datasets.
    """
    options = [("-f", each) for each in filter_arguments(chain, objects)]
    if chunks:
        options.append(("-l", layout_argument(chunks, objects)))
    return " ".join(f"{option} {shlex.quote(argument)}" for option, argument in options)
