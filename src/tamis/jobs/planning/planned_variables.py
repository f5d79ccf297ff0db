"""Which variables are planned, and which stay as they are, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tamis import cf
from tamis.chunks.grid import default_chunks, grid_of
from tamis.errors import ParameterError
from tamis.formatting import size_text
from tamis.jobs.naming import Names
from tamis.jobs.planning.candidates import Variable
from tamis.jobs.planning.recommended import recommended_want
from tamis.jobs.planning.wants import RECOMMENDED, Want
from tamis.jobs.recipe import assigned
from tamis.jobs.recipes.saved_recipe import MissingPolicy
from tamis.rounding import recorded_rounding
from tamis.store.array import ELSEWHERE, Store, StoredArray
from tamis.store.pair import absent_text

_LEAST_NBYTES = 1 << 16


def variables_of(
    stores: Sequence[Store], asked: Mapping[str, Want], missing: MissingPolicy
) -> tuple[list[Variable], dict[str, str]]:
    """Return the variables to plan, and for each other one that is asked for the reason why it stays."""
    first = stores[0]
    first.check_listed()
    names = Names(first)
    wants: dict[str, tuple[Want, bool]] = {}
    for entry in assigned(asked or {"*": Want()}, names.match_any):
        wants.setdefault(entry.path, (entry.value, entry.exact))
    variables: list[Variable] = []
    kept: dict[str, str] = {}
    for path, (wanted, exact) in wants.items():
        role = first.roles.get(path, cf.DATA)
        want = Want() if role.is_exact and not exact else wanted
        arrays = [store.arrays[path] for store in stores if path in store.arrays]
        if len(arrays) < len(stores):
            kept[path] = "not planned: not in all of the files"
        elif reason := _reason_to_keep(arrays, exact):
            kept[path] = reason
        elif any(not array.parts(grid_of(array.shape, shape := _chunk_shape(path, arrays))) for array in arrays):
            kept[path] = "not planned: never written"
        else:
            note = ""
            if want is RECOMMENDED:
                want, note = recommended_want(first, arrays[0], path.rpartition("/")[2])
            if reason := _reason_of_packing(arrays, want):
                kept[path] = reason
                continue
            variables.append(Variable(path, want, stores, arrays, shape, missing, note))
    return variables, kept | {name: f"not planned: {reason}" for name, reason in names.unmatched.items()}


def _reason_to_keep(arrays: Sequence[StoredArray], exact: bool) -> str:
    """Return why an array stays as it is, whatever is wanted; empty if it does not."""
    for array in arrays:
        if array.dtype is None or array.dtype.kind not in "iuf" or not array.shape or not array.size:
            return "not planned: no array of numbers"
        if array.layout in ELSEWHERE:
            absent = f": {absent_text(array.absent_files)}" if array.absent_files else ""
            return f"not planned: values in other files ({array.layout}){absent}"
        if array.is_companion or array.has_companion:
            return "not planned: with a companion of missing values, or such a companion"
        if array.pipeline.error_bound != 0:
            return f"not planned: went through {array.pipeline} before, and another error would add up"
        if (rounding := recorded_rounding(array.attributes, array.number_type)) is not None:
            return f"not planned: rounded before, by {rounding}"
        if problem := array.problem:
            return f"not planned: {problem}"
    if not exact and sum(array.values_nbytes for array in arrays) < _LEAST_NBYTES * len(arrays):
        return f"not planned: less than {size_text(_LEAST_NBYTES)} (a want with its exact name plans it)"
    return ""


def _reason_of_packing(arrays: Sequence[StoredArray], want: Want) -> str:
    """Return why arrays cannot be measured together; empty if they can: errors are added up in stored units."""
    dtype = np.dtype(arrays[0].dtype)
    never_lossy = dtype.kind in "iu" and dtype.itemsize < 4
    if want.is_lossless or never_lossy or len({array.packing for array in arrays}) == 1:
        return ""
    return (
        "not planned: packed with another scale_factor or add_offset in one of the files, whose errors cannot be added"
        " up: plan each of these files"
    )


def _chunk_shape(path: str, arrays: Sequence[StoredArray]) -> tuple[int, ...]:
    """Return the chunk shape of the first array; of arrays without chunks, one that fits all of them."""
    array = arrays[0]
    for other in arrays[1:]:
        if other.dtype != array.dtype or len(other.shape) != len(array.shape):
            raise ParameterError(
                f"{path}: expected the same type and number of axes in all files, got {array.type_text} with"
                f" {len(array.shape)} axes in {array.label}, {other.type_text} with {len(other.shape)} in {other.label}"
            )
    least = tuple(min(extents) for extents in zip(*(each.shape for each in arrays), strict=True))
    if array.chunk_shape is not None:
        return tuple(map(min, array.chunk_shape, least)) if len(arrays) > 1 else array.chunk_shape
    return default_chunks(least, np.dtype(array.dtype).itemsize, zfp=np.dtype(array.dtype).kind == "f")
