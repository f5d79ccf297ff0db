"""Files with new values for another file, encoded and proven, whose chunks it then takes."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xarray import Dataset, Variable

from tamis import meaning
from tamis.access import PRIVATE_FOLDER
from tamis.arrays.grid import Region
from tamis.errors import ParameterError
from tamis.filters.registry import Stage
from tamis.formatting import plural, printable
from tamis.jobs.progress import Progress
from tamis.jobs.recipes.names import Assigned, Names, absolute, assigned, assigned_shapes
from tamis.jobs.recipes.saved_recipe import Recipe
from tamis.jobs.repack.job import save_store
from tamis.jobs.repack.options import RepackOptions
from tamis.jobs.repack.result import Repacked, RepackResult
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import can_skip_loss, fallback_types
from tamis.rounding import CONTAINER, ERROR_BOUND, ROUNDING_ATTRIBUTES, Pack, recorded_rounding
from tamis.stores.extension import Piece
from tamis.stores.first_bytes import zarr_format_of
from tamis.xarray.appended_content import Change, Content
from tamis.xarray.dask_workers import WorkersSurvey, encode_in_workers
from tamis.xarray.dataset_store import DatasetStore, EncodedGroup, VariableArray
from tamis.xarray.existing import Existing, ExistingFile
from tamis.xarray.packed_steps import check_outside, check_range
from tamis.xarray.saving import Encodings, chunk_shapes, own_pipelines, shape_of, unfiltered, warn_of_unfiltered
from tamis.xarray.stored_filters import is_stored_by, lacks_loss, other_filters


class Pieces:
    """Files with new values, each encoded and proven: those beside old ones, all others, and new variables."""

    def __init__(
        self,
        folder: Path,
        target: Path,
        file: ExistingFile,
        content: Content,
        options: RepackOptions,
        report: Progress,
    ) -> None:
        self._folder, self._file, self._content, self._report = folder, file, content, report
        self._ending = ".zarr" if target.is_dir() else target.suffix
        self._options = options
        self._results: dict[str, list[Repacked]] = {}
        self._places: dict[str, list[Piece]] = {}
        self.new: Path | None = None
        self.source_nbytes = 0
        self.notes: list[str] = []
        self.warnings: list[Any] = []
        self.kept: list[tuple[str, str]] = []
        recipe = options.recipe
        store = DatasetStore(content.encoded, {})
        match = Names(store).match
        self._settled_recipe = content.settled.recipe(store, recipe, content.wanted)
        self._filters = _by_path(assigned(self._settled_recipe.filters, match))
        self._require = _by_path(assigned(self._settled_recipe.require, match))
        self._shapes = assigned_shapes(recipe.chunks, match, lambda path, chunks: shape_of(store, path, chunks))

    def of(self, path: str) -> list[Piece]:
        """Return the pieces of a variable of the file."""
        return self._places.get(path, [])

    def write(self, encodings: Encodings) -> None:
        """Write all files."""
        self._folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
        heads: dict[str, _Part] = {}
        tails: dict[str, _Part] = {}
        for path, change in self._content.changes.items():
            pipeline = self._pipeline(change.found)
            self._check_packing(change)
            head, tail = _divided(change, pipeline)
            if head is not None:
                self._check_head(change.found, pipeline)
                heads[path] = head
            if tail is not None:
                tails[path] = tail
        self._write_parts("beside", heads)
        self._write_parts("more", tails)
        if any(self._content.added.values()):
            self._write_new(encodings)

    def _pipeline(self, found: Existing) -> Pipeline:
        """Return the filters of the file, with a rounding that it records; refuse a recipe with others."""
        asked = self._filters.get(found.path)
        stored = found.array.storage.pipeline
        if asked is not None and self._file.path.is_dir() and lacks_loss(found, asked.value):
            self.notes.append(
                printable(
                    f"{found.path}: new values are stored without loss, by {stored}, because the file has no"
                    f" {asked.value.bounded}, through which none of its chunks went"
                )
            )
        elif asked is not None and not is_stored_by(found, asked.value):
            is_applied = asked.exact or asked.value.error_bound == 0
            if asked.exact:
                raise other_filters(found, asked.value)
            if is_applied:
                self.notes.append(
                    printable(
                        f"{found.path}: keeps the filters that it has in the file, {stored}, not those of"
                        f" {asked.name!r}"
                    )
                )
        chunks = self._shapes.get(found.path)
        if chunks is not None and found.array.storage.chunk_shape not in (None, chunks):
            self.notes.append(
                printable(f"{found.path}: keeps the chunks that it has in the file, {found.array.storage.chunk_shape}")
            )
        if self._file.path.is_dir() and any(item.unencodable() for item in stored.filters):
            return Pipeline()  # zarr-python encodes
        rounding = recorded_rounding(found.array.attributes, found.array.type.numbers)
        # HDF5 files seldom record that a filter is required, so the recipe says so again. Codecs of Zarr all seem to
        # be; whether one can do without loss turns out when a chunk needs it.
        required = {type(item.filter) for item in asked.value.stages if not item.optional} if asked else set[type]()
        is_zarr = self._file.path.is_dir()
        stages = [
            Stage(item.filter, item.optional)
            if item.filter.error_bound == 0
            else Stage(item.filter, (item.optional or is_zarr) and type(item.filter) not in required)
            for item in stored.stages
        ]
        if is_zarr and asked is not None and is_stored_by(found, asked.value) and not asked.value.rounding:
            stages = _with_fallback(stages, asked.value)
        numbers = found.array.type.numbers
        if rounding is not None and numbers is not None and numbers.kind == "f" and stored.error_bound == 0:
            return Pipeline([rounding, *stages])
        return Pipeline(stages)

    def _check_packing(self, change: Change) -> None:
        """Refuse a recipe with another range than that of the file, and values outside one that takes none."""
        asked = self._filters.get(change.found.path)
        if asked is None or not isinstance(pack := asked.value.rounding, Pack):
            return
        if is_stored_by(change.found, asked.value):
            group, name = posixpath.split(change.found.path)
            check_range(change.found, pack)
            check_outside(change.found, self._content.encoded[group].dataset.variables[name], change.stored, pack)

    def _check_head(self, found: Existing, pipeline: Pipeline) -> None:
        """Refuse to store steps beside old ones with a loss that would be the second one of the old ones."""
        if pipeline.without_rounding.error_bound == 0:
            return
        steps, full = found.length % found.chunk_length, found.chunk_length
        if not (can_skip_loss(pipeline.without_rounding) and can_skip_loss(found.array.storage.pipeline)):
            raise ParameterError(
                f"{found.path}: its last chunk has {steps} of {full} steps, which a required filter stores with loss"
                f" ({pipeline}), and more steps in it would make them lose twice: append to files that end with a whole"
                f" chunk, a multiple of {full} steps, or repack this one with an optional filter,"
                f" {pipeline.without_rounding.filters[0]}"
            ).at(dataset=found.path)
        self.notes.append(
            printable(
                f"{found.path}: {plural(found.head_count, 'step')} in chunks with older ones, stored without loss, so"
                f" that those keep their bits; after a multiple of {full} steps there are none"
            )
        )

    def _write_parts(self, name: str, parts: Mapping[str, _Part]) -> None:
        """Write new values of variables of the file to a file of their own."""
        if not parts:
            return
        groups: dict[str, dict[str, Variable]] = {}
        unlimited: dict[str, set[str]] = {}
        filters: dict[str, Pipeline] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        require: dict[str, Any] = {}
        for path, part in parts.items():
            group, own = posixpath.split(path)
            groups.setdefault(group, {})[own] = part.variable
            array = self._content.changes[path].found.array
            growing = [str(dim) for dim, most in zip(part.variable.dims, array.maxshape, strict=True) if most is None]
            growing += self._growing(part, array.storage.chunk_shape)
            unlimited.setdefault(group, set()).update(growing)
            if array.type.varies or not part.variable.ndim or not part.variable.size:
                continue
            if array.storage.chunk_shape is not None:
                shapes[path], filters[path] = array.storage.chunk_shape, part.pipeline
            if part.pipeline.error_bound != 0 and path in self._require:
                require[path] = self._require[path].value
            elif part.pipeline.without_rounding.error_bound and meaning.asked_bound(array.attributes) is not None:
                require[path] = f"abs={meaning.asked_bound(array.attributes)!r}"
        encoded = {
            group: EncodedGroup(Dataset(), variables, {}, {}, frozenset(unlimited[group]))
            for group, variables in groups.items()
        }
        store = DatasetStore(encoded, {})
        for path in parts:
            array = self._content.changes[path].found.array
            if array.type.numbers is not None:
                store.arrays[path].fill = array.fill
        result = self._save(store, name, Recipe(filters, chunks=shapes, require=require), self._form())
        for path, part in parts.items():
            self._places.setdefault(path, []).append(Piece(Path(result.target), path, part.start))
        for item in result.datasets:
            found = self._content.changes[item.path].found
            worst = None if item.worst is None else shifted(item.worst, found.axis, parts[item.path].start)
            # What is said of a piece alone, such as filters that none of its chunks needs, is not true of the file.
            pipeline = str(found.array.storage.pipeline)
            self._results.setdefault(item.path, []).append(
                replace(item, worst=worst, pipeline=pipeline, left_out="", notes=())
            )

    def _growing(self, part: _Part, chunk_shape: tuple[int, ...] | None) -> list[str]:
        """Return the dimensions of new values that count as unlimited.

        In HDF5 that is the one that grows: one day, programs may read a chunk beyond its present end, which therefore
        has fill values. Programs for Zarr write such a chunk anew. There, it is those shorter than a chunk.
        """
        if self._file.path.is_file():
            return [*part.growing]
        sizes = zip(part.variable.sizes.items(), chunk_shape or part.variable.shape, strict=True)
        return [str(name) for (name, extent), step in sizes if step > extent]

    def _write_new(self, encodings: Encodings) -> None:
        """Write variables that the file does not have yet to a file of their own."""
        content = self._content
        groups = {
            path: replace(group, variables={name: group.variables[name] for name in content.added[path]})
            for path, group in content.encoded.items()
            if path in content.added
        }
        own = own_pipelines(groups)
        new = {name: item for name, item in encodings.items() if absolute(name) not in content.changes}
        warn_of_unfiltered(groups, new, own)
        store = DatasetStore(groups, own, keeps_lists=self._ending == ".zarr")
        recipe = self._settled_recipe
        filters = {
            path: item.value for path, item in self._filters.items() if path in store.arrays and _applies(store, item)
        }
        require = {path: item.value for path, item in self._require.items() if path in filters}
        asked = {path: shape for path, shape in self._shapes.items() if path in store.arrays}
        shapes = chunk_shapes(groups, store, Recipe(filters, chunks=asked), own, new)
        stored = Recipe(filters, chunks=shapes, require=require, missing=recipe.missing)
        form = self._form({name: self._options.form.get(name) for name in ("shards", "packed_as")})
        result = self._save(store, "new", stored, form, checksum=self._options.checksum)
        self.new = Path(result.target)
        self.kept += unfiltered(groups, own, result)
        self.notes += result.notes
        for item in result.datasets:
            self._results.setdefault(item.path, []).append(item)
        for group in groups.values():
            self.notes += [
                printable(f"{name}: {note}") for name, note in group.notes.items() if name in group.variables
            ]

    def _form(self, others: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the options of the format for a store of pieces; files of HDF5 need none."""
        if self._file.path.is_file():
            return {}
        return {"zarr_format": zarr_format_of(self._file.path), "consolidated": False, **(others or {})}

    def _save(
        self, store: DatasetStore, name: str, recipe: Recipe, form: Mapping[str, Any], *, checksum: bool = False
    ) -> RepackResult:
        options = replace(
            self._options,
            recipe=recipe,
            checksum=checksum,
            larger=True,
            history="",
            overwrite=False,
            form=form,
            will_grow=True,
        )
        place = self._folder / f"{name}{self._ending}"
        with store:
            result = save_store(
                store,
                place,
                options,
                self._report,
                elsewhere=encode_in_workers,
                survey=WorkersSurvey,
                sample=VariableArray.sample,
            )
        self.source_nbytes += result.source_nbytes
        self.warnings += result.warnings
        self.kept += [(path, reason) for path, reason in result.kept if path not in self._content.changes]
        return result

    def results(self) -> tuple[Repacked, ...]:
        """Return what is known of each variable, with the loss of its encoding."""
        joined = [_joined(items) for items in self._results.values()]
        return self._content.settled.with_losses(joined, self._content.wanted)


