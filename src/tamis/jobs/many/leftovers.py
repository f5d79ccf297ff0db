"""Files that runs left beside targets when they were killed: removed, unless this run continues them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tamis.formatting import size_text
from tamis.jobs.many.listing import REPLACEMENT
from tamis.jobs.many.state import claim
from tamis.safety import find_leftovers, nbytes_of, remove

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tamis(-journal|-chunks)?")


class Swept(NamedTuple):
    """What was found beside the targets of a run."""

    begun: frozenset[str]  # Targets that are to be made, and have a part already
    notes: tuple[str, ...]  # About what was removed


def sweep(folder: str, targets: Collection[str], to_make: Collection[str]) -> Swept:
    """Remove what ended runs left for targets that are not made now.

    Parameters
    ----------
    folder
        The folder of targets.
    targets
        Paths of all targets below it, in whose folders is looked.
    to_make
        Those that are made now: what is left for them is continued.
    """
    begun, notes = set[str](), list[str]()
    for below in sorted({os.path.dirname(target) for target in targets}):
        place = Path(folder, below)
        with suppress(OSError):
            for name in sorted(os.listdir(place)):
                match = _TEMPORARY.fullmatch(name)
                own = match[1] if match else name if name.startswith(REPLACEMENT) else ""
                target = os.path.join(below, own.removeprefix(REPLACEMENT))
                if not own:
                    continue
                if target in to_make:
                    begun.add(target)
                elif match:
                    notes += _removed_dead(place / own)
                else:
                    notes += _removed_complete(folder, target, place / own)
    return Swept(frozenset(begun), tuple(notes))


def _removed_dead(target: Path) -> list[str]:
    """Remove the parts of a target that no process writes; return notes about them."""
    notes = []
    for leftover in find_leftovers(target).dead:
        size = size_text(leftover.nbytes)
        notes += leftover.remove() or [f"{leftover.path}: left by a run that has ended ({size}): removed"]
        leftover.close()
    return notes


def _removed_complete(folder: str, target: str, path: Path) -> list[str]:
    """Remove a new file that did not take the place of the old one, unless a run is about to do that."""
    with suppress(OSError), claim(folder, target) as is_ours:
        if is_ours:
            size = size_text(nbytes_of(path))
            remove(path)
            return [f"{path}: left by a run that has ended ({size}): removed"]
    return []
