"""Steps to append, and datasets for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.hdf5 import create_dataset


@pytest.fixture(scope="session")
def steps() -> Callable[..., NDArray[np.float32]]:
    """Make steps along the first axis, that no zfp stream holds exactly."""

    def make(count: int, shape: tuple[int, ...] = (9, 10)) -> NDArray[np.float32]:
        noise = np.random.default_rng(0).standard_normal((count, *shape))
        smooth = np.sin(np.arange(np.prod(shape)) / 11).reshape(shape)
        return (50 * smooth + np.arange(count).reshape(-1, *[1] * len(shape)) + noise).astype("f4")

    return make


@pytest.fixture(scope="session")
def empty() -> Callable[..., h5py.Dataset]:
    """Create a dataset for such steps."""

    def make(file: h5py.File, filters: str = "zfp(accuracy=0.1)", name: str = "x", **options: Any) -> h5py.Dataset:
        keywords: dict[str, Any] = {"maxshape": (None, 9, 10), "chunks": (4, 8, 8)} | options
        return create_dataset(file, name, (0, 9, 10), "f4", filters=filters, **keywords)

    return make


@pytest.fixture(scope="session")
def masks() -> Callable[[h5py.Dataset], list[int]]:
    """List the filter masks of the chunks of a dataset, in the order of their origins."""

    def read(dataset: h5py.Dataset) -> list[int]:
        masks: dict[tuple[int, ...], int] = {}
        dataset.id.chunk_iter(lambda chunk: masks.update({chunk.chunk_offset: chunk.filter_mask}))
        return [masks[origin] for origin in sorted(masks)]

    return read
