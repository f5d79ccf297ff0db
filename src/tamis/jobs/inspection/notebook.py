"""An inspection in a notebook: a table that opens, and what it says beside that."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.jobs.inspection.cards import COLUMNS, cards, row, summary
from tamis.jobs.inspection.found import Inspection
from tamis.jobs.notebook import datasets_table, page, text
from tamis.jobs.table import title


def html_of(found: Inspection) -> str:
    """Return HTML that needs nothing else; everything that comes from the file is escaped."""
    return page(_parts(found))


def _parts(found: Inspection) -> Iterator[str]:
    yield f"<div><strong>{text(found.path)}</strong> <span class='label'>{text(summary(found))}</span></div>"
    numbers = [COLUMNS.index("stored"), COLUMNS.index("ratio")]
    yield from datasets_table([COLUMNS, *map(row, found.datasets)], code=[COLUMNS.index("filters")], right=numbers)
    for card in cards(found):
        # What cannot be read right is open from the start.
        opened = " open" if any(name == "problem" for name, _ in card.facts) else ""
        yield f"<details{opened}><summary>{text(title(card.paths))}</summary><table><tbody>"
        for name, said in card.facts:
            kind = " class='problem'" if name == "problem" else ""
            yield f"<tr><td class='label'>{text(name)}</td><td{kind}>{text(said)}</td></tr>"
        yield "</tbody></table></details>"
