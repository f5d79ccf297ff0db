"""Grids of chunks. Knows no file format."""
