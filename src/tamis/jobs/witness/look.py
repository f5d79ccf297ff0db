"""A target as xarray reads it, compared with its source as xarray reads that: metadata, and a sample of the values."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.errors import BoundError, FileError
from tamis.formatting import plural, printable
from tamis.jobs.witness.loss import first_index, loss_between
from tamis.jobs.witness.process import Key, Opened, Read, Region, UnopenedError, check_installed, read
from tamis.remote.address import Address
from tamis.stores.other_files import Kind, OtherFile
from tamis.system.renames import lead_to


class Expected(NamedTuple):
    """What is known of a variable that was written with another encoding."""

    allowed: float = 0.0  # Largest absolute error, in units of the variable
    worst: Region | None = None  # The chunk with the largest error
    is_filled: bool = False  # Whether its missing values are in another variable: other readers see the filling
    changed_attributes: Collection[str] = ()  # Names of those that are changed with the values


class Elsewhere(NamedTuple):
    """What is known of a variable or group of which this target does not decide what readers find."""

    reason: str  # Why its values are not compared
    is_linked: bool = False  # Whether a link leads to it in another file, which also has its attributes


class Need(NamedTuple):
    """What readers other than tamis need for a variable."""

    text: str  # A plugin of HDF5, or a package of zarr-python
    is_here: bool  # Whether the witness has it


class Unread(NamedTuple):
    """A variable whose values were not compared, and why."""

    path: str
    reason: str


class Origin(NamedTuple):
    """Where a path leads."""

    first_path: str  # The first path of its variable; empty if it is in another file
    file: str = ""  # The other file


class Briefing(NamedTuple):
    """What a witness is told of a target before it looks.

    A variable may have several paths, through hard and soft links: what is said about a variable of the source is there
    under each of its paths, what is said about one of the target under its first path.
    """

    expected: Mapping[str, Expected] = {}  # What is known of changed variables; all others have the source's values
    needs: Mapping[str, Need] = {}  # What readers other than tamis need for a variable of the target
    left_out: Collection[str] = ()  # Variables that only the source has
    added: Collection[str] = ()  # Variables that only the target has
    translated: Collection[str] = ()  # Groups and variables that have a part in another form in the target
    elsewhere: Mapping[str, Elsewhere] = {}
    damaged: Collection[str] = ()  # Variables with chunks that nobody can decode
    of_run: Collection[OtherFile] = ()  # Targets of the run to which this one leads
    stand_ins: Mapping[str, str] = {}  # Sources of those that are not made yet, by path of the target
    name: str = ""  # Path that the target is to have
    is_same_format: bool = False  # Whether source and target have one format, so that attributes have the same types
    origin: Callable[[str], Origin] = Origin  # Where a path of the target leads


@dataclass(frozen=True, slots=True)
class Witnessed:
    """What a witness looked at, and found as in the source.

    Parameters
    ----------
    reader
        Name and version of the package that read both, and its engine.
    variables
        Number of variables whose dimensions, type and attributes were compared.
    chunks
        Number of chunks whose values were compared, by path of the variable: the first one, the last one, and the one
        with the largest error.
    needs
        What other readers need for a variable, by path: a plugin of HDF5, or a package of zarr-python. The witness had
        it unless the variable is unread.
    unread
        Variables whose values were not compared, and why: the witness cannot read them, or another file has them.
    """

    reader: str
    variables: int
    chunks: Mapping[str, int] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/repack.md."""
        return {
            "reader": self.reader,
            "variables": self.variables,
            "chunks": dict(self.chunks),
            "needs": dict(self.needs),
            "unread": [item._asdict() for item in self.unread],
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield lines of the text of a result: their kind, and the line."""
        paths: dict[str, list[str]] = {}
        for path, text in self.needs.items():
            paths.setdefault(text, []).append(path)
        for text, own in paths.items():
            yield "note", printable(f"{', '.join(own)}: other readers need {text}")
        for path, reason in self.unread:
            yield "note", printable(f"{path}: its values were not compared by the witness: {reason}")
        yield "", printable(str(self))

    def __str__(self) -> str:
        chunks = sum(self.chunks.values())
        return (
            f"{self.reader} reads {plural(self.variables, 'variable')} as in the source: dimensions, types and"
            f" attributes, and {plural(chunks, 'chunk')} of the values of {len(self.chunks)}"
        )


class Sources(NamedTuple):
    """A source, or several that are joined along a dimension."""

    paths: Sequence[str | os.PathLike[str]]
    with_codecs: bool  # Whether zarr-python needs the codecs of tamis
    dimension: str = ""
    ends: Sequence[int] = ()  # Where each one ends along the dimension


class XarrayWitness:
    """xarray in a process without tamis, which has opened the source.

    Raises
    ------
    MissingFilterError
        If xarray is not installed.
    FileError
        If xarray cannot open the source.
    """

    def __init__(self, sources: Sources) -> None:
        check_installed()
        self._sources = sources
        for path in sources.paths:
            if isinstance(path, Address) or str(path).endswith(".json"):
                raise FileError(
                    f"{path}: expected a source here with the witness xarray, got an address or references"
                ).at(path=path)
        first = sources.paths[0]
        try:
            self._before = read(first, only={}, with_codecs=sources.with_codecs)
        except UnopenedError as error:
            raise FileError(f"{first}: the witness xarray cannot open it: {error}").at(path=first) from error

    @property
    def paths(self) -> list[str]:
        """The paths of all groups and variables that xarray found in the source."""
        return [*self._before.groups, *(posixpath.join(*key) for key in self._before.variables)]

    def look(self, target: Path, briefing: Briefing) -> Witnessed:
        """Compare a target with the source.

        Parameters
        ----------
        target
            Path of the target.
        briefing
            What is known of it.

        Raises
        ------
        BoundError
            If xarray cannot open the target, or reads it differently from the source.
        FileError
            If xarray cannot read the target because another one of the run, to which it leads, does not exist.
        """
        after = self._opened(target, briefing)
        looked = _Look(target, self._before, after, briefing)
        looked.check_metadata(self._sources.dimension)
        regions = looked.regions()
        before = self._samples(regions)
        looked.check_values(before, regions)
        return Witnessed(
            reader_of(after),
            looked.compared,
            looked.chunks,
            {path: need.text for path, need in sorted(briefing.needs.items())},
            tuple(looked.unread),
        )

    def _opened(self, target: Path, briefing: Briefing) -> Opened:
        """Return what xarray reads of the target, by the engine that read the source if both are files."""
        parts = {key_of(path): [item.worst] for path, item in briefing.expected.items() if item.worst is not None}
        is_like = self._before.engine in ("netcdf4", "h5netcdf") and target.is_file()
        engine = self._before.engine if is_like else ""
        times, codecs = self._before.decode_times, needs_codecs(briefing.needs)
        try:
            with links_to(briefing.stand_ins, os.path.dirname(briefing.name)) as links:
                return read(
                    target, also=parts, decode_times=times, engine=engine, with_codecs=codecs, links_folder=links
                )
        except UnopenedError as error:
            refuse_absent(target, briefing, "external link")
            raise unopened(target, error, briefing.needs) from error

    def _samples(self, regions: Mapping[Key, list[Region] | None]) -> dict[Key, Read]:
        """Return the variables of the source with the values of these parts, joined from several sources.

        None stands for the first and the last chunk, but for no values of several sources.
        """
        first = self._sources.paths[0]
        if len(self._sources.paths) == 1:
            return self._read(first, regions)
        return self._joined({key: own or [] for key, own in regions.items()})

    def _joined(self, regions: Mapping[Key, list[Region]]) -> dict[Key, Read]:
        """Return the variables of joined sources with the values of these parts."""
        pieces: dict[Key, list[list[Any]]] = {key: [[] for _ in own] for key, own in regions.items()}
        result = {key: self._before.variables[key] for key in regions}  # of some, no values are read
        for path, (begin, end) in zip(self._sources.paths, pairwise((0, *self._sources.ends)), strict=True):
            own: dict[Key, list[Region]] = {}
            places: dict[Key, list[int]] = {}
            for key, parts in regions.items():
                axis = self._axis(key)
                for number, part in enumerate(parts):
                    if axis is None and pieces[key][number]:
                        continue
                    inside = part if axis is None else _within(part, axis, begin, end)
                    if inside is not None:
                        own.setdefault(key, []).append(inside)
                        places.setdefault(key, []).append(number)
            if not own:
                continue
            found = self._read(path, own)
            for key in own:
                result[key] = result[key] if result[key].reason else found[key]
                for number, (_, values) in zip(places[key], found[key].samples, strict=False):
                    pieces[key][number].append(values)
        for key, item in result.items():
            axis = self._axis(key) or 0
            joined = [np.concatenate(parts, axis) if len(parts) > 1 else parts[0] for parts in pieces[key] if parts]
            result[key] = item._replace(samples=[*zip(regions[key], joined, strict=False)])
        return result

    def _axis(self, key: Key) -> int | None:
        own = self._before.variables.get(key)
        if own is None or self._sources.dimension not in own.dims:
            return None
        return own.dims.index(self._sources.dimension)

    def _read(self, path: str | os.PathLike[str], regions: Mapping[Key, list[Region] | None]) -> dict[Key, Read]:
        own = self._before
        try:
            codecs = self._sources.with_codecs
            found = read(path, only=regions, decode_times=own.decode_times, engine=own.engine, with_codecs=codecs)
        except UnopenedError as error:
            raise FileError(f"{path}: the witness xarray cannot open it: {error}").at(path=path) from error
        return dict(found.variables)


def reader_of(opened: Opened) -> str:
    """Return what read a target, in words."""
    return f"xarray {opened.version} ({opened.engine})"


def needs_codecs(needs: Mapping[str, Need]) -> bool:
    """Return whether xarray reads a target only with the codecs of tamis."""
    return any("tamis" in need.text.split() for need in needs.values())


def unopened(target: Path, error: UnopenedError, needs: Mapping[str, Need]) -> BoundError:
    """Return the error about a target that xarray does not open, perhaps for want of what its variables need."""
    wants = [f"{path} needs {need.text}" for path, need in needs.items() if not need.is_here]
    also = f": {wants[0]}, which is not installed here" if wants else ""
    return BoundError(f"{target}: xarray cannot open the target: {error}{also}").at(path=target)


@contextmanager
def links_to(files: Mapping[str, str], folder: str) -> Iterator[str]:
    """Give a folder where HDF5, which looks there first, finds files in place of those that do not exist.

    Parameters
    ----------
    files
        Existing files by the paths that do not exist.
    folder
        The folder of the file whose external links lead to them.

    Yields
    ------
    str
        The place of the folder among links, to which relative names lead as they do in the folder itself; HDF5 looks
        for the last part of absolute ones. Empty if all files exist.
    """
    absent = {path: file for path, file in files.items() if not os.path.exists(path)}
    if not absent:
        yield ""
        return
    with TemporaryDirectory(prefix="tamis-links-") as root:
        inside = root + os.path.splitdrive(folder)[1]
        for path, file in absent.items():
            for link in {root + os.path.splitdrive(path)[1], os.path.join(inside, os.path.basename(path))}:
                os.makedirs(os.path.dirname(link), exist_ok=True)
                with suppress(FileExistsError):  # absolute names with the same last part
                    lead_to(os.path.abspath(file), link)
        yield inside


def refuse_absent(target: Path, briefing: Briefing, kind: Kind) -> None:
    """Raise FileError if a target leads to another one that does not exist, so that xarray cannot read it."""
    absent = (other for other in briefing.of_run if other.kind == kind and not os.path.exists(other.file))
    if (other := next(absent, None)) is None:
        return
    if other.file == briefing.name:
        text = "the target itself, which gets this name after the witness: link to its object by a soft link"
    else:
        text = (
            "another target of this run, which does not exist: repeat the run when it is made. Files of different parts"
            " that lead to each other need a run without the witness first"
        )
    leads = "an external link leads to" if kind == "external link" else "its values are in"
    raise FileError(f"{target}: {other.path}: xarray cannot read the target, because {leads} {other.file}, {text}").at(
        path=target, dataset=other.path
    )


def refuse_unread(target: Path, path: str, reason: str, needs: Mapping[str, Need]) -> None:
    """Raise BoundError if xarray cannot read the values of a variable although it has all that they need."""
    if path not in needs or needs[path].is_here:
        raise BoundError(f"{path}: expected values that xarray reads, found {reason}").at(path=target, dataset=path)


def key_of(path: str) -> Key:
    """Return the group and the name of a variable."""
    group, name = posixpath.split(path)
    return group or "/", name


def _within(part: Region, axis: int, begin: int, end: int) -> Region | None:
    """Return a part of joined arrays in one of them; None if it has nothing of it."""
    start, stop = max(part[axis].start, begin), min(part[axis].stop, end)
    if start >= stop:
        return None
    return (*part[:axis], slice(start - begin, stop - begin), *part[axis + 1 :])


class _Look:
    """The comparison of a target with its source."""

    def __init__(self, target: Path, before: Opened, after: Opened, briefing: Briefing) -> None:
        self._target, self._before, self._after, self._briefing = target, before, after, briefing
        self.compared = 0
        self.chunks: dict[str, int] = {}
        self.unread: list[Unread] = []

    def _differ(self, path: str, expected: str, found: str) -> BoundError:
        return BoundError(f"{path}: expected {expected} as in the source, xarray reads {found}").at(
            path=self._target, dataset=path
        )

    def check_metadata(self, dimension: str) -> None:
        """Compare groups and variables: names, dimensions, extents, types and attributes."""
        briefing = self._briefing
        for group, attributes in self._before.groups.items():
            if (others := self._after.groups.get(group)) is None:
                if group not in briefing.translated and not self._is_below_link(group):
                    raise self._differ(group, "the group", "none")
                continue
            if group not in briefing.translated and not self._is_linked(group):
                self._check_attributes(
                    group, attributes, others, {"history"}, may_have_more=not briefing.is_same_format
                )
        for key, own in self._before.variables.items():
            path = posixpath.join(*key)
            if path in briefing.left_out:
                continue
            if (found := self._after.variables.get(key)) is None:
                if self._is_below_link(path):
                    continue
                raise self._differ(path, "the variable", "none")
            self._check_variable(path, own, found, dimension)
            self.compared += not self._is_linked(path)
        for key in self._after.variables:
            path = posixpath.join(*key)
            if key not in self._before.variables and not self._is_added(path):
                raise self._differ(path, "no variable", "one")

    def _is_linked(self, path: str) -> bool:
        """Return whether a link leads to an object in another file, where it is compared."""
        known = self._briefing.elsewhere.get(path)
        return known is not None and known.is_linked

    def _is_below_link(self, path: str) -> bool:
        """Return whether an object is in a group to which a link leads in another file, which may lack it."""
        return self._is_linked(path) and self._is_linked(posixpath.dirname(path))

    def _is_added(self, path: str) -> bool:
        """Return whether a target may have a variable that its source has not."""
        if path in self._briefing.added:
            return True
        origin = self._briefing.origin(path)
        return origin.first_path in self._briefing.added or bool(origin.file)

    def _check_variable(self, path: str, own: Read, found: Read, dimension: str) -> None:
        names = [name for name in own.dims if not name.startswith("phony_dim_")]
        if len(names) == len(own.dims) and own.dims != found.dims:
            raise self._differ(path, f"the dimensions {', '.join(own.dims)}", ", ".join(found.dims) or "none")
        extents = [
            (extent, other)
            for name, extent, other in zip(own.dims, own.shape, found.shape, strict=False)
            if name != dimension
        ]
        if len(own.shape) != len(found.shape) or any(extent != other for extent, other in extents):
            raise self._differ(path, f"the shape {own.shape}", str(found.shape))
        if path in self._briefing.translated or self._is_linked(path):
            return
        expected = self._briefing.expected.get(path)
        if _type_of(own) != _type_of(found) and not (expected and {own.kind, found.kind} == {"f"}):
            raise self._differ(path, f"the type {own.dtype}", found.dtype)
        if own.is_coordinate != found.is_coordinate:
            words = "a data variable", "a coordinate"
            raise self._differ(path, words[own.is_coordinate], words[found.is_coordinate])
        changed = {*expected.changed_attributes} if expected else set[str]()
        changed |= {"actual_range"} if dimension else set()
        may_have_more = expected is not None or not self._briefing.is_same_format
        self._check_attributes(path, own.attributes, found.attributes, changed, may_have_more=may_have_more)

    def _check_attributes(
        self,
        path: str,
        own: Mapping[str, list[Any]],
        found: Mapping[str, list[Any]],
        changed: set[str],
        *,
        may_have_more: bool,
    ) -> None:
        for name, values in own.items():
            if name not in changed and not _are_alike(values, found.get(name)):
                others = "none" if name not in found else repr(found[name])
                raise self._differ(path, f"the attribute {name} {values!r}", others)
        more = [name for name in found if name not in own and name not in changed]
        if more and not may_have_more:
            raise self._differ(path, f"no attribute {more[0]}", repr(found[more[0]]))

    def regions(self) -> dict[Key, list[Region] | None]:
        """Return the parts of the sample that both have, of variables whose values are compared.

        None stands for the first and the last chunk: whether the source can be read where the target cannot.
        """
        regions: dict[Key, list[Region] | None] = {}
        for key, found in self._after.variables.items():
            path = posixpath.join(*key)
            if key not in self._before.variables or path in self._briefing.left_out:
                continue
            if path in self._briefing.elsewhere:
                self.unread.append(Unread(path, self._briefing.elsewhere[path].reason))
            else:
                regions[key] = None if found.reason else [part for part, _ in found.samples]
        return regions

    def check_values(self, before: Mapping[Key, Read], regions: Collection[Key]) -> None:
        """Compare the values of the sample."""
        for key in regions:
            path, own, found = posixpath.join(*key), before[key], self._after.variables[key]
            # What was written anew could be decoded, whether xarray has its old filters or not.
            if found.reason and (path in self._briefing.expected or not own.reason):
                refuse_absent(self._target, self._briefing, "raw file")
                own_path = path if path in self._briefing.needs else self._briefing.origin(path).first_path
                refuse_unread(self._target, own_path or path, found.reason, self._briefing.needs)
            if found.reason or own.reason:
                self.unread.append(Unread(path, self._why_unread(path, own, found)))
                continue
            expected = self._briefing.expected.get(path, Expected())
            for (part, given), (_, values) in zip(own.samples, found.samples, strict=True):
                self._check_part(path, part, own, found, np.asarray(given), np.asarray(values), expected)
            if found.samples:
                self.chunks[path] = len(found.samples)

    def _why_unread(self, path: str, own: Read, found: Read) -> str:
        sides = [side for side, item in (("source", own), ("target", found)) if item.reason]
        damaged = "damaged " if path in self._briefing.damaged else ""
        return f"{damaged}in the {' and the '.join(sides)}: {found.reason or own.reason}"

    def _check_part(
        self,
        path: str,
        part: Region,
        own: Read,
        found: Read,
        given: NDArray[Any],
        values: NDArray[Any],
        expected: Expected,
    ) -> None:
        origin = tuple(axis.start for axis in part)
        if given.shape != values.shape:
            raise self._differ(path, f"values of the shape {given.shape}", str(values.shape))
        if expected.is_filled and given.dtype.kind in "fc":
            values = np.where(np.isnan(given), given, values)
        wrong = _first_beyond(own, found, given, values, expected.allowed)
        if wrong is not None:
            place = [start + at for start, at in zip(origin, wrong, strict=True)]
            within = f" within {expected.allowed:g}" if expected.allowed else ""
            raise BoundError(
                f"{path}: expected {given[wrong]!s}{within} at {place} as in the source, xarray reads {values[wrong]!s}"
            ).at(path=self._target, dataset=path, chunk=origin)


def _type_of(item: Read) -> str:
    """Return a type whatever its byte order, and one for all kinds of text."""
    return "text" if item.kind in "OSUT" else item.dtype.lstrip("<>=|")


def _are_alike(values: list[Any], others: list[Any] | None) -> bool:
    """Return whether attributes are the same, whatever the types of their numbers."""
    if others is None or len(values) != len(others):
        # An empty text and an empty list are one in some formats.
        return others is not None and values in ([], [""]) and others in ([], [""])
    return all(one == other or (one != one and other != other) for one, other in zip(values, others, strict=True))


def _first_beyond(
    own: Read, found: Read, given: NDArray[Any], values: NDArray[Any], allowed: float
) -> tuple[int, ...] | None:
    """Return the index of the first value that differs by more than allowed; None if none does."""
    kinds = {given.dtype.kind, values.dtype.kind}
    if kinds & set("mM") or (kinds == {"O"} and own.units):
        return _first_time_beyond(own, given, values, allowed)
    if kinds & set("OSUTV"):
        same = np.array(
            [
                _plain(one) == _plain(other) or (one != one and other != other)
                for one, other in zip(given.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True)
            ],
            bool,
        ).reshape(given.shape)
        return first_index(~same)
    if "c" in kinds:
        same = (given == values) | (np.isnan(given) & np.isnan(values))
        with np.errstate(all="ignore"):
            return first_index(~(same | (np.abs(given - values) <= allowed)))
    loss = loss_between(given, values, allowed + _noise(own, found, given, values), (0,) * given.ndim)
    return None if loss.beyond is None else loss.beyond.index


def _plain(item: Any) -> Any:
    return item.decode("utf-8", "surrogateescape").rstrip("\0") if isinstance(item, bytes) else item


def _noise(own: Read, found: Read, given: NDArray[Any], values: NDArray[Any]) -> float:
    """Return what rounding adds where xarray unpacks values: a few units in the last place of its type."""
    if not (own.is_packed or found.is_packed):
        return 0.0
    with np.errstate(all="ignore"):
        sizes = np.abs(given.astype(np.float64))
        largest = float(sizes.max(initial=0, where=np.isfinite(sizes))) + max(abs(own.offset), abs(found.offset))
    floats = [array.dtype for array in (given, values) if array.dtype.kind == "f"]
    return 8 * largest * max((float(np.finfo(dtype).eps) for dtype in floats), default=0.0)


_SECONDS = {
    **{"day": 86400.0, "hour": 3600.0, "h": 3600.0, "minute": 60.0, "min": 60.0},
    **{"second": 1.0, "s": 1.0, "millisecond": 1e-3, "microsecond": 1e-6},
}
"""Units of times, without the plural."""


def _first_time_beyond(own: Read, given: NDArray[Any], values: NDArray[Any], allowed: float) -> tuple[int, ...] | None:
    """Return the index of the first time that differs by more than allowed in its units; None if none does."""
    loss = loss_between(given, values, 0.0, (0,) * given.ndim)
    if loss.first is None:
        return None
    unit = (own.units.split() or [""])[0].lower()
    seconds = allowed * _SECONDS.get(unit, _SECONDS.get(unit.removesuffix("s"), 0.0))
    if not seconds:
        return loss.first.index
    pairs = zip(given.reshape(-1), values.reshape(-1), strict=True)
    wrong = np.array([not _distance(one, other) <= seconds * (1 + 1e-9) + 1e-5 for one, other in pairs], bool)
    return first_index(wrong.reshape(given.shape))


def _distance(one: Any, other: Any) -> float:
    """Return the seconds between two times; 0 between two missing ones, infinite if only one is missing."""
    if one != one or other != other or one is None or other is None:
        return 0.0 if (one != one or one is None) and (other != other or other is None) else np.inf
    difference = other - one
    is_cftime = hasattr(difference, "total_seconds")
    return abs(float(difference.total_seconds() if is_cftime else difference / np.timedelta64(1, "s")))
