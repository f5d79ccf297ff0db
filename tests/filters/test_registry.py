"""Filters that other packages bring along, as examples/filter_package does."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "filter_package"
ENTRY_POINTS = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]["tamis.filters"]


def run(folder: Path, code: str, entries: dict[str, str], module: str = "") -> subprocess.CompletedProcess[str]:
    """Run code where a package with these entry points is installed: its module, and what pip writes beside it."""
    (folder / "tamis_delta.py").write_text((EXAMPLE / "tamis_delta.py").read_text() + module)
    info = folder / "tamis_delta-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tamis-delta\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[tamis.filters]\n{lines}")
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)


ROUND_TRIP = """
import numpy as np
import tamis
from tamis.filters import ChunkType, by_id
from tamis_delta import Delta

assert by_id()[300] is Delta
pipeline = tamis.Pipeline.parse("delta(lag=3)|shuffle|deflate(4)")
assert pipeline.filters[0] == Delta(3) and str(pipeline) == "delta(3)|shuffle|deflate(4)"
values = np.arange(1000, dtype="i4") ** 2
stored, mask = pipeline.encode(values)
assert mask == 0 and len(stored) < len(tamis.Pipeline.parse("shuffle|deflate(4)").encode(values)[0])
np.testing.assert_array_equal(pipeline.decode(stored, mask, ChunkType(values.dtype, values.shape)), values)
print(pipeline.stages[0].in_words)
"""


def test_filter_of_another_package_found_by_its_entry_point(tmp_path: Path) -> None:
    done = run(tmp_path, ROUND_TRIP, ENTRY_POINTS)
    assert (done.stdout, done.stderr) == ("delta lag 3\n", "")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("entries", "module", "message"),
    [
        ({"delta": "tamis_delta:Gone"}, "", "has no attribute 'Gone'"),
        ({"delta": "nowhere:Delta"}, "", "No module named 'nowhere'"),
        ({"delta": "tamis_delta:number"}, "", "expected a subclass of tamis.filters.Filter, got <function number"),
        (
            {"a": "tamis_delta:Taken"},
            "class Taken(Delta):\n  id = 1\n",
            "an id and a name of its own, got 1 and 'delta'",
        ),
        ({"a": "tamis_delta:Taken"}, "class Taken(Delta):\n  name = 'zfp'\n", "of its own, got 300 and 'zfp'"),
    ],
)
def test_filter_of_another_package_unusable_left_out_with_a_warning(
    tmp_path: Path, entries: dict[str, str], module: str, message: str
) -> None:
    done = run(
        tmp_path, "import tamis; print(tamis.Pipeline.parse('deflate')); tamis.filters.by_name()", entries, module
    )
    assert done.stdout == "deflate(4)\n"
    (name, value), *_ = entries.items()
    assert f"UserWarning: filter {name} = {value} is left out: " in done.stderr
    assert message in done.stderr
