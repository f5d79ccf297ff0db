"""Names of a module that are imported when they are first used, so that commands start fast.

The package lazy_loader does the same, but imports without `library_lock.imported`, and so could wait forever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tamis.library_lock import imported


def late_names(namespace: dict[str, Any], modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module, by its namespace: each name is imported from its module when first used.

    If the module is the package itself, the name is that of a submodule. ``dir`` lists what the module exports.
    """
    own = namespace["__name__"]
    namespace["__dir__"] = lambda: [*namespace["__all__"]]

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        module = modules[name]
        value = imported(f"{own}.{name}") if module == own else getattr(imported(module), name)
        namespace[name] = value
        return value

    return get


def face_names(namespace: dict[str, Any], modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a room's face: each name is imported from its module in the room when first used.

    `modules` has the names of each module, separated by blanks; a name like that of its module is the module itself.

    Modules import these names at their top, while they are imported themselves. To import another one then must not
    wait for `library_lock.imported`, which may wait for them in another thread: this is what an import statement does.
    """
    own = namespace["__name__"]
    places = {name: module for module, names in modules.items() for name in names.split()}
    namespace["__dir__"] = lambda: [*namespace["__all__"]]

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        module = import_module(f"{own}.{places[name]}")
        value = module if name == places[name] else getattr(module, name)
        namespace[name] = value
        return value

    return get
