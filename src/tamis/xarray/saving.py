"""Save datasets as a netCDF-4 file with any filters."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xarray import Dataset

from tamis.arguments import CALLBACK, MAPPING, NAMES, PATH, TEXT
from tamis.arrays.grid import default_chunks
from tamis.caller import warn_caller
from tamis.errors import ParameterError, located
from tamis.formatting import printable, size_text, with_keywords
from tamis.jobs.recipes.names import Chunks, DimensionChunks, Names, absolute, assigned, assigned_shapes, chunk_shape
from tamis.jobs.recipes.saved_recipe import Recipe, refuse_drop
from tamis.jobs.repack.job import save_store
from tamis.jobs.repack.options import RepackOptions
from tamis.safety.whole_file import check_free
from tamis.xarray.dask_workers import WorkersSurvey, encode_in_workers
from tamis.xarray.dataset_store import DatasetStore, EncodedGroup, VariableArray, encode_group
from tamis.xarray.earlier_loss import with_earlier_losses
from tamis.xarray.filter_encoding import FILTER_KEYS, encoding_chunks, encoding_pipeline
from tamis.xarray.last_witness import check_saved
from tamis.xarray.settled import asked_of, settle, without_encodings

if TYPE_CHECKING:
    from tamis.jobs.repack.result import Repacked, RepackResult
    from tamis.jobs.witness.look import Witnessed
    from tamis.pipeline import Pipeline

Encodings = Mapping[str, Mapping[str, Any]]
"""Encodings by name or path of a variable."""

SaveMode = Literal["w", "a"]
"""Whether a new file is written, or an existing one extended."""

_NO_NAME = "__values__"
"""Name in files of a variable whose name is None, as xarray's engines have it."""

_CHUNK_KEYS = ("chunksizes", "contiguous", "preferred_chunks")

_LARGE_NBYTES = 64 << 10
"""Bytes of values from which on a variable without filters is mentioned."""

_IGNORED_KEYS = (*FILTER_KEYS, *_CHUNK_KEYS, "source", "original_shape")


def group_path(group: str) -> str:
    """Return the absolute path of a group given by a user."""
    TEXT.check("group", group)
    return posixpath.join("/", group.strip("/"))


def check_zarr(path: str | os.PathLike[str]) -> None:
    """Raise ParameterError unless a path has the ending of Zarr hierarchies."""
    PATH.check("path", path)
    if not _is_zarr(path):
        raise ParameterError(f"expected the path of a new folder that ends with .zarr, got {os.fsdecode(path)!r}")


def _is_zarr(path: str | os.PathLike[str]) -> bool:
    return os.fsdecode(path).rstrip("/").endswith(".zarr")


def check_arguments(
    target: str | os.PathLike[str],
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    options: RepackOptions,
    progress: Callable[[str, int, int], None] | None,
) -> None:
    """Raise ParameterError for an argument of another kind."""
    PATH.check("target", target)
    MAPPING.such_as("{'TS': {'dtype': 'f4'}}").check("encodings", encodings)
    NAMES.check_optional("unlimited_dims", unlimited_dims)
    CALLBACK.check_optional("progress", progress)
    refuse_drop(options.recipe)
    for named in encodings:
        TEXT.check("a name in encoding", named)


