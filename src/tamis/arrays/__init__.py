"""Chunked arrays, whatever stores them: grids, selections, parallel maps, caches."""
