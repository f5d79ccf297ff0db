"""Plan filters that keep what is wanted: measure candidates on a sample of each variable, and choose."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from tamis import cf
from tamis._open import open_store
from tamis.chunks.grid import default_chunks, grid_of
from tamis.errors import ParameterError, TamisError
from tamis.formatting import ratio, ratio_text, size_text
from tamis.jobs.naming import Names
from tamis.jobs.planning import choose
from tamis.jobs.planning.access import MODELS, STORAGES, Access, Axes, StorageName, as_access
from tamis.jobs.planning.candidates import Candidates, Variable
from tamis.jobs.planning.chunk_shapes import Reads, with_best_shape
from tamis.jobs.planning.result import Candidate, Plan, PlannedVariable
from tamis.jobs.planning.sample import Sample, sample_of
from tamis.jobs.planning.wants import Want, as_want
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipe import assigned
from tamis.jobs.recipes.dimension_chunks import dimensions_of
from tamis.jobs.recipes.saved_recipe import POLICIES, MissingPolicy
from tamis.rounding import recorded_rounding
from tamis.store.array import ELSEWHERE, Store, StoredArray

SAMPLE_NBYTES = 16_000_000
_LEAST_NBYTES = 1 << 16
_LEAST_SAMPLE = 1_000_000
_SLOW, _FAST = "deflate(9)", "deflate(4)"
_SHAPES_SHARE = 4
"""Share of the sampled bytes on which chunk shapes are compared."""
_SCREENED_SHARE, _MEASURED_SHARE = 16, 3
"""Shares of the sampled bytes that candidates are measured on first, and then, while their ratios are uncertain."""


def plan(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    wants: Mapping[str, object] | None = None,
    *,
    prefer: choose.Preference = "size",
    readers: choose.Readers = "all",
    sample: int = SAMPLE_NBYTES,
    missing: MissingPolicy = "exact",
    access: object = None,
    storage: StorageName = "disk",
    progress: Progress | None = None,
) -> Plan:
    """Plan filters for the variables of a file, or of several files that get the same.

    Candidates are measured on a sample of each variable: zfp, rounding in front of lossless filters, and lossless
    filters alone, as far as they are installed. Nothing is written. The numbers are predictions; `tamis.repack` proves
    the bound of the filters for each value.

    Parameters
    ----------
    path
        Path of a file or store that tamis reads, or several paths.
    wants
        What must be kept, by name or pattern: text such as ``abs=0.1,psnr=80``, values by name, or ``lossless``; all of
        one text hold together. Exact names take precedence over patterns. Coordinates, bounds, flags, integers and the
        like stay lossless unless they are named. By default everything stays lossless.
    prefer
        ``size`` for the best ratio, ``speed`` for the fastest with at least two thirds of it.
    readers
        Who must be able to read the result: ``any`` HDF5 library; ``netcdf`` for netCDF-C with its own plugins;
        ``zfp`` for HDF5 with that plugin; ``all`` for whoever installs what is needed.
    sample
        Bytes of each variable that are read at most; one chunk of each file is read in any case.
    missing
        How `tamis.repack` is to treat missing values: ``exact`` or ``companion``.
    access
        How the values are read: ``series``, ``map``, ``whole``, shares such as ``series=0.7,map=0.3``, or a box such as
        ``box:time=10,lat=96``, all along other dimensions. Then the chunk shape is chosen, too. None: chunks stay.
    storage
        Where they are read from: ``disk``, ``lustre`` or ``s3``.
    progress
        Called with step, finished work and whole work.

    Returns
    -------
    Plan
        The candidates of each variable, the chosen ones, and the recipe.

    Raises
    ------
    FileError
        If a file cannot be read, or no variable matches a name.
    ParameterError
        If an argument is not one of those above, or a variable has another shape or type in one of the files.

    Examples
    --------
    >>> result = plan("examples/data/cam_ts.nc", {"TS": "abs=0.1"}, readers="any")
    >>> list(result.filters)
    ['/TS']
    """
    begin = time.perf_counter()
    paths = [path] if isinstance(path, (str, os.PathLike)) else [*path]
    asked = {name: as_want(value) for name, value in (wants or {}).items()}
    _check(paths, prefer, readers, sample, missing, storage)
    wanted_access = None if access is None else as_access(access)
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(each)) for each in paths]
        variables, kept = _variables(stores, asked, missing)
        planned = []
        for number, variable in enumerate(variables, 1):
            step = Step(f"planning {variable.path}", number, len(variables), "planning")
            try:
                planned.append(_planned(variable, prefer, readers, sample, progress, step, wanted_access, storage))
            except TamisError as error:
                kept[variable.path] = f"stays as it is: {error}"
    files = tuple(map(os.fsdecode, paths))
    return Plan(files, tuple(planned), tuple(kept.items()), missing, time.perf_counter() - begin)


def _check(paths: Sequence[object], prefer: str, readers: str, sample: int, missing: str, storage: str) -> None:
    if not paths:
        raise ParameterError("expected a path or several, got none")
    for name, value, known in (
        ("prefer", prefer, choose.PREFERENCES),
        ("readers", readers, choose.READERS),
        ("missing", missing, POLICIES[:2]),
        ("storage", storage, STORAGES),
    ):
        if value not in known:
            raise ParameterError(f"expected {name} to be one of {', '.join(known)}, got {value!r}")
    if isinstance(sample, bool) or operator.index(sample) < _LEAST_SAMPLE:
        raise ParameterError(f"expected a sample of {_LEAST_SAMPLE} bytes or more, got {sample!r}")


def _variables(
    stores: Sequence[Store], asked: Mapping[str, Want], missing: MissingPolicy
) -> tuple[list[Variable], dict[str, str]]:
    """Return the variables to plan, and for each other one that is asked for the reason why it stays."""
    first = stores[0]
    first.check_listed()
    names = Names(first)
    wants: dict[str, tuple[Want, bool]] = {}
    for entry in assigned(asked or {"*": Want()}, names.match):
        wants.setdefault(entry.path, (entry.value, entry.exact))
    variables: list[Variable] = []
    kept: dict[str, str] = {}
    for path, (wanted, exact) in wants.items():
        role = first.roles.get(path, cf.DATA)
        want = Want() if role.is_exact and not exact else wanted
        arrays = [store.arrays[path] for store in stores if path in store.arrays]
        if len(arrays) < len(stores):
            kept[path] = "is not in all of the files"
        elif reason := _reason_to_keep(arrays, exact):
            kept[path] = reason
        elif any(not array.parts(grid_of(array.shape, shape := _chunk_shape(path, arrays))) for array in arrays):
            kept[path] = "stays as it is: its values were never written"
        else:
            variables.append(Variable(path, want, stores, arrays, shape, missing))
    return variables, kept


def _reason_to_keep(arrays: Sequence[StoredArray], exact: bool) -> str:
    """Return why an array stays as it is, whatever is wanted; empty if it does not."""
    for array in arrays:
        if array.dtype is None or array.dtype.kind not in "iuf" or not array.shape or not array.size:
            return "stays as it is: it has no array of numbers"
        if array.layout in ELSEWHERE:
            return f"stays as it is: its values are in other files ({array.layout})"
        if array.is_companion or array.has_companion:
            return "stays as it is: it belongs to a companion of missing values"
        if array.pipeline.error_bound != 0:
            return f"stays as it is: its values went through {array.pipeline} before, and another error would add up"
        if (rounding := recorded_rounding(array.attributes, array.number_type)) is not None:
            return f"stays as it is: its values were rounded before, by {rounding}"
        if problem := array.problem:
            return f"stays as it is: {problem}"
    if not exact and sum(array.values_nbytes for array in arrays) < _LEAST_NBYTES * len(arrays):
        return f"stays as it is: patterns leave values of less than {size_text(_LEAST_NBYTES)}"
    return ""


def _chunk_shape(path: str, arrays: Sequence[StoredArray]) -> tuple[int, ...]:
    """Return the chunk shape of the first array; of arrays without chunks, one that fits all of them."""
    array = arrays[0]
    for other in arrays[1:]:
        if other.dtype != array.dtype or len(other.shape) != len(array.shape):
            raise ParameterError(
                f"{path}: expected the same type and number of axes in all files, got {array.type_text} with"
                f" {len(array.shape)} axes in {array.label}, {other.type_text} with {len(other.shape)} in {other.label}"
            )
    least = tuple(min(extents) for extents in zip(*(each.shape for each in arrays), strict=True))
    if array.chunk_shape is not None:
        return tuple(map(min, array.chunk_shape, least)) if len(arrays) > 1 else array.chunk_shape
    return default_chunks(least, np.dtype(array.dtype).itemsize, zfp=np.dtype(array.dtype).kind == "f")


def _planned(
    variable: Variable,
    prefer: choose.Preference,
    readers: choose.Readers,
    nbytes: int,
    progress: Progress | None,
    step: Step,
    access: Access | None,
    storage: StorageName,
) -> PlannedVariable:
    """Measure the candidates of a variable, and choose; where reads are given, in several chunk shapes."""
    work = _Work(progress, step)
    if access is None:
        planned = _measured_variable(variable, prefer, readers, nbytes, work)
    else:
        reads = Reads(access, _axes(variable), MODELS[storage])

        def measure(variable: Variable, little: bool) -> PlannedVariable:
            share = max(nbytes // _SHAPES_SHARE, _LEAST_SAMPLE) if little else nbytes
            return _measured_variable(variable, prefer, readers, share, work)

        planned = with_best_shape(variable, reads, measure)
    work.finish()
    return planned


def _axes(variable: Variable) -> Axes:
    """Return the axes of a variable: the units of a coordinate tell which is time."""
    store = variable.stores[0]
    names = dimensions_of(store, variable.path) or ()
    group = variable.path.rpartition("/")[0]
    coordinates = ((name, store.arrays.get(f"{group}/{name}") or store.arrays.get(f"/{name}")) for name in names)
    times = [name for name, array in coordinates if array is not None and " since " in _units(array)]
    return Axes.of(names, len(variable.chunk_shape), times)


def _units(array: StoredArray) -> str:
    units = array.attributes.get("units", "")
    return units if isinstance(units, str) else ""


def _measured_variable(
    variable: Variable, prefer: choose.Preference, readers: choose.Readers, nbytes: int, work: _Work
) -> PlannedVariable:
    """Measure the candidates of a variable in its chunk shape, and choose."""
    arrays = variable.arrays
    sample = sample_of(arrays, variable.chunk_shape, nbytes, fields="dssim" in variable.want.limits)
    candidates = Candidates(variable, sample)
    texts = [text for text in candidates.texts() if candidates.allowed(text, readers)]
    front = _measured(candidates, texts, sample, nbytes, prefer, work)
    stored = sum(array.stored_nbytes for array in arrays)
    source_ratio = ratio(variable.nbytes, stored)
    filters, reason = _choice(front, prefer, source_ratio, candidates)
    own_chunks = all(array.chunk_shape == variable.chunk_shape for array in arrays)
    return PlannedVariable(
        variable.path,
        str(variable.want),
        variable.nbytes,
        source_ratio,
        sample.nbytes,
        None if own_chunks else variable.chunk_shape,
        tuple(front),
        filters,
        reason,
        candidates.required(filters),
        tuple(candidates.refused.items()),
        _named(dimensions_of(variable.stores[0], variable.path)),
    )


def _named(dimensions: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return names of dimensions, if each names one axis."""
    return dimensions if dimensions and len(set(dimensions)) == len(dimensions) else None


