"""What the documentation takes from the code is as the code has it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_filter_table_as_the_code_makes_it() -> None:
    spec = importlib.util.spec_from_file_location("filter_table", DOCS / "filter_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (DOCS / "filters.md").read_text()
    assert "| 32013 | `zfp` |" in page
    assert module.with_table(page) == page, "run: python docs/filter_table.py"
