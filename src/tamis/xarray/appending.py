"""Add datasets to an existing netCDF-4 file or Zarr store: new steps of its variables, new variables and groups.

1. `tamis.xarray.existing` finds each variable of the datasets in the file. It gets the encoding that it has there.
2. New values are written to files of their own, by `tamis.jobs.repack.job.save_store`, which proves them: those that
   share chunks with old ones without loss, all others by the filters of the file.
3. A copy of the file takes their chunks as they are (`tamis.stores.extension`).
4. The copy is read: new values, old values beside them, old chunks; then xarray reads it, and it gets the file's name.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from xarray import Dataset, Variable

from tamis import _native
from tamis.access import PRIVATE_FOLDER
from tamis.arguments import TEXT
from tamis.arrays.grid import Region, grid_of
from tamis.arrays.reader import ArrayReader
from tamis.caller import warn_caller
from tamis.errors import BoundError, DataError, FileError, ParameterError, TamisError
from tamis.filters import Fletcher32
from tamis.filters.registry import Stage
from tamis.formats.registry import extender_of, open_store, target_form
from tamis.formatting import plural, printable
from tamis.jobs.recipes.names import Assigned, Names, absolute, assigned, assigned_shapes
from tamis.jobs.recipes.saved_recipe import Recipe
from tamis.jobs.repack.job import save_store
from tamis.jobs.repack.options import RepackOptions
from tamis.jobs.repack.result import Repacked, RepackResult
from tamis.jobs.witness.process import Key
from tamis.meaning.variables import HISTORY, with_line
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import can_skip_loss, fallback_types
from tamis.rounding import CONTAINER, ERROR_BOUND, ROUNDING_ATTRIBUTES, recorded_rounding
from tamis.safety.disk import Identity, nbytes_of
from tamis.safety.journal import marked
from tamis.safety.transaction import segments_of
from tamis.stores.extension import Piece
from tamis.stores.first_bytes import zarr_format_of
from tamis.xarray.dask_workers import WorkersSurvey, encode_in_workers
from tamis.xarray.dataset_store import (
    DatasetStore,
    EncodedGroup,
    VariableArray,
    attribute_forms,
    attribute_values,
    encode_group,
)
from tamis.xarray.existing import (
    Existing,
    ExistingFile,
    as_stored,
    difference_text,
    first_difference,
    same_value,
    with_stored_encoding,
)
from tamis.xarray.filter_encoding import FILTER_KEYS, encoding_pipeline
from tamis.xarray.last_witness import Grown, check_extended
from tamis.xarray.saving import (
    Encodings,
    SaveMode,
    check_arguments,
    chunk_shapes,
    own_pipelines,
    refuse_unused,
    save,
    shape_of,
    warn_of_unfiltered,
    with_encodings,
)
from tamis.xarray.settled import Settled, asked_of, settle, without_encodings

if TYPE_CHECKING:
    from tamis.jobs.witness.look import Witnessed
    from tamis.stores.protocols import Store, StoredArray

Progress = Callable[[str, int, int], None]


class _Change(NamedTuple):
    """A variable of the file that gets values."""

    found: Existing
    stored: Variable  # New values, in the type of the file

    @property
    def grows(self) -> bool:
        """Whether it gets more steps; otherwise all its values are replaced."""
        return self.found.axis is not None


@dataclass(slots=True)
class _Content:
    """Datasets, sorted by what becomes of their variables in the file."""

    encoded: dict[str, EncodedGroup]
    changes: dict[str, _Change]  # By path
    added: dict[str, list[str]]  # Names of new variables by group
    unchanged: list[str]
    settled: Settled
    notes: list[str] = field(default_factory=list)


def append_or_save(
    datasets: Mapping[str, Dataset],
    target: str | os.PathLike[str],
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    options: RepackOptions,
    progress: Progress | None,
    *,
    mode: SaveMode | None,
    append_dim: str | None,
) -> RepackResult:
    """Add datasets by the path of their group to a file or store, or save them if there is none.

    See ``Dataset.tamis.to_netcdf``.
    """
    check_arguments(target, encodings, unlimited_dims, options, progress)
    TEXT.check_optional("append_dim", append_dim)
    if mode not in (None, "w", "a"):
        raise ParameterError(f"expected mode to be 'w' or 'a', got {mode!r}")
    if mode == "w" and append_dim is not None:
        raise ParameterError(f"mode='w' writes a new file, and append_dim={append_dim!r} adds to one: leave one out")
    if options.overwrite:
        raise ParameterError("overwrite=True replaces a file, and mode='a' and append_dim keep it: leave one out")
    place = Path(os.fsdecode(target))
    if place.exists():
        return _append(datasets, place, encodings, unlimited_dims, options, progress, append_dim)
    unlimited_dims = _with_dimension(datasets, unlimited_dims, append_dim)
    return save(datasets, target, encodings, unlimited_dims, options, progress)


def _with_dimension(
    datasets: Mapping[str, Dataset], unlimited_dims: Collection[str] | None, append_dim: str | None
) -> Collection[str] | None:
    """Return the unlimited dimensions of a new file to which steps will be appended."""
    if append_dim is None:
        return unlimited_dims
    for dataset in datasets.values():
        if append_dim not in dataset.dims:
            continue
        known = dataset.encoding.get("unlimited_dims", ()) if unlimited_dims is None else unlimited_dims
        known = [known] if isinstance(known, str) else known
        return {*map(str, known), append_dim} & {*map(str, dataset.dims)}
    raise ParameterError(f"expected append_dim to be a dimension of the dataset, got {append_dim!r}")


def _append(
    datasets: Mapping[str, Dataset],
    target: Path,
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    options: RepackOptions,
    progress: Progress | None,
    append_dim: str | None,
) -> RepackResult:
    """Add datasets by the path of their group to a file or store that exists."""
    began = time.perf_counter()
    extend, identity = extender_of(target), Identity.of(target)
    recipe = options.recipe
    if recipe.missing == "mask":
        raise ParameterError("expected missing to be exact or refuse for a file that exists: masks are for new files")
    report = progress or (lambda *_: None)
    with ExistingFile(target) as file:
        form = target_form(target, **_form_options(target, options))
        content = _sorted(datasets, file, encodings, unlimited_dims, recipe, append_dim)
        lengths = _lengths(file, content, append_dim)
        with form.begin(target, overwrite=True) as transaction, marked(transaction):
            pieces = _Pieces(segments_of(transaction.path), target, file, content, options, report)
            pieces.write(encodings)
            extension = extend(transaction.path, transaction.mode)
            attributes = dict(_new_attributes(file, datasets, content))
            forms = {path: attribute_forms(values) for path, values in attributes.items()}
            attributes = {path: attribute_values(values) for path, values in attributes.items()}
            if options.history:
                _add_history(attributes, file, content, append_dim, lengths)
            with extension:
                for owner, (_, length) in lengths.items():
                    extension.set_length(owner, length)
                for path, change in content.changes.items():
                    found = change.found
                    extension.extend(found.array.path, found.new_shape, found.axis or 0, pieces.of(path))
                if (new := pieces.new) is not None:
                    extension.add(new, {path: group.attributes for path, group in content.encoded.items()})
                for path, values in attributes.items():
                    known = content.changes.get(path)
                    extension.set_attributes(path if known is None else known.found.array.path, values, forms.get(path))
                extension.finish()
            transaction.begin_sync()
            with open_store(transaction.path) as out:
                _check_values(content, pieces, file.store, out)
                extension.check_kept(
                    file.store, out, {path: _rewritten(item) for path, item in content.changes.items()}
                )
            results = pieces.results()
            witnessed = _witness(transaction.path, file, content, results)
            if Identity.of(target) != identity:
                raise FileError(f"{target}: changed while it was read: append again").at(path=target)
            transaction.commit()
    notes = [*content.settled.notes, *content.notes, *pieces.notes]
    notes += [f"{posixpath.basename(owner)}: {old} + {new - old} steps" for owner, (old, new) in lengths.items()]
    if content.unchanged:
        notes.append(printable(f"already in the file, and equal: {', '.join(content.unchanged)}"))
    for place, text in pieces.warnings:
        warn_caller(printable(f"{place}: {text}"))
    return RepackResult(
        source="xarray",
        target=os.fspath(target),
        source_nbytes=pieces.source_nbytes,
        target_nbytes=nbytes_of(target),
        datasets=results,
        kept=tuple(pieces.kept),
        seconds=time.perf_counter() - began,
        notes=(*notes, *transaction.notes),
        warnings=tuple(pieces.warnings),
        witness=witnessed,
    )


def _form_options(target: Path, options: RepackOptions) -> dict[str, Any]:
    """Return the options of the format; the version of Zarr is that of the store."""
    given = {name: value for name, value in options.form.items() if value is not None}
    if target.is_dir() and given.setdefault("zarr_format", own := zarr_format_of(target)) != own:
        raise ParameterError(f"expected zarr_format={own}, that of {target}, got {given['zarr_format']}: leave it out")
    return given


def _sorted(
    datasets: Mapping[str, Dataset],
    file: ExistingFile,
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    recipe: Recipe,
    append_dim: str | None,
) -> _Content:
    """Encode all variables, those of the file as it has them, and find out what becomes of each."""
    prepared = {path: with_encodings(path, dataset, encodings, [*datasets]) for path, dataset in datasets.items()}
    own = {absolute(name): encoding for name, encoding in encodings.items()}
    existing: dict[str, Existing] = {}
    for group, dataset in prepared.items():
        for key, variable in dataset.variables.items():
            name, path = str(key), posixpath.join(group, str(key))
            if (found := file.find(group, name, variable, append_dim)) is not None:
                existing[path] = found
                dataset.variables[key].encoding = with_stored_encoding(found, variable, own.get(path, {})).encoding
                _refuse_other_filters(found, own.get(path, {}))
            elif append_dim in variable.dims:
                _refuse_new_with_dimension(file, group, name, str(append_dim))
            else:
                _check_new_dimensions(file, group, name, variable)
    if append_dim is not None and not any(found.axis is not None for found in existing.values()):
        raise ParameterError(
            f"expected append_dim to be a dimension of variables that {file.path} has, got {append_dim!r}"
        )
    encode = _encoder(unlimited_dims, file)
    groups = {path: encode(dataset) for path, dataset in prepared.items()}
    refuse_unused(groups, {name: item for name, item in encodings.items() if absolute(name) not in existing})
    wanted = asked_of(DatasetStore(groups, {}), recipe)
    settled = _settled(groups, {*existing, *own}, wanted, existing, file)
    for path in dict.fromkeys(map(posixpath.dirname, settled.left_out)):
        groups[path] = encode(without_encodings(prepared[path], path, settled.left_out))
    content = _Content(groups, {}, {}, [], settled)
    for group, encoded in groups.items():
        for name, variable in encoded.variables.items():
            path = posixpath.join(group, name)
            if (found := existing.get(path)) is None:
                content.added.setdefault(group, []).append(name)
                continue
            stored = as_stored(found, variable)
            if found.axis is not None:
                content.changes[path] = _Change(found, stored)
            elif (misfit := first_difference(found, stored)) is None:
                content.unchanged.append(path)
            elif append_dim is not None:
                raise DataError(difference_text(found, misfit, append_dim)).at(dataset=path)
            else:
                content.changes[path] = _Change(found, stored)
    replaced = [path for path, change in content.changes.items() if not change.grows]
    if replaced:
        content.notes.append(printable(f"new values in place of old ones: {', '.join(replaced)}"))
    return content


def _encoder(unlimited_dims: Collection[str] | None, file: ExistingFile) -> Callable[[Dataset], EncodedGroup]:
    """Return the function that encodes a dataset by the conventions of the file's format."""

    def encode(dataset: Dataset) -> EncodedGroup:
        dims = set(map(str, dataset.dims))
        names = set(map(str, dataset.encoding.get("unlimited_dims", ()))) & dims
        return encode_group(dataset, names if unlimited_dims is None else unlimited_dims, is_netcdf=file.path.is_file())

    return encode


