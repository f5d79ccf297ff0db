"""New Zarr hierarchies in local folders, with the content of a store of any format."""
