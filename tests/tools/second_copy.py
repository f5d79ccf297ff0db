"""A module once more, as it is where the system lacks calls: it chooses what takes their place when it is imported."""

from __future__ import annotations

import importlib.util
from types import ModuleType


def second_copy(name: str) -> ModuleType:
    """Return a new module from the source of another, which stays as it is."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
