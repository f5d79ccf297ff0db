"""Write the table of docs/filters.md from the filters themselves: python docs/filter_table.py."""

from __future__ import annotations

from pathlib import Path

from tamis.filters.registry import catalogue

PAGE = Path(__file__).with_name("filters.md")
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def table() -> str:
    """Make the table."""
    lines = ["| id | name | what it does | parameters | use | needs |", "|---|---|---|---|---|---|"]
    for each in catalogue():
        parameters = "<br>".join(each.parameters) or "none"
        registered = "" if each.registered_name.lower() == each.name else f" ({each.registered_name})"
        about = each.about + registered
        lines.append(f"| {each.id or 'Zarr'} | `{each.name}` | {about} | {parameters} | {each.takes} | {each.needs} |")
    return "".join(f"{line}\n" for line in lines)


def with_table(page: str) -> str:
    """Put the table between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
