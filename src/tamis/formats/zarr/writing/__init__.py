"""New Zarr hierarchies in local folders, which get the content of a store of any format."""
