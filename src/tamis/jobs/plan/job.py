"""Plan filters that meet wants: measure candidates on a sample of each variable, and choose."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from tamis.errors import ParameterError, TamisError
from tamis.formats.registry import open_store
from tamis.jobs.plan import choose
from tamis.jobs.plan.budget import FREE, Budget, within_budget
from tamis.jobs.plan.chunk_shapes import STORAGES, StorageName, as_access
from tamis.jobs.plan.confirm import confirm as confirmed_by_repack
from tamis.jobs.plan.foreign_filters import foreign_names
from tamis.jobs.plan.planner import LEAST_SAMPLE, USUAL_SAMPLE, Settings, Work, measured, planned, variables_of
from tamis.jobs.plan.result import Plan, PlannedVariable
from tamis.jobs.plan.sample import ALL
from tamis.jobs.plan.wants import as_want
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipes.saved_recipe import POLICIES, MissingPolicy
from tamis.kinds import CALLBACK, FLAG, MAPPING, NAMES, NUMBER, PATHS, WHOLE, checked

if TYPE_CHECKING:
    from tamis.jobs.plan.candidates import Variable
    from tamis.stores.protocols import Store


@checked(
    path=PATHS,
    wants=MAPPING.such_as("{'TS': 'abs=0.1'}"),
    sample=WHOLE.or_none(),
    ratio=NUMBER,
    size=NUMBER,
    confirm=FLAG,
    compare=NAMES,
    progress=CALLBACK,
)
def plan(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    wants: Mapping[str, object] | None = None,
    *,
    prefer: choose.Preference = "size",
    readers: choose.Readers = "all",
    sample: int | None = USUAL_SAMPLE,
    missing: MissingPolicy = "exact",
    access: object = None,
    storage: StorageName = "disk",
    ratio: float | None = None,
    size: int | None = None,
    confirm: bool = False,
    compare: str | Collection[str] = (),
    progress: Progress | None = None,
) -> Plan:
    """Plan filters for the variables of a file, or of several files that get the same filters.

    Candidates are measured on a sample of each variable: zfp, rounding followed by lossless filters, and lossless
    filters alone, if installed. Nothing is written. The numbers are predictions; `tamis.repack` proves the bound of the
    filters for each value.

    Parameters
    ----------
    path
        Path of a file or store that tamis reads, or several paths.
    wants
        What to preserve, by name or pattern: text such as ``abs=0.1,psnr=80``, values by word, or ``lossless``; the
        result must meet all limits of a text. Exact names take precedence over patterns. Coordinates, bounds, flags,
        integers and the like stay lossless unless they are named. By default everything stays lossless.
    prefer
        ``size`` for the best ratio, ``speed`` for the fastest with at least two thirds of it.
    readers
        Who must be able to read the result: ``any`` HDF5 library; ``netcdf`` for netCDF-C with its own plugins;
        ``zfp`` for HDF5 with that plugin; ``all`` for whoever installs what is needed.
    sample
        Most bytes to read of each variable; at least one chunk of each file is read. None: all values, a chunk at a
        time.
    missing
        How `tamis.repack` will treat missing values: ``exact`` or ``companion``.
    access
        How the values are read: ``series``, ``map``, ``whole``, shares such as ``series=0.7,map=0.3``, or a box such as
        ``box:time=10,lat=96``, with all values along other dimensions. Plan then also chooses the chunk shape. None:
        chunks stay.
    storage
        Where values are read from: ``disk``, ``lustre`` or ``s3``.
    ratio, size
        Bytes of values per stored byte, or stored bytes, over all files. Variables without a want get the smallest
        error, relative to the range of each, for which this is predicted.
    confirm
        Whether to try the result on all values: each file is repacked into a temporary folder, which is then removed.
    compare
        Foreign filters to measure on the same sample, ``sz3`` or ``sperr`` (extra ``hdf5plugin``), with the absolute
        error that meets the want. The result lists them next to the candidates; they are never chosen.
    progress
        Called with the step, the finished work and the total work.

    Returns
    -------
    Plan
        The candidates of each variable, the chosen ones, and the recipe.

    Raises
    ------
    FileError
        If a file cannot be read, or no variable matches a name.
    ParameterError
        If an argument is invalid, a variable has another shape or type in one of the files, or a ratio or size cannot
        be reached.

    Examples
    --------
    >>> result = plan("examples/data/cam_ts.nc", {"TS": "abs=0.1"}, readers="any")
    >>> list(result.filters)
    ['/TS']
    """
    begin = time.perf_counter()
    paths = [path] if isinstance(path, str | bytes | os.PathLike) else [*path]
    asked = {name: as_want(value) for name, value in (wants or {}).items()}
    _check(paths, prefer, readers, sample, missing, storage)
    if storage != "disk" and access is None:
        raise ParameterError(
            f"expected access with the storage {storage!r}, which matters only for the choice of chunk shapes, got none"
        )
    budget = Budget(ratio, size)
    budget.check(asked)
    nbytes, wanted_access = ALL if sample is None else sample, None if access is None else as_access(access)
    settings = Settings(prefer, readers, nbytes, wanted_access, storage, foreign_names(compare))
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(path)) for path in paths]
        variables, kept = variables_of(stores, {**asked, "*": FREE} if budget.is_given else asked, missing)
        if wanted_access is not None and variables:
            wanted_access.check(dict.fromkeys(name for variable in variables for name in variable.dimensions or ()))
        fixed = [variable for variable in variables if variable.want is not FREE]
        results = [*_each(fixed, settings, kept, progress)]
        if budget.is_given:
            free = [variable for variable in variables if variable.want is FREE]
            results += _free(stores, free, results, budget, settings, progress)
    plan = Plan(tuple(map(os.fsdecode, paths)), tuple(results), tuple(kept.items()), missing, 0.0)
    if confirm:
        plan = confirmed_by_repack(plan, {variable.path: variable.want for variable in variables}, progress)
    return replace(plan, seconds=time.perf_counter() - begin)


def _each(
    variables: Sequence[Variable], settings: Settings, kept: dict[str, str], progress: Progress | None
) -> Iterator[PlannedVariable]:
    """Plan variables one by one; note why one of them is not planned."""
    for number, variable in enumerate(variables, 1):
        step = Step(f"planning {variable.path}", number, len(variables), "planning")
        try:
            yield planned(variable, settings, Work(progress, step))
        except TamisError as error:
            kept[variable.path] = f"not planned: {error}"


def _free(
    stores: Sequence[Store],
    variables: Sequence[Variable],
    others: Sequence[PlannedVariable],
    budget: Budget,
    settings: Settings,
    progress: Progress | None,
) -> list[PlannedVariable]:
    """Plan the variables whose errors a budget decides."""

    def work(variable: Variable) -> Work:
        number = [other.path for other in variables].index(variable.path) + 1
        return Work(progress, Step(f"planning {variable.path}", number, len(variables), "planning"))

    def look(variable: Variable) -> PlannedVariable:
        return measured(variable, settings, settings.little, work(variable))

    left = budget.left(stores, others, variables)
    return within_budget(variables, left, look, lambda variable: planned(variable, settings, work(variable)))


def _check(paths: Sequence[object], prefer: str, readers: str, sample: int | None, missing: str, storage: str) -> None:
    if not paths:
        raise ParameterError("expected at least one path, got none")
    for name, value, known in (
        ("prefer", prefer, choose.PREFERENCES),
        ("readers", readers, choose.READERS),
        ("missing", missing, POLICIES[:2]),
        ("storage", storage, STORAGES),
    ):
        if not (isinstance(value, str) and value in known):
            raise ParameterError(f"expected {name} to be one of {', '.join(known)}, got {value!r}")
    if sample is not None and (isinstance(sample, bool) or operator.index(sample) < LEAST_SAMPLE):
        raise ParameterError(f"expected a sample of {LEAST_SAMPLE} bytes or more, got {sample!r}")