def _with_fallback(stages: Sequence[Stage], asked: Pipeline) -> list[Stage]:
    """Return the filters of a Zarr store with those of a recipe that no chunk needed yet, which the store lacks."""
    idle, known = fallback_types(asked), {type(stage.filter) for stage in stages}
    more = [stage for stage in asked.stages if type(stage.filter) in idle and type(stage.filter) not in known]
    count = 1 + max((at for at, stage in enumerate(stages) if stage.filter.error_bound != 0), default=-1)
    return [*stages[:count], *more, *stages[count:]]


def _by_path(entries: Iterable[Assigned[Any]]) -> dict[str, Assigned[Any]]:
    """Return the first value for each path: exact names come before patterns."""
    first: dict[str, Assigned[Any]] = {}
    for entry in entries:
        first.setdefault(entry.path, entry)
    return first


def _applies(store: DatasetStore, entry: Assigned[Pipeline]) -> bool:
    """Return whether filters are for a new variable: a lossy pattern leaves coordinates and the like exact."""
    return entry.exact or entry.value.error_bound == 0 or not store.roles[entry.path].is_exact


class _Part(NamedTuple):
    """New values of a variable of the file, which take whole chunks."""

    variable: Variable
    start: int  # Place of the first one along the axis that grows
    pipeline: Pipeline
    growing: Collection[str]  # Names of its dimensions that can grow


