"""Write encoded chunks into a new dataset, without HDF5's filters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import h5py
from h5py import h5g, h5i, h5s, h5t

from tamis.arrays.grid import ChunkNotes, Grid
from tamis.errors import ParameterError, TamisError
from tamis.formats.hdf5.companion_writer import create_companion
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import record_rounding
from tamis.formats.hdf5.lib.chunk_index import chunk_info
from tamis.formats.hdf5.lib.direct_chunks import SIZE_AND_MASK, check_recorded, settle, write_chunks
from tamis.formats.hdf5.lib.file_facts import shares_messages
from tamis.formats.hdf5.lib.quick_facts import Creation, rewrite_small
from tamis.formats.hdf5.tree.create import new_dataset, plist_like, type_like
from tamis.formats.hdf5.tree.walk import Link, link_plist
from tamis.formats.hdf5.writing.creation import as_recorded, filter_parameters
from tamis.rewrite.new_chunk import native_encoder
from tamis.rewrite.rewrite import Rewrite, WrittenAtOnce

if TYPE_CHECKING:
    from tamis.accuracy.value_bounds import ArrayRounding, RoundedPart
    from tamis.formats.hdf5.stored_array import Hdf5Array
    from tamis.meaning.missing import Flags
    from tamis.pipeline import Pipeline
    from tamis.stores.protocols import EncodedChunk

_MOST_GAPS = 1000
"""Limit of chunks whose offset HDF5 is asked for, because each costs a walk over all chunks."""


_MOST_CREATIONS = 1024

_ANY_NBYTES = 1 << 62


class GrowingFile:
    """A file that datasets are written to: its end, where HDF5 adds chunks, and how datasets are created."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.creations: dict[object, Creation] = {}
        self._nbytes = self._gaps = 0

    def offset_of(self, dataset: h5py.Dataset, grid: Grid, chunk: EncodedChunk, file_nbytes: int) -> int:
        """Return the offset of a chunk, given the size of the file after writing it.

        If the offset is wrong, the checksum does not match, and a later run encodes the chunk again. HDF5 walks over
        all chunks to find one: it is asked only if the file has not grown, because the chunk went into a gap.
        """
        before, self._nbytes = self._nbytes, file_nbytes
        if self._nbytes == before and self._gaps < _MOST_GAPS:
            self._gaps += 1
            return int(chunk_info(dataset.id, grid.origin_of(chunk.number)).byte_offset)
        return max(self._nbytes - len(chunk.data), 0)


