"""What waits until it is needed, so that commands start fast.

Names of a module are imported on first use, functions are called when another module is imported, and dataclasses are
compiled on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, field
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from inspect import get_annotations
from threading import RLock
from types import ModuleType
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")

_WAITING: dict[str, Callable[[ModuleType], None]] = {}
"""Functions by the name of the module that they wait for."""


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
        value = import_module(f"{own}.{name}") if module == own else getattr(import_module(module), name)
        namespace[name] = value
        return value

    return get


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


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass with slots, whose methods are compiled when they are used.

    `dataclasses` compiles six methods a class, which takes 0.6 ms. A command uses a third of the classes it imports,
    and compares or shows few of these: ``__init__`` is compiled without the others, and so are comparison and hash.
    """
    fields = [name for name, kind in get_annotations(cls).items() if not str(kind).startswith("ClassVar")]
    inherited = {name for base in cls.__mro__ for name in base.__dict__.get("__slots__", ())}
    make = partial(cast("Any", type(cls)), cls.__name__, cls.__bases__)
    members = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    body = {name: value for name, value in members.items() if name not in fields}
    late = {name: _Late(name, partial(make, members)) for name in _COMPILED if body.get(name) is None}
    slots = {"__slots__": tuple(name for name in fields if name not in inherited)}
    made: type[T] = make(_FROZEN | body | slots | late)
    for each in late.values():
        each.made = made
    return made


def _refuse_change(self: object, name: str, value: object = None) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _restore(self: object, state: tuple[dict[str, Any] | None, dict[str, Any]]) -> None:
    for part in filter(None, state):
        for name, value in part.items():
            object.__setattr__(self, name, value)


_FROZEN = {"__setattr__": _refuse_change, "__delattr__": _refuse_change, "__setstate__": _restore}
_COMPILED = (
    *("__init__", "__repr__", "__eq__", "__hash__", "__replace__"),
    *("__match_args__", "__dataclass_fields__", "__dataclass_params__"),
)
_GROUPS = ("__init__", "__dataclass_fields__"), ("__eq__", "__hash__")
_COMPILING = RLock()


class _Late:
    """A member of a frozen class that is not compiled yet, in its place; whoever asks for it gets the compiled one."""

    def __init__(self, name: str, copy: Callable[[], type]) -> None:
        self.name, self.copy = name, copy
        self.made: type = object

    def __get__(self, instance: object, owner: type) -> Any:
        with _COMPILING:
            if self.made.__dict__.get(self.name) is self:
                self._compile()
        return getattr(owner if instance is None else instance, self.name)

    def _compile(self) -> None:
        names = next((group for group in _GROUPS if self.name in group), _COMPILED)
        options = {name: f"__{name}__" in names for name in ("init", "repr", "eq", "match_args")}
        # Of a copy: an interrupt may leave it half compiled.
        compiled = dataclass(frozen=True, **options)(self.copy()).__dict__
        for name in [name for name in names if type(self.made.__dict__.get(name)) is _Late]:
            if name in compiled:
                setattr(self.made, name, compiled[name])
            else:
                delattr(self.made, name)
