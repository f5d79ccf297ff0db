"""One array rewritten from another: planned, encoded, written and proven.

- `plan`, `steps`: the plan of an array, and what happens to its values before the filters.
- `tolerance`, `packed_array`, `nearest`: the loosest tolerance for a bound, floats as packed integers, and filters for
  a format that lacks those of the source.
- `surveys`, `damage`, `spread`: what the values show: measures, chunks that cannot be decoded, and bounds that are too
  large.
- `create`: the place of an array in a new store, and what creates the array there.
- `write`, `growth`: all chunks of an array, unless it would become larger; `segments` has those that other processes
  encode.
- `new_chunk`, `encode`, `values`: chunks rounded, padded, encoded, decoded again and compared.
- `streams`: chunks and zfp streams that are kept.
- `outcome`: what became of the values, added up from chunks.
- `placed_chunks`: chunks in the journal beside their file, which `resumed_chunks` takes over from a killed run.
- `prove`, `witness`: the written array, read again by tamis and by other libraries.
- `transfer`, `plain_target`: everything in a store, written into another format, with filters or without.
- `new_packing`: the codes of values that come from no store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.rewrite.damage import damage_of
    from tamis.rewrite.new_chunk import make_chunk
    from tamis.rewrite.packed_array import (
        ArrayInUnits,
        as_floats,
        fill_of,
        in_units,
        marks_of,
        unpacked_type,
        valid_limits,
    )
    from tamis.rewrite.plan import ArrayPlan, Copy
    from tamis.rewrite.spread import Warned, coarse_bounds, rounded_bounds, spread_of
    from tamis.rewrite.steps import PackStep, RoundStep
    from tamis.rewrite.tolerance import LadderPart

__all__ = [
    "ArrayInUnits",
    "ArrayPlan",
    "Copy",
    "LadderPart",
    "PackStep",
    "RoundStep",
    "Warned",
    "as_floats",
    "coarse_bounds",
    "damage_of",
    "fill_of",
    "in_units",
    "make_chunk",
    "marks_of",
    "rounded_bounds",
    "spread_of",
    "unpacked_type",
    "valid_limits",
]

__getattr__ = face_names(
    globals(),
    {
        "damage": "damage_of",
        "new_chunk": "make_chunk",
        "packed_array": "ArrayInUnits as_floats fill_of in_units marks_of unpacked_type valid_limits",
        "plan": "ArrayPlan Copy",
        "spread": "Warned coarse_bounds rounded_bounds spread_of",
        "steps": "PackStep RoundStep",
        "tolerance": "LadderPart",
    },
)
