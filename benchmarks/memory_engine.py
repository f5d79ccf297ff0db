"""Engines of xarray that open nothing: what xarray itself takes for a file. They are found by name in this module."""

from __future__ import annotations

from typing import Any

import xarray as xr
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.core import indexing

STORED: dict[str, xr.Dataset] = {}
"""The variables of files as stored, by path."""
DECODED: dict[str, xr.Dataset] = {}
"""Datasets by path."""


class _Values(BackendArray):
    def __init__(self, values: Any) -> None:
        self._values, self.shape, self.dtype = values, values.shape, values.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._values.__getitem__)


def lazy(variable: xr.Variable) -> xr.Variable:
    data = indexing.LazilyIndexedArray(_Values(variable.values))
    return xr.Variable(variable.dims, data, dict(variable.attrs))


class _Store(AbstractDataStore):
    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def get_variables(self) -> dict[str, xr.Variable]:
        return {str(name): lazy(variable) for name, variable in self._dataset.variables.items()}

    def get_attrs(self) -> dict[str, Any]:
        return {str(name): value for name, value in self._dataset.attrs.items()}

    def get_dimensions(self) -> Any:
        return self._dataset.sizes

    def get_encoding(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


class DecodedByXarray(BackendEntrypoint):
    """Variables that are in memory, which xarray decodes."""

    def open_dataset(self, path: Any, *, drop_variables: Any = None, **decoders: Any) -> xr.Dataset:  # type: ignore[override]
        dataset = StoreBackendEntrypoint().open_dataset(_Store(STORED[path]), **decoders)
        dataset.set_close(lambda: None)
        return dataset


class Ready(BackendEntrypoint):
    """Datasets that exist."""

    def open_dataset(self, path: Any, *, drop_variables: Any = None) -> xr.Dataset:  # type: ignore[override]
        known = DECODED[path]
        values = {name: lazy(array.variable) for name, array in known.data_vars.items()}
        dataset = xr.Dataset(values, known.coords, known.attrs)
        dataset.set_close(lambda: None)
        return dataset
