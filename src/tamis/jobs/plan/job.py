"""Plan filters that meet requirements: measure candidates on a sample of each variable, and choose."""

from __future__ import annotations

import math
import operator
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.accuracy import AT_MOST, Requirement
from tamis.accuracy import WHOLE as MEASURES
from tamis.arguments import CALLBACK, FLAG, MAPPING, NAMES, NUMBER, PATHS, WHOLE
from tamis.errors import BoundError, ParameterError, TamisError
from tamis.formats import open_packed
from tamis.formatting import size_text
from tamis.jobs.plan.choices import (
    CHUNK_CHOICES,
    MISSING,
    PREFERENCES,
    READERS,
    RISKS,
    STORAGES,
    ChunkChoice,
    Preference,
    Readers,
    StorageName,
)
from tamis.jobs.plan.chunk_shapes import as_access
from tamis.jobs.plan.foreign_filters import foreign_names
from tamis.jobs.plan.planned import Confirmed, PlannedVariable
from tamis.jobs.plan.planner import (
    LEAST_SAMPLE,
    USUAL_SAMPLE,
    Settings,
    Work,
    measured,
    planned,
    rechunked,
    variables_of,
)
from tamis.jobs.plan.requirements import PlanRequirement, as_plan_requirement
from tamis.jobs.plan.result import Plan
from tamis.jobs.plan.sample import ALL
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipes import MissingPolicy, Recipe
from tamis.jobs.repack import repack
from tamis.old_names import current_value, takes_old_keywords
from tamis.rewrite import Warned, rounded_bounds
from tamis.safety import reading
from tamis.stores import values_nbytes_of

if TYPE_CHECKING:
    from tamis.jobs.plan.candidates import VariableToPlan
    from tamis.jobs.repack import Repacked, RepackResult
    from tamis.pipeline import Pipeline
    from tamis.stores import Store, StoredArray


@dataclass(slots=True)
class _Total:
    """The totals of all files for one variable."""

    nbytes: int = 0
    stored: int = 0
    error: float = 0.0
    measures: dict[str, float | None] = field(default_factory=dict)
    missed: str | None = None

    def add(self, result: Repacked) -> None:
        self.nbytes += result.nbytes
        self.stored += result.target_nbytes + result.missing_mask_nbytes
        self.error = max(self.error, result.largest_error)
        for word, value in result.measures.items():
            self.measures[word] = _worse(word, self.measures.get(word), value)


def _worse(word: str, one: float | None, other: float | None) -> float | None:
    """Return the worse of two values of a measure, of which one may be None."""
    known = [value for value in (one, other) if value is not None]
    return (max if word in AT_MOST else min)(known, default=None)


def confirmed(plan: Plan, requirements: Mapping[str, PlanRequirement], progress: Progress | None) -> Plan:
    """Return a plan with the result of repack for each variable.

    Each file is repacked into a temporary folder, which needs space for the largest result, and is removed.
    """
    recipe = plan.recipe
    if not plan.filters:
        return plan
    measured = _measured(plan, requirements)
    totals = {path: _Total() for path in plan.filters}
    with TemporaryDirectory(prefix="tamis-plan-") as folder:
        for path in plan.files:
            target = Path(folder) / f"confirmed{Path(path).suffix}"
            for result in _repacked(path, target, recipe, measured, totals, progress).datasets:
                if result.path in totals:
                    totals[result.path].add(result)
            shutil.rmtree(target) if target.is_dir() else target.unlink()
    return replace(
        plan,
        datasets=tuple(
            replace(variable, confirmed=_confirmed(totals[variable.path])) if variable.path in totals else variable
            for variable in plan.datasets
        ),
    )


def _measured(plan: Plan, requirements: Mapping[str, PlanRequirement]) -> dict[str, Requirement]:
    """Return the requirements of variables with measures of whole datasets."""
    measured = [path for path in plan.filters if not requirements[path].limits.keys().isdisjoint(MEASURES)]
    required = ((path, requirements[path].required(measures=True)) for path in measured)
    return {path: requirement for path, requirement in required if requirement is not None}


