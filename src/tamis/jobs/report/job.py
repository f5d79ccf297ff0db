"""Report on a file and its source: statistics of each variable in one pass, then maps of some fields."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis import meaning
from tamis.accuracy import Requirement
from tamis.arguments import CALLBACK, NAMES, PATH, WHOLE, WHOLES, Kind
from tamis.arrays import checked_threads
from tamis.errors import ParameterError, TamisError
from tamis.formats import open_packed
from tamis.formatting import shell_line, size_text
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipes import Names, Recipe, assigned
from tamis.jobs.report.findings import verdict_of
from tamis.jobs.report.profiler import Profiler
from tamis.jobs.report.result import Report
from tamis.jobs.report.variable import VariableReport, Wishes, has_step, with_rates
from tamis.jobs.result import VERSION
from tamis.jobs.verify import RECORDED, Bound, Bounds, FileComparison, checked_bounds, losses_of, take_in_as
from tamis.pipeline import as_pipeline
from tamis.safety import reading, sha256_of
from tamis.stores import size_of

if TYPE_CHECKING:
    from tamis.jobs.report.reported import Reported
    from tamis.jobs.verify import Compared, Finding
    from tamis.stores import Store, StoredArray

USUAL_BUDGET = 2_000_000
"""Bytes of the page."""

_MOST_MEASURED = 10
"""Variables for which alternatives are measured, half a second each."""

_MOST_HISTORY = 2000

_VALUES = ("bound", "bits", "missing-values", "valid-range", "values", "shape", "type", "missing-dataset")
"""Codes of verify's violations that mean that values are not as they should be; others are shown, and do not count."""

_RECIPE = Kind("a tamis.Recipe or the path of one", lambda value: PATH.fits(value) or isinstance(value, Recipe))


def _is_time(value: Any) -> bool:
    if isinstance(value, str):
        return value == "worst"
    return isinstance(value, Sequence) and len(value) > 0 and WHOLES.fits(value)


_TIMES = Kind(
    "'worst' or indices such as (0, 5)",
    _is_time,
)


