"""Two stores of different formats, compared in netCDF's data model; see `tamis.stores.protocols.StoreComparison`."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.accuracy.difference import as_texts, equal_values, native
from tamis.arrays.gather import block_shape
from tamis.arrays.grid import Grid, Region, origin_of
from tamis.arrays.index import parts_to_compare
from tamis.formatting import shortened
from tamis.lazy_property import lazy_property
from tamis.meaning.companions import ANCILLARY, MARK
from tamis.meaning.variables import HISTORY, NON_COORDINATE, added_line
from tamis.rounding import is_container
from tamis.stores.data_model import (
    is_fixed_text,
    is_latin_1,
    is_own_name,
    json_attribute,
    recoded_text,
    text_of_json,
)
from tamis.stores.extended import extended
from tamis.stores.facts import ArrayFacts, size_of
from tamis.stores.protocols import Change, Unequal
from tamis.stores.translation import is_one_array, translations

if TYPE_CHECKING:
    from tamis.stores.data_model import NamedArray, NamedGroup
    from tamis.stores.protocols import Store, StoredArray


def history_change(path: str, name: str, before: str, after: str) -> Change | None:
    """Return the note that tamis added a line to the history of the root group; None for any other change."""
    line = added_line(before, after) if (path, name) == ("/", HISTORY) else ""
    text = f"attribute {name!r} has a new line: {line}"
    return Change(path, "attribute", text, attribute=name) if line else None


def times_change(change: Change, before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
    """Return a change of an attribute, which is a note if the attributes still make the same times of numbers."""
    if change.harmless or change.attribute not in meaning.TIME_ATTRIBUTES:
        return change
    texts = [meaning.text(attributes, change.attribute) for attributes in (before, after)]
    if texts[0] == texts[1] or not meaning.same_times(before, after):  # equal texts have another type
        return change
    return change._replace(text=f"{change.text}, which means the same times", harmless=True)


def new_dataset(path: str, shape: tuple[int, ...] | None, attributes: Mapping[str, Any]) -> Change:
    """Return the note that only the target has an array."""
    about = ": it describes how values were rounded" if is_container(shape, attributes) else ""
    return Change(path, "new-dataset", f"only in the target{about}")


class Named(Protocol):
    """A variable or a group of the data model."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """See `NamedArray.attributes`."""

    @property
    def json(self) -> Mapping[str, Any]:
        """See `NamedArray.json`."""


_BLOCK_NBYTES = 1 << 20
"""Bytes of the blocks of elements that are compared at once."""


class BlockDifference(NamedTuple):
    """Where a block of two arrays differs."""

    different: NDArray[np.bool_]  # Of each element
    text: Callable[[tuple[Any, ...]], str]  # Says how the element at a place in the block differs
    harmless: bool = False  # Whether all of it is what no copy can keep


_ABOUT_COMPANION = (MARK, ANCILLARY)
"""Attributes of a variable that change with its companion."""


class ModelComparison:
    """Two stores; groups and variables are compared by name.

    Storage of values, including byte order, and internal details of a format do not count as differences.
    """

    same_format = False

    def __init__(self, before: Store, after: Store) -> None:
        self._before = before
        self._after = after

    @lazy_property
    def companions(self) -> Mapping[str, str]:
        """Companions of the first store, with the paths of their variables."""
        return {companion.path: variable for companion, variable in self._before.arrays.companions()}

    @lazy_property
    def _other_companions(self) -> Mapping[str, str]:
        """Companions of the second store, with the paths of their variables."""
        return {companion.path: variable for companion, variable in self._after.arrays.companions()}

    @lazy_property
    def _groups(self) -> Mapping[str, NamedGroup]:
        """The groups of the second store by path."""
        return {path: self._after.model.group(path) for path in self._after.model.group_paths()}

    @lazy_property
    def _variables(self) -> tuple[Mapping[str, NamedArray], Mapping[str, tuple[str, str]]]:
        """The variables of the first store by the paths of their arrays, and their groups and names in the second."""
        variables, places = {}, {}
        for path in self._before.model.group_paths():
            for name, variable in self._before.model.group(path).variables.items():
                variables[variable.path] = variable
                places[variable.path] = path, self._other_name(path, name)
        return variables, places

    def _other_name(self, path: str, name: str) -> str:
        """Return the name of a variable in the second store: in netCDF-4 none begins with the prefix of its own."""
        names = self._groups[path].variables if path in self._groups else (name,)
        if path == "/" and len(names) == 1 and (is_one_array(self._before.model) or is_one_array(self._after.model)):
            return next(iter(names))  # it is named after its store
        for candidate in (name, name.removeprefix(NON_COORDINATE), NON_COORDINATE + name):
            if candidate in names:
                return candidate
        return name

    def _other(self, path: str) -> NamedArray | None:
        """Return the variable of the second store for a path of the first."""
        places = self._variables[1]
        group, name = places.get(path) or places.get(self._before.first_path(path), ("", ""))
        return self._groups[group].variables.get(name) if group in self._groups else None

    def as_read(self, path: str, source: StoredArray, target: StoredArray) -> tuple[StoredArray, StoredArray]:
        """Return the arrays up to the ends of their dimensions."""
        before, after = self._pair(path, source)
        if before is not None:
            source = extended(source, before.shape)
        if after is not None:
            target = extended(target, after.shape)
        return source, target

    def _pair(self, path: str, source: StoredArray) -> tuple[NamedArray | None, NamedArray | None]:
        """Return the variables of both stores for a path of the first; None if there is none."""
        variables = self._variables[0]
        return variables.get(path) or variables.get(source.path), self._other(path)

    def repeated(self) -> Mapping[str, str]:
        """Return the first path of the array of each variable, if several variables are one array; empty otherwise."""
        first = {path: self._before.first_path(path) for path in self._variables[1]}
        return first if any(path != own for path, own in first.items()) else {}

    def counterpart(self, path: str) -> StoredArray | None:
        """Return the array of the second store for a path of the first; None if there is none."""
        if not {path, self._before.first_path(path)} & self._variables[1].keys():
            return self._after.arrays.get(path)  # it is no variable, and neither is its copy
        variable = self._other(path)
        if variable is not None:
            return self._after.arrays.get(variable.path)
        unreadable = self._after.arrays.get(path)  # the data model has no array whose metadata cannot be read
        return unreadable if unreadable is not None and unreadable.storage.problem else None

    def attribute_changes(self, path: str, source: StoredArray, target: StoredArray) -> Iterator[Change]:
        """Yield changes of the dimensions and attributes of a variable."""
        before, after = self._pair(path, source)
        if before is None or after is None:
            return
        if before.dimensions != after.dimensions:
            text = f"dimensions ({', '.join(before.dimensions)}) became ({', '.join(after.dimensions)})"
            yield Change(path, "dimensions", text, harmless=_has_own_names(before, after))
        has_companion = MARK in before.attributes or MARK in after.attributes
        ignored = _ABOUT_COMPANION if has_companion else ()
        if _becomes_text(source, target):
            ignored = (*ignored, "_Encoding")  # which says how bytes are read as text
        yield from self._attribute_changes(path, before, after, ignored)

    def type_note(self, source: StoredArray, target: StoredArray) -> str:
        """Return nothing: types in other formats have no names."""
        return ""

    def same_value_type(self, source: StoredArray, target: StoredArray) -> bool:
        """Return whether values have the same type; in Zarr, enumerations are numbers, or booleans (FALSE, TRUE).

        Text of a fixed length may become text of varying length, which netCDF has.
        """
        if _becomes_text(source, target):
            return True
        types = [array.as_values().type.values for array in (source, target)]
        known = [dtype.newbyteorder("=") for dtype in types if dtype is not None]
        return len(known) == 2 and known[0] == known[1]

    def fill_note(self, source: StoredArray, target: StoredArray) -> str:
        """Return how the fill value changed; empty if it did not, or values are texts, which have none."""
        if source.type.varies and target.type.varies:
            return ""
        before, after = np.asarray(source.fill.value), np.asarray(target.fill.value)
        alike = before.dtype.kind == after.dtype.kind and before.tobytes() == after.astype(before.dtype).tobytes()
        return "" if alike else f"the fill value {before} became {after}"

    def unequal_elements(
        self, source: StoredArray, target: StoredArray, progress: Callable[[int, int], None]
    ) -> Unequal | None:
        """Compare elements of a fixed size, bit by bit."""
        progress(0, size_of(source))
        if not size_of(source):
            return None
        with closing(source.open_values()) as before, closing(target.open_values()) as after:

            def compare(part: Region) -> BlockDifference:
                first, second = before.read(part), after.read(part)
                if {first.dtype.kind, second.dtype.kind} == {"O", "S"}:
                    first, second = as_texts(first), as_texts(second)
                one, other = _elements(first), _elements(second)
                return BlockDifference(one != other, lambda at: _change_text(one[at], other[at]))

            return unequal_elements(source, target, source.storage.chunk.dtype.itemsize, compare, progress)

    def same_elsewhere(self, source: StoredArray, target: StoredArray) -> bool:
        """Return False: only files of the same format refer to the same other files."""
        return False

    def same_stored_chunks(self, source: StoredArray, target: StoredArray) -> bool:
        """Return False: bytes of different formats say nothing about values."""
        return False

    def unlisted(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: a group that cannot be listed is an error of the data model."""
        return iter(())

    def groups(self) -> Iterator[tuple[str, list[Callable[[], Iterator[Change]]]]]:
        """Yield the path of each group of the first store, and functions that yield its changes."""
        for path in self._before.model.group_paths():
            yield path, [partial(self._group_changes, path)]
        yield "/", [self._translations]

    def _translations(self) -> Iterator[Change]:
        """Yield what the second format does not have, or has in another form, as repack lists it."""
        for item in translations(self._before, to_zarr=self._after.model.is_loose):
            if item.kind == "one array" and is_one_array(self._after.model):
                continue
            if item.kind != "latin-1":  # compared with the attributes
                yield Change(item.path, "left-out" if item.is_lost else "translated", item.as_finding())

    def _group_changes(self, path: str) -> Iterator[Change]:
        """Yield the changes of the attributes and dimensions of a group."""
        before, after = self._before.model.group(path), self._groups.get(path)
        if after is None:
            yield Change(path, "missing-group", "no such group in the target", harmless=False)
            return
        yield from self._attribute_changes(path, before, after)
        if self._before.model.is_loose and self._after.model.is_loose:
            return  # the arrays that have dimensions are compared
        for name, dimension in before.dimensions.items():
            other = after.dimensions.get(name)
            if other is None and self._after.model.is_loose:
                continue  # as above
            if other is None:
                text = f"dimension {name!r}: {dimension} is lost"
                yield Change(path, "dimensions", text, harmless=False)
            # Where a format does not know whether a dimension is unlimited, that is None.
            elif other.size != dimension.size or {dimension.is_unlimited, other.is_unlimited} == {True, False}:
                text = f"dimension {name!r}: {dimension} became {other}"
                yield Change(path, "dimensions", text, harmless=False)
        for name in after.dimensions:
            if name not in before.dimensions:
                yield Change(path, "dimensions", f"dimension {name!r} is new")

    def _attribute_changes(
        self, path: str, one: Named, other: Named, harmless: tuple[str, ...] = ()
    ) -> Iterator[Change]:
        """Yield the changes of all attributes; those of the names in `harmless` are so."""
        for name in one.attributes:
            change = self._attribute_change(path, name, one, other)
            if change is not None:
                change = times_change(change, one.attributes, other.attributes)
                yield change._replace(harmless=change.harmless or name in harmless)
        for name in other.attributes:
            if name not in one.attributes:
                yield Change.of_new_attribute(path, name)

    def _attribute_change(self, path: str, name: str, one: Named, other: Named) -> Change | None:
        """Return how an attribute of the first store changed; None if it did not."""

        def change(text: str, *, harmless: bool = False) -> Change:
            return Change(path, "attribute", text, harmless=harmless, attribute=name)

        if name not in other.attributes:
            return change(f"attribute {name!r} is lost")
        are_loose = self._before.model.is_loose, self._after.model.is_loose
        pair = _json_pair(one, other, name) if all(are_loose) else None
        if pair is not None:
            if same_json(*pair):
                return None
            before, after = (shortened(json.dumps(value)) for value in pair)
            return change(f"attribute {name!r}: {before} became {after}")
        values = [one.attributes[name], other.attributes[name]]
        recoded = [value for value in values if any(are_loose) and is_latin_1(value)]
        if recoded:
            values = [_unicode(value) for value in values]
        same = _same_values if any(are_loose) else _same
        if same(*values):
            return change(recoded_text(name, recoded[0]), harmless=True) if len(recoded) == 1 else None
        before, after = (meaning.text({name: value}, name) for value in values)
        note = history_change(path, name, before, after)
        return note or change(f"attribute {name!r}: {_text(values[0])} became {_text(values[1])}")

    def new_objects(self) -> Iterator[Change]:
        """Yield the variables and groups that only the second store has."""
        places = set(self._variables[1].values())
        own_groups = set(self._before.model.group_paths())
        for path in self._groups:
            if path not in own_groups:
                yield Change(path, "new-group", "only in the target")
        for path, group in self._groups.items():
            for name, variable in group.variables.items():
                if variable.path in self._other_companions:
                    yield Change.of_companion(variable.path, self._other_companions[variable.path])
                elif (path, name) not in places:
                    yield new_dataset(posixpath.join(path, name), variable.shape, variable.attributes)


