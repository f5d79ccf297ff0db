"""What the witness of a repack is told: what changed, what other readers need, and what only one side has."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tamis.filters.plugin_folders import netcdf4_folder
from tamis.formats.registry import open_store
from tamis.jobs.repack.planning import Planning, replaced_companions
from tamis.jobs.witness.look import (
    Briefing,
    Elsewhere,
    Expected,
    Need,
    Origin,
    Sources,
    Witnessed,
    XarrayWitness,
    needs_codecs,
)
from tamis.library_lock import imported
from tamis.rewrite.plan import Copy
from tamis.rounding import CONTAINER
from tamis.stores.other_files import NUMBER, place
from tamis.stores.readers import NETCDF_PLUGINS, OF_HDF5, OF_HDF5PLUGIN, hdf5_text

if TYPE_CHECKING:
    from tamis.jobs.repack.options import RepackOptions
    from tamis.jobs.repack.result import Repacked
    from tamis.stores.other_files import OtherFile
    from tamis.stores.protocols import Store

T = TypeVar("T")
_COMPANION_ATTRIBUTE = "ancillary_variables"


def witness_of(
    sources: Sequence[str | os.PathLike[str]],
    store: Store,
    options: RepackOptions,
    dimension: str = "",
    ends: Sequence[int] = (),
) -> XarrayWitness | None:
    """Return the requested witness, which has opened the source; None if none is requested.

    Several sources are joined along a dimension, where they have these ends.
    """
    if not options.witness:
        return None
    return XarrayWitness(Sources(sources, needs_codecs(needs_of(store)), dimension, ends))


def look(
    witness: XarrayWitness | None,
    target: Path,
    store: Store,
    planning: Planning,
    datasets: Iterable[Repacked],
    damaged: Collection[str] = (),
    of_run: Collection[OtherFile] = (),
) -> Witnessed | None:
    """Let a witness, if there is one, compare a target with its source; raise BoundError if it reads them otherwise.

    If `datasets` is empty, as for a target of an earlier run, the plans say what is allowed. The `damaged` ones have
    the stored bytes of the source. `of_run` has the targets of the run to which this one leads.
    """
    if witness is None:
        return None
    assert planning.form is not None
    copies_objects = planning.copies_objects_of(store)
    known = {item.path: _expected(item, planning) for item in datasets if not item.copied}
    if not known:
        known = {path: _planned(path, planning) for path, plan in planning.plans.items() if not isinstance(plan, Copy)}
    known = {path: item for path, item in known.items() if path not in damaged}
    paths = _Paths(store, witness.paths)
    expected = paths.with_all(known)
    absent = {*planning.dropped, *replaced_companions(planning.datasets, planning.plans)}
    leads_elsewhere = copies_objects and not planning.taken_in
    elsewhere = dict(_elsewhere(paths, planning, expected)) if leads_elsewhere else {}
    with open_store(target) as out:
        added = {companion.path for companion, _ in out.arrays.companions()}
        added |= {
            posixpath.join(posixpath.dirname(path), str(array.attributes[CONTAINER]))
            for path, array in out.arrays.items()
            if CONTAINER in array.attributes
        }
        needs = needs_of(out)
    briefing = Briefing(
        expected,
        needs,
        left_out=paths.with_all(dict.fromkeys(absent, "")).keys(),
        added=added,
        translated=() if copies_objects else {item.path for item in planning.form.translations(store)},
        elsewhere=elsewhere,
        damaged=paths.with_all(dict.fromkeys(damaged, "")).keys(),
        of_run=of_run,
        stand_ins=planning.places.stand_ins,
        name=place(planning.places.target_of(store.path) or os.fspath(target)),
        is_same_format=copies_objects,
        origin=partial(_origin, target),
    )
    return witness.look(target, briefing)


def _origin(target: Path, path: str) -> Origin:
    """Return where a path of a target leads, which few paths need."""
    with open_store(target) as out:
        return Origin(out.first_path(path), _file_behind(out, path))


def _file_behind(store: Store, path: str) -> str:
    """Return the other file to which a path leads; empty for an object of the store."""
    linked = store.linked(path)
    return "" if linked is None else linked[0]


class _Paths:
    """The paths that a witness found in a source, with the arrays to which they lead."""

    def __init__(self, store: Store, paths: Iterable[str]) -> None:
        self.store = store
        self.first = {path: store.first_path(path) for path in paths}

    def with_all(self, known: Mapping[str, T]) -> dict[str, T]:
        """Return what is known of arrays by one path of each, by all of their paths."""
        by_first = {self.store.first_path(path): item for path, item in known.items()}
        others = {path: by_first[first] for path, first in self.first.items() if first and first in by_first}
        return {**known, **others}


def _elsewhere(paths: _Paths, planning: Planning, expected: Mapping[str, Expected]) -> Iterator[tuple[str, Elsewhere]]:
    """Yield the paths of a source where its copy has what other targets of the run have, or other arrays of it."""
    virtual = _VirtualSources(paths.store, planning, expected)
    for path, first in paths.first.items():
        if first:
            if first not in expected and (source := virtual.changed_source(first)):
                yield path, Elsewhere(f"a virtual dataset, which has values of {source}")
        elif (file := _file_behind(paths.store, path)) and (target := planning.places.target_of(file)) is not None:
            yield path, Elsewhere(f"a link to {_of_run(target)}", is_linked=True)


def _of_run(target: str) -> str:
    return f"{target}, which this run makes and compares with its own source"


class _VirtualSources:
    """The sources of virtual arrays that stay virtual."""

    def __init__(self, store: Store, planning: Planning, expected: Mapping[str, Expected]) -> None:
        self._store, self._places = store, planning.places
        self._changed = {path for path, item in expected.items() if item.allowed or item.is_filled}

    def changed_source(self, path: str, seen: frozenset[str] = frozenset()) -> str:
        """Return the first source of an array that may have other values in this run, in words; empty if none has."""
        array = self._store.arrays[path]
        if array.storage.layout != "virtual":
            return ""
        for file, inner in array.elsewhere.virtual_sources:
            if found := self._changed_at(file, inner, seen | {path}):
                return found
        return ""

    def _changed_at(self, file: str, inner: str, seen: frozenset[str]) -> str:
        is_own = not file or os.path.realpath(file) == os.path.realpath(self._store.path)
        first = self._store.first_path(inner) if is_own else ""
        other = "" if is_own else file
        if is_own and not first:
            other = _file_behind(self._store, inner)
        if other:
            target = self._places.target_of(other)
            return "" if target is None else _of_run(target)
        if first in self._changed or (NUMBER in inner and not first and self._changed):
            return f"{inner}, which this run changes"
        return self.changed_source(first, seen) if first and first not in seen else ""


def _expected(item: Repacked, planning: Planning) -> Expected:
    """Return what is known of a dataset that was written."""
    bound = item.bound if item.relative_bound is None else None
    allowed = item.largest_error if bound is None else bound
    is_filled = bool(item.missing_mask)
    return Expected(allowed, item.worst, is_filled, _changed_attributes(item.path, planning, is_filled=is_filled))


def _planned(path: str, planning: Planning) -> Expected:
    """Return what a plan allows."""
    plan = planning.plans[path]
    bound = plan.unpacked_bound if plan.relative_bound is None else None
    is_filled = plan.flags is not None
    changed = _changed_attributes(path, planning, is_filled=is_filled)
    return Expected(sys.float_info.max if bound is None else bound, None, is_filled, changed)


def _changed_attributes(path: str, planning: Planning, *, is_filled: bool) -> Collection[str]:
    source = planning.datasets[path]
    names = {*planning.plans[path].new_attributes(source), CONTAINER}
    return names | {_COMPANION_ATTRIBUTE} if is_filled or source.marks.has_companion else names


def needs_of(target: Store) -> dict[str, Need]:
    """Return what readers other than tamis need for the arrays of a target, by path."""
    needs: dict[str, Need] = {}
    for path, array in target.arrays.items():
        if package := array.storage.reader_package:
            needs[path] = Need(package, _is_installed(package))
        elif array.storage.pipeline.stages and Path(target.path).is_file():
            others = [item.name for item in array.storage.pipeline.filters if item.name not in OF_HDF5]
            if others:
                needs[path] = Need(hdf5_text(others), _has_plugins(others))
    return needs


def _is_installed(package: str) -> bool:
    """Return whether zarr-python has the packages for a codec here, which `and` joins; tamis has all of its own."""
    return "tamis" in package.split() or all(map(_has_package, package.split(" and ")))


def _has_package(wanted: str) -> bool:
    """Return whether a package is installed, such as ``pcodec``, or ``zarr 3.2`` and any later version."""
    name, _, least = wanted.partition(" ")
    # Late: importlib.metadata takes as long as all of h5py.
    metadata = imported("importlib.metadata")
    try:
        return _numbers(metadata.version(name)) >= _numbers(least)
    except metadata.PackageNotFoundError:
        return False


def _numbers(text: str) -> list[int]:
    """Return the numbers at the beginning of a version: its release."""
    release = re.match(r"[\d.]*", text)
    return [int(number) for number in release[0].split(".") if number] if release else []


def _has_plugins(filters: Iterable[str]) -> bool:
    """Return whether packages that are installed have plugins of HDF5 for all filters of these names."""
    names = {"zfp"} | (NETCDF_PLUGINS if netcdf4_folder() is not None else frozenset())
    names |= OF_HDF5PLUGIN if find_spec("hdf5plugin") is not None else frozenset()
    return names.issuperset(filters)