def save(
    datasets: Mapping[str, Dataset],
    target: str | os.PathLike[str],
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    options: RepackOptions,
    progress: Callable[[str, int, int], None] | None,
) -> RepackResult:
    """Save datasets by the path of their group; see ``Dataset.tamis.to_netcdf``."""
    check_arguments(target, encodings, unlimited_dims, options, progress)
    if Path(os.fsdecode(target)).exists() and not options.overwrite:
        check_free(Path(os.fsdecode(target)))  # before values are read and compared
    recipe = options.recipe
    datasets, dropped = with_earlier_losses(datasets)
    own_encodings = {path: with_encodings(path, dataset, encodings, [*datasets]) for path, dataset in datasets.items()}
    encode = partial(encode_group, unlimited=unlimited_dims, is_netcdf=not _is_zarr(target))
    groups = {path: encode(dataset) for path, dataset in own_encodings.items()}
    refuse_unused(groups, encodings)
    wanted = asked_of(DatasetStore(groups, {}), recipe)
    settled = settle(groups, {absolute(name) for name in encodings}, wanted)
    for path in dict.fromkeys(map(posixpath.dirname, settled.left_out)):
        dataset = without_encodings(own_encodings[path], path, settled.left_out)
        groups[path] = encode(dataset)
    own = own_pipelines(groups)
    warn_of_unfiltered(groups, encodings, own)
    store = DatasetStore(groups, own, keeps_lists=_is_zarr(target))
    shapes = chunk_shapes(groups, store, recipe, own, encodings)
    rest = settled.recipe(store, recipe, wanted)
    stored = Recipe(rest.filters, chunks=shapes, require=rest.require, missing=recipe.missing)
    report = progress or (lambda *_: None)
    with store:
        asked = replace(options, recipe=stored, will_grow=bool(unlimited_dims))

        def check(path: Path, datasets: tuple[Repacked, ...], _: object) -> Witnessed | None:
            results = {item.path: item for item in settled.with_losses(datasets, wanted)}
            return check_saved(path, groups, results, settled.losses)

        result = save_store(store, target, asked, report, check, encode_in_workers, WorkersSurvey, VariableArray.sample)
    for place, text in result.warnings:
        warn_caller(printable(f"{place}: {text}"))
    widened = [
        printable(f"{posixpath.join(path, name)}: {note}")
        for path, group in groups.items()
        for name, note in group.notes.items()
    ]
    result = settled.whole(result, wanted)
    kept = (*((path, with_keywords(reason)) for path, reason in result.kept), *unfiltered(groups, own, result))
    return replace(result, kept=kept, notes=(*dropped, *widened, *map(with_keywords, result.notes)))


def with_encodings(path: str, dataset: Dataset, encodings: Encodings, paths: list[str]) -> Dataset:
    """Return a dataset whose variables have the given encodings; filters and chunks stay if none are given."""
    own = {absolute(name): encoding for name, encoding in encodings.items()}
    known = [posixpath.join(group, str(name)) for group in paths for name in dataset.variables]
    result = dataset.rename({None: _NO_NAME}) if None in dataset.variables else dataset.copy(deep=False)
    for name, variable in result.variables.items():
        encoding = own.get(posixpath.join(path, str(name)))
        if encoding is None:
            continue
        if not isinstance(encoding, Mapping):
            raise ParameterError(f"{name}: expected an encoding such as {{'dtype': 'i2'}}, got {encoding!r}")
        _check_chunks(str(name), encoding, variable.ndim)
        replaced = {key for keys in (FILTER_KEYS, _CHUNK_KEYS) if set(keys) & set(encoding) for key in keys}
        kept = {
            key: variable.encoding[key] for key in _IGNORED_KEYS if key in variable.encoding and key not in replaced
        }
        variable.encoding = {**kept, **encoding}
    if len(paths) == 1 and (absent := sorted(set(own) - set(known))):
        raise ParameterError(f"expected encodings of variables of the dataset, got {absent[0]!r}")
    return result


def _check_chunks(name: str, encoding: Mapping[str, Any], rank: int) -> None:
    """Raise ParameterError if the chunk shape in a given encoding does not fit the variable."""
    sizes = encoding.get("chunksizes")
    if sizes is not None and len(chunk_shape(sizes)) != rank:
        raise ParameterError(f"{name}: expected {rank} chunk sizes, got {sizes!r} in its encoding").at(dataset=name)


def _refuse_twice(encodings: Encodings, asked: Collection[str], keys: Collection[str], parameter: str) -> None:
    """Raise ParameterError if a given encoding and a parameter set the same thing for a variable."""
    for name, encoding in encodings.items():
        given = next((key for key in keys if encoding.get(key) not in (None, False)), None)
        if given is not None and absolute(name) in asked:
            raise ParameterError(
                f"{name}: expected {parameter} or {given!r} in its encoding, got both: leave out one of them"
            ).at(dataset=name)


