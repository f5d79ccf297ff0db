"""What all results are made of: text of lines, tables and cards, JSON and HTML; and datasets by name.

Cells of a table fold only if they must; numbers and names never do.
"""

from __future__ import annotations

import json
import math
import os
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from tamis import _native, safety
from tamis.arguments import FLAG, PATH, TEXT, WHOLE, Kind
from tamis.formatting import printable, with_keywords
from tamis.old_names import with_old_keys

_GAP, _NARROW_GAP = 2, 1
_LEAST = 12
_BREAKS = " ,=("
_INDENT = 2 + len("read by  ")

Line = tuple[str, str]
"""Kind of a line, which decides its colour, and its text."""

STYLES = {"file": "bold", "header": "dim", "name": "bold", "note": "yellow"} | dict.fromkeys(
    ("problem", "violation"), "bold red"
)
"""Colour for each kind of line."""


@dataclass(frozen=True, slots=True)
class Table:
    """A row for each dataset; columns without a value in any row are left out."""

    rows: Sequence[Sequence[str]]  # Cells, the header first; the first cell of a row is its name
    # Columns that may fold. Lines of their cells are joined by ``|``, and broken there first.
    folded: Sequence[int] = ()
    right: Sequence[int] = ()  # Columns that are aligned right
    code: Sequence[int] = ()  # Columns of code, whose lines are below each other in notebooks
    name: str = "Datasets"  # What the rows are, for notebooks

    def lines(self, width: int | None) -> Iterator[Line]:
        """Yield the lines, header first, folded to `width` characters; one line for each row if None."""
        if len(self.rows) > 1:
            for is_header, line in _lines_of(self.rows, width, self.folded, self.right):
                yield "header" if is_header else "row", line


@dataclass(frozen=True, slots=True)
class Card:
    """Facts that several datasets or groups share."""

    paths: tuple[str, ...]  # Printable paths of the datasets or groups
    facts: tuple[tuple[str, str], ...]  # Name and text of each fact

    def lines(self, width: int | None) -> Iterator[Line]:
        """Yield an empty line, the paths, and the facts, folded to `width` characters."""
        yield "", ""
        yield "name", title(self.paths)
        for name, text in self.facts:
            start = f"  {name:<{_INDENT - 2}}"
            if width is None:
                yield name, start + text
                continue
            lines = textwrap.wrap(text, max(width - _INDENT, 20), break_long_words=False, break_on_hyphens=False)
            for line in lines or [""]:
                yield name, start + line
                start = " " * _INDENT


Part: TypeAlias = Line | Table | Card


def title(paths: Sequence[str], most: int = 4) -> str:
    """Return the first paths as text, and how many more there are."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more


def shared(notes: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each different text once, after the first paths that share it."""
    paths: dict[str, list[str]] = {}
    for path, text in notes:
        paths.setdefault(text, []).append(path)
    return ((title(names), text) for text, names in paths.items())


def _lines_of(
    rows: Sequence[Sequence[str]], width: int | None, folded: Sequence[int], right: Sequence[int]
) -> Iterator[tuple[bool, str]]:
    kept = [i for i, column in enumerate(zip(*rows, strict=True)) if i == 0 or len(rows) == 1 or any(column[1:])]
    rows = [[cells[i] for i in kept] for cells in rows]
    folded, right = ([kept.index(i) for i in columns if i in kept] for columns in (folded, right))
    joined = [_joined(cells, folded) for cells in rows]
    widths, gap = _widths(joined), _GAP
    if width is not None and _total(widths, gap) > width:
        rows = [[cell.replace(" ", "\n") for cell in rows[0]], *rows[1:]]
        widths, gap = _narrowed(rows, widths, width, folded)
        joined = [[*rows[0]], *(_folded(cells, folded, widths) for cells in rows[1:])]
        widths = [widths[0], *_widths(joined)[1:]]
    for i, cells in enumerate(joined):
        for line in _lines(cells, widths, gap, right):
            yield i == 0, line


def _narrowed(
    rows: Sequence[Sequence[str]], natural: Sequence[int], width: int, folded: Sequence[int]
) -> tuple[list[int], int]:
    """Return column widths, and the gap between them, that exceed `width` as little as possible."""
    widths = _widths([rows[0], *([cell.replace("\n", "|\n") for cell in cells] for cells in rows[1:])])
    gap = _GAP if _total(widths, _GAP) <= width else _NARROW_GAP
    widths[0] = max(min(widths[0], _LEAST), widths[0] - max(_total(widths, gap) - width, 0))
    # Longer names get lines of their own.
    widths[0] = max(n for n in (_cell_len(part) for row in rows for part in row[0].split("\n")) if n <= widths[0])
    for _ in range(max(_total(widths, gap) - width, 0)):
        widest = max(folded, key=lambda column: widths[column], default=0)
        if widths[widest] > _LEAST:
            widths[widest] -= 1
    for column in folded:  # distribute the remaining width
        widths[column] += max(min(natural[column] - widths[column], width - _total(widths, gap)), 0)
    return widths, gap


