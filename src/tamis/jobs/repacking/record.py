"""The record of the run that made a target, so that the same run is not repeated.

The record is an extended attribute of the file. So it does not change the bytes of the target, needs no other file, and
is removed with the target. docs/design has the alternatives.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.formatting import shape_text
from tamis.jobs.json_rule import json_text
from tamis.store.array import ELSEWHERE
from tamis.store.disk import size_and_checksum, statuses_of

if TYPE_CHECKING:
    from tamis.jobs.repacking.planning import Planning, Request
    from tamis.rewrite.plan import Plan

_NAME = "user.tamis.made"
_VERSION = 1
_MOST_NBYTES = 4096


@dataclass(frozen=True, slots=True)
class Record:
    """The source and the recipe of a target, and its checksum.

    Parameters
    ----------
    source
        Identity of the source, see `source_identity`.
    place
        Checksum of the path of the source.
    recipe
        Checksum of the plans of all datasets.
    nbytes, checksum
        Size and checksum of the finished target.
    unread
        Number of datasets that were copied as stored because their values cannot be read.
    elsewhere
        Whether the target stores values of other files, whose changes do not show in the source.
    """

    source: Mapping[str, int]
    place: str
    recipe: str
    nbytes: int = 0
    checksum: int = 0
    unread: int = 0
    elsewhere: bool = False

    @classmethod
    def of(cls, source: Path, planning: Planning, request: Request, form: str = "") -> Record:
        """Return the record of a planned run; `form` is that of the target if there are several."""
        place = _checksum([os.path.realpath(source)])
        choices = [request.missing, form, "history" if request.history else ""]
        choices.append("keep classic" if request.keep_classic else "")
        choices.append(f"without {sorted(planning.dropped)}" if planning.dropped else "")
        recipe = _checksum_of_recipe(planning.plans, planning.kept, " ".join(filter(None, choices)))
        elsewhere = any(planning.datasets[path].layout in ELSEWHERE for path in planning.plans)
        return cls(source_identity(source), place, recipe, elsewhere=elsewhere)

    def write(self, path: Path, nbytes: int, checksum: int, unread: int) -> None:
        """Write the record to the target if the file system has extended attributes."""
        described = replace(self, nbytes=nbytes, checksum=checksum, unread=unread)
        text = json_text({"version": _VERSION, **asdict(described)}).encode()
        with suppress(OSError, AttributeError):  # Python has extended attributes on Linux only
            os.setxattr(path, _NAME, text)

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """Return the record of a file; None if there is none that can be read."""
        try:
            text = os.getxattr(path, _NAME)
            entries = json.loads(text[:_MOST_NBYTES])
            if entries.pop("version") != _VERSION:
                return None
            return cls(**entries)
        except (OSError, AttributeError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def describes(self, path: Path) -> bool:
        """Return whether a file is unchanged since it was made; reads all of it."""
        return (self.nbytes, self.checksum) == size_and_checksum(path)


def source_identity(source: Path) -> dict[str, int]:
    """Return size, times and inode of a file or folder, which show whether it is the same one, unchanged.

    Programs can set `mtime`, but not `ctime`. Times of a folder are the latest of all that is in it.
    """
    statuses = [*statuses_of(source)]
    return {
        "nbytes": sum(status.st_size for status in statuses),
        "mtime_ns": max(status.st_mtime_ns for status in statuses),
        "ctime_ns": max(status.st_ctime_ns for status in statuses),
        "inode": source.stat().st_ino,
    }


def _checksum_of_recipe(plans: Mapping[str, Plan], kept: Iterable[str], missing: str) -> str:
    """Return a checksum of all plans, without versions of libraries: a proven target stays valid after an update."""
    lines = [f"missing {missing}", *(f"keep {path}" for path in sorted(kept))]
    for path, plan in sorted(plans.items()):
        grows = "may grow" if plan.may_grow else "must not grow"
        filters = plan.requested if plan.pipeline.bound is None else f"{plan.requested} within {plan.pipeline.bound!r}"
        lines.append(f"{path} {filters} {shape_text(plan.chunk_shape)} {plan.dtype.str} {plan.copied} {grows}")
        if plan.required is not None:
            lines.append(f"{path} keeps {plan.required}")
    return _checksum(lines)


def _checksum(lines: Iterable[str]) -> str:
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()
