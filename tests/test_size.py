"""The package stays as small as it is, and a command loads what it needs: see `tests/tools/size.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
import size


def test_package_has_no_more_files_and_lines_than_it_may() -> None:
    lines = size.lines()
    assert lines.files <= size.MOST_FILES
    assert lines.total <= size.MOST_LINES
    assert lines.code <= size.MOST_CODE_LINES


@pytest.mark.check
def test_command_loads_no_more_modules_than_it_may(tmp_path: Path) -> None:
    loaded = size.loaded_modules(tmp_path)
    assert loaded.keys() == size.MOST_MODULES.keys()
    assert not {name: count for name, count in loaded.items() if count > size.MOST_MODULES[name]}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""A page."""\n\n# why\nX = 1\n"""What X is."""\n', 1),
        ('def f():\n    """One.\n\n    Two.\n    """\n    return """a\n\nb"""\n', 3),
    ],
)
def test_lines_of_code_are_those_without_docstrings_comments_and_blanks(text: str, count: int) -> None:
    assert size._code_lines(text) == count
