"""Zarr hierarchies as stores of arrays, and the codecs that store the bytes of HDF5 chunks in them."""
