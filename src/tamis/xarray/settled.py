"""Encodings that keep the values of a dataset: others are left out, or refused if the caller asked for them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from xarray import Dataset, Variable
from xarray.conventions import encode_cf_variable

from tamis.accuracy.requirement import RELATIVE_WORDS, Requirement
from tamis.errors import DataError
from tamis.formatting import printable
from tamis.jobs.recipes.names import Names, absolute, assigned
from tamis.jobs.recipes.saved_recipe import Recipe
from tamis.jobs.witness.loss import Loss, Misfit
from tamis.pipeline import Pipeline
from tamis.rounding import Absolute
from tamis.xarray.dask_arrays import with_dask
from tamis.xarray.encoding_loss import (
    checked_data,
    compared_parts,
    loss_of,
    may_change_type,
    may_seem_missing,
    with_units_of_bounds,
    without_value_keys,
)
from tamis.xarray.encoding_requirement import missed_in
from tamis.xarray.text_loss import inherited_text, is_text, kept_text

if TYPE_CHECKING:
    from tamis.jobs.repack.result import Repacked, RepackResult
    from tamis.xarray.dataset_store import DatasetStore, EncodedGroup


class Advice(NamedTuple):
    """What to do about an encoding that does not keep the values."""

    wider: str  # If it does not hold a value
    finer: str  # If it changes values by too much


_ADVICE = Advice(
    "use another dtype, scale_factor, add_offset or _FillValue", "use a wider type or a finer scale_factor"
)

_NONE: Mapping[str, Advice] = {}

_SHARE = 0.5
"""Largest share of a bound that an encoding from a file may take where lossy filters follow."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The requirements on the values of a variable; its encoding may use up a part of the error."""

    absolute: float | None = None  # Largest absolute error
    relative: float | None = None  # Largest error relative to a value
    lossy: bool = False  # Whether filters that lose something follow
    others: Requirement | None = None  # Other requirements

    @property
    def is_bound(self) -> bool:
        """Whether there is any requirement."""
        return self.has_limit or self.others is not None

    @property
    def has_limit(self) -> bool:
        """Whether there is a largest error."""
        return self.absolute is not None or self.relative is not None

    def allows(self, loss: Loss, share: float = 1.0) -> bool:
        """Return whether a loss is within the largest errors, or within a share of them if lossy filters follow."""
        share = share if self.lossy else 1.0
        within = [
            found <= bound * share and (found < bound or not self.lossy)
            for found, bound in ((loss.largest, self.absolute), (loss.relative, self.relative))
            if bound is not None
        ]
        return bool(within) and all(within)

    def broken_by(self, loss: Loss) -> Misfit | None:
        """Return the value that an encoding changes most of all, by the largest errors that it breaks."""
        is_absolute = self.absolute is not None and loss.largest >= self.absolute
        return loss.worst if is_absolute else loss.worst_relative

    def __str__(self) -> str:
        bounds = [("abs", self.absolute), ("rel", self.relative)]
        return ",".join([*(f"{word}={bound!r}" for word, bound in bounds if bound is not None), *self._other_texts])

    @property
    def _other_texts(self) -> list[str]:
        return [] if self.others is None else [str(self.others)]


@dataclass(frozen=True, slots=True)
class Settled:
    """Encodings that are left out, losses of those that stay, and notes."""

    left_out: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # New encodings by path
    losses: Mapping[str, Loss] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def recipe(self, store: DatasetStore, recipe: Recipe, asked: Mapping[str, Asked]) -> Recipe:
        """Return a recipe with smaller bounds, because the encodings have used up a part of each."""
        match = Names(store).match
        filters, require = assigned(recipe.filters, match), assigned(recipe.require, match)
        new_filters: dict[str, Pipeline] = {}
        new_require: dict[str, Requirement] = {}
        for path, loss in self.losses.items():
            own = asked.get(path, Asked())
            if not own.lossy or not own.is_bound:
                continue
            pipeline = next((entry.value for entry in filters if entry.path == path), None)
            if own.absolute is not None and pipeline is not None and isinstance(pipeline.rounding, Absolute):
                rounding = Absolute(min(pipeline.rounding.bound, own.absolute - loss.largest))
                new_filters[path] = Pipeline((rounding, *pipeline.stages))
            given = next((dict(entry.value.given) for entry in require if entry.path == path), {})
            limits = {word: value for word, value in given.items() if word not in RELATIVE_WORDS}
            if own.absolute is not None:
                limits["abs"] = own.absolute - loss.largest
            if own.relative is not None:
                limits["rel"] = own.relative - loss.relative
            new_require[path] = Requirement(**limits)  # type: ignore[arg-type]
        return Recipe(
            {name: value for name, value in recipe.filters.items() if absolute(name) not in new_filters} | new_filters,
            chunks=recipe.chunks,
            require={name: value for name, value in recipe.require.items() if absolute(name) not in new_require}
            | new_require,
            missing=recipe.missing,
            drop=recipe.drop,
        )

    def with_losses(self, datasets: Iterable[Repacked], asked: Mapping[str, Asked]) -> tuple[Repacked, ...]:
        """Return results with the errors and bounds of the whole way, from values to the file."""
        return tuple(self._with_loss(item, asked.get(item.path, Asked())) for item in datasets)

    def _with_loss(self, item: Repacked, asked: Asked) -> Repacked:
        if (loss := self.losses.get(item.path)) is None:
            return item
        bound = asked.absolute
        if bound is None:
            lossy = item.bound if asked.lossy else 0.0
            bound = None if lossy is None else lossy + loss.largest
        return replace(item, largest_error=item.largest_error + loss.largest, bound=bound)

    def whole(self, result: RepackResult, asked: Mapping[str, Asked]) -> RepackResult:
        """Return a result with the errors and bounds of the whole way, and what was done about encodings."""
        datasets = self.with_losses(result.datasets, asked)
        return replace(result, datasets=datasets, notes=(*self.notes, *result.notes))


