"""Chunked arrays in any storage: grids, selections, parallel maps, caches."""
