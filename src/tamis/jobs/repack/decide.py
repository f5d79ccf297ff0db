"""Decide how one array is stored: copied, with its streams, or encoded again; or why it is kept as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tamis import meaning
from tamis.advice.chunk_shapes import Chunking, oversized_note, padding_note
from tamis.arrays.grid import chunks_for_objects, default_chunks
from tamis.errors import ParameterError
from tamis.filters import ChunkType, Fletcher32, Zfp
from tamis.filters.plugin_client import hdf5plugin_version
from tamis.filters.zfp import squeezed
from tamis.formatting import shape_text, size_text
from tamis.jobs.repack.refusals import Refusal, refuse
from tamis.jobs.repack.required import absolute_bound, with_requirement
from tamis.jobs.repack.stored_units import in_stored_units, units_note
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import shorter_pipeline
from tamis.rewrite.growth import compresses
from tamis.rewrite.packed_array import PackedArray, can_grow, keeps_values, pack_array, unpacked_type
from tamis.rewrite.plan import ArrayPlan, Checks, Copy, Recode, Recompress, flags_for
from tamis.rewrite.steps import FillStep, PackStep, RoundStep, ValueStep
from tamis.rewrite.streams import has_streams, is_stored_so, skips_first
from tamis.rewrite.surveys import stored_ratio
from tamis.rewrite.tolerance import as_stored_already, provisional, with_loosest_tolerance
from tamis.rewrite.values import Padding, suitable_chunks
from tamis.rounding import CONTAINER, ROUNDING_ATTRIBUTES, Pack, Rounding, recorded_rounding, still_needed
from tamis.stores.facts import ELSEWHERE, ArrayFacts, array_nbytes, values_nbytes_of
from tamis.stores.losses import recorded_loss
from tamis.zfp import Rate
from tamis.zfp.header import BLOCK_SIDE

if TYPE_CHECKING:
    import numpy as np

    from tamis.accuracy.requirement import Requirement
    from tamis.jobs.repack.options import RepackOptions
    from tamis.jobs.repack.survey import Survey
    from tamis.stores.protocols import StoredArray

MIN_NBYTES = 4096
"""Smaller unchunked datasets gain nothing: the index of one chunk takes 2 to 4 KiB in most files."""

_MOST_CHUNK_NBYTES = (1 << 32) - 1


class Asked(NamedTuple):
    """What a recipe asks of one array."""

    path: str  # As the recipe has it
    filters: Pipeline | None  # In units of the variable; None keeps those of the array, for other chunks
    chunks: tuple[int, ...] | None  # Chunk shape; None without one
    required: Requirement | None  # What is required of its values
    exact: bool  # Whether the recipe names the array, and is no pattern
    named: bool  # Whether the recipe or the chunk shape names it
    by_rule: bool  # Whether a rule for new chunks has found it, without filters
    # Returns why a pattern does not change its values, because they are coordinates or the like; empty if it may. Roles
    # are looked at only where values may change.
    exactness: Callable[[], str]

    @property
    def keeps_values(self) -> bool:
        """True if a pattern does not change its values, because they are coordinates or the like."""
        return not self.exact and bool(self.exactness())


class Kept(NamedTuple):
    """An array that a pattern matches, and that stays as it is."""

    reason: str


def decide(array: StoredArray, asked: Asked, options: RepackOptions, survey: Survey) -> ArrayPlan | Kept:
    """Return how an array is stored, or why it is kept.

    Values are read only if its packing, its requirements or its tolerance depend on them.

    Raises
    ------
    ParameterError, DataError
        If the array cannot be stored as asked.
    MissingFilterError
        If a filter is not installed.
    """
    if reason := _left_alone(array, asked, options):
        return Kept(reason)
    plan = _plan(array, asked, options, survey)
    if plan.changes_values and asked.keeps_values:
        return Kept(f"{asked.exactness()}; name it to store it lossily")
    if not isinstance(plan, Copy):
        is_conditional = not _is_wanted_at_any_size(array, asked)
        if (is_conditional or asked.by_rule) and (reason := _too_small(array, options)):
            return Kept(reason)
        if is_conditional:
            # An array may not return to "kept" after its values are read: its old companion is gone by then.
            plan = replace(plan, may_grow=options.larger or array.marks.has_companion)
        if options.will_grow and can_grow(array):
            plan = replace(plan, records_all=True)  # later chunks may need the filters that these do not
    has_bound = plan.pipeline.bound is not None
    plan = with_requirement(plan, array, asked.required, survey)
    return with_loosest_tolerance(plan, array) if has_bound else plan


def _left_alone(array: ArrayFacts, asked: Asked, options: RepackOptions) -> str:
    """Return why a pattern leaves an array alone, whatever the filters; empty if it does not."""
    if asked.exact:
        return ""
    if array.marks.is_bare_dimension:
        return "expected values, got a netCDF-4 dimension without a variable"
    if array.storage.layout in ELSEWHERE and not options.follow:
        return (
            f"its values are in other files ({array.storage.layout}), where a pattern leaves them: name it, or give"
            " follow (--follow), to store them in the target"
        )
    return ""


def _is_wanted_at_any_size(array: ArrayFacts, asked: Asked) -> bool:
    """Return whether an array is stored as asked even if it does not become smaller."""
    # With `follow`, values of other files are to be in the target, although it becomes larger.
    return asked.named or asked.filters is None or not compresses(asked.filters) or array.storage.layout in ELSEWHERE


def _too_small(array: ArrayFacts, options: RepackOptions) -> str:
    """Return why patterns keep an array because of its size; empty if they do not."""
    own_least = 0 if array.storage.chunk_shape else MIN_NBYTES
    least = own_least if options.min_size is None else options.min_size
    if values_nbytes_of(array) >= least:
        return ""
    return f"patterns skip datasets of less than {least} B (--min-size): name it to change it"


def _plan(array: StoredArray, asked: Asked, options: RepackOptions, survey: Survey) -> ArrayPlan:
    """Return the plan of an array in the chunks that are asked for, or that suit it and the storage."""
    plan = _plan_as_asked(array, asked, options, survey)
    if options.storage != "s3" or asked.chunks is not None or asked.filters is None:
        return plan
    if isinstance(plan, Copy) and plan.pipeline.error_bound != 0:
        return plan  # their loss would add to a new one
    trial = plan if plan.pipeline.bound is None else with_loosest_tolerance(plan, array)
    own = array_nbytes(array) / max(array.stored_nbytes, 1)
    ratio = own if isinstance(plan, Copy) else stored_ratio(trial, plan.source_of(array), options.threads)
    shape = chunks_for_objects(array.shape, plan.chunk_shape, plan.dtype.itemsize, ratio)
    if shape == plan.chunk_shape:
        return plan
    nbytes = math.prod(shape) * plan.dtype.itemsize / ratio
    note = f"its chunks are {shape_text(shape)}, about {size_text(int(nbytes))} each, for an object store"
    new = _plan_as_asked(array, asked._replace(chunks=shape), options, survey)
    return replace(new, notes=(*new.notes, note))


def _plan_as_asked(array: StoredArray, asked: Asked, options: RepackOptions, survey: Survey) -> ArrayPlan:
    """Return the plan of an array in the chunks that are asked for; without any, in chunks that suit it."""
    if packs(asked.filters) and not asked.keeps_values:
        return _packed_plan(array, asked, options, survey)
    return _unpacked_plan(array, asked, options)


class _Form(NamedTuple):
    """The form in which an array would be stored."""

    array: StoredArray
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    pipeline: Pipeline  # In stored units, without a rounding

    @property
    def chunk(self) -> ChunkType:
        """Type and shape of its chunks."""
        return ChunkType(self.dtype, self.chunks)

    @property
    def is_lossy(self) -> bool:
        """True if the filters may change values."""
        return self.pipeline.error_bound != 0


_WITHOUT_CHUNKS: tuple[Refusal[StoredArray], ...] = (
    Refusal(
        lambda array: array.type.dtype is None,
        lambda array: f"expected values of a fixed size, got {array.type.text}: {array.storage.unfiltered_reason}",
    ),
    Refusal(
        lambda array: array.shape is None, lambda _: "expected an array, got a null dataspace, which has no values"
    ),
    Refusal(lambda array: not array.shape, lambda _: "expected an array, got a scalar, which HDF5 cannot filter"),
    Refusal(
        lambda array: any(extent == most == 0 for extent, most in zip(array.shape, array.maxshape, strict=True)),
        lambda array: (
            f"expected an array that has values, or may grow, got shape {array.shape}, which HDF5 cannot divide into"
            " chunks"
        ),
    ),
)
"""Arrays that cannot have chunks, which filters need."""

_CHUNK_SHAPES: tuple[Refusal[_Form], ...] = (
    Refusal(
        lambda form: len(form.chunks) != len(form.array.shape),
        lambda form: f"expected chunks with {len(form.array.shape)} axes, got {form.chunks}",
    ),
    Refusal(
        lambda form: not _is_within(form.chunks, form.array),
        lambda form: f"expected chunks within the shape {form.array.shape}, got {form.chunks}",
    ),
    Refusal(
        lambda form: form.chunk.nbytes > _MOST_CHUNK_NBYTES,
        lambda form: (
            f"expected a chunk of less than 4 GiB, got {form.chunks} of {form.dtype}: {form.chunk.nbytes} bytes"
        ),
    ),
)
"""Chunk shapes that an array cannot have."""

_LOSS: tuple[Refusal[_Form], ...] = (
    Refusal(
        lambda form: form.is_lossy and form.dtype.kind == "i" and meaning.is_unsigned(form.array.attributes),
        lambda _: (
            "expected lossless filters for integers that are unsigned by _Unsigned: values near 0 would become the"
            " largest ones"
        ),
    ),
    Refusal(
        lambda form: form.is_lossy and form.array.marks.is_companion,
        lambda _: "expected lossless filters for the missing-value mask of another dataset",
    ),
)
"""Arrays whose values must not change."""


def _is_within(chunks: tuple[int, ...], array: ArrayFacts) -> bool:
    """Return whether chunks are no larger than an array is or may become."""
    axes = zip(array.shape, array.maxshape, chunks, strict=True)
    return all(most is None or step <= max(extent, most) for extent, most, step in axes)


def _unpacked_plan(array: StoredArray, asked: Asked, options: RepackOptions) -> ArrayPlan:
    """Return the plan of an array for filters in units of the variable, whose values keep their type."""
    path = asked.path
    if array.type.dtype is not None and any("\udc80" <= letter <= "\udcff" for letter in path):
        raise ParameterError("expected a name in UTF-8, got other bytes")
    refuse(_WITHOUT_CHUNKS, array)
    requested = array.storage.pipeline if asked.filters is None else asked.filters
    dtype, notes = _chunk_dtype(array, requested)
    packing = meaning.packing_of(array.attributes)
    if asked.filters is None:
        pipeline = unstored(array.storage.pipeline)
    else:
        pipeline = in_stored_units(asked.filters, packing, dtype)
        notes += units_note(asked.filters, pipeline, packing)
    pipeline = provisional(pipeline)
    chunks = suitable_chunks(array, pipeline, dtype) if asked.chunks is None else asked.chunks
    form = _Form(array, dtype, chunks, pipeline)
    refuse(_CHUNK_SHAPES, form)
    _check(form)
    rounding, rounding_notes = _needed_rounding(array, pipeline)
    pipeline = pipeline.without_rounding
    form = form._replace(pipeline=_with_checksum(pipeline) if options.checksum else pipeline)
    refuse(_LOSS, form)
    notes += rounding_notes
    # If the companion goes, missing values return to the array, so its chunks change.
    keeps_companion = not array.marks.has_companion or options.missing == "mask"
    if not keeps_companion:
        notes.append(
            "its missing-value mask is left out, and missing values go back into the dataset (--missing mask keeps it)"
        )
    keeps_values = rounding is None and keeps_companion
    same, unguarded = (as_stored_already(filters, array.storage.pipeline) for filters in (form.pipeline, pipeline))
    if keeps_values and (copied := _copied(form, path, same, unguarded, packing, notes)) is not None:
        return copied
    form.pipeline.check(form.chunk)
    form.pipeline.check_encodable()
    notes += [*_version_note(form.pipeline), *_rate_note(form.pipeline, form.chunk)]
    if keeps_values and has_streams(array, same, dtype, form.chunks):
        notes.append("zfp streams are kept: only filters after zfp change, and no error is added")
        return Recompress(path, same, dtype, form.chunks, tuple(notes), packing)
    notes += _form_notes(form, path, None if rounding is None else rounding.rounding)
    return _recoded(form, path, notes, packing, rounding, options)


def _recoded(
    form: _Form,
    path: str,
    notes: list[str],
    packing: meaning.Packing | None,
    rounding: RoundStep | None,
    options: RepackOptions,
) -> Recode:
    """Return the plan for encoding the values of an array again, which may be rounded before."""
    array, dtype = form.array, form.dtype
    steps: list[ValueStep] = [] if rounding is None else [rounding]
    if options.missing == "mask" and form.is_lossy and (flags := flags_for(array, dtype)) is not None:
        steps.append(FillStep(flags))
    return Recode(
        path,
        form.pipeline,
        dtype,
        form.chunks,
        tuple(notes),
        packing,
        steps=tuple(steps),
        checks=Checks(missing=array.meaning.missing),
        padding=Padding.of(array, dtype),
    )


def _chunk_dtype(array: ArrayFacts, filters: Pipeline) -> tuple[np.dtype[Any], list[str]]:
    """Return the type of the chunks, in native byte order if the filters need it, and notes."""
    dtype = cast("np.dtype[Any]", array.type.dtype)
    notes = []
    if array.storage.layout in ELSEWHERE:
        notes.append(f"its values are read from other files ({array.storage.layout}), and stored in the target")
    if dtype.isnative or (filters.bounded is None and filters.error_bound == 0):
        return dtype, notes
    native = dtype.newbyteorder("=")
    needing = filters.rounding or filters.filters[0]
    notes.append(f"converted from {dtype.str} to native {native.str}, which {needing.name} needs")
    return native, notes


def _copied(
    form: _Form,
    path: str,
    same: Pipeline,
    unguarded: Pipeline,
    packing: meaning.Packing | None,
    notes: list[str],
) -> Copy | None:
    """Return the plan for copying the chunks of an array, if they have the filters already; None if they do not.

    `same` are the filters as the array may have stored them, and `unguarded` these without the added checksum.
    """
    array, dtype, chunks = form.array, form.dtype, form.chunks
    text = "chunks are copied as stored: they have these filters already"
    shorter = shorter_pipeline(same)
    if shorter is not None and is_stored_so(array, shorter, dtype, chunks) and not skips_first(array):
        return Copy(path, shorter, dtype, chunks, (*notes, text), packing)
    if is_stored_so(array, same, dtype, chunks):
        return Copy(path, same, dtype, chunks, (*notes, text), packing)
    if unguarded != same and is_stored_so(array, unguarded, dtype, chunks):
        return Copy(path, unguarded, dtype, chunks, (*notes, f"{text}, without a checksum"), packing)
    return None


def _version_note(pipeline: Pipeline) -> list[str]:
    """Return a note about filters whose versions do not read each other's chunks."""
    if all(item.stable for item in pipeline.filters[:1]):
        return []
    return [
        f"versions of SZ3 do not read each other's chunks: read it with hdf5plugin {hdf5plugin_version()}, or make sure"
        " that another version does; sperr has no such history"
    ]


