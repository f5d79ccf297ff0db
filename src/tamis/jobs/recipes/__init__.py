"""Recipes of repack as objects and as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.jobs.recipes.names import Names, Recipes, STANDARD_NAME, absolute, as_chunks, assigned, chunk_shape, dimensions_of, dropped_datasets, has_pattern_signs, least_nbytes, split_recipe, units_along
    from tamis.jobs.recipes.policies import MissingPolicy, POLICIES
    from tamis.jobs.recipes.saved_recipe import Evidence, Recipe, check_policy

__all__ = [
    "Evidence",
    "MissingPolicy",
    "Names",
    "POLICIES",
    "Recipe",
    "Recipes",
    "STANDARD_NAME",
    "absolute",
    "as_chunks",
    "assigned",
    "check_policy",
    "chunk_shape",
    "dimensions_of",
    "dropped_datasets",
    "has_pattern_signs",
    "least_nbytes",
    "split_recipe",
    "units_along",
]

__getattr__ = face_names(
    globals(),
    {
        "names": "Names Recipes STANDARD_NAME absolute as_chunks assigned chunk_shape dimensions_of dropped_datasets"
        " has_pattern_signs least_nbytes split_recipe units_along",
        "policies": "MissingPolicy POLICIES",
        "saved_recipe": "Evidence Recipe check_policy",
    },
)