def _repacked(
    path: str,
    target: Path,
    recipe: Recipe,
    measured: Mapping[str, Requirement],
    totals: Mapping[str, _Total],
    progress: Progress | None,
) -> RepackResult:
    """Repack a file with required measures, then without missed ones, because a run ends at the first miss."""
    left = dict(measured)
    while left:
        require = {**recipe.require, **left}
        demanding = Recipe(recipe.filters, chunks=recipe.chunks, require=require, missing=recipe.missing)
        try:
            return repack(path, target, demanding, progress=progress)
        except BoundError as error:
            texts = str(error).split("; ")  # one for each measure; /T is not part of /group/T
            missed = {name: [text for text in texts if text.startswith(f"{name}: expected")] for name in left}
            for name, own in missed.items():
                totals[name].missed = totals[name].missed or "; ".join(own) or None
            left = {name: value for name, value in left.items() if any(missed.values()) and not missed[name]}
    return repack(path, target, recipe, progress=progress)


def _confirmed(total: _Total) -> Confirmed:
    ratio = total.nbytes / total.stored if total.stored else 0.0
    return Confirmed(ratio, total.error, tuple(total.measures.items()), total.missed)


FREE = PlanRequirement({"range": 1.0})
"""What is required of variables whose errors a budget decides."""

_FINEST = 30
"""Range over error, as a power of two, beyond which values are rather stored without loss."""


class Budget(NamedTuple):
    """The limit for all variables together: bytes of values per stored byte, or stored bytes."""

    ratio: float | None = None
    nbytes: int | None = None

    @property
    def is_given(self) -> bool:
        """True if there is a limit."""
        return self.ratio is not None or self.nbytes is not None

    def check(self, requirements: Mapping[str, PlanRequirement]) -> None:
        """Raise ParameterError for an invalid budget, or one that leaves nothing to decide."""
        if self.ratio is not None and self.nbytes is not None:
            raise ParameterError("ratio and size cannot be combined")
        for name, value in (("ratio", self.ratio), ("size", self.nbytes)):
            if value is not None and (isinstance(value, bool) or not 0 < value < math.inf):
                raise ParameterError(f"expected a {name} above 0, got {value!r}")
        if self.is_given and "*" in requirements:
            raise ParameterError(
                "expected either a requirement for '*', or a ratio or size for variables without one, got both"
            )

    def left(
        self, stores: Sequence[Store], planned: Sequence[PlannedVariable], free: Sequence[VariableToPlan]
    ) -> float:
        """Return the bytes left for variables, after those that are planned or stay unchanged."""
        counted = {variable.path for variable in planned} | {variable.path for variable in free}
        arrays = [
            (path, array) for store in stores for path, array in store.arrays.items() if array.type.dtype is not None
        ]
        kept = sum(array.stored_nbytes for path, array in arrays if path not in counted)
        if self.nbytes is not None:
            allowed = float(self.nbytes)
        else:
            allowed = sum(values_nbytes_of(array) for _, array in arrays) / (self.ratio or math.inf)
        return allowed - kept - sum(map(predicted_nbytes, planned))


def predicted_nbytes(planned: PlannedVariable) -> float:
    """Return the bytes that a variable takes according to its plan."""
    chosen = planned.chosen
    return planned.nbytes / ((planned.source_ratio or 1.0) if chosen is None else chosen.ratio)


