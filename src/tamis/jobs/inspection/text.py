"""The text of an inspection: a row for each dataset, then a card for all datasets with the same facts."""

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
"""Name and text of a fact."""


def parts_of(inspection: Inspection) -> Iterator[Part]:
    """Yield the file, a row for each dataset, and a card for all datasets and groups with the same facts."""
    datasets = plural(len(inspection.datasets), "dataset")
    yield "file", f"{printable(inspection.path)} ({size_text(inspection.nbytes)}, {datasets})"
    yield Table([COLUMNS, *map(row, inspection.datasets)], folded=_CODE, right=_RIGHT, code=_CODE)
    by_facts: dict[tuple[Fact, ...], list[str]] = {}
    facts_of = [(dataset.path, _facts(dataset)) for dataset in inspection.datasets]
    for path, facts in facts_of + [(group.path, _group_facts(group)) for group in inspection.groups]:
        if facts:
            by_facts.setdefault(facts, []).append(printable(path))
    for facts, paths in by_facts.items():
        yield Card(tuple(paths), facts)


def row(dataset: DatasetInfo) -> tuple[str, ...]:
    """Return the cells of a dataset's row, one for each of `COLUMNS`; each filter has its own line."""
    return (
        printable(dataset.path),
        shape_text(dataset.shape),
        dataset.dtype,
        dataset.layout if dataset.chunks is None else shape_text(dataset.chunks),
        "\n".join(printable(_short(stage.filter)) for stage in dataset.pipeline.stages),
        size_text(dataset.stored_nbytes),
        ratio_text(dataset.ratio),
    )


def _short(item: Filter) -> str:
    """Return a filter as tamis text without its flag; one that tamis does not know by its name."""
    return filter_name(item) if isinstance(item, UnknownFilter) else str(item).replace(", ", ",")


def _facts(dataset: DatasetInfo) -> tuple[Fact, ...]:
    facts = [("filters", printable(" | ".join(dataset.filters)))] if dataset.pipeline.stages else []
    if dataset.chunks_in_words:
        facts.append(("chunks", printable(dataset.chunks_in_words)))
    if dataset.zfp_padding is not None:
        facts.append(("blocks", _blocks(dataset.chunks or (), dataset.zfp_padding)))
    if dataset.pipeline.stages:
        if dataset.values_in_words:
            facts.append(("values", dataset.values_in_words))
        facts.append(("read by", printable(str(dataset.readers))))
    if dataset.problem:
        facts.append(("problem", printable(dataset.problem)))
    return (*facts, *(("note", printable(note.text)) for note in dataset.notes))


def _blocks(chunk: tuple[int, ...], padding: float) -> str:
    longer = [extent for extent in chunk if extent > 1]
    lost = f"{percent_text(padding)} padding" if padding else "no padding"
    return f"{shape_text([4] * len(longer))} values, in chunks of {shape_text(longer)}: {lost}"


def _group_facts(group: GroupInfo) -> tuple[Fact, ...]:
    facts = [
        ("filters", f"of the links of this group: {printable(' | '.join(group.filters))}"),
        ("read by", printable(str(group.readers))),
    ]
    if group.problem:
        facts.append(("problem", printable(f"{group.problem}; its contents are not shown")))
    return tuple(facts)
