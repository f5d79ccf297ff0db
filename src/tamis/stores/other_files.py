"""The files that a new one leads to, and where the files of a run go: targets lead to new files, not to old ones."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from glob import escape, iglob
from typing import Any, Literal, NamedTuple

from tamis.formatting import plural, printable
from tamis.remote.address import is_address

NUMBER = "%b"
"""Stands for the number of a block in the name of a virtual source, which then means many files."""

Kind = Literal["external link", "virtual source", "raw file"]
_SHOWN = 3


class OtherFile(NamedTuple):
    """A file that a target leads to, and that no run makes with it."""

    path: str  # Path of the link or dataset in the target
    kind: Kind
    file: str  # Absolute path, or, if the file does not exist, the name in the target
    exists: bool = True


class TakenIn(NamedTuple):
    """A file whose objects or values a target has itself."""

    file: str  # Absolute path
    # As they were before it was read
    nbytes: int
    mtime_ns: int

    @classmethod
    def of(cls, file: str) -> TakenIn:
        """Return a file as it is now."""
        status = os.stat(file)
        return cls(file, status.st_size, status.st_mtime_ns)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> TakenIn:
        """Return a file from a line of state, which may have anything."""
        return cls(str(fields.get("file")), fields.get("nbytes", 0), fields.get("mtime_ns", 0))

    def is_unchanged(self) -> bool:
        """Return whether the file is as it was."""
        try:
            return TakenIn.of(self.file) == self
        except OSError:
            return False


class OtherFiles(NamedTuple):
    """What a target leads to."""

    notes: list[str]  # Notes about names that change, or that lead nowhere
    files: list[OtherFile]  # Those that the run does not make
    names: Collection[tuple[str, str]] = ()  # All names of other files, each with the path of its object
    of_run: Collection[OtherFile] = ()  # Targets of the run, also the target itself, to which links lead

    @property
    def key(self) -> str:
        """A checksum of the names; empty if there are none."""
        text = "\n".join(f"{path}\0{name}" for path, name in sorted(self.names))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16] if text else ""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the files of a run go: the path of each target by that of its source."""

    targets: Mapping[str, str] = field(default_factory=dict)  # By `place` of each source
    # Sources of targets that are not made yet although one that is made leads to them, by path of the target
    stand_ins: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_files(cls, files: Iterable[tuple[str, str]]) -> Places:
        """Return the places of sources with their targets; a path comes before another name of the same file."""
        pairs = [(source, target) for source, target in files]
        real = {os.path.realpath(source): target for source, target in reversed(pairs)}
        return cls({**real, **{place(source): target for source, target in pairs}})

    def target_of(self, path: str) -> str | None:
        """Return the path of the target that a file of the run becomes; None for any other file."""
        for name in (place(path), os.path.realpath(path)):
            if name in self.targets:
                return self.targets[name]
        return None

    def and_file(self, source: str, target: str) -> Places:
        """Return the places with those of one more file; one of the run has the place that the run gives it."""
        return replace(self, targets={place(source): target, **self.targets})

    def targets_of(self, pattern: str) -> str | None:
        """Return the same for a path with a number, as a path with a number; None unless all files are of the run."""
        parts = pattern.split(os.sep)
        first = next(index for index, part in enumerate(parts) if NUMBER in part)
        base, rest = os.sep.join(parts[:first]), os.sep.join(parts[first:])
        bases = set[str | None]()
        for file in numbered_files(pattern):
            target = self.target_of(file)
            end = f"{os.sep}{os.path.relpath(file, base or os.curdir)}"
            bases.add(target.removesuffix(end) if target is not None and target.endswith(end) else None)
        new = bases.pop() if len(bases) == 1 else None
        return None if new is None else os.path.join(new, rest)


def place(path: str) -> str:
    """Return a path without links on the way to the file, whose own name stays; an address is one."""
    if is_address(path):
        return path
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def numbered(pattern: str) -> re.Pattern[str]:
    """Return what matches paths that have a number of a block where a pattern has its sign."""
    return re.compile(r"\d+".join(map(re.escape, pattern.split(NUMBER))))


def numbered_files(pattern: str) -> list[str]:
    """Return the files whose paths have a number of a block where the pattern has its sign, by path."""
    if NUMBER not in pattern:
        return [pattern] if os.path.exists(pattern) else []
    fits = numbered(pattern).fullmatch
    return sorted(path for path in iglob(escape(pattern).replace(NUMBER, "*")) if fits(path))


def needed_text(others: Iterable[OtherFile]) -> str:
    """Return a note about the files that a target needs; empty if there are none."""
    files = list(dict.fromkeys(other.file for other in others))
    if not files:
        return ""
    named = ", ".join(files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")
    return printable(f"needs {plural(len(files), 'file')} that this run does not make: {named}")
