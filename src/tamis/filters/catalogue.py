"""Every filter that tamis knows, in words: the table of ``tamis filters`` and of the documentation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, dataclass, fields
from typing import Any

from tamis.errors import ParameterError
from tamis.filters.base import Filter, Parameter
from tamis.filters.registry import by_id, by_name
from tamis.formatting import did_you_mean


@dataclass(frozen=True, slots=True)
class Entry:
    """One filter.

    Parameters
    ----------
    id, name, registered_name, about
        As the filter has them.
    parameters
        Each with its default, range and meaning.
    takes
        Restrictions and extras: first in the pipeline, groups, read-only.
    needs
        What tamis needs for it, beyond itself.
    missing
        Required packages that are not installed here, and the command that installs them; empty if none is missing.
    """

    id: int
    name: str
    registered_name: str
    about: str
    parameters: tuple[str, ...]
    takes: str
    needs: str
    missing: str


def catalogue(names: Collection[str] = ()) -> tuple[Entry, ...]:
    """Return every filter that tamis knows, or the named ones, in the order of their ids.

    Raises
    ------
    ParameterError
        If there is no filter of such a name.
    """
    if unknown := [name for name in names if name not in by_name()]:
        all_names = sorted(by_name())
        nearest = did_you_mean(unknown[0], all_names)
        raise ParameterError(f"expected a filter ({', '.join(all_names)}), got {unknown[0]!r}{nearest}")
    return tuple(_entry(kind) for kind in by_id().values() if not names or kind.name in names)


def _entry(kind: type[Filter]) -> Entry:
    takes = ["must be first" if kind.needs_values else "", "groups too" if kind.group_safe else ""]
    takes.append("reads only" if kind.decode_only else "")
    return Entry(
        kind.id,
        kind.name,
        kind.registered_name,
        kind.about,
        tuple(_in_words(name, parameter, _default(kind, name)) for name, parameter in kind.parameters().items()),
        ", ".join(filter(None, takes)),
        ", ".join(kind.needs),
        kind.missing(),
    )


def _default(kind: type[Filter], name: str) -> Any:
    defaults = {member.name: member.default for member in fields(kind)} if hasattr(kind, "__dataclass_fields__") else {}  # type: ignore[arg-type]
    return defaults.get(name, MISSING)


def _in_words(name: str, parameter: Parameter, default: Any) -> str:
    default_text = "" if default is MISSING else f"={default}"
    return f"{name}{default_text}: {parameter.range}; {parameter.about}"
