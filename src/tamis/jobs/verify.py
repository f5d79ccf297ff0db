"""Compare two files: errors of their values, and all other differences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tamis._open import open_store
from tamis.accuracy.compare import compared
from tamis.accuracy.statistics import Tally
from tamis.chunks.threads import checked_threads
from tamis.errors import TamisError
from tamis.hdf5.companions import about_companion
from tamis.hdf5.compare.elements import unequal_elements
from tamis.hdf5.compare.stored_bytes import changed_fill, same_stored_chunks
from tamis.hdf5.compare.structure import attribute_differences, group_changes, link_differences, named_type_change
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.lib.type_text import type_words
from tamis.hdf5.store import Hdf5Store
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree.objects import Objects, array_at, group_at
from tamis.hdf5.tree.walk import Contents, address_of
from tamis.jobs.naming import Names
from tamis.jobs.progress import Progress, Step
from tamis.jobs.verification.bounds import (
    RECORDED,
    Bound,
    Bounds,
    assigned_bounds,
    broken_bounds,
    checked_bounds,
    recorded_bound,
)
from tamis.jobs.verification.result import Compared, Finding, Status, Verification
from tamis.jobs.verification.units import in_units

# Attributes of the netCDF library for its own use; it numbers dimensions anew in each file.
_BOOKKEEPING = ("_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict")


def verify(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    bounds: Bounds | None = None,
    variables: Sequence[str] = (),
    threads: int | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Compare an HDF5 or netCDF-4 file with the one that it was made from.

    The target must have everything that the source has, unchanged. Numbers may differ by their bound; without a bound,
    bits must be the same. How values are stored does not matter. Chunks are decoded in threads, filters that tamis
    knows need no plugin, and memory is bounded: 32 MiB and a few chunks for each thread.

    Parameters
    ----------
    source, target
        Paths of the files; neither is changed.
    bounds
        Largest absolute error by dataset name or pattern, in units of the variable: of unpacked values if it has
        ``scale_factor`` or ``add_offset``. A bound of 0, like no bound, asks for the same bits. ``"recorded"``, as a
        value or in place of the whole mapping, means the bound that the filters of the target record. Exact names take
        precedence over patterns, and earlier patterns over later ones. Missing values, which are NaN, infinities and
        fill values, must be at the same indices with the same bits; those in a companion are restored first.
    variables
        Names of datasets, or patterns such as ``/group/*``, to compare only those; by default all datasets, groups,
        links and attributes.
    threads
        Number of threads; by default as many as the process may use. The result does not depend on it.
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
        If one is no HDF5 or netCDF-4 file, or damaged, or a name or pattern matches none of the compared datasets.
        Datasets that cannot be read are among the `problems` of the result.
    ParameterError
        If a bound is no number of 0 or more, or is for datasets without numbers.

    Examples
    --------
    >>> result = verify("examples/data/cam_ts.nc", "examples/data/cam_ts.nc")
    >>> result.ok, result["TS"].status, result["TS"].tally.error
    (True, 'equal', 0)
    """
    threads = checked_threads(threads)
    selection = [variables] if isinstance(variables, str) else variables
    bounds = checked_bounds(bounds)
    with open_store(source) as first, open_store(target) as second, reading(source, target):
        before = _Side.of(first)
        after = _Side.of(second, before.contents)
        datasets, names = before.contents.datasets, Names(first)
        labels = names.labels(selection) if selection else {path: path for path in datasets}
        limits, named = assigned_bounds(bounds, names, datasets.labelled(labels, others=False), labels)
        comparison = _Comparison(before, after, limits, threads, progress or (lambda *_: None), len(labels))
        for path in datasets:
            if (variable := before.objects.companions.get(path)) in labels and path in labels:
                comparison.companion(path, variable)
            elif path in labels:
                comparison.dataset(path, labels[path] if selection else named.get(path, path))
        if not selection:
            comparison.rest()
    return Verification(
        os.fsdecode(source),
        os.fsdecode(target),
        tuple(comparison.compared),
        tuple(comparison.violations),
        tuple(comparison.notes),
        tuple(comparison.problems),
    )


@dataclass(slots=True)
class _Side:
    store: Hdf5Store
    objects: Objects

    @classmethod
    def of(cls, store: Hdf5Store, like: Contents | None = None) -> _Side:
        with reading(store.path):
            return cls(store, Objects(store.file, store.contents, like))

    @property
    def contents(self) -> Contents:
        """Every array and group."""
        return self.store.contents


