"""C programs that link the filter: every mode through both interfaces."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

MODES = {
    "rate": tamis.Zfp(rate=8.5),
    "precision": tamis.Zfp(precision=20),
    "accuracy": tamis.Zfp(accuracy=0.001),
    "expert": tamis.Zfp(minbits=64, maxbits=512, maxprec=30, minexp=-12),
    "reversible": tamis.Zfp(reversible=True),
}
STORED = {
    "rate": "rate 8.5",
    "precision": "precision 20",
    "accuracy": "accuracy 0.000976562",
    "expert": "expert 64 512 30 -12",
    "reversible": "reversible",
}


def stored(dataset: h5py.Dataset) -> tuple[Any, list[bytes]]:
    """Give the filter as the file has it, and the bytes of all chunks."""
    origins = [dataset.id.get_chunk_info(i).chunk_offset for i in range(dataset.id.get_num_chunks())]
    filters = dataset.id.get_create_plist().get_filter(0)
    return filters, [dataset.id.read_direct_chunk(origin)[1] for origin in origins]


@pytest.fixture(scope="module")
def written(build: Callable[..., Path], run: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("modes") / "modes.h5"
    return path, run(build("h5cc", "c/modes.c"), path)


@pytest.mark.matrix
@pytest.mark.peer
@pytest.mark.parametrize("mode", MODES)
def test_properties_interface_stores_what_the_generic_one_and_python_store(
    mode: str, written: Any, tmp_path: Path
) -> None:
    path, printed = written
    row, column = np.indices((60, 100))
    values = 20 + 15 * np.sin(row / 9) * np.cos(column / 13)
    with h5py.File(path) as file, h5py.File(tmp_path / "python.h5", "w") as ours:
        properties = file[f"{mode}_properties"]
        assert stored(properties) == stored(file[f"{mode}_generic"])
        source = properties[()] if mode == "reversible" else values
        again = ours.create_dataset("x", data=source, chunks=(20, 50), **MODES[mode])
        assert stored(properties)[0][2] == stored(again)[0][2]
        if mode == "reversible":  # libm and numpy need not agree on every sine
            assert stored(properties)[1] == stored(again)[1]
        np.testing.assert_allclose(properties[()], again[()], rtol=0, atol=1e-9 if mode == "reversible" else 0.01)
    lines = re.findall(rf"{mode}_\w+ +asked (.*), stored (.*): \d+ bytes, error (\S+)\n", printed)
    assert [line[1] for line in lines] == [STORED[mode]] * 2
    assert lines[0] == lines[1]
    assert float(lines[0][2]) <= {"accuracy": 0.001, "reversible": 0}.get(mode, 0.05)
