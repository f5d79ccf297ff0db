"""Chunked arrays in any storage: the grid of chunks, their index, sources of bytes, readers, selections, threads."""
