"""Copy a file and store some of its datasets through other filters, with proof that the bound is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tamis.chunks.grid import default_chunks
from tamis.errors import FileError, ParameterError, TamisError
from tamis.filters import ChunkType, Filter, Fletcher32
from tamis.hdf5.copying import copy_tree, create_target
from tamis.hdf5.files import datasets, open_source
from tamis.hdf5.rewriting import Plan, Written, verify, write
from tamis.hdf5.storage import number_type
from tamis.hdf5.transaction import Transaction
from tamis.jobs.recipe import Recipes, chunk_shape, is_pattern, matching
from tamis.pipeline import Pipeline, as_pipeline

if TYPE_CHECKING:
    import h5py

# Chunks of the source that HDF5 keeps decoded: new chunks take parts of many old ones.
_CACHE_NBYTES = 128 << 20

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Told what is being done to which dataset, chunks done so far, and chunks in all."""


@dataclass(frozen=True, slots=True)
class Repacked:
    """What became of one dataset.

    Parameters
    ----------
    path
        In both files.
    pipeline
        Through which it was stored; the text of a pipeline.
    nbytes, source_nbytes, target_nbytes
        Bytes of the values, and bytes that they take in source and target.
    bound
        Largest absolute error that was allowed, in units of the data; 0 for lossless; None where the mode has none.
    largest_error
        Largest absolute error found when the target was read again.
    chunks, lossless_chunks
        Chunks written, and those of them that were stored without zfp.
    notes
        What else a reader of the result should know.
    """

    path: str
    pipeline: str
    nbytes: int
    source_nbytes: int
    target_nbytes: int
    bound: float | None
    largest_error: float
    chunks: int
    lossless_chunks: int
    notes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Bytes of the values for each byte in the target."""
        return self.nbytes / max(self.target_nbytes, 1)


@dataclass(frozen=True, slots=True)
class RepackResult:
    """What `repack` did.

    Parameters
    ----------
    source, target
        Paths of the files.
    source_nbytes, target_nbytes
        Their sizes.
    datasets
        Those that were stored anew; everything else was copied as it was.
    kept
        Datasets that a pattern matched but that cannot take the filters, with the reason.
    seconds
        Time taken, verification included.
    """

    source: str
    target: str
    source_nbytes: int
    target_nbytes: int
    datasets: tuple[Repacked, ...]
    kept: tuple[tuple[str, str], ...]
    seconds: float


def repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    recipes: Recipes,
    *,
    chunks: Mapping[str, tuple[int, ...]] | None = None,
    checksum: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> RepackResult:
    """Copy an HDF5 or netCDF-4 file, with other filters on some of its datasets.

    Groups, attributes, dimension scales, links and all other datasets are copied as they are. What was written is read
    again and compared with the source, value by value, before the target gets its name; until then the name holds what
    it held before. A chunk that zfp cannot store within the bound, because of missing values, NaN or infinities, is
    stored by the rest of its pipeline, without loss, and any reader with a ZFP plugin reads it.

    Parameters
    ----------
    source, target
        Paths of two different files.
    recipes
        Filters by dataset name or pattern: a `Pipeline`, a filter, or its text. A name holds over patterns, and of
        several patterns the first that fits. A dataset matched by a pattern that cannot take the filters is kept as it
        is and listed.
    chunks
        Chunk shapes, slowest axis first, by name or pattern, for datasets that get filters. By default a dataset keeps
        its own.
    checksum
        Add fletcher32 to pipelines with zfp that have none, so that damage cannot go unseen.
    overwrite
        Replace a target that exists.
    progress
        Called before the first and after each chunk.

    Returns
    -------
    RepackResult
        Sizes, errors and times.

    Raises
    ------
    FileError
        If a file cannot be read or written, exists already, or a name matches nothing.
    ParameterError
        If a dataset cannot take its filters or chunks.
    BoundError
        If the target, read again, differs by more than allowed; it is removed.
    """
    began = time.perf_counter()
    source, target = Path(source), Path(target)
    if not isinstance(recipes, Mapping) or isinstance(recipes, Filter) or not recipes:
        raise ParameterError(f"expected at least one recipe such as {{'TS': 'zfp(accuracy=0.1)'}}, got {recipes!r}")
    if not isinstance(chunks or {}, Mapping) or not all(isinstance(name, str) for name in (*recipes, *(chunks or {}))):
        raise ParameterError(f"expected names as text, got {[*recipes]!r} and chunks {chunks!r}")
    pipelines = {name: _with_checksum(as_pipeline(value), checksum) for name, value in recipes.items()}
    shapes = {name: chunk_shape(value) for name, value in (chunks or {}).items()}
    report = progress or (lambda *_: None)
    with (
        open_source(source, cache_nbytes=_CACHE_NBYTES) as file,
        Transaction(target, overwrite=overwrite) as transaction,
    ):
        plans, kept = _plan(file, pipelines, shapes)
        _check_target(target, source, overwrite)
        written = _write(file, plans, transaction, report)
        done = _verify(file, plans, written, transaction, report)
        transaction.commit()
    return RepackResult(
        os.fspath(source),
        os.fspath(target),
        source.stat().st_size,
        target.stat().st_size,
        done,
        tuple(kept.items()),
        time.perf_counter() - began,
    )


def _check_target(target: Path, source: Path, overwrite: bool) -> None:
    if not target.exists():
        return
    if target.samefile(source):
        raise FileError(f"{target}: expected a target other than the source, got the same file")
    if not overwrite:
        raise FileError(f"{target}: exists already: choose another name, or overwrite it (--overwrite)")


def _write(
    file: h5py.File, plans: Mapping[str, Plan], transaction: Transaction, report: Progress
) -> dict[str, Written]:
    written: dict[str, Written] = {}

    def recreate(plan: Plan, found: h5py.Dataset, parent: h5py.Group, name: str) -> h5py.Dataset:
        made, written[plan.path] = write(plan, found, parent, name, partial(report, f"writing {plan.path}"))
        return made

    try:
        with create_target(file, transaction.path) as out:
            transaction.protect()
            copy_tree(file, out, {path: partial(recreate, plan) for path, plan in plans.items()})
    except TamisError:
        raise
    except (OSError, RuntimeError) as error:  # HDF5 reports a full disk as either
        raise FileError(f"{transaction.target}: cannot be written: {error}") from error
    return written


def _verify(
    file: h5py.File,
    plans: Mapping[str, Plan],
    written: Mapping[str, Written],
    transaction: Transaction,
    report: Progress,
) -> tuple[Repacked, ...]:
    with open_source(transaction.path) as out:
        return tuple(_result(plan, file[path], out[path], written[path], report) for path, plan in plans.items())


def _with_checksum(pipeline: Pipeline, checksum: bool) -> Pipeline:
    guarded = any(isinstance(each, Fletcher32) for each in pipeline.filters)
    if not checksum or guarded or pipeline.zfp is None:
        return pipeline
    return Pipeline((*pipeline.stages, Fletcher32()))


def _plan(
    file: h5py.File, pipelines: Mapping[str, Pipeline], chunks: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, Plan], dict[str, str]]:
    found = datasets(file)
    shapes: dict[str, tuple[int, ...]] = {}
    named: set[str] = set()
    for name, shape in _names_first(chunks):
        for path in _meant(name, file, found):
            shapes.setdefault(path, shape)
            named |= set() if is_pattern(name) else {path}
    plans: dict[str, Plan] = {}
    kept: dict[str, str] = {}
    for name, pipeline in _names_first(pipelines):
        for path in _meant(name, file, found):
            if path in plans:
                continue
            try:
                plans[path] = _plan_dataset(path, found[path], pipeline, shapes.get(path))
                kept.pop(path, None)
            except ParameterError as error:
                if not is_pattern(name):
                    raise ParameterError(f"{path}: {error}") from error
                kept[path] = str(error)
    if unused := [path for path in shapes if path in named and path not in plans]:
        raise ParameterError(f"expected a filter for each dataset with new chunks, got none for {', '.join(unused)}")
    return plans, kept


def _meant(name: str, file: h5py.File, found: Mapping[str, h5py.Dataset]) -> list[str]:
    """Paths that a name or pattern means; a name may be another link to a dataset."""
    if name not in found and not is_pattern(name) and name.strip("/"):
        linked = file.get(name)
        others = [path for path, each in found.items() if each == linked]
        if others:
            return others
    return matching(name, list(found))


def _names_first(wanted: Mapping[str, T]) -> list[tuple[str, T]]:
    return sorted(wanted.items(), key=lambda item: is_pattern(item[0]))


def _plan_dataset(path: str, dataset: h5py.Dataset, pipeline: Pipeline, chunks: tuple[int, ...] | None) -> Plan:
    dtype = number_type(dataset)
    if dtype is None:
        raise ParameterError("expected numbers, got values of another type, which these filters cannot take")
    if any("\udc80" <= letter <= "\udcff" for letter in path):
        raise ParameterError("expected a name in UTF-8, got one with bytes that are not")
    if dataset.shape is None or dataset.ndim == 0:
        raise ParameterError("expected an array, got a scalar, which HDF5 cannot filter")
    notes = []
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
        notes.append(f"converted from {dataset.dtype.str} to native {dtype.str}")
    if chunks is None:
        chunks = dataset.chunks or default_chunks(dataset.shape, dtype.itemsize)
    if len(chunks) != dataset.ndim:
        raise ParameterError(f"expected chunks with {dataset.ndim} axes, got {chunks}")
    for extent, limit, step in zip(dataset.shape, dataset.maxshape, chunks, strict=True):
        if limit is not None and step > max(extent, limit):
            raise ParameterError(f"expected chunks within the shape {dataset.shape}, got {chunks}")
    chunk = ChunkType(dtype, chunks)
    if chunk.nbytes >= 1 << 32:
        raise ParameterError(f"expected a chunk of less than 4 GiB, got {chunks} of {dtype}: {chunk.nbytes} bytes")
    pipeline.check(chunk)
    return Plan(path, pipeline, dtype, chunks, tuple(notes))


def _result(plan: Plan, source: h5py.Dataset, target: h5py.Dataset, written: Written, report: Progress) -> Repacked:
    largest = verify(plan, source, target, partial(report, f"verifying {plan.path}"))
    return Repacked(
        path=plan.path,
        pipeline=str(plan.pipeline),
        nbytes=source.size * source.id.get_type().get_size(),
        source_nbytes=source.id.get_storage_size(),
        target_nbytes=target.id.get_storage_size(),
        bound=plan.bound,
        largest_error=largest,
        chunks=written.chunks,
        lossless_chunks=written.lossless_chunks,
        notes=plan.notes + _advice(plan, written),
    )


def _advice(plan: Plan, written: Written) -> tuple[str, ...]:
    notes = tuple(
        f"{count} of {written.chunks} chunks are stored without {text}, which could not be applied to them"
        for text, count in written.skipped.items()
    )
    if 2 * written.lossless_chunks <= written.chunks:
        return notes
    shape = "x".join(map(str, plan.chunks))
    return (
        *notes,
        f"{written.lossless_chunks} of {written.chunks} chunks are stored without zfp, which cannot keep them within"
        f" the bound: if missing values beside others are why, smaller chunks than {shape} (-c) leave more to zfp",
    )
