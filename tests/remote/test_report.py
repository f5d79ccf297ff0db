"""A report on remote files has the numbers of local ones, and reads their values once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from range_server import Server

import tamis


@pytest.fixture
def pair(tmp_path: Path, make_file: Callable[..., Path]) -> tuple[Path, Path]:
    source = make_file()
    tamis.repack(source, tmp_path / "b.h5", {"TS": "absolute(bound=0.01)|shuffle|deflate(1)"})
    return source, tmp_path / "b.h5"


def test_report_of_addresses_has_the_same_numbers(server: Server, pair: tuple[Path, Path]) -> None:
    local = tamis.report(*pair, variables=["TS"], threads=2)
    server.reset()
    nbytes: dict[str, int] = {}

    def progress(step: str, *_: int) -> None:
        nbytes[step] = server.nbytes

    addresses = (server.url(path.name) for path in pair)
    remote = tamis.report(*addresses, variables=["TS"], threads=2, progress=progress)
    assert remote["TS"].compared == local["TS"].compared
    assert remote["TS"].statistics == local["TS"].statistics
    assert remote["TS"].charts == local["TS"].charts
    assert "sha256" not in local.provenance
    assert remote.provenance["sha256"] == "not computed of what is read in parts over a network: source and target"
    assert "sha256 of source" not in remote.provenance
    assert "not computed of what is read in parts" in remote.html
    stored = local["TS"].source_nbytes + local["TS"].target_nbytes
    assert stored < nbytes["comparing /TS"] < 1.3 * stored  # all values once, and metadata