@dataclass(slots=True)
class _Comparison:
    """A comparison of two files, with its results so far."""

    before: _Side
    after: _Side
    bounds: Mapping[str, Bound]
    threads: int
    progress: Progress
    count: int
    compared: list[Compared] = field(default_factory=list)
    violations: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)

    def dataset(self, own: str, path: str) -> None:
        """Compare a dataset of the source with that of the same path in the target; `own` is its first path."""
        source, target = self.before.contents.datasets[own], self.after.contents.datasets.get(path)
        if target is None:  # another link may lead to one
            target = array_at(self.after.store.file, path)
        if target is None:
            self._violation(path, "missing-dataset", "no such dataset in the target")
            return
        result, problems = Compared(path), len(self.problems)
        with self._reading(path):
            with reading(self.before.store.path, dataset=path):
                result = replace(result, shape=source.shape, source_type=_type_text(source))
                self._note_companion(path, "source", source)
            with reading(self.after.store.path, dataset=path):
                result = replace(result, target_type=_type_text(target), checksum=_checksum(target))
                result = replace(result, **self._bound(own, target))
                self._note_companion(path, "target", target)
            result = self._values(result, source, target)
        if len(self.problems) > problems:
            result = replace(result, problem=self.problems[-1].text)
        with self._reading(path):
            self._attributes(path, source.dataset.id, target.dataset.id)
        self.compared.append(result)

    def _bound(self, own: str, target: Hdf5Array) -> dict[str, Any]:
        """Return the fields `bound` and `recorded` of a dataset."""
        bound = self.bounds.get(own)
        if bound != RECORDED:
            return {"bound": bound}
        return {"bound": recorded_bound(target), "recorded": True}

    def _note_companion(self, path: str, name: str, dataset: Hdf5Array) -> None:
        if dataset.number_type is not None and (companion := dataset.companion_flags):
            self._note(path, "companion", f"missing values of the {name} are restored from its companion")
            if other := companion.other_shape(dataset.shape):
                self._note(path, "companion", f"{name}: {other}")

    def companion(self, path: str, variable: str) -> None:
        """Note that a companion is not compared itself: its missing values are restored to their dataset before."""
        self._note(path, "companion", f"the companion of {variable}: compared as its missing values")

    def rest(self) -> None:
        """Compare groups, their attributes and links, and note what only the target has."""
        pair = self.before.objects, self.after.objects
        known = self.before.contents.datasets.keys() | self.before.contents.groups.keys()
        for side in (self.before, self.after):
            for path, reason in side.contents.closed.items():
                self.problems.append(Finding(path, "unreadable", f"{side.store.path}: {reason}"))
        for path, group in self.before.contents.groups.items():
            other = self.after.contents.groups.get(path)
            if other is None:
                other = group_at(self.after.store.file, path)
            if other is None:
                self._violation(path, "missing-group", "no such group in the target")
                continue
            with self._reading(path):
                self._attributes(path, group.id, other.id)
            if path in self.before.contents.closed or path in self.after.contents.closed:
                continue
            with self._reading(path):
                for code, text in group_changes(group, other):
                    self._note(path, code, text)
                for link in link_differences(group, other, pair):
                    link_path = f"{path.rstrip('/')}/{link.name}"
                    (self._note if link.added else self._violation)(link_path, "link", link.text)
        for kind, members in (("dataset", self.after.contents.datasets), ("group", self.after.contents.groups)):
            for path, member in members.items():
                # Another path to an object of the source is a new link, not a new object.
                if path not in known and self.after.objects.named(path, address_of(member)):
                    if path in self.after.objects.companions:
                        self.companion(path, self.after.objects.companions[path])
                        continue
                    self._note(path, f"new-{kind}", "only in the target")

    def _attributes(self, path: str, source: object, target: object) -> None:
        for change in attribute_differences(source, target, (self.before.objects, self.after.objects)):
            harmless = change.added or change.name in _BOOKKEEPING or about_companion(change.name, source, target)
            (self._note if harmless else self._violation)(path, "attribute", change.text)

    def _values(self, result: Compared, source: Hdf5Array, target: Hdf5Array) -> Compared:
        """Compare the values of two datasets, and add violations."""
        violations = len(self.violations)
        tally, equal = self._tally(result, source, target)
        status: Status = "equal" if equal else "within-bound"
        if len(self.violations) > violations:
            status = "different"
        return replace(result, tally=tally, equal=equal, status=status)

    def _tally(self, result: Compared, source: Hdf5Array, target: Hdf5Array) -> tuple[Tally | None, bool | None]:
        path, bound = result.path, result.bound
        if source.shape != target.shape:
            self._violation(path, "shape", f"shape {source.shape} became {target.shape}")
            return None, None
        if change := named_type_change(source, target):
            self._note(path, "named-type", change)
        if source.maxshape != target.maxshape:
            self._note(path, "maxshape", f"the largest shape {source.maxshape} became {target.maxshape}")
        types = type_words(source.datatype), type_words(target.datatype)
        numbers = source.number_type is not None and target.number_type is not None
        if types[0] != types[1]:
            converted = numbers and bound
            (self._note if converted else self._violation)(path, "type", f"{types[0]} became {types[1]}")
            if not numbers:
                return None, None
        orders = source.byteorder, target.byteorder
        if orders[0] != orders[1] and all(orders):
            self._note(path, "byte-order", f"{orders[0]}-endian became {orders[1]}-endian")
        report = partial(self.progress, Step(f"comparing {path}", len(self.compared) + 1, self.count))
        if source.shape is None:
            return None, True
        if types[0] == types[1] and (change := changed_fill(source, target)):
            self._note(path, "fill-value", change)
        try:
            return self._compare(result, source, target, report)
        except TamisError:
            if not same_stored_chunks(source, target):
                raise
        self._note(path, "stored-bytes", "its values cannot be read; the stored bytes of all chunks are equal")
        return None, True

    def _compare(
        self, result: Compared, source: Hdf5Array, target: Hdf5Array, report: Callable[[int, int], None]
    ) -> tuple[Tally | None, bool]:
        """Compare the values of datasets with the same shape, both of numbers or of the same type."""
        path, bound = result.path, result.bound
        if source.number_type is None or target.number_type is None:
            unequal = unequal_elements(source, target, (self.before.objects, self.after.objects), report)
            if unequal:
                at = list(unequal.index)
                self._violation(path, "values", f"{unequal.count} of {source.size} differ: at {at} {unequal.text}")
            return None, unequal is None
        with closing(source.open_reader()) as before, closing(target.open_reader()) as after:
            packing = source.packing
            zero = packing.stored_zero if packing else 0.0
            tally = in_units(compared(before, after, source.missing, self.threads, report, zero), packing)
        if packing and tally.different:
            self._note(path, "packed", f"values, errors and bounds are unpacked, by {packing}")
        reason = f"{target.pipeline} records no bound" if result.recorded else "no bound was given"
        for code, text in broken_bounds(tally, bound, reason):
            self._violation(path, code, text)
        same_type = type_words(source.datatype) == type_words(target.datatype)
        return tally, not tally.different and same_type

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        """Turn an error of the block into a problem, so that the comparison continues."""
        try:
            with reading(self.before.store.path, self.after.store.path, dataset=path):
                yield
        except TamisError as error:
            self.problems.append(Finding(path, "unreadable", str(error)))

    def _violation(self, path: str, code: str, text: str) -> None:
        self.violations.append(Finding(path, code, text))

    def _note(self, path: str, code: str, text: str) -> None:
        self.notes.append(Finding(path, code, text))


def _type_text(dataset: Hdf5Array) -> str:
    text, order = type_words(dataset.datatype), dataset.byteorder
    return f"{text}, {order}-endian" if order and order != _NATIVE else text


_NATIVE = "little" if np.dtype("<i4").isnative else "big"


def _checksum(dataset: Hdf5Array) -> str:
    """Return the checksum of the chunks as text, and how many have none."""
    names = [stage.filter.name for stage in dataset.pipeline.stages]
    if "fletcher32" not in names or not dataset.size or dataset.chunk_shape is None:
        return "fletcher32" if "fletcher32" in names else "no checksum"
    at, index = names.index("fletcher32"), dataset.chunk_index()
    skipped = sum(count for mask, count in index.mask_counts().items() if mask >> at & 1)
    return f"fletcher32 except for {skipped} of {len(index)} chunks" if skipped else "fletcher32"
