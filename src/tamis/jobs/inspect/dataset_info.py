"""What inspect says of a dataset and of a group: storage, filters, readers, notes, as objects, JSON and a row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from tamis import zfp
from tamis.filters import Filter, Stage, UnknownFilter, Zfp
from tamis.formatting import plural, printable, ratio, ratio_text, shape_text, size_text
from tamis.jobs.result import json_value
from tamis.meaning import DATA, Packing, Role

if TYPE_CHECKING:
    from tamis.advice import BetterChunks, Note
    from tamis.meaning import PackingDict
    from tamis.pipeline import Pipeline
    from tamis.rounding import Rounding, RoundingDict
    from tamis.stores import PackedTo, Readers


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """Chunks of a dataset that have the same filter mask.

    Parameters
    ----------
    mask
        The filter mask: bit i is set if filter i was skipped.
    count
        Number of chunks.
    applied, skipped
        Names of the applied and of the skipped filters.
    """

    mask: int
    count: int
    applied: tuple[str, ...]
    skipped: tuple[str, ...]

    def __str__(self) -> str:
        applied = ", ".join(self.applied) or "no filter"
        return f"{self.count}: {applied}" + (f" ({', '.join(self.skipped)} skipped)" if self.skipped else "")


class StageDict(TypedDict):
    """A filter in JSON."""

    id: int
    name: str
    label: str
    text: str
    words: str
    optional: bool
    parameters: dict[str, Any]
    values: list[int]


class ReadersDict(TypedDict):
    """The readers of a dataset in JSON."""

    words: str
    any_hdf5: bool
    plugins: list[str]
    szip: bool
    not_by: list[str]
    h5py: bool
    tamis: bool


class DatasetDict(TypedDict):
    """A dataset in JSON."""

    path: str
    shape: list[int] | None
    maxshape: list[int | None] | None
    dtype: str
    byteorder: str | None
    layout: str
    chunks: list[int] | None
    pipeline: str
    filters: list[StageDict]
    nbytes: int
    stored_nbytes: int
    ratio: float | None
    total_chunks: int
    stored_chunks: int
    chunk_groups: list[ChunkGroup]
    readers: ReadersDict
    zfp_padding: float | None
    zfp_better: BetterChunks | None
    role: str
    packing: PackingDict | None
    valid_range: list[float | None] | None
    rounding: RoundingDict | None
    used_bits: int | None
    packed_to: PackedToDict | None
    notes: list[Note]
    problem: str | None


class PackedToDict(TypedDict):
    """The integers to which codecs pack floats in JSON."""

    dtype: str
    step: float
    offset: float


class GroupDict(TypedDict):
    """A group in JSON."""

    path: str
    pipeline: str
    filters: list[StageDict]
    readers: ReadersDict
    problem: str | None


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """One dataset.

    Parameters
    ----------
    path
        Path in the file.
    shape, dtype
        Shape and type of the values; shape is None for a null dataspace, which has no values; dtype is text, with its
        byte order if that is not the machine's.
    byteorder
        ``little`` or ``big``; empty if the type has none, or more than one.
    maxshape
        Largest shape; None along an unlimited axis.
    layout
        ``chunked``, ``contiguous``, ``compact``, ``external`` (values in other files), ``virtual``, or ``records``
        (between those of other variables of a netCDF classic file).
    chunks
        Chunk shape; None if the storage is not chunked.
    pipeline
        Filters as stored in the file.
    nbytes, stored_nbytes
        Bytes of the values, 0 for variable lengths; and bytes that they take in the file.
    total_chunks
        Number of chunks of the array, stored or not.
    chunk_groups
        Stored chunks grouped by applied filters, the largest group first.
    readers
        Which readers can read the dataset.
    zfp_padding
        Fraction of a chunk encoded by ZFP that is padding; None without ZFP.
    zfp_better
        A chunk shape that saves ZFP padding; None if there is none nearby.
    notes
        Notes for the owner of the file.
    problem
        Why the values cannot be read correctly, judging by stored parameters; empty otherwise.
    role
        Role by the conventions of CF and netCDF.
    packing
        Conversion of stored values to units of the variable; None if they are not packed.
    valid_range
        Smallest and largest valid stored value, each None without a limit; None if there are no limits.
    rounding
        Rounding of the values that an attribute records; None without one.
    used_bits
        Bits of packed integers that values use, by the attribute ``actual_range``; None without one.
    packed_to
        The integers to which codecs of Zarr pack the values, which readers get as floats; None without such codecs.
    """

    path: str
    shape: tuple[int, ...] | None
    dtype: str
    byteorder: str
    maxshape: tuple[int | None, ...] | None
    layout: str
    chunks: tuple[int, ...] | None
    pipeline: Pipeline
    nbytes: int
    stored_nbytes: int
    total_chunks: int
    chunk_groups: tuple[ChunkGroup, ...]
    readers: Readers
    zfp_padding: float | None
    zfp_better: BetterChunks | None
    notes: tuple[Note, ...]
    problem: str
    role: Role = DATA
    packing: Packing | None = None
    valid_range: tuple[float | None, float | None] | None = None
    rounding: Rounding | None = None
    used_bits: int | None = None
    packed_to: PackedTo | None = None

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters in words, in the order of writing."""
        return tuple(stage_in_words(stage) for stage in self.pipeline.stages)

    @property
    def values_in_words(self) -> str:
        """Rounding, packing and valid range in words; empty if there are none."""
        texts = []
        if self.packing and self.rounding is not None and not self.rounding.in_place:
            used = f" {self.used_bits} bits of {8 * np.dtype(self.dtype).itemsize} used," if self.used_bits else ""
            texts.append(
                f"packed: step {abs(self.packing.scale):g}, proven bound {self.rounding.absolute_bound:g},{used}"
                f" add_offset {self.packing.offset:.9g}"
            )
        elif self.packed_to is not None:
            bound = "" if self.rounding is None else f" proven bound {self.rounding.absolute_bound:g},"
            dtype, packing = self.packed_to
            texts.append(
                f"floats, packed to {dtype} by codecs: step {abs(packing.scale):g},{bound} offset {packing.offset:.9g}"
            )
        elif self.rounding is not None:
            stored = " as stored" * bool(self.packing and self.rounding.absolute_bound)
            texts.append(f"rounded by {self.rounding}: {self.rounding.bound_text}{stored}")
        texts += [f"packed by {self.packing}"] if self.packing and not any("packed: " in text for text in texts) else []
        limits = zip(("from", "to"), self.valid_range or (), strict=False)
        if text := " ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None):
            texts.append(f"valid {text}" + " as stored" * bool(self.packing))
        return "; ".join(texts)

    @property
    def stored_chunks(self) -> int:
        """Number of chunks in the file."""
        return sum(group.count for group in self.chunk_groups)

    @property
    def unfiltered_chunks(self) -> int:
        """Number of chunks that skip a filter."""
        return sum(group.count for group in self.chunk_groups if group.mask)

    @property
    def ratio(self) -> float | None:
        """Bytes of the values for each stored byte; None if nothing is stored, or cannot be counted."""
        return ratio(self.nbytes, self.stored_nbytes)

    @property
    def chunks_in_words(self) -> str:
        """Stored chunks and their filters in words; empty if all chunks are stored through all filters."""
        texts = []
        if self.stored_chunks < self.total_chunks:
            rest = "the others read" if self.stored_chunks else "all read"
            texts.append(
                f"{self.stored_chunks or 'none'} of {plural(self.total_chunks, 'chunk')} stored, {rest} as fill value"
            )
        if self.unfiltered_chunks:
            first, *others = map(str, self.chunk_groups)
            count, _, rest = first.partition(":")
            texts += [f"{count} of {plural(self.stored_chunks, 'chunk')}:{rest}", *others]
        return "; ".join(texts)

    def to_dict(self) -> DatasetDict:
        """Return the content of the JSON: see docs/inspect.md."""
        return {
            "path": self.path,
            "shape": json_value(self.shape),
            "maxshape": json_value(self.maxshape),
            "dtype": self.dtype,
            "byteorder": self.byteorder or None,
            "layout": self.layout,
            "chunks": json_value(self.chunks),
            "pipeline": str(self.pipeline),
            "filters": [_stage_dict(stage) for stage in self.pipeline.stages],
            "nbytes": self.nbytes,
            "stored_nbytes": self.stored_nbytes,
            "ratio": self.ratio,
            "total_chunks": self.total_chunks,
            "stored_chunks": self.stored_chunks,
            "chunk_groups": json_value(self.chunk_groups),
            "readers": _readers_dict(self.readers),
            "zfp_padding": self.zfp_padding,
            "zfp_better": json_value(self.zfp_better),
            "role": self.role.kind,
            "packing": self.packing.to_dict() if self.packing else None,
            "valid_range": json_value(self.valid_range),
            "rounding": self.rounding.to_dict() if self.rounding else None,
            "used_bits": self.used_bits,
            "packed_to": _packed_to_dict(self.packed_to),
            "notes": json_value(self.notes),
            "problem": self.problem or None,
        }

    def __str__(self) -> str:
        saved = "" if self.ratio is None else f" {ratio_text(self.ratio)}x"
        return printable(
            f"{self.path} {shape_text(self.shape)} {self.dtype}{saved} {' | '.join(self.filters)}".rstrip()
        )


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """One group whose links are filtered.

    Parameters
    ----------
    path
        Path in the file.
    pipeline
        Filters of its links, which are names and targets, not the data of its datasets.
    readers
        Which readers can read the links.
    problem
        Why its links cannot be listed here, so that its content is unknown; empty otherwise.
    """

    path: str
    pipeline: Pipeline
    readers: Readers
    problem: str

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters in words."""
        return tuple(stage_in_words(stage) for stage in self.pipeline.stages)

    def to_dict(self) -> GroupDict:
        """Return the content of the JSON: see docs/inspect.md."""
        return {
            "path": self.path,
            "pipeline": str(self.pipeline),
            "filters": [_stage_dict(stage) for stage in self.pipeline.stages],
            "readers": _readers_dict(self.readers),
            "problem": self.problem or None,
        }

    def __str__(self) -> str:
        return printable(f"{self.path} group, links through {' | '.join(self.filters)}")


def stage_in_words(stage: Stage) -> str:
    """Return a filter in words, with its flag if that is not the default."""
    text, item = stage.in_words, stage.filter
    if isinstance(item, UnknownFilter) and item.label:
        text = text.replace(f"{item.label} [{item.id}]", item.shown_name, 1)
    if stage.optional == item.optional:
        return text
    return f"{text}, {'optional' if stage.optional else 'required'}"


def _packed_to_dict(packed: PackedTo | None) -> PackedToDict | None:
    if packed is None:
        return None
    return {"dtype": str(packed.dtype), "step": packed.packing.scale, "offset": packed.packing.offset}


def _stage_dict(stage: Stage) -> StageDict:
    item = stage.filter
    return {
        "id": item.id,
        "name": item.name,
        "label": getattr(item, "label", "") or item.registered_name,
        "text": str(stage),
        "words": stage_in_words(stage),
        "optional": stage.optional,
        "parameters": json_value(_parameters(item)),
        "values": list(stage.stored or ()),
    }


def _parameters(item: Filter) -> dict[str, Any]:
    """Return the parameters of a filter."""
    if not isinstance(item, Zfp):
        return {name: getattr(item, name) for name in item.parameters()}
    mode = item.mode
    if isinstance(mode, zfp.Accuracy):
        return {"accuracy": mode.tolerance}
    return {field.name: getattr(mode, field.name) for field in fields(mode)} or {"reversible": True}


def _readers_dict(readers: Readers) -> ReadersDict:
    return {
        "words": str(readers),
        "any_hdf5": readers.any_hdf5,
        "plugins": list(readers.plugins),
        "szip": readers.szip,
        "not_by": list(readers.not_by),
        "h5py": readers.h5py,
        "tamis": readers.tamis,
    }


COLUMNS = ("dataset", "shape", "type", "chunks", "filters", "stored", "ratio")


def row(dataset: DatasetInfo) -> tuple[str, ...]:
    """Return the cells of a dataset's row, one for each of `COLUMNS`; each filter has its own line."""
    return (
        printable(dataset.path),
        shape_text(dataset.shape),
        dataset.dtype,
        dataset.layout if dataset.chunks is None else shape_text(dataset.chunks),
        "\n".join(printable(_short(stage.filter)) for stage in dataset.pipeline.stages),
        size_text(dataset.stored_nbytes),
        ratio_text(dataset.ratio),
    )


def _short(item: Filter) -> str:
    """Return a filter as tamis text without its flag; a filter unknown to tamis as its name."""
    return item.shown_name if isinstance(item, UnknownFilter) else str(item).replace(", ", ",")
