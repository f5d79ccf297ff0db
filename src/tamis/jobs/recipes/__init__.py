"""Recipes of repack as objects and as files."""
