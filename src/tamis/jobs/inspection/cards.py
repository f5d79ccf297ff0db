"""What is said of each dataset beside its row in a table: datasets of which the same is to be said share a card."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.filters import Filter, UnknownFilter
from tamis.filters.naming import filter_name
from tamis.formatting import percent_text, plural, printable, ratio_text, shape_text, size_text
from tamis.jobs.inspection.found import DatasetInfo, GroupInfo, Inspection

COLUMNS = ("dataset", "shape", "type", "chunks", "filters", "stored", "ratio")

Fact = tuple[str, str]
"""What it is about, and what is said."""


@dataclass(frozen=True, slots=True)
class Card:
    """Facts, and the paths that they hold for."""

    paths: tuple[str, ...]
    facts: tuple[Fact, ...]


def cards(found: Inspection) -> list[Card]:
    """Gather what is to be said, in the order in which the datasets come, groups last."""
    by_facts: dict[tuple[Fact, ...], list[str]] = {}
    said = [(each.path, _facts(each)) for each in found.datasets]
    for path, facts in said + [(each.path, _group_facts(each)) for each in found.groups]:
        if facts:
            by_facts.setdefault(facts, []).append(printable(path))
    return [Card(tuple(paths), facts) for facts, paths in by_facts.items()]


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


def summary(found: Inspection) -> str:
    """Return how much there is."""
    return f"{size_text(found.nbytes)}, {plural(len(found.datasets), 'dataset')}"


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
