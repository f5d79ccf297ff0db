"""The example notebook is run from its first cell to its last, and its results show themselves as HTML."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the packages nbformat, nbclient and ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs the packages nbclient and ipykernel")

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOK = EXAMPLES / "small_and_proven.ipynb"


@pytest.mark.check
def test_notebook_runs_and_shows_its_results(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "data", tmp_path / "data")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert sum('<div class="tamis">' in page for page in pages) == 4, "the filters, the plan, the result and the report"
    assert any(page.startswith("<pre>schema = 1") for page in pages), "the recipe"
    printed = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
    assert "times smaller, largest error 0.09" in printed
    assert (tmp_path / "small.nc").is_file()


def test_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")] == []
