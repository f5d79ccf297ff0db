"""Zarr hierarchies in local folders as stores of arrays, of version 2 and 3, NCZarr included."""
