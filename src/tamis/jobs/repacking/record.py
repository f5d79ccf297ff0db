"""What a finished target says of the run that made it, so that nobody has to do the same run twice.

The record is an extended attribute of the file: the bytes of the target stay those that source and recipe give, no
other file lies beside it, and it goes away with the file. docs/design says what else was thought of.
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
from tamis.hdf5.dataset_facts import ELSEWHERE
from tamis.jobs.json_rule import json_text
from tamis.store.disk import size_and_checksum

if TYPE_CHECKING:
    from tamis.jobs.repacking.planning import Planning
    from tamis.rewrite.plan import Plan

_NAME = "user.tamis.made"
_VERSION = 1
_MOST_NBYTES = 4096


@dataclass(frozen=True, slots=True)
class Record:
    """How a target was made.

    Parameters
    ----------
    source
        What tells whether the source is the same one, unchanged.
    place
        Checksum of the path of the source.
    recipe
        Checksum of what was asked for, and of what that meant for each dataset.
    nbytes, checksum
        Of the target, once it is there.
    unread
        How many datasets were copied as stored because their values could not be read.
    elsewhere
        Whether it stores values of other files, of whose changes the source says nothing.
    """

    source: Mapping[str, int]
    place: str
    recipe: str
    nbytes: int = 0
    checksum: int = 0
    unread: int = 0
    elsewhere: bool = False

    @classmethod
    def of(cls, source: Path, planning: Planning, missing: str) -> Record:
        """Describe a run that is to be done."""
        place = _checksum([os.path.realpath(source)])
        recipe = _checksum_of_recipe(planning.plans, planning.kept, missing)
        elsewhere = any(planning.datasets[path].layout in ELSEWHERE for path in planning.plans)
        return cls(source_identity(source), place, recipe, elsewhere=elsewhere)

    def write(self, path: Path, nbytes: int, checksum: int, unread: int) -> None:
        """Write it to the target, where the file system takes it."""
        described = replace(self, nbytes=nbytes, checksum=checksum, unread=unread)
        text = json_text({"version": _VERSION, **asdict(described)}).encode()
        with suppress(OSError, AttributeError):  # Python has extended attributes on Linux only
            os.setxattr(path, _NAME, text)

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """Read the record of a file; None where it has none that can be read."""
        try:
            text = os.getxattr(path, _NAME)
            found = json.loads(text[:_MOST_NBYTES])
            if found.pop("version") != _VERSION:
                return None
            return cls(**found)
        except (OSError, AttributeError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def describes(self, path: Path) -> bool:
        """Return whether a file still has the bytes that it had when it was made; reads all of it."""
        return (self.nbytes, self.checksum) == size_and_checksum(path)


def source_identity(source: Path) -> dict[str, int]:
    """Return what shows whether a source is the same one, unchanged.

    No program can set the time of the last change of the inode, as it can the time of the last change of the values.
    """
    found = source.stat()
    return {
        "nbytes": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "ctime_ns": found.st_ctime_ns,
        "inode": found.st_ino,
    }


def _checksum_of_recipe(plans: Mapping[str, Plan], kept: Iterable[str], missing: str) -> str:
    """Return a checksum of what is to be done. The versions of what encodes are no part: what is proven stays so."""
    lines = [f"missing {missing}", *(f"keep {path}" for path in sorted(kept))]
    for path, plan in sorted(plans.items()):
        grows = "may grow" if plan.may_grow else "must not grow"
        lines.append(f"{path} {plan.pipeline} {shape_text(plan.chunk_shape)} {plan.dtype.str} {plan.copied} {grows}")
    return _checksum(lines)


def _checksum(lines: Iterable[str]) -> str:
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()
