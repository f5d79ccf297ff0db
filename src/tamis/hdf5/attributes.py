"""Attributes that say what a dataset is for, read as text whatever wrote them."""

from __future__ import annotations

import h5py
import numpy as np

_BARE_DIMENSION = "This is a netCDF dimension but not a netCDF variable"


def text_attribute(dataset: h5py.Dataset, name: str) -> str | None:
    """Read an attribute as text; None where there is none, or none of text."""
    try:
        value = dataset.attrs.get(name)
        value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
        value = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        return value if isinstance(value, str) else None
    except (OSError, TypeError, ValueError, RuntimeError):
        return None


def is_bare_dimension(dataset: h5py.Dataset) -> bool:
    """Tell what only stands for a dimension of netCDF-4 that has no variable, and so no values."""
    return (text_attribute(dataset, "NAME") or "").startswith(_BARE_DIMENSION)
