"""What datasets carry about earlier losses of their values: true of values that were read, and of no computed ones."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from tamis import meaning
from tamis.errors import TamisError
from tamis.formatting import printable
from tamis.pipeline import Pipeline
from tamis.rounding import ERROR_BOUND, ROUNDING_ATTRIBUTES
from tamis.xarray.filter_encoding import encoding_pipeline

if TYPE_CHECKING:
    from xarray import Dataset, Variable

_OF_READ = ("source", "preferred_chunks")
"""Keys of the encoding of values as they were read. Arithmetic keeps attributes, but no encoding."""


def with_earlier_losses(datasets: Mapping[str, Dataset]) -> tuple[dict[str, Dataset], list[str]]:
    """Return datasets by path whose attributes say what is known about earlier losses, and notes.

    Computed values have other errors than those that they are computed from, so they lose these attributes. Values that
    were read through lossy filters get the bound of these as an attribute.
    """
    results: dict[str, Dataset] = {}
    notes: list[str] = []
    for path, dataset in datasets.items():
        results[path] = dataset.copy(deep=False)
        for key, variable in results[path].variables.items():
            name = str(key)
            if not any(word in variable.encoding for word in _OF_READ):
                stale = [word for word in (*ROUNDING_ATTRIBUTES, ERROR_BOUND) if word in variable.attrs]
                if stale:
                    notes.append(printable(_stale_note(posixpath.join(path, name), variable, stale[0])))
                    variable.attrs = {word: value for word, value in variable.attrs.items() if word not in stale}
            elif ERROR_BOUND not in variable.attrs and (bound := _filtered_bound(name, variable)):
                variable.attrs = {**variable.attrs, ERROR_BOUND: np.float64(bound)}
    return results, notes


def _stale_note(path: str, variable: Variable, name: str) -> str:
    return (
        f"{path}: its attribute {name} = {variable.attrs[name]!s} is left out: it is about values of a file, and these"
        " are computed, so their error is not known; what is recorded here is about the values as given"
    )


def _filtered_bound(name: str, variable: Variable) -> float | None:
    """Return the bound of the filters that values were read through, in units of the variable; None without any."""
    if variable.dtype.kind not in "iuf":
        return None
    pipeline = Pipeline()
    with suppress(TamisError):
        pipeline = encoding_pipeline(name, variable.encoding)
    packing = meaning.packing_of({**variable.attrs, **variable.encoding})
    bound = pipeline.error_bound
    return bound if bound is None or packing is None else packing.unpacked_error(bound)
