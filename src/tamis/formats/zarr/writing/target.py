"""A new Zarr hierarchy, which gets the content of a store of any format; see `tamis.rewrite.transfer.Target`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from tamis.access import NEW_FOLDER
from tamis.arrays.gather import several_chunks
from tamis.arrays.grid import Grid, default_chunks
from tamis.arrays.index import Parts
from tamis.arrays.threads import ordered_map
from tamis.errors import FileError, ParameterError, located
from tamis.filters import ChunkType
from tamis.formats.zarr.array_metadata import (
    Described,
    Json,
    consolidate,
    consolidate_2,
    exact_json,
    fill_note,
    has_type,
    is_first_of,
    json_attributes,
    metadata_2,
    metadata_3,
    write_json,
)
from tamis.formats.zarr.codec_choice import choose_codecs
from tamis.formats.zarr.packed_codecs import is_packed
from tamis.formats.zarr.stored.array import ZarrArray, table_text
from tamis.formats.zarr.stored.attributes import DIMENSIONS, FILL, Types, known_types
from tamis.formats.zarr.stored.attributes import NAME as TYPES
from tamis.formats.zarr.stored.hierarchy import Document, in_usual_spelling, quietly
from tamis.formats.zarr.stored.packed_view import PackedView
from tamis.formats.zarr.stored.readers import package_for, unread_text
from tamis.formats.zarr.writing.documents import Attributes, SourceDocument, with_arrays, with_types
from tamis.formats.zarr.writing.layout import ZarrLayout
from tamis.formats.zarr.writing.packed_values import Values, packed_values
from tamis.formats.zarr.writing.texts import TextLayout, lost_fill
from tamis.formats.zarr.writing.writer import NewChunks, ZarrWriter
from tamis.formatting import printable
from tamis.meaning.companions import ANCILLARY, MARK, SHARED, TABLE, companion_names, description
from tamis.meaning.variables import HISTORY
from tamis.pipeline import Pipeline
from tamis.remote.address import Address
from tamis.rewrite.growth import compresses
from tamis.rewrite.nearest import nearest_plan, nearest_text
from tamis.rewrite.new_chunk import NewChunk
from tamis.rewrite.plan import ArrayPlan, Copy, Recode
from tamis.rewrite.streams import as_stored, carry, masks_of
from tamis.rewrite.transfer import UnstorableError, unstorable_text
from tamis.rewrite.write import write
from tamis.rounding import CONTAINER, Rounding, container_attributes, container_names
from tamis.safety.library_errors import disk_text
from tamis.safety.transaction import remove
from tamis.stores.data_model import is_latin_1
from tamis.stores.facts import ArrayFacts, fill_as, size_of
from tamis.stores.readers import package_text

if TYPE_CHECKING:
    from tamis.meaning.missing import Flags
    from tamis.stores.data_model import AttributeForm, NamedArray, NamedGroup
    from tamis.stores.protocols import ArrayWriter, Store, StoredArray


_CANDIDATES = (
    "shuffle|deflate(4)",
    "deflate(4)",
    "shuffle|zstd(3)",
    "zstd(3)",
    "blosc(zstd,5,bit)",
    "blosc(zstd,5,byte)",
    "blosc(lz4,5,bit)",
)
"""Filters whose codecs every reader of Zarr has."""


def kept_plan(array: StoredArray) -> ArrayPlan:
    """Return how an array is stored without a recipe.

    Chunks stay unchanged if every reader of Zarr has codecs for them, and also if filters were lossy, because their
    values would otherwise take more space. Other filters are replaced by the smallest of Zarr's own, and other values
    get chunks.
    """
    if (carried := _carried(array)) is not None:
        return carried
    if array.type.dtype is None:
        raise FileError(f"{array.label}: expected numbers, characters or text, got {array.type.text}").at(
            dataset=array.path
        )
    chunk_shape = array.storage.chunk_shape or default_chunks(array.shape, array.type.dtype.itemsize, zfp=False)
    dtype = np.dtype(array.type.dtype)
    if not compresses(array.storage.pipeline) or not array.shape:  # one value is smaller without filters
        return Recode(array.path, Pipeline(), dtype, chunk_shape)
    if array.storage.pipeline.error_bound == 0 and not array.storage.pipeline.missing():
        requested = Pipeline(stage.filter for stage in array.storage.pipeline.stages)
        if choose_codecs(requested, ChunkType(dtype, chunk_shape), {}).masked is None:
            return Recode(array.path, requested, dtype, chunk_shape)
    return nearest_plan(array, dtype, chunk_shape, _CANDIDATES)


def _carried(array: StoredArray) -> ArrayPlan | None:
    """Return how the chunks of an array are copied unchanged; None if readers of Zarr need others."""
    if (carried := as_stored(array)) is None:
        return None
    codecs = choose_codecs(carried.pipeline, array.storage.chunk, dict.fromkeys(masks_of(array), 1))
    return carried if codecs.masked is None or carried.pipeline.error_bound != 0 else None


@dataclass(slots=True)
class CopiedArray:
    """A new array with the files of another one, in place of a `NewArray`."""

    path: str  # Path in the new hierarchy
    files: Mapping[str, bytes]  # The metadata of the other array, by the names of their files
    attributes: Mapping[str, Any]  # As readers of netCDF have them

    def types(self, zarr_format: int) -> Types:
        """Return the types of attributes that are not among the metadata: none."""
        return {}

    def write_metadata(self, root: Path, form: ZarrLayout) -> dict[str, Json]:
        """Write the metadata of the other array into the folder of the array, and return them by the names of files."""
        folder = root / self.path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return {name: exact_json(data) for name, data in self.files.items()}


def copied(variable: NamedArray, array: StoredArray, root: Path, form: ZarrLayout, threads: int) -> CopiedArray | None:
    """Copy the chunk files of an array, and compare the copies; None if the new hierarchy needs other chunks."""
    if not isinstance(array, ZarrArray) or not stays(array, form) or array.document is None:
        return None
    folder = array.folder
    target = root / variable.path.strip("/")
    known = as_read(array)

    def copy(file: Path | Address) -> None:
        assert isinstance(file, Path)
        place = target / file.relative_to(str(folder))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            data = file.read_bytes()
            place.write_bytes(data)
            same = place.read_bytes() == data
        except OSError as error:
            raise FileError(f"{place}: cannot be copied from {file}: {disk_text(error)}").at(path=file) from error
        if not same:
            raise FileError(f"{place}: differs from {file} when it is read back").at(path=place)

    with closing(ordered_map(copy, array.chunk_paths(), threads)) as done:
        for _ in done:
            pass
    return CopiedArray(variable.path, array.document.files, known.attributes)


def stays(array: StoredArray, form: ZarrLayout) -> bool:
    """Return whether the new hierarchy has the same files of an array: its metadata and its chunks, or shards."""
    if not isinstance(array, ZarrArray) or isinstance(array.folder, Address) or array.document is None:
        return False
    return (
        array.zarr_format == form.zarr_format
        and bool(array.document.files)
        and not array.marks.has_companion
        and not array.has_wrong_shuffle
        and not _changes_packing(array, form)
        and (form.shards is None or not array.shape)
    )


def _changes_packing(array: ZarrArray, form: ZarrLayout) -> bool:
    """Return whether a form was asked for in which packed values are stored, and the array has the other one."""
    if form.packed_as is None or array.type.numbers is None or not is_packed(array.attributes, array.type.numbers):
        return False
    return isinstance(array, PackedView) != (form.packed_as == "codecs")


def as_read(array: ZarrArray) -> ZarrArray:
    """Return an array as readers of Zarr have it: with floats, if codecs pack it."""
    return array.coded if isinstance(array, PackedView) else array


METADATA = {2: (".zarray", ".zattrs", ".zgroup", ".zmetadata"), 3: ("zarr.json",)}
"""Names that arrays cannot have, by version of the format."""


def check_array(form: ZarrLayout, variable: NamedArray, array: StoredArray) -> None:
    """Raise FileError if a store of this form does not support the values or attributes of an array."""
    if variable.path.rpartition("/")[2] in METADATA[form.zarr_format]:
        raise FileError(f"expected a name other than those of Zarr's metadata, {', '.join(METADATA[form.zarr_format])}")
    _check_name(variable.path)
    json_attributes(variable.path, variable.attributes)
    if _can_write(variable, array, form) or stays(array, form):
        return
    if array.type.dtype is None:
        raise FileError(f"expected numbers, characters or text, got {array.type.text}")
    raise FileError(f"tamis does not write the type {array.type.words} to Zarr {form.zarr_format}")


def kept_as_stored(form: ZarrLayout, source: Store) -> frozenset[str]:
    """Return the paths of arrays that a store of this form keeps as they are, because it cannot write their type.

    The metadata of Zarr 2 have any type of NumPy.
    """
    if form.zarr_format == 2:
        return frozenset()
    groups = map(source.model.group, source.model.group_paths())
    variables = [variable for group in groups for variable in group.variables.values()]
    return frozenset(
        variable.path
        for variable in variables
        if stays(array := source.array(variable.path), form) and not _can_write(variable, array, form)
    )


def _can_write(variable: NamedArray, array: ArrayFacts, form: ZarrLayout) -> bool:
    """Return whether values of an array can be encoded for a store of this form."""
    dtype = variable.dtype if array.type.dtype is not None and array.type.dtype.kind == "V" else array.type.dtype
    return variable.is_text or (dtype is not None and has_type(dtype, form.zarr_format))


def _check_name(path: str) -> None:
    """Raise FileError if JSON cannot have the name of a group or an array."""
    if path.encode(errors="replace").decode() != path:
        raise FileError(f"expected a name in UTF-8, as Zarr's are, got {path.encode(errors='surrogateescape')!r}")


@dataclass(slots=True)
class NewArray:
    """A new array."""

    path: str  # Path in the hierarchy
    dimensions: tuple[str, ...]  # Name of each axis
    attributes: Mapping[str, Any]  # As readers of netCDF have them
    dtype: np.dtype[Any]  # Type of the values in the chunks
    fill_value: Any  # Value of chunks that are not stored
    writer: ZarrWriter  # Writer of the chunks
    # Forms of the attributes that do not follow from their values
    forms: Mapping[str, AttributeForm] = field(default_factory=dict)
    source: ZarrArray | None = None  # The array that it is a copy of, if that is a Zarr array
    packing: Sequence[Json] = ()  # Codecs that make the values from the integers in the chunks, before those of these

    def _attributes(self) -> Attributes:
        return attributes_of(self.path, self.attributes, self.forms, self.source, self.dtype)

    def types(self, zarr_format: int) -> Types:
        """Return the types of the attributes that are not among the metadata of its source."""
        return self._attributes().types_of_others(zarr_format)

    def write_metadata(self, root: Path, form: ZarrLayout) -> dict[str, Json]:
        """Write the metadata into the array's folder, and return them by the names of their files.

        The folder exists if it has chunks.
        """
        folder, grid = root / self.path.strip("/"), self.writer.grid
        if not self.writer.count:
            folder.mkdir(parents=True, exist_ok=True)
        array = Described(
            path=self.path,
            shape=grid.shape,
            chunk_shape=grid.chunk_shape,
            dtype=self.dtype,
            fill_value=self.fill_value,
            dimensions=self.dimensions,
            attributes=self.attributes,
            codecs=self.writer.codecs,
        )
        if form.zarr_format == 3:
            return self._write_metadata_3(folder, form, array)
        return self._write_metadata_2(folder, array)

    def _write_metadata_3(self, folder: Path, form: ZarrLayout, array: Described) -> dict[str, Json]:
        about = self._attributes()
        attributes, source = about.in_json(3), about.source
        metadata = metadata_3(array)
        metadata["codecs"] = [*self.packing, *metadata["codecs"]]
        if (counts := form.shard_counts(self.writer.grid)) is not None:
            metadata |= _sharded(metadata, counts)
        if source is not None:
            metadata = source.described(metadata, 3, retyped=self._is_retyped())
        if attributes or not about.keeps_document(3) or source is None or "attributes" in source.content:
            metadata = metadata | {"attributes": attributes}
        else:
            metadata = {name: value for name, value in metadata.items() if name != "attributes"}
        return {"zarr.json": write_json(folder / "zarr.json", metadata)}

    def _write_metadata_2(self, folder: Path, array: Described) -> dict[str, Json]:
        about = self._attributes()
        attributes, source = about.in_json(2), about.source
        if not about.keeps_document(2):
            names = [*self.dimensions] if source is None else source.dimensions
            if source is None or any(names) or not names:
                attributes |= {DIMENSIONS: names}
        attributes = with_types(attributes, about.types_of_others(2))
        metadata = metadata_2(array, self.writer.absent_count)
        if source is not None:
            metadata = source.described(metadata, 2, retyped=self._is_retyped())
        documents = {".zarray": write_json(folder / ".zarray", metadata)}
        before = self.source.document if self.source is not None and about.keeps_document(2) else None
        if attributes or before is None or ".zattrs" in before.files:
            documents[".zattrs"] = write_json(folder / ".zattrs", attributes)
        return documents

    @property
    def reader_package(self) -> str:
        """The package that zarr-python needs to read it; see `tamis.formats.zarr.stored.readers`."""
        if not self.packing:
            return self.writer.reader_package
        return package_for([*self.packing, *(self.writer.codecs.version_3 or ())], 3)

    @property
    def loses_fill(self) -> bool:
        """Whether it has texts, and no fill value, which Zarr 2 has only for missing values."""
        return self.dtype.kind == "U" and self.writer.is_full

    def _is_retyped(self) -> bool:
        """Return whether type or fill value of the values are not those of the source."""
        if (before := self.source) is None:
            return True
        if before.numpy_type.newbyteorder("=") != self.dtype.newbyteorder("="):
            return True
        own, known = (np.asarray(value).astype(self.dtype) for value in (self.fill_value, before.fill.value))
        return own.tobytes() != known.tobytes()


def attributes_of(
    path: str,
    attributes: Mapping[str, Any],
    forms: Mapping[str, AttributeForm],
    array: ZarrArray | None,
    dtype: np.dtype[Any] | None = None,
) -> Attributes:
    """Return the attributes of an array, with those of the Zarr array that it is a copy of, if any."""
    if array is None or (source := SourceDocument.of(array.document)) is None:
        return Attributes(path, attributes, forms, dtype=dtype)
    return Attributes(path, attributes, forms, source, array.attributes, array.attribute_types.keys(), dtype)


def _sharded(metadata: Json, counts: tuple[int, ...]) -> Json:
    """Return the changes of metadata for files with several chunks."""
    chunk_shape = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    shard_shape = [step * count for step, count in zip(chunk_shape, counts, strict=True)]
    sharding = {
        "chunk_shape": chunk_shape,
        "codecs": metadata["codecs"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "end",
    }
    return {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard_shape}},
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
    }


_COUNT = 1 << 16
"""Texts that are read at once, unless a chunk has more."""

TEXT = np.dtype(object)
"""Type of texts."""


def write_texts(root: Path, form: ZarrLayout, variable: NamedArray, array: StoredArray, layout: TextLayout) -> Types:
    """Write an array of texts of varying length, with zarr-python's own codecs.

    Returns
    -------
    Types
        Those of attributes that are not among the metadata.
    """
    source = array if isinstance(array, ZarrArray) else None
    about = attributes_of(variable.path, variable.attributes, variable.forms, source, TEXT)
    names: list[str | None] = [*variable.dimensions] if about.source is None else about.source.dimensions
    has_names = any(names) or not names  # A scalar has none, and xarray needs the empty list
    attributes, types = about.in_json(form.zarr_format), about.types_of_others(form.zarr_format)
    if form.zarr_format == 2:
        if has_names:
            attributes |= {DIMENSIONS: names}
        attributes = with_types(attributes, types)
    with quietly():
        created = zarr.create_array(
            str(root / variable.path.strip("/")),
            shape=array.shape,
            dtype=str,
            zarr_format=form.zarr_format,
            attributes=attributes,
            dimension_names=names if form.zarr_format == 3 and has_names else None,
            **layout.arguments(is_copy=source is not None),
        )
        if about.keeps_document(form.zarr_format):
            _keep_members(root / variable.path.strip("/"), about, attributes)
    steps = several_chunks(array.shape, layout.shard_shape or layout.chunk_shape, _COUNT)
    with closing(array.open_reader()) as reader:
        for part in Parts(Grid(array.shape, steps)) if size_of(array) else ():
            try:
                texts = reader.read(part)
            except FileError as error:
                text = f"{error}: it can be left out (drop)"
                raise UnstorableError(text, (variable.path,)).at(dataset=array.path) from error
            try:
                created[part or ...] = np.asarray(texts, object)
            except UnicodeEncodeError as error:
                raise unstorable_text(variable.path, error) from None
    return types


def _keep_members(folder: Path, about: Attributes, attributes: Json) -> None:
    """Give the metadata of a copy the members of its source that zarr-python does not write."""
    assert about.source is not None
    name = ".zarray" if about.source.zarr_format == 2 else "zarr.json"
    new = exact_json((folder / name).read_bytes())
    metadata = about.source.described(new, about.source.zarr_format, retyped=False)
    write_json(folder / name, metadata | ({"attributes": attributes} if name == "zarr.json" else {}))


_FLAGS = frozenset(("flag_values", "flag_masks", "flag_meanings"))


class ZarrTarget:
    """A Zarr hierarchy that is created in a local folder."""

    def __init__(self, path: Path, form: ZarrLayout, threads: int = 1, mode: int = NEW_FOLDER) -> None:
        path.mkdir(mode)
        self.folder, self.form, self._threads = path, form, threads
        self._arrays: dict[str, NewArray | CopiedArray] = {}
        self._companions: dict[str, ZarrWriter] = {}
        self._names: set[str] = set()
        self._groups: dict[str, NamedGroup] = {}
        self._texts: dict[str, Types] = {}  # Types of the attributes of texts
        self._before: dict[str, Mapping[str, Any]] = {}  # Attributes of groups in the source
        self._repeated: list[tuple[NamedArray, StoredArray, str]] = []
        self._roundings: dict[str, Rounding] = {}
        self._unasked: set[str] = set()  # Paths of arrays that nobody asked to store in another way
        self.notes: list[str] = []

    def set_history(self, text: str) -> None:
        """Set the history of the root group."""
        if (root := self._groups.get("/")) is not None:
            raw = text.encode("utf-8", "surrogateescape")
            value = raw if is_latin_1(raw) else text
            self._groups["/"] = replace(root, attributes={**root.attributes, HISTORY: value})

    def create_group(self, group: NamedGroup) -> None:
        """Create a group; `finish` writes its attributes. Dimensions are those of its arrays."""
        _check_name(group.path)
        (self.folder / group.path.strip("/")).mkdir(parents=True, exist_ok=True)
        self._names |= {f"{group.path.rstrip('/')}/{name}" for name in group.variables}
        self._groups[group.path] = group
        self._before[group.path] = group.attributes
        json_attributes(group.path, group.attributes, group.forms)  # refuse before chunks are encoded

    def _types_by_group(self) -> Mapping[str, Mapping[str, Types]]:
        """Return the types of the attributes of all arrays: by path of a group, then by name in it."""
        groups: dict[str, dict[str, Types]] = {}
        types_by_path = self._texts | {path: array.types(self.form.zarr_format) for path, array in self._arrays.items()}
        for path, types in types_by_path.items():
            group, _, name = path.rpartition("/")
            groups.setdefault(group or "/", {})[name] = types
        return groups

    def _write_group(self, group: NamedGroup, inner: Mapping[str, Types]) -> dict[str, Json]:
        """Write the metadata of a group, and return them by the names of their files.

        In Zarr 3 they also have the types of its arrays' attributes.
        """
        folder, zarr_format = self.folder / group.path.strip("/"), self.form.zarr_format
        source, before = SourceDocument.of(group.document), self._before[group.path]
        known = known_types({} if source is None else source.attributes.get(TYPES)).keys()
        about = Attributes(group.path, group.attributes, group.forms, source, before, known)
        types = about.types_of_others(zarr_format)
        attributes = with_types(about.in_json(zarr_format), types, inner if zarr_format == 3 else None)
        content: Json = {"zarr_format": zarr_format}
        if about.keeps_document(zarr_format) and source is not None:
            content = source.content
            attributes = with_arrays(attributes, self._names_in(group.path))
        if zarr_format == 3:
            content = content | {"node_type": "group"}
            if attributes or "attributes" in content or not about.keeps_document(3):
                content["attributes"] = attributes
            return {"zarr.json": write_json(folder / "zarr.json", content)}
        documents = {".zgroup": write_json(folder / ".zgroup", content)}
        if attributes or (isinstance(group.document, Document) and ".zattrs" in group.document.files):
            documents[".zattrs"] = write_json(folder / ".zattrs", attributes)
        return documents

    def _names_in(self, path: str) -> set[str]:
        """Return the names of the arrays in a group of the target."""
        places = [posixpath.split(array) for array in (*self._arrays, *self._texts)]
        return {name for group, name in places if group == path}

    def create_like(self, variable: NamedArray, array: StoredArray, plan: ArrayPlan) -> ZarrWriter:
        """Create an array with the name, dimensions, attributes and fill value of another, stored as planned."""
        source = as_read(array) if isinstance(array, ZarrArray) else None
        before, given = array, variable
        variable = variable.with_attributes(plan.replaced_attributes(array))
        array = plan.source_of(array)
        dtype = _value_type(array, plan)
        self._begin(variable)
        raw = np.asarray(fill_as(array.fill, plan.dtype), plan.dtype).tobytes()
        chunk = ChunkType(dtype, plan.chunk_shape, raw if any(raw) else b"")
        # Zarr 2 has one value for both chunks that are not stored and missing ones.
        is_full = self.form.zarr_format == 2 and not is_first_of(variable.attributes.get(FILL), raw, dtype)
        if source is not None and source.zarr_format == 2 and plan.codes is None:
            is_full = False  # the fill value of the source is kept, even none
        writer = ZarrWriter(self, NewChunks(variable.path, plan.grid(array), chunk, plan.pipeline, is_full))
        attributes = {**_flags(variable), **variable.attributes}
        if plan.rounding is not None:
            rounding = plan.rounding
            attributes |= {name: values[0] for name, values in rounding.recorded.items()}
            self._roundings[variable.path] = rounding
        stored = writer.stored.dtype
        values = Values(stored, np.frombuffer(raw, dtype).astype(stored, copy=False)[0], attributes)
        if self.form.zarr_format == 3:
            values = self._packed(values, given, before, plan)
        self._note_fill(variable.path, values.attributes, source, values.dtype)
        self._arrays[variable.path] = NewArray(
            path=variable.path,
            dimensions=variable.dimensions,
            attributes=values.attributes,
            dtype=values.dtype,
            fill_value=values.fill_value,
            writer=writer,
            forms=_forms_of(values.attributes, given, variable) if values.packing else variable.forms,
            source=source,
            packing=values.packing,
        )
        return writer

    def _packed(self, integers: Values, variable: NamedArray, array: StoredArray, plan: ArrayPlan) -> Values:
        """Return what the metadata say about values that may be packed; note why codecs that are asked for cannot."""
        try:
            return packed_values(integers, variable, array, plan, self.form)
        except ParameterError as error:
            self.notes.append(printable(f"{variable.path}: stays packed with attributes: {error}"))
            return integers

    def copy(self, variable: NamedArray, array: StoredArray) -> None:
        """Store an array unchanged: its chunks if Zarr has codecs for them, otherwise its values, without loss."""
        self._begin(variable)
        self._unasked.add(variable.path)
        if (as_it_is := copied(variable, array, self.folder, self.form, self._threads)) is not None:
            self._arrays[variable.path] = as_it_is
            return
        if variable.is_text:
            source = array if isinstance(array, ZarrArray) else None
            if source is None or (fixed := source.with_fixed_length()) is None:
                layout = TextLayout.of(array, self.form)
                self._texts[variable.path] = write_texts(self.folder, self.form, variable, array, layout)
                self._note_fill(variable.path, variable.attributes, source, TEXT)
                self.notes += [printable(f"{variable.path}: {note}") for note in layout.notes]
                return
            array = fixed
        with located(array.label, dataset=array.path):
            plan = kept_plan(array)
            create = partial(self.create_like, variable, array)
            if isinstance(plan, Copy):
                carry(plan, array, create)
            elif array.shape:
                write(plan, array, create, lambda *_: None, self._threads)
                self._note_filters(variable.path, array, plan)
            else:
                _write_scalar(plan, array, create(plan))

    def _note_fill(
        self, path: str, attributes: Mapping[str, Any], source: ZarrArray | None, dtype: np.dtype[Any]
    ) -> None:
        """Note a ``_FillValue`` that xarray does not know, unless the document of the source has it, too."""
        keeps_document = source is not None and source.zarr_format == self.form.zarr_format
        if self.form.zarr_format == 3 and not keeps_document and (note := fill_note(attributes, dtype)):
            self.notes.append(printable(f"{path}: {note}"))

    def _note_filters(self, path: str, array: StoredArray, plan: ArrayPlan) -> None:
        """Note filters that became others."""
        before, after = ([stage.filter for stage in known.stages] for known in (array.storage.pipeline, plan.pipeline))
        new = self._arrays[path]
        if compresses(array.storage.pipeline) and before != after and isinstance(new, NewArray):
            nbytes = new.writer.stored_nbytes
            self.notes.append(printable(nearest_text(path, array, plan.pipeline, nbytes, "Zarr")))

    def repeat(self, variable: NamedArray, array: StoredArray, path: str) -> None:
        """See `Target.repeat`; `finish` copies the files."""
        self._repeated.append((variable, array, path))

    def _repeat(self) -> None:
        """Copy the chunk files of arrays to their other paths."""
        for variable, array, path in self._repeated:
            first = self._arrays.get(path)
            if not isinstance(first, NewArray):
                self.copy(variable, array)
                continue
            source, target = (self.folder / place.strip("/") for place in (path, variable.path))
            try:
                if source.is_dir():
                    copytree(source, target)
            except OSError as error:
                raise FileError(f"{target}: cannot be written: {disk_text(error)}").at(path=target) from error
            self._arrays[variable.path] = replace(first, path=variable.path, dimensions=variable.dimensions)

    def create_companion(self, writer: ZarrWriter, pipeline: Pipeline, flags: Flags) -> ZarrWriter:
        """Create the companion of an array, named after it."""
        variable = self._arrays[writer.path]
        assert isinstance(variable, NewArray)  # it has a writer
        path = next(path for path in companion_names(writer.path) if path not in self._names)
        self._names.add(path)
        chunk = ChunkType(np.dtype(np.uint8), writer.grid.chunk_shape, bytes([flags.fill]) if flags.fill else b"")
        is_full = self.form.zarr_format == 2
        created = ZarrWriter(self, NewChunks(path, writer.grid, chunk, pipeline, is_full))
        attributes = {
            **description(writer.path.rpartition("/")[2], flags),
            TABLE: table_text(flags),
            **{name: variable.attributes[name] for name in SHARED if name in variable.attributes},
        }
        fill = np.uint8(flags.fill)
        self._arrays[path] = NewArray(path, variable.dimensions, attributes, chunk.dtype, fill, created)
        self._companions[writer.path] = created
        return created

    def finish(self, companions: Mapping[str, ArrayWriter | None]) -> None:
        """Name companions in the attributes of their arrays, and write all metadata, since codecs are now known."""
        del companions  # also known here
        for path, companion in self._companions.items():
            attributes, name = self._arrays[path].attributes, companion.path.rpartition("/")[2]
            others = str(attributes.get(ANCILLARY, "")).split()
            self._arrays[path].attributes = {**attributes, MARK: companion.path, ANCILLARY: " ".join([*others, name])}
        for path, rounding in self._roundings.items():
            self._name_container(path, rounding)
        for path, array in self._arrays.items():
            if isinstance(array, NewArray):
                array.writer.add_headers(self._threads)
                self.notes += [printable(f"{path}: {note}") for note in self._notes_of(path, array)]
        self._repeat()
        types = self._types_by_group()
        documents = {path: self._write_group(group, types.get(path, {})) for path, group in self._groups.items()}
        documents |= {path: array.write_metadata(self.folder, self.form) for path, array in self._arrays.items()}
        for path in self._texts:
            files = [self.folder / path.strip("/") / name for name in METADATA[self.form.zarr_format]]
            documents[path] = {file.name: exact_json(file.read_bytes()) for file in files if file.is_file()}
        if self.form.consolidated:
            self._consolidate(documents)

    def _notes_of(self, path: str, array: NewArray) -> Iterator[str]:
        """Yield what readers of a new array should know, whose chunks are written."""
        if path in self._unasked and (package := array.reader_package):
            yield package_text(package, bars_store=self.form.consolidated)
            if array.packing and (reason := unread_text()):
                yield reason
        if array.writer.absent_count and array.writer.is_full:
            yield (
                f"its fill value is {array.fill_value}, because {array.writer.absent_count} chunks are not stored:"
                " xarray takes values that equal it for missing; Zarr 3 has no such rule"
            )
        elif array.loses_fill and array.source is not None and (note := lost_fill(array.source)):
            yield note

    def _consolidate(self, documents: Mapping[str, Mapping[str, Json]]) -> None:
        """Write the metadata of all groups and arrays, by path and name of the file, into the root's."""
        odd = [path for path, files in documents.items() if _is_odd(files)]
        if odd:
            self.notes.append(
                f"no consolidated metadata, because zarr-python cannot read those of {printable(odd[0])}: with them, it"
                " would open nothing of the store"
            )
        elif self.form.zarr_format == 2:
            consolidate_2(
                self.folder,
                {
                    f"{path}/{name}".strip("/"): document
                    for path, files in documents.items()
                    for name, document in files.items()
                },
            )
        elif rectilinear := _rectilinear({path: files["zarr.json"] for path, files in documents.items()}):
            self.notes.append(
                f"no consolidated metadata, because chunks of {rectilinear} have several shapes: with them, zarr-python"
                " would open nothing of the store unless its setting array.rectilinear_chunks is on"
            )
        else:
            own = [path for path, array in self._arrays.items() if isinstance(array, NewArray) and not array.source]
            own += [path for path, group in self._groups.items() if group.document is None]
            consolidate(self.folder, {path: files["zarr.json"] for path, files in documents.items()}, own)

    def _name_container(self, path: str, rounding: Rounding) -> None:
        """Let an array name the variable of its group that describes the algorithm; create the variable if needed."""
        if not (about := container_attributes(rounding)):
            return
        group, array = path.rpartition("/")[0], self._arrays[path]
        for name in container_names(rounding):
            other = f"{group}/{name}"
            if other not in self._names:
                self._names.add(other)
                chunk = ChunkType(np.dtype(np.int8), ())
                is_full = self.form.zarr_format == 2  # so that its fill value is null, which is no attribute
                writer = ZarrWriter(self, NewChunks(other, Grid((), ()), chunk, Pipeline(), is_full))
                writer.finish()
                self._arrays[other] = NewArray(other, (), about, chunk.dtype, np.int8(0), writer)
            elif other not in self._arrays or dict(self._arrays[other].attributes) != about:
                continue
            array.attributes = {**array.attributes, CONTAINER: name}
            return

    def _begin(self, variable: NamedArray) -> None:
        """Make room for an array, replacing one that was begun."""
        begun = [variable.path]
        if (companion := self._companions.pop(variable.path, None)) is not None:
            begun.append(companion.path)
        self._roundings.pop(variable.path, None)
        for path in begun:
            if self._arrays.pop(path, None) is not None:
                remove(self.folder / path.strip("/"))