def _joined(cells: Sequence[str], columns: Sequence[int]) -> list[str]:
    return [cell.replace("\n", "|") if i in columns else cell for i, cell in enumerate(cells)]


def _folded(cells: Sequence[str], columns: Sequence[int], widths: Sequence[int]) -> list[str]:
    return [_fold(cell, widths[i]) if i in columns else cell for i, cell in enumerate(cells)]


def _fold(cell: str, width: int) -> str:
    """Break a cell between its parts, and a part that is too long between words or parameters."""
    lines = [""]
    parts = cell.split("\n")
    for part in (*(f"{part}|" for part in parts[:-1]), parts[-1]):
        if len(lines[-1]) + len(part) <= width:
            lines[-1] += part
            continue
        rest = part
        while len(rest) > width:
            end = max(rest.rfind(sign, 0, width) for sign in _BREAKS) + 1 or width
            lines.append(rest[:end].rstrip())
            rest = rest[end:]
        lines.append(rest)
    return "\n".join(line for line in lines if line)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(_cell_len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _lines(cells: Sequence[str], widths: Sequence[int], gap: int, right: Sequence[int]) -> Iterator[str]:
    name, *others = cells
    alone = _cell_len(name) > widths[0]
    if alone:
        yield name
    for line in zip_longest(*(cell.split("\n") for cell in ("" if alone else name, *others)), fillvalue=""):
        padded = (
            _padded(cell, width, left=i in right) for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield (" " * gap).join(padded).rstrip()


def _padded(cell: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - _cell_len(cell))
    return blanks + cell if left else cell + blanks


def _cell_len(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len  # late: a result that is not printed needs no terminal

    return cell_len(text)


SCHEMA = 1
"""Number of the JSON schema: it changes where a key goes away or changes its meaning, not where one is added."""

VERSION = _native.version
"""Version of tamis, for what a result says about its making."""


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


def json_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass in types of JSON, also by their old names."""
    return with_old_keys(type(value), {field.name: json_value(getattr(value, field.name)) for field in fields(value)})


def error_document(error: Exception, code: int) -> dict[str, Any]:
    """Return the JSON document of a failed command, with its exit code."""
    return {"schema": SCHEMA, "error": {**error_dict(error), "exit_code": code}}


def error_dict(error: Exception) -> dict[str, Any]:
    """Return kind and message of an error, and its path, dataset, chunk and filter: None if unknown."""
    where = {name: getattr(error, name, None) for name in ("path", "dataset", "chunk", "filter")}
    kind = next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))
    return {"kind": kind, "message": str(error), **where}


class Fields:
    """A part of a result, or a result, whose fields are its JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return json_fields(self)


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

    def to_json(self, *, indent: int | None = None) -> str:
        """Return JSON in ASCII; numbers that are not finite are the texts ``inf``, ``-inf`` and ``nan``."""
        _SPACES.check_optional("indent", indent)
        return json_text(self.to_dict(), indent=indent)

    def lines(self, width: int | None = None) -> Iterator[Line]:
        """Return kind and text of each line, folded to `width` characters; in full if None."""
        WHOLE.check_optional("width", width)
        return self._lines(width)

    def _lines(self, width: int | None) -> Iterator[Line]:
        for part in self._parts():
            if isinstance(part, (Table, Card)):
                yield from part.lines(width)
            else:
                yield part

    def __str__(self) -> str:
        return with_keywords("\n".join(text for _, text in self.lines()))

    def _repr_html_(self) -> str:
        return page(map(_for_python, self._parts()))


def _for_python(part: Part) -> Part:
    """Return a visible part for a caller in Python; tables have no options."""
    return part if isinstance(part, (Table, Card)) else (part[0], with_keywords(part[1]))


class DatasetsResult(Result, Generic[D_co]):
    """A result with an entry for each dataset: ``result["TS"]``."""

    __slots__ = ()

    if TYPE_CHECKING:  # at run time a dataclass would treat it as the default of its field

        @property
        def datasets(self) -> tuple[D_co, ...]:
            """The datasets of the result."""

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return {"schema": SCHEMA, **json_fields(self)}

    def __getitem__(self, path: str) -> D_co:
        """Return the entry of the dataset with this path; ``TS`` means ``/TS``."""
        TEXT.check("path", path)
        whole_path = path if path.startswith("/") else f"/{path}"
        for dataset in self.datasets:
            if dataset.path == whole_path:
                return dataset
        raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        return (dataset.path for dataset in self.datasets)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path in {known for own in self for known in (own, own.removeprefix("/"))}


class PageResult(DatasetsResult[D_co]):
    """A result that is also a page."""

    __slots__ = ()

    @property
    @abstractmethod
    def html(self) -> str:
        """The page: one self-contained file."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path
            Path of the file.
        overwrite
            Whether an existing file is replaced.

        Raises
        ------
        FileError
            If the file exists and `overwrite` is False, or it cannot be written, or the page is of a file that cannot
            be read.
        """
        PATH.check("path", path)
        FLAG.check("overwrite", overwrite)
        safety.write_whole(path, self.html, overwrite=overwrite)


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