def within_budget(
    free: Sequence[VariableToPlan],
    left: float,
    look: Callable[[VariableToPlan], PlannedVariable],
    plan: Callable[[VariableToPlan], PlannedVariable],
) -> list[PlannedVariable]:
    """Plan variables so that they fit, with the smallest error relative to the range of each."""

    @cache
    def nbytes(power: int) -> float:
        return sum(predicted_nbytes(look(_requiring(variable, power))) for variable in free)

    low, high = 0, _FINEST + 1
    if nbytes(high) <= left:
        low = high
    while high - low > 1:  # all fit with the errors of the power `low`, unless that is 0
        middle = (low + high) // 2
        low, high = (middle, high) if nbytes(middle) <= left else (low, middle)
    for power in range(low, 0, -1):
        planned = [plan(_requiring(variable, power)) for variable in free]
        total = sum(map(predicted_nbytes, planned))
        if total <= left:
            note = (
                f"; with this error relative to their ranges, all variables without a requirement take "
                f"{size_text(round(total))}"
            )
            return [variable.with_note(f"{note} of the {size_text(round(left))} allowed") for variable in planned]
    raise ParameterError(
        f"expected a budget that can be met: {size_text(round(max(left, 0)))} is left for variables without a"
        f" requirement, but they take {size_text(round(nbytes(1)))} even with errors of half their ranges: allow more"
        " bytes, or require less"
    )


