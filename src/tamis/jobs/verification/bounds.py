"""Bounds that a verification is given: numbers, or what the filters of the target record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from tamis.accuracy.statistics import Place, Tally
from tamis.errors import FileError, ParameterError
from tamis.hdf5.lib.type_text import type_words
from tamis.hdf5.stored_array import Hdf5Array
from tamis.jobs.naming import Names
from tamis.jobs.recipe import assigned

if TYPE_CHECKING:
    from tamis.hdf5.tree.walk import Datasets

RECORDED: Literal["recorded"] = "recorded"
"""Stands for the bound that the filters of a dataset of the target record in the file."""

Bound = float | Literal["recorded"]
Bounds = Mapping[str, Bound] | Literal["recorded"]


def parse_bound(text: str) -> Bound:
    """Read a bound; whole numbers are kept exactly.

    Raises
    ------
    ParameterError
        If it is neither a number nor ``recorded``.
    """
    if text == RECORDED:
        return RECORDED
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ParameterError(f"expected a bound such as 0.1, in units of the variable, or {RECORDED}, got {text!r}")


def checked_bounds(bounds: Bounds | None) -> Bounds:
    """Return bounds whose names are texts, and whose values are finite numbers of 0 or more, or `RECORDED`.

    Raises
    ------
    ParameterError
        If one is anything else.
    """
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
    bounds: Bounds, names: Names, chosen: Datasets, labels: Mapping[str, str]
) -> tuple[dict[str, Bound], dict[str, str]]:
    """Return bounds, and the paths by which they name datasets, by first path.

    Names go before patterns, which leave out what has no numbers unless the bits shall be equal.

    Parameters
    ----------
    bounds
        By name or pattern.
    names
        Of the source.
    chosen
        Datasets that are compared.
    labels
        First paths of these, with their paths in `chosen`.

    Raises
    ------
    FileError
        If a name or pattern means none of them.
    ParameterError
        If there are no numbers where a bound is for.
    """
    if isinstance(bounds, str):
        return dict.fromkeys(labels, RECORDED), {}
    found: dict[str, Bound] = {}
    named: dict[str, str] = {}
    unused = dict.fromkeys(bounds, "")
    for each in assigned(bounds, names.meant):
        if each.path not in labels:
            continue
        dataset = chosen[labels[each.path]]
        if each.value not in (0, RECORDED) and dataset.number_type is None:
            if each.name in unused:  # a pattern may have a dataset of numbers already
                unused[each.name] = f"{each.path}: {type_words(dataset.datatype)}"
            continue
        unused.pop(each.name, None)
        found.setdefault(each.path, each.value)
        named.setdefault(each.path, each.label)
    for name, text in unused.items():
        if text:
            refusal = f"{name}: expected numbers for a bound of {bounds[name]!r}, got {text}: use 0 or none"
            raise ParameterError(refusal).at(path=names.filename, dataset=name)
        refusal = f"{names.filename}: expected a dataset named {name!r}, found only {', '.join(chosen)}"
        raise FileError(refusal).at(path=names.filename, dataset=name)
    return found, named


def recorded_bound(dataset: Hdf5Array) -> float | None:
    """Return the largest error that the filters of a dataset allow, in units of the variable; None if they say none."""
    bound, packing = dataset.pipeline.error_bound, dataset.packing
    return bound if bound is None or packing is None else packing.unpacked_error(bound)


def broken_bounds(tally: Tally, bound: float | None, reason: str) -> Iterator[tuple[str, str]]:
    """Yield code and text of each way in which values are not as near as they have to be, or not as valid.

    Parameters
    ----------
    tally
        What comparing found.
    bound
        Largest error that is allowed; None asks for the same bits, as 0 does.
    reason
        Why there is no bound.
    """
    if tally.crossed and tally.first_crossed:
        text = f"{tally.crossed} values crossed a limit of the valid range: {_found(tally.first_crossed)}"
        yield "valid-range", text
    if not bound and tally.different and tally.first_different:
        without = f" ({reason})" if bound is None else ""
        yield "bits", f"{_differing(tally)}: expected the same bits{without}, found {_found(tally.first_different)}"
    elif bound and tally.worst and tally.error > bound:
        yield "bound", f"expected an error of at most {bound!r}, found {tally.error!r}: {_found(tally.worst)}"
    if tally.lost and tally.first_lost:
        text = f"{tally.lost} of {tally.missing} missing values have other bits: {_found(tally.first_lost)}"
        yield "missing-values", text
    if tally.gained and tally.first_gained:
        yield "missing-values", f"{tally.gained} valid values are missing: {_found(tally.first_gained)}"


def _differing(tally: Tally) -> str:
    missing = f", {tally.lost} of them missing" if tally.lost else ""
    return f"{tally.different} of {tally.count} values differ{missing}" + (
        f", {tally.gained} became missing" if tally.gained else ""
    )


def _found(place: Place) -> str:
    return f"at {list(place.index)} {place.source!r} became {place.target!r}"
