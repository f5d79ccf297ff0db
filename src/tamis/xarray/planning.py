"""A plan for datasets of xarray: filters with which `Dataset.tamis.to_netcdf` saves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tamis.errors import ParameterError
from tamis.jobs.plan.job import PlanOptions, plan_stores
from tamis.jobs.repack.options import refuse_unknown
from tamis.xarray.dataset_store import DatasetStore, VariableArray, encode_group
from tamis.xarray.filter_encoding import encoding_chunks
from tamis.xarray.saving import own_pipelines

if TYPE_CHECKING:
    from xarray import Dataset

    from tamis.jobs.plan.result import Plan


def plan_dataset(dataset: Dataset, require: Mapping[str, object] | None, options: Mapping[str, Any]) -> Plan:
    """Return the plan for a dataset, whose variables have the types, filters and chunks that they are saved with.

    Parameters
    ----------
    dataset
        The dataset; a part of its values is read, or computed.
    require, options
        Arguments of `tamis.plan`.
    """
    if "confirm" in options:
        raise ParameterError("confirm is for files: leave it out, because to_netcdf proves every value")
    refuse_unknown("plan", options, {field.name: None for field in fields(PlanOptions) if field.name != "confirm"})
    groups = {"/": encode_group(dataset, None)}
    unlimited = groups["/"].unlimited

    def open_store() -> list[DatasetStore]:
        store = DatasetStore(groups, own_pipelines(groups))
        for array in store.arrays.values():
            _set_chunk_shape(array, unlimited)
        return [store]

    return plan_stores(open_store, (), require, PlanOptions(**options))


def _set_chunk_shape(array: VariableArray, unlimited: frozenset[str]) -> None:
    """Give an array the chunk shape of its encoding, which it is saved with where no other is asked for."""
    shape = encoding_chunks(array.variable, unlimited)
    if shape is not None:
        array.storage = array.storage._replace(chunk_shape=shape)
