"""New HDF5 files: copies of other ones, and encoded chunks and companions written into their datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5i, h5s, h5t

from tamis.arrays.grid import ChunkNotes, Grid
from tamis.errors import ParameterError, TamisError
from tamis.formats.hdf5.dataset import has_companion
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import (
    known_attributes,
    name_containers,
    record_rounding,
    replace_attributes,
    set_text,
)
from tamis.formats.hdf5.lib.chunks import SIZE_AND_MASK, check_recorded, chunk_info, settle, write_chunks
from tamis.formats.hdf5.lib.files import shares_messages
from tamis.formats.hdf5.lib.quick_facts import Creation, rewrite_small
from tamis.formats.hdf5.lib.references import copy_attribute
from tamis.formats.hdf5.store import Hdf5Store
from tamis.formats.hdf5.stored_array import Hdf5Array, other_ancillary
from tamis.formats.hdf5.tree.copy import Copied, DatasetSlot, TreeCopier
from tamis.formats.hdf5.tree.create import create_like, create_named, create_target, plist_like, type_like
from tamis.formats.hdf5.tree.links import Link, link_plist
from tamis.formats.hdf5.tree.times import keep_times
from tamis.formats.hdf5.writing.creation import as_recorded, filters_of, new_dataset
from tamis.meaning.companions import ANCILLARY, MARK, SHARED, TABLE, companion_names, description
from tamis.meaning.variables import HISTORY, NON_COORDINATE, with_line
from tamis.rewrite.create import CreateAtOnce, Slot, WrittenAtOnce
from tamis.rewrite.new_chunk import native_encoder
from tamis.rewrite.plan import ArrayPlan, Recode
from tamis.rewrite.steps import RoundStep
from tamis.rewrite.transfer import Changes, Companions
from tamis.safety.transaction import Transaction
from tamis.stores.other_files import OtherFiles

if TYPE_CHECKING:
    from tamis.meaning.missing import Flags
    from tamis.pipeline import Pipeline
    from tamis.rewrite.steps import RoundedPart
    from tamis.rounding import Rounding
    from tamis.stores.protocols import EncodedChunk


_SHARED = (*SHARED, "_Netcdf4Dimid", "_Netcdf4Coordinates")
"""Attributes about axes that a companion copies from its variable."""


def create_companion(
    variable: h5py.Dataset, chunk_shape: tuple[int, ...], pipeline: Pipeline, flags: Flags
) -> tuple[h5py.Dataset, Pipeline]:
    """Create the companion of a new dataset, without a name until all names of the file are known."""
    companion, recorded = new_dataset(
        variable.parent,
        variable.shape,
        np.uint8,
        filters=pipeline,
        chunks=chunk_shape,
        maxshape=variable.maxshape,
        fillvalue=np.uint8(flags.fill),
        attrs=None,
    )
    for name, value in description(_name(variable), flags).items():
        if isinstance(value, str):
            set_text(companion, name, value)
        else:
            companion.attrs[name] = value
    companion.attrs[TABLE] = flags.values
    return companion, recorded


def create_empty(source: h5py.Dataset, parent: h5g.GroupID, link: Link) -> h5py.Dataset:
    """Create a dataset without values instead of a companion that `replace_companions` will remove."""
    return create_like(source, h5py.Group(parent), link.text, chunk_shape=source.chunks, filters=())


def replace_companions(file: h5py.File, old: Iterable[str], new: Mapping[str, h5py.Dataset | None]) -> None:
    """Remove outdated companions, and name new ones in the attributes of their variables."""
    for path in new:
        if has_companion(file[path]):
            _forget(file[path])
    for path in old:
        for axis, scales in enumerate(_scales(file[path])):
            for scale in scales:
                file[path].dims[axis].detach_scale(scale)
        del file[path]
    for path, companion in new.items():
        if companion is not None:
            _link(file[path], companion)


def _link(variable: h5py.Dataset, companion: h5py.Dataset) -> None:
    """Name a companion, attach the axes of its variable, and name it in the attributes of the variable."""
    parent = variable.parent
    free = next(name for name in companion_names(_name(variable)) if parent.get(name, getlink=True) is None)
    parent[free] = companion
    for shared in _SHARED:
        raw = shared.encode()
        if h5a.exists(variable.id, raw):
            copy_attribute(variable.id, companion.id, raw, None)
    for axis, scales in enumerate(_scales(variable)):
        for scale in scales:
            companion.dims[axis].attach_scale(scale)
    set_text(variable, MARK, f"{parent.name.rstrip('/')}/{free}")
    set_text(variable, ANCILLARY, " ".join([*other_ancillary(variable), free]))


def _forget(variable: h5py.Dataset) -> None:
    """Remove the name of a companion from the attributes of a variable."""
    others = other_ancillary(variable)
    del variable.attrs[MARK]
    if others:
        set_text(variable, ANCILLARY, " ".join(others))
    elif ANCILLARY in variable.attrs:
        del variable.attrs[ANCILLARY]


def _scales(dataset: h5py.Dataset) -> Sequence[Sequence[h5py.Dataset]]:
    """Return the dimension scales of each axis; a scale is that of its own axis."""
    if dataset.is_scale and "DIMENSION_LIST" not in dataset.attrs:
        return [[dataset]] + [[] for _ in dataset.shape[1:]]
    return [dataset.dims[axis].values() for axis in range(dataset.ndim)]


def _name(dataset: h5py.Dataset) -> str:
    return str(dataset.name).rpartition("/")[2].removeprefix(NON_COORDINATE)


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

    @property
    def has_whole_chunks(self) -> bool:
        """Whether there are no filters: HDF5 need not record the size of a chunk then."""
        return not self.recorded.stages

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


def create_writer(
    plan: ArrayPlan, source: Hdf5Array, parent: h5py.Group, name: str, growing: GrowingFile
) -> Hdf5Writer:
    """Create the dataset of a plan, with the source's properties except type, chunks and filters."""
    try:
        if (like := _creation_of(plan, source, growing)) is not None:
            limits = tuple(h5s.UNLIMITED if limit is None else limit for limit in source.maxshape)
            space = h5s.create_simple(source.shape, limits)
            dataset = create_named(parent, name, like.datatype, space, like.plist)
            return _writer_of(dataset, plan, source, like.recorded, growing)
        filters = filters_of(plan.created, plan.chunk)
        dtype: Any = h5t.py_create(plan.dtype) if plan.dtype != source.type.dtype else None
        plist = plist_like(source.dataset, chunk_shape=plan.chunk_shape, filters=filters)
        datatype = type_like(source.dataset, parent) if dtype is None else dtype
        if plan.codes is not None:
            calls.set_fill_bytes(plist, datatype, plan.source_of(source).fill.value.tobytes())
            plist.set_fill_time(h5d.FILL_TIME_IFSET)  # of a source that is never filled, 0 would be read
        dataset = create_named(parent, name, datatype, source.dataset.id.get_space(), plist)
    except ValueError as error:
        raise ParameterError(f"{plan.path}: HDF5 cannot create a dataset with {plan.created}: {error}") from error
    recorded = as_recorded(plan.created, dataset)
    if source.form is not None and plan.codes is None and len(growing.creations) < _MOST_CREATIONS:
        encoder = native_encoder(recorded.within(plan.pipeline.bound), plan.chunk)
        growing.creations[_form(plan, source)] = Creation(datatype, plist, recorded, encoder)
    return _writer_of(dataset, plan, source, recorded, growing)


