"""The ways to write filters down: one module for each notation, with its parser and printer."""