def _divided(change: Change, pipeline: Pipeline) -> tuple[_Part | None, _Part | None]:
    """Return the values that share chunks with old ones, together with these, and all others."""
    found, stored = change.found, change.stored
    attributes = {
        name: value
        for name, value in {**found.named.attributes}.items()
        if name not in (*ROUNDING_ATTRIBUTES, ERROR_BOUND, CONTAINER)
    }
    plain = Variable(stored.dims, stored._data, attributes, _enum_encoding(stored))
    if found.axis is None:
        return None, _Part(plain, 0, pipeline, ())
    head = None
    count = found.head_count
    if found.length % found.chunk_length and count:
        with closing(found.array.open_reader()) as reader:
            old = reader.read(_along(found, found.begin, found.length))
        new = np.asarray(plain[_along(found, 0, count)].values)
        joined = np.concatenate([old.view(new.dtype) if old.dtype.kind == "V" else old, new], axis=found.axis)
        lossless = Pipeline(stage for stage in pipeline.stages if stage.filter.error_bound == 0)
        if pipeline.rounding is not None:
            lossless = Pipeline([pipeline.rounding, *lossless.stages])
        head = _part(found, Variable(plain.dims, joined, attributes, plain.encoding), found.begin, lossless)
    if count == found.count:
        return head, None
    rest = plain if not count else plain[_along(found, count, found.count)]
    return head, _part(found, rest, found.length + count, pipeline)


