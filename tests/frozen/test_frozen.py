"""Streams that released versions wrote decode to what they decoded to then."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis import zfp
from tamis.filters import ChunkType

HERE = Path(__file__).parent
STREAMS = {name: how for path in sorted(HERE.glob("*.json")) for name, how in json.loads(path.read_text()).items()}


def test_frozen_folder_every_stream_is_listed() -> None:
    assert len(STREAMS) >= 8
    assert {path.name for path in HERE.glob("*.bin")} == set(STREAMS)


@pytest.mark.parametrize("name", [name for name, how in STREAMS.items() if "pipeline" not in how])
def test_decode_frozen_stream_same_values(name: str) -> None:
    how, stream = STREAMS[name], (HERE / name).read_bytes()
    decoded = zfp.decode_with_header(stream)
    assert (decoded.dtype.name, list(decoded.shape)) == (how["dtype"], how["shape"])
    assert hashlib.sha256(decoded.tobytes()).hexdigest() == how["decoded_sha256"]
    if how["reversible"]:
        assert zfp.encode_with_header(decoded, zfp.Reversible()) == stream


@pytest.mark.parametrize("name", [name for name, how in STREAMS.items() if "pipeline" in how])
def test_pipeline_decode_frozen_chunk_same_values(name: str) -> None:
    how: dict[str, Any] = STREAMS[name]
    chunk = ChunkType(np.dtype(how["dtype"]), tuple(how["shape"]))
    decoded = tamis.Pipeline.parse(how["pipeline"]).decode((HERE / name).read_bytes(), 0, chunk)
    assert hashlib.sha256(decoded.tobytes()).hexdigest() == how["decoded_sha256"]
