"""An array of a Zarr hierarchy as a stored array, and its companion of missing values (docs/missing.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.chunk_reader import ChunkedReader, ChunkReader
from tamis.arrays.grid import Grid
from tamis.arrays.index import ChunkIndex, Parts, joined
from tamis.arrays.reader import ConvertedReader, put
from tamis.errors import FileError
from tamis.filters import ChunkType, Stage
from tamis.formats.zarr.masked import MASK_MARK
from tamis.formats.zarr.stored.attributes import NAME as TYPES
from tamis.formats.zarr.stored.attributes import (
    Types,
    json_forms,
    json_values,
    known_forms,
    known_types,
    netcdf_attributes,
)
from tamis.formats.zarr.stored.chunk_files import (
    ShardForm,
    StoredChunkFiles,
)
from tamis.formats.zarr.stored.codecs import ChunkFilters, ZarrCodec, chunk_filters
from tamis.formats.zarr.stored.hierarchy import Document, stored_steps, varying_chunks
from tamis.formats.zarr.stored.raw_or_zfp_chunks import RawOrZfpChunks
from tamis.formats.zarr.stored.readers import has_wrong_shuffle, package_for, unknown_to_zarr_python
from tamis.formats.zarr.stored.zfpy_chunks import ZfpyChunks, header_in
from tamis.lazy_property import lazy_property
from tamis.library_lock import waiting
from tamis.meaning.companions import (
    ANCILLARY,
    MARK,
    TABLE,
    CompanionFlags,
    RestoredReader,
    companion_paths,
    other_ancillary,
    without_companion,
)
from tamis.meaning.missing import MOST_FLAGS, Flags, can_flag
from tamis.meaning.variables import Packing
from tamis.pipeline import Pipeline
from tamis.remote.address import Address
from tamis.remote.file import can_list
from tamis.stores.arrays import DescribedArray
from tamis.stores.data_model import NamedArray, compound_words, is_compound, shown
from tamis.stores.facts import ArrayFacts, Fill, Marks, PackedTo, Storage, ValueType, fill_as, size_of
from tamis.stores.protocols import StoredArray

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.arrays.reader import ArrayReader
    from tamis.arrays.selection import Selection
    from tamis.formats.zarr.packed_codecs import PackedMetadata
    from tamis.stores.data_model import AttributeForm


class ZarrReader:
    """A Zarr array part by part; see `tamis.arrays.reader.ArrayReader`."""

    def __init__(
        self, array: Any, label: str, dtype: np.dtype[Any], chunk_shape: tuple[int, ...] | None = None
    ) -> None:
        self._array, self._label = array, label
        self.shape, self.dtype, self.chunk_shape = tuple(array.shape), dtype, chunk_shape

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part; raises FileError if zarr-python cannot."""
        if self._array is None:
            raise FileError(f"{self._label}: the array is closed: open it again")
        try:
            with waiting():
                values = np.asarray(self._array[part] if part else self._array[...], self._array.dtype)
        except Exception as error:  # codecs and stores raise many kinds
            raise FileError(f"{self._label}: cannot be read: {error}") from error
        if values.dtype != self.dtype and self.dtype.kind == "V" and not self.dtype.names:
            values = np.array(values, values.dtype.newbyteorder("="), order="C").view(self.dtype)
        return put(values.astype(self.dtype, copy=False), out)

    def close(self) -> None:
        """Release the array; running reads finish first."""
        self._array = None


A = TypeVar("A", bound=StoredArray)


def table_text(flags: Flags) -> list[str]:
    """Return the table of a companion as texts."""
    return [value.tobytes().hex() for value in flags.values.astype(flags.values.dtype.newbyteorder("<"))]


def find_companion(variable: ArrayFacts, path: str, arrays: Mapping[str, A]) -> A:
    """Return the companion of an array that names one, from its own group first, because groups may have been moved."""
    own_path, other_path = companion_paths(variable.path, path)
    companion = arrays.get(own_path) or arrays.get(other_path)
    if companion is None or companion.marks.has_companion:
        raise FileError(
            f"{variable.label}: its missing values are in the mask {path!r}, which does not exist: restore or rename it"
        ).at(dataset=variable.path)
    if companion.type.numbers != np.uint8 or len(companion.shape) != len(variable.shape):
        raise FileError(
            f"{companion.label}: damaged, or not the missing-value mask of {variable.path}: expected uint8 with"
            f" {len(variable.shape)} axes, found {companion.type.text} of shape {companion.shape}"
        ).at(dataset=companion.path)
    return companion