def _requiring(variable: VariableToPlan, power: int) -> VariableToPlan:
    """Return a variable with such a small required error; lossless beyond the finest one."""
    return variable._replace(
        requirement=PlanRequirement({"range": 2.0**-power}) if power <= _FINEST else PlanRequirement()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The keywords of `plan`, which says what they mean, checked."""

    prefer: Preference = "size"
    readers: Readers = "netcdf"
    sample: int | None = USUAL_SAMPLE
    missing: MissingPolicy = "exact"
    access: object = None
    storage: StorageName = "disk"
    chunks: ChunkChoice | None = None
    allow: str | Collection[str] = ()
    ratio: float | None = None
    size: int | None = None
    confirm: bool = False
    compare: str | Collection[str] = ()
    progress: Progress | None = None

    def __post_init__(self) -> None:
        WHOLE.check_optional("sample", self.sample)
        NUMBER.check_optional("ratio", self.ratio)
        NUMBER.check_optional("size", self.size)
        FLAG.check("confirm", self.confirm)
        NAMES.check("compare", self.compare)
        NAMES.check("allow", self.allow)
        CALLBACK.check_optional("progress", self.progress)
        object.__setattr__(self, "missing", current_value("missing", self.missing))
        if self.sample is not None and (isinstance(self.sample, bool) or operator.index(self.sample) < LEAST_SAMPLE):
            raise ParameterError(f"expected a sample of {LEAST_SAMPLE} bytes or more, got {self.sample!r}")
        if self.storage != "disk" and self.access is None:
            raise ParameterError(
                f"storage {self.storage!r} needs access (--access), because it matters only for the choice of chunk"
                " shapes"
            )
        for name, value, known in (
            ("prefer", self.prefer, PREFERENCES),
            ("readers", self.readers, READERS),
            ("missing", self.missing, MISSING),
            ("storage", self.storage, STORAGES),
            ("chunks", self.chunks, (*CHUNK_CHOICES, None)),
            *(("allow", risk, RISKS) for risk in self._risks),
        ):
            if not ((isinstance(value, str) or value is None) and value in known):
                raise ParameterError(f"expected {name} to be one of {', '.join(filter(None, known))}, got {value!r}")
        if self.chunks is not None and self.access is not None:
            raise ParameterError(
                "access and chunks cannot be combined, because each says how the chunk shape is chosen"
            )

    @property
    def _risks(self) -> tuple[Any, ...]:
        return (self.allow,) if isinstance(self.allow, str) else tuple(self.allow)

    @property
    def settings(self) -> Settings:
        """The settings for all variables."""
        return Settings(
            self.prefer,
            self.readers,
            ALL if self.sample is None else self.sample,
            None if self.access is None else as_access(self.access),
            self.storage,
            foreign_names(self.compare),
            self.chunks,
            self._risks,
        )


@takes_old_keywords("plan")
def plan(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    require: Mapping[str, object] | None = None,
    *,
    prefer: Preference = "size",
    readers: Readers = "netcdf",
    sample: int | None = USUAL_SAMPLE,
    missing: MissingPolicy = "exact",
    access: object = None,
    storage: StorageName = "disk",
    chunks: ChunkChoice | None = None,
    allow: str | Collection[str] = (),
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
    require
        What to preserve, by name or pattern: text such as ``abs=0.1,psnr=80``, values by word, or ``lossless``; the
        result must meet all limits of a text. Exact names take precedence over patterns. Coordinates, bounds, flags,
        integers and the like stay lossless unless they are named. By default everything stays lossless.
    prefer
        ``size`` for the best ratio, where among similar ones readers and speed decide; ``archive`` for the best ratio
        alone; ``speed`` for the fastest with at least two thirds of it.
    readers
        Who must be able to read the result: ``any`` program that has HDF5; ``netcdf`` for HDF5 by itself, szip
        included, and so for netCDF-C and h5py (and for zarr-python, if the source is a Zarr store);
        ``netcdf-plugins`` for netCDF-C with its own plugins; ``zfp`` for HDF5 with that plugin; ``hdf5plugin`` for
        Python with that package; ``zarr`` for zarr-python; ``all`` for whoever installs what is needed. Candidates for
        other readers with a better ratio are listed as offers, and not chosen.
    sample
        Most bytes to read of each variable; at least one chunk of each file is read. None: all values, a chunk at a
        time.
    missing
        How `tamis.repack` will treat missing values: ``exact``, or ``mask`` for a missing-value mask.
    access
        How the values are read: ``series``, ``map``, ``whole``, shares such as ``series=0.7,map=0.3``, or a box such as
        ``box:time=10,lat=96``, with all values along other dimensions. Plan then also chooses the chunk shape. None:
        chunks stay.
    storage
        Where values are read from: ``disk``, ``lustre`` or ``s3``.
    chunks
        ``auto``: choose the chunk shape with the best ratio from several. ``keep``: chunks stay. None: ``auto`` for
        variables without chunks, if `access` is not given.
    allow
        ``unstable``: also choose sz3, whose versions do not read each other's chunks.
    ratio, size
        Bytes of values per stored byte, or stored bytes, over all files. Variables without a requirement get the
        smallest error, relative to the range of each, for which this is predicted.
    confirm
        Whether to try the result on all values: each file is repacked into a temporary folder, which is then removed.
    compare
        ``sz3`` or ``sperr`` (extra ``hdf5plugin``), to measure with the absolute error that meets the requirement,
        whatever that is, and without a proof. The result lists them next to the candidates; they are never chosen.
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
    PATHS.check("path", path)
    paths = [path] if isinstance(path, str | bytes | os.PathLike) else [*path]
    if not paths:
        raise ParameterError("expected at least one path, got none")
    options = PlanOptions(
        prefer=prefer,
        readers=readers,
        sample=sample,
        missing=missing,
        access=access,
        storage=storage,
        chunks=chunks,
        allow=allow,
        ratio=ratio,
        size=size,
        confirm=confirm,
        compare=compare,
        progress=progress,
    )
    return plan_stores(lambda: map(open_packed, paths), tuple(map(os.fsdecode, paths)), require, options)


def plan_stores(
    open_stores: Callable[[], Iterable[Store]],
    files: tuple[str, ...],
    require: Mapping[str, object] | None,
    options: PlanOptions,
) -> Plan:
    """Plan filters for the variables of open stores; see `plan`.

    Parameters
    ----------
    open_stores
        Opens the stores, after all arguments are checked; they are closed at the end.
    files
        Their paths; empty if there are none.
    require, options
        The arguments of `plan`.
    """
    MAPPING.such_as("{'TS': 'abs=0.1'}").check_optional("require", require)
    begin = time.perf_counter()
    asked = {name: as_plan_requirement(value) for name, value in (require or {}).items()}
    budget, progress = Budget(options.ratio, options.size), options.progress
    budget.check(asked)
    if budget.is_given and options.chunks == "auto":
        raise ParameterError(
            "ratio and size cannot be combined with chunks='auto', because they decide errors in the "
            "present chunks: repack into other chunks first, or give access"
        )
    keeps_chunks = options.chunks == "keep"
    settings = options.settings._replace(ladders=not asked and not budget.is_given)
    if budget.is_given:
        settings = settings._replace(chunks="keep")
    with ExitStack() as opened:
        stores = [opened.enter_context(store) for store in open_stores()]
        required = {**asked, "*": FREE} if budget.is_given else asked
        with reading(*files):
            variables, kept = variables_of(stores, required, options.missing, keeps_chunks=keeps_chunks)
        if settings.access is not None and variables:
            settings.access.check(dict.fromkeys(name for variable in variables for name in variable.dimensions or ()))
        fixed = [variable for variable in variables if variable.requirement is not FREE]
        results = [*_each(fixed, settings, kept, progress)]
        if budget.is_given:
            free = [variable for variable in variables if variable.requirement is FREE]
            results += _free(stores, free, results, budget, settings, progress)
        others = () if keeps_chunks else rechunked(stores, [result.path for result in results], kept)
        warnings = _warnings(variables, results)
    found = Plan(files, tuple(results), tuple(kept.items()), options.missing, 0.0, options.readers, others, warnings)
    if options.confirm:
        found = confirmed(found, {variable.path: variable.requirement for variable in variables}, progress)
    return replace(found, seconds=time.perf_counter() - begin)


def _each(
    variables: Sequence[VariableToPlan], settings: Settings, kept: dict[str, str], progress: Progress | None
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
    variables: Sequence[VariableToPlan],
    others: Sequence[PlannedVariable],
    budget: Budget,
    settings: Settings,
    progress: Progress | None,
) -> list[PlannedVariable]:
    """Plan the variables whose errors a budget decides."""

    def work(variable: VariableToPlan) -> Work:
        number = [other.path for other in variables].index(variable.path) + 1
        return Work(progress, Step(f"planning {variable.path}", number, len(variables), "planning"))

    def look(variable: VariableToPlan) -> PlannedVariable:
        return measured(variable, settings, settings.little, work(variable))

    left = budget.left(stores, others, variables)
    return within_budget(variables, left, look, lambda variable: planned(variable, settings, work(variable)))


_MOST_FILES = 3
"""Files of a plan whose values are compared with the bounds."""


def _warnings(variables: Sequence[VariableToPlan], results: Sequence[PlannedVariable]) -> tuple[Warned, ...]:
    """Return warnings about chosen bounds that are too large for the values, in one of the first files."""
    chosen = {result.path: result.chosen.pipeline for result in results if result.chosen is not None}
    asked = [variable for variable in variables if variable.path in chosen]
    warnings: dict[str, Warned] = {}
    for number in range(_MOST_FILES):
        bounds: dict[str, float] = {}
        arrays: dict[str, StoredArray] = {}
        for variable in asked:
            bound = _absolute_bound(variable, chosen[variable.path])
            if bound and number < len(variable.arrays):
                bounds[variable.path], arrays[variable.path] = bound, variable.arrays[number]
        patterns = {variable.path: variable.pattern for variable in asked if variable.pattern}
        for warning in rounded_bounds(bounds, arrays, patterns):
            warnings.setdefault(warning.path, warning)
    return tuple(warnings.values())


def _absolute_bound(variable: VariableToPlan, filters: Pipeline) -> float | None:
    """Return the largest absolute error of chosen filters, in units of the variable; None if they have none."""
    if "abs" in variable.requirement.limits:
        return None if filters.error_bound == 0 and filters.rounding is None else variable.requirement.limits["abs"]
    if filters.rounding is not None:
        return filters.rounding.absolute_bound
    return filters.bound or filters.error_bound
