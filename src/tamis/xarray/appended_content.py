"""Datasets that are added to a file: what becomes of each variable, and why it cannot be added."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from xarray import Dataset, Variable

from tamis import meaning
from tamis.errors import DataError, ParameterError
from tamis.formatting import printable
from tamis.jobs.recipes.names import absolute
from tamis.jobs.recipes.saved_recipe import Recipe
from tamis.pipeline import Pipeline
from tamis.rounding import Pack, recorded_rounding
from tamis.xarray.appended_order import order_warnings
from tamis.xarray.dataset_store import DatasetStore, EncodedGroup, encode_group
from tamis.xarray.existing import (
    Existing,
    ExistingFile,
    as_stored,
    difference_text,
    first_difference,
    refuse_other_meaning,
    with_stored_encoding,
)
from tamis.xarray.filter_encoding import FILTER_KEYS, encoding_pipeline
from tamis.xarray.packed_steps import check_limits, is_packed, with_stored_limits
from tamis.xarray.saving import Encodings, refuse_unused, with_encodings
from tamis.xarray.settled import Advice, Asked, Settled, asked_by, asked_of, required_of, settle, without_encodings
from tamis.xarray.stored_filters import is_stored_by, other_filters


class Change(NamedTuple):
    """A variable of the file that gets values."""

    found: Existing
    stored: Variable  # New values, in the type of the file

    @property
    def grows(self) -> bool:
        """Whether it gets more steps; otherwise all its values are replaced."""
        return self.found.axis is not None


@dataclass(slots=True)
class Content:
    """Datasets, sorted by what becomes of their variables in the file."""

    encoded: dict[str, EncodedGroup]
    changes: dict[str, Change]  # By path
    added: dict[str, list[str]]  # Names of new variables by group
    unchanged: list[str]
    settled: Settled
    wanted: Mapping[str, Asked]  # What is asked of each variable, by path
    existing: Mapping[str, Existing]  # Variables of the file by path, with or without changes
    notes: list[str] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)  # By path


def sorted_content(
    datasets: Mapping[str, Dataset],
    file: ExistingFile,
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    recipe: Recipe,
    append_dim: str | None,
) -> Content:
    """Encode all variables, those of the file as it has them, and find out what becomes of each."""
    if append_dim is not None and not any(append_dim in dataset.dims for dataset in datasets.values()):
        raise ParameterError(f"expected append_dim to be a dimension of the dataset, got {append_dim!r}")
    prepared = {path: with_encodings(path, dataset, encodings, [*datasets]) for path, dataset in datasets.items()}
    own = {absolute(name): encoding for name, encoding in encodings.items()}
    existing: dict[str, Existing] = {}
    for group, dataset in prepared.items():
        for key, variable in dataset.variables.items():
            name, path = str(key), posixpath.join(group, str(key))
            if (found := file.find(group, name, variable, append_dim)) is not None:
                if append_dim is not None:
                    refuse_other_meaning(found, variable.attrs, may_add=False)
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
    wanted = _wanted(DatasetStore(groups, {}), recipe, existing)
    settled = settle(groups, {*existing, *own}, wanted, _advice(existing, file))
    for path in dict.fromkeys(map(posixpath.dirname, settled.left_out)):
        groups[path] = encode(without_encodings(prepared[path], path, settled.left_out))
    content = Content(groups, {}, {}, [], settled, wanted, existing)
    for group, encoded in groups.items():
        for name, variable in encoded.variables.items():
            path = posixpath.join(group, name)
            if (found := existing.get(path)) is None:
                content.added.setdefault(group, []).append(name)
                continue
            attributes = encoded.dataset.variables[name].attrs
            stored = as_stored(found, variable, attributes)
            if is_packed(found):
                # The dataset as it was given has the encoding of the file that it comes from.
                given = datasets[group].variables.get(name, encoded.dataset.variables[name])
                check_limits(found, given, stored)
                stored = with_stored_limits(found, stored)
            if found.axis is not None:
                content.changes[path] = Change(found, stored)
                if found.named.dimensions == (name,) and stored.dtype.kind in "iuf":
                    every = order_warnings(found, encoded.dataset.variables[name], stored)
                    content.warnings += ((path, printable(text)) for text in every)
            elif (misfit := first_difference(found, stored)) is None:
                refuse_other_meaning(found, attributes, may_add=append_dim is None)
                content.unchanged.append(path)
            elif append_dim is not None:
                raise DataError(difference_text(found, misfit, append_dim)).at(dataset=path)
            else:
                content.changes[path] = Change(found, stored)
    for path in content.changes:
        if "dtype" not in own.get(path, {}):
            _refuse_narrowed(existing[path], groups, settled, wanted.get(path, Asked()))
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


def _wanted(store: DatasetStore, recipe: Recipe, existing: Mapping[str, Existing]) -> dict[str, Asked]:
    """Return what is asked of each variable; those of the file keep its filters, with or without a recipe."""
    wanted = asked_of(store, recipe)
    for path, required in required_of(store, recipe).items():
        if path in existing and path not in wanted:
            wanted[path] = asked_by(Pipeline(), required)
    for path, found in existing.items():
        is_lossy = found.array.storage.pipeline.error_bound != 0 or _is_rounded(found)
        own, recorded = wanted.get(path, Asked()), _recorded_bound(found)
        bounds = [bound for bound in (own.absolute, recorded) if bound is not None]
        wanted[path] = replace(own, absolute=min(bounds, default=None), lossy=is_lossy)
    return wanted


def _recorded_bound(found: Existing) -> float | None:
    """Return the largest error, in units of the variable, that the file says of it; None if it says none."""
    packed = meaning.numbers(found.array.attributes, Pack.attribute)
    if packed.size == 1 and found.array.meaning.packing is not None:
        return float(packed.item())
    return meaning.asked_bound(found.array.attributes)


def _refuse_narrowed(found: Existing, groups: Mapping[str, EncodedGroup], settled: Settled, asked: Asked) -> None:
    """Raise DataError if the floats of the file do not hold numbers of a dataset, and nobody said that they may change.

    Packed values, and those that lossy filters follow, are changed by what the file itself says.
    """
    loss, (group, name) = settled.losses.get(found.path), posixpath.split(found.path)
    if loss is None or asked.is_bound or asked.lossy or found.array.meaning.packing is not None:
        return
    given, stored = groups[group].dataset.variables[name].dtype, found.named.dtype
    if given.kind not in "iuf" or stored.kind != "f":
        return
    raise DataError(
        printable(
            f"{found.path}: {stored}, its type in the file, changes values of {given} by up to {loss.largest:.3g},"
            f" most of all {loss.worst}: cast them first, ds[{name!r}].astype({str(stored)!r}), or say by how much they"
            f" may change, require={{{name!r}: 'abs=…'}}"
        )
    ).at(dataset=found.path)


def _is_rounded(found: Existing) -> bool:
    """Return whether the floats of a variable are rounded before its filters."""
    return recorded_rounding(found.array.attributes, found.array.type.numbers) is not None and (
        found.array.meaning.packing is None
    )


def _advice(existing: Mapping[str, Existing], file: ExistingFile) -> dict[str, Advice]:
    """Return by path what to do if a variable does not keep more values as the file stores it."""
    begin = f"that is how {file.path} stores it, and what is appended is stored alike: write a new file, mode='w',"
    every = {}
    for path, found in existing.items():
        bound = meaning.numbers(found.array.attributes, Pack.attribute)
        if bound.size == 1:
            room = f"{begin} by a packing with room for all values to come, pack(bound={bound.item()!r},range=LOW:HIGH)"
            every[path] = Advice(room, f"{begin} by a packing with a smaller bound than {bound.item()!r}")
        else:
            every[path] = Advice(f"{begin} with another encoding", f"{begin} with another encoding")
    return every


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
        if not is_stored_by(found, pipeline):
            raise other_filters(found, pipeline)


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


def lengths_of(file: ExistingFile, content: Content, append_dim: str | None) -> dict[str, tuple[int, int]]:
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
