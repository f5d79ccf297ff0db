"""Write everything in a store into a target of another format, in the order of netCDF's data model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from tamis.cf.history_attribute import with_line
from tamis.errors import FileError
from tamis.rewrite.plan import Plan, Recreate
from tamis.store.array import ArrayWriter, CopyInsteadError, Store, StoredArray
from tamis.store.data_model import NamedArray, NamedGroup

Companions = Mapping[str, ArrayWriter | None]


class Target(Protocol):
    """A new file or folder, which gets groups, dimensions, attributes and arrays from a store of any format."""

    def create_group(self, group: NamedGroup) -> None:
        """Create a group with its dimensions and attributes, before its variables and inner groups."""

    def create_like(self, variable: NamedArray, array: StoredArray, plan: Plan) -> ArrayWriter:
        """Create an array with the name, dimensions, attributes and fill value of another, stored as planned."""

    def copy(self, variable: NamedArray, array: StoredArray) -> None:
        """Copy an array, with its filters if the target has them, in place of one that `create_like` may have begun."""

    def set_history(self, text: str) -> None:
        """Set the history of the root group, in its old place among the attributes if there was one."""

    def finish(self, companions: Companions) -> None:
        """Complete the target: companions by the path of their variables, None for variables that lose theirs."""

    def close(self) -> None:
        """Close the target."""


def transfer(
    source: Store,
    target: Target,
    recreate: Mapping[str, Recreate],
    companions: Callable[[], Companions],
    line: Callable[[], str] = str,
) -> None:
    """Write groups, dimensions, attributes and arrays of a store into a target, which is then complete.

    Parameters
    ----------
    source, target
        The store, and the target, which is empty.
    recreate
        Functions by path of an array, which get it and what creates its copy. Arrays without one are copied, and so are
        those whose function raises `CopyInsteadError`.
    companions
        Called when all arrays exist: returns new companions by the path of their variables.
    line
        Called then, too: returns a line for the history of the target, empty for none.

    Raises
    ------
    FileError
        If the target cannot have something of the source. Errors of functions are passed on.
    """
    functions = {source.first_path(path): function for path, function in recreate.items()}
    for path in source.model.group_paths():
        group = source.model.group(path)
        for name, reason in group.left_out.items():
            raise FileError(f"{source.path}: {path.rstrip('/')}/{name}: cannot be stored in another format: {reason}")
        target.create_group(group)
        for variable in group.variables.values():
            array = source.array(variable.path).as_values()
            if (function := functions.get(variable.path)) is not None and _recreate(target, variable, array, function):
                continue
            target.copy(variable, array)
    if history := with_line(source.model.group("/").attributes, line()):
        target.set_history(history)
    target.finish(companions())


def _recreate(target: Target, variable: NamedArray, array: StoredArray, function: Recreate) -> bool:
    """Let a function write an array; return whether it did."""
    try:
        function(array, lambda plan: target.create_like(variable, array, plan))
    except CopyInsteadError:
        return False
    return True