def asked_of(store: DatasetStore, recipe: Recipe) -> dict[str, Asked]:
    """Return the requirements on each variable with a recipe, by path."""
    match = Names(store).match
    filters: dict[str, Pipeline] = {}
    for entry in assigned(recipe.filters, match):
        if entry.exact or entry.value.error_bound == 0 or not store.roles[entry.path].is_exact:
            filters.setdefault(entry.path, entry.value)
    required = required_of(store, recipe)
    return {path: asked_by(pipeline, required.get(path)) for path, pipeline in filters.items()}


def required_of(store: DatasetStore, recipe: Recipe) -> dict[str, Requirement]:
    """Return the requirement on each variable with one, by path."""
    required: dict[str, Requirement] = {}
    for requirement in assigned(recipe.require, Names(store).match):
        required.setdefault(requirement.path, requirement.value)
    return required


def asked_by(pipeline: Pipeline, required: Requirement | None) -> Asked:
    """Return what filters and a requirement together require of the values of a variable."""
    own = pipeline.rounding.bound if isinstance(pipeline.rounding, Absolute) else pipeline.error_bound
    bounds, relative = [own] if own else [], None
    others: Requirement | None = None
    if required is not None:
        bounds += [required.abs] if required.abs is not None else []
        relative = required.relative
        more = {word: value for word, value in required.given.items() if word not in ("abs", *RELATIVE_WORDS)}
        others = Requirement(**more) if more else None  # type: ignore[arg-type]
    lossy = pipeline.error_bound != 0
    return Asked(min(bounds, default=None), relative, lossy, others)


def settle(
    groups: Mapping[str, EncodedGroup],
    given: Collection[str],
    asked: Mapping[str, Asked],
    advice: Mapping[str, Advice] = _NONE,
) -> Settled:
    """Compare all values with what xarray will read of their encoded ones.

    The encoding that a variable has stays if it keeps every value, or the bound that is asked for; without such a
    bound, also if it is not that of a file and only rounds to the stored type. Others are left out. Missing texts get a
    fill value if they have none. `advice` says by path what to do about an encoding that is refused.

    Raises
    ------
    DataError
        If an encoding in `given`, by path of its variable, does not keep the values: not within the bound that is
        asked for, or without one, not within what rounding to the stored type does. If no encoding keeps texts.
    """
    left_out: dict[str, dict[str, Any]] = {}
    losses: dict[str, Loss] = {}
    notes: list[str] = []
    for group, encoded in groups.items():
        for name, stored in encoded.variables.items():
            path, before = posixpath.join(group, name), encoded.dataset.variables.get(name)
            if before is None or not before.size:
                continue
            if is_text(before, stored):
                if (new := kept_text(path, before, stored, is_asked=path in given)) is not None:
                    left_out[path] = new.encoding
                    notes.append(printable(new.note))
                continue
            if before.dims != stored.dims:
                continue
            if not may_change_type(before, stored):
                if not may_seem_missing(before, stored):
                    continue
                if hasattr(before._data, "dask"):
                    stored._data = checked_data(path, before, stored)
                    continue
            whole = with_units_of_bounds(name, stored, encoded.variables)
            loss = loss_of(path, before, whole)
            if loss.first is None:
                continue
            own = asked.get(path, Asked())
            if path in given:
                _check_kept(path, before, whole, loss, own, advice.get(path, _ADVICE))
            elif not _stays(before, loss, own):
                left_out[path] = without_value_keys(before)
                notes.append(printable(_left_out_note(path, before, loss)))
                continue
            losses[path] = loss
            notes.append(
                printable(f"{path}: its encoding, {_text(before)}, changes values by up to {loss.largest:.3g}")
            )
    return Settled(left_out, losses, tuple(notes))


