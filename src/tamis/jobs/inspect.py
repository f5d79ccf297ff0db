"""What is in a file: every dataset, how it is filtered, and what that saves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tamis.errors import FileError
from tamis.hdf5.files import datasets, open_source
from tamis.hdf5.storage import chunks_of, pipeline_of, type_text, values_nbytes, zfp_problem

if TYPE_CHECKING:
    import h5py


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """One dataset.

    Parameters
    ----------
    path
        In the file.
    shape, dtype
        Of the values; dtype as text, with its byte order where that is not the machine's.
    chunks
        Chunk shape, or None where the storage is not chunked.
    filters
        In words, in the order in which they run on writing.
    nbytes, stored_nbytes
        Bytes of the values, 0 where they are of varying length; and bytes that they take in the file.
    unfiltered_chunks, stored_chunks
        Chunks that a filter was not applied to, and all chunks in the file.
    problem
        Why the values cannot be read right, as far as stored parameters tell; empty otherwise.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...] | None
    filters: tuple[str, ...]
    nbytes: int
    stored_nbytes: int
    unfiltered_chunks: int
    stored_chunks: int
    problem: str

    @property
    def ratio(self) -> float | None:
        """Bytes of the values for each byte stored; None where nothing is stored, or cannot be counted."""
        return self.nbytes / self.stored_nbytes if self.nbytes and self.stored_nbytes else None


@dataclass(frozen=True, slots=True)
class Inspection:
    """What `inspect` found.

    Parameters
    ----------
    path
        Of the file.
    datasets
        In the order of their paths.
    """

    path: str
    datasets: tuple[DatasetInfo, ...]

    def __str__(self) -> str:
        lines = [self.path]
        for each in self.datasets:
            ratio = "" if each.ratio is None else f" {each.ratio:.2f}x"
            lines.append(f"  {each.path} {each.shape} {each.dtype}{ratio} {' | '.join(each.filters)}".rstrip())
        return "\n".join(lines)


def inspect(path: str | os.PathLike[str]) -> Inspection:
    """Say what is in an HDF5 or netCDF-4 file and how it is filtered.

    No plugin is needed, and no values are read.

    Parameters
    ----------
    path
        Of the file.

    Raises
    ------
    FileError
        If it is no HDF5 or netCDF-4 file, or damaged; says what was found.
    """
    with open_source(path) as file:
        try:
            found = tuple(_examine(name, each) for name, each in datasets(file).items())
        except FileError:
            raise
        except Exception as error:  # HDF5's errors come as many kinds
            raise FileError(f"{path}: damaged, or not complete: {error}") from error
    return Inspection(os.fspath(path), found)


def _examine(name: str, dataset: h5py.Dataset) -> DatasetInfo:
    pipeline = pipeline_of(dataset)
    chunks = chunks_of(dataset) if dataset.chunks is not None and dataset.size else None
    shape = tuple(dataset.shape or ())
    return DatasetInfo(
        path=name,
        shape=shape,
        dtype=type_text(dataset),
        chunks=dataset.chunks,
        filters=tuple(each.in_words for each in pipeline.stages),
        problem=zfp_problem(dataset, pipeline),
        nbytes=values_nbytes(dataset),
        stored_nbytes=chunks.nbytes if chunks else dataset.id.get_storage_size(),
        unfiltered_chunks=sum(count for mask, count in chunks.masks.items() if mask) if chunks else 0,
        stored_chunks=chunks.count if chunks else 0,
    )
