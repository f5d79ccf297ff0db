"""Checks before the first file of a run is made: names of the recipe, virtual datasets, and bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamis.arrays import grid_of
from tamis.errors import FileError, ParameterError, TamisError
from tamis.formats import target_form
from tamis.formatting import did_you_mean
from tamis.jobs.recipes import STANDARD_NAME, absolute, has_pattern_signs
from tamis.jobs.repack import Fates, ReadSurvey, may_spoil, plan_datasets, sources_of, with_needed
from tamis.remote import is_address, place_of
from tamis.rewrite import Warned, as_floats, coarse_bounds, marks_of
from tamis.rounding import PackingRange
from tamis.stores import Places

if TYPE_CHECKING:
    from tamis.jobs.many.listing import SourceFile
    from tamis.jobs.many.task import FolderOptions
    from tamis.jobs.repack import RepackOptions
    from tamis.pipeline import Pipeline
    from tamis.stores import Store, StoredArray

_MOST_PARTS = 8
_MOST_LISTED = 12


class _SampledSurvey(ReadSurvey):
    """A survey that finds ranges by a few parts of an array."""

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`: range and missing values of the sample."""
        source.check_readable()
        parts, marks, total = source.parts(grid_of(source.shape, chunk_shape)), marks_of(source), PackingRange()
        count = min(len(parts), _MOST_PARTS)
        with closing(source.open_reader()) as reader:
            for place in range(count):
                values = reader.read(parts[place * len(parts) // count])
                total = total.plus(PackingRange.of(as_floats(source, values), marks))
        return total


def check_names(files: Iterable[SourceFile], options: RepackOptions) -> None:
    """Raise FileError if a recipe names a dataset that is in none of the files, before one of them is made.

    Files are opened until all names are found; those that cannot be opened fail by themselves.
    """
    recipe = options.recipe
    names = {*recipe.filters, *recipe.chunks, *recipe.require}
    left = {name for name in names if not (has_pattern_signs(name) or name.startswith(STANDARD_NAME))}
    known: dict[str, None] = {}
    count = 0
    for file in files:
        if not left:
            return
        if not file.is_read:
            continue
        with suppress(TamisError, OSError, RuntimeError), options.open(place_of(file.source)) as store:
            left = {name for name in left if not store.first_path(absolute(name))}
            if left:
                known |= dict.fromkeys(store.paths())
            count += 1
    if left and count:
        name = min(left)
        listed = ", ".join([*known][:_MOST_LISTED]) + (", …" if len(known) > _MOST_LISTED else "")
        nearest = did_you_mean(name, (word for path in known for word in (path.rpartition("/")[2], path)))
        raise FileError(
            f"expected a dataset named {name!r} in one of the files, found only {listed or 'none'}{nearest}"
        ).at(dataset=name)


def check_views(
    files: Collection[SourceFile], options: FolderOptions, which_are_done: Callable[[], Callable[[SourceFile], bool]]
) -> None:
    """Raise an error if virtual datasets among the files would show, or take in, what a run makes of their sources.

    A run that packs the sources, masks their missing values, or leaves them out, spoils what a virtual dataset shows
    if this stays virtual. A run in place may also take values from files that it has replaced before.

    Parameters
    ----------
    files
        All files of the run, also of other parts.
    options
        Options of the run.
    which_are_done
        Returns a function that tells whether a file is as an earlier run made it; called only where it matters.
    """
    if not (may_spoil(options.repack) or _may_add(options)):
        return
    own = {os.path.realpath(file.source): file for file in files if not is_address(file.source)}
    fates: Fates | None = None
    for file in files:
        if not file.is_read:
            continue
        error: TamisError | None = None
        with suppress(TamisError, OSError, RuntimeError), options.repack.open(place_of(file.source)) as store:
            linked = [path for path in store.linked_files() if path in own] if _may_add(options) else []
            if linked:
                error = _adds(file, f"{linked[0]}, which this run replaces with a loss")
            elif any(array.storage.layout == "virtual" for array in store.arrays.values()):
                fates = fates or _fates(own, options, which_are_done())
                error = _error_of(file, store, options, fates)
        if error is not None:
            raise error


def _fates(files: Mapping[str, SourceFile], options: FolderOptions, is_done: Callable[[SourceFile], bool]) -> Fates:
    places = Places.of_files((file.source, os.path.join(options.folder, file.target)) for file in files.values())
    if not options.replace:  # what an earlier run made leaves its source as it is
        return Fates(options.repack, places)
    return Fates(options.repack, places, in_place=True, is_done=lambda path: path in files and is_done(files[path]))


def _error_of(file: SourceFile, store: Store, options: FolderOptions, fates: Fates) -> TamisError | None:
    """Return what is wrong with the virtual datasets of a file; None if nothing is."""
    planning = fates.planned(store)
    if options.replace:
        for path in planning.plans:
            sources = sources_of(planning.datasets[path], store.path)
            if (found := fates.first(store, sources, lambda fate: fate.lost)) is not None:
                return _adds(file, found.text(store.path))
    if options.repack.self_contained or not target_form(Path(file.target)).copies_objects_of(store):
        return None  # these are stored as values
    try:
        with_needed(store, planning, fates)
    except ParameterError as error:
        return error
    return None


def _adds(file: SourceFile, what: str) -> FileError:
    return FileError(
        f"{file.source}: takes in values of {what}, maybe before it reads them: replace the files that take in others"
        " first, in a run of their own"
    ).at(path=file.source)


def _may_add(options: FolderOptions) -> bool:
    """Return whether a run in place may take values of other files after it replaced these, with a loss."""
    repack, recipe = options.repack, options.repack.recipe
    takes = repack.follow or not all(has_pattern_signs(name) for name in (*recipe.filters, *recipe.chunks))
    return options.replace and takes and (bool(recipe.drop) or any(map(_is_lossy, recipe.filters.values())))


def _is_lossy(filters: Pipeline) -> bool:
    return filters.error_bound != 0


class LookedAt(NamedTuple):
    """What a look at files of a run found."""

    warnings: tuple[Warned, ...]  # About the bounds of the recipe, each path or pattern once
    refused: Mapping[str, str]  # Why files cannot be opened, or repacked as asked, by target


def few_of(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the first file, one in the middle and the last one, of those that are read."""
    read = [file for file in files if file.is_read]
    return [read[place] for place in sorted({0, len(read) // 2, len(read) - 1})] if read else []


def look_at(files: Iterable[SourceFile], options: RepackOptions) -> LookedAt:
    """Plan files as the run does, with ranges of a few parts."""
    found: dict[str, Warned] = {}
    refused: dict[str, str] = {}
    for file in files:
        try:
            with options.open(place_of(file.source)) as store:
                for warning in _warnings_of(store, options):
                    found.setdefault(warning.path, warning._replace(text=f"{warning.text}, in {file.target}"))
        except (TamisError, OSError, RuntimeError) as error:
            refused[file.target] = str(error.at(file.source) if isinstance(error, TamisError) else error)
    return LookedAt(tuple(found.values()), refused)


def _warnings_of(store: Store, options: RepackOptions) -> list[Warned]:
    """Return the warnings about a file; none if its values cannot be read: the run reports that, or copies them."""
    try:
        planning = plan_datasets(store, replace(options, optional_names=True, storage="disk"), _SampledSurvey())
        return [*coarse_bounds(planning.plans, planning.datasets, planning.patterns)]
    except ParameterError:
        raise
    except (TamisError, OSError, RuntimeError):
        return []
