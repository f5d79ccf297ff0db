"""Write the filters and chunk shapes of a file as arguments of programs and calls, ready to paste."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.errors import ParameterError
from tamis.filters import UnknownFilter
from tamis.formatting import printable, shape_text, shell_line
from tamis.jobs.recipes import has_pattern_signs
from tamis.jobs.result import json_text
from tamis.jobs.spec import spec

if TYPE_CHECKING:
    from tamis.jobs.inspect.dataset_info import DatasetInfo
    from tamis.jobs.inspect.result import Inspection

_JSON = ("zarr", "zarr2", "zarr3", "nczarr")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments to paste."""

    text: str  # Lines of arguments; empty if the notation has none for any dataset
    # Datasets that cannot be read correctly, or whose filters the notation cannot express, and why
    problems: tuple[str, ...]
    notes: tuple[str, ...]  # Surprising effects of the arguments


def arguments(inspection: Inspection, notation: str) -> Arguments:
    """Write the filters and chunk shapes of all datasets that have filters in one of `TARGETS`."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    notes: dict[str, None] = {}
    for dataset in inspection.datasets:
        if not dataset.pipeline.stages:
            if dataset.problem:
                problems.append(printable(f"{inspection.path}: {dataset.path}: {dataset.problem}"))
            continue
        try:
            _check(dataset, notation)
            texts[dataset.path], note = _written(dataset, notation)
        except ParameterError as error:
            problems.append(printable(f"{inspection.path}: {dataset.path}: {error}"))
        else:
            notes |= {note: None} if note else {}
    if notation in _JSON:
        entries = ",\n".join(f"{json_text(path)}: {codecs}" for path, codecs in texts.items())
        text = f"{{\n{entries}\n}}" if texts else ""
    else:
        sign = COMMENTS[notation]
        named = notation not in ("ncgen", "h5py")  # ncgen has no path of the group, h5py no name
        text = "\n".join(line if named else f"{sign} {printable(path)}\n{line}" for path, line in texts.items())
    return Arguments(text, tuple(problems), tuple(notes))


def _check(dataset: DatasetInfo, notation: str) -> None:
    if dataset.problem:
        raise ParameterError(f"expected filters that can be read, got {dataset.pipeline}: {dataset.problem}")
    if not dataset.path.isprintable() and notation not in _JSON:  # JSON has escapes
        raise ParameterError("its name has control characters or broken UTF-8, and cannot be pasted")


def _written(dataset: DatasetInfo, notation: str) -> tuple[str, str]:
    """Return arguments for a dataset, and a note."""
    # Users write the path of a dataset of the root group without the slash.
    name = dataset.path if dataset.path.count("/") > 1 else dataset.path.removeprefix("/")
    if notation == "tamis":
        name = dataset.path if has_pattern_signs(name) else name  # the whole path of a dataset is never a pattern
        shape = shape_text(dataset.chunks or ())
        return shell_line(("-f", f"{name}:{dataset.pipeline}", "-c", f"{name}:{shape}")), ""
    own = _SPECS.get(notation, notation)
    result = spec(dataset.pipeline, variable=name, chunks=dataset.chunks, dtype=_dtype(dataset, notation))
    unknown = [str(item) for item in dataset.pipeline.filters if isinstance(item, UnknownFilter)]
    stored = f"{', '.join(unknown)}: parameters as stored; its plugin may expect the requested ones" if unknown else ""
    return result[own], "; ".join(filter(None, [result.notations[own].note, stored]))


def _dtype(dataset: DatasetInfo, notation: str) -> np.dtype[np.generic] | None:
    try:
        return np.dtype(dataset.dtype) if notation in _JSON else None
    except TypeError:
        return None


_SPECS = {"ncgen": "cdl", "zarr": "zarr3"}
"""Names of notations in `spec` that are others."""

TARGETS = ("h5repack", "nccopy", "ncgen", "h5py", *_JSON, "tamis")
"""Notations of `arguments`."""

COMMENTS = dict.fromkeys(TARGETS, "#") | {"ncgen": "//"} | dict.fromkeys(_JSON, "")
"""Sign that begins a comment; JSON has none."""