def _settled(
    groups: Mapping[str, EncodedGroup],
    given: Collection[str],
    wanted: Mapping[str, Any],
    existing: Collection[str],
    file: ExistingFile,
) -> Settled:
    try:
        return settle(groups, given, wanted)
    except DataError as error:
        if error.dataset in existing:
            raise DataError(
                f"{error}; that is how {file.path} stores it, and what is appended is stored alike: write a new file,"
                " mode='w', with another encoding"
            ).at(dataset=error.dataset) from error
        raise


def _refuse_other_filters(found: Existing, asked: Mapping[str, Any]) -> None:
    """Raise ParameterError if a given encoding has other filters or chunks than the file."""
    chunks = asked.get("chunksizes")
    if chunks is not None and tuple(chunks) != found.array.storage.chunk_shape:
        raise ParameterError(
            f"{found.path}: expected chunksizes={found.array.storage.chunk_shape}, as in the file, got {tuple(chunks)}:"
            " leave it out"
        ).at(dataset=found.path)
    if any(asked.get(key) not in (None, False) for key in FILTER_KEYS):
        pipeline = encoding_pipeline(posixpath.basename(found.path), asked)
        if not _is_stored_by(found, pipeline):
            raise _other_filters(found, pipeline)


def _refuse_new_with_dimension(file: ExistingFile, group: str, name: str, append_dim: str) -> None:
    path = posixpath.join(group, name)
    if file.owner_of(group, append_dim):
        raise ParameterError(
            f"{path}: has the dimension {append_dim}, and {file.path} has no such variable with the earlier steps:"
            f" leave it out, ds.drop_vars({name!r}), or add it with all steps first, mode='a'"
        ).at(dataset=path)
    raise ParameterError(
        f"{path}: expected append_dim to be a dimension that {file.path} has in the group {group}, got {append_dim!r}"
    ).at(dataset=path)


