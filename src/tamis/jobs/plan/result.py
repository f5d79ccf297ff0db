"""The result of `tamis.plan`: candidates, choices, offers and the recipe, as text, JSON and HTML."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis import _native
from tamis.accuracy.requirement import Requirement
from tamis.formatting import percent_text, plural, printable, ratio_text, shape_text, shell_line, shell_path, size_text
from tamis.jobs.result import SCHEMA, DatasetsResult, Fields, Part, Table, json_fields, json_value, shared, title
from tamis.old_names import has_old_keys
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tamis.jobs.recipes.policies import MissingPolicy
    from tamis.jobs.recipes.saved_recipe import Evidence, Recipe
    from tamis.rewrite.coarse_bounds import Warned

_SURE = 1.1
_FACTOR = 1.03
"""What filters save beyond others differs by up to this factor between parts of a variable, in 95 of 100 cases."""


_parsed = lru_cache(maxsize=256)(Pipeline.parse)  # each candidate is compared with all others


@dataclass(frozen=True, slots=True)
class Candidate:
    """Filters that meet the requirement for a variable on the sample, and their costs.

    Parameters
    ----------
    filters
        The filters, as `tamis.repack` takes them.
    ratio, ratio_low, ratio_high
        Predicted bytes of values per stored byte, and the range with a probability of 95 %, judging by the sample.
    largest_error
        Largest absolute error on the sample, in units of the variable.
    write_mbs, read_mbs
        Megabytes of values per second in one thread, as measured here in this run; writing is like `tamis.repack`,
        which decodes and compares. They are shown, and decide nothing: the choice is by fixed classes of cost.
    read_by
        Which readers can read the result.
    fallbacks
        Share of the chunks that are stored without loss, because zfp cannot keep their values.
    needs
        What readers must have that the named readers lack; empty if these can read it. Only candidates without needs
        are chosen.
    warnings
        Why the error is large for these values: beyond a tenth of the standard deviation, or more than 1 % of the
        values that are not zero become zero.
    """

    filters: str
    ratio: float
    ratio_low: float
    ratio_high: float
    largest_error: float
    write_mbs: float
    read_mbs: float
    read_by: str
    fallbacks: float
    needs: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def pipeline(self) -> Pipeline:
        """The filters as objects."""
        return _parsed(self.filters)

    def scaled(self, other: Candidate, better: Candidate) -> Candidate:
        """Return this candidate with a better estimate of the ratio, from a better measured one.

        Parameters
        ----------
        other, better
            The other candidate, measured on the same chunks as this one, and on more of them.
        """
        factor = self.ratio / other.ratio
        return replace(
            self,
            ratio=better.ratio * factor,
            ratio_low=better.ratio_low * factor / _FACTOR,
            ratio_high=better.ratio_high * factor * _FACTOR,
            fallbacks=better.fallbacks,
        )

    @property
    def is_unstable(self) -> bool:
        """True if later versions of a filter may not read what it stores."""
        return not all(item.stable for item in self.pipeline.filters)

    @property
    def is_uncertain(self) -> bool:
        """True if the ratio may be larger by 10 % or more."""
        return self.ratio_high > _SURE * self.ratio


@dataclass(frozen=True, slots=True)
class Stored:
    """What a variable is stored as now, in the first of several files.

    Parameters
    ----------
    filters
        The filters; ``none`` without any.
    ratio
        Bytes of values per stored byte, in all files; None if no bytes are stored.
    nbytes
        Stored bytes, in all files.
    read_by
        Which readers can read them.
    """

    filters: str
    ratio: float | None
    nbytes: int
    read_by: str


@has_old_keys
@dataclass(frozen=True, slots=True)
class Rung:
    """A bound for a variable by its own noise, with filters that keep it, and what they change on the sample.

    Parameters
    ----------
    requirement
        The bound, as `tamis.plan` takes it.
    about
        What it is in terms of the noise, or of the information in the bits.
    filters, ratio, largest_error
        The filters that plan chooses for it: see `Candidate`.
    mean, low, high
        Changes of the mean, of the smallest and of the largest value, in units of the variable.
    gradient
        Root of the mean square change of differences between neighbours, relative to that of the differences.
    warnings
        Why the bound is large for these values: see `tamis.accuracy.reasonable`.
    options
        Options of ``tamis repack`` that apply it.
    """

    requirement: str
    about: str
    filters: str
    ratio: float
    largest_error: float
    mean: float
    low: float
    high: float
    gradient: float
    warnings: tuple[str, ...]
    options: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Filters with a better ratio, for other readers than the named ones.

    Parameters
    ----------
    filters, ratio
        As in `Candidate`.
    gain
        Share of the bytes that they save, compared with the chosen filters, or with the source if it stays as it is.
    needs
        What all readers must have.
    readers
        The argument `readers` of `tamis.plan` with which they can be chosen.
    """

    filters: str
    ratio: float
    gain: float
    needs: str
    readers: str

    def __str__(self) -> str:
        return (
            f"{self.filters}, ratio {ratio_text(self.ratio)}, takes {percent_text(self.gain)} fewer bytes, if all"
            f" readers have {self.needs}: --readers {self.readers}"
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """A foreign filter on the sample, for comparison: tamis neither chooses nor writes it.

    Parameters
    ----------
    filters
        The filter with its bound in stored units, or its name if it was not measured.
    ratio, ratio_low, ratio_high, largest_error, write_mbs, read_mbs
        As in `Candidate`, but without a proof; None if it was not measured.
    problem
        The requirements that it misses on the sample, or why it was not measured; None without a problem.
    """

    filters: str
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    largest_error: float | None = None
    write_mbs: float | None = None
    read_mbs: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Result of `tamis.repack` on all values of a variable.

    Parameters
    ----------
    ratio
        Bytes of values for each stored byte.
    largest_error
        Largest absolute error, in units of the variable.
    measures
        Name and value of each required measure of the whole dataset; the worst of several files.
    missed
        repack's message if one of these is missed; None if none is.
    """

    ratio: float
    largest_error: float
    measures: tuple[tuple[str, float | None], ...]
    missed: str | None

    @property
    def ok(self) -> bool:
        """True if all values meet the requirement."""
        return self.missed is None


@dataclass(frozen=True, slots=True)
class Rechunked:
    """A variable without a plan whose chunks are much larger than all of its values.

    Parameters
    ----------
    path
        Path of the variable.
    chunks
        Chunk shape that suits it.
    reason
        What its chunks take now, in words.
    asked
        Whether a requirement names it: then the recipe has the chunk shape.
    """

    path: str
    chunks: tuple[int, ...]
    reason: str
    asked: bool


@has_old_keys
@dataclass(frozen=True, slots=True)
class PlannedVariable(Fields):
    """The plan for a variable.

    Parameters
    ----------
    path
        Path of the variable.
    requirement
        What was required of its values, in words.
    nbytes
        Bytes of the values, in all files together.
    source_ratio
        Bytes of values for each stored byte now.
    sampled_nbytes
        Bytes of the values that were sampled.
    chunks
        Chunk shape that the variable gets; None if it has chunks, which stay.
    candidates
        Filters that no others beat in ratio, class of cost and readers together, by falling ratio.
    filters
        The chosen ones among them; None if the variable stays as it is.
    reason
        Why these are chosen, in a sentence.
    require
        What `tamis.repack` must prove for each value; None if there is nothing besides the bits.
    refused
        Filters that were not measured, each with the reason.
    dimensions
        Names of the dimensions, for chunks by dimension; None if there are none.
    confirmed
        Result of repack on all values; None if not requested.
    compared
        Foreign filters, if requested.
    offers
        The best of the candidates for other readers, by what these need; none of them is chosen.
    stored
        What it is stored as now.
    noise
        Its noise level, judging by differences between neighbours in time and space, in units of the variable; None if
        a requirement is given.
    ladder
        Bounds from its noise level, where no requirement is given at all.
    """

    path: str
    requirement: str
    nbytes: int
    source_ratio: float | None
    sampled_nbytes: int
    chunks: tuple[int, ...] | None
    candidates: tuple[Candidate, ...]
    filters: str | None
    reason: str
    require: str | None = None
    refused: tuple[tuple[str, str], ...] = ()
    dimensions: tuple[str, ...] | None = None
    confirmed: Confirmed | None = None
    compared: tuple[Compared, ...] = ()
    offers: tuple[Offer, ...] = ()
    stored: Stored | None = None
    noise: float | None = None
    ladder: tuple[Rung, ...] = ()

    @property
    def chosen(self) -> Candidate | None:
        """The chosen candidate; None if the variable stays as it is."""
        return next((candidate for candidate in self.candidates if candidate.filters == self.filters), None)

    @property
    def evidence(self) -> Evidence:
        """Evidence for the chosen filters, for recipe files; empty if the variable stays as it is."""
        if (chosen := self.chosen) is None:
            return {}
        facts: dict[str, str | float] = {"requirement": self.requirement, "reason": self.reason}
        facts |= {name: round(getattr(chosen, name), 4) for name in ("ratio", "ratio_low", "ratio_high")}
        facts["largest_error"] = float(f"{chosen.largest_error:.6g}")
        facts["read_by"] = chosen.read_by
        if self.offers:
            facts["offers"] = "; ".join(map(str, self.offers))
        return facts | {"sampled_nbytes": self.sampled_nbytes, "planned_by": f"tamis {_native.version}"}

    def with_note(self, note: str) -> PlannedVariable:
        """Return the same with an added remark about the choice."""
        return replace(self, reason=self.reason + note)

    def __str__(self) -> str:
        return f"{self.path} {self.requirement}: {self.filters or 'stays as it is'}"


@dataclass(frozen=True, slots=True)
class Plan(DatasetsResult[PlannedVariable]):
    """Result of `tamis.plan`: predictions from a sample, and the recipe for `tamis.repack`, which proves its bounds.

    Parameters
    ----------
    files
        Paths of the planned files.
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
        from tamis.jobs.recipes.saved_recipe import Recipe

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

    def plot(self) -> Figure:
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
        from tamis.jobs.plan.plot import figure_of

        return figure_of(self)

    @property
    def options(self) -> str:
        """The recipe as options of the command ``tamis repack``, ready to paste; empty without a recipe."""
        words = _words(self.filters, self.chunks, self.require)
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
        files = printable(title(self.files))
        if not (self.filters or self.chunks):
            yield "name", f"{files}: nothing to change; planned in {self.seconds:.1f} s"
            return
        sampled, nbytes = (
            sum(getattr(variable, name) for variable in self.datasets) for name in ("sampled_nbytes", "nbytes")
        )
        planned = f"{plural(len({**self.filters, **self.chunks}), 'dataset')} planned in {self.seconds:.1f} s"
        read = f"from {size_text(sampled)} of {size_text(nbytes)}"
        yield "name", f"{files}: {planned}, {read}; repack proves the bounds of the filters"
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
        yield "code", f"tamis repack {_source(plan)} OUT {rung.options}"
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


def _words(filters: Mapping[str, str], chunks: Mapping[str, Sequence[int]], require: Mapping[str, str]) -> list[str]:
    """Return options of ``tamis repack``."""
    words = [word for path, text in filters.items() for word in ("-f", f"{path}:{text}")]
    words += [word for path, shape in chunks.items() for word in ("-c", f"{path}:{shape_text(shape)}")]
    return words + [word for path, text in require.items() for word in ("--require", f"{path}:{text}")]


def repack_options(variable: PlannedVariable) -> str:
    """Return the options of ``tamis repack`` for a variable, ready to paste."""
    if variable.filters is None:
        return ""
    path = variable.path
    chunks = {path: variable.chunks} if variable.chunks else {}
    require = {path: variable.require} if variable.require else {}
    return shell_line(_words({path: variable.filters}, chunks, require))


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
        pipeline = _parsed(filters)
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
            for item in _parsed(filters).filters:
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
