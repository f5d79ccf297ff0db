"""What `tamis doctor` finds, as text and JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeVar

from tamis.formatting import plural, printable
from tamis.jobs.result import SCHEMA, Part, Result, Table, json_fields

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or worth knowing, and what to do about it."""

    kind: Literal["problem", "note"]  # Notes leave the exit code at 0
    subject: str  # What it is about
    text: str
    cure: str  # What to do


@dataclass(frozen=True, slots=True)
class Library:
    """An HDF5 library."""

    of: str  # The package that brings it, or `system`
    path: str
    version: str
    folders: tuple[str, ...]  # Where it searches plugins, in order


@dataclass(frozen=True, slots=True)
class Plugin:
    """A file that HDF5 takes for a plugin."""

    path: str
    id: int | None  # Number of its filter; None if it is no filter, or cannot be loaded
    name: str  # The filter's name for itself
    serves: bool  # Whether programs that search these folders use it: it is the first one for its filter
    problem: str  # Why it cannot be loaded; empty if it can


@dataclass(frozen=True, slots=True)
class PluginFolder:
    """A folder in which HDF5 searches plugins."""

    path: str
    named: bool  # Whether HDF5_PLUGIN_PATH names it
    searched: bool  # Whether any HDF5 library here searches it; that of tamis is listed in any case
    problem: str  # Why it cannot be searched; empty if it can
    plugins: tuple[Plugin, ...]


@dataclass(frozen=True, slots=True)
class Package:
    """A Python package that tamis needs, or that an extra brings."""

    extra: str  # The extra; empty for what tamis needs
    name: str
    wants: str  # Versions that tamis takes, as in its metadata
    version: str  # The version here; empty if it is not installed
    gives: str  # What the extra is for


@dataclass(frozen=True, slots=True)
class Reads:
    """Who can read the chunks of a filter here."""

    filter: str
    written: bool  # Whether tamis can write them here
    readers: Mapping[str, bool | None]  # By name; None if that is not known, because no file was written


@dataclass(frozen=True, slots=True)
class Diagnosis(Result):
    """What was found.

    Parameters
    ----------
    software
        Names and versions of what runs: tamis, its kernel, Python, the system.
    machine
        What this process may use, and how it shows text.
    variables
        Variables of the environment that change what HDF5 or tamis do, as far as they are set.
    packages
        Packages that tamis needs, and those of its extras.
    libraries
        HDF5 libraries: of packages, when all are imported in one process, and of the system.
    folders
        Folders in which HDF5 searches plugins, in the order of the search.
    reads
        Who can read each filter here.
    place
        What the file system of the folder can do.
    findings
        What is wrong, first; then what is worth knowing.
    """

    software: Mapping[str, str]
    machine: Mapping[str, str]
    variables: Mapping[str, str]
    packages: tuple[Package, ...]
    libraries: tuple[Library, ...]
    folders: tuple[PluginFolder, ...]
    reads: tuple[Reads, ...]
    place: Mapping[str, str]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not any(finding.kind == "problem" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return {"schema": SCHEMA, "ok": self.ok, **json_fields(self)}

    def _parts(self) -> Iterator[Part]:
        for title, facts in (
            ("software", self.software),
            ("machine", self.machine),
            ("variables", self.variables or {"": "none of those that HDF5 and tamis know is set"}),
            ("this folder", self.place),
        ):
            yield "name", title
            for name, value in facts.items():
                yield "", printable(f"  {name:<16} {value}".rstrip())
        yield "name", "packages"
        yield from self._packages()
        yield "name", "libhdf5"
        for library in self.libraries:
            yield "", printable(f"  {library.version:<16} of {library.of}: {library.path}")
        yield "name", "plugins"
        for folder in self.folders:
            yield from _folder_lines(folder)
        yield (
            "name",
            "who can read what, here: h5py and netCDF4 without tamis, which adds zfp to both when it is imported",
        )
        yield from self._readers()
        yield "", ""
        yield from self._findings()

    def _packages(self) -> Iterator[Part]:
        for extra in dict.fromkeys(package.extra for package in self.packages):
            own = [package for package in self.packages if package.extra == extra]
            texts = [f"{package.name} {package.version or 'absent'}" for package in own]
            gives = f" ({own[0].gives})" if not all(package.version for package in own) and own[0].gives else ""
            yield "", printable(f"  {extra or 'needed':<16} {', '.join(texts)}{gives}")

    def _readers(self) -> Iterator[Part]:
        if not self.reads:
            return
        words = {True: "yes", False: "no", None: "?"}
        names = [*self.reads[0].readers]
        rows = [
            ["filter", "tamis writes it", *names],
            *(
                [each.filter, words[each.written], *(words[each.readers[name]] for name in names)]
                for each in self.reads
            ),
        ]
        yield Table(rows, name="Filters")
        if any("?" in row for row in rows):
            yield "", "  ?: not known, because tamis cannot write it here: install what the extras bring"

    def _findings(self) -> Iterator[Part]:
        for finding in self.findings:
            kind = "problem" if finding.kind == "problem" else "note"
            yield kind, printable(f"{finding.kind}: {finding.subject}: {finding.text}")
            yield "code", printable(f"  {finding.cure}")
        problems = sum(finding.kind == "problem" for finding in self.findings)
        notes = len(self.findings) - problems
        worth_knowing = f", {plural(notes, 'note')} above" if notes else ""
        yield "file", (plural(problems, "problem") if problems else "nothing is wrong") + worth_knowing


def _folder_lines(folder: PluginFolder) -> Iterator[Part]:
    named = " (in HDF5_PLUGIN_PATH)" if folder.named else "" if folder.searched else " (not searched)"
    yield "", printable(f"  {folder.path}{named}{': ' if folder.problem else ''}{folder.problem}")
    for plugin in folder.plugins:
        is_unused = plugin.id is not None and not plugin.serves
        about = plugin.problem or ("no filter" if plugin.id is None else f"{plugin.id} {plugin.name.partition(';')[0]}")
        unused = " (not used: another file comes first)" if folder.searched and is_unused else ""
        yield "", printable(f"    {os.path.basename(plugin.path):<24} {about}{unused}")


def without_home(value: T) -> T:
    """Return a value with the user's home folder as ``~`` in all of its texts."""
    homes = {os.path.expanduser("~"), os.path.realpath(os.path.expanduser("~"))} - {"/", "~", ""}
    if not homes:
        return value
    pattern = re.compile(f"(?:{'|'.join(map(re.escape, sorted(homes, key=len, reverse=True)))})(?![\\w.-])")
    changed: T = _mapped(value, lambda text: pattern.sub("~", text))
    return changed


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with all of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_mapped(each, change) for each in value)
    if isinstance(value, Mapping):
        return {name: _mapped(each, change) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{field.name: _mapped(getattr(value, field.name), change) for field in fields(value)})
    return value
