"""The plan of an array: how it is stored, and what its chunks are made from.

A plan is a `Copy`, whose chunks keep their bytes, a `Recompress`, whose streams of zfp get other filters after zfp, or
a `Recode`, whose values go through steps and filters again, and are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.fields import FieldMeasures
from tamis.accuracy.measured import Measured, reached
from tamis.arrays.grid import Grid, grid_of
from tamis.filters import ChunkType, Sz3
from tamis.filters.plugin_client import hdf5plugin_version
from tamis.meaning.arrays import missing_nan
from tamis.meaning.missing import MOST_FLAGS, NONE_MISSING, Flags, Missing, can_flag
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import Broken, ChunkEncoder, shorter_pipeline
from tamis.rewrite.steps import FillStep, PackStep, RoundStep, ValueStep
from tamis.rewrite.values import Padding
from tamis.rounding import ERROR_BOUND, Absolute, Pack
from tamis.stores.losses import recorded_loss

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement
    from tamis.accuracy.value_bounds import ValueBounds
    from tamis.arrays.index import Parts
    from tamis.meaning import Packing
    from tamis.rounding import Codes, Rounding
    from tamis.stores.facts import ArrayFacts
    from tamis.stores.protocols import StoredArray

S = TypeVar("S", bound=ValueStep)


@dataclass(frozen=True, slots=True)
class Checks:
    """What every chunk must keep, besides the bound of its filters and steps, and the whole array."""

    missing: Missing = NONE_MISSING  # Definition of missing values, none of which may appear, change or disappear
    # Further limits on each value, and, with a rounding, its largest absolute error; None if nothing was required of
    # values that may change
    bounds: ValueBounds | None = None
    # Words of the measures of whole fields or rows that are measured chunk by chunk
    fields: tuple[str, ...] = field(default=(), repr=False)


_NO_CHECKS, _NO_PADDING = Checks(), Padding()


@dataclass(frozen=True, slots=True)
class ArrayPlan:
    """How one array is stored. Values keep their bits, unless the plan is a `Recode`."""

    path: str  # Path in both stores
    pipeline: Pipeline  # Filters of the target, without a rounding
    # Type of the target; in native byte order if zfp is among the filters, or values are rounded
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...]  # Chunk shape of the target, slowest axis first
    notes: tuple[str, ...] = ()  # Notes for the user
    # Conversion of stored values to the units of the variable; None if they are not packed
    packing: Packing | None = None
    # What was required of the array; None if nothing was
    required: Requirement | None = field(default=None, repr=False)
    may_grow: bool = True  # Whether the array is written even if it becomes larger than in the source
    # Whether an array records all filters when it is created, also those that are for chunks without the first one
    records_all: bool = field(default=False, repr=False)
    # The plan that `at` was called on; None if this one was made otherwise
    model: Self | None = field(default=None, repr=False, compare=False)

    chunk: ChunkType = field(init=False)  # Type and shape of the target's chunks, which every chunk needs

    def __post_init__(self) -> None:
        """Set the attributes that follow from the others."""
        object.__setattr__(self, "chunk", ChunkType(self.dtype, self.chunk_shape))

    def at(self, path: str) -> Self:
        """Return the same plan for another, similar array."""
        plan = copy(self)  # nothing is computed again
        object.__setattr__(plan, "path", path)
        object.__setattr__(plan, "model", self.model or self)
        return plan

    @property
    def steps(self) -> tuple[ValueStep, ...]:
        """What happens to values before the filters."""
        return ()

    @property
    def checks(self) -> Checks:
        """What every chunk must keep."""
        return _NO_CHECKS

    @property
    def padding(self) -> Padding:
        """Values of chunks beyond the array."""
        return _NO_PADDING

    @property
    def bound(self) -> float | None:
        """Largest allowed absolute error of stored values.

        0 if nothing is lost; None if the filters have no bound, or a rounding has a relative one, and no absolute error
        was required.
        """
        return 0.0

    @property
    def lossy(self) -> bool:
        """True if filters or a rounding may change values."""
        return False

    @property
    def created(self) -> Pipeline:
        """The filters of an array that records them when it is created; `pipeline` itself if they are all."""
        return self.pipeline if self.records_all else shorter_pipeline(self.pipeline) or self.pipeline

    def step(self, kind: type[S]) -> S | None:
        """Return the step of a kind; None if there is none."""
        for step in self.steps:
            if isinstance(step, kind):
                return step
        return None

    @property
    def rounding(self) -> Rounding | None:
        """The rounding of the values, which keep their type; None if they are not rounded."""
        step = self.step(RoundStep)
        return None if step is None else step.rounding

    @property
    def codes(self) -> Codes | None:
        """The codes of the values; None if they are not packed."""
        step = self.step(PackStep)
        return None if step is None else step.codes

    @property
    def flags(self) -> Flags | None:
        """Table of flags for the companion that gets the missing values; None without a companion."""
        step = self.step(FillStep)
        return None if step is None else step.flags

    @property
    def requested(self) -> Pipeline:
        """Rounding or packing, and filters."""
        asked = [step.asked for step in self.steps if step.asked is not None]
        return Pipeline((*asked, *self.pipeline.stages)) if asked else self.pipeline

    @property
    def changes_values(self) -> bool:
        """True if values may change, by filters, rounding or packing."""
        return self.lossy or self.step(PackStep) is not None

    @property
    def measures(self) -> tuple[str, ...]:
        """Words of the requirements on the whole array, if its values may change."""
        return tuple(self.required.measures) if self.required is not None and self.lossy else ()

    def measured(self, before: NDArray[Any], after: NDArray[Any]) -> Measured | None:
        """Return the required measures of a chunk; None if nothing is measured."""
        if not self.measures:
            return None
        missing = self.checks.missing
        measured = Measured.of(before, after, missing, self.measures)
        return measured._replace(fields=FieldMeasures.of(before, after, missing, self.packing, self.checks.fields))

    def reached(self, measured: Measured, *, all_stored: bool) -> dict[str, float | None]:
        """Return the required measures that follow from the facts of all values."""
        values = reached(measured, self.measures, 1.0 if self.packing is None else self.packing.scale)
        fields = measured.fields.by_word if all_stored else {}
        return values | {word: fields[word] for word in self.checks.fields if word in fields}

    def encoder(self, broken: Broken | None = None) -> ChunkEncoder:
        """Return the encoder of the chunks, whose values must also pass `broken`."""
        return ChunkEncoder(self.pipeline, self.chunk, self.padding, self.checks.missing, broken=broken)

    def source_of(self, array: StoredArray) -> StoredArray:
        """Return the array whose values the filters get: the codes of the source, if it is packed."""
        for step in self.steps:
            array = step.source_of(array)
        return array

    def as_stored(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what the filters get for values as the plan has them: in units of the variable, if it packs them."""
        for step in self.steps:
            values = step.stored(values)
        return values

    def as_read(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return decoded values as readers have them."""
        for step in reversed(self.steps):
            values = step.undone(values)
        return values

    def new_attributes(self, source: StoredArray) -> Mapping[str, Any]:
        """Return the attributes of the target that differ from those of the source; None for one to remove."""
        return {}

    def replaced_attributes(self, source: StoredArray) -> Mapping[str, Any]:
        """Return `new_attributes` without those of a rounding, which formats record together with its container."""
        recorded = {} if self.rounding is None else self.rounding.recorded
        return {name: value for name, value in self.new_attributes(source).items() if name not in recorded}

    @property
    def relative_bound(self) -> float | None:
        """Largest allowed error relative to a stored value; None without a rounding that has such a bound."""
        return None if self.rounding is None else self.rounding.relative_bound

    @property
    def tolerance(self) -> float | None:
        """The tolerance of the first filter, in units of the variable, if another bound is kept; None otherwise."""
        return None

    def in_units(self, error: float) -> float:
        """Return an error of stored values in units of the variable."""
        return error if self.packing is None else self.packing.unpacked_error(error)

    @property
    def unpacked_bound(self) -> float | None:
        """The bound in units of the variable."""
        if self.codes is not None:
            return self.codes.bound
        return None if self.bound is None else self.in_units(self.bound)

    @property
    def in_variable_units(self) -> ArrayPlan:
        """The plan itself, or, for packed values, the same for values in units of the variable."""
        return self

    def grid(self, source: StoredArray) -> Grid:
        """Return the chunks of the target."""
        return grid_of(source.shape, self.chunk_shape)

    def parts(self, source: StoredArray) -> Parts:
        """Return the parts of the array to write, one for each chunk."""
        return source.parts(self.grid(source))


@dataclass(frozen=True, slots=True)
class Copy(ArrayPlan):
    """Chunks are copied as stored: filters, type and chunk shape are those of the source."""

    @property
    def created(self) -> Pipeline:
        """All filters."""
        return self.pipeline


@dataclass(frozen=True, slots=True)
class Recompress(ArrayPlan):
    """The streams of zfp are kept, and only the filters after zfp change."""

    def parts(self, source: StoredArray) -> Parts:
        """Return the parts that the source stores."""
        return source.chunk_index().parts.touching(self.grid(source))


@dataclass(frozen=True, slots=True)
class Recode(ArrayPlan):
    """Values go through steps and filters, are decoded again, and checked."""

    steps: tuple[ValueStep, ...] = ()
    checks: Checks = _NO_CHECKS
    padding: Padding = _NO_PADDING

    bound: float | None = field(init=False)
    lossy: bool = field(init=False)

    def __post_init__(self) -> None:
        """Set the attributes that follow from the others."""
        ArrayPlan.__post_init__(self)
        bound = self.pipeline.error_bound
        if self.rounding is not None:
            required = None if self.checks.bounds is None else self.checks.bounds.absolute
            bounds = [value for value in (self.rounding.absolute_bound, required) if value is not None]
            bound = min(bounds, default=None)
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "lossy", bound != 0)

    def checking(self, **checks: Any) -> Recode:
        """Return the plan with some of its checks replaced."""
        return replace(self, checks=replace(self.checks, **checks))

    @property
    def tolerance(self) -> float | None:
        """See `ArrayPlan.tolerance`."""
        first = self.pipeline.bounded if self.pipeline.bound is not None else None
        return None if first is None or first.error_bound is None else self.in_units(first.error_bound)

    def new_attributes(self, source: StoredArray) -> Mapping[str, Any]:
        """See `ArrayPlan.new_attributes`."""
        attributes = {**self._bound_attributes(source), **self._plugin_attribute(source)}
        for step in self.steps:
            attributes.update(step.attributes_of(source))
        return attributes

    def _bound_attributes(self, source: ArrayFacts) -> Mapping[str, Any]:
        """Return the attributes with the bound of this loss and all earlier ones, if nothing else records it.

        A rounding with a relative bound adds nothing to it: the file has both.
        """
        removed = {ERROR_BOUND: None} if ERROR_BOUND in source.attributes else {}
        if self.codes is not None:  # whose attribute has the whole bound
            return removed
        earlier = recorded_loss(source).bound or 0.0
        own = self.unpacked_bound if self.relative_bound is None else 0.0
        if own is None:
            return removed
        if own == 0:  # filters that were lossy do not record their bound any more
            return {ERROR_BOUND: np.float64(earlier)} if earlier and source.storage.pipeline.error_bound != 0 else {}
        if not earlier and not (self.pipeline.bound and self.pipeline.bounded is not None):
            return removed
        whole = np.float64(earlier + own)
        rounded = {Absolute.attribute: None} if Absolute.attribute in source.attributes else {}
        packed = {Pack.attribute: whole} if Pack.attribute in source.attributes else {}
        return {**rounded, **packed, ERROR_BOUND: whole}

    def _plugin_attribute(self, source: ArrayFacts) -> Mapping[str, Any]:
        """Return the attribute with the version of a plugin whose chunks other versions may not read."""
        if isinstance(self.pipeline.bounded, Sz3):
            return {_SZ3_ATTRIBUTE: f"hdf5plugin {hdf5plugin_version()}"}
        return {_SZ3_ATTRIBUTE: None} if isinstance(source.storage.pipeline.bounded, Sz3) else {}

    @property
    def in_variable_units(self) -> Recode:
        """See `ArrayPlan.in_variable_units`."""
        if (codes := self.codes) is None:
            return self
        marks = tuple(codes.unpacked.type(mark) for mark, _ in codes.missing if mark == mark)
        steps = tuple(step for step in self.steps if not isinstance(step, PackStep))
        checks = replace(self.checks, missing=Missing(marks))
        return replace(self, steps=steps, dtype=codes.unpacked, checks=checks, packing=None)


_SZ3_ATTRIBUTE = "sz3_plugin"
"""The attribute that says what wrote chunks of sz3, which other versions of it may not read."""


def recode(plan: ArrayPlan, **changes: Any) -> Recode:
    """Return a plan that encodes the values of an array again, like another plan but for some changes."""
    shared = {entry.name: getattr(plan, entry.name) for entry in fields(ArrayPlan) if entry.init}
    return Recode(**{**shared, "model": None, **changes})


def flags_for(array: ArrayFacts, dtype: np.dtype[Any]) -> Flags | None:
    """Return the table of flags for the possible missing values of an array, without reading its values."""
    missing = array.meaning.missing
    if not can_flag(dtype) or len(missing.values) > MOST_FLAGS // 2:
        return None
    values = [*missing.values]
    if dtype.kind == "f":
        values += [value.astype(dtype) for value in missing_nan(array.attributes, array.fill.value)]
    return Flags.of(values, dtype) if values or dtype.kind == "f" else None