def _rate_note(pipeline: Pipeline, chunk: ChunkType) -> list[str]:
    """Return a note about a rate below the least that blocks of such chunks have."""
    item = pipeline.bounded
    if not isinstance(item, Zfp) or item.bound is not None or not isinstance(item.mode, Rate):
        return []
    rank = len(squeezed(chunk))
    stored = item.mode.effective(chunk.dtype, rank)
    # A block has whole bits, which alone makes a difference of half a bit at most.
    if abs(stored - item.mode.rate) * BLOCK_SIDE**rank <= 0.5:
        return []
    axes = "one axis" if rank == 1 else f"{rank} axes"
    return [f"{item} stores {stored:g} bits per value, the least for {chunk.dtype} chunks with {axes}"]


def _form_notes(form: _Form, path: str, rounding: Rounding | None) -> list[str]:
    """Return notes about chunks that do not suit the array, and about a loss that comes on top of an earlier one."""
    notes = []
    growing = tuple(most is None for most in form.array.maxshape)
    chunking = Chunking(form.array.shape, growing, form.chunk, form.pipeline, {})
    if note := oversized_note(path, chunking) or padding_note(path, chunking):
        notes.append(note)
    if form.is_lossy or rounding is not None:
        new = form.pipeline.error_bound if rounding is None else rounding.absolute_bound
        notes += _earlier_loss_notes(form.array, new)
    return notes


