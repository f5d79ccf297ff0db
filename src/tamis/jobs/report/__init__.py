"""The job report: statistics, charts and maps of what compression did, as one HTML page.

`job` compares the variables, and `profiler` adds up their statistics in the same pass; `variable` then reads some
fields once more, by `pair`.

- `charts`, `maps`, `rates`, `findings`: the sections of a variable, and what they mean in words.
- `page`, `parts`: the page, and what all pages are made of; the folder beside them has scripts and styles.
- `figures`: how the chunks of an array are stored, also for the page of inspect.
- `folder`: a page about a folder of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.report.figures import ChunkFigures, chunk_figures
    from tamis.jobs.report.parts import MADE_BY, items_of, table_of_rows, text, whole_page

__all__ = [
    "MADE_BY",
    "ChunkFigures",
    "chunk_figures",
    "items_of",
    "table_of_rows",
    "text",
    "whole_page",
]

__getattr__ = face_names(
    globals(),
    {
        "figures": "ChunkFigures chunk_figures",
        "parts": "MADE_BY items_of table_of_rows text whole_page",
    },
)
