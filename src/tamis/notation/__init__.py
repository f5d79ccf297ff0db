"""The ways to write filters down. So far: tamis text."""