def write_small(
    plan: Recode, source: Hdf5Array, parent: h5g.GroupID, link: Link, growing: GrowingFile, most_nbytes: int | None
) -> tuple[WrittenAtOnce, bool] | None:
    """Create a small dataset like an earlier one, and fill it; see `CreateAtOnce.at_once`.

    Also returns whether the dataset is complete, with its attributes.
    """
    like = _creation_of(plan, source, growing)
    if like is None or plan.dtype != source.type.dtype or shares_messages(source.file):
        return None
    rounded = changed = None
    if (step := plan.step(RoundStep)) is not None:
        rounded = _rounded(plan, step, source)
        if rounded is None:
            return None
        recorded = step.rounding.recorded.items()
        # Native code takes identifiers, which close with their objects.
        kinds = [(h5t.py_create(values.dtype), h5s.create_simple(values.shape)) for _, values in recorded]
        added = zip(recorded, kinds, strict=True)
        attributes = [(name.encode(), kind.id, space.id, values.tobytes()) for (name, values), (kind, space) in added]
        changed = rounded.values.astype(source.type.dtype, copy=False).tobytes(), attributes
    most = _ANY_NBYTES if most_nbytes is None else most_nbytes
    links = link_plist(link.charset)
    path = source.stored_path
    copy = rewrite_small(source.file, path, parent, link.name, links, like, plan.checks.missing, most, changed)
    if copy is None or like.encoder is None:
        return None
    written = WrittenAtOnce(like.recorded, copy.chunks, like.encoder.mask)
    if rounded is not None:
        chunks = [(*chunk[:3], rounded.comparison.missing, rounded.comparison.error) for chunk in copy.chunks]
        written = written._replace(chunks=chunks, unrounded=rounded.unrounded)
    return written, copy.complete


def _rounded(plan: ArrayPlan, step: RoundStep, source: Hdf5Array) -> RoundedPart | None:
    """Return the rounded values of a small array of one chunk; None if the rounding fails, or more is required."""
    values = source.small_values() if plan.checks.bounds is None and plan.chunk_shape == source.shape else None
    with suppress(TamisError):
        return None if values is None else step.apply(values, (0,) * values.ndim, plan.checks.missing)
    return None


def _creation_of(plan: ArrayPlan, source: Hdf5Array, growing: GrowingFile) -> Creation | None:
    """Return how a dataset of the same form was created for an equal plan."""
    return None if source.form is None or plan.codes is not None else growing.creations.get(_form(plan, source))


def _form(plan: ArrayPlan, source: Hdf5Array) -> object:
    """Return what datasets share that are created in the same way."""
    return source.form, plan.created, plan.chunk_shape, plan.dtype