def warn_of_unfiltered(groups: Mapping[str, EncodedGroup], encodings: Encodings, filtered: Collection[str]) -> None:
    """Warn about filters in given encodings of variables that cannot have any."""
    given = {absolute(name) for name, encoding in encodings.items() if any(map(encoding.get, FILTER_KEYS))}
    stored = {posixpath.join(path, name) for path, group in groups.items() for name in group.variables}
    for path in sorted(given & (stored - set(filtered))):
        warn_caller(f"{path}: filters in its encoding are left out: it is a scalar, text or without values")


def unfiltered(
    groups: Mapping[str, EncodedGroup], own: Mapping[str, Pipeline], result: RepackResult
) -> Iterator[tuple[str, str]]:
    """Yield paths of large variables that are stored without filters, because nobody named any, with the reason."""
    known = {*(item.path for item in result.datasets), *(path for path, _ in result.kept)}
    for group, encoded in groups.items():
        for name, variable in encoded.variables.items():
            path = posixpath.join(group, name)
            if path in known or path not in own or own[path].stages or variable.nbytes < _LARGE_NBYTES:
                continue
            yield (
                path,
                f"without filters in {size_text(variable.nbytes)}, because recipes name none for it, and its encoding,"
                f" which computed values lack, has none: add {{{name!r}: 'shuffle|deflate(4)'}}, or '*' for all",
            )


def refuse_unused(groups: Mapping[str, EncodedGroup], encodings: Encodings) -> None:
    """Raise ParameterError for keys of given encodings that xarray did not use."""
    own = {absolute(name): encoding for name, encoding in encodings.items()}
    for path, group in groups.items():
        for name, variable in group.variables.items():
            given = own.get(posixpath.join(path, name), {})
            for key in given:
                if key in variable.encoding and key not in (*_IGNORED_KEYS, "dtype", "_FillValue"):
                    raise ParameterError(f"{name}: xarray knows no encoding {key!r} for such values: leave it out").at(
                        dataset=name
                    )


def own_pipelines(groups: Mapping[str, EncodedGroup]) -> dict[str, Pipeline]:
    """Return the filters of variables from their encodings; only arrays with values can have any."""
    return {
        posixpath.join(path, name): encoding_pipeline(name, group.dataset.variables[name].encoding)
        for path, group in groups.items()
        for name, variable in group.variables.items()
        if variable.ndim and variable.size and variable.dtype.kind != "O"
    }


def chunk_shapes(
    groups: Mapping[str, EncodedGroup],
    store: DatasetStore,
    recipe: Recipe,
    own: Mapping[str, Pipeline],
    encodings: Encodings,
) -> dict[str, tuple[int, ...]]:
    """Return the chunk shapes of variables with filters or of dask arrays by path; others are contiguous."""
    match = Names(store).match
    recipes: dict[str, Pipeline] = {}
    for filters in assigned(recipe.filters, match):
        recipes.setdefault(filters.path, filters.value)
    shapes = assigned_shapes(recipe.chunks, match, partial(shape_of, store))
    _refuse_twice(encodings, recipes, FILTER_KEYS, "a recipe")
    _refuse_twice(encodings, shapes, ("chunksizes",), "chunks")
    for path, group in groups.items():
        for name, variable in group.variables.items():
            place = posixpath.join(path, name)
            if place not in own or place in shapes:
                continue
            if (stored := encoding_chunks(variable, group.unlimited)) is not None:
                shapes[place] = stored
            elif own[place].stages or variable.chunks:
                has_zfp = recipes.get(place, own[place]).zfp is not None
                shapes[place] = default_chunks(variable.shape, variable.dtype.itemsize, zfp=has_zfp)
    return shapes


def shape_of(store: DatasetStore, path: str, chunks: Chunks) -> tuple[int, ...]:
    """Return the chunk shape of a variable, which may be given by dimension."""
    with located(path, dataset=path):
        return chunks.of(store, store.arrays[path]) if isinstance(chunks, DimensionChunks) else chunks