def _check_new_dimensions(file: ExistingFile, group: str, name: str, variable: Variable) -> None:
    """Raise ParameterError if a new variable has a dimension of another length than its group."""
    known = file.group(group).dimensions
    for dimension, extent in variable.sizes.items():
        own = known.get(str(dimension))
        if own is not None and own.size != extent:
            advice = f": to add steps at its end, give append_dim={str(dimension)!r}" if own.is_unlimited else ""
            raise ParameterError(
                f"{posixpath.join(group, name)}: expected {own.size} along {dimension}, as in the file, got {extent}"
                f"{advice}"
            ).at(dataset=posixpath.join(group, name))


def _lengths(file: ExistingFile, content: _Content, append_dim: str | None) -> dict[str, tuple[int, int]]:
    """Return the old and the new length of each dimension that grows, by its path.

    Raises
    ------
    ParameterError
        If the file has a variable with such a dimension that gets no steps, or another number of them.
    """
    lengths: dict[str, tuple[int, int]] = {}
    for path, change in content.changes.items():
        if append_dim is None or not change.grows:
            continue
        found, owner = change.found, file.owner_of(posixpath.dirname(path), append_dim)
        both = found.length, found.length + found.count
        if lengths.setdefault(owner, both) != both:
            raise ParameterError(
                f"{path}: expected {lengths[owner][1] - lengths[owner][0]} steps along {append_dim}, as the others"
                f" have, got {found.count}"
            ).at(dataset=path)
    for owner in lengths:
        if absent := [path for path in file.with_dimension(owner) if path not in content.changes]:
            raise ParameterError(
                f"{absent[0]}: expected it in the dataset, because it has the dimension {append_dim} in {file.path},"
                " and would be shorter than the others"
            ).at(dataset=absent[0])
    return lengths


