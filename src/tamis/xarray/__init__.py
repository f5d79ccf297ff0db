"""xarray's engine ``"tamis"``, which xarray finds automatically, and the accessor ``Dataset.tamis``.

The accessor exists as soon as tamis and xarray are imported, or xarray looks for engines. The extra ``tamis[xarray]``
installs everything both need.

- `backend`: the engine.
- `encoding`, `filter_encoding`: filters in the encodings of xarray's other engines.
- `saving`, `dataset_store`: datasets saved by tamis, and seen as a store.
- `encoding_loss`, `text_loss`, `settled`: what encodings do to values, and which of them stay.
- `last_witness`: what xarray reads of a saved dataset in another process.
- `dask_arrays`, `dask_workers`: variables as dask arrays, and chunks encoded where Dask computes them.
- `planning`, `reporting`: a plan for datasets, and a report on them.
"""

from importlib.util import find_spec

if find_spec("xarray") is None:
    raise ImportError("tamis.xarray needs xarray, which is not installed: pip install 'tamis[xarray]'")

from tamis_xarray import TamisEngine

__all__ = ["TamisEngine"]


def __dir__() -> list[str]:
    return [*__all__]
