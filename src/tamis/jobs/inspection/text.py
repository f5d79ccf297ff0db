"""An inspection for people: a row for each dataset, then cards, which datasets with the same facts share."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.filters import Filter, UnknownFilter
from tamis.filters.unknown import filter_name
from tamis.formatting import percent_text, plural, printable, ratio_text, shape_text, size_text
from tamis.jobs.inspection.result import DatasetInfo, GroupInfo, Inspection
from tamis.jobs.parts import Card, Part, Table

COLUMNS = ("dataset", "shape", "type", "chunks", "filters", "stored", "ratio")

_RIGHT = (COLUMNS.index("stored"), COLUMNS.index("ratio"))
_CODE = (COLUMNS.index("filters"),)

Fact = tuple[str, str]
"""What it is about, and what is said."""


def parts_of(inspection: Inspection) -> Iterator[Part]:
    """Yield the file, a row for each dataset, and a card for all datasets and groups with the same facts."""
    datasets = plural(len(inspection.datasets), "dataset")
    yield "file", f"{printable(inspection.path)} ({size_text(inspection.nbytes)}, {datasets})"
    yield Table([COLUMNS, *map(row, inspection.datasets)], folded=_CODE, right=_RIGHT, code=_CODE)
    by_facts: dict[tuple[Fact, ...], list[str]] = {}
    facts_of = [(each.path, _facts(each)) for each in inspection.datasets]
    for path, facts in facts_of + [(each.path, _group_facts(each)) for each in inspection.groups]:
        if facts:
            by_facts.setdefault(facts, []).append(printable(path))
    for facts, paths in by_facts.items():
        yield Card(tuple(paths), facts)


def row(each: DatasetInfo) -> tuple[str, ...]:
    """Cells of a dataset's row, one for each of `COLUMNS`; filters on a line each."""
    return (
        printable(each.path),
        shape_text(each.shape),
        each.dtype,
        each.layout if each.chunks is None else shape_text(each.chunks),
        "\n".join(printable(_short(stage.filter)) for stage in each.pipeline.stages),
        size_text(each.stored_nbytes),
        ratio_text(each.ratio),
    )


def _short(each: Filter) -> str:
    """Write a filter as tamis text, one that tamis does not know by its name, without its flag."""
    return filter_name(each) if isinstance(each, UnknownFilter) else str(each).replace(", ", ",")


def _facts(each: DatasetInfo) -> tuple[Fact, ...]:
    found = [("filters", printable(" | ".join(each.filters)))] if each.pipeline.stages else []
    if each.chunks_in_words:
        found.append(("chunks", printable(each.chunks_in_words)))
    if each.zfp_padding is not None:
        found.append(("blocks", _blocks(each.chunks or (), each.zfp_padding)))
    if each.pipeline.stages:
        if each.values_in_words:
            found.append(("values", each.values_in_words))
        found.append(("read by", printable(str(each.readers))))
    if each.problem:
        found.append(("problem", printable(each.problem)))
    return (*found, *(("note", printable(note.text)) for note in each.notes))


def _blocks(chunk: tuple[int, ...], padding: float) -> str:
    longer = [extent for extent in chunk if extent > 1]
    lost = f"{percent_text(padding)} padding" if padding else "no padding"
    return f"{shape_text([4] * len(longer))} values, in chunks of {shape_text(longer)}: {lost}"


def _group_facts(each: GroupInfo) -> tuple[Fact, ...]:
    found = [
        ("filters", f"of the links of this group: {printable(' | '.join(each.filters))}"),
        ("read by", printable(str(each.readers))),
    ]
    if each.problem:
        found.append(("problem", printable(f"{each.problem}; its contents are not shown")))
    return tuple(found)
