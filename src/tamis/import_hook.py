"""Call a function when another module is imported: tamis completes netCDF4 and xarray, but imports neither."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

_WAITING: dict[str, Callable[[ModuleType], None]] = {}
"""Functions by the name of the module that they wait for."""


def after_import(name: str, function: Callable[[ModuleType], None]) -> None:
    """Call a function with a module, now if it is already imported; repeated calls must be harmless."""
    _WAITING[name] = function
    if not any(type(finder) is _Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    # Only now, so that no thread can import the module unnoticed in the meantime.
    if (module := sys.modules.get(name)) is not None:
        function(module)


class _Loader:  # without the base class of importlib.abc, whose import takes longer than that of tamis
    """Executes a module with its own loader, and then calls a function."""

    def __init__(self, loader: Any, function: Callable[[ModuleType], None]) -> None:
        self._loader, self._function = loader, function

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module that its loader creates."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, with its own loader restored."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._function(module)


class _Finder:
    """Finds modules like the other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that a function waits for; None for all other modules."""
        if (function := _WAITING.get(fullname)) is None:
            return None
        specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, specs), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = cast("Any", _Loader(spec.loader, function))
        return spec
