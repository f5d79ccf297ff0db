"""What shells complete beyond options and names of files: names of filters."""

from __future__ import annotations

import re

import click


def filter_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the filters and roundings whose names begin as a word does."""
    from tamis.filters import by_name  # late: commands that are not completed need neither
    from tamis.rounding import BY_NAME

    return sorted(name for name in (*by_name(), *BY_NAME) if name.startswith(incomplete))


def filters_of_text(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return filters at the beginning of a text, and behind the last ``:`` or ``|``."""
    return filters_of_names(ctx, parameter, incomplete) or filter_names(ctx, parameter, incomplete)


def filters_of_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return what can follow in ``NAME:FILTERS``: names of filters behind the last ``:`` or ``|``."""
    before, last = re.fullmatch(r"(.*[:|])?(.*)", incomplete, re.DOTALL).groups("")  # type: ignore[union-attr]
    return [f"{before}{name}" for name in filter_names(ctx, parameter, last)] if before else []
