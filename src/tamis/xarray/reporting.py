"""A report on datasets of xarray: their values go to temporary files, without encoding."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tamis.errors import ParameterError
from tamis.jobs.repack.options import RepackOptions
from tamis.jobs.report.job import report
from tamis.xarray.saving import save

if TYPE_CHECKING:
    from xarray import Dataset

    from tamis.jobs.report.result import Report

_KEPT = ("units", "calendar")
"""Encoding of times, without which bounds may get other units than their coordinate."""

_UNSAVED = "{}: values in memory"


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
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tamis-report-")))
        first = _saved(source, folder / "source.nc")
        if isinstance(target, str | os.PathLike):
            second, unsaved = Path(target), ["source"]
        elif hasattr(target, "data_vars"):
            second, unsaved = _saved(target, folder / "target.nc"), ["source", "target"]
        else:
            raise ParameterError(
                f"expected a dataset or the path of a file to compare with, got {type(target).__name__}"
            )
        result = report(first, second, **options)
    names = {name: _UNSAVED.format(name) for name in unsaved}
    facts = {key: value for key, value in result.provenance.items() if not any(key.endswith(name) for name in unsaved)}
    paths = {"source": names.get("source", result.source), "target": names.get("target", result.target)}
    return replace(result, provenance={**names, **facts}, source=paths["source"], target=paths["target"])


def _saved(dataset: Dataset, path: Path) -> Path:
    """Save the values of a dataset as they are: with no filter, packing or fill value of its encoding."""
    plain = dataset.drop_encoding()
    for name, variable in dataset.variables.items():
        plain[name].encoding = {key: variable.encoding[key] for key in _KEPT if key in variable.encoding}
    names = {str(name): "none" for name in plain.variables if plain[name].dtype.kind in "iuf"}
    asked = RepackOptions.asked(names, command="to_netcdf")
    save({"/": plain}, path, {}, None, asked, None)
    return path
