"""Error bounds of a verification: given as numbers, or recorded by the filters of the target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tamis import meaning
from tamis.accuracy import Place, Squares, Tally
from tamis.arguments import Kind
from tamis.errors import FileError, ParameterError
from tamis.filters import Sperr
from tamis.formatting import plural
from tamis.jobs.recipes import Names, assigned
from tamis.rewrite import valid_limits
from tamis.rounding import PACKING_ATTRIBUTES, Pack
from tamis.stores import recorded_loss

if TYPE_CHECKING:
    from tamis.meaning import Packing
    from tamis.stores import StoredArray

RECORDED: Literal["recorded"] = "recorded"
"""Means the bound that the filters of a target dataset record in the file."""

Bound = float | Literal["recorded"]
"""A bound in units of the variable, or that which the filters of the target record."""
Bounds = Mapping[str, Bound] | Literal["recorded"]
"""Bounds by the name or pattern of datasets, or the recorded ones of all."""


def parse_bound(text: str) -> Bound:
    """Parse the text of a bound; whole numbers stay exact."""
    if text == RECORDED:
        return RECORDED
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    word, _, value = text.partition("=")
    advice = f": leave out {word}=" if value and word in _ABSOLUTE else ""
    raise ParameterError(f"expected a bound such as 0.1, in units of the variable, or {RECORDED}, got {text!r}{advice}")


_ABSOLUTE = ("abs", "bound", "accuracy")
"""Words of requirements and filters for what a bound is."""


_BOUNDS = Kind("a mapping such as {'TS': 0.1}, or 'recorded'", lambda value: isinstance(value, Mapping | str))


def checked_bounds(bounds: Bounds | None) -> Bounds:
    """Check that names of bounds are texts, and values finite numbers of at least 0 or `RECORDED`; return them."""
    _BOUNDS.check_optional("bounds", bounds)
    if isinstance(bounds, str):
        if bounds != RECORDED:
            raise ParameterError(f"expected bounds by name, or {RECORDED!r}, got {bounds!r}")
        return bounds
    return {name: _checked_bound(name, value) for name, value in (bounds or {}).items()}


def _checked_bound(name: object, value: object) -> Bound:
    if not isinstance(name, str):
        raise ParameterError(f"expected names as text, got {name!r}")
    if isinstance(value, str) and value == RECORDED:
        return RECORDED
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
        raise ParameterError(
            f"expected a bound of 0 or more for {name}, in units of the variable, or {RECORDED!r}, got {value!r}"
        )
    return value.item() if isinstance(value, np.generic) else value  # type: ignore[return-value]


def assigned_bounds(
    bounds: Bounds, names: Names, chosen: Mapping[str, StoredArray], labels: Mapping[str, str]
) -> tuple[dict[str, Bound], dict[str, str]]:
    """Return for each first path its bound, and the path that the bound's name matched.

    Names take precedence over patterns. Patterns skip datasets without numbers, unless the bound is 0 or recorded.
    """
    if isinstance(bounds, str):
        return dict.fromkeys(labels, RECORDED), {}
    by_path: dict[str, Bound] = {}
    named: dict[str, str] = {}
    unused = dict.fromkeys(bounds, "")
    for item in assigned(bounds, names.match_any if names.optional else names.match):
        if item.path not in labels:
            continue
        dataset = chosen[labels[item.path]]
        if item.value not in (0, RECORDED) and dataset.type.numbers is None:
            if item.name in unused:  # otherwise the pattern already matched a dataset of numbers
                unused[item.name] = f"{item.path}: {dataset.type.words}"
            continue
        unused.pop(item.name, None)
        by_path.setdefault(item.path, item.value)
        named.setdefault(item.path, item.label)
    if not chosen or names.optional:
        return by_path, named  # a pattern may match nothing if there is nothing
    for name, text in unused.items():
        if text:
            refusal = f"{name}: a bound of {bounds[name]!r} applies only to numbers, got {text}: use 0 or none"
            raise ParameterError(refusal).at(path=names.filename, dataset=name)
        refusal = f"{names.filename}: expected a dataset named {name!r}, found only {', '.join(chosen)}"
        raise FileError(refusal).at(path=names.filename, dataset=name)
    return by_path, named


def recorded_bounds(source: StoredArray, target: StoredArray) -> dict[str, Any]:
    """Return the bound that a target records for all losses of its values, as fields of `Compared`.

    ``bound`` is in units of the variable, and None if filters have none, or if an absolute and a relative bound cannot
    be added. What source and target both record happened before both, and adds no further error.
    """
    before, after = recorded_loss(source), recorded_loss(target)
    if after == before and target.storage.pipeline.error_bound == 0:
        return {"bound": 0.0}
    if after.relative is None or after.relative == before.relative:
        return {"bound": after.bound}
    return {"bound": None} if after.bound != 0 else {"relative_bound": after.relative.relative_bound}


def unbounded_reason(target: StoredArray) -> str:
    """Return why a target records no bound for all losses of its values."""
    if (relative := recorded_loss(target).relative) is not None:
        return f"it records {relative} and another loss: a relative and an absolute bound cannot be added"
    return f"{target.storage.pipeline} records no bound"


def only_rounding_exceeds(bound: float, source: StoredArray, target: StoredArray) -> bool:
    """Return whether errors above a recorded bound come from rounding to the type of the target, as after SPERR's."""
    if not isinstance(target.storage.pipeline.bounded, Sperr) or target.meaning.packing is not None:
        return False
    with closing(source.open_reader()) as before, closing(target.open_reader()) as after:
        for region in source.parts(target.chunk_index().grid):
            values = after.read(region)
            room = np.abs(values).astype(np.float64) * float(np.finfo(values.dtype).eps)
            with np.errstate(invalid="ignore"):
                if (np.abs(before.read(region).astype(np.float64) - values) > bound + room).any():
                    return False
    return True


