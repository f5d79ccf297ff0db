"""The result of `tamis.plan`: candidates, choices, offers and the recipe, as text, JSON and HTML."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.accuracy import WHOLE, Requirement
from tamis.formatting import percent_text, plural, printable, ratio_text, shell_line, shell_path, size_text
from tamis.jobs.plan.planned import (
    Candidate,
    Compared,
    Confirmed,
    PlannedVariable,
    Rechunked,
    Rung,
    Stored,
    parsed,
    repack_words,
)
from tamis.jobs.plan.plot import figure_of
from tamis.jobs.recipes import Recipe
from tamis.jobs.result import SCHEMA, DatasetsResult, Part, Table, json_fields, json_value, shared, title
from tamis.rewrite import Warned

if TYPE_CHECKING:
    from tamis.jobs.recipes import MissingPolicy


@dataclass(frozen=True, slots=True)
class Plan(DatasetsResult[PlannedVariable]):
    """Result of `tamis.plan`: predictions from a sample, and the recipe for `tamis.repack`, which proves its bounds.

    Parameters
    ----------
    files
        Paths of the planned files; empty for a dataset of xarray.
    datasets
        The planned variables.
    kept
        Variables that stay as they are, each with the reason.
    missing
        How missing values are treated: `tamis.repack` needs the same.
    seconds
        Duration of the planning.
    readers
        Who can read what is chosen.
    rechunked
        Other variables whose chunks are much larger than their values, with better ones.
    warnings
        Chosen bounds that are too large for the values, judging by a sample, by path or pattern.
    """

    files: tuple[str, ...]
    datasets: tuple[PlannedVariable, ...]
    kept: tuple[tuple[str, str], ...]
    missing: str
    seconds: float
    readers: str
    rechunked: tuple[Rechunked, ...] = ()
    warnings: tuple[Warned, ...] = ()

    @property
    def recipe(self) -> Recipe:
        """The recipe for `tamis.repack`, which `tamis.Recipe.dump` writes to a file."""
        missing: MissingPolicy | None = "mask" if self.missing == "mask" else None
        chunks: dict[str, Any] = dict(self.chunks)
        for variable in self.datasets:
            if variable.path in chunks and variable.dimensions:
                chunks[variable.path] = dict(zip(variable.dimensions, chunks[variable.path], strict=True))
        return Recipe(self.filters, chunks=chunks, require=self.require, missing=missing)

    @property
    def filters(self) -> dict[str, str]:
        """Filters by path, without variables that stay as they are."""
        return {variable.path: variable.filters for variable in self.datasets if variable.filters is not None}

    @property
    def chunks(self) -> dict[str, tuple[int, ...]]:
        """Chunk shapes by path, of variables that have no chunks yet, or get better ones."""
        planned = {
            variable.path: variable.chunks
            for variable in self.datasets
            if variable.filters is not None and variable.chunks
        }
        return planned | {other.path: other.chunks for other in self.rechunked if other.asked}

    @property
    def require(self) -> dict[str, str]:
        """Requirements on each value, by path, for variables with lossy filters."""
        return {
            variable.path: variable.require
            for variable in self.datasets
            if variable.filters is not None and variable.require
        }

    @property
    def candidates(self) -> dict[str, tuple[Candidate, ...]]:
        """The candidates of each variable, by path."""
        return {variable.path: variable.candidates for variable in self.datasets}

    def dump(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the recipe to a file for `tamis.Recipe.load`, with the evidence for each choice.

        Parameters
        ----------
        path
            Path of the file.
        overwrite
            Whether an existing file is replaced.

        Raises
        ------
        FileError
            If the file exists and `overwrite` is False, or it cannot be written.
        """
        chosen = (variable for variable in self.datasets if variable.chosen is not None)
        evidence = {variable.path: {**variable.evidence, "readers": self.readers} for variable in chosen}
        self.recipe.dump(path, overwrite=overwrite, evidence=evidence)

    def plot(self) -> Any:
        """Return a figure of matplotlib that notebooks show: the ratio against the largest error, and against speed.

        Each variable has a row, each candidate a point with the range of its ratio, and the chosen one a ring; a dotted
        line is the present ratio.

        Raises
        ------
        MissingFilterError
            If matplotlib is not installed.
        ParameterError
            If no variable has candidates.
        """
        return figure_of(self.datasets)

    @property
    def options(self) -> str:
        """The recipe as options of the command ``tamis repack``, ready to paste; empty without a recipe."""
        words = repack_words(self.filters, self.chunks, self.require)
        if words and self.missing != "exact":
            words += ["--missing", self.missing]
        return shell_line(words)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        recipe = {"recipe": self.filters, "chunks": self.chunks, "require": self.require, "options": self.options}
        warnings = [item._asdict() for item in self.warnings]
        return {"schema": SCHEMA, **json_fields(self), **json_value(recipe), "warnings": warnings}

    def _parts(self) -> Iterator[Part]:
        rows: list[tuple[str, ...]] = []
        for variable in self.datasets:
            rows += [] if variable.stored is None else [_stored_row(variable, variable.stored)]
            rows += [_row(variable, candidate) for candidate in variable.candidates]
            rows += [_row(variable, other) for other in variable.compared]
        yield Table([_HEADER, *rows], folded=_FOLDED, right=_RIGHT, code=_CODE, name="Candidates")
        yield from _ladders(self)
        warned = {path for path, _ in self.warnings}
        for variable in self.datasets:
            yield "", printable(f"{variable.path} ({variable.requirement}): {variable.reason}")
            if text := _left_to_sample(variable):
                yield "note", printable(f"{variable.path}: {text}")
            if variable.confirmed is not None:
                yield "note", printable(f"{variable.path}: {_confirmed(variable.confirmed, variable.chosen)}")
            for text in () if variable.path in warned else _warnings(variable):  # a warning below says the same
                yield "note", printable(f"{variable.path}: marked !: {text}")
            for offer in variable.offers:
                yield "note", printable(f"{variable.path}: offer: {offer}")
            for other in variable.compared:
                if other.problem is not None:
                    yield "note", printable(f"{variable.path}: {other.filters}: {other.problem}")
            if any(candidate.is_unstable for candidate in variable.candidates):
                yield "note", printable(f"{variable.path}: {_UNSTABLE_NOTE}")
        for path, reason in shared(self.kept):
            yield "note", printable(f"{path}: {reason}")
        for large in self.rechunked:
            yield "note", printable(f"{large.path}: {large.reason}")
        for path, text in self.warnings:
            yield "problem", printable(f"{path}: {text}")
        yield from (("note", f"not tried, because not installed: {text}") for text in _not_installed(self))
        files = printable(title(self.files)) if self.files else "dataset"
        if not (self.filters or self.chunks):
            yield "name", f"{files}: nothing to change; planned in {self.seconds:.1f} s"
            return
        sampled, nbytes = (
            sum(getattr(variable, name) for variable in self.datasets) for name in ("sampled_nbytes", "nbytes")
        )
        planned = f"{plural(len({**self.filters, **self.chunks}), 'dataset')} planned in {self.seconds:.1f} s"
        read = f"from {size_text(sampled)} of {size_text(nbytes)}"
        proves = "repack proves" if self.files else "to_netcdf proves"
        yield "name", f"{files}: {planned}, {read}; {proves} the bounds of the filters"
        if not self.files:
            yield "code", 'ds.tamis.to_netcdf("small.nc", plan.recipe)'
            return
        yield "code", f"tamis repack {_source(self)} OUT {self.options}"
        if (bounds := _bounds(self)) is not None:
            yield "code", f"tamis verify {_source(self)} OUT{bounds}"


