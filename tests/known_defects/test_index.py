"""README.md names each known defect and where its tests are, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent
ROW = re.compile(r"^\| ([DU])(\d+) \| (\S[^|]*) \| (\S[^|]*) \|$", re.MULTILINE)
ROWS = {f"{kind}{number}": where for kind, number, _, where in ROW.findall((HERE / "README.md").read_text())}


def named_tests() -> dict[str, set[Path]]:
    """Files with tests named after a row, by row."""
    named: dict[str, set[Path]] = {}
    for path in TESTS.rglob("test_*.py"):
        for kind, number in re.findall(r"^def test_([du])(\d\d+)_", path.read_text(), re.MULTILINE):
            named.setdefault(f"{kind.upper()}{int(number)}", set()).add(path)
    return named


def test_every_defect_has_a_row_in_order() -> None:
    assert list(ROWS) == sorted(ROWS, key=lambda row: (row[0], int(row[1:])))
    assert set(ROWS) >= {*(f"D{i}" for i in range(1, 31)), *(f"U{i}" for i in range(1, 33))}


def test_every_row_names_the_files_of_its_tests() -> None:
    linked = {
        row: {(HERE / link).resolve() for link in re.findall(r"\]\(([^)]+)\)", where)} for row, where in ROWS.items()
    }
    assert {row: files for row, files in linked.items() if files} == named_tests()


def test_every_row_has_tests() -> None:
    without = {row for row, where in ROWS.items() if "](" not in where}
    assert not without


def test_numbers_in_names_have_two_digits_at_least() -> None:
    odd = [
        f"{path.name}: {name}"
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"^def (test_[du]\d+_\w*)", path.read_text(), re.MULTILINE)
        if not re.match(r"test_[du]\d\d+_", name)
    ]
    assert not odd
