"""Companions: datasets that say where the values of another one are missing, so that zfp need not code them.

A variable names its companion in the attribute `MARK`, and for people and CF's readers in ``ancillary_variables``. The
companion has a flag for each value, and in the attribute `TABLE` the missing values that the flags stand for, in the
type of the variable: docs/missing.md describes both.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5t
from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.chunks.reader import Values, put
from tamis.errors import DataError, FileError
from tamis.hdf5.facts import place_of
from tamis.hdf5.lib.attributes import text_attribute
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.storage import number_type, stored_regions, type_text
from tamis.missing.table import MOST_FLAGS, Flags, can_flag

MARK = "missing_companion"
"""Attribute of a variable: path of its companion."""

TABLE = "flag_missing_values"
"""Attribute of a companion: item k − 1 is what flag k stands for."""

ANCILLARY = "ancillary_variables"
"""Attribute of CF: names of variables that say something about the values of this one, with blanks between them."""


@dataclass(frozen=True, slots=True)
class Companion:
    """The companion of a variable.

    Parameters
    ----------
    dataset
        Of the flags.
    flags
        What they stand for.
    place
        File and path, for messages.
    shape
        Of the flags. A program that knows no companions may have made the variable longer or shorter since.
    """

    dataset: h5py.Dataset
    flags: Flags
    place: str
    shape: tuple[int, ...]

    def read(self, part: Region, read: Callable[[Region], NDArray[Any]]) -> NDArray[Any]:
        """Read the flags of a part of the variable by a function; beyond the companion values are as stored, flag 0."""
        known = tuple(slice(each.start, min(each.stop, n)) for each, n in zip(part, self.shape, strict=True))
        if known == part:
            return read(part)
        flags = np.zeros(tuple(each.stop - each.start for each in part), np.uint8)
        if all(each.start < each.stop for each in known):
            flags[tuple(slice(each.stop - each.start) for each in known)] = read(known)
        return flags

    def other_shape(self, variable: h5py.Dataset) -> str:
        """Return what the shape of the flags means where it is not that of the variable; empty where it is."""
        if self.shape == variable.shape:
            return ""
        return (
            f"its companion {self.dataset.name} has shape {self.shape}, not {variable.shape}: values beyond it are as"
            " they are stored"
        )

    def restore(self, values: NDArray[Any], flags: NDArray[np.uint8]) -> NDArray[Any]:
        """Put missing values back, in place; see `Flags.restore`.

        Raises
        ------
        FileError
            If there is a flag that stands for nothing.
        """
        try:
            self.flags.restore(values, flags)
        except DataError as error:
            raise FileError(f"{self.place}: {error}") from error
        return values


class RestoredValues:
    """Values of a variable with its missing values put back. Threads may share it.

    Parameters
    ----------
    values
        As they are stored.
    companion
        Of the variable.
    flags
        Its flags, as they are stored.
    """

    def __init__(self, values: Values, companion: Companion, flags: Values) -> None:
        self.shape, self.dtype, self.chunks = values.shape, values.dtype, values.chunks
        self._values, self._companion, self._flags = values, companion, flags

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""
        values, flags = self._values.read(part), self._companion.read(part, self._flags.read)
        return put(self._companion.restore(np.array(values), flags) if flags.any() else values, out)

    def close(self) -> None:
        """Close both."""
        self._values.close()
        self._flags.close()


def has_companion(dataset: h5py.Dataset) -> bool:
    """Return whether some values of a dataset are only placeholders of missing ones, which a companion knows."""
    return bool(h5a.exists(dataset.id, MARK.encode()))


def is_companion(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset is the companion of another one, by its attributes."""
    return bool(h5a.exists(dataset.id, TABLE.encode()))


def companion_of(dataset: h5py.Dataset) -> Companion | None:
    """Find the companion of a variable; None where it has none.

    Raises
    ------
    FileError
        If it should have one, and there is none, or one that does not fit.
    """
    if not has_companion(dataset):
        return None
    place = place_of(dataset)
    path = text_attribute(dataset, MARK)
    if path is None:
        raise FileError(f"{place}: expected the path of its companion in the attribute {MARK!r}, found no text")
    found = _at(dataset, path)
    if found is None:
        raise FileError(
            f"{place}: its missing values are in the companion {path!r}, which does not exist: restore or rename it,"
            " or read without it, with invented values where some were missing: tamis.open(…, restore=False)"
        )
    companion = f"{dataset.file.filename}: {found.name}"
    said = f"{companion}: damaged, or not a companion of {dataset.name}"
    if has_companion(found):
        raise FileError(f"{said}: expected flags, found a dataset that has a companion itself")
    shape = found.shape
    if number_type(found) != np.uint8 or shape is None or len(shape) != dataset.ndim:
        raise FileError(
            f"{said}: expected uint8 with {dataset.ndim} axes, as shape {dataset.shape} has, found {type_text(found)}"
            f" of shape {shape}"
        )
    return Companion(found, Flags(_table(dataset, found, said)), companion, shape)


