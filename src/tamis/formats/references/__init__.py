"""Arrays of other files as Zarr arrays: references to their chunks, with the codecs that decode them."""
