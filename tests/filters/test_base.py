"""What all filters have in common."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.filters import BY_NAME, ChunkType, Deflate, Filter, Fletcher32, Shuffle, Zfp


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"), [("f4", (3, 5), 60), ("f8", (), 8), ("i1", (1 << 40, 1 << 40), 1 << 80)]
)
def test_chunk_type_nbytes_exact(dtype: str, shape: tuple[int, ...], nbytes: int) -> None:
    assert ChunkType(np.dtype(dtype), shape).nbytes == nbytes


def test_registry_names_and_ids_as_registered() -> None:
    assert {name: known.id for name, known in BY_NAME.items()} == {
        "zfp": 32013,
        "shuffle": 2,
        "deflate": 1,
        "fletcher32": 3,
    }


@pytest.mark.parametrize("one", [Shuffle(), Deflate(3), Fletcher32(), Zfp(rate=8)], ids=str)
def test_filter_object_frozen_and_without_dict(one: Filter) -> None:
    assert not hasattr(one, "__dict__")
    with pytest.raises((AttributeError, TypeError)):
        one.level = 1  # type: ignore[attr-defined]
