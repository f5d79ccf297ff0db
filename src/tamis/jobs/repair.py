"""Repair Zarr stores of netCDF-C that other readers of Zarr read incorrectly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tamis.arguments import FLAG, PATH
from tamis.errors import FileError
from tamis.formats import open_store
from tamis.formatting import plural, printable
from tamis.jobs.result import DatasetsResult, Part, Table


@dataclass(frozen=True, slots=True)
class RepairedArray:
    """An array whose metadata were wrong."""

    path: str  # Path of the array
    dtype: str  # Type of the values, whose size shuffle needs
    filters: str  # The filters of its chunks


@dataclass(frozen=True, slots=True)
class RepairResult(DatasetsResult[RepairedArray]):
    """Result of `tamis.repair`.

    Parameters
    ----------
    store
        Path of the store.
    dry_run
        Whether nothing was written.
    datasets
        Repaired arrays; none if there was nothing to repair.
    """

    store: str
    dry_run: bool
    datasets: tuple[RepairedArray, ...]

    def _parts(self) -> Iterator[Part]:
        if not self.datasets:
            yield "file", printable(f"{self.store}: nothing to repair")
            return
        verb = "would be repaired" if self.dry_run else "repaired"
        arrays = plural(len(self.datasets), "array")
        yield "file", printable(f"{self.store}: {arrays} {verb}: shuffle uses the size of the values")
        rows = [(printable(array.path), array.dtype, array.filters) for array in self.datasets]
        yield Table([("dataset", "type", "filters"), *rows])


def repair(path: str | os.PathLike[str], *, dry_run: bool = False) -> RepairResult:
    """Repair the metadata of a Zarr store of netCDF-C that other readers of Zarr read incorrectly (D22).

    netCDF-C stores shuffle with elements of 0 bytes, which numcodecs ignores: zarr-python and xarray silently return
    wrong values. The metadata get the size of the values; chunks stay unchanged. First, numcodecs decodes some chunks
    of each array, and the values are compared. All files are replaced, or none.

    Parameters
    ----------
    path
        Path of the store.
    dry_run
        Only return the arrays that would be repaired.

    Returns
    -------
    RepairResult
        The arrays that were wrong.

    Raises
    ------
    FileError
        If it is not a Zarr store of netCDF-C, metadata are damaged, or a file cannot be written; nothing has changed
        then.
    MissingFilterError
        If zarr is not installed.
    """
    PATH.check("path", path)
    FLAG.check("dry_run", dry_run)
    folder = Path(os.fsdecode(path))
    if not folder.is_dir():
        raise FileError(f"{folder}: expected the folder of a Zarr store, found {_kind(folder)}").at(path=folder)
    with open_store(folder) as store:
        from tamis.formats.zarr import repair_shuffles

        arrays = repair_shuffles(folder, store, dry_run=dry_run)
        repaired = tuple(RepairedArray(array.path, array.type.text, str(array.storage.pipeline)) for array in arrays)
    return RepairResult(os.fsdecode(path), dry_run, repaired)


def _kind(path: Path) -> str:
    return "a file" if path.exists() else "none"