def _is_stored_by(found: Existing, asked: Pipeline) -> bool:
    """Return whether the file stores a variable by filters that are asked for, apart from checksums.

    Filters behind zfp that no chunk needed yet may be absent.
    """
    storage, attributes = found.array.storage, found.array.attributes
    rounding = recorded_rounding(attributes, found.array.type.numbers)
    if asked.rounding is not None and asked.rounding != rounding:
        return False
    own, new = (
        [stage for stage in item.stages if not isinstance(stage.filter, Fletcher32)]
        for item in (storage.pipeline, asked)
    )
    if len(own) != len(new):
        idle = fallback_types(asked)
        own, new = ([stage for stage in stages if type(stage.filter) not in idle] for stages in (own, new))
    bound = attributes.get(ERROR_BOUND)
    if asked.bound is not None or any(item.open_bound is not None for item in asked.filters):
        bounds = [asked.bound, *(item.open_bound for item in asked.filters)]
        same_bound = bound is not None and any(item is not None and float(item) == float(bound) for item in bounds)
        return same_bound and [type(stage.filter) for stage in own] == [type(stage.filter) for stage in new]
    chunk = storage.chunk
    return len(own) == len(new) and all(
        before.filter == after.filter or _recorded(after, chunk) == before.filter
        for before, after in zip(own, new, strict=True)
    )


