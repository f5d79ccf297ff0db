"""Stores as `tamis.open` returns them: arrays that are sliced, read in parallel."""
