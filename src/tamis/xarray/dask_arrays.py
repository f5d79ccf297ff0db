"""Variables of files as dask arrays, so that they are never in memory as a whole."""

from importlib.util import find_spec

from xarray import Dataset, Variable


def with_dask(dataset: Dataset) -> Dataset:
    """Return a dataset whose variables of files are dask arrays, so that they are never in memory as a whole.

    Dates are read: they are small, and xarray encodes those in memory and those of dask by different rules, so that the
    parts of a dataset would get different units.
    """
    result = dataset.copy(deep=False)
    for name, variable in dataset.variables.items():
        if variable._in_memory:
            continue
        if is_dates(variable):
            result[name] = variable.compute()
        elif find_spec("dask") is not None and not variable.chunks and name not in dataset.xindexes and variable.ndim:
            blocks = variable.encoding.get("preferred_chunks") or "auto"
            if blocks == "auto" and variable.dtype.hasobject:
                continue  # dask cannot tell the size of texts
            result[name] = (variable.dims, variable.chunk(blocks)._data, variable.attrs, variable.encoding)
    return result


def is_dates(variable: Variable) -> bool:
    """Return whether values are dates or durations; those of calendars that NumPy lacks are objects."""
    if variable.dtype.kind in "mM":
        return True
    if not variable.dtype.hasobject or not variable.size:
        return False
    return "calendar" in variable.encoding or hasattr(variable[(0,) * variable.ndim].values.item(), "calendar")
