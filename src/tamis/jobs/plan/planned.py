"""What a plan says of a variable: its candidates, what is stored now, offers, bounds by its noise, and the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tamis.formatting import percent_text, ratio_text, shape_text, shell_line
from tamis.jobs.result import VERSION, Fields
from tamis.old_names import has_old_keys
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.jobs.recipes import Evidence

_SURE = 1.1
_FACTOR = 1.03
"""What filters save beyond others differs by up to this factor between parts of a variable, in 95 of 100 cases."""


parsed = lru_cache(maxsize=256)(Pipeline.parse)  # each candidate is compared with all others


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
        return parsed(self.filters)

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
        What it is stored as now; None for a dataset of xarray.
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
        return facts | {"sampled_nbytes": self.sampled_nbytes, "planned_by": f"tamis {VERSION}"}

    def with_note(self, note: str) -> PlannedVariable:
        """Return the same with an added remark about the choice."""
        return replace(self, reason=self.reason + note)

    def __str__(self) -> str:
        return f"{self.path} {self.requirement}: {self.filters or 'stays as it is'}"


def repack_words(
    filters: Mapping[str, str], chunks: Mapping[str, Sequence[int]], require: Mapping[str, str]
) -> list[str]:
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
    return shell_line(repack_words({path: variable.filters}, chunks, require))
