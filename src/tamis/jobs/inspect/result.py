"""The result of `tamis.inspect` as typed objects and as JSON; docs/inspect.md describes the JSON, which is stable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tamis.formatting import percent_text, plural, printable, ratio, ratio_text, shape_text, size_text
from tamis.jobs.inspect.dataset_info import COLUMNS, DatasetInfo, GroupInfo, row
from tamis.jobs.result import SCHEMA, Card, PageResult, Part, Table, error_dict, json_text


@dataclass(frozen=True, slots=True)
class Inspection(PageResult[DatasetInfo]):
    """Result of `inspect`.

    Parameters
    ----------
    path, nbytes
        Path and size of the file.
    datasets
        Datasets in the order of their paths.
    groups
        Groups whose links are filtered, or cannot be listed.
    """

    path: str
    nbytes: int
    datasets: tuple[DatasetInfo, ...]
    groups: tuple[GroupInfo, ...] = ()

    @property
    def problems(self) -> tuple[tuple[str, str], ...]:
        """Paths of the datasets and groups that cannot be read correctly, with the reasons."""
        members: tuple[DatasetInfo | GroupInfo, ...] = (*self.datasets, *self.groups)
        return tuple((member.path, member.problem) for member in members if member.problem)

    @property
    def html(self) -> str:
        """A page about what takes the space in the file: one self-contained file."""
        from tamis.jobs.inspect.page import file_page  # late: a terminal needs no page

        return file_page(self.path, self.nbytes, self.datasets, self.to_dict())

    def _parts(self) -> Iterator[Part]:
        datasets = plural(len(self.datasets), "dataset")
        yield "file", f"{printable(self.path)} ({size_text(self.nbytes)}, {datasets})"
        yield Table([COLUMNS, *map(row, self.datasets)], folded=_CODE, right=_RIGHT, code=_CODE)
        by_facts: dict[tuple[Fact, ...], list[str]] = {}
        facts_of = [(dataset.path, _facts(dataset)) for dataset in self.datasets]
        for path, facts in facts_of + [(group.path, _group_facts(group)) for group in self.groups]:
            if facts:
                by_facts.setdefault(facts, []).append(printable(path))
        for facts, paths in by_facts.items():
            yield Card(tuple(paths), facts)


def json_document(inspections: Iterable[Inspection], errors: Iterable[tuple[str, Exception]] = ()) -> str:
    """Return the JSON document of the command line: inspected files, and errors with their paths."""
    files = [{key: value for key, value in item.to_dict().items() if key != "schema"} for item in inspections]
    failed = [{**error_dict(error), "path": path} for path, error in errors]
    return json_text({"schema": SCHEMA, "files": files, "errors": failed}, indent=2)


def summary(inspections: Iterable[Inspection]) -> str:
    """Return the sizes of several files together."""
    items = [*inspections]
    nbytes = sum(dataset.nbytes for item in items for dataset in item.datasets)
    stored = sum(dataset.stored_nbytes for item in items for dataset in item.datasets)
    text = f"{plural(len(items), 'file')}, {size_text(sum(item.nbytes for item in items))}"
    return (
        f"{text}: {size_text(nbytes)} of values in {size_text(stored)}, ratio {ratio_text(ratio(nbytes, stored)) or 1}"
    )


_RIGHT = (COLUMNS.index("stored"), COLUMNS.index("ratio"))
_CODE = (COLUMNS.index("filters"),)

Fact = tuple[str, str]
"""Name and text of a fact."""


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
