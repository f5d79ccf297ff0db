"""Which files of a run wait: those whose links lead to others of the run, and further names of a replaced file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from tamis.errors import TamisError
from tamis.jobs.repack import targets_led_to
from tamis.lazy_property import lazy_property
from tamis.remote import is_address
from tamis.stores import format_of, place

if TYPE_CHECKING:
    from tamis.jobs.many.task import FileTask, FolderOptions


class Order:
    """The files of a run that are not made yet, by their targets, and which of them wait for which.

    xarray does not open a file with an external link that leads nowhere, so with a witness such a file is made after
    those to which its links lead, as far as they are of this run. Where files lead to each other in a circle, the first
    one is made with sources in place of the targets that are still to come. In place, all targets exist, so none is
    opened for this; but the names of one file, its hard links, are replaced one after the other.
    """

    def __init__(self, options: FolderOptions, tasks: Iterable[FileTask]) -> None:
        tasks = list(tasks)
        self._options = options
        self._follows_links = bool(options.repack.witness) and not options.replace
        self._left = {task.file.target: task.file.source for task in tasks}
        self._awaited = _names_before(tasks) if options.break_hard_links else {}
        self._released: set[str] = set()
        self._in_circles: set[str] = set()

    def is_last_name(self, target: str) -> bool:
        """Return whether no other name of the same file is replaced after this one."""
        return not any(target in before for before in self._awaited.values())

    def end(self, target: str) -> None:
        """Note that a file is made, or has failed for good."""
        self._left.pop(target, None)

    def awaited(self, task: FileTask) -> frozenset[str]:
        """Return the targets that a file has to wait for."""
        target = task.file.target
        if target in self._released:
            return frozenset()
        if self._follows_links and target not in self._awaited:
            self._awaited[target] = self._found(task)
        return self._awaited.get(target, frozenset()) & self._left.keys()

    def stand_ins(self, task: FileTask) -> dict[str, str]:
        """Return the sources of the targets that a file in a circle leads to before they are made, by their paths."""
        if task.file.target not in self._in_circles:
            return {}
        todo, reached = [task.file.target], dict[str, str]()
        while todo:
            target = todo.pop()
            if target in self._left and target not in reached:
                reached[target] = self._left[target]
                todo += self._awaited.get(target, ())
        return {place(os.path.join(self._options.folder, target)): source for target, source in reached.items()}

    def release(self, tasks: Iterable[FileTask]) -> bool:
        """Let one of the files wait no more that lead to each other in a circle; return whether there is one.

        All files that are left must be among these.
        """
        by_target = {task.file.target: task for task in tasks}
        target = next((target for target, task in by_target.items() if self.awaited(task)), None)
        passed = list[str]()
        while target is not None and target not in passed:
            passed.append(target)
            target = min(self.awaited(by_target[target]) & by_target.keys(), default=None)
        if target is None:  # the last one waits for a file that nobody makes
            self._released.update(passed)
        else:
            self._released.add(target)
            self._in_circles.update(passed[passed.index(target) :])
        return bool(passed)

    def _found(self, task: FileTask) -> frozenset[str]:
        """Return the other targets of the run to which a file leads; none if it cannot be read, which its task says."""
        file, options = task.file, self._options
        if not file.is_read or is_address(file.source) or format_of(file.source) != "HDF5":
            return frozenset()
        target = os.path.join(options.folder, file.target)
        try:
            places = targets_led_to(file.source, target, options.repack, options.places)
        except TamisError:
            return frozenset()
        found = (self._by_place.get(other) for other in places)
        return frozenset(other for other in found if other is not None and other != file.target)

    @lazy_property
    def _by_place(self) -> dict[str, str]:
        return {place(os.path.join(self._options.folder, target)): target for target in self._left}


def _names_before(tasks: Iterable[FileTask]) -> dict[str, frozenset[str]]:
    """Return the target of another name of the same file for each name but the first."""
    before, last = dict[str, frozenset[str]](), dict[tuple[int, int], str]()
    for task in tasks:
        with suppress(OSError):  # a file that is gone has no other name
            status = os.stat(task.file.source)
            content = status.st_dev, status.st_ino
            if content in last:
                before[task.file.target] = frozenset((last[content],))
            last[content] = task.file.target
    return before
