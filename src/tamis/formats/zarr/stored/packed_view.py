"""A packed array as the integers that it stores, with attributes of CF: what a copy gets, and is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tamis.arrays.grid import grid_of, origin_of
from tamis.arrays.reader import put
from tamis.errors import BoundError, ParameterError
from tamis.formats.zarr.packed_codecs import PackedCodecs
from tamis.formats.zarr.stored.array import ZarrArray
from tamis.formats.zarr.stored.readers import has_value_codecs, unread_text

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.arrays.reader import ArrayReader
    from tamis.stores.data_model import AttributeForm
    from tamis.stores.protocols import StoredArray


class PackedView(ZarrArray):
    """The integers of a packed array."""

    def __init__(self, coded: ZarrArray, codecs: PackedCodecs, attributes: Mapping[str, Any], integers: Any) -> None:
        super().__init__("", coded.path, coded.address, coded.dimensions, integers, coded.folder)
        self.label = coded.label
        self.coded = coded  # The same array as its readers have it: floats
        self.packed_codecs = codecs
        self._attributes = attributes
        self.document, self.arrays, self.group_types = coded.document, coded.arrays, coded.group_types
        self.is_consolidated = coded.is_consolidated

    @property
    def attributes(self) -> Mapping[str, Any]:
        """See `tamis.stores.protocols.StoredArray.attributes`."""
        return self._attributes

    @property
    def _json(self) -> Mapping[str, Any]:
        return self._unchanged(self.coded._json)

    @property
    def _forms(self) -> Mapping[str, AttributeForm]:
        return self._unchanged(self.coded._forms)

    def _unchanged(self, by_name: Mapping[str, Any]) -> dict[str, Any]:
        own, floats = self._attributes, self.coded.attributes
        return {name: value for name, value in by_name.items() if name in floats and own.get(name) is floats[name]}

    @property
    def codecs_for_readers(self) -> Sequence[dict[str, Any]]:
        """Those of the floats."""
        return self.coded.chunk_codecs

    @property
    def packed(self) -> None:
        """None: these are the integers."""

    @property
    def codec_marks(self) -> Mapping[int, float]:
        """See `Storage.codec_marks`."""
        return {code: float(value) for code, value in self.packed_codecs.marks}

    @property
    def unread_here(self) -> str:
        """See `Storage.unread_here`."""
        return unread_text()

    def open_witness(self) -> ArrayReader:
        """Open the codes of the floats that zarr-python has; where it lacks the codecs, the integers that it has."""
        if not has_value_codecs():
            return super().open_witness()
        return _CodesOfFloats(self.coded.open_witness(), self)


class _CodesOfFloats:
    """The codes of an array whose floats another reader has; see `tamis.arrays.reader.ArrayReader`."""

    def __init__(self, floats: ArrayReader, view: PackedView) -> None:
        self.shape, self.dtype, self.chunk_shape = floats.shape, view.packed_codecs.stored, floats.chunk_shape
        self._floats, self._codes, self._view = floats, view.open_reader(), view

    def close(self) -> None:
        """Close both readers."""
        self._floats.close()
        self._codes.close()

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part; raise BoundError if the other reader has other floats than these codes stand for."""
        codes = self._codes.read(part)
        if self._floats.read(part).tobytes() != self._view.packed_codecs.decoded(codes).tobytes():
            origin = origin_of(part)
            raise BoundError(
                f"{self._view.path}: zarr-python reads other values than the codecs give in the chunk at {origin}"
            ).at(chunk=origin)
        return put(codes, out)


def packed_view(array: ZarrArray, codecs: PackedCodecs) -> PackedView | str:
    """Return an array that codecs pack as the integers that it stores.

    A text says why attributes of CF cannot say the same. If that depends on the integers, all of them are read.
    """
    try:
        return _view(array, codecs)
    except ParameterError as error:
        return f"its codecs pack {codecs.stored}, but it is stored as floats: {error}"


def _view(array: ZarrArray, codecs: PackedCodecs) -> PackedView:
    """Return the integers of a packed array; raise ParameterError if attributes of CF cannot say the same."""
    attributes = codecs.of_codes(array.attributes)
    if array.integers is None:
        raise ParameterError(f"its fill value {array.fill.value} has no code")
    view = PackedView(array, codecs, attributes, array.integers.array)
    if not is_exact(codecs, view):
        raise ParameterError(f"{codecs.inexact_text}; pack(bound=…) packs them anew")
    return view


def is_exact(codecs: PackedCodecs, integers: StoredArray) -> bool:
    """Return whether codecs and attributes give the same values for all integers of an array."""
    return codecs.is_exact() or (codecs.may_be_exact and codecs.is_exact(ends_of(integers)))


def ends_of(array: StoredArray) -> tuple[int, int]:
    """Return the smallest and the largest integer of an array, all of which are read."""
    low = high = int(array.fill.value)
    with closing(array.open_reader()) as reader:
        for part in array.parts(grid_of(array.shape, array.storage.chunk_shape or array.shape)):
            values = reader.read(part)
            low, high = min(low, int(values.min())), max(high, int(values.max()))
    return low, high
