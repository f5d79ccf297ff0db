"""Recipes of repack as objects and as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.recipes.names import (
        STANDARD_NAME,
        Names,
        Recipes,
        absolute,
        as_chunks,
        assigned,
        chunk_shape,
        dimensions_of,
        dropped_datasets,
        has_pattern_signs,
        matching,
        split_recipe,
        units_along,
    )
    from tamis.jobs.recipes.policies import MissingPolicy
    from tamis.jobs.recipes.saved_recipe import Evidence, Recipe

__all__ = [
    "STANDARD_NAME",
    "Evidence",
    "MissingPolicy",
    "Names",
    "Recipe",
    "Recipes",
    "absolute",
    "as_chunks",
    "assigned",
    "chunk_shape",
    "dimensions_of",
    "dropped_datasets",
    "has_pattern_signs",
    "matching",
    "split_recipe",
    "units_along",
]

__getattr__ = face_names(
    globals(),
    {
        "names": "Names Recipes STANDARD_NAME absolute as_chunks assigned chunk_shape dimensions_of dropped_datasets"
        " has_pattern_signs matching split_recipe units_along",
        "policies": "MissingPolicy",
        "saved_recipe": "Evidence Recipe",
    },
)