def _writer_of(
    dataset: h5py.Dataset, plan: ArrayPlan, source: Hdf5Array, recorded: Pipeline, growing: GrowingFile
) -> Hdf5Writer:
    """Return the writer of a new dataset, which records its rounding, if it has one."""
    if plan.rounding is not None:
        record_rounding(dataset, plan.rounding)
    return Hdf5Writer(dataset, plan.grid(source), recorded, growing)


class _Create(CreateAtOnce):
    """Creates the copy of a dataset at its place in a new file."""

    rounding: Rounding | None = None  # The rounding of its values; None if they are not rounded
    replaced: Mapping[str, Any] = {}  # Attributes that the copy gets in place of the source's; None for one to remove

    def __init__(self, source: Hdf5Array, slot: DatasetSlot, growing: GrowingFile) -> None:
        self._source, self._slot, self._growing = source, slot, growing
        self._writer: Hdf5Writer | None = None

    def __call__(self, plan: ArrayPlan) -> Hdf5Writer:
        if self._writer is not None:
            self._writer.discard()
        self._source.keep(self._slot.source())
        parent, name = h5py.Group(self._slot.parent), self._slot.link.text
        self._writer = writer = create_writer(plan, self._source, parent, name, self._growing)
        self._slot.copy = writer.dataset
        self.replaced = plan.replaced_attributes(self._source)
        self.rounding = plan.rounding
        return writer

    def give_up(self) -> None:
        """Close what was begun, so that its space in the file is used again when it is removed."""
        if self._writer is not None:
            self._writer.dataset.id.close()
        self._slot.copy = None

    def at_once(self, plan: Recode, most_nbytes: int | None) -> WrittenAtOnce | None:
        small = write_small(plan, self._source, self._slot.parent, self._slot.link, self._growing, most_nbytes)
        if small is None:
            return None
        written, complete = small
        self._slot.copy = Copied(complete)
        if self._source.storage.pipeline.error_bound != 0 or plan.lossy:
            self.replaced = plan.replaced_attributes(self._source)
        self.rounding = plan.rounding
        return written


class FileCopy:
    """A new file that gets everything of another one, object by object; see `tamis.rewrite.transfer.NewStore`."""

    def __init__(self, source: Hdf5Store, target: Transaction, changes: Changes, out: h5py.File) -> None:
        self._source, self._out, self._growing = source, out, GrowingFile(str(target.path))
        self._outdated = [*map(source.stored_path, changes.outdated)]
        paths = {source.stored_path(path): path for path in changes.anew}
        self._paths = {stored: path for stored, path in paths.items() if stored not in self._outdated}
        self._roundings: dict[str, Rounding] = {}
        self._replaced: dict[str, Mapping[str, Any]] = {}
        self._copier = TreeCopier(
            source.file,
            out,
            {**self._paths, **dict.fromkeys(self._outdated)},
            map(source.stored_path, changes.dropped),
            source.relocation(os.fspath(target.target), changes.places),
        )
        self.headers: list[tuple[h5py.File, int, int]] = []
        self.others = OtherFiles([], [])

    def slots(self) -> Iterator[Slot]:
        """See `NewStore.slots`."""
        for place in self._copier.slots():
            path = self._paths.get(place.path)
            if path is None:  # a companion that `replace_companions` will remove
                place.copy = create_empty(place.source(), place.parent, place.link)
                continue
            array = self._source.contents.datasets.looked_at(path) or self._source.array(path)
            create = _Create(array, place, self._growing)
            slot = Slot(path, array, create)
            yield slot
            if slot.is_kept:
                create.give_up()
                continue
            if create.rounding is not None:
                self._roundings[place.path] = create.rounding
            if create.replaced:
                self._replaced[place.path] = create.replaced

    def finish(self, companions: Companions, line: str) -> None:
        """See `NewStore.finish`."""
        history = with_line(known_attributes(self._source.file, HISTORY, "Conventions"), line)
        copied = self._copier.finish(history)
        datasets = {
            self._source.stored_path(path): writer.dataset if isinstance(writer, Hdf5Writer) else None
            for path, writer in companions.items()
        }
        replace_companions(self._out, self._outdated, datasets)
        name_containers(self._out, self._roundings)
        for path, attributes in self._replaced.items():
            dataset = h5d.open(self._out.id, path.encode("utf-8", "surrogateescape"))
            replace_attributes(h5py.Dataset(dataset), attributes)
        self.headers, self.others = copied.headers, copied.others._replace(notes=copied.notes)


@contextmanager
def copied_file(
    source: Hdf5Store, target: Transaction, changes: Changes, block_nbytes: int | None = None
) -> Iterator[FileCopy]:
    """Create a file that gets everything of another one; see `tamis.rewrite.transfer.TargetForm.copying`."""
    with create_target(source.file, target.path, block_nbytes, target.mode) as out:
        copy = FileCopy(source, target, changes, out)
        yield copy
    keep_times(source.file, target.path, copy.headers)