def inherited(dataset: Dataset, asked: Mapping[str, Asked]) -> Settled:
    """Return which encodings of a dataset do not keep its values where an engine of xarray writes it.

    That engine cannot know that an encoding has used up a part of a bound. So where filters lose something, encodings
    have to keep every value; `Asked.lossy` is False for variables whose type and filters are tested together.
    """
    left_out: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for key, variable in with_dask(dataset).variables.items():
        name = str(key)
        if variable.size and (new := inherited_text(name, variable)) is not None:
            left_out[name] = new.encoding
            notes.append(printable(new.note))
            continue
        if not variable.size or without_value_keys(variable) == variable.encoding:
            continue
        try:
            stored = encode_cf_variable(variable, name=name)
        except (ValueError, TypeError, NotImplementedError, OverflowError):
            continue  # the engine says why
        if stored.dims != variable.dims or not (
            may_change_type(variable, stored) or may_seem_missing(variable, stored)
        ):
            continue
        loss, own = loss_of(name, variable, stored), asked.get(name, Asked())
        if loss.first is None or (not own.lossy and _stays(variable, loss, own)):
            continue
        left_out[name] = without_value_keys(variable)
        notes.append(printable(_left_out_note(name, variable, loss)))
    return Settled(left_out, notes=tuple(notes))


def _stays(variable: Variable, loss: Loss, asked: Asked) -> bool:
    """Return whether a variable keeps its own encoding, which loses something."""
    if asked.is_bound:
        return asked.allows(loss, _SHARE) and asked.others is None
    return loss.beyond is None and "source" not in variable.encoding and not asked.lossy


def _check_kept(path: str, given: Variable, stored: Variable, loss: Loss, asked: Asked, advice: Advice) -> None:
    """Raise DataError, which ends with an advice, if an encoding that the caller asks for does not keep the values."""
    begin = f"{path}: its encoding, {_text(given)},"
    if asked.has_limit and not asked.allows(loss):
        if loss.beyond is not None:
            raise DataError(f"{begin} does not hold {loss.beyond}, but {asked} was asked for: {advice.wider}").at(
                dataset=path
            )
        raise DataError(
            f"{begin} changes values by up to {loss.largest:.3g}, most of all {asked.broken_by(loss)}, but {asked} was"
            f" asked for: {advice.finer}"
        ).at(dataset=path)
    if not asked.has_limit and loss.beyond is not None:
        own, other = loss.beyond.calendars
        convert = f"convert the dataset first, ds.convert_calendar({other!r}, use_cftime=True)"
        does = f"does not hold {loss.beyond}: {convert if own != other else advice.wider}"
        raise DataError(f"{begin} {does}").at(dataset=path)
    if asked.others is None:
        return
    if asked.lossy:
        raise DataError(
            f"{begin} changes values by up to {loss.largest:.3g}, and lossy filters follow: {asked.others} cannot be"
            " tested for both together: leave out the encoding, these filters or this requirement"
        ).at(dataset=path)
    if missed := missed_in(compared_parts(path, given, stored), asked.others):
        raise DataError(f"{begin} does not keep {asked.others}: {missed}: {advice.finer}").at(dataset=path)


def _left_out_note(path: str, variable: Variable, loss: Loss) -> str:
    return (
        f"{path}: its present encoding, {_text(variable)}, is left out, because it does not keep "
        f"{loss.beyond or loss.first}: give one that fits as encoding="
    )


def _text(variable: Variable) -> str:
    """Return the part of an encoding that determines values."""
    kept = without_value_keys(variable)
    keys = {key: value for key, value in variable.encoding.items() if key not in kept and value is not None}
    return " ".join(f"{key}={value!s}" for key, value in keys.items()) or f"type {variable.dtype}"


def without_encodings(dataset: Dataset, group: str, left_out: Mapping[str, dict[str, Any]]) -> Dataset:
    """Return a dataset of a group whose variables have new encodings, by path."""
    result = dataset.copy(deep=False)
    for name, variable in result.variables.items():
        if (encoding := left_out.get(posixpath.join(group, str(name)))) is not None:
            variable.encoding = encoding
    return result
