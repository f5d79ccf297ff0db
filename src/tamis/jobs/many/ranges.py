"""The ranges of packed variables over all files of a run, so that each has one packing in all of them.

Programs that join files take the packing of the first one: `to_netcdf` of xarray and `cdo mergetime` would spoil the
values of the others. Ranges are found once for each file, whichever run comes to it first, and kept beside the state;
so runs that share a folder, parts of an array of jobs, and later runs with more files agree.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import TamisError
from tamis.jobs.many.listing import STATE_FOLDER
from tamis.jobs.many.state import append_line, claim, new_content
from tamis.jobs.recipes import matching
from tamis.jobs.repack import ReadSurvey, packs, plan_datasets
from tamis.jobs.workers import Died, Progressed
from tamis.remote import place_of
from tamis.rounding import Pack, PackingRange
from tamis.safety import Identity

if TYPE_CHECKING:
    from tamis.accuracy import Measured
    from tamis.jobs.many.listing import SourceFile
    from tamis.jobs.many.task import FolderOptions
    from tamis.jobs.progress import Progress
    from tamis.jobs.recipes import Recipe
    from tamis.jobs.repack import Survey
    from tamis.jobs.workers import Workers
    from tamis.rewrite import ArrayPlan
    from tamis.stores import StoredArray

_NAME, _ENDING, _WHOLE = "ranges-", ".jsonl", "packing-{}.json"
_CLAIM = "ranges of "
_WAIT_SECONDS, _CLAIMED_SECONDS = 0.2, 1.0
_MOST_DEATHS = 3

Ranges = Mapping[str, PackingRange]
"""By path of the dataset."""


def is_packed(recipe: Recipe) -> bool:
    """Return whether a recipe packs a variable."""
    return any(packs(filters) for filters in recipe.filters.values())


def with_asked(recipe: Recipe, path: str, extent: PackingRange) -> tuple[str, PackingRange]:
    """Return the path of a variable, and the range of its values with the one that a recipe asks for by its name."""
    for name, filters in recipe.filters.items():
        pack = filters.rounding
        if not isinstance(pack, Pack) or pack.range is None:
            continue
        with suppress(TamisError):
            matching(name, {path: path})
            return path, extent.plus(PackingRange(*pack.range))
    return path, extent


class FoundRanges(NamedTuple):
    """The ranges in a file."""

    path: str  # Of the target, below the folder
    identity: Identity  # Of the source
    recipe: str  # Key of the recipe
    ranges: Ranges

    def to_line(self) -> bytes:
        """Return a line of a file of ranges."""
        ranges = {path: [extent.low, extent.high, [*extent.missing]] for path, extent in self.ranges.items()}
        line = {"path": self.path, "identity": [*self.identity], "recipe": self.recipe, "ranges": ranges}
        return json.dumps(line).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> FoundRanges | None:
        """Return what a line says; None if it is damaged."""
        try:
            found = json.loads(line)
            identity = Identity(*found["identity"])
            return cls(str(found["path"]), identity, str(found["recipe"]), _ranges_of(found["ranges"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def _ranges_of(entries: Mapping[str, Any]) -> dict[str, PackingRange]:
    return {
        str(path): PackingRange(float(low), float(high), tuple(map(float, missing)), *map(bool, alike))
        for path, (low, high, missing, *alike) in entries.items()
    }


class _RecordingSurvey(NamedTuple):
    """Reads all values of packed arrays, and notes their ranges; see `tamis.jobs.repack.survey.Survey`."""

    read: ReadSurvey
    found: dict[str, PackingRange]

    def measured(self, plan: ArrayPlan, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`."""
        return self.read.measured(plan, source, moments=moments)

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`."""
        self.found[source.path] = self.read.packing_range(source, chunk_shape)
        return self.found[source.path]


class RangeTask(NamedTuple):
    """A file whose ranges are to be found."""

    file: SourceFile
    options: FolderOptions

    def run(self, report: Progress) -> FoundRanges | None:
        """Find the ranges, and write them down; None if another process does. A file that fails has no range."""
        options, path = self.options, self.file.target
        survey = _RecordingSurvey(ReadSurvey(report, options.repack.threads), {})
        try:
            with claim(options.folder, f"{_CLAIM}{path}") as is_ours:
                if not is_ours:
                    return None
                identity = Identity.of(place_of(self.file.source))
                self._read(survey)
                found = FoundRanges(path, identity, options.repack_key, survey.found)
                append_line(options.folder, found.to_line(), kind=_NAME)
                return found
        except (TamisError, OSError, RuntimeError):  # making the file says why, and must tell its missing values apart
            marks = {name: PackingRange(missing=extent.missing) for name, extent in survey.found.items()}
            return FoundRanges(path, Identity(0, 0, 0), options.repack_key, marks)

    def _read(self, survey: Survey) -> None:
        """Read all values whose range is needed."""
        asked = self.options.repack
        with asked.open(place_of(self.file.source)) as store:
            plan_datasets(store, replace(asked, storage="disk"), survey)


def common_ranges(
    files: Iterable[SourceFile],
    done: Callable[[SourceFile], bool],
    options: FolderOptions,
    workers: Workers,
    tell: Callable[[str, int, int], None],
) -> Ranges:
    """Return the ranges of packed variables over all files, with those of earlier runs.

    Parameters
    ----------
    files
        All files of the run, also those of other parts.
    done
        Whether an earlier run made a file, by ranges that it wrote down.
    options
        Those of the run.
    workers
        Processes that read the files.
    tell
        Called with what is done, the number of finished files, and that of all.
    """
    whole = Path(options.folder, STATE_FOLDER, _WHOLE.format(options.repack_key))
    earlier = _read_ranges(whole)
    known = _Known(options)
    known.refresh()
    read = [file for file in files if file.is_read and not (earlier and done(file))]
    found = {file.target: ranges for file in read if (ranges := known.of(file)) is not None}
    left = {file.target: RangeTask(file, options) for file in read if file.target not in found}
    found |= _found(left, known, workers, lambda count: tell("ranges", len(read) - len(left) + count, len(read)))
    total = dict(earlier)
    for ranges in (*found.values(), _read_ranges(whole)):  # once more: another run may have written meanwhile
        for path, extent in ranges.items():
            total[path] = total[path].beside(extent) if path in total else extent
    if repr(total) != repr(earlier):  # NaN, a missing value, does not equal itself
        _write_ranges(whole, total)
    return dict(sorted(total.items()))


class _Known:
    """The ranges that runs wrote down for a recipe, by path."""

    def __init__(self, options: FolderOptions) -> None:
        self._folder, self._recipe = Path(options.folder, STATE_FOLDER), options.repack_key
        self._ends: dict[Path, int] = {}
        self._found: dict[str, FoundRanges] = {}

    def refresh(self) -> None:
        """Read what was written since the last call."""
        for path in sorted(self._folder.glob(f"{_NAME}*{_ENDING}")):
            with suppress(OSError), path.open("rb") as lines:
                lines.seek(self._ends.get(path, 0))
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    self._ends[path] = self._ends.get(path, 0) + len(line)
                    found = FoundRanges.from_line(line)
                    if found is not None and found.recipe == self._recipe:
                        self._found[found.path] = found

    def of(self, file: SourceFile) -> Ranges | None:
        """Return the ranges of a file; None if they are not known, or the file has changed since."""
        found = self._found.get(file.target)
        with suppress(OSError, TamisError):
            if found is not None and found.identity == Identity.of(place_of(file.source)):
                return found.ranges
        return None


def _found(
    left: Mapping[str, RangeTask], known: _Known, workers: Workers, tell: Callable[[int], None]
) -> dict[str, Ranges]:
    """Let workers find the ranges of files, or wait for other runs that do."""
    found: dict[str, Ranges] = {}
    queue = deque(sorted(left.values(), key=lambda task: -task.file.nbytes))
    at_work = set[str]()
    claimed: dict[str, float] = {}  # When to look again at what other runs have
    deaths: Counter[str] = Counter()
    while len(found) < len(left):
        for path in [path for path, due in claimed.items() if due <= time.monotonic()]:
            del claimed[path]
            queue.append(left[path])
        while queue and workers.idle > 0:
            task = queue.popleft()
            known.refresh()
            ranges = known.of(task.file)
            if ranges is not None:  # another run was faster
                found[task.file.target] = ranges
                continue
            at_work.add(task.file.target)
            workers.submit(task)
        began = time.monotonic()
        for event in workers.events(_WAIT_SECONDS) if at_work else ():
            if isinstance(event, Progressed):
                continue
            path = event.task.file.target
            at_work.discard(path)
            if isinstance(event, Died):
                deaths[path] += 1
                if deaths[path] < _MOST_DEATHS and not event.is_final:
                    queue.append(left[path])
                else:
                    found[path] = {}
            elif event.result is None:
                claimed[path] = time.monotonic() + _CLAIMED_SECONDS
            else:
                found[path] = event.result.ranges
        if not at_work and len(found) < len(left):
            time.sleep(max(_WAIT_SECONDS - (time.monotonic() - began), 0))
        tell(len(found))
    return found


def _read_ranges(path: Path) -> dict[str, PackingRange]:
    try:
        return _ranges_of(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write_ranges(path: Path, ranges: Ranges) -> None:
    entries = {name: [extent.low, extent.high, [*extent.missing], extent.alike] for name, extent in ranges.items()}
    with new_content(path) as stream:
        json.dump(entries, stream)
