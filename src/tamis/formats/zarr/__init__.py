"""Zarr, versions 2 and 3: the codecs for zarr-python and numcodecs, and their choice for a pipeline.

`stored` has existing hierarchies, `writing` new ones.

- `zarr2_codecs`, `zarr3_codecs`, `value_codecs`: the codecs.
- `codec_choice`: the codecs that store the same as a pipeline.
- `masked`: chunks with the filter masks of HDF5, which Zarr lacks.
- `array_metadata`: the metadata of groups and of arrays of references.
"""
