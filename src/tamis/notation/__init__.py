"""The ways to write filters down. One module each, parser and printer."""