def _earlier_loss_notes(array: ArrayFacts, new: float | None) -> list[str]:
    """Return a note if values that lose up to an absolute bound went through lossy filters before."""
    before = array.storage.pipeline
    if before.error_bound != 0:
        return [f"its values already went through {before}: {_addition(array, new)}"]
    if whole := meaning.asked_bound(array.attributes):
        return [f"its values already err by up to {whole:g}: {_addition(array, new)}"]
    return []


def _addition(array: ArrayFacts, new: float | None) -> str:
    """Return what becomes of the recorded bound of an array whose values lose up to an absolute bound once more."""
    before, text = recorded_loss(array), "the new error adds to the old one"
    if new is None:
        return text
    if before.bound is None:
        return f"{text}, which has no bound: the recorded one is about these values"
    if before.relative is not None:
        return f"{text}, which is relative: no bound of both is recorded"
    return f"{text}, and the file records the sum of both bounds" if before.bound else text


def packs(pipeline: Pipeline | None) -> bool:
    """Return whether a pipeline begins with a packing."""
    return pipeline is not None and isinstance(pipeline.rounding, Pack)


def has_checksum(pipeline: Pipeline) -> bool:
    """Return whether chunks have a checksum that each reader of HDF5 compares."""
    return any(isinstance(item, Fletcher32) for item in pipeline.filters)