def read_flags(variable: ArrayFacts, companion: ArrayFacts, table: Any) -> CompanionFlags:
    """Return the flags of a companion, with their meaning."""
    dtype = variable.type.numbers
    refusal = f"{companion.label}: damaged, or not the missing-value mask of {variable.path}: expected"
    if dtype is None or not can_flag(dtype):
        raise FileError(f"{refusal} it to have numbers of 1, 2, 4 or 8 bytes, found {variable.type.text}")
    try:
        data = [bytes.fromhex(item) for item in table] if isinstance(table, list) else []
    except (TypeError, ValueError):
        data = []
    if not 0 < len(data) <= MOST_FLAGS or any(len(item) != dtype.itemsize for item in data):
        raise FileError(f"{refusal} {TABLE!r} to have up to {MOST_FLAGS} values of {dtype}, found {table!r:.80}")
    values = np.frombuffer(b"".join(data), dtype.newbyteorder("<")).astype(dtype)
    return CompanionFlags(Flags(values), companion.label, companion.path, companion.shape)


def own_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an array without references to its companion."""
    others = other_ancillary(str(attributes.get(ANCILLARY, "")), str(attributes.get(MARK, "")))
    return without_companion(attributes, others)


_MOST_NBYTES = (1 << 63) - 1
_MOST_AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
"""Limit of numpy."""
_MOST_GROWTH, _MOST_HEADER_NBYTES = 4, 1 << 20
"""How much larger than its values a stored chunk can be: filters add little to what they cannot make smaller."""


def check_sizes(array: Any, document: Document) -> None:
    """Raise FileError unless an array of zarr-python, its chunks and its shards have sizes that 64 bits hold.

    zarr-python 3.4 takes chunks of no values for chunks of one, so those of the stored metadata are checked.
    """
    shape, nbytes = tuple(array.shape), np.dtype(array.dtype).itemsize
    if len(shape) > _MOST_AXES:
        raise FileError(f"expected at most {_MOST_AXES} axes, which numpy can have, found {len(shape)}")
    _check_extents("shape", shape, nbytes)
    if (varying := varying_chunks(array.metadata)) is not None:
        _check_extents("largest chunk shape", tuple(along.largest for along in varying), nbytes)
        return
    for name, steps in (
        ("chunk shape", array.chunks),
        ("shard shape", getattr(array, "shards", None)),
        ("chunk shape", stored_steps(document)),
    ):
        if steps is None:
            continue
        _check_extents(name, tuple(steps), nbytes)
        if len(steps) != len(shape) or any(extent and not step for step, extent in zip(steps, shape, strict=True)):
            raise FileError(f"expected a {name} of {len(shape)} extents of 1 or more, got {steps!r:.80}")


def _check_extents(name: str, extents: tuple[Any, ...], nbytes: int) -> None:
    if any(isinstance(extent, bool) for extent in extents) or not all(
        isinstance(extent, int) and 0 <= extent <= _MOST_NBYTES for extent in extents
    ):
        raise FileError(f"expected a {name} of whole numbers from 0 to 2^63 - 1, got {extents!r:.80}")
    if math.prod(extents) * nbytes > _MOST_NBYTES:
        raise FileError(f"expected a {name} of less than 2^63 bytes, got {extents!r:.80}")


_MARK_NBYTES = len(MASK_MARK) + 4

_ODD = "metadata in its own spelling"

_RECTILINEAR = "the setting array.rectilinear_chunks of zarr 3.2"


class ZarrArray(DescribedArray):
    """An array in a local folder. tamis decodes its chunks if HDF5 has their filters, otherwise zarr-python does."""

    has_slow_library = True
    # Of the inner chunks, if a file holds several; None for an array without axes, or with chunks of several shapes
    chunk_shape: tuple[int, ...] | None = None

    def __init__(
        self,
        store_path: str,
        path: str,
        number: int,
        dimensions: tuple[str, ...],
        array: Any,
        folder: Path | Address,
        open_stock: Callable[[], Any] | None = None,
    ) -> None:
        self.path, self.label, self.address = path, f"{store_path}: {path}", number
        self.array, self.dimensions, metadata = array, dimensions, array.metadata
        self.stored_attributes: Mapping[str, Any] = metadata.attributes  # as in JSON
        self.folder = folder
        self.shape = self.maxshape = tuple(map(int, array.shape))
        self._open_stock = open_stock
        # The chunks, or shards, along each axis if they have several shapes: then zarr-python decodes them
        self.varying = varying_chunks(metadata)
        if self.shape and self.varying is None:
            self.chunk_shape = tuple(max(int(step), 1) for step in array.chunks)
        self.is_sharded = self.varying is None and getattr(array, "shards", None) is not None
        self._type: np.dtype[Any] = np.dtype(array.dtype)
        self.numpy_type: np.dtype[Any] = self._type if self._type.kind in "OT" else self._type.newbyteorder("=")
        self._varies = self.numpy_type.hasobject or self.numpy_type.kind in "TU"
        self.zarr_format = int(metadata.zarr_format)
        self.arrays: Mapping[str, ZarrArray] = {}
        self.is_consolidated = False  # Whether the root of the store also has the array's metadata
        self.group_types: object = None
        # Its metadata, from which those of a copy are made; None if there is nothing to copy
        self.document: Document | None = None
        # Opens an array of integers by its metadata: see `integers`
        self.open_integers: Callable[[Document], Any] | None = None

    @lazy_property
    def marks(self) -> Marks:
        """What the attributes mark the array as."""
        return Marks(isinstance(self.stored_attributes.get(MARK), str), TABLE in self.stored_attributes)

    @lazy_property
    def type(self) -> ValueType:
        """Type of the values; bytes of varying length have none in which they are copied."""
        own = self.numpy_type
        numbers = own if own.kind in "iuf" else None
        byteorder = ""
        if numbers is not None and own.itemsize > 1:
            byteorder = "little" if self.stored_type.newbyteorder("<") == self.stored_type else "big"
        return ValueType(
            numbers,
            None if self._varies else numbers or np.dtype(f"V{own.itemsize}"),
            None if self._varies else own,
            "string" if self._varies else str(own),
            self._type_words(),
            byteorder,
            own.itemsize,
            self._varies,
            is_counted=not self._varies,
        )

    def _type_words(self) -> str:
        if self.numpy_type.kind == "S":
            return f"string of {self.numpy_type.itemsize} bytes, ASCII, null-terminated"
        if is_compound(self.numpy_type):
            return compound_words(self.numpy_type)
        return "string" if self._varies else self.numpy_type.name

    @lazy_property
    def storage(self) -> Storage:
        """Layout, chunks and codecs, with those as filters of HDF5 that have such a filter."""
        codecs = self.codecs_for_readers
        package = package_for(codecs, self.zarr_format)
        is_odd = self.document is not None and self.document.is_odd
        others = (_RECTILINEAR if self.varying is not None else "", _ODD if is_odd else "")
        # zarr-python opens no group whose consolidated metadata it does not know.
        is_unknown = self.varying is not None or unknown_to_zarr_python(codecs, self.zarr_format)
        return Storage(
            "chunked" if self.varying is None else "rectilinear",
            self._chunk,
            self.chunk_shape,
            self._pipeline(),
            chunk_records="files",
            has_own_bytes=self.filters is not None and bool(self.filters.header),  # streams of zfp with a header
            reader_package=" and ".join(filter(None, (package, *others))),
            bars_store=self.is_consolidated and bool(is_unknown),
            unread_here=self.unread_here,
            packed_to=self.packed_to,
            codec_marks=self.codec_marks,
            unfiltered_reason="tamis chooses no filters for texts of Zarr, which keep their codecs from Zarr to Zarr:"
            " leave it out",
        )

    def _pipeline(self) -> Pipeline:
        """Return filters with stored parameters; the codecs themselves if HDF5 has no filters for them."""
        if self.filters is not None:
            return self.filters.pipeline
        codecs = [codec for codec in self.codecs if codec.get("name") != "bytes"] or self.codecs
        if self.zarr_format == 2 and self.array.order == "F":  # an order of axes, for which Zarr 3 has a codec
            codecs = [{"id": "transpose", "order": "F"}, *codecs]
        return Pipeline(Stage(ZarrCodec.of(codec), False, ()) for codec in codecs)

    @lazy_property
    def _chunk(self) -> ChunkType:
        """Type, as stored, and shape of the chunks; values that are not numbers are bytes."""
        shape = self.chunk_shape or ()
        if self.type.numbers is None:
            return ChunkType(self.type.dtype or np.dtype("V1"), shape)
        fill = self.fill.stored
        return ChunkType(self.stored_type, shape, fill if any(fill) else b"")

    @lazy_property
    def fill(self) -> Fill:
        """The value of chunks that are not stored; Zarr 2 may have none."""
        value, is_chosen = self._fill_value(), self.array.metadata.fill_value is not None
        if self._varies:
            return Fill(value, is_chosen, b"")
        # The bytes of numbers are those in the chunks, and others those that readers give
        dtype = self.numpy_type if self.type.numbers is None else self.stored_type
        return Fill(value, is_chosen, value.astype(dtype).tobytes())

    def _fill_value(self) -> NDArray[Any]:
        value = self.array.metadata.fill_value
        if self._varies:
            return np.asarray("" if value is None else str(value), object)
        if value is not None:
            return np.asarray(value).astype(self.numpy_type)
        # What zarr-python gives for chunks that are not stored
        return np.array("NaT", self.numpy_type) if self.numpy_type.kind in "mM" else np.zeros((), self.numpy_type)

    @property
    def is_text(self) -> bool:
        """True if values are texts, which other formats store in their own length."""
        if not self._varies or self.numpy_type.kind == "U":
            return self._varies
        from zarr.dtype import VariableLengthUTF8  # late: zarr is optional, and there is an array of it here

        return isinstance(self.array.metadata.dtype, VariableLengthUTF8)

    def with_fixed_length(self) -> ZarrArray | None:
        """Return an array of NumPy's characters as one of values of a fixed length, as its chunks have them.

        None for others. Formats other than Zarr have no such type: to them, these are texts of varying length.
        """
        if self.numpy_type.kind != "U":
            return None
        fixed = copy(self)
        for name in [name for name in vars(self) if isinstance(getattr(type(self), name, None), lazy_property)]:
            del vars(fixed)[name]
        fixed._varies = False
        return fixed

    @lazy_property
    def _stock(self) -> Any:
        """The array with zarr-python's own codecs; None if it lacks one of them."""
        if self._open_stock is None:
            return self.array
        with suppress(Exception):  # zarr-python raises many kinds
            return self._open_stock()
        return None

    @property
    def can_read_independently(self) -> bool:
        """True if zarr-python has all codecs, and reads them correctly."""
        return self._stock is not None and not self.has_wrong_shuffle

    @property
    def has_wrong_shuffle(self) -> bool:
        """True if netCDF-C wrote a shuffle that zarr-python reads incorrectly; `tamis repair` corrects it."""
        return self.zarr_format == 2 and has_wrong_shuffle(self.chunk_codecs)

    def open_witness(self) -> ArrayReader:
        """Open the values as zarr-python has them."""
        if self.type.numbers is not None or self._varies:
            return self.open_reader(independent=True)
        return ZarrReader(self._stock, self.label, self.numpy_type, self.chunk_shape)

    @lazy_property
    def stored_type(self) -> np.dtype[Any]:
        """Type of the values in the chunks, in their byte order."""
        if self.zarr_format == 2:
            return self._type
        orders = [codec.get("configuration") or {} for codec in self.chunk_codecs if codec.get("name") == "bytes"]
        return self.numpy_type.newbyteorder(">" if orders and orders[0].get("endian") == "big" else "<")

    @lazy_property
    def stored_nbytes(self) -> int:
        """Bytes of all files of chunks."""
        return int(self._files.sizes.sum())

    @lazy_property
    def codecs(self) -> list[dict[str, Any]]:
        """Metadata of the codecs in the order of encoding."""
        metadata = self.array.metadata
        if self.zarr_format == 3:
            return [codec.to_dict() for codec in metadata.codecs]
        members = [*(metadata.filters or ()), *((metadata.compressor,) if metadata.compressor else ())]
        return [member.get_config() for member in members]

    @lazy_property
    def _shard_form(self) -> ShardForm | None:
        return ShardForm.of(self.codecs) if self.is_sharded else None

    @property
    def chunk_codecs(self) -> Sequence[dict[str, Any]]:
        """The codecs of a chunk, also in a shard."""
        return self.codecs if self._shard_form is None else self._shard_form.codecs

    @property
    def codecs_for_readers(self) -> Sequence[dict[str, Any]]:
        """The codecs that a reader of the array needs."""
        return self.chunk_codecs

    @property
    def packed_to(self) -> PackedTo | None:
        """See `Storage.packed_to`."""
        if (metadata := self.packed) is None:
            return None
        return PackedTo(metadata.codecs.stored, Packing(*map(float, metadata.codecs.factors)))

    @lazy_property
    def packed(self) -> PackedMetadata | None:
        """What the metadata say if codecs pack the values to integers; None for others."""
        document = self.document
        if document is None or document.zarr_format != 3 or document.is_odd or self.varying is not None:
            return None
        if self.numpy_type.kind != "f" or not isinstance(document.content.get("codecs"), list):
            return None
        from tamis.formats.zarr.packed_codecs import PackedMetadata  # late: most arrays have no such codecs

        return PackedMetadata.of(document.content)

    @lazy_property
    def integers(self) -> ZarrArray | None:
        """The integers of a packed array as an array of their own; None for others."""
        metadata, document = self.packed, self.document
        if metadata is None or metadata.integers is None or document is None or self.open_integers is None:
            return None
        opened = self.open_integers(replace(document, content=metadata.integers))
        own = ZarrArray("", self.path, self.address, self.dimensions, opened, self.folder)
        own.label = self.label
        return own

    @property
    def codec_marks(self) -> Mapping[int, float] | None:
        """See `Storage.codec_marks`."""
        return None

    @property
    def unread_here(self) -> str:
        """See `Storage.unread_here`."""
        return ""

    @property
    def codec_text(self) -> str:
        """Names of the codecs."""
        return "|".join(str(codec.get("id", codec.get("name"))) for codec in self.codecs)

    @lazy_property
    def filters(self) -> ChunkFilters | None:
        """The equivalent HDF5 filters of the chunks; None if there are none."""
        if not self.shape or self._varies or (self.is_sharded and self._shard_form is None):
            return None
        if self.varying is not None:
            return None
        if self.zarr_format == 2 and self.array.order == "F":
            return None
        if self.type.numbers is None and self.stored_type != self.numpy_type:
            return None  # bytes of other values are not swapped
        found = chunk_filters(json.dumps(self.chunk_codecs, default=str), self._chunk)
        return None if found is not None and found.header and not self._has_header(found) else found

    def _has_header(self, filters: ChunkFilters) -> bool:
        """Return whether streams have the header that follows from the metadata, judging by the first chunk.

        numcodecs' own zfpy keeps the unit axes that HDF5's zfp, and tamis, leave out.
        """
        if isinstance(self.folder, Address):
            return False  # to know this takes a request for each array
        if all(extent > 1 for extent in self._chunk.shape) or not len(self._files.numbers):
            return True
        path = self._files.paths()[0]
        assert isinstance(path, Path)
        return header_in(path.read_bytes(), filters, self._chunk) == filters.header

    @lazy_property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes as readers of netCDF have them; the fill value of Zarr 2 is ``_FillValue``, as for xarray."""
        known = netcdf_attributes(
            self.stored_attributes,
            self.numpy_type,
            self.zarr_format,
            self.attribute_types,
            names_axes=getattr(self.array.metadata, "dimension_names", None) is None,
        )
        if self.zarr_format == 2 and self.array.metadata.fill_value is not None:
            if self.type.numbers is not None:
                known.setdefault("_FillValue", self.fill.value[()])
            elif self.is_text:
                known.setdefault("_FillValue", str(self.array.metadata.fill_value))
        return known

    @property
    def public_attributes(self) -> dict[str, Any]:
        """Attributes as readers of Zarr have them."""
        return shown(self.attributes, self._json)

    @lazy_property
    def _json(self) -> Mapping[str, Any]:
        return json_values(self.stored_attributes, self.attributes, self.attribute_types)

    @lazy_property
    def _forms(self) -> Mapping[str, AttributeForm]:
        forms = json_forms(self.stored_attributes, self.attributes, self.attribute_types)
        return known_forms(self.attribute_types) | forms

    @lazy_property
    def attribute_types(self) -> Types:
        """Recorded types of the attributes."""
        return known_types(self.stored_attributes.get(TYPES), self.group_types, self.path.rpartition("/")[2])

    @lazy_property
    def companion(self) -> ZarrArray | None:
        """The array of flags of missing values; raises FileError if it is missing or does not fit."""
        return find_companion(self, self.stored_attributes[MARK], self.arrays) if self.marks.has_companion else None

    @lazy_property
    def companion_flags(self) -> CompanionFlags | None:
        """The flags of the companion, with their meaning; raises the errors of `companion`."""
        companion = self.companion
        return None if companion is None else read_flags(self, companion, companion.stored_attributes.get(TABLE))

    @property
    def can_read_chunks(self) -> bool:
        """True if tamis decodes the chunks without zarr-python."""
        return self.filters is not None and not self.storage.pipeline.missing() and self._files.can_be_listed

    def chunk_index(self) -> ChunkIndex:
        """Return the chunk index; offsets count from the first file of a chunk to the last."""
        return self._index

    @lazy_property
    def _index(self) -> ChunkIndex:
        source = self._files.source
        numbers, starts, sizes = self._files.places()
        self._check_stored(numbers, sizes)
        masks = np.zeros(len(starts), np.uint32)
        filters = self.filters
        if filters is not None and filters.marked is not None:
            masks[:] = filters.marked.mask
            heads = source.read_many(
                (start, min(_MARK_NBYTES, size)) for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
            )
            for i, (number, head) in enumerate(zip(numbers.tolist(), heads, strict=True)):
                if (mask := self._marked_mask(head, number)) is not None:
                    starts[i] += _MARK_NBYTES
                    sizes[i] -= _MARK_NBYTES
                    masks[i] = mask
        if filters is not None and filters.raw_nbytes is not None and len(filters.pipeline.stages) == 1:
            masks[sizes == filters.raw_nbytes] = 1
        known = range(len(starts)) if len(starts) == self.grid.chunk_count else numbers
        return ChunkIndex(self.grid, known, starts, sizes, masks)

    def _check_stored(self, numbers: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Raise FileError for a chunk of many more bytes than its values have: it is none, and is not read."""
        if self.filters is None or self.varying is not None or not len(sizes):
            return
        most = _MOST_GROWTH * self._chunk.nbytes + _MOST_HEADER_NBYTES
        row = int(sizes.argmax())
        if sizes[row] > most:
            origin = self.grid.origin_of(int(numbers[row]))
            raise FileError(
                f"{self.label}: chunk at {origin}: expected at most {most:,} bytes for values of"
                f" {self._chunk.nbytes:,}, found {int(sizes[row]):,}"
            ).at(dataset=self.path, chunk=origin)

    def _marked_mask(self, head: bytes, number: int) -> int | None:
        """Return the filter mask after the mark of a chunk, from its first bytes; None if it has no mark."""
        if not head.startswith(MASK_MARK):
            return None
        mask = int.from_bytes(head[len(MASK_MARK) :], "little")
        if len(head) < _MARK_NBYTES or mask >> len(self.storage.pipeline.stages):
            origin = self.grid.origin_of(number)
            raise FileError(
                f"{self.label}: chunk at {origin}: expected a filter mask after the mark of the chunk, got {head!r}"
            ).at(dataset=self.path, chunk=origin)
        return mask

    @lazy_property
    def grid(self) -> Grid:
        """The grid of the chunks."""
        return Grid(self.shape, self.chunk_shape or tuple(max(extent, 1) for extent in self.shape))

    @lazy_property
    def _files(self) -> StoredChunkFiles:
        """The files of the chunks, or of the shards."""
        key_of = self.array.metadata.encode_chunk_key
        files = Grid(self.shape, tuple(self.array.shards)) if self.is_sharded else self.grid
        counts = files.counts if self.varying is None else tuple(along.chunk_count for along in self.varying)
        return StoredChunkFiles(self.folder, key_of, self.grid, files, counts, self._shard_form, self._chunk.nbytes)

    def chunk_paths(self) -> list[Path | Address]:
        """Return the paths of the files that hold chunks."""
        return self._files.paths()

    def parts(self, grid: Grid) -> Parts:
        """Return the parts of a grid that have values in the store."""
        if not self.shape or self.varying is not None or (self.is_sharded and self.filters is None):
            return Parts(grid) if size_of(self) else Parts(grid, range(0))
        stored = self.chunk_index().parts.touching(grid)
        return stored if self.companion is None else joined(stored, self.companion.parts(grid))

    def check_readable(self) -> None:
        """Do nothing: zarr-python raises an error for anything it cannot read."""

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values, with missing ones restored; `independent` reads by zarr-python."""
        values = self._open_stored(independent)
        if self.companion is None or self.companion_flags is None:
            return values
        return RestoredReader(values, self.companion_flags, self.companion._open_stored(independent))

    def _open_stored(self, independent: bool) -> ArrayReader:
        if self.can_read_chunks and not independent:
            return ChunkedReader(self.open_chunks())
        if not independent and self.packed is not None and self.integers is not None and self.integers.can_read_chunks:
            codecs = self.packed.codecs
            return ConvertedReader(self.integers.open_reader(), codecs.values, codecs.decoded)
        dtype = self.type.dtype or np.dtype(object)
        array = self._stock if independent else self.array
        return ZarrReader(array, self.label, dtype, self.chunk_shape)

    def open_chunks(self) -> ChunkReader:
        """Open the stored chunks; see `can_read_chunks`."""
        if self.filters is None:
            raise FileError(f"{self.label}: HDF5 has no filters for its codecs, {self.codec_text}")
        chunk = self._chunk
        fill = np.asarray(fill_as(self.fill, chunk.dtype), chunk.dtype)
        arguments = (
            str(self.folder),
            self.path,
            self.chunk_index(),
            self.storage.pipeline,
            chunk,
            fill,
            self._files.source,
        )
        if self.filters.header:
            return ZfpyChunks(self.filters.header, *arguments)
        if self.filters.raw_nbytes is not None and len(self.storage.pipeline.stages) > 1:
            return RawOrZfpChunks(self.filters.raw_nbytes, *arguments)
        return ChunkReader(*arguments)

    @property
    def can_look_up(self) -> bool:
        """True for references, which have the place of each chunk, and for a server that is asked for each.

        See `tamis.reading.listed.TypedArray.can_look_up`.
        """
        if not isinstance(self.folder, Address) or self.filters is None or self.storage.pipeline.missing():
            return False
        is_reference = hasattr(self.folder.store, "reference") and not self.is_sharded
        return is_reference or not can_list(self.folder)

    def open_few(self, selection: Selection) -> ChunkReader | None:
        """See `StoredArray.open_few`."""
        if not self.can_look_up:
            return None
        numbers = selection.numbers(self._files.grid)
        if 4 * len(numbers) > self._files.grid.chunk_count and self._files.can_be_listed:
            return None
        few = copy(self)
        vars(few).pop("_index", None)
        vars(few)["_files"] = self._files.only(numbers.tolist())
        return few.open_chunks()

    def named(self) -> NamedArray:
        """Return the array in netCDF's data model."""
        return NamedArray(
            path=self.path,
            dimensions=self.dimensions,
            shape=self.shape,
            stored_shape=self.shape,
            dtype=np.dtype("O", metadata={"vlen": str})
            if self.is_text and self.numpy_type.kind != "U"
            else self.numpy_type,
            fill_value=self.fill.value[()],
            attributes=own_attributes(self.attributes) if self.marks.has_companion else self.attributes,
            chunk_shape=self.chunk_shape,
            pipeline=self.storage.pipeline,
            forms=self._forms,
            json=self._json,
        )
