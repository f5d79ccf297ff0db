"""Chunks of one array written into another one: encoded, and proven to keep their values. Knows no file format."""
