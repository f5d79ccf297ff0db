"""Existing Zarr hierarchies as stores of arrays, of versions 2 and 3, NCZarr included, here or elsewhere.

- `hierarchy`, `store`, `array`: metadata, the store, and its arrays.
- `chunk_files`: the files of chunks and shards.
- `codecs`: the filters of HDF5 that codecs are; `zfpy_chunks` and `raw_or_zfp_chunks` have those with another form.
- `attributes`: attributes with the types that JSON lacks.
- `elsewhere`: what zarr-python reads of remote stores.
- `refused`: arrays that nobody can read here.
- `shuffle_repair`: NCZarr's shuffle, repaired.
"""
