"""One array rewritten from another: planned, encoded, written and proven.

- `plan`, `steps`: the plan of an array, and what happens to its values before the filters.
- `outcome`: what became of the values, added up from chunks.
- `new_chunk`, `encode`: chunks rounded, encoded, decoded again and compared.
- `write`: all chunks of an array; `segments` has those that other processes encode.
- `placed_chunks`: chunks in the journal beside their file, which `resumed_chunks` takes over from a killed run.
- `prove`, `witness`: the written array, read again by tamis and by other libraries.
- `streams`: chunks and zfp streams that are kept.
- `tolerance`, `packed_array`: the loosest tolerance for a bound, and floats as packed integers.
- `transfer`: everything in a store, written into another format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.rewrite.damage import damage_of
    from tamis.rewrite.new_chunk import make_chunk
    from tamis.rewrite.packed_array import ArrayInUnits, as_floats, fill_of, in_units, marks_of, unpacked_type
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
]

__getattr__ = face_names(
    globals(),
    {
        "damage": "damage_of",
        "new_chunk": "make_chunk",
        "packed_array": "ArrayInUnits as_floats fill_of in_units marks_of unpacked_type",
        "plan": "ArrayPlan Copy",
        "spread": "Warned coarse_bounds rounded_bounds spread_of",
        "steps": "PackStep RoundStep",
        "tolerance": "LadderPart",
    },
)
