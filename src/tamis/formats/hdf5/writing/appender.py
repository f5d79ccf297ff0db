"""Append steps to a dataset, for example of a simulation, and write only whole chunks."""

from __future__ import annotations

import math
import warnings
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis.arrays.grid import Grid, Origin, Region
from tamis.arrays.index import Parts
from tamis.arrays.threads import checked_threads, ordered_map
from tamis.caller import warn_caller
from tamis.errors import FileError, ParameterError, StreamError, TamisError, located
from tamis.formats.hdf5.chunk_access import DATASET
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.chunks import check_recorded, noted, put_chunk, record_of, settle
from tamis.formats.hdf5.writing.creation import OpenDataset, check_growth, growing_axis
from tamis.formats.hdf5.writing.kept import KeptChunks
from tamis.formatting import plural, printable
from tamis.rewrite.encode import Encoded, can_skip_loss, is_lossy
from tamis.rewrite.values import rounding_of
from tamis.safety.library_errors import disk_text, reading

_ENOUGH_CHUNKS = 8
"""So many full chunks tell what becomes of the others; fewer are judged when the appender is closed."""


@dataclass(frozen=True, slots=True)
class Partial:
    """The last chunks along the axis, if they are not full.

    Parameters
    ----------
    steps
        Number of their steps.
    full
        Number of steps of a full chunk.
    nbytes
        Their bytes in the file.
    raw_nbytes
        Bytes of their values.
    lossless
        Whether they are stored without loss.
    """

    steps: int
    full: int
    nbytes: int
    raw_nbytes: int
    lossless: bool

    def __str__(self) -> str:
        note = ", stored without loss until it is full" if self.lossless else ""
        return f"{self.steps} of {self.full} steps: {self.nbytes} bytes for {self.raw_nbytes} of values{note}"