class Hdf5Writer:
    """A writer of a new dataset. See `tamis.stores.protocols.ArrayWriter`.

    Reopen the file before reading: while the dataset is open, HDF5 2.0 ignores the mask of a chunk that was written
    directly.
    """

    def __init__(
        self,
        dataset: h5py.Dataset,
        grid: Grid,
        pipeline: Pipeline,
        growing: GrowingFile | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self.dataset, self.grid, self.recorded = dataset, grid, pipeline
        self.stored_nbytes = 0
        self._notes, self._growing, self._shared = ChunkNotes(SIZE_AND_MASK), growing, shared

    def put(self, chunks: Sequence[EncodedChunk]) -> Sequence[int | None]:
        """Write chunks, each of which may be written once; return their offsets in the file."""
        with calls.lock:
            sizes = self._write(chunks)
        self._notes.extend((chunk.number, len(chunk.data), chunk.mask) for chunk in chunks)
        self.stored_nbytes += sum(len(chunk.data) for chunk in chunks)
        if (growing := self._growing) is None:
            return (None,) * len(chunks)
        return [
            growing.offset_of(self.dataset, self.grid, chunk, size) for chunk, size in zip(chunks, sizes, strict=True)
        ]

    def _write(self, chunks: Sequence[EncodedChunk]) -> Sequence[int]:
        """Write chunks, and return the size of the file after each, -1 if it is not needed."""
        path = None if self._growing is None else self._growing.path
        if not self._shared and (sizes := write_chunks(self.dataset.id, self.grid, path, chunks)) is not None:
            return sizes
        sizes = []
        for chunk in chunks:
            origin = self.grid.origin_of(chunk.number)
            self.dataset.id.write_direct_chunk(origin, chunk.data, chunk.mask)
            if self._shared:
                settle(self.dataset, origin, chunk.mask)
            sizes.append(-1 if path is None else os.stat(path).st_size)
        return sizes

    def create_companion(self, pipeline: Pipeline, flags: Flags) -> Hdf5Writer:
        """Create the companion of the dataset; it disappears if it gets no name."""
        companion, recorded = create_companion(self.dataset, self.grid.chunk_shape, pipeline, flags)
        return Hdf5Writer(companion, self.grid, recorded, self._growing)

    def discard(self) -> None:
        """Remove the dataset, so that another one can use its name and its space in the file."""
        with calls.lock:
            h5g.open(self.dataset.file.id, b"/").unlink(h5i.get_name(self.dataset.id))
            self.dataset.id.close()

    def finish(self) -> None:
        """Raise FileError unless HDF5's chunk records match exactly what was written."""
        check_recorded(self.dataset, self.grid, self._notes)


def create_writer(plan: Rewrite, source: Hdf5Array, parent: h5py.Group, name: str, growing: GrowingFile) -> Hdf5Writer:
    """Create the dataset of a plan, with the source's properties except type, chunks and filters."""
    try:
        if (like := _creation_of(plan, source, growing)) is not None:
            limits = tuple(h5s.UNLIMITED if limit is None else limit for limit in source.maxshape)
            space = h5s.create_simple(source.shape, limits)
            dataset = new_dataset(parent, name, like.datatype, space, like.plist)
            return _opened(dataset, plan, source, like.recorded, growing)
        filters = [
            (stage.filter.id, int(stage.optional), filter_parameters(stage, plan.chunk))
            for stage in plan.created.stages
        ]
        dtype: Any = h5t.py_create(plan.dtype) if plan.dtype != source.dtype else None
        plist = plist_like(source.dataset, chunk_shape=plan.chunk_shape, filters=filters)
        datatype = type_like(source.dataset, parent) if dtype is None else dtype
        if plan.codes is not None:
            calls.set_fill_bytes(plist, datatype, plan.packed(source).fill_value.tobytes())
        dataset = new_dataset(parent, name, datatype, source.dataset.id.get_space(), plist)
    except ValueError as error:
        raise ParameterError(f"{plan.path}: HDF5 cannot create a dataset with {plan.created}: {error}") from error
    recorded = as_recorded(plan.created, dataset)
    if source.form is not None and plan.codes is None and len(growing.creations) < _MOST_CREATIONS:
        encoder = native_encoder(recorded.within(plan.pipeline.bound), plan.chunk)
        growing.creations[_form(plan, source)] = Creation(datatype, plist, recorded, encoder)
    return _opened(dataset, plan, source, recorded, growing)


def write_small(
    plan: Rewrite, source: Hdf5Array, parent: h5g.GroupID, link: Link, growing: GrowingFile, most_nbytes: int | None
) -> tuple[WrittenAtOnce, bool] | None:
    """Create a small dataset like an earlier one, and fill it; see `CreateAtOnce.at_once`.

    Also returns whether the dataset is complete, with its attributes.
    """
    if (
        (like := _creation_of(plan, source, growing)) is None
        or plan.dtype != source.dtype
        or shares_messages(source.file)
    ):
        return None
    rounded = changed = None
    if plan.rounding is not None:
        if (rounded := _rounded(plan, plan.rounding, source)) is None:
            return None
        recorded = plan.rounding.rounding.recorded.items()
        kinds = [(h5t.py_create(values.dtype), h5s.create_simple(values.shape)) for _, values in recorded]
        added = zip(recorded, kinds, strict=True)
        attributes = [(name.encode(), kind.id, space.id, values.tobytes()) for (name, values), (kind, space) in added]
        changed = rounded.values.astype(source.dtype, copy=False).tobytes(), attributes
    most, links = _ANY_NBYTES if most_nbytes is None else most_nbytes, link_plist(link.charset)
    path = source.stored_path
    copy = rewrite_small(source.file, path, parent, link.name, links, like, plan.missing, most, changed)
    if copy is None or like.encoder is None:
        return None
    written = WrittenAtOnce(like.recorded, copy.chunks, like.encoder.mask)
    if rounded is not None:
        chunks = [(*chunk[:3], rounded.comparison.missing, rounded.comparison.error) for chunk in copy.chunks]
        written = written._replace(chunks=chunks, unrounded=rounded.unrounded)
    return written, copy.complete


def _rounded(plan: Rewrite, rounding: ArrayRounding, source: Hdf5Array) -> RoundedPart | None:
    """Return the rounded values of a small array of one chunk; None if the rounding fails, or more is required."""
    values = source.small_values() if plan.bounds is None and plan.chunk_shape == source.shape else None
    with suppress(TamisError):
        return None if values is None else rounding.apply(values, (0,) * values.ndim, plan.missing)
    return None


def _creation_of(plan: Rewrite, source: Hdf5Array, growing: GrowingFile) -> Creation | None:
    """Return how a dataset of the same form was created for an equal plan."""
    return None if source.form is None or plan.codes is not None else growing.creations.get(_form(plan, source))


def _form(plan: Rewrite, source: Hdf5Array) -> object:
    return source.form, plan.created, plan.chunk_shape, plan.dtype


def _opened(
    dataset: h5py.Dataset, plan: Rewrite, source: Hdf5Array, recorded: Pipeline, growing: GrowingFile
) -> Hdf5Writer:
    if plan.rounding is not None:
        record_rounding(dataset, plan.rounding.rounding)
    return Hdf5Writer(dataset, plan.grid(source), recorded, growing)
