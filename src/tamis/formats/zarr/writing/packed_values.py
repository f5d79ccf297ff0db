"""How a new array has packed values: as integers with attributes, or as floats that codecs make from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis import meaning
from tamis.errors import ParameterError
from tamis.formats.zarr.packed_codecs import PackedCodecs, Parts, is_packed
from tamis.formats.zarr.stored.packed_view import PackedView, is_exact

if TYPE_CHECKING:
    from tamis.formats.zarr.writing.layout import ZarrLayout
    from tamis.rewrite.plan import ArrayPlan
    from tamis.rounding import Codes
    from tamis.stores.data_model import NamedArray
    from tamis.stores.protocols import StoredArray


class Values(NamedTuple):
    """What the metadata of an array say about its values."""

    dtype: np.dtype[Any]
    fill_value: Any  # Of chunks that are not stored
    attributes: Mapping[str, Any]
    packing: Sequence[dict[str, Any]] = ()  # Metadata of the codecs that make the values from integers; none without


def packed_values(
    integers: Values, variable: NamedArray, source: StoredArray, plan: ArrayPlan, form: ZarrLayout
) -> Values:
    """Return what the metadata of a new array of Zarr 3 say, from what they say about the integers in its chunks.

    Parameters
    ----------
    integers
        Type, fill value and attributes of what the chunks have; not packed, they are returned as they are.
    variable, source
        What is written: the variable with its attributes, and the array with the values.
    plan, form
        How its chunks and the target are written.

    Raises
    ------
    ParameterError
        If codecs are asked for, and cannot give the values that the attributes give.
    """
    if form.packed_as == "attributes" or not is_packed(integers.attributes, integers.dtype):
        return integers
    in_shards = form.shard_counts(plan.grid(source)) is not None
    if plan.codes is not None:
        is_asked = form.packed_as == "codecs"
        return _packed_now(integers, variable, plan.codes, in_shards=in_shards) if is_asked else integers
    if isinstance(source, PackedView):
        return _as_before(integers, source, in_shards=in_shards)
    if form.packed_as is None and source.storage.codec_marks is None:
        return integers
    return _packed_before(integers, source, in_shards=in_shards)


def _packed_now(integers: Values, variable: NamedArray, codes: Codes, *, in_shards: bool) -> Values:
    """Return the metadata of floats that the run packs; marks and limits are those of the source, where these hold."""
    missing = {code: mark for mark, code in codes.marks_for_codecs}
    codecs = PackedCodecs.of_attributes(integers.attributes, integers.dtype, missing)
    if not codecs.is_exact((codes.low, codes.high)):
        raise ParameterError(codecs.inexact_text)
    attributes = codecs.of_floats(integers.attributes)
    if not codes.gives_nan:
        attributes |= _as_in_source(variable.attributes, codes)
        marks = {name: attributes[name] for name in meaning.FILL_ATTRIBUTES if name in attributes}
        attributes |= {name: _as_floats(mark, codecs.values) for name, mark in marks.items()}
    return _by(codecs, integers, attributes, codecs.metadata(in_shards=in_shards))


def _packed_before(integers: Values, source: StoredArray, *, in_shards: bool) -> Values:
    """Return the metadata of floats from integers that attributes pack in the source, or codecs in several sources."""
    codecs = PackedCodecs.of_attributes(integers.attributes, integers.dtype, source.storage.codec_marks or {})
    if not is_exact(codecs, source):
        raise ParameterError(codecs.inexact_text)
    return _by(codecs, integers, codecs.of_floats(integers.attributes), codecs.metadata(in_shards=in_shards))


def _as_in_source(attributes: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """Return the attributes of floats that hold for unpacked ones, too: marks of missing values, and most limits.

    A limit that would part unpacked values otherwise moves to one of these.
    """
    low, high = codes.limits
    keeps_low = low is None or codes.value_of(low[1]) >= low[0] > _value_before(codes, low[1], -1)
    keeps_high = high is None or codes.value_of(high[1]) <= high[0] < _value_before(codes, high[1], 1)
    kept = {"valid_min": keeps_low, "valid_max": keeps_high, "valid_range": keeps_low and keeps_high}
    kept |= dict.fromkeys(meaning.FILL_ATTRIBUTES, True)
    return {name: attributes[name] for name, is_kept in kept.items() if is_kept and name in attributes}


def _as_floats(mark: Any, dtype: np.dtype[Any]) -> Any:
    """Return marks of missing integers in the type that the values get, which may not have each of them."""
    return np.asarray(mark).astype(dtype)[()] if np.asarray(mark).dtype.kind in "iu" else mark


def _value_before(codes: Codes, code: int, step: int) -> float:
    """Return the value of the next code on a side; an infinity if no value has it."""
    return codes.value_of(code + step) if codes.low <= code + step <= codes.high else step * math.inf


def _as_before(integers: Values, source: PackedView, *, in_shards: bool) -> Values:
    """Return the metadata of a packed source, in which only attributes change that differ from those of the source."""
    attributes = dict(source.coded.attributes)
    for name, value in integers.attributes.items():
        if name not in source.attributes or value is not source.attributes[name]:
            attributes[name] = value
    for name in source.attributes.keys() - integers.attributes.keys():
        attributes.pop(name, None)
    assert source.document is not None  # packed arrays are known by it
    parts = Parts.of(source.document.content["codecs"])
    assert parts is not None
    packing = parts.packing
    if in_shards and parts.sharding is None:
        packing = source.packed_codecs.metadata(in_shards=True)
    return _by(source.packed_codecs, integers, attributes, packing)


def _by(
    codecs: PackedCodecs, integers: Values, attributes: Mapping[str, Any], packing: Sequence[dict[str, Any]]
) -> Values:
    fill = codecs.decoded(np.asarray(integers.fill_value, codecs.stored).reshape(1))[0]
    return Values(codecs.values, fill, attributes, packing)
