"""Base classes of all results: text, JSON and HTML; and datasets by name."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from tamis.formatting import printable
from tamis.jobs.parts import Card, Part, Table, title
from tamis.kinds import TEXT, WHOLE, Kind, checked

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from tamis.jobs.parts import Line

SCHEMA = 1
"""Number of the JSON schema: it changes where a key goes away or changes its meaning, not where one is added."""


def json_text(document: object, *, indent: int | None = None) -> str:
    """Return JSON in ASCII; see `json_value`."""
    return json.dumps(json_value(document), indent=indent, allow_nan=False)


def json_value(value: object) -> Any:
    """Return a value in types of JSON.

    Numbers that are not finite become the texts ``inf``, ``-inf`` and ``nan``; numpy's scalars and arrays become
    Python's numbers and lists; paths become text; dataclasses become the result of ``to_dict``, or else their fields;
    and anything else becomes its ``str``. A byte of a name that is not UTF-8 is a lone surrogate, as in Python.
    """
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, np.ndarray):
        return json_value(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return json_value(value.to_dict()) if hasattr(value, "to_dict") else json_fields(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    return [json_value(item) for item in value] if isinstance(value, Iterable) else str(value)


def json_fields(value: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a dataclass in types of JSON."""
    return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}


def error_document(error: Exception, code: int) -> dict[str, Any]:
    """Return the JSON document of a failed command, with its exit code."""
    return {"schema": SCHEMA, "error": {**error_dict(error), "exit_code": code}}


def error_dict(error: Exception) -> dict[str, Any]:
    """Return kind and message of an error, and its path, dataset, chunk and filter: None if unknown."""
    where = {name: getattr(error, name, None) for name in ("path", "dataset", "chunk", "filter")}
    kind = next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))
    return {"kind": kind, "message": str(error), **where}


class HasPath(Protocol):
    """The part of a result about one dataset."""

    @property
    def path(self) -> str:
        """Path of the dataset."""


_SPACES = Kind("a number of spaces up to 80", lambda value: WHOLE.fits(value) and value <= 80)
D_co = TypeVar("D_co", bound=HasPath, covariant=True)


class Result(ABC):
    """The result of a job, with forms for terminals, notebooks and JSON."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""

    @abstractmethod
    def _parts(self) -> Iterable[Part]:
        """Return the visible parts."""

    @checked(indent=_SPACES)
    def to_json(self, *, indent: int | None = None) -> str:
        """Return JSON in ASCII; numbers that are not finite are the texts ``inf``, ``-inf`` and ``nan``."""
        return json_text(self.to_dict(), indent=indent)

    @checked(width=WHOLE)
    def lines(self, width: int | None = None) -> Iterator[Line]:
        """Yield kind and text of each line, folded to `width` characters; in full if None."""
        from tamis.jobs.parts import lines_of

        return lines_of(self._parts(), width)

    def __str__(self) -> str:
        return "\n".join(text for _, text in self.lines())

    def _repr_html_(self) -> str:
        from tamis.jobs.result import page

        return page(self._parts())


class DatasetsResult(Result, Generic[D_co]):
    """A result with an entry for each dataset: ``result["TS"]``."""

    __slots__ = ()

    if TYPE_CHECKING:  # at run time a dataclass would treat it as the default of its field

        @property
        def datasets(self) -> tuple[D_co, ...]:
            """The datasets of the result."""

    @checked(path=TEXT)
    def __getitem__(self, path: str) -> D_co:
        """Return the entry of the dataset with this path; ``TS`` means ``/TS``."""
        whole_path = path if path.startswith("/") else f"/{path}"
        for dataset in self.datasets:
            if dataset.path == whole_path:
                return dataset
        raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        return (dataset.path for dataset in self.datasets)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path in {known for own in self for known in (own, own.removeprefix("/"))}


MOST_ROWS = 500

_CLASSES = {"file": "file", "problem": "problem", "violation": "problem"}
"""HTML class for each kind of line."""

# Colours come from the notebook's theme; without a theme, from the surrounding text.
_STYLE = """
.tamis { color: var(--jp-content-font-color1, inherit); font-size: 0.9em; line-height: 1.5 }
.tamis table { border-collapse: collapse; margin: 0.3em 0 }
.tamis th, .tamis td { text-align: left; vertical-align: top; padding: 0.1em 1em 0.1em 0;
  background: transparent; color: inherit; border: 0 }
.tamis thead th { border-bottom: 1px solid currentColor; font-weight: normal; opacity: 0.7 }
.tamis td.number { text-align: right; font-variant-numeric: tabular-nums }
.tamis summary { cursor: pointer }
.tamis .file { font-weight: bold }
.tamis .label { opacity: 0.7; white-space: nowrap }
.tamis .problem { font-weight: bold; text-decoration: underline }
.tamis code { background: transparent; color: inherit; overflow-wrap: anywhere }
"""


def page(parts: Iterable[Part]) -> str:
    """Return self-contained HTML; all text from files is escaped."""
    return "\n".join(
        [f'<div class="tamis"><style>{_STYLE}</style>', *(html for part in parts for html in _html(part)), "</div>"]
    )


def _html(part: Part) -> Iterator[str]:
    if isinstance(part, Table):
        yield from _table(part)
    elif isinstance(part, Card):
        # Problems are visible without a click.
        opened = " open" if any(name == "problem" for name, _ in part.facts) else ""
        yield f"<details{opened}><summary>{text(title(part.paths))}</summary><table><tbody>"
        for name, fact in part.facts:
            attribute = " class='problem'" if name == "problem" else ""
            yield f"<tr><td class='label'>{text(name)}</td><td{attribute}>{text(fact)}</td></tr>"
        yield "</tbody></table></details>"
    else:
        yield _line(*part)


def text(plain: str) -> str:
    """Return plain text as HTML."""
    return escape(printable(plain), quote=True)


def _line(kind: str, plain: str) -> str:
    attribute = f" class='{_CLASSES[kind]}'" if kind in _CLASSES else ""
    return f"<div{attribute}>{text(plain)}</div>"


def _table(table: Table) -> Iterator[str]:
    """Yield a table that can be folded; it is open if it is short."""
    header, *rest = table.rows
    if not rest:
        return
    kept = [i for i in range(len(header)) if i == 0 or any(cells[i] for cells in rest)]
    opened = " open" if len(rest) <= 40 else ""
    yield f"<details{opened}><summary>{text(table.name)} ({len(rest)})</summary><table><thead><tr>"
    yield "".join(f"<th>{text(header[i])}</th>" for i in kept)
    yield "</tr></thead><tbody>"
    for cells in rest[:MOST_ROWS]:
        tags = (_cell(cells[i], code=i in table.code, right=i in table.right) for i in kept)
        yield f"<tr>{''.join(tags)}</tr>"
    yield "</tbody></table>"
    if len(rest) > MOST_ROWS:
        yield f"<div class='label'>and {len(rest) - MOST_ROWS} more, in <code>.datasets</code></div>"
    yield "</details>"


def _cell(cell: str, *, code: bool, right: bool) -> str:
    shown = "<br>".join(f"<code>{text(part)}</code>" for part in cell.split("\n")) if code else text(cell)
    return f"<td{' class=' + repr('number') if right else ''}>{shown}</td>"