def _packed_plan(array: StoredArray, asked: Asked, options: RepackOptions, survey: Survey) -> ArrayPlan:
    """Return the plan of an array that is packed, whose values are read for that."""
    requested, required = cast("Pipeline", asked.filters), asked.required
    pack, dtype = cast("Pack", requested.rounding), unpacked_type(array)
    if required is not None and required.relative is not None:
        raise ParameterError(
            f"expected no relative requirement for {pack}, whose error is absolute, got rel={required.relative!r}: use"
            f" bitround or granular"
        )
    shape = asked.chunks or array.storage.chunk_shape
    if shape is None:
        refuse(_WITHOUT_CHUNKS, array)
        shape = default_chunks(array.shape, pack.stored_type(dtype).itemsize, zfp=False)
    bound, zeros = math.inf, False
    if required is not None:
        zeros = required.zeros
        checks = Checks(missing=array.meaning.missing)
        own_type = array.type.dtype or dtype
        model = Recode(asked.path, Pipeline(), own_type, shape, packing=array.meaning.packing, checks=checks)
        absolute = absolute_bound(model, array, required, survey)
        bound = math.inf if absolute is None else model.in_units(absolute)
    extent = survey.packing_range(array, shape)
    will_grow, is_divided = options.will_grow, options.packs_to_codecs
    packed = pack_array(array, pack, extent, bound=bound, zeros=zeros, is_divided=is_divided, will_grow=will_grow)
    of_codes = asked._replace(filters=requested.without_rounding, chunks=shape)
    plan = _unpacked_plan(cast("StoredArray", packed), of_codes, options)
    assert isinstance(plan, Recode)  # the source has no chunks of codes that could be copied
    notes = (*plan.notes, *_packing_notes(array, packed))
    return replace(plan, notes=notes, steps=(PackStep(packed.codes), *plan.steps))