def _recorded(stage: Stage, chunk: Any) -> object:
    """Return a filter as a file has it, which rounds a tolerance; None if it is not for such chunks."""
    try:
        return type(stage.filter).from_values(stage.filter.stored(chunk))
    except TamisError:
        return None


def _other_filters(found: Existing, asked: Pipeline) -> ParameterError:
    return ParameterError(
        f"{found.path}: expected the filters that it has in the file, {found.array.storage.pipeline}, got {asked}:"
        " leave out its recipe, or write the file anew with other filters (tamis repack)"
    ).at(dataset=found.path)


def _rewritten(change: _Change) -> tuple[int, int]:
    """Return the axis, and the first step along it, from which on chunks of a variable are new."""
    return (change.found.axis, change.found.begin) if change.found.axis is not None else (0, 0)


class _Pieces:
    """Files with new values, each encoded and proven: those beside old ones, all others, and new variables."""

    def __init__(
        self,
        folder: Path,
        target: Path,
        file: ExistingFile,
        content: _Content,
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
        wanted = asked_of(store, recipe)
        self._wanted = wanted
        self._settled_recipe = content.settled.recipe(store, recipe, wanted)
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
        if asked is not None and not _is_stored_by(found, asked.value):
            is_applied = asked.exact or asked.value.error_bound == 0
            if asked.exact:
                raise _other_filters(found, asked.value)
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
        stages = [Stage(stage.filter, stage.optional) for stage in stored.stages]
        numbers = found.array.type.numbers
        if rounding is not None and numbers is not None and numbers.kind == "f" and stored.error_bound == 0:
            return Pipeline([rounding, *stages])
        return Pipeline(stages)

    def _check_head(self, found: Existing, pipeline: Pipeline) -> None:
        """Refuse to store steps beside old ones with a loss that would be the second one of the old ones."""
        if pipeline.without_rounding.error_bound == 0:
            return
        steps, full = found.length % found.chunk_length, found.chunk_length
        if not can_skip_loss(pipeline.without_rounding):
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
            # Beyond the end of a chunk, readers of HDF5 may see more of it one day; those of Zarr write whole chunks.
            unlimited.setdefault(group, set()).update(growing, part.growing if self._file.path.is_file() else ())
            if array.type.varies or not part.variable.ndim or not part.variable.size:
                continue
            if array.storage.chunk_shape is not None:
                shapes[path], filters[path] = array.storage.chunk_shape, part.pipeline
            if part.pipeline.error_bound != 0 and path in self._require:
                require[path] = self._require[path].value
            elif part.pipeline.without_rounding.error_bound and ERROR_BOUND in array.attributes:
                require[path] = f"abs={float(array.attributes[ERROR_BOUND])!r}"
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
            worst = None if item.worst is None else _shifted(item.worst, found.axis, parts[item.path].start)
            # What is said of a piece alone, such as filters that none of its chunks needs, is not true of the file.
            pipeline = str(found.array.storage.pipeline)
            self._results.setdefault(item.path, []).append(
                replace(item, worst=worst, pipeline=pipeline, left_out="", notes=())
            )

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
            self._options, recipe=recipe, checksum=checksum, larger=True, history="", overwrite=False, form=form
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
        return self._content.settled.with_losses(joined, self._wanted)


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


def _divided(change: _Change, pipeline: Pipeline) -> tuple[_Part | None, _Part | None]:
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


def _shifted(part: Region, axis: int | None, start: int) -> Region:
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


def _new_attributes(
    file: ExistingFile, datasets: Mapping[str, Dataset], content: _Content
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the attributes that differ from those of the file, by path: of groups and of variables that it has."""
    for group, dataset in datasets.items():
        if group not in file.paths:
            continue
        before = file.decoded(group)
        own = {name: value for name, value in dataset.attrs.items() if not _has(before.attrs, name, value)}
        listed = _listed(file.group(group).attributes, content.encoded[group].attributes, content.added.get(group, ()))
        if values := own | listed:
            content.notes.append(printable(f"{group}: new attributes: {', '.join(values)}"))
            yield group, values
        for key, variable in dataset.variables.items():
            path = posixpath.join(group, str(key))
            if path not in content.changes and path not in content.unchanged:
                continue
            known = before.variables[str(key)]
            differing = {
                name: value
                for name, value in variable.attrs.items()
                if not _has({**known.attrs, **known.encoding}, name, value)
            }
            encoded = content.encoded[group].variables[str(key)]
            listed = _listed(
                file.group(group).variables[str(key)].attributes, encoded.attrs, content.added.get(group, ())
            )
            if values := differing | listed:
                content.notes.append(printable(f"{path}: new attributes: {', '.join(values)}"))
                yield path, values


def _has(attributes: Mapping[Any, Any], name: object, value: Any) -> bool:
    return name in attributes and same_value(attributes[name], value)


_COORDINATES = "coordinates"


def _listed(before: Mapping[str, Any], after: Mapping[str, Any], added: Collection[str]) -> dict[str, str]:
    """Return the attribute that lists coordinates, with those that are new; nothing if none is."""
    known = str(before.get(_COORDINATES, "")).split()
    new = [name for name in str(after.get(_COORDINATES, "")).split() if name in added and name not in known]
    return {_COORDINATES: " ".join([*known, *new])} if new else {}


def _add_history(
    attributes: dict[str, dict[str, Any]],
    file: ExistingFile,
    content: _Content,
    append_dim: str | None,
    lengths: Mapping[str, tuple[int, int]],
) -> None:
    """Add a line about what was done to the attributes of the root group, if that has a history."""
    steps = "".join(f", {append_dim} {old} + {new - old} steps" for old, new in {*lengths.values()})
    added = [posixpath.join(group, name) for group, names in content.added.items() for name in names]
    more = f", {plural(len(added), 'new variable')}" if added else ""
    line = f"tamis {_native.version}: to_netcdf, mode a{steps}{more}"
    if history := with_line({**file.group("/").attributes, **attributes.get("/", {})}, line):
        attributes["/"] = attributes.get("/", {}) | {HISTORY: history}


def _check_values(content: _Content, pieces: _Pieces, before: Store, after: Store) -> None:
    """Compare new values with those that were proven, and old ones in the same chunks with those of the file, by bits.

    Raises
    ------
    BoundError
        If any differ.
    """
    for path, change in content.changes.items():
        found, axis = change.found, change.found.axis or 0
        array = after.array(found.array.path)
        if array.shape != found.new_shape:
            raise BoundError(f"{path}: expected the shape {found.new_shape}, found {array.shape}").at(dataset=path)
        with closing(array.open_reader()) as reader:
            for piece in pieces.of(path):
                with open_store(piece.path) as store, closing(store.array(piece.array).open_reader()) as expected:
                    _compare(path, expected, reader, store.array(piece.array), axis, piece.start, 0)
            if change.grows and found.begin < found.length:
                with closing(before.array(found.array.path).open_reader()) as expected:
                    _compare(path, expected, reader, before.array(found.array.path), axis, 0, found.begin)
    if pieces.new is not None:
        with open_store(pieces.new) as store:
            for path in (posixpath.join(group, name) for group, names in content.added.items() for name in names):
                array = store.array(store.model.group(posixpath.dirname(path)).variables[posixpath.basename(path)].path)
                copy = after.array(after.model.group(posixpath.dirname(path)).variables[posixpath.basename(path)].path)
                with closing(array.open_reader()) as expected, closing(copy.open_reader()) as reader:
                    _compare(path, expected, reader, array, 0, 0, 0)


def _compare(
    path: str, expected: ArrayReader, found: ArrayReader, array: StoredArray, axis: int, start: int, begin: int
) -> None:
    """Compare values from a step on with those of another array, further along an axis."""
    chunks = array.storage.chunk_shape or tuple(max(extent, 1) for extent in array.shape)
    grid = grid_of(array.shape, chunks)
    for number in range(grid.chunk_count):
        part = grid.region_of(number)
        if part and part[axis].stop <= begin:
            continue  # its chunks are compared as they are stored
        place = _shifted(part, axis, start)
        before, after = expected.read(part), found.read(place)
        same = (
            before.tolist() == after.tolist()
            if before.dtype.kind in "OT" or after.dtype.kind in "OT"
            else before.dtype == after.dtype and before.tobytes() == after.tobytes()
        )
        if not same:
            raise BoundError(
                f"{path}: chunk at {tuple(axis.start for axis in place)}: differs when it is read back"
            ).at(dataset=path)


def _witness(path: Path, file: ExistingFile, content: _Content, results: Iterable[Repacked]) -> Witnessed | None:
    """Let xarray, in a process without tamis, read the file, with the chunks that have old and new steps."""
    boundaries: dict[Key, list[Region]] = {}
    expected: dict[Key, Grown] = {}
    for group, encoded in content.encoded.items():
        before = file.decoded(group).variables
        for name in {*encoded.variables, *map(str, before)}:
            place = posixpath.join(group, name)
            change = content.changes.get(place)
            new = encoded.dataset.variables.get(name) if place not in content.unchanged else None
            if change is None or not change.grows:
                expected[group, name] = Grown(None if new is not None else before.get(name), new)
                continue
            found = change.found
            assert found.axis is not None
            expected[group, name] = Grown(before[name], new, found.axis, found.length)
            if found.begin < found.length and found.count:
                steps = slice(found.begin, min(found.begin + found.chunk_length, found.new_shape[found.axis]))
                chunks = found.array.storage.chunk_shape or found.new_shape
                region = tuple(
                    steps if number == found.axis else slice(0, min(extent, step))
                    for number, (extent, step) in enumerate(zip(found.new_shape, chunks, strict=True))
                )
                boundaries[group, name] = [region[: before[name].ndim]]
    return check_extended(path, expected, {item.path: item for item in results}, content.settled.losses, boundaries)