def other_ancillary(dataset: h5py.Dataset) -> list[str]:
    """Names of the ancillary variables of a dataset, without that of its companion."""
    own = (text_attribute(dataset, MARK) or "").rpartition("/")[2]
    return [each for each in (text_attribute(dataset, ANCILLARY) or "").split() if each != own]


def companions_in(datasets: Mapping[str, h5py.Dataset], marked: Iterable[str]) -> Iterator[tuple[h5py.Dataset, str]]:
    """Yield each companion that some datasets have, and the path of its variable; those that are damaged are left out.

    Parameters
    ----------
    datasets
        By path.
    marked
        Paths of those that name a companion.
    """
    for path in marked:
        with suppress(FileError), reading(path):
            if companion := companion_of(datasets[path]):
                yield companion.dataset, path


def about_companion(name: str, source: Any, target: Any) -> bool:
    """Return whether an attribute differs only by naming the companion that a dataset has in one of two files.

    Parameters
    ----------
    name
        Of the attribute.
    source, target
        Low-level identifiers of the objects.
    """
    if name not in (MARK, ANCILLARY) or not isinstance(source, h5d.DatasetID):
        return False
    before, after = h5py.Dataset(source), h5py.Dataset(target)
    marked = has_companion(before) or has_companion(after)
    return marked and (name == MARK or other_ancillary(before) == other_ancillary(after))


def regions_of(dataset: h5py.Dataset) -> list[Region]:
    """Parts of the array that have values in the file, missing ones that a companion knows included."""
    companion = companion_of(dataset)
    if companion is None:
        return stored_regions(dataset)
    ends = dataset.shape
    inside = [
        tuple(slice(each.start, min(each.stop, end)) for each, end in zip(region, ends, strict=True))
        for region in stored_regions(companion.dataset)
        if all(each.start < end for each, end in zip(region, ends, strict=True))
    ]
    return stored_regions(dataset) + inside


def restored(dataset: h5py.Dataset, part: Region, read: Callable[[h5py.Dataset, Region], NDArray[Any]]) -> NDArray[Any]:
    """Read a part of a dataset by a function, and of its companion where there is one, to put missing values back."""
    companion = companion_of(dataset)
    values = read(dataset, part)
    if companion is None:
        return values
    return companion.restore(np.array(values), companion.read(part, partial(read, companion.dataset)))


def _at(dataset: h5py.Dataset, path: str) -> h5py.Dataset | None:
    """Look beside the variable first: groups may have been copied to another place."""
    beside = posixpath.join(posixpath.dirname(str(dataset.name or "/")), posixpath.basename(path))
    for each in (beside, path):
        try:
            found = dataset.file.get(each.encode("utf-8", "surrogateescape"))
        except (OSError, RuntimeError, ValueError):
            continue
        if isinstance(found, h5py.Dataset) and found.file == dataset.file:
            return found
    return None


def _table(variable: h5py.Dataset, companion: h5py.Dataset, said: str) -> NDArray[Any]:
    stored = number_type(variable)
    if stored is None or not can_flag(stored):
        raise FileError(f"{said}: expected it to have numbers of 1, 2, 4 or 8 bytes, found {type_text(variable)}")
    dtype = stored.newbyteorder("=")
    if not is_companion(companion):
        raise FileError(f"{said}: expected the attribute {TABLE!r}, found none")
    attribute = h5a.open(companion.id, TABLE.encode())
    kind, shape = attribute.get_type(), attribute.shape
    fits = isinstance(kind, (h5t.TypeFloatID, h5t.TypeIntegerID)) and kind.dtype.newbyteorder("=") == dtype
    if not fits or shape is None or len(shape) > 1 or not 0 < int(np.prod(shape)) <= MOST_FLAGS:
        raise FileError(f"{said}: expected {TABLE!r} to have up to {MOST_FLAGS} values of {dtype}, found others")
    values = np.empty(shape, kind.dtype)
    attribute.read(values, mtype=kind)
    return values.reshape(-1).astype(dtype)
