"""Variables of files as dask arrays, so that they are never in memory as a whole."""

from importlib.util import find_spec

from xarray import Dataset


def with_dask(dataset: Dataset) -> Dataset:
    """Return a dataset whose variables of files are dask arrays, so that they are never in memory as a whole."""
    if find_spec("dask") is None:
        return dataset
    result = dataset.copy(deep=False)
    for name, variable in dataset.variables.items():
        if not (variable._in_memory or variable.chunks or name in dataset.xindexes) and variable.ndim:
            blocks = variable.encoding.get("preferred_chunks") or "auto"
            if blocks == "auto" and variable.dtype.hasobject:
                continue  # dask cannot tell the size of dates in unusual calendars, nor of texts
            result[name] = (variable.dims, variable.chunk(blocks)._data, variable.attrs, variable.encoding)
    return result