_UNSTABLE_NOTE = (
    "versions of SZ3 do not read each other's chunks: sz3 is chosen only with --allow unstable, for files that are read"
    " with the hdf5plugin that writes them"
)
_HEADER = (
    "dataset",
    "chosen",
    "filters",
    "ratio",
    "95 % range",
    "largest error",
    "chunks without loss",
    "write MB/s here",
    "read MB/s here",
    "read by",
)
_FOLDED, _RIGHT, _CODE = (2, 9), (3, 4, 5, 6, 7, 8), (2,)


_LADDER = (
    "dataset",
    "requirement",
    "bound",
    "ratio",
    "largest error",
    "mean",
    "smallest",
    "largest",
    "gradients",
    "filters",
)


def _ladders(plan: Plan) -> Iterator[Part]:
    """Yield the bounds by the noise of each variable, with lines to paste."""
    rungs = [(variable, rung) for variable in plan.datasets for rung in variable.ladder]
    if not rungs:
        return
    yield "", ""
    yield (
        "name",
        "Error bounds from the noise of each variable, and what they change; paste the line of one you can afford",
    )
    rows = [_rung_row(variable, rung) for variable, rung in rungs]
    yield Table([_LADDER, *rows], folded=(9,), right=range(3, 9), code=(9,), name="Ladder")
    for variable, rung in rungs:
        if plan.files:
            yield "code", f"tamis repack {_source(plan)} OUT {rung.options}"
        else:
            yield "code", f"ds.tamis.plan({{{variable.path!r}: {rung.requirement!r}}})"
        for text in rung.warnings:
            yield "note", printable(f"{variable.path} ({rung.requirement}): marked !: {text}")
    yield "", ""


