"""Advice about chunk shapes and filters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tamis.arrays.grid import (
    LEAST_CHUNK_NBYTES,
    default_chunks,
    encoded_extent,
    pads_little,
    whole_block_steps,
    zfp_padding,
)
from tamis.errors import ParameterError
from tamis.filters import ChunkType, Filter, StoredZfp, Zfp
from tamis.filters.zfp import is_stored
from tamis.formatting import percent_text, shape_text, size_text
from tamis.pipeline import Pipeline
from tamis.stores.facts import ELSEWHERE
from tamis.zfp import MAX_RANK, Rate, Reversible
from tamis.zfp.header import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.stores.protocols import StoredArray

_TINY_NBYTES = 4096
_TINY_COUNT = 16
"""Chunks of fewer bytes are tiny, if there are at least so many."""

_NOTICEABLE_NBYTES = 64 << 10
"""Bytes below which nothing is worth a note."""

_WASTED = 0.25
"""Share of the filters' input beyond which padding is worth a note."""

_NEARLY_ALL = 0.9
"""Share of values outside the array beyond which large chunks are not meant to fill up."""

_LARGE_NBYTES = 8 << 20
"""Chunks of more bytes are large: this is the largest default of HDF5 itself."""

_OVERSIZED_TIMES = 16
_OVERSIZED_NBYTES = 1 << 20
"""A chunk this many times as large as the whole array, and this many bytes larger, was made for another array."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a dataset that its owner should know."""

    code: str  # The subject, one of the codes in docs/inspect.md; stable
    text: str  # The fact, why it matters, and what to use instead