def packed_otherwise(source: StoredArray, target: StoredArray) -> bool:
    """Return whether two arrays of numbers can only be compared unpacked, because only one is packed, or otherwise."""
    if source.type.numbers is None or target.type.numbers is None or source.meaning.packing == target.meaning.packing:
        return False
    kinds = source.type.numbers.kind == "f", target.type.numbers.kind == "f"
    return kinds[0] != kinds[1] or (not any(kinds) and Pack.attribute in target.attributes)


PACKED_ATTRIBUTES = (
    *(*PACKING_ATTRIBUTES, *meaning.FILL_ATTRIBUTES),
    *("valid_range", "valid_min", "valid_max", "actual_range", "_Unsigned"),
)
"""Attributes in stored units, of the type of the stored values, or of their ends."""


def limits_change(source: StoredArray, target: StoredArray) -> str:
    """Return how the limits of valid values changed, in units of the variable, by more than a step; empty if not."""
    texts, before, after = [], valid_limits(source), valid_limits(target)
    packings = [array.meaning.packing for array in (source, target)]
    step = max((abs(packing.scale) for packing in packings if packing is not None), default=0.0)
    for name, first, second in zip(("smallest", "largest"), before, after, strict=True):
        is_same = first == second or (first is not None and second is not None and abs(first - second) <= step)
        if not is_same:
            ends = ("none" if end is None else f"{end:g}" for end in (first, second))
            texts.append(f"the {name} valid value, {' became '.join(ends)}")
    return "; ".join(texts)


def in_units(tally: Tally, packing: Packing | None) -> Tally:
    """Return a tally with errors, ranges and values unpacked; counts and relative errors do not change."""
    if packing is None:
        return tally

    def convert(place: Place | None) -> Place | None:
        if place is None:
            return None
        return Place(place.index, packing.unpacked(place.source), packing.unpacked(place.target))

    ends = [packing.unpacked(limit) for limit in (tally.low, tally.high) if limit is not None]
    fraction, exponent = math.frexp(packing.scale)
    squares = Squares(tally.squares.mantissa * fraction**2, tally.squares.exponent + exponent)
    return replace(
        tally,
        error=packing.unpacked_error(tally.error),
        squares=squares,
        low=min(ends, default=None),
        high=max(ends, default=None),
        worst=convert(tally.worst),
        first_different=convert(tally.first_different),
        first_lost=convert(tally.first_lost),
        first_gained=convert(tally.first_gained),
        first_crossed=convert(tally.first_crossed),
    )


def broken_bounds(
    tally: Tally, bound: float | None, reason: str, relative_bound: float | None = None
) -> Iterator[tuple[str, str]]:
    """Yield code and text of each violation: values beyond the bound, changed bits, missing values or validity."""
    if tally.crossed and tally.first_crossed:
        text = f"{plural(tally.crossed, 'value')} crossed a limit of the valid range: {_change(tally.first_crossed)}"
        yield "valid-range", text
    if relative_bound is not None:
        if tally.stored_relative > relative_bound and tally.first_different:
            text = f"expected relative errors of at most {relative_bound!r}, found {tally.stored_relative!r}"
            yield "bound", f"{text}: first difference {_change(tally.first_different)}"
    elif not bound and tally.different and tally.first_different:
        without = f" ({reason})" if bound is None else ""
        yield "bits", f"{_differing(tally)}: expected the same bits{without}, found {_change(tally.first_different)}"
    elif bound and tally.worst and tally.error > bound:
        yield "bound", f"expected an error of at most {bound!r}, found {tally.error!r}: {_change(tally.worst)}"
    if tally.lost and tally.first_lost:
        text = f"{tally.lost} of {tally.missing} missing values have other bits: {_change(tally.first_lost)}"
        yield "missing-values", text
    if tally.gained and tally.first_gained:
        yield "missing-values", f"{plural(tally.gained, 'valid value')} became missing: {_change(tally.first_gained)}"


def _differing(tally: Tally) -> str:
    missing = f", {tally.lost} of them missing" if tally.lost else ""
    return f"{tally.different} of {tally.count} values differ{missing}" + (
        f", {tally.gained} became missing" if tally.gained else ""
    )


def _change(place: Place) -> str:
    return f"at {list(place.index)} {place.source!r} became {place.target!r}"