def report(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    variables: Iterable[str] = (),
    *,
    recipe: Recipe | str | os.PathLike[str] | None = None,
    bounds: Bounds | None = None,
    time: str | Sequence[int] = "worst",
    also: str | Sequence[str] = (),
    budget: int = USUAL_BUDGET,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Report what compression did to the variables of a file, as one page to show.

    The values of both files are compared as by `tamis.verify`, in blocks of bounded memory, which give all other
    statistics, too; fields of interest are then read once more for maps.

    Parameters
    ----------
    source, target
        Paths of the files; neither is changed.
    variables
        Names of datasets, or patterns such as ``/group/*``, to report only those; by default all.
    recipe
        The recipe of the target, whose requirements are checked: a `Recipe`, or the path of its file.
    bounds
        Largest absolute error by dataset name or pattern, as for `tamis.verify`. Without one, a dataset keeps the bound
        that the filters of the target record; if they record none, nothing is asked of it.
    time
        Maps of which fields: ``worst`` for that with the largest error and one more, or indices along the first axis.
    also
        More alternatives for the chart of ratios and errors, as text of filters such as ``zfp(accuracy=0.5)``.
    budget
        Most bytes of the page; variables of less interest lose their maps if it would be larger.
    threads
        Number of threads; by default as many as the process may use. The result does not depend on it.
    progress
        Called with the step, the finished work and the total work.

    Returns
    -------
    Report
        The statistics; `Report.save` writes the page, `to_json` returns the numbers.

    Raises
    ------
    FileError
        If one is not a file that tamis reads, or damaged, or a name matches nothing.
    ParameterError
        If an argument is invalid.

    Examples
    --------
    >>> result = report("examples/data/cam_ts.nc", "examples/data/cam_ts.nc")
    >>> result.ok, result["TS"].outcome
    (True, 'same bits')
    """
    PATH.check("source", source)
    PATH.check("target", target)
    NAMES.check("variables", variables)
    _RECIPE.check_optional("recipe", recipe)
    limits = _all_bounds(bounds)
    _TIMES.check("time", time)
    NAMES.check("also", also)
    WHOLE.check("budget", budget)
    CALLBACK.check_optional("progress", progress)
    threads = checked_threads(threads)
    if budget < 0:
        raise ParameterError(f"expected a budget of 0 bytes or more, got {budget}")
    more = tuple(str(as_pipeline(text)) for text in ((also,) if isinstance(also, str) else also))
    own = recipe if isinstance(recipe, Recipe | None) else Recipe.load(recipe)
    wishes = Wishes(time, more, threads, progress or (lambda *_: None))
    drop = own.drop if own else ()
    names = [variables] if isinstance(variables, str) else [*variables]
    with open_packed(source) as before, open_packed(target) as after, reading(source, target):
        take_in_as(before, after)
        required = _required(own, before)
        profilers: dict[str, Profiler] = {}

        def observe(compared: Compared, one: StoredArray, other: StoredArray) -> Profiler | None:
            if not size_of(one) or compared.path in comparison.repeated:
                return None
            profiler = Profiler(one, other, required.get(compared.path), threads)
            if profiler.blocks.repeats > 1 and not (compared.bound or compared.relative_bound):
                return None  # read in fields only if it changed, which is not expected
            profilers[compared.path] = profiler
            return profiler

        comparison = FileComparison.of(before, after, limits, names, drop, threads, progress, observe)
        comparison.losses = losses_of(target, limits)
        if not isinstance(time, str):
            _check_times(time, [before.array(path).shape for path in comparison.paths])
        reported: list[Reported] = []
        for compared in comparison.run():
            if compared.path in comparison.repeated:
                continue  # its values are those of another path
            found = _own_violations(comparison.violations, compared, before, required.get(compared.path))
            step = Step(f"reporting {compared.path}", len(reported) + 1, len(comparison.paths))
            profiler = profilers.pop(compared.path, None)
            variable = VariableReport(
                before, after, compared, required.get(compared.path), found, wishes, step, profiler
            )
            reported.append(variable.result())
        datasets = _with_rates(before, after, reported, wishes)
        provenance = _provenance_of(before, after, own, wishes.progress)
    verification = comparison.result(source, target)
    absent = [finding for finding in verification.violations if finding.code == "missing-dataset"]
    others = tuple(finding for finding in verification.violations if finding.code not in _VALUES)
    return Report(
        verification.source,
        verification.target,
        datasets,
        verdict_of(verification.target, datasets, absent, verification.problems, provenance),
        not (absent or verification.problems or any(dataset.missed for dataset in datasets)),
        (*absent, *others),
        verification.problems,
        provenance,
        budget,
    )


def _with_rates(before: Store, after: Store, reported: Sequence[Reported], wishes: Wishes) -> tuple[Reported, ...]:
    """Return the reports, with alternatives for the largest variables that changed."""
    changed = [dataset for dataset in reported if dataset.charts]
    largest = sorted(changed, key=lambda dataset: -dataset.nbytes)[:_MOST_MEASURED]
    numbers = {dataset.path: number for number, dataset in enumerate(largest)}
    datasets = []
    for dataset in reported:
        if dataset.path in numbers:
            wishes.progress("measuring alternatives", numbers[dataset.path], len(numbers))
            datasets.append(with_rates(before, after, dataset, wishes.also))
        else:
            datasets.append(dataset)
    return tuple(datasets)


def _all_bounds(bounds: Bounds | None) -> Bounds:
    """Return given bounds, and recorded ones for all other datasets."""
    given = checked_bounds(bounds)
    if isinstance(given, str):
        return given
    limits: dict[str, Bound] = dict(given)
    return {**limits, "*": limits.get("*", RECORDED)} if limits else RECORDED


def _required(recipe: Recipe | None, store: Store) -> dict[str, Requirement]:
    """Return the requirement of each dataset."""
    found: dict[str, Requirement] = {}
    if recipe is not None:
        for item in assigned(recipe.require, Names(store, optional=True).match_any):
            found.setdefault(item.path, item.value)
    return found


def _check_times(time: Sequence[int], shapes: Iterable[tuple[int, ...] | None]) -> None:
    """Raise ParameterError if no variable has any of the steps: the page would have none of the maps asked for."""
    lengths = [shape[0] for shape in shapes if shape is not None and len(shape) > 2]
    if any(has_step(length, at) for at in time for length in lengths):
        return
    names = ", ".join(map(str, time))
    if not lengths:
        raise ParameterError(
            f"expected a variable with three or more axes for maps of the steps {names} (time), found none"
        )
    raise ParameterError(
        f"expected steps that a variable has (time), got {names}: the longest variable has {max(lengths)} steps, from 0"
    )


def _own_violations(
    violations: Iterable[Finding], compared: Compared, store: Store, required: Requirement | None
) -> list[Finding]:
    """Return the violations of a dataset's values, without changes of values that had no requirement."""
    own = [finding for finding in violations if finding.path == compared.path and finding.code in _VALUES]
    role = store.roles.get(compared.path)
    is_free = compared.recorded and not compared.bound and (required is not None or role is None or not role.is_exact)
    return [finding for finding in own if not (finding.code == "bits" and is_free)]


def _provenance_of(source: Store, target: Store, recipe: Recipe | None, progress: Progress) -> dict[str, str]:
    """Return facts by name."""
    facts: dict[str, str] = {}
    elsewhere = []
    for number, (name, store) in enumerate((("source", source), ("target", target))):
        progress("checksums", number, 2)
        facts[name] = store.path
        facts[f"size of {name}"] = f"{store.nbytes} bytes ({size_text(store.nbytes)})"
        if checksum := _checksum(store.path):
            facts[f"sha256 of {name}"] = checksum
        elsewhere += [] if checksum else [name]
    if elsewhere:
        facts["sha256"] = f"not computed of what is read in parts over a network: {' and '.join(elsewhere)}"
    progress("checksums", 2, 2)
    if history := _history(target):
        facts["history of target"] = history
    if recipe is not None:
        facts["recipe"] = str(recipe)
    command = [Path(sys.argv[0]).name, *sys.argv[1:]] if "tamis_command" in sys.modules else []
    if command:
        facts["command"] = shell_line(command)
    facts["tamis"] = VERSION
    facts["Python, NumPy"] = f"{platform.python_version()}, {np.__version__}"
    facts["system"] = platform.platform()
    return facts


def _checksum(path: str) -> str:
    """Return the SHA-256 of a file or folder here; empty for others, which would have to be read whole."""
    if not os.path.exists(path):
        return ""
    with suppress(OSError):
        return sha256_of(Path(path))
    return ""


def _history(store: Store) -> str:
    with suppress(TamisError, KeyError):
        attributes: Any = store.model.group("/").attributes
        return meaning.text(attributes, "history")[:_MOST_HISTORY]
    return ""
