"""Inspect a file: every dataset, its filters, what they save, and what can read it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.advice import Chunking, Note
from tamis.arguments import NAMES, PATH
from tamis.arrays import UnsureIndexError, zfp_padding
from tamis.errors import FileError
from tamis.filters import Filter
from tamis.formats import open_store
from tamis.formatting import absent_text
from tamis.jobs.inspect.dataset_info import ChunkGroup, DatasetInfo, GroupInfo
from tamis.jobs.inspect.result import Inspection
from tamis.jobs.recipes import Names
from tamis.meaning import numbers
from tamis.rounding import recorded_rounding, used_bits
from tamis.safety import reading
from tamis.stores import Readers, Store, StoredArray, values_nbytes_of

if TYPE_CHECKING:
    from tamis.meaning import Role
    from tamis.pipeline import Pipeline
    from tamis.rounding import Rounding

_CLOSE = 1e-3
"""Steps within which an end of ``actual_range`` is that of packed values."""

_Readers = Callable[[tuple[Filter, ...]], Readers]


def inspect(path: str | os.PathLike[str], variables: Sequence[str] = ()) -> Inspection:
    """Return the datasets of an HDF5 or netCDF file, their filters, and what can read them.

    No plugin is needed, and no values are read.

    Parameters
    ----------
    path
        Path of the file.
    variables
        Names of datasets, or patterns such as ``/group/*``, to show only those; by default all.

    Returns
    -------
    Inspection
        The datasets, printed as a table; `to_json` returns them as JSON.

    Raises
    ------
    FileError
        If the file is not HDF5 or netCDF, or damaged, or no dataset matches a name; lists those found.

    Examples
    --------
    >>> result = inspect("examples/data/cam_ts.nc", ["TS"])
    >>> result.datasets[0].filters
    ('shuffle', 'deflate level 2')
    """
    PATH.check("path", path)
    NAMES.check("variables", variables)
    selection = [variables] if isinstance(variables, str) else variables
    with open_store(path) as store:
        with reading(path):
            labels = _labels(store, selection) if selection else {}
            chosen = store.arrays.labelled(labels, others=False) if selection else store.arrays
            roles = {**store.roles} | {label: store.roles[path] for path, label in labels.items()}
            # Most datasets have the same filters. Available plugins may change until the next call.
            readers = cache(store.readers_of)

            def examine(name: str) -> DatasetInfo:
                with reading(path, dataset=name):
                    return _examine(name, chosen[name], readers, roles[name], store)

            datasets = tuple(map(examine, chosen))
            filtered = () if selection else store.filtered_groups()
            groups = tuple(GroupInfo(path, own, readers(own.filters), problem) for path, own, problem in filtered)
        return Inspection(os.fsdecode(path), store.nbytes, datasets, groups)


def _labels(store: Store, selection: Iterable[str]) -> dict[str, str]:
    return Names(store).labels(selection)


def _examine(name: str, dataset: StoredArray, readers: _Readers, role: Role, store: Store) -> DatasetInfo:
    pipeline = dataset.storage.pipeline
    shape, maxshape, steps = dataset.shape, dataset.maxshape, dataset.storage.chunk_shape
    masks, stored_nbytes, unsure = _chunks(dataset) if shape and steps is not None and 0 not in shape else ({}, 0, "")
    chunking = None
    if shape is not None and steps is not None and not unsure:
        growing = tuple(most != extent for most, extent in zip(maxshape, shape, strict=True))
        chunking = Chunking(
            shape=shape,
            growing=growing,
            chunk=dataset.storage.chunk,
            pipeline=pipeline,
            masks=masks,
            stored_nbytes=stored_nbytes,
            varying=dataset.type.varies and not store.model.is_loose,  # chunks of Zarr hold the values themselves
        )
    companion_notes, problem = _companion(dataset)
    missing, packed_to = dataset.meaning.missing, dataset.storage.packed_to
    applied = pipeline.filters if chunking is None else chunking.applied_filters
    rounding = recorded_rounding(dataset.attributes, dataset.type.numbers if packed_to is None else packed_to.dtype)
    own_readers = readers(applied)
    if package := dataset.storage.reader_package:
        own_readers = replace(own_readers, words=f"{own_readers.words} with {package}")
    return DatasetInfo(
        path=name,
        shape=shape,
        dtype=dataset.type.text,
        byteorder=dataset.type.byteorder,
        maxshape=maxshape,
        layout=dataset.storage.layout,
        chunks=steps,
        pipeline=pipeline,
        nbytes=values_nbytes_of(dataset),
        stored_nbytes=dataset.stored_nbytes if chunking is None else stored_nbytes,
        total_chunks=math.prod(chunking.counts) if chunking else 0,
        chunk_groups=_groups(pipeline, masks),
        readers=own_readers,
        zfp_padding=zfp_padding(steps) if steps and chunking and chunking.zfp else None,
        zfp_better=chunking.better_for_zfp if chunking else None,
        notes=(
            *(chunking.notes if chunking else ()),
            *companion_notes,
            *_lost(role, applied, rounding),
            *_absence(dataset),
            *_bar(dataset),
        ),
        problem=dataset.storage.problem or problem or unsure,
        role=role,
        packing=dataset.meaning.packing,
        rounding=rounding,
        used_bits=_used_bits(dataset),
        packed_to=packed_to,
        valid_range=None if missing.low is missing.high is None else (_number(missing.low), _number(missing.high)),
    )


def _chunks(dataset: StoredArray) -> tuple[dict[int, int], int, str]:
    """Return the number of chunks with each mask, their bytes, and why their places are unknown; empty if known."""
    try:
        index = dataset.chunk_index()
    except UnsureIndexError as error:
        return {}, dataset.stored_nbytes, str(error).removeprefix(f"{dataset.label}: ")
    return index.mask_counts(), index.nbytes, ""


def _used_bits(dataset: StoredArray) -> int | None:
    """Return the bits that packed integers use, by ``actual_range``, without reading them; None if it is not known."""
    ends, packing, dtype = numbers(dataset.attributes, "actual_range"), dataset.meaning.packing, dataset.type.numbers
    if ends.size != 2 or packing is None or dtype is None or dtype.kind not in "iu":
        return None
    codes = (ends.astype(np.float64) - packing.offset) / packing.scale
    info, whole = np.iinfo(dtype), np.rint(codes)
    if not (np.abs(codes - whole) < _CLOSE).all() or whole.min() < info.min or whole.max() > info.max:
        return None  # not those of these values
    return used_bits(*map(int, whole), *map(int, dataset.meaning.missing.values))


def _number(limit: Any) -> int | float | None:
    number = None if limit is None else limit.item()
    return number if isinstance(number, int) or number is None else float(number)


def _lost(role: Role, applied: Iterable[Filter], rounding: Rounding | None) -> tuple[Note, ...]:
    """Return a note if values that should be exact went through filters or a rounding that change values."""
    lossy = [str(item) for item in applied if item.error_bound != 0]
    if rounding is not None:
        lossy.append(str(rounding))
    if not (lossy and role.is_exact) or role.kind == "axis values":  # which may be any series beside a larger variable
        return ()
    text = (
        f"{role.reason}: its values are not exact, because of {' and '.join(lossy)}; errors there move or merge"
        " places, times or labels: write it again from its source, through lossless filters"
    )
    return (Note("lossy-coordinate", text),)


def _absence(dataset: StoredArray) -> tuple[Note, ...]:
    absent = dataset.elsewhere.absent_files
    return (Note("absent-files", absent_text(absent)),) if absent else ()


def _bar(dataset: StoredArray) -> tuple[Note, ...]:
    """Return a note if the library of the format does not open the store without a package."""
    if not dataset.storage.bars_store:
        return ()
    text = (
        f"the consolidated metadata of the store name its codec: without {dataset.storage.reader_package}, zarr-python"
        " opens no group of the store, and its other arrays only one by one; repack --no-consolidated avoids that"
    )
    return (Note("codec-in-consolidated", text),)


def _companion(dataset: StoredArray) -> tuple[tuple[Note, ...], str]:
    """Return notes about a companion, and why the values of the dataset cannot be restored; empty if they can."""
    if dataset.marks.is_companion:
        text = "marks the missing values of another dataset: do not rename or change one without the other"
        return (Note("companion", text),), ""
    try:
        flags = dataset.companion_flags
    except FileError as error:
        return (), str(error)
    if flags is None:
        return (), ""
    text = f"its missing values are kept in {flags.path}: tamis restores them; other readers see invented values there"
    other = flags.other_shape(dataset.shape)
    return (Note("companion", f"{text}; {other}" if other else text),), ""


def _groups(pipeline: Pipeline, masks: Mapping[int, int]) -> tuple[ChunkGroup, ...]:
    names = [item.shown_name for item in pipeline.filters]
    groups = []
    for mask, count in sorted(masks.items(), key=lambda entry: (-entry[1], entry[0])):
        applied = tuple(name for i, name in enumerate(names) if not mask >> i & 1)
        skipped = tuple(name for i, name in enumerate(names) if mask >> i & 1)
        groups.append(ChunkGroup(mask, count, applied, skipped))
    return tuple(groups)
