"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import settings

# The same examples on every run and every machine, and no deadline: a loaded machine is no fault of the code.
settings.register_profile("tamis", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("tamis")