def _packing_notes(array: ArrayFacts, packed: PackedArray) -> list[str]:
    """Return notes about the codes of an array, and about a loss that comes on top of an earlier one."""
    codes = packed.codes
    by_codecs = ", from which codecs make floats" if codes.is_divided else ""
    notes = [f"packed to {codes.dtype}, {codes.used_bits} bits of which are used{by_codecs}"]
    notes += [
        f"{codes.dtype} has no code for the valid limit {limit:g}, which becomes {found:g}, that of its last code"
        for limit, found in codes.lost_limits
    ]
    if codes.dtype.itemsize == codes.unpacked.itemsize:
        notes.append("the CF conventions have int for doubles only: where files must conform, allow a larger error")
    if keeps_values(array, codes):
        notes.append("packed before in the same steps: its values do not change, and keep their recorded bound")
    elif array.meaning.packing is not None:
        notes.append(f"packed before by {array.meaning.packing}: {_addition(array, codes.bound)}")
    elif before := recorded_rounding(array.attributes, array.type.numbers):
        notes.append(f"its values were already rounded by {before}: {_addition(array, codes.bound)}")
    return [*notes, *_earlier_loss_notes(array, codes.bound)]


def _needed_rounding(source: ArrayFacts, pipeline: Pipeline) -> tuple[RoundStep | None, list[str]]:
    """Return the rounding that a pipeline needs, None if there is none or the values already have it; and notes."""
    if pipeline.rounding is None:
        before = recorded_rounding(source.attributes, source.type.numbers)
        if before is None or pipeline.error_bound == 0:
            return None, []
        return None, [f"its values were already rounded by {before}: {_addition(source, pipeline.error_bound)}"]
    rounding = still_needed(pipeline.rounding, source.attributes)
    if rounding is None:
        # Another program may have added values since, which it need not have rounded.
        names = [name for name in ROUNDING_ATTRIBUTES if name in source.attributes and name != CONTAINER]
        says = f"its attribute {names[0]} says that its values are rounded by {pipeline.rounding}"
        return None, [f"{says}: they are not rounded again"]
    packing = source.meaning.packing
    if packing is None or packing.offset == 0:
        return RoundStep(rounding, source.shape), []
    note = f"packed by {packing}: errors of the rounding are relative to the stored values"
    return RoundStep(rounding, source.shape), [note]


