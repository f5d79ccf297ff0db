"""Write the tables of docs/format.md from the source: python docs/format_table.py."""

from __future__ import annotations

from pathlib import Path

from tamis.stores.translation import tables

PAGE = Path(__file__).with_name("format.md")
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def with_table(page: str) -> str:
    """Put the tables between their two marks."""
    before, rest = page.split(BEGIN)
    lines = "".join(f"{line}\n" for line in tables())
    return f"{before}{BEGIN}{lines}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