def _measured(
    candidates: Candidates, texts: Sequence[str], sample: Sample, nbytes: int, prefer: choose.Preference, work: _Work
) -> list[Candidate]:
    """Return the front of the candidates, by falling ratio: all are measured on little, the best of them on more."""
    few, more = sample.thinned(nbytes // _SCREENED_SHARE), sample.thinned(nbytes // _MEASURED_SHARE)
    work.add(few.nbytes * len(texts))
    screened = {text: candidates.measured(text, few, work.advance) for text in texts}
    front = choose.front_of([*screened.values()])
    for enough in (more, sample):
        if not front or (enough is sample and not choose.winner_of(front, prefer)[0].is_uncertain):
            break
        if enough.nbytes > few.nbytes:
            # All that may be chosen on the same chunks: otherwise the one with the luckiest chunks is.
            near = [each.filters for each in choose.eligible(front)]
            # What slow filters save beyond fast ones hardly depends on the chunk: that was measured on a few.
            fast = {text: quick for text in near if (quick := text.replace(_SLOW, _FAST)) != text and quick in screened}
            measured = dict.fromkeys((*(text for text in near if text not in fast), *fast.values()))
            work.add(enough.nbytes * len(measured))
            better = {text: candidates.measured(text, enough, work.advance) for text in measured}
            scaled = {text: screened[text].scaled(screened[quick], better[quick]) for text, quick in fast.items()}
            front = [(better | scaled).get(each.filters, each) for each in front]
            few = enough
    return choose.front_of(front)


class _Work:
    """The work on one variable, in bytes that are encoded, as a step of the progress."""

    def __init__(self, progress: Progress | None, step: Step) -> None:
        self._progress, self._step = progress, step
        self._done, self._total = 0, 1  # one is left until all is done

    def add(self, nbytes: int) -> None:
        """Add work to be done."""
        self._total += nbytes

    def advance(self, nbytes: int) -> None:
        """Report that some of it is done."""
        self._done += nbytes
        if self._progress is not None:
            self._progress(self._step, self._done, self._total)

    def finish(self) -> None:
        """Report that all is done."""
        self._done = self._total - 1
        self.advance(1)


def _choice(
    front: Sequence[Candidate], prefer: choose.Preference, source_ratio: float | None, candidates: Candidates
) -> tuple[str | None, str]:
    """Return the chosen filters, and the reason in a sentence."""
    if not front:
        return None, "stays as it is, because no filters here can store it so that these readers read it"
    winner, why = choose.winner_of(front, prefer)
    if source_ratio is not None and winner.ratio <= source_ratio:
        return None, f"stays as it is, because none of these is better than its ratio now, {ratio_text(source_ratio)}"
    return winner.filters, f"{winner.filters}, because {why}{candidates.condition(winner.filters)}"