def _is_odd(files: Mapping[str, Json]) -> bool:
    """Return whether zarr-python cannot read the metadata of an array, or reads something else in them."""
    content = files.get(".zarray", files.get("zarr.json"))
    return bool(in_usual_spelling(content, files.get(".zattrs")) != content)


def _rectilinear(documents: Mapping[str, Json]) -> str:
    """Return the path of the first array whose chunks have several shapes; empty if there is none."""
    grids = {path: document.get("chunk_grid") for path, document in documents.items()}
    return next((path for path, grid in grids.items() if isinstance(grid, dict) and grid["name"] == "rectilinear"), "")


def _forms_of(attributes: Mapping[str, Any], *variables: NamedArray) -> dict[str, AttributeForm]:
    """Return the forms of attributes in variables that have the same ones."""
    return {
        name: form
        for variable in variables
        for name, form in variable.forms.items()
        if name not in variable.attributes or attributes.get(name) is variable.attributes[name]
    }


def _value_type(array: ArrayFacts, plan: ArrayPlan) -> np.dtype[Any]:
    """Return the type of the values of an array, even if they are written as bytes."""
    if plan.dtype.kind != "V":
        return plan.dtype
    if array.type.values is None or array.type.values.itemsize != plan.dtype.itemsize:
        raise FileError(f"{array.label}: Zarr has no type for {array.type.text}").at(dataset=array.path)
    return array.type.values


def _write_scalar(plan: ArrayPlan, array: StoredArray, writer: ZarrWriter) -> None:
    with closing(array.open_reader()) as reader:
        writer.put([NewChunk(0, reader.read(()).astype(plan.dtype, copy=False).tobytes(), 0)])
    writer.finish()


def _flags(variable: NamedArray) -> dict[str, Any]:
    """Return the members of an enumeration, which Zarr lacks, as CF attributes."""
    metadata: Mapping[str, Any] = variable.dtype.metadata or {}
    members = metadata.get("enum") if variable.enum is None else variable.enum.members
    if not members or variable.dtype.kind not in "iu" or _FLAGS & variable.attributes.keys():
        return {}
    names, numbers = zip(*sorted(members.items(), key=lambda member: member[1]), strict=True)
    meanings = " ".join("_".join(name.split()) for name in names)
    return {"flag_values": np.array(numbers, variable.dtype.str), "flag_meanings": meanings}