def unequal_elements(
    source: StoredArray,
    target: StoredArray,
    itemsize: int,
    compare: Callable[[Region], BlockDifference],
    progress: Callable[[int, int], None],
) -> Unequal | None:
    """Compare the elements of two arrays of one shape, block by block; return the differences that count most.

    Parameters
    ----------
    source, target
        The arrays.
    itemsize
        Bytes of an element.
    compare
        Reads a block of both, and says where they differ.
    progress
        Called after each block with the number of elements that are done, and of all.
    """
    total = size_of(source)
    done = 0
    found: Unequal | None = None
    grids = [array.storage.chunk_shape for array in (source, target) if array.storage.chunk_shape]
    grid = Grid(source.shape, block_shape(source.shape, grids, max(_BLOCK_NBYTES // max(itemsize, 1), 1)))

    def equal(part: Region) -> bool:
        block = compare(part)
        return block.harmless or not block.different.any()

    for part in parts_to_compare(source.parts(grid), target.parts(grid), equal):
        block = compare(part)
        count = int(np.count_nonzero(block.different))
        if count and (found is None or (found.harmless and not block.harmless)):
            inside = np.unravel_index(int(block.different.argmax()), block.different.shape)
            index = tuple(int(at) + begin for at, begin in zip(inside, origin_of(part), strict=True))
            found = Unequal(count, index, block.text(inside), block.harmless)
        elif found is not None and found.harmless == block.harmless:
            found = replace(found, count=found.count + count)
        done += block.different.size
        progress(done, total)
    progress(total, total)
    return found


def _change_text(before: Any, after: Any) -> str:
    """Return what an element was, and what it became."""
    texts = (repr(item.tobytes() if isinstance(item, np.void) else item) for item in (before, after))
    return shortened(" became ".join(texts))


def _becomes_text(source: StoredArray, target: ArrayFacts) -> bool:
    """Return whether text of a fixed length became text of varying length."""
    return is_fixed_text(source.as_values().type.values) and target.type.varies and target.type.text == "string"


def _json_pair(one: Named, other: Named, name: str) -> tuple[Any, Any] | None:
    """Return the values that two attributes have in JSON; None if a type is recorded for one, or both are texts."""
    if name not in one.json and name not in other.json:
        return None
    values = []
    for owner in (one, other):
        if name in owner.json:
            values.append(owner.json[name])
        elif isinstance(owner.attributes[name], str):
            values.append(owner.attributes[name])
        else:
            return None
    return values[0], values[1]


def same_json(one: Any, other: Any) -> bool:
    """Return whether values of JSON are the same, each of its kind: true is not 1, 1.0 is not 1, NaN is NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and bool(one == other or (one != one and other != other))


def _has_own_names(before: NamedArray, after: NamedArray) -> bool:
    """Return whether dimensions differ only because others of their name have other lengths, in either variable."""
    if len(before.dimensions) != len(after.dimensions):
        return False
    axes = zip(before.dimensions, after.dimensions, before.shape, strict=True)
    return all(
        name == other or is_own_name(other, name, extent) or is_own_name(name, other, extent)
        for name, other, extent in axes
    )


def _elements(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as bytes of a fixed size in native byte order, or unchanged if they are objects."""
    known = native(values)
    return known if known.dtype.kind in "OT" else known.view(f"V{known.dtype.itemsize}")


def _same(before: Any, after: Any) -> bool:
    """Return whether values of an attribute are the same: texts as far as readers see them, numbers bit by bit."""
    texts, others = _texts(before), _texts(after)
    if texts is not None or others is not None:
        return texts == others or _ended(texts) == others or texts == _ended(others)
    return equal_values(*(np.atleast_1d(np.asarray(value)) for value in (before, after)))


def _same_values(before: Any, after: Any) -> bool:
    """Return whether values of an attribute are the same: numbers of any type, and others as JSON has them."""
    for one, other in ((before, after), (after, before)):
        if isinstance(one, str) and (text := text_of_json(other)) is not None:
            return one == text
        if isinstance(one, list) and isinstance(other, np.ndarray) and other.dtype.kind == "V":
            return bool(one == json_attribute(other))
    if _has_lists(before) or _has_lists(after):
        text = text_of_json(before)
        return text is not None and text == text_of_json(after)
    first, second = (np.atleast_1d(np.asarray(value)) for value in (before, after))
    if not first.size and not second.size:
        return first.shape == second.shape  # JSON has no type of an empty list
    if not {first.dtype.kind, second.dtype.kind} <= set("iufb"):
        return _same(before, after)
    if first.shape != second.shape:
        return False
    pairs = zip(first.reshape(-1).tolist(), second.reshape(-1).tolist(), strict=True)  # exact, as Python compares
    return all(a == b or (a != a and b != b) for a, b in pairs)


def _unicode(value: Any) -> Any:
    """Return texts that are not UTF-8 as they are in JSON."""
    has_parts = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "VO"
    return value if has_parts or not is_latin_1(value) else json_attribute(value)


def _has_lists(value: Any) -> bool:
    """Return whether values are, or have, lists of varying length."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.hasobject and value.size > 0


def _texts(value: Any) -> list[Any] | None:
    """Return a text or several as a list of bytes; None for anything else."""
    if isinstance(value, (str, bytes)):
        return [_raw(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind in "SUO":
        value = value.reshape(-1).tolist()
    return [*map(_raw, value)] if isinstance(value, (list, tuple)) else None


def _ended(texts: list[Any] | None) -> list[Any] | None:
    """Return texts up to the first zero, after which C programs store anything: null-terminated ones end there."""
    if texts is None:
        return None
    return [text.partition(b"\0")[0] if isinstance(text, bytes) else text for text in texts]


def _raw(value: Any) -> Any:
    """Return text as bytes, without trailing zeros, which readers do not see."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return value.rstrip(b"\0") if isinstance(value, bytes) else value


def _text(value: Any) -> str:
    """Return the value of an attribute in words."""
    if isinstance(value, (str, bytes, list)):
        return shortened(repr(value))
    array = np.asarray(value)
    return shortened(f"{array.dtype} {array.tolist()}")
