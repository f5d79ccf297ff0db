"""What is looked at before the first file of a run is made: names of the recipe, and bounds."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tamis.accuracy.measured import Measured
from tamis.arrays.grid import grid_of
from tamis.errors import FileError, TamisError
from tamis.formatting import did_you_mean
from tamis.jobs.recipes.names import STANDARD_NAME, absolute, has_pattern_signs
from tamis.jobs.repack.planning import SURVEY_ALONE, plan_datasets, taken_in
from tamis.remote.address import is_address, place_of
from tamis.rewrite.coarse_bounds import Warned, coarse_bounds
from tamis.rewrite.packed_array import in_units, marks_of
from tamis.rounding import PackingRange

if TYPE_CHECKING:
    from tamis.jobs.many.listing import SourceFile
    from tamis.jobs.many.task import FolderOptions
    from tamis.jobs.repack.options import RepackOptions
    from tamis.pipeline import Pipeline
    from tamis.rewrite.rewrite import Rewrite
    from tamis.stores.protocols import StoredArray

_MOST_PARTS = 8
_MOST_LISTED = 12


class _SampledSurvey(NamedTuple):
    """What a few parts of an array tell of its values; see `tamis.jobs.repack.planning.Survey`."""

    def measured(self, plan: Rewrite, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`: this reads all values."""
        return SURVEY_ALONE.measured(plan, source, moments=moments)

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`: range and missing values of the sample."""
        source.check_readable()
        parts, marks, total = source.parts(grid_of(source.shape, chunk_shape)), marks_of(source), PackingRange()
        count = min(len(parts), _MOST_PARTS)
        with closing(source.open_reader()) as reader:
            for place in range(count):
                values = reader.read(parts[place * len(parts) // count])
                total = total.plus(PackingRange.of(in_units(source, values), marks))
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


def check_order(files: Collection[SourceFile], options: FolderOptions) -> None:
    """Raise FileError if a run in place would take values from files that it may have replaced lossily before."""
    repack = options.repack
    if not options.replace or not repack.follow or not any(map(_is_lossy, repack.recipe.filters.values())):
        return
    own = {os.path.realpath(file.source) for file in files if not is_address(file.source)}
    for file in files:
        if not file.is_read:
            continue
        with suppress(TamisError, OSError, RuntimeError), repack.open(place_of(file.source)) as store:
            if shared := [item.file for item in taken_in(store) if item.file in own]:
                break
    else:
        return
    raise FileError(
        f"{file.source}: takes in values of {shared[0]}, which this run replaces with a loss, so that errors would add:"
        " replace the files that take in others first, in a run of their own"
    ).at(path=file.source)


def _is_lossy(filters: Pipeline) -> bool:
    return filters.error_bound != 0


def warnings_of(files: Sequence[SourceFile], options: RepackOptions) -> tuple[Warned, ...]:
    """Return warnings about the bounds of a recipe, each path or pattern once.

    The first file, one in the middle and the last one are looked at.
    """
    read = [file for file in files if file.is_read]
    few = [read[place] for place in sorted({0, len(read) // 2, len(read) - 1})] if read else []
    found: dict[str, Warned] = {}
    for file in few:
        for warning in _warnings_of_file(file, options):
            found.setdefault(warning.path, warning)
    return tuple(found.values())


def _warnings_of_file(file: SourceFile, options: RepackOptions) -> Iterator[Warned]:
    with suppress(TamisError, OSError, RuntimeError), options.open(place_of(file.source)) as store:
        planning = plan_datasets(store, replace(options, optional_names=True, storage="disk"), _SampledSurvey())
        yield from coarse_bounds(planning.plans, planning.datasets, planning.patterns)
