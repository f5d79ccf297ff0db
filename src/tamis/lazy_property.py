"""Properties that are computed when they are first asked for, and then kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Type checkers know what it means, also where a class has to fit a protocol.
    from functools import cached_property as lazy_property
else:

    class lazy_property:  # noqa: N801 - used like `property`
        """A method without arguments as an attribute of objects that have a ``__dict__``, where its value is kept.

        It is `functools.cached_property` without a lock. That of Python 3.11 has one for all objects of a class: a
        thread that holds HDF5's lock would wait there for one that needs it, and a process that is forked meanwhile
        would wait forever. Two threads that ask at the same time both compute the value, and both get the one that was
        kept first.
        """

        def __init__(self, compute: Any) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type) -> Any:
            if instance is None:
                return self
            value = self._compute(instance)
            return vars(instance).setdefault(self._name, value)


__all__ = ["lazy_property"]
