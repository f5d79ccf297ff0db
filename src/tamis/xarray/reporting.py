"""A report on datasets of xarray: their values go to temporary files, without encoding."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Dataset, Variable
from xarray.conventions import encode_cf_variable

from tamis.errors import ParameterError
from tamis.jobs.repack.options import RepackOptions, refuse_unknown
from tamis.jobs.report.findings import verdict_of
from tamis.jobs.report.job import report
from tamis.xarray.backend import FileOfDatasets
from tamis.xarray.dask_arrays import is_dates
from tamis.xarray.saving import save

if TYPE_CHECKING:
    from tamis.jobs.report.reported import Reported
    from tamis.jobs.report.result import Report

_OF_TIMES = ("units", "calendar", "dtype")
"""Keys of an encoding that say which numbers times become."""

_FILES = ("source", "target")
"""Arguments of `tamis.report` that are the datasets here."""

_UNSAVED = "{}: values in memory"

_OF_CHUNKS = "chunks"
"""Chart of the bytes of a file's chunks."""

_THIS_FILE = "this file"
"""Name of a file among alternatives to it."""


def report_datasets(source: Dataset, target: Dataset | str | os.PathLike[str], options: Mapping[str, Any]) -> Report:
    """Return the report on a dataset, compared with another one or with a file.

    Parameters
    ----------
    source
        The dataset before.
    target
        The dataset after, or the path of its file.
    options
        Arguments of `tamis.report`.
    """
    refuse_unknown("report", options, [name for name in signature(report).parameters if name not in _FILES])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tamis-report-")))
        if isinstance(target, str | os.PathLike):
            first = _saved(source, folder / "source.nc", _of_times_in_file(source, target))
            second, unsaved = Path(target), ["source"]
        elif isinstance(target, Dataset):
            keys = _of_times(source, target)
            first, second = _saved(source, folder / "source.nc", keys), _saved(target, folder / "target.nc", keys)
            unsaved = ["source", "target"]
        else:
            raise ParameterError(
                f"expected a dataset or the path of a file to compare with, got {type(target).__name__}"
            )
        result = report(first, second, **options)
    return _of_values(result, unsaved)


def _of_times_in_file(source: Dataset, path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return encodings by which times become the numbers that they are in a file, as far as xarray can read it."""
    file = FileOfDatasets(path, "sort", None, True, False)
    with suppress(ValueError, TypeError, OverflowError), file.dataset("/") as like:
        return _of_times(source, like)
    return {}


def _of_times(source: Dataset, target: Dataset) -> dict[str, dict[str, Any]]:
    """Return encodings by which the same times of two datasets become the same numbers, in one type.

    They are those of the second dataset, which has its file's, or else those of the first one.
    """
    found = {}
    for name, variable in source.variables.items():
        other = target.variables.get(name)
        if not is_dates(variable) or other is None or not is_dates(other):
            continue
        own = {**variable.encoding, **other.encoding}
        keys = {key: own[key] for key in _OF_TIMES if own.get(key) is not None}
        if "dtype" not in other.encoding and len({_type_of(each, keys) for each in (variable, other)}) > 1:
            keys["dtype"] = np.dtype(np.float64)
        found[str(name)] = keys
    return found


def _type_of(variable: Variable, keys: Mapping[str, Any]) -> np.dtype[Any] | None:
    """Return the type of the numbers that times become; None if xarray says why they become none."""
    try:
        dtype: np.dtype[Any] = encode_cf_variable(Variable(variable.dims, variable._data, encoding=dict(keys))).dtype
    except (ValueError, TypeError, OverflowError):
        return None
    return dtype


def _saved(dataset: Dataset, path: Path, of_times: Mapping[str, dict[str, Any]]) -> Path:
    """Save the values of a dataset as they are: with no filter, packing or fill value of its encoding."""
    plain = dataset.drop_encoding()
    for name, variable in dataset.variables.items():
        own = {key: variable.encoding[key] for key in ("units", "calendar") if key in variable.encoding}
        plain[name].encoding = of_times.get(str(name), own)
    names = {str(name): "none" for name in plain.variables if plain[name].dtype.kind in "iuf"}
    asked = RepackOptions.asked(names, command="to_netcdf")
    save({"/": plain}, path, {}, None, asked, None)
    return path


def _of_values(result: Report, unsaved: Collection[str]) -> Report:
    """Return a report that says which values were in memory, without names and bytes of temporary files."""
    facts = {key: value for key, value in result.provenance.items() if not any(key.endswith(name) for name in unsaved)}
    names = {name: _UNSAVED.format(name) for name in unsaved}
    is_saved = "target" not in unsaved
    facts["ratio"] = (
        f"bytes of the values in memory per byte stored in {result.target}"
        if is_saved
        else "none, because no file with these values was compared"
    )
    datasets = tuple(_without_bytes(dataset, is_saved=is_saved) for dataset in result.datasets)
    absent = [finding for finding in result.others if finding.code == "missing-dataset"]
    target = result.target if is_saved else "the other dataset"
    return replace(
        result,
        datasets=datasets,
        verdict=verdict_of(target, datasets, absent, result.problems, facts),
        provenance={**names, **facts},
        source=names.get("source", result.source),
        target=names.get("target", result.target),
    )


def _without_bytes(dataset: Reported, *, is_saved: bool) -> Reported:
    """Return the report of a variable without bytes of temporary files."""
    if is_saved:
        return replace(dataset, source_nbytes=0)
    charts = tuple(
        replace(chart, series=tuple(line for line in chart.series if line.name != _THIS_FILE))
        for chart in dataset.charts
        if chart.key != _OF_CHUNKS
    )
    tables = tuple(
        replace(table, rows=tuple(cells for cells in table.rows if cells[:1] != (_THIS_FILE,)))
        for table in dataset.tables
    )
    return replace(dataset, source_nbytes=0, target_nbytes=0, filters="", charts=charts, tables=tables)