@dataclass(frozen=True, slots=True)
class Chunking:
    """The chunks of an array, and their filters."""

    shape: tuple[int, ...]  # Shape of the array, slowest axis first
    growing: tuple[bool, ...]  # For each axis, whether it may grow
    chunk: ChunkType  # Type and shape of the chunks
    pipeline: Pipeline  # Filters of the chunks
    masks: Mapping[int, int]  # For each filter mask, the number of stored chunks
    stored_nbytes: int = 0  # Bytes of the stored chunks
    # Whether values have variable lengths: the chunks then hold pointers, and the values are elsewhere
    varying: bool = False

    @property
    def count(self) -> int:
        """Number of chunks of the whole array."""
        return math.prod(self.counts)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of chunks along each axis."""
        return tuple(-(-extent // step) for extent, step in zip(self.shape, self.chunk.shape, strict=True))

    def applied(self, index: int) -> bool:
        """Return whether any stored chunk went through a filter; True if no chunk is stored."""
        return not self.masks or any(not mask >> index & 1 for mask in self.masks)

    @property
    def applied_filters(self) -> tuple[Filter, ...]:
        """The filters that any stored chunk went through; all of them if no chunk is stored."""
        return tuple(item for i, item in enumerate(self.pipeline.filters) if self.applied(i))

    def through_zfp(self, mask: int) -> bool:
        """Return whether chunks with a mask went through zfp."""
        return any(isinstance(item, Zfp) and not mask >> i & 1 for i, item in enumerate(self.pipeline.filters))

    @property
    def zfp(self) -> Zfp | None:
        """The zfp filter among `applied_filters`; None if there is none."""
        return next((item for item in self.applied_filters if isinstance(item, Zfp)), None)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the chunks and their filters; none if all is well."""
        rules = list(_ABOUT_FILTERS) if self.pipeline.stages else []
        if is_oversized(self):
            rules.append(_oversized)
        elif self.pipeline.stages:
            rules += [_size, _edges]
        return tuple(note for rule in rules for note in rule(self))

    @property
    def right_size(self) -> tuple[int, ...]:
        """A chunk shape for the array if its chunks are oversized; an axis that may grow gets room for more."""
        shape = list(_default(self))
        if any(self.growing):
            axis = self.growing.index(True)
            others = math.prod(shape) // shape[axis] * max(self.chunk.dtype.itemsize, 1)
            shape[axis] = max(shape[axis], min(LEAST_CHUNK_NBYTES // others, self.chunk.shape[axis]))
        return tuple(shape)

    @property
    def oversized_text(self) -> str:
        """How much larger chunks are than their array, in words."""
        itemsize = self.chunk.dtype.itemsize
        stored = f"{size_text(self.stored_nbytes)} are stored, and " if self.stored_nbytes else ""
        return (
            f"chunks of {shape_text(self.chunk.shape)} are much larger than all of {shape_text(self.shape)}:"
            f" {stored}{size_text(self.chunk.nbytes * self.count)} decoded, for"
            f" {size_text(math.prod(self.shape) * itemsize)} of values"
        )

    @property
    def better_for_zfp(self) -> BetterChunks | None:
        """A chunk shape that saves ZFP padding; None if there is none nearby, or ZFP encodes nothing."""
        if self.zfp is None:
            return None
        present = self.chunk.shape
        if zfp_padding(present) < 0.005:
            return None
        better = whole_block_steps(self.shape, present, self.growing)
        saved = 1 - math.prod(
            encoded_extent(extent, new, grows) / encoded_extent(extent, step, grows)
            for extent, new, step, grows in zip(self.shape, better, present, self.growing, strict=True)
        )
        if saved < 0.005 or math.prod(better) == 1 or _is_small(better, self):
            return None
        fixed = isinstance(self.zfp.mode, Rate) and all(self.through_zfp(mask) for mask in self.masks)
        return BetterChunks(better, zfp_padding(better), saved, round(saved * self.stored_nbytes) if fixed else None)


@dataclass(frozen=True, slots=True)
class BetterChunks:
    """A chunk shape near the present one for which ZFP encodes less padding."""

    chunks: tuple[int, ...]
    padding: float  # Fraction of such a chunk encoded by ZFP that is padding
    saved: float  # Saved fraction of what ZFP now encodes for the whole array, including chunks at its edges
    # Bytes that are saved; None unless rate mode stores all chunks: other modes spend less on padding than on values
    saved_nbytes: int | None


def is_oversized(chunking: Chunking) -> bool:
    """Return whether a chunk is much larger than all of the array, also if it may grow."""
    values, chunk = math.prod(chunking.shape), math.prod(chunking.chunk.shape)
    lost = (chunk - values) * chunking.chunk.dtype.itemsize
    return values > 0 and chunk >= _OVERSIZED_TIMES * values and lost >= _OVERSIZED_NBYTES


def oversized(array: StoredArray) -> Chunking | None:
    """Return the chunks of a stored array if they are much larger than all of it; None otherwise."""
    if (
        array.storage.chunk_shape is None
        or not array.shape
        or array.type.dtype is None
        or array.storage.layout in ELSEWHERE
    ):
        return None
    growing = tuple(most != extent for most, extent in zip(array.maxshape, array.shape, strict=True))
    chunking = Chunking(array.shape, growing, ChunkType(array.type.dtype, array.storage.chunk_shape), Pipeline(), {})
    if not is_oversized(chunking):
        return None
    return replace(chunking, pipeline=array.storage.pipeline, stored_nbytes=array.stored_nbytes)


def oversized_note(name: str, chunking: Chunking) -> str:
    """Return a note that chunks are much larger than the array, with better ones; empty if they are not."""
    if not is_oversized(chunking):
        return ""
    return f"{chunking.oversized_text}; -c '{name}:{shape_text(chunking.right_size)}' makes smaller ones"


def outside(shape: tuple[int, ...], chunk: tuple[int, ...]) -> float:
    """Return the fraction of the values in all chunks that are beyond the edges of the array."""
    inside = [extent / (-(-extent // step) * step) for extent, step in zip(shape, chunk, strict=True) if extent]
    return 1 - math.prod(inside)


def padding_note(name: str, chunking: Chunking) -> str:
    """Return a note that much of the filters' input is padding, with a better chunk shape; empty if all is well."""
    chunk = chunking.chunk.shape
    if chunking.chunk.nbytes > _LARGE_NBYTES and outside(chunking.shape, chunk) > _NEARLY_ALL:
        chunking = replace(chunking, growing=(False,) * len(chunk))
    lost = _wasted(chunk, chunking)
    if lost < _WASTED or lost * chunking.chunk.nbytes * chunking.count < _NOTICEABLE_NBYTES:
        return ""
    near = whole_block_steps(chunking.shape, chunk, chunking.growing) if chunking.zfp else chunk
    unit = BLOCK_SIDE if chunking.zfp else 1
    axes = zip(chunking.shape, near, chunking.growing, strict=True)
    even = tuple(step if grows else _even(extent, step, unit) for extent, step, grows in axes)
    shapes = [shape for shape in (near, even, _default(chunking)) if not _is_small(shape, chunking)]
    # The first of those that waste about the same is the nearest to the present shape.
    better = min(shapes, key=lambda shape: round(20 * _wasted(shape, chunking)), default=chunk)
    left = _wasted(better, chunking)
    if left > lost / 2:
        return ""
    return (
        f"{percent_text(lost)} of what the filters get is padding in chunks of {shape_text(chunk)}; with"
        f" -c '{name}:{shape_text(better)}' it is {percent_text(left) if left else 'none'}"
    )


def _wasted(chunk: tuple[int, ...], chunking: Chunking) -> float:
    """Return the fraction of the filters' input that is padding."""
    fixed = [axis for axis, grows in enumerate(chunking.growing) if not grows]
    beyond = outside(tuple(chunking.shape[axis] for axis in fixed), tuple(chunk[axis] for axis in fixed))
    padding = zfp_padding(chunk) if chunking.zfp else 0
    return 1 - (1 - beyond) * (1 - padding)


def _order(chunking: Chunking) -> Iterator[Note]:
    """Note filters that need unfiltered values and get bytes."""
    names = [item.shown_name for item in chunking.pipeline.filters]
    for i, item in enumerate(chunking.pipeline.filters):
        if i and item.needs_values and chunking.applied(i):
            before = " and ".join(dict.fromkeys(names[:i]))
            yield Note(
                "order",
                f"{before} before {item.name}, which needs unfiltered values: they read back wrong or not at all;"
                f" rewrite the dataset with {item.name} first",
            )


def _byte_order(chunking: Chunking) -> Iterator[Note]:
    """Note ZFP that took values for those of the other byte order."""
    for i, stage in enumerate(chunking.pipeline.stages):
        if not isinstance(stage.filter, Zfp) or not is_stored(stage.stored or ()) or not chunking.applied(i):
            continue
        # The header has the byte order of the machine that wrote it, whose filter assumed that of the values.
        if StoredZfp.parse(stage.stored or ()).swapped == chunking.chunk.dtype.isnative:
            harm = "" if isinstance(stage.filter.mode, Reversible) else ", and their error has no bound"
            yield Note(
                "byte-order",
                f"ZFP ran on a machine whose byte order is not that of the values, and misread them{harm}; rewrite"
                " the source in native byte order",
            )


def _unused(chunking: Chunking) -> Iterator[Note]:
    """Note filters that no stored chunk went through."""
    if not chunking.masks:
        return
    after_zfp = False
    for i, stage in enumerate(chunking.pipeline.stages):
        if chunking.applied(i):
            after_zfp = after_zfp or isinstance(stage.filter, Zfp)
            continue
        if after_zfp:  # this filter is for chunks that zfp cannot encode, and there are none
            continue
        reason = ""
        if isinstance(stage.filter, Zfp) and not is_stored(stage.stored or ()):
            try:
                stage.filter.check(chunking.chunk)
            except ParameterError as error:
                reason = f": {error}"
        name = stage.filter.shown_name
        yield Note("unused", f"{name} is in the pipeline but was skipped for every chunk{reason}")


def _larger(chunking: Chunking) -> Iterator[Note]:
    """Note filters that make chunks larger."""
    nbytes = sum(chunking.masks.values()) * chunking.chunk.nbytes
    if chunking.stored_nbytes > nbytes + _NOTICEABLE_NBYTES and chunking.stored_nbytes > 1.01 * nbytes:
        yield Note(
            "larger",
            f"the filters make the chunks larger: {size_text(chunking.stored_nbytes)} for {size_text(nbytes)}; leave"
            " them out, or use others",
        )


def _varying(chunking: Chunking) -> Iterator[Note]:
    """Note values of varying length, which filters do not reach."""
    if chunking.varying:
        yield Note(
            "varying-length",
            "filters do not compress values of variable length: these are stored elsewhere in the file, and the chunks"
            " hold only pointers to them; use strings or arrays of fixed length instead",
        )


def _shuffled_bytes(chunking: Chunking) -> Iterator[Note]:
    """Note shuffle of single bytes."""
    if chunking.chunk.dtype.itemsize == 1 and any(item.name == "shuffle" for item in chunking.pipeline.filters):
        yield Note("shuffle-bytes", "shuffle has no effect on values of one byte: remove it")


def _zfp_padding(chunking: Chunking) -> Iterator[Note]:
    """Note padding of blocks that a chunk shape nearby saves."""
    better = chunking.better_for_zfp
    if better is None:
        return
    chunk = chunking.chunk.shape
    left = percent_text(better.padding) if better.padding else "none"
    saved = percent_text(better.saved)
    if better.saved_nbytes:
        saved += f", {size_text(better.saved_nbytes)},"
    yield Note(
        "zfp-padding",
        f"ZFP encodes whole blocks of 4 along each axis: {percent_text(zfp_padding(chunk))} of what it encodes for a"
        f" chunk of {shape_text(chunk)} is padding; chunks of {shape_text(better.chunks)} have {left}, which saves"
        f" {saved} of what it encodes for the array",
    )


def _is_small(better: tuple[int, ...], chunking: Chunking) -> bool:
    """Return whether cutting a short axis makes chunks so small that they cost more than the padding."""
    cut = any(new == 1 < old for new, old in zip(better, chunking.chunk.shape, strict=True))
    return cut and math.prod(better) * chunking.chunk.dtype.itemsize < LEAST_CHUNK_NBYTES


def _zfp_unit_axes(chunking: Chunking) -> Iterator[Note]:
    """Note axes along which chunks have one value each, so that ZFP gains nothing there."""
    chunk = chunking.chunk.shape
    rank = sum(step > 1 for step in chunk)
    if chunking.zfp is None or not 0 < rank < MAX_RANK:
        return
    axes = []
    for axis, (step, extent) in enumerate(zip(chunk, chunking.shape, strict=True)):
        # A fourth axis gains less than its padding costs.
        is_worth_it = rank < MAX_RANK - 1 or pads_little(extent)
        if step == 1 and extent >= BLOCK_SIDE and is_worth_it:
            axes.append(axis)
    if not axes:
        return
    axis = axes[-1]
    yield Note(
        "zfp-unit-axes",
        f"ZFP compresses chunks of {shape_text(chunk)} as {rank}-D fields: similar values along axis {axis} (of"
        f" extent {chunking.shape[axis]}) save nothing; use chunks of 4 or more along it",
    )


def _unchecked(chunking: Chunking) -> Iterator[Note]:
    """Note ZFP without a checksum."""
    if chunking.zfp is not None and not any(item.name == "fletcher32" for item in chunking.pipeline.filters):
        yield Note(
            "zfp-unchecked",
            "no checksum: damaged ZFP bytes decode to wrong values without an error; add fletcher32 after zfp",
        )


def _unproven(chunking: Chunking) -> Iterator[Note]:
    """Note lossy chunks that another plugin of zfp wrote."""
    if chunking.zfp is None or chunking.zfp.error_bound == 0:
        return
    stage = next(stage for stage in chunking.pipeline.stages if stage.filter is chunking.zfp)
    if stage.stored and is_stored(stage.stored):
        header = StoredZfp.parse(stage.stored)
        if header.of_other_plugin:
            yield Note(
                "zfp-unproven",
                f"written by another plugin, {header.versions}: nothing was proven, and NaN or infinities, if any, are"
                " other numbers now; tamis verify compares with a source",
            )


_ABOUT_FILTERS: tuple[Callable[[Chunking], Iterator[Note]], ...] = (
    _order,
    _byte_order,
    _unused,
    _larger,
    _varying,
    _shuffled_bytes,
    _zfp_padding,
    _zfp_unit_axes,
    _unchecked,
    _unproven,
)
"""Rules for chunks with filters, in the order of their notes."""


def _oversized(chunking: Chunking) -> Iterator[Note]:
    """Note chunks that are much larger than the array."""
    text = f"{chunking.oversized_text}; use chunks such as {shape_text(chunking.right_size)}"
    yield Note("oversized-chunks", text)


def _size(chunking: Chunking) -> Iterator[Note]:
    """Note chunks that are too large for caches, or so small that each costs more than it holds."""
    nbytes = chunking.chunk.nbytes
    count = chunking.count
    first = chunking.pipeline.bounded
    if nbytes > _LARGE_NBYTES and (first is None or first is chunking.zfp):  # sperr and sz3 need such chunks
        yield Note(
            "large-chunks",
            f"a chunk of {size_text(nbytes)} does not fit in the chunk cache of HDF5 (1 MiB, 8 MiB since HDF5 2): every"
            f" read of any part of it decodes all of it; use chunks of about 1 MiB such as {_usual(chunking)}",
        )
    elif nbytes < _TINY_NBYTES and count >= _TINY_COUNT and nbytes * count >= _NOTICEABLE_NBYTES:
        yield Note(
            "tiny-chunks",
            f"{count} chunks of {size_text(nbytes)}: each costs an entry in the index and a read of its own;"
            f" use larger ones such as {_usual(chunking)}",
        )


def _usual(chunking: Chunking) -> str:
    """Return the default chunk shape in words."""
    return shape_text(_default(chunking))


def _default(chunking: Chunking) -> tuple[int, ...]:
    """Return the chunk shape that tamis chooses for the array."""
    itemsize = max(chunking.chunk.dtype.itemsize, 1)
    return default_chunks(chunking.shape, itemsize, zfp=chunking.zfp is not None)


def _edges(chunking: Chunking) -> Iterator[Note]:
    """Note chunks with many values outside the array."""
    shape, chunk = chunking.shape, chunking.chunk.shape
    lost = outside(shape, chunk)
    if lost < 0.1 or lost * chunking.chunk.nbytes * chunking.count < _NOTICEABLE_NBYTES:
        return
    unit = BLOCK_SIDE if chunking.zfp else 1
    better = tuple(_even(extent, step, unit) for extent, step in zip(shape, chunk, strict=True))
    left = outside(shape, better)
    advice = ""
    if left < lost - 0.05:
        advice = f"; chunks of {shape_text(better)} would have {percent_text(left) if left else 'none'}"
    axes = zip(chunking.growing, shape, chunk, strict=True)
    until = ", until it grows" if any(grows and extent % step for grows, extent, step in axes) else ""
    yield Note(
        "edge-chunks",
        f"chunks of {shape_text(chunk)} reach past the edges of {shape_text(shape)}: {percent_text(lost)} of the values"
        f" that are filtered lie outside{until}{advice}",
    )


def _even(extent: int, step: int, unit: int) -> int:
    """Return the chunk extent near `step` that reaches least beyond the axis, in whole units if possible."""
    if extent % step == 0:
        return step
    count = -(-extent // step)
    steps = [-(-extent // number) for number in (count, count - 1) if number]
    rounded = [new if new == extent else -(-new // unit) * unit for new in steps]
    return min(rounded, key=lambda new: (-(-extent // new) * new, abs(new - step)))
