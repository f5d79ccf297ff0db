"""Create a dataset and fill it chunk by chunk, encoded in threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import h5py

from tamis.chunks.gather import over_chunks
from tamis.chunks.grid import Origin, Region, origin_of
from tamis.errors import ParameterError, TamisError
from tamis.filters import ChunkType
from tamis.hdf5.lib.direct_chunks import check_recorded
from tamis.hdf5.rewriting.companions import CompanionWriter, flags_of_rest
from tamis.hdf5.rewriting.encoding import NewChunk, make_chunk
from tamis.hdf5.rewriting.growth import LargerError, check_growth, held_back
from tamis.hdf5.rewriting.history import History
from tamis.hdf5.rewriting.plans import Plan, Written, parts_of
from tamis.hdf5.rewriting.streams import encode_streams
from tamis.hdf5.storage import check_readable, stored_type
from tamis.hdf5.tree.create import create_like
from tamis.hdf5.values import open_values
from tamis.hdf5.writing.creation import as_recorded, filter_parameters
from tamis.pipeline import Pipeline
from tamis.store.journal import seal_of

Progress = Callable[[int, int], None]


def write(
    plan: Plan,
    source: h5py.Dataset,
    parent: h5py.Group,
    name: str,
    progress: Progress,
    threads: int = 1,
    history: History | None = None,
) -> tuple[h5py.Dataset, Written]:
    """Create the dataset of a plan and fill it from its source.

    Memory: a few chunks for each thread, up to 64 MiB where chunks are put together from those of another shape, up to
    16 MiB of encoded chunks where a dataset must not grow, and a record of each chunk. `progress` gets chunks done and
    chunks in all. What is written does not depend on the number of threads. Reopen the file before you read what was
    written: HDF5 2.0 forgets the mask of a chunk that was written directly for as long as the dataset is open.

    Parameters
    ----------
    plan
        What to write.
    source
        Where from; its file and that of the target stay with the caller.
    parent, name
        Where to.
    progress
        Called in this thread, before the first chunk and after each.
    threads
        Threads that decode, encode, decode again and compare; this one writes.
    history
        Of the dataset: chunks that it has are not encoded again, others are noted in it.

    Raises
    ------
    LargerError
        If the dataset must not grow, and would; no chunk was written.
    FileError
        If the source cannot be read, or HDF5 recorded a chunk not as it was written.
    ParameterError, MissingFilterError
        If HDF5 cannot create a dataset with these filters, or one cannot be encoded here.
    """
    chunk = ChunkType(plan.dtype, plan.chunks)
    plan.pipeline.check_encodable()
    check_readable(source)
    parts = parts_of(plan, source)
    most_nbytes = check_growth(plan, source, len(parts))
    target = _created(plan, source, parent, name, chunk)
    plan = replace(plan, pipeline=as_recorded(plan.pipeline, target))
    plan = replace(plan, flags=flags_of_rest(plan, source, len(parts)))
    companion = CompanionWriter(target, plan.chunks, plan.flags)
    recorded: dict[Origin, tuple[int, int]] = {}
    proven: dict[Origin, int] = {}
    missing = lossless = for_missing = for_range = 0
    largest = 0.0
    skipped: Counter[str] = Counter()
    progress(0, len(parts))
    with closing(_encoded(plan, source, parts, threads, history)) as encoded:
        for each in encoded if most_nbytes is None else held_back(encoded, most_nbytes):
            target.id.write_direct_chunk(each.origin, each.data, each.mask)
            if history is not None:
                history.add(each, target)
            recorded[each.origin] = (len(each.data), each.mask)
            if each.error is not None:
                proven[each.origin] = seal_of(each.data, each.mask)
                largest = max(largest, each.error)
            companion.put(each.origin, each.flags)
            if history is not None:
                history.add_flags(each, companion.dataset)
            without_zfp = plan.pipeline.zfp is not None and bool(each.mask & 1)
            missing, lossless = missing + each.missing, lossless + without_zfp
            for_missing += bool(without_zfp and each.missing)
            for_range += bool(without_zfp and each.crossed and not each.missing)
            skipped.update(_not_applied(plan.pipeline, each.mask))
            progress(len(recorded), len(parts))
    check_recorded(target, recorded)
    companion.finish()
    reused = 0 if history is None else history.reused
    return target, Written(
        len(parts),
        lossless,
        missing,
        for_missing,
        for_range,
        dict(skipped),
        reused,
        companion.dataset,
        plan.pipeline,
        proven,
        largest,
    )


def would_grow(plan: Plan, source: h5py.Dataset) -> bool:
    """Return whether a dataset that must not grow would; encodes its chunks in memory to see."""
    try:
        if check_growth(plan, source, len(parts_of(plan, source))) is None:
            return False
        with h5py.File("would-grow", "w", driver="core", backing_store=False) as memory:
            write(plan, source, memory, "x", lambda *_: None)
    except LargerError:
        return True
    except TamisError:  # it cannot be stored at all
        return False
    return False


def _not_applied(pipeline: Pipeline, mask: int) -> Iterator[str]:
    """Name filters that a chunk goes without because they failed; behind zfp some are left out on purpose."""
    for at, each in enumerate(pipeline.stages):
        if mask >> at & 1 and each.filter != pipeline.zfp and (pipeline.zfp is None or mask & 1):
            yield str(each.filter)


def _encoded(
    plan: Plan, source: h5py.Dataset, parts: list[Region], threads: int, history: History | None
) -> Generator[NewChunk, None, None]:
    if history is not None:
        done = set()
        for each in history.encoded(parts, plan.flags):
            yield each
            done.add(each.origin)
        parts = [part for part in parts if origin_of(part) not in done]
    if plan.streams_kept:
        with closing(encode_streams(plan, source, parts, threads)) as encoded:
            yield from encoded
        return
    values = open_values(source)
    with (
        closing(values),
        closing(
            over_chunks(values, parts, source.shape, plan.chunks, plan.dtype, partial(make_chunk, plan), threads)
        ) as encoded,
    ):
        yield from encoded


def _created(plan: Plan, source: h5py.Dataset, parent: h5py.Group, name: str, chunk: ChunkType) -> h5py.Dataset:
    filters = [(each.filter.id, int(each.optional), filter_parameters(each, chunk)) for each in plan.pipeline.stages]
    dtype: Any = h5py.h5t.py_create(plan.dtype) if plan.dtype != stored_type(source) else None
    try:
        return create_like(source, parent, name, chunks=plan.chunks, filters=filters, dtype=dtype)
    except ValueError as error:
        raise ParameterError(f"{plan.path}: HDF5 cannot create a dataset with {plan.pipeline}: {error}") from error