def _enum_encoding(stored: Variable) -> dict[str, Any]:
    """Return the part of an encoding that has the members of an enumeration."""
    return {"dtype": stored.encoding["dtype"]} if "dtype" in stored.encoding else {}


def _part(found: Existing, values: Variable, start: int, pipeline: Pipeline) -> _Part:
    """Return values with a dimension of their own, because those of another variable may have another length."""
    assert found.axis is not None
    name = f"{values.dims[found.axis]}_{values.shape[found.axis]}_steps"
    dims = tuple(name if number == found.axis else dim for number, dim in enumerate(values.dims))
    return _Part(Variable(dims, values._data, values.attrs, values.encoding), start, pipeline, (name,))


def _along(found: Existing, start: int, stop: int) -> Region:
    return tuple(
        slice(start, stop) if number == found.axis else slice(0, extent)
        for number, extent in enumerate(found.named.shape)
    )


def shifted(part: Region, axis: int | None, start: int) -> Region:
    """Return a part that begins further along an axis."""
    return tuple(
        slice(own.start + start, own.stop + start) if number == axis else own for number, own in enumerate(part)
    )


def _joined(items: list[Repacked]) -> Repacked:
    """Return one result for both parts of a variable; the filters are those of the later one."""
    if len(items) == 1:
        return items[0]
    head, tail = items
    sums = {
        name: getattr(head, name) + getattr(tail, name)
        for name in ("nbytes", "source_nbytes", "target_nbytes", "chunks", "lossless_chunks", "missing_values")
    }
    return replace(tail, **sums, largest_error=max(head.largest_error, tail.largest_error))
