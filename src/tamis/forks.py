"""What a forked process makes anew: locks, and what they protect.

A forked process has one thread, a copy of the one that forked. A lock that another thread of the parent held then is
never released there, and what that thread was changing stays half changed. So objects that have a lock, and live longer
than one call, begin through `begin_in_each_process`. h5py and Python do the same for their own locks.
Windows has no forks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import MethodType
from typing import Any
from weakref import ref

_begins: dict[int, tuple[ref[Any], Callable[[Any], None]]] = {}
"""Objects with their methods, by the identities of the objects; one step adds or removes one."""

_foreign: list[Any] = []


def begin_in_each_process(begin: Callable[[], None]) -> None:
    """Call a method of an object now, and again in each process that is forked as long as the object lives.

    It makes the object's locks and what they protect.
    """
    begin()
    call_in_each_child(begin)


def call_in_each_child(method: Callable[[], None]) -> None:
    """Call a method of an object in each process that is forked as long as the object lives."""
    assert isinstance(method, MethodType)
    key = id(method.__self__)

    def forget(_: object, begins: dict[int, Any] = _begins) -> None:
        begins.pop(key, None)

    _begins[key] = ref(method.__self__, forget), method.__func__


def free_in_each_process(*locks: Any) -> None:
    """Free locks of other packages in each process that is forked, where these packages do not."""
    _foreign.extend(locks)


def hold_while_forking(acquire: Callable[[], object], release: Callable[[], None]) -> None:
    """Let a process fork while no other thread is at work with a reentrant lock; `acquire` need not wait for it."""

    def release_if_held() -> None:
        with suppress(RuntimeError):
            release()

    if sys.platform != "win32" and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=acquire, after_in_parent=release_if_held, after_in_child=release_if_held)


def _begin_anew() -> None:
    for lock in _foreign:
        lock._at_fork_reinit()  # as the standard library does with its own
    for reference, begin in [*_begins.values()]:
        owner = reference()
        if owner is not None:
            begin(owner)


if sys.platform != "win32" and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