def _rung_row(variable: PlannedVariable, rung: Rung) -> tuple[str, ...]:
    changes = (f"{value:+.2g}" if value else "0" for value in (rung.mean, rung.low, rung.high))
    error = f"{rung.largest_error:.3g}{' !' * bool(rung.warnings)}"
    return (
        *(printable(variable.path), rung.requirement, rung.about, ratio_text(rung.ratio), error),
        *changes,
        percent_text(rung.gradient),
        rung.filters.replace("|", "\n"),
    )


def _warnings(variable: PlannedVariable) -> Iterator[str]:
    """Yield the warnings about errors of candidates, each once; of the chosen candidate alone if there is one."""
    marked = [variable.chosen] if variable.chosen is not None else [*variable.candidates]
    yield from dict.fromkeys(text for candidate in marked for text in candidate.warnings)


def _stored_row(variable: PlannedVariable, stored: Stored) -> tuple[str, ...]:
    """Return the row of what is there now, first of its variable's."""
    mark = "as stored" if variable.filters is not None else "* as stored"
    filters = stored.filters.replace("|", "\n")
    return (printable(variable.path), mark, filters, ratio_text(stored.ratio), "", "0", "", "", "", stored.read_by)


def _bounds(plan: Plan) -> str | None:
    """Return options of ``tamis verify`` for the losses; None if a filter records no bound, and none is given."""
    words: list[str] = []
    for path, filters in plan.filters.items():
        bound = Requirement.parse(plan.require[path]).abs if path in plan.require else None
        pipeline = parsed(filters)
        if bound is not None:
            words += ["--bound", f"{path}:{bound!r}"]
        elif pipeline.error_bound is None and pipeline.rounding is None:
            return None
        elif pipeline.error_bound != 0 and "recorded" not in words:
            words[:0] = ["--bound", "recorded"]
    return f" {shell_line(words)}" if words else ""


def _not_installed(plan: Plan) -> Iterator[str]:
    """Yield filters that were not measured because a package is not installed, with the command that installs it."""
    names: dict[str, dict[str, None]] = {}
    for variable in plan.datasets:
        for filters, reason in variable.refused:
            for item in parsed(filters).filters:
                if (missing := item.missing()) and missing in reason:
                    names.setdefault(item.install, {})[item.name] = None
    return (f"{', '.join(absent)}: {install}" for install, absent in names.items())


def _confirmed(confirmed: Confirmed, chosen: Candidate | None) -> str:
    predicted = f" ({ratio_text(chosen.ratio)} predicted)" if chosen is not None else ""
    reached = [f"ratio {ratio_text(confirmed.ratio)}{predicted}", f"largest error {confirmed.largest_error:.3g}"]
    reached += [f"{name} {value:.9g}" for name, value in confirmed.measures if value is not None]
    return f"confirmed on all values: {', '.join(reached)}{'' if confirmed.ok else f'; not kept: {confirmed.missed}'}"


def _source(plan: Plan) -> str:
    return shell_path(plan.files[0]) if len(plan.files) == 1 else "IN"


def _row(variable: PlannedVariable, item: Candidate | Compared) -> tuple[str, ...]:
    numbers = ((item.largest_error, ".3g"), (item.write_mbs, ".0f"), (item.read_mbs, ".0f"))
    error, write, read = ("" if value is None else format(value, form) for value, form in numbers)
    error += " !" if isinstance(item, Candidate) and item.warnings else ""
    sizes = ratio_text(item.ratio), "" if item.ratio is None else _range(item), error
    name, filters = printable(variable.path), item.filters.replace("|", "\n")
    if isinstance(item, Compared):
        return (name, "compared", filters, *sizes, "", write, read, "hdf5plugin")
    chosen = "*" if item.filters == variable.filters else "unstable" if item.is_unstable else "offer" * bool(item.needs)
    fallbacks = percent_text(item.fallbacks) if item.fallbacks else ""
    return (name, chosen, filters, *sizes, fallbacks, write, read, item.read_by)


def _range(candidate: Candidate | Compared) -> str:
    low, high = candidate.ratio_low, candidate.ratio_high
    return f"{ratio_text(low)}-{ratio_text(high)}" if high is not None and math.isfinite(high) else "unknown"


def _left_to_sample(variable: PlannedVariable) -> str:
    """Return which parts of a requirement the recipe does not have, in words; empty if it has all."""
    parts = [part for part in variable.requirement.split(",") if part.partition("=")[0] in WHOLE]
    if not parts or variable.filters is None or variable.confirmed is not None:
        return ""
    return (
        f"{', '.join(parts)}: measured on the sample, and not in the recipe, because the whole variable may miss it"
        " narrowly: add it to require (--require) of repack, which proves it, or let plan try it (--confirm)"
    )
