"""Recipes of repack as objects and as files."""

from tamis.jobs.recipes.saved_recipe import Recipe

__all__ = ["Recipe"]
