"""What `tamis.inspect` finds, as typed objects and as JSON; docs/inspect.md describes the JSON, which is stable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tamis import zfp
from tamis.cf import DATA, Packing, Role
from tamis.filters import Filter, Stage, UnknownFilter, Zfp
from tamis.filters.unknown import filter_name
from tamis.formatting import plural, printable, ratio, ratio_text, shape_text
from tamis.hdf5.readers import Readers
from tamis.jobs.json_rule import SCHEMA, error_dict, json_text, json_value
from tamis.jobs.result import DatasetsResult
from tamis.pipeline import Pipeline
from tamis.rewrite.chunk_advice import Note

if TYPE_CHECKING:
    from tamis.jobs.parts import Part


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """Chunks of a dataset that have the same filter mask.

    Parameters
    ----------
    mask
        Bit i is set where filter i was not applied.
    count
        How many.
    applied, skipped
        Names of the filters that they went through, and of the others.
    """

    mask: int
    count: int
    applied: tuple[str, ...]
    skipped: tuple[str, ...]

    def __str__(self) -> str:
        applied = ", ".join(self.applied) or "no filter"
        return f"{self.count}: {applied}" + (f" ({', '.join(self.skipped)} skipped)" if self.skipped else "")


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """One dataset.

    Parameters
    ----------
    path
        In the file.
    shape, dtype
        Of the values; shape is None for a null dataspace, which has no values; dtype is text, with its byte order where
        that is not the machine's.
    byteorder
        ``little`` or ``big``; empty where the type has none, or more than one.
    maxshape
        What the array may grow to; None along an unlimited axis.
    layout
        ``chunked``, ``contiguous``, ``compact``, ``external`` (values in other files) or ``virtual``.
    chunks
        Chunk shape, or None where the storage is not chunked.
    pipeline
        Filters as the file has them.
    nbytes, stored_nbytes
        Bytes of the values, 0 where they are of varying length; and bytes that they take in the file.
    total_chunks
        Chunks that the array has, stored or not.
    chunk_groups
        Stored chunks by the filters that they went through, the largest group first.
    readers
        What can read it.
    zfp_padding
        Fraction of what ZFP codes for a chunk that is padding; None without ZFP.
    notes
        What its owner should know.
    problem
        Why the values cannot be read right, as far as stored parameters tell; empty otherwise.
    role
        What it is for, by the conventions of CF and netCDF.
    packing
        How stored values become those in units of the variable; None where they are in them.
    valid_range
        Smallest and largest valid stored value, None for no limit; None where there are no limits.
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
    notes: tuple[Note, ...]
    problem: str
    role: Role = DATA
    packing: Packing | None = None
    valid_range: tuple[float | None, float | None] | None = None

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters in words, in the order in which they run on writing."""
        return tuple(stage_in_words(each) for each in self.pipeline.stages)

    @property
    def values_in_words(self) -> str:
        """How values are packed, and which are valid; empty where nothing is said of that."""
        said = [f"packed by {self.packing}"] if self.packing else []
        limits = zip(("from", "to"), self.valid_range or (), strict=False)
        if text := " ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None):
            said.append(f"valid {text}" + " as stored" * bool(self.packing))
        return "; ".join(said)

    @property
    def stored_chunks(self) -> int:
        """Chunks in the file."""
        return sum(each.count for each in self.chunk_groups)

    @property
    def unfiltered_chunks(self) -> int:
        """Chunks that a filter was not applied to."""
        return sum(each.count for each in self.chunk_groups if each.mask)

    @property
    def ratio(self) -> float | None:
        """Bytes of the values for each byte stored; None where nothing is stored, or cannot be counted."""
        return ratio(self.nbytes, self.stored_nbytes)

    @property
    def chunks_in_words(self) -> str:
        """Which chunks are stored, and went through which filters; empty where all are and did."""
        said = []
        if self.stored_chunks < self.total_chunks:
            rest = "the others read" if self.stored_chunks else "all read"
            said.append(
                f"{self.stored_chunks or 'none'} of {plural(self.total_chunks, 'chunk')} stored, {rest} as fill value"
            )
        if self.unfiltered_chunks:
            first, *others = map(str, self.chunk_groups)
            count, _, rest = first.partition(":")
            said += [f"{count} of {plural(self.stored_chunks, 'chunk')}:{rest}", *others]
        return "; ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: see docs/inspect.md."""
        return {
            "path": self.path,
            "shape": json_value(self.shape),
            "maxshape": json_value(self.maxshape),
            "dtype": self.dtype,
            "byteorder": self.byteorder or None,
            "layout": self.layout,
            "chunks": json_value(self.chunks),
            "pipeline": str(self.pipeline),
            "filters": [_stage_dict(each) for each in self.pipeline.stages],
            "nbytes": self.nbytes,
            "stored_nbytes": self.stored_nbytes,
            "ratio": self.ratio,
            "total_chunks": self.total_chunks,
            "stored_chunks": self.stored_chunks,
            "chunk_groups": json_value(self.chunk_groups),
            "readers": _readers_dict(self.readers),
            "zfp_padding": self.zfp_padding,
            "role": self.role.kind,
            "packing": self.packing.to_dict() if self.packing else None,
            "valid_range": json_value(self.valid_range),
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
        In the file.
    pipeline
        Filters of its links: their names and where they lead, not the data of its datasets.
    readers
        What can read it.
    problem
        Why its links cannot be listed here, so that nothing is known of what is in it; empty otherwise.
    """

    path: str
    pipeline: Pipeline
    readers: Readers
    problem: str

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters in words."""
        return tuple(stage_in_words(each) for each in self.pipeline.stages)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: see docs/inspect.md."""
        return {
            "path": self.path,
            "pipeline": str(self.pipeline),
            "filters": [_stage_dict(each) for each in self.pipeline.stages],
            "readers": _readers_dict(self.readers),
            "problem": self.problem or None,
        }

    def __str__(self) -> str:
        return printable(f"{self.path} group, links through {' | '.join(self.filters)}")


@dataclass(frozen=True, slots=True)
class Inspection(DatasetsResult[DatasetInfo]):
    """What `inspect` found.

    Parameters
    ----------
    path
        Of the file.
    nbytes
        Of the file.
    datasets
        In the order of their paths.
    groups
        Those whose links are filtered, or cannot be listed.
    """

    path: str
    nbytes: int
    datasets: tuple[DatasetInfo, ...]
    groups: tuple[GroupInfo, ...] = ()

    @property
    def problems(self) -> tuple[tuple[str, str], ...]:
        """Datasets and groups that cannot be read right: their paths, and why."""
        found: tuple[DatasetInfo | GroupInfo, ...] = (*self.datasets, *self.groups)
        return tuple((each.path, each.problem) for each in found if each.problem)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: see docs/inspect.md."""
        return {
            "schema": SCHEMA,
            "path": self.path,
            "nbytes": self.nbytes,
            "datasets": [each.to_dict() for each in self.datasets],
            "groups": [each.to_dict() for each in self.groups],
        }

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.inspection.text import parts_of

        return parts_of(self)


def json_document(inspections: Iterable[Inspection], errors: Iterable[tuple[str, Exception]] = ()) -> str:
    """Return the JSON document of the command line: files that were inspected, and errors with their paths."""
    files = [{key: value for key, value in each.to_dict().items() if key != "schema"} for each in inspections]
    failed = [{**error_dict(error), "path": path} for path, error in errors]
    return json_text({"schema": SCHEMA, "files": files, "errors": failed}, indent=2)


def stage_in_words(stage: Stage) -> str:
    """Return what a filter does, and whether a chunk may go without it where that is not as usual."""
    words, each = stage.in_words, stage.filter
    if isinstance(each, UnknownFilter) and each.label:
        words = words.replace(f"{each.label} [{each.id}]", filter_name(each), 1)
    if stage.optional == each.optional:
        return words
    return f"{words}, {'optional' if stage.optional else 'required'}"


def _stage_dict(stage: Stage) -> dict[str, Any]:
    each = stage.filter
    return {
        "id": each.id,
        "name": each.name,
        "label": getattr(each, "label", "") or each.registered_name,
        "text": str(stage),
        "words": stage_in_words(stage),
        "optional": stage.optional,
        "parameters": json_value(_parameters(each)),
        "values": list(stage.stored or ()),
    }


def _parameters(each: Filter) -> dict[str, Any]:
    """Return what the filter is made with."""
    if not isinstance(each, Zfp):
        return {name: getattr(each, name) for name in each.parameters()}
    mode = each.mode
    if isinstance(mode, zfp.Accuracy):
        return {"accuracy": mode.tolerance}
    return {each.name: getattr(mode, each.name) for each in fields(mode)} or {"reversible": True}


def _readers_dict(readers: Readers) -> dict[str, Any]:
    return {
        "words": str(readers),
        "any_hdf5": readers.any_hdf5,
        "plugins": list(readers.plugins),
        "szip": readers.szip,
        "h5py": readers.h5py,
        "tamis": readers.tamis,
    }
