"""Compare two files: errors of values, and all other differences."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from tamis.accuracy import Observer, Tally, compare, compared, unchanged
from tamis.arguments import CALLBACK, FLAG, NAMES, PATH
from tamis.arrays import Parts, checked_threads, joined
from tamis.errors import TamisError
from tamis.formats import comparison_of, open_packed, open_store
from tamis.formatting import absent_text
from tamis.jobs.many import Loss, recorded_of
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipes import Names, dropped_datasets
from tamis.jobs.verify.bounds import (
    PACKED_ATTRIBUTES,
    RECORDED,
    Bound,
    Bounds,
    assigned_bounds,
    broken_bounds,
    checked_bounds,
    in_units,
    limits_change,
    only_rounding_exceeds,
    packed_otherwise,
    recorded_bounds,
    unbounded_reason,
)
from tamis.jobs.verify.result import Compared, Finding, Status, Verification
from tamis.remote import is_address
from tamis.rewrite import ArrayInUnits, damage_of, spread_of
from tamis.rewrite import in_units as values_in_units
from tamis.rounding import Pack
from tamis.safety import reading
from tamis.stores import (
    Change,
    Linked,
    StoreComparison,
    read_alike,
    size_of,
)

if TYPE_CHECKING:
    from tamis.arrays import Grid
    from tamis.meaning import Packing
    from tamis.stores import Alike, Store, StoredArray

_NO_LOSSES: Mapping[str, Loss] = {}

COARSE = "coarse-bound"
"""Code of a note about a bound that is too large for the values."""


def verify(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    bounds: Bounds | None = None,
    variables: Sequence[str] = (),
    drop: Iterable[str] = (),
    threads: int | None = None,
    keep_damaged: bool = False,
    progress: Progress | None = None,
) -> Verification:
    """Compare an HDF5 or netCDF file with its source.

    The target must have everything in the source, unchanged. Numbers may differ by their bound; without a bound, bits
    must be the same. How values are stored does not matter. Chunks are decoded in threads, filters that tamis knows
    need no plugin, and memory is bounded: 48 MiB and a few chunks per thread.

    Parameters
    ----------
    source, target
        Paths of the files; neither is changed.
    bounds
        Largest absolute error by dataset name or pattern, in units of the variable: of unpacked values if it has
        ``scale_factor`` or ``add_offset``. A bound of 0, like no bound, requires the same bits. ``"recorded"``, as a
        value or instead of the whole mapping, means the bound that the filters of the target record, or that of a
        rounding that an attribute of the target records, which may be relative to the stored values. If several runs of
        `repack_many` replaced the target, it is the sum of theirs, against the first original. Exact names take
        precedence over patterns, and earlier patterns over later ones. Missing values, which are NaN, infinities and
        fill values, must be at the same indices with the same bits; those in a missing-value mask are restored first.
    variables
        Names of datasets, or patterns such as ``/group/*``, to compare only those; by default all datasets, groups,
        links and attributes.
    drop
        Names or patterns of datasets that were left out of the target on purpose, with links to them.
    threads
        Number of threads; by default as many as the process may use. The result does not depend on it.
    keep_damaged
        Whether chunks that cannot be decoded, but have the same stored bytes in both files, are notes instead of
        problems.
    progress
        Called before the first and after each part of a dataset, with the step (`tamis.jobs.progress.Step`), the number
        of compared values, and the number of all values.

    Returns
    -------
    Verification
        The differences, printed as a table; `ok` is True if there are no violations and no problems.

    Raises
    ------
    FileError
        If one is not an HDF5 or netCDF file, or damaged, or a name or pattern matches none of the compared datasets.
        Datasets that cannot be read are among the `problems` of the result.
    ParameterError
        If a bound is not a number of 0 or more, or is for datasets without numbers.

    Examples
    --------
    >>> result = verify("examples/data/cam_ts.nc", "examples/data/cam_ts.nc")
    >>> result.ok, result["TS"].status, result["TS"].tally.error
    (True, 'equal', 0)
    """
    PATH.check("source", source)
    PATH.check("target", target)
    limits = checked_bounds(bounds)
    NAMES.check("variables", variables)
    NAMES.check("drop", drop)
    FLAG.check("keep_damaged", keep_damaged)
    CALLBACK.check_optional("progress", progress)
    losses = losses_of(target, limits)
    return run_verify(
        source, target, limits, variables, drop, threads, progress, keep_damaged=keep_damaged, losses=losses
    )


def losses_of(target: str | os.PathLike[str], bounds: Bounds) -> Mapping[str, Loss]:
    """Return what a record says of a file that several runs replaced, if recorded bounds are asked for."""
    return recorded_of(target).losses if asks_recorded(bounds) and not is_address(target) else {}


def asks_recorded(bounds: Bounds) -> bool:
    """Return whether bounds are those that a record or the filters of the target have, for any dataset."""
    return RECORDED in ([bounds] if isinstance(bounds, str) else bounds.values())


def run_verify(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    bounds: Bounds,
    variables: Sequence[str] = (),
    drop: Iterable[str] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    optional_names: bool = False,
    pairs: Collection[tuple[str, str]] = (),
    keep_damaged: bool = False,
    losses: Mapping[str, Loss] = _NO_LOSSES,
) -> Verification:
    """Do as `verify` does; names of bounds may be absent from a file if they are optional.

    `pairs` are other files that are compared, to which links may lead, and `losses` what `losses_of` returns.
    """
    with open_packed(source) as first, open_packed(target) as second, reading(source, target):
        take_in_as(first, second)
        comparison = FileComparison.of(
            first, second, bounds, variables, drop, threads, progress, optional_names=optional_names
        )
        comparison.pairs = {*comparison.pairs, *pairs}
        comparison.keep_damaged = keep_damaged
        comparison.losses = losses
        for _ in comparison.run():
            pass
    return comparison.result(source, target)


def take_in_as(first: Store, second: Store) -> None:
    """Let a store take in what its links into other files lead to, if the other store has taken it in."""
    links = {*first.links_elsewhere()}
    links -= {*second.links_elsewhere()} if links else set()
    if any(map(second.has, sorted(links))):
        first.take_in()


Observe = Callable[[Compared, "StoredArray", "StoredArray"], Observer | None]
"""Return who sees the values of a dataset while they are compared, if anybody."""


@dataclass(slots=True)
class FileComparison:
    """A comparison of two files, with its results so far."""

    before: Store
    after: Store
    stores: StoreComparison
    bounds: Mapping[str, Bound]
    threads: int
    progress: Progress
    observe: Observe
    paths: Mapping[str, str]  # The datasets to compare: the path of each in the result
    are_all: bool  # Whether also everything else is compared
    # Their other paths where the target has copies, which are compared, too: the path of each in `paths`
    repeated: Mapping[str, str]
    compared: list[Compared] = field(default_factory=list)
    violations: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    dropped: frozenset[str] = frozenset()
    asked: Bounds = field(default_factory=dict)
    # Files that are compared anyway, source and target, to which links may lead
    pairs: Collection[tuple[str, str]] = ()
    follows: bool = True  # Whether what external links lead to is compared, too
    # Whether chunks that cannot be decoded in both files are no problem, if their bytes are equal
    keep_damaged: bool = False
    losses: Mapping[str, Loss] = field(default_factory=dict)  # Of several runs together: see `losses_of`
    # The recorded bounds of arrays that views show, by file and path in the source and in the target
    shown: dict[tuple[str, str, str, str], float | None] = field(default_factory=dict)
    unbounded: dict[str, str] = field(default_factory=dict)  # Why a dataset may record no bound, by path

    @classmethod
    def of(
        cls,
        first: Store,
        second: Store,
        bounds: Bounds,
        variables: Sequence[str] = (),
        drop: Iterable[str] = (),
        threads: int | None = None,
        progress: Progress | None = None,
        observe: Observe = lambda *_: None,
        *,
        optional_names: bool = False,
    ) -> Self:
        """Prepare the comparison of two open files; see `verify`."""
        selection = [variables] if isinstance(variables, str) else variables
        if not selection:
            first.read_ahead()
            second.read_ahead()
        datasets, names = first.arrays, Names(first, optional=optional_names)
        dropped = dropped_datasets(first, names, [drop] if isinstance(drop, str) else drop)
        stores = comparison_of(first, second, dropped=dropped)
        labels = names.labels(selection) if selection else {path: path for path in datasets}
        labels = {path: label for path, label in labels.items() if path not in dropped}
        limits, named = assigned_bounds(bounds, names, datasets.labelled(labels, others=False), labels)
        paths = {path: labels[path] if selection else named.get(path, path) for path in datasets if path in labels}
        shown = progress or (lambda *_: None)
        repeated = {} if selection else stores.repeated()
        repeated = {
            path: own for path, own in repeated.items() if path != paths.get(own, path) and own not in stores.companions
        }
        threads = checked_threads(threads)
        own = cls(first, second, stores, limits, threads, shown, observe, paths, not selection, repeated)
        own.asked = bounds
        own.pairs = [(os.path.realpath(first.path), os.path.realpath(second.path))]
        own.leave_out(dropped)
        return own

    def run(self) -> Iterator[Compared]:
        """Compare all, and yield each dataset when its values have been compared."""
        for own, path in (*self.paths.items(), *((own, path) for path, own in self.repeated.items())):
            variable = self.stores.companions.get(own)
            if variable is not None and variable in self.paths:
                self.add(Change.of_companion(own, variable))
                continue
            count = len(self.compared)
            self.dataset(own, path)
            yield from self.compared[count:]
        if self.are_all:
            self.rest()

    def result(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Verification:
        """Return the result of the files with these paths."""
        return Verification(
            os.fsdecode(source),
            os.fsdecode(target),
            tuple(self.compared),
            tuple(self.violations),
            tuple(self.notes),
            tuple(self.problems),
        )

    def leave_out(self, dropped: Collection[str]) -> None:
        """Ignore that some datasets of the source, and links to them, are absent in the target."""
        for path in sorted(dropped):
            self._note(path, "dropped", "left out on purpose, not compared")
        paths = self.before.paths() if dropped else {}
        self.dropped = frozenset(path for path, first in paths.items() if first in dropped)

    def dataset(self, own: str, path: str) -> None:
        """Compare a dataset of the source with that of the same path in the target; `own` is its first path."""
        source, target = self.before.arrays[own], self.stores.counterpart(path)
        if target is None and source.marks.is_bare_dimension and not self.stores.same_format:
            return  # another format needs no array for it; the dimension is compared with its group
        if target is None:
            self._violation(path, "missing-dataset", "no such dataset in the target")
            return
        for array in (source, target):
            if array.storage.problem and array.storage.layout == "unknown":  # no type and no shape to compare
                self.problems.append(Finding(path, "unreadable", f"{array.label}: {array.storage.problem}"))
                return
        facts: dict[str, Any] = {}
        problems = len(self.problems)
        with self._reading(path):
            source, target = self.stores.as_read(path, source, target)
        if len(self.problems) > problems:
            return
        alike = read_alike(source, target) if own == path else None
        same = alike is not None and alike.new_attributes is not None
        if alike is not None and (same or not packed_otherwise(source, target)):
            self.compared.append(self._at_once(source, target, alike))
            return
        with self._reading(path):
            with reading(self.before.path, dataset=path):
                facts |= {"shape": source.shape, "source_type": _type_text(source)}
                self._note_companion(path, "source", source)
            with reading(self.after.path, dataset=path):
                facts |= {"target_type": _type_text(target), "checksum": _checksum(target)}
                facts |= self._bound(own, source, target)
                self._note_companion(path, "target", target)
            facts |= self._values(Compared(path, **facts), source, target)
        if len(self.problems) > problems:
            facts["problem"] = self.problems[-1].text
        with self._reading(path):
            self._add_all(self._attribute_changes(path, source, target))
        self.compared.append(Compared(path, **facts))

    def _attribute_changes(self, path: str, source: StoredArray, target: StoredArray) -> Iterator[Change]:
        """Yield changes of the attributes of an array, without those that a new packing needs."""
        changes = self.stores.attribute_changes(path, source, target)
        if not packed_otherwise(source, target):
            yield from changes
            return
        for change in changes:
            if change.attribute not in PACKED_ATTRIBUTES:
                yield change._replace(harmless=change.harmless or change.attribute == Pack.attribute)

    def _at_once(self, source: StoredArray, target: StoredArray, alike: Alike) -> Compared:
        """Return the result for small arrays; only values and attributes may differ."""
        path, values, others, missing, packing = (
            source.path,
            alike.values,
            alike.others,
            source.meaning.missing,
            source.meaning.packing,
        )
        types, bound = (_type_text(source), _type_text(target)), self._bound(path, source, target)
        result = partial(Compared, path, source.shape, *types, **bound, checksum=_checksum(target))
        report = self._reporter(path, source)
        report(0, values.size)
        status: Status = "equal"
        if others is values:
            tally = in_units(unchanged(values, missing), packing)
        else:
            tally = in_units(compare(values, others, (0,) * values.ndim, missing, _zero_of(packing)), packing)
            violations = len(self.violations)
            self._judge(result(), source, target, tally)
            status = self._status(not tally.different, violations)
        report(values.size, values.size)
        if alike.new_attributes is None:
            with self._reading(path):
                self._add_all(self.stores.attribute_changes(path, source, target))
        else:
            self._add_all(Change.of_new_attribute(path, name) for name in alike.new_attributes)
        return result(status=status, tally=tally, equal=not tally.different)

    def _reporter(self, path: str, source: StoredArray) -> Callable[[int, int], None]:
        """Return a function that takes the number of compared values, and that of all values."""
        nbytes = source.type.nbytes if size_of(source) else 0
        count = len(self.paths) + len(self.repeated)
        return partial(self.progress, Step(f"comparing {path}", len(self.compared) + 1, count, item_nbytes=nbytes))

    def _bound(self, own: str, source: StoredArray, target: StoredArray) -> dict[str, Any]:
        """Return the fields `bound`, `relative_bound` and `recorded` of a dataset."""
        bound = self.bounds.get(own)
        if bound != RECORDED:
            return {"bound": bound}
        if (loss := self.losses.get(own)) is not None:
            self._note(own, "several-runs", "several runs replaced it: the bound is the sum of theirs, by their record")
            return {**loss._asdict(), "recorded": True}
        bounds = recorded_bounds(source, target)
        self.unbounded[own] = unbounded_reason(target)
        if shown := _shown_by(source, target):
            bounds = {"bound": self._bound_of_sources(self.before, self.after, shown)}
        return bounds | {"recorded": True}

    def _bound_of_sources(self, before: Store, after: Store, shown: _Views) -> float | None:
        """Return the loosest bound that arrays record, which two views of stores show; None if one records none."""
        bounds: list[float] = []
        for (file, path), (other, other_path) in shown:
            key = file or before.path, path, other or after.path, other_path
            if key not in self.shown:
                self.shown[key] = None  # for views that show each other in a circle
                with self._opened(file, before) as first, self._opened(other, after) as second:
                    self.shown[key] = self._bound_at(first, path, second, other_path)
            if (bound := self.shown[key]) is None:
                return None
            bounds.append(bound)
        return max(bounds)

    def _bound_at(self, before: Store, path: str, after: Store, other_path: str) -> float | None:
        """Return the bound that an array of a store records, or those that it shows; None if there is none."""
        source, target = before.arrays.get(before.first_path(path)), after.arrays.get(after.first_path(other_path))
        if source is None or target is None:
            return None
        if shown := _shown_by(source, target):
            return self._bound_of_sources(before, after, shown)
        bound: float | None = recorded_bounds(source, target).get("bound")
        return bound

    @contextmanager
    def _opened(self, file: str, own: Store) -> Iterator[Store]:
        """Open a file that another one leads to; empty for that one itself."""
        if not file:
            yield own
            return
        with open_store(file) as store:
            yield store

    def _note_companion(self, path: str, name: str, dataset: StoredArray) -> None:
        if dataset.type.numbers is not None and (companion := dataset.companion_flags):
            self._note(path, "companion", f"missing values of the {name} are restored from its missing-value mask")
            if other := companion.other_shape(dataset.shape):
                self._note(path, "companion", f"{name}: {other}")

    def rest(self) -> None:
        """Compare groups, their attributes and links, and note additions in the target."""
        for path, reason in self.stores.unlisted():
            self.problems.append(Finding(path, "unreadable", reason))
        for path, comparisons in self.stores.groups():
            for changes in comparisons:
                with self._reading(path):
                    self._add_all(changes())
        self._add_all(self.stores.new_objects())

    def add(self, change: Change) -> None:
        """Add a change to notes or violations; what a link leads to is compared."""
        if change.linked is not None:
            self._follow(change.path, change.linked)
            return
        (self._note if change.harmless else self._violation)(change.path, change.code, change.text)

    def _follow(self, path: str, linked: Linked) -> None:
        """Compare what an external link leads to in the other files, whose own links are not followed."""
        if linked.after is None:
            self._violation(path, "link", f"leads to {linked.before}, and to no file in the target")
        elif (linked.before, linked.after) in self.pairs:
            self._note(path, "linked", f"leads to {linked.after}, which is compared itself")
        elif not self.follows:
            self._note(path, "linked", f"leads to {linked.after} instead of {linked.before}: not followed further")
        else:
            with self._reading(path), open_store(linked.before) as first, open_store(linked.after) as second:
                self._note(path, "linked", f"compared {linked.inner} of {linked.before} and of {linked.after}")
                self._compare_linked(path, first, second, linked.inner)

    def _compare_linked(self, path: str, first: Store, second: Store, inner: str) -> None:
        """Compare an array, or all arrays of a group, that a link at a path leads to."""
        start = f"{inner.strip('/')}/" if inner.strip("/") else ""
        first_path = first.first_path(f"/{inner.strip('/')}") if start else ""
        chosen = [first_path] if first_path else [each for each in first.arrays if each.startswith(f"/{start}")]
        if not chosen:
            return
        arguments = self.asked, chosen, (), self.threads, self.progress
        nested = FileComparison.of(first, second, *arguments, optional_names=True)
        nested.follows = False
        for _ in nested.run():
            pass

        def placed(own: str) -> str:
            return path if own == first_path else f"{path}/{own.removeprefix(f'/{start}')}"

        self.compared += [replace(item, path=placed(item.path)) for item in nested.compared]
        for mine, others in (
            (self.violations, nested.violations),
            (self.notes, nested.notes),
            (self.problems, nested.problems),
        ):
            mine += [replace(item, path=placed(item.path)) for item in others]

    def _add_all(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.add(change)

    def _values(self, result: Compared, source: StoredArray, target: StoredArray) -> dict[str, Any]:
        """Compare the values of two datasets, add violations, and return the fields of the result."""
        violations = len(self.violations)
        tally, equal = self._tally(result, source, target)
        return {"tally": tally, "equal": equal, "status": self._status(equal, violations)}

    def _status(self, equal: bool | None, violations: int) -> Status:
        """Return the status of values, given the earlier number of violations."""
        if len(self.violations) > violations:
            return "different"
        return "equal" if equal else "within-bound"

    def _tally(self, result: Compared, source: StoredArray, target: StoredArray) -> tuple[Tally | None, bool | None]:
        path, bound = result.path, result.bound
        if source.shape != target.shape:
            self._violation(path, "shape", f"shape {source.shape} became {target.shape}")
            return None, None
        if change := self.stores.type_note(source, target):
            self._note(path, "named-type", change)
        if source.maxshape != target.maxshape and not self.after.model.is_loose:
            self._note(path, "maxshape", f"the largest shape {source.maxshape} became {target.maxshape}")
        types = self._type_words(source), self._type_words(target)
        if packed_otherwise(source, target):
            before, after = (
                f"{words} packed by {array.meaning.packing}" if array.meaning.packing else words
                for words, array in zip(types, (source, target), strict=True)
            )
            self._note(path, "packed", f"{before} became {after}; values are compared unpacked")
            if change := limits_change(source, target):
                self._note(path, "valid-limits", change)
            first, second = (cast("StoredArray", ArrayInUnits(array)) for array in (source, target))
            return self._compare(result, first, second, self._reporter(path, source))
        numbers = source.type.numbers is not None and target.type.numbers is not None
        if types[0] != types[1]:
            same = self.stores.same_value_type(source, target)
            converted = numbers and (bound or result.relative_bound)
            (self._note if converted or same else self._violation)(path, "type", f"{types[0]} became {types[1]}")
            if not (numbers or same):
                return None, None
        orders = source.type.byteorder, target.type.byteorder
        if orders[0] != orders[1] and all(orders) and self.stores.same_format:
            self._note(path, "byte-order", f"{orders[0]}-endian became {orders[1]}-endian")
        report = self._reporter(path, source)
        if source.shape is None:
            source.check_readable()
            target.check_readable()
            return None, True
        if types[0] == types[1] and (change := self.stores.fill_note(source, target)):
            self._note(path, "fill-value", change)
        if absent := source.elsewhere.absent_files:
            self._note(path, "absent-files", absent_text(absent))
        if types[0] == types[1] and orders[0] == orders[1] and self.stores.same_elsewhere(source, target):
            self._note(path, "elsewhere", "not read: the same parts of the same other files")
            return None, True
        if (others := self._other_files(source, target)) is not None:
            self._note(path, "linked", others)
        try:
            return self._compare(result, source, target, report)
        except TamisError:
            if not self.stores.same_stored_chunks(source, target):
                raise
        text = "its values cannot be read; the stored bytes of all chunks are equal"
        if reason := damage_of(target, report, self.threads):
            text = f"damaged, and the same in both files: {reason}"
        if reason and not self.keep_damaged:
            self.problems.append(Finding(path, "damaged", text))
        else:
            self._note(path, "stored-bytes", text)
        return None, True

    def _other_files(self, source: StoredArray, target: StoredArray) -> str | None:
        """Return which other files have the values of two virtual datasets, in words; None if there are none."""
        first, second = (
            [file for file in dict.fromkeys(file for file, _ in array.elsewhere.virtual_sources) if file]
            for array in (source, target)
        )
        if not (first or second):
            return None
        return f"compared values of {_files_text(first)} with those of {_files_text(second)}"

    def _compare(
        self, result: Compared, source: StoredArray, target: StoredArray, report: Callable[[int, int], None]
    ) -> tuple[Tally | None, bool]:
        """Compare the values of datasets with the same shape, both of numbers or of the same type."""
        path = result.path
        if source.type.numbers is None or target.type.numbers is None:
            unequal = self.stores.unequal_elements(source, target, report)
            if unequal:
                text = f"{unequal.count} of {size_of(source)} differ: at {list(unequal.index)} {unequal.text}"
                (self._note if unequal.harmless else self._violation)(path, "values", text)
            return None, unequal is None or unequal.harmless
        with closing(source.open_reader()) as before, closing(target.open_reader()) as after:
            packing = source.meaning.packing

            def stored(grid: Grid) -> Parts:
                return Parts(grid) if grid.chunk_count == 1 else joined(source.parts(grid), target.parts(grid))

            zero, observer = _zero_of(packing), self.observe(result, source, target)
            tally = compared(before, after, source.meaning.missing, self.threads, report, zero, stored, observer)
            tally = in_units(tally, packing)
        self._judge(result, source, target, tally)
        same_type = self._type_words(source) == self._type_words(target)
        return tally, not tally.different and same_type

    def _judge(self, result: Compared, source: StoredArray, target: StoredArray, tally: Tally) -> None:
        """Add the violations of the bound of a result by differences of values, which are in units."""
        if source.meaning.packing and tally.different:
            self._note(result.path, "packed", f"values, errors and bounds are unpacked, by {source.meaning.packing}")
        reason = self.unbounded.get(result.path, "no bound was given")
        bound = result.bound
        if bound and tally.different:
            self._warn(result.path, bound, source, target)
        if result.recorded and bound and tally.error > bound and only_rounding_exceeds(bound, source, target):
            text = (
                f"the largest error, {tally.error:.7g}, exceeds {bound:.7g} only by rounding to {target.type.numbers}"
            )
            self._note(result.path, "rounded", text)
            bound = float(tally.error)
        for code, text in broken_bounds(tally, bound, reason, result.relative_bound):
            self._violation(result.path, code, text)

    def _warn(self, path: str, bound: float, source: StoredArray, target: StoredArray) -> None:
        """Note a bound that is too large for the values of the source, some of which changed."""
        with closing(target.open_reader()) as after:
            spread = spread_of(source, bound, lambda part, _: values_in_units(target, after.read(part)))
        if spread is not None and (warning := spread.warning(bound)):
            self._note(path, COARSE, warning)

    def _type_words(self, array: StoredArray) -> str:
        """Return the type in words; encoding and padding of texts are a matter of the format."""
        words = array.type.words
        return words.partition(",")[0] if words.startswith("string") and not self.stores.same_format else words

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        """Turn an error of the block into a problem, so that the comparison continues."""
        try:
            with reading(self.before.path, self.after.path, dataset=path):
                yield
        except TamisError as error:
            self.problems.append(Finding(path, "unreadable", str(error)))

    def _violation(self, path: str, code: str, text: str) -> None:
        if path in self.dropped:
            return
        self.violations.append(Finding(path, code, text))

    def _note(self, path: str, code: str, text: str) -> None:
        self.notes.append(Finding(path, code, text))


_Views = tuple[tuple[tuple[str, str], tuple[str, str]], ...]
"""What two views show, each with its file and path: in the source, and in the target."""


def _shown_by(source: StoredArray, target: StoredArray) -> _Views:
    """Return what two arrays show if both are views of as many others; else nothing."""
    before, after = source.elsewhere.virtual_sources, target.elsewhere.virtual_sources
    return tuple(zip(before, after, strict=True)) if len(before) == len(after) else ()


def _files_text(files: Sequence[str]) -> str:
    """Return the first of some files, and how many more there are."""
    if not files:
        return "the file itself"
    return files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def _type_text(dataset: StoredArray) -> str:
    text, order = dataset.type.words, dataset.type.byteorder
    return f"{text}, {order}-endian" if order and order != _NATIVE else text


_NATIVE = "little" if np.dtype("<i4").isnative else "big"


def _zero_of(packing: Packing | None) -> float:
    """Return the stored value that means 0."""
    return packing.stored_zero if packing else 0.0


def _checksum(dataset: StoredArray) -> str:
    """Return the checksum of the chunks as text, and how many have none."""
    names = [stage.filter.name for stage in dataset.storage.pipeline.stages]
    if "fletcher32" not in names or not size_of(dataset) or dataset.storage.chunk_shape is None:
        return "fletcher32" if "fletcher32" in names else "no checksum"
    at, index = names.index("fletcher32"), dataset.chunk_index()
    skipped = int(np.count_nonzero(index.masks >> at & 1))
    return f"fletcher32 except for {skipped} of {len(index)} chunks" if skipped else "fletcher32"