class Appender:
    """Appends steps along an axis of a dataset, and writes them when a chunk is full: ZFP needs four along an axis.

    Steps wait in memory until then. `flush` and `close` also write waiting steps. Such a partial chunk is stored
    without loss, as its filter mask records. It takes more bytes, but continuing from it, in this or a later run, adds
    no error. Use it as a context manager, which closes it; appended steps are written even if an error ends the block.
    Its text, ``str(appender)``, counts steps and chunks. A warning says if most full chunks had to be stored without
    loss, which takes much more room.
    Floats are packed if the dataset is (see `create_dataset`), with NaN and masked ones as missing.

    Parameters
    ----------
    dataset
        A chunked dataset with room along the axis; its other axes have the extents of a step. Nothing else may write to
        it meanwhile; other threads may read it, and see whole steps. The caller closes the file.
    axis
        The axis of the steps; negative from the end.
    threads
        Number of threads that encode; by default as many as the process may use.
    recode
        How to continue a dataset that ends in a partial chunk stored with loss, for example by h5py. False keeps its
        values as they read, and stores that chunk permanently without loss. True encodes them again, which may add
        another error up to the bound.
    bound
        Largest error of a value; by default the one that the file records, as after `create_appender` with
        ``zfp(bound=…)``, or else that of the filters. It cannot be above the recorded one.

    Raises
    ------
    ParameterError
        If the dataset cannot grow along the axis or cannot be written here; or if it ends in a partial chunk with loss
        whose filter is required, so that continuing adds error, and `recode` is not given.
    FileError
        If the file is not open for writing, or the last chunk is damaged.
    MissingFilterError
        If a filter cannot be encoded here, or HDF5 does not have a required filter, which it needs to extend a dataset
        with a fill value.

    Examples
    --------
    ::

        with tamis.hdf5.Appender(file["TS"], axis=0) as appender:
            for step in simulation:
                appender.append(step)
    """

    def __init__(
        self,
        dataset: h5py.Dataset,
        axis: int = 0,
        *,
        threads: int | None = None,
        recode: bool = False,
        bound: float | None = None,
    ) -> None:
        DATASET.check("dataset", dataset)
        self._closed, self._ended = True, "is closed: create another"  # until there is something to close
        self._close_failed = False
        self._threads = checked_threads(threads)
        self._target = OpenDataset.of(dataset).within(bound)
        self._located = partial(located, path=dataset.file.filename, dataset=dataset.name)
        self._target.pipeline.check_encodable()
        self._target.pipeline.check(self._target.chunk)
        self._axis = growing_axis(self._target, axis)
        check_growth(self._target)
        self._full = self._target.chunk.shape[self._axis]
        self._start = dataset.shape[self._axis] // self._full * self._full
        self._count = dataset.shape[self._axis] - self._start
        self._written = self._count
        self._nbytes, self._lossless = 0, True
        self._kept = KeptChunks(self._target.pipeline, self._target.label)
        self._rounding = 0.0  # largest rounding of the steps in the buffer, from the given type to that of the file
        self._frozen: set[Origin] = set()
        self._recorded: dict[Origin, tuple[int, int]] = {}
        self._missing = self._target.missing
        shape = (*dataset.shape[: self._axis], self._full, *dataset.shape[self._axis + 1 :])
        self._buffer = np.empty(shape, self._target.chunk.dtype)
        if self._count:
            with reading(dataset.file.filename, dataset=str(dataset.name)):
                dataset.flush()  # write HDF5's cached data
                self._read_partial(recode=recode)
        self._closed = False

    @property
    def steps(self) -> int:
        """Number of steps, including those of earlier runs and those waiting in memory."""
        steps: int = self._start + self._count
        return steps

    @property
    def waiting(self) -> int:
        """Number of steps that are only in memory."""
        waiting: int = self._count - self._written
        return waiting

    @property
    def partial(self) -> Partial | None:
        """The partial chunks at the end of the file, with their size; None if there are none."""
        if not self._written:
            return None
        raw = self._buffer.nbytes // self._full * self._written
        return Partial(self._written, self._full, self._nbytes, raw, self._lossless)

    def append(self, values: ArrayLike) -> None:
        """Append one step (an array without the axis) or several (an array with it).

        Parameters
        ----------
        values
            The steps, which are copied. After an error, `steps` is the number of appended steps; those before the chunk
            that the error names are in the file.

        Raises
        ------
        ParameterError
            If the shape is neither that of a step nor that of several, the appender is closed, or the dataset cannot
            grow so far.
        DataError
            If the type of the dataset would change an integer or make a float infinite, or a required filter cannot
            encode the values.
        BoundError
            If a required filter, or the rounding to the type of the dataset, does not keep the bound.
        FileError
            If HDF5 cannot write, or something else changed the dataset.
        """
        with self._located():
            self._append(values)

    def _append(self, values: ArrayLike) -> None:
        self._check_open()
        if self._close_failed:
            raise ParameterError(
                f"{self._target.label}: the appender failed to close, and takes no more steps: call close again, or"
                " create another"
            )
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        steps = self._as_steps(array)
        with located(f"{self._target.label}: step {self.steps}"):
            self._missing = self._target.missing_in(steps) if np.ma.is_masked(steps) else self._missing
            origin = tuple(self.steps if number == self._axis else 0 for number in range(steps.ndim))
            # Once, on arrival: a later run does not round the steps in the file again, which could add error.
            steps, rounding = self._target.stored(steps, origin, self._missing)
        begin, count = 0, steps.shape[self._axis]
        self._check_room(count)
        while begin < count:
            self._rounding = max(self._rounding, rounding)
            old_count = self._count
            part_count = min(count - begin, self._full - old_count)
            self._buffer[self._along(old_count, old_count + part_count)] = steps[self._along(begin, begin + part_count)]
            self._count += part_count
            if self._count == self._full:
                try:
                    self._write()
                except BaseException:
                    self._count = old_count
                    raise
            begin += part_count

    def flush(self) -> None:
        """Write waiting steps, and make HDF5 write what it has in memory of the file.

        A process that is killed afterwards loses none of these steps. The partial chunk is written again with later
        steps, so each flush writes its bytes again.

        Raises
        ------
        FileError
            If HDF5 cannot write, as on a full disk.
        """
        with self._located():
            self._check_open()
            if self.waiting:
                self._write()
            try:
                self._flush_file()
            except (OSError, RuntimeError) as error:
                raise FileError(f"{self._target.label}: HDF5 cannot write: {disk_text(error)}") from error

    def _flush_file(self) -> None:
        """Make HDF5 write what it has in memory of the whole file: an index alone does not make a file readable."""
        self._target.dataset.file.flush()

    def close(self) -> None:
        """Flush, check HDF5's record of each chunk, and then accept no more steps.

        A second call does nothing. After an error it can be called again, for example when the disk has room again;
        waiting steps are lost only with the appender, which takes no others.
        """
        if self._closed:
            return
        self._close_failed = True  # until nothing has failed
        self._close()
        self._close_failed = False
        self._closed = True

    def _close(self) -> None:
        self.flush()
        self._warn_of_kept(at_least=1)
        grid = Grid(self._target.dataset.shape, self._target.chunk.shape)
        check_recorded(self._target.dataset, grid, noted(grid, self._recorded), others=True)

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        # Steps before the error are valid. A second error must not hide the first.
        try:
            self.close()
        except Exception as second:
            error.add_note(
                f"{self._target.label}: {plural(self.waiting, 'earlier step')} could not be written: {second}"
            )
        self._closed = True

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self.waiting:
            warnings.warn(
                f"{self._target.label}: {plural(self.waiting, 'step')} appended and never written: close the appender",
                UserWarning,  # and not ResourceWarning, which Python hides: steps are lost
                stacklevel=2,
            )

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self.waiting} waiting"
        return printable(f"<tamis.hdf5.Appender of {self._target.label}: {plural(self.steps, 'step')}, {state}>")

    def __str__(self) -> str:
        """Return what was written so far, on one line."""
        chunks = f"{plural(self._kept.written, 'full chunk')} written"
        if is_lossy(self._target.pipeline):
            chunks += f", {self._kept.kept} of them without loss"
        waiting = f", {plural(self.waiting, 'step')} in memory" if self.waiting else ""
        return printable(f"{self._target.label}: {plural(self.steps, 'step')}, {chunks}{waiting}")

    def _along(self, start: int, stop: int) -> tuple[slice, ...]:
        return tuple(slice(start, stop) if axis == self._axis else slice(None) for axis in range(self._buffer.ndim))

    def _as_steps(self, values: NDArray[Any]) -> NDArray[Any]:
        step = tuple(extent for axis, extent in enumerate(self._buffer.shape) if axis != self._axis)
        if values.shape == step:
            single: NDArray[Any] = np.expand_dims(values, self._axis)  # keeps masked arrays
            return single
        rest = tuple(extent for axis, extent in enumerate(values.shape) if axis != self._axis)
        if values.ndim != self._buffer.ndim or rest != step:
            several = (*step[: self._axis], "n", *step[self._axis :])
            raise ParameterError(
                f"{self._target.label}: expected a step of shape {step}, or n of them as"
                f" ({', '.join(map(str, several))}), got {values.shape}"
            )
        return values

    def _check_open(self) -> None:
        if self._closed:
            raise ParameterError(f"{self._target.label}: the appender {self._ended}")

    def _check_room(self, count: int) -> None:
        most = self._target.dataset.maxshape[self._axis]
        if most is not None and self.steps + count > most:
            raise ParameterError(
                f"{self._target.label}: the dataset can have at most {most} steps, and has {self.steps}: {count} "
                "more do not fit"
            )

    def _write(self) -> None:
        """Write all chunks of the steps in the buffer; write nothing if one of them cannot be encoded."""
        dataset, axis = self._target.dataset, self._axis
        if not dataset:
            raise FileError(f"{self._target.label}: the file was closed before the appender")
        shape = list(dataset.shape)
        expected = list(self._buffer.shape)
        expected[axis] = self._start + self._written
        if shape != expected:
            raise FileError(
                f"{self._target.label}: expected {self._start + self._written} steps in the file, found shape"
                f" {dataset.shape}: something else changed it"
            )
        encoded = self._encode_buffer()
        shape[axis] = self._start + self._count
        self._put(tuple(shape), encoded)
        self._written, self._nbytes = self._count, sum(len(chunk.data) for _, chunk in encoded)
        self._lossless = not any(is_lossy(self._target.pipeline, chunk.mask) for _, chunk in encoded)
        if self._count == self._full:
            self._count_full(encoded)
            self._start += self._full
            self._count = self._written = 0
            self._rounding = 0.0
            self._frozen.clear()
            self._warn_of_kept(at_least=_ENOUGH_CHUNKS)
        elif self._frozen:
            warn_caller(
                f"{self._target.label}: the last {self._count} steps are lossy already, which the file no longer"
                " records: fill the chunk in this run, or the next run adds another error to them"
            )

    def _count_full(self, encoded: list[tuple[Origin, Encoded]]) -> None:
        """Count full chunks, apart from those that were lossy before and stay as they are."""
        self._kept.count([chunk.mask for origin, chunk in encoded if origin not in self._frozen])

    def _warn_of_kept(self, *, at_least: int) -> None:
        """Warn once if most of the full chunks are stored without loss."""
        self._kept.warn(at_least=at_least, advice="; for zfp(bound=…), give create_appender steps like the later ones")

    def _put(self, shape: tuple[int, ...], encoded: list[tuple[Origin, Encoded]]) -> None:
        """Extend the dataset and write its new chunks, in one step for readers in other threads.

        A chunk that is written again leaves its place, which HDF5 gives to the next chunk while the index in the file
        still names it. The file is flushed before that, so that a process that is killed loses no earlier step.
        """
        last, stored = encoded[-1]
        is_again = self._written > 0
        try:
            with calls.lock:
                if not is_again:
                    self._target.dataset.resize(shape)
                for origin, chunk in encoded:
                    put_chunk(self._target.dataset, origin, *chunk)
                    self._recorded[origin] = (len(chunk.data), chunk.mask)
                    if is_again:
                        self._flush_file()
                if is_again:  # only now: all chunks have the later steps
                    self._target.dataset.resize(shape)
                settle(self._target.dataset, last, stored.mask, again=is_again)
        except BaseException as error:
            # Some chunks may be written and others not, and HDF5 cannot undo that.
            self._closed, self._ended = True, "failed to write: the last steps in the file may be incomplete"
            if isinstance(error, (OSError, RuntimeError)) and not isinstance(error, TamisError):
                raise FileError(f"{self._target.label}: HDF5 cannot write: {disk_text(error)}") from error
            raise

    def _encode_buffer(self) -> list[tuple[Origin, Encoded]]:
        target, partial = self._target, self._count < self._full
        keep = partial and is_lossy(target.pipeline) and can_skip_loss(target.pipeline)

        def encode(part: Region) -> tuple[Origin, Encoded]:
            origin, values = self._origin(part), self._buffer[part]
            rounding = min(self._rounding, rounding_of(values, self._missing)) if self._rounding else 0.0
            lossless = keep or origin in self._frozen
            with located(f"{target.label}: chunk at {origin}", chunk=origin):
                return origin, target.encode(values, self._missing, rounding, lossless=lossless)

        with closing(ordered_map(encode, self._parts(), self._threads)) as results:
            return list(results)

    def _parts(self) -> Parts:
        """Return the parts of the buffer, one for each chunk."""
        shape = [self._count if axis == self._axis else extent for axis, extent in enumerate(self._buffer.shape)]
        return Parts(Grid(tuple(shape), self._target.chunk.shape))

    def _origin(self, part: Region) -> Origin:
        return tuple(self._start if axis == self._axis else span.start for axis, span in enumerate(part))

    def _read_partial(self, *, recode: bool) -> None:
        """Fill the buffer from the chunks at the end, and record which of them are lossy."""
        target = self._target
        for part in self._parts():
            origin = self._origin(part)
            record = record_of(target.dataset, origin)
            if record is None:
                self._buffer[part] = target.fill
                continue
            _, data = target.dataset.id.read_direct_chunk(origin)
            nbytes, mask = record
            try:
                values = target.pipeline.decode(data, mask, target.chunk)
            except StreamError as error:
                text = f"{target.label}: chunk at {origin} cannot be decoded: {error}"
                raise FileError(text).at(chunk=origin) from error
            self._buffer[part] = values[tuple(slice(span.stop - span.start) for span in part)]
            self._nbytes += nbytes
            self._rounding = math.inf  # the values given to the earlier run are unknown
            if is_lossy(target.pipeline, mask):
                self._lossless = False
                if not recode:
                    self._frozen.add(origin)
        if self._frozen and not can_skip_loss(target.pipeline):
            raise ParameterError(
                f"{target.label}: cannot continue a partial chunk of {self._count} steps without more error, "
                f"because its filters are required, {target.pipeline}: pass recode=True to accept an error of "
                f"the bound once more, or append in multiples of {self._full} steps"
            )