def _check(form: _Form) -> None:
    """Raise ParameterError if the filters cannot take such chunks."""
    pipeline, chunk = form.pipeline, form.chunk
    try:
        pipeline.check(chunk)
    except ParameterError as error:
        if math.prod(chunk.shape) == 1 and _takes(pipeline, ChunkType(chunk.dtype, (BLOCK_SIDE,))):
            raise ParameterError(f"{error} (-c)") from error
        packing = meaning.packing_of(form.array.attributes) if chunk.dtype.kind in "iu" else None
        if packing is not None:
            text = f"{error}. Its values are packed: they are stored as {chunk.dtype} with {packing}"
            raise ParameterError(f"{text}; lossless filters such as shuffle|deflate(9) keep them") from error
        if chunk.dtype.kind != "V":
            raise
        text = form.array.type.text
        # Integers of 20 bits and bitfields have the names of integers, which filters of numbers take.
        words = form.array.type.words if text.startswith(("int", "uint", "float")) else text
        raise ParameterError(
            f"expected numbers, got values of the type {words}: use filters of bytes, such as shuffle and deflate"
        ) from error


def _takes(pipeline: Pipeline, chunk: ChunkType) -> bool:
    with suppress(ParameterError):
        pipeline.check(chunk)
        return True
    return False


def _with_checksum(pipeline: Pipeline) -> Pipeline:
    if has_checksum(pipeline) or pipeline.bounded is None:
        return pipeline
    return Pipeline((*pipeline.stages, Fletcher32()), bound=pipeline.bound)


def unstored(pipeline: Pipeline) -> Pipeline:
    """Return filters as a request for other chunks, without stored parameters."""
    return Pipeline(replace(stage, stored=None) for stage in pipeline.stages)
