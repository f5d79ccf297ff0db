"""A dataset of an HDF5 file: opened on demand, and described by records that are read once."""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

import h5py
import numpy as np
from h5py import h5a, h5d, h5p, h5t

from tamis.errors import MissingFilterError
from tamis.formats.hdf5.dataset_facts import DatasetFacts, facts_of
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import is_bare_dimension, is_bare_name, is_known, known_attributes, known_values
from tamis.formats.hdf5.lib.files import filename_of, has_tree_indexes, is_read_only, remote_of
from tamis.formats.hdf5.lib.foreign_filters import isolate
from tamis.formats.hdf5.lib.netcdf_names import stored_path
from tamis.formats.hdf5.lib.quick_facts import Form, QuickFacts, listed_pipeline, quick_facts
from tamis.lazy_property import lazy_property
from tamis.meaning.arrays import Meaning
from tamis.meaning.companions import MARK, TABLE
from tamis.stores.arrays import WithMeaning
from tamis.stores.facts import ELSEWHERE, Fill, Marks, Storage, ValueType

if TYPE_CHECKING:
    from tamis.pipeline import Pipeline

_OPEN = "_tamis_open"
"""Attribute of h5py's file objects: weak references to the datasets that are open.

So everything is freed with its last user, without Python's garbage collector, which the command turns off.
"""

_shared: dict[tuple[Form, bool], DatasetFacts] = {}
"""Facts that datasets of any file share, by form, and whether the indexes of the file are trees."""

_FACTS = "_tamis_facts"
"""Attribute of h5py's dataset objects: their facts, for all arrays that are made of the same object."""

_FORMS = "_tamis_forms"
"""Attribute of h5py's file objects: attributes of the conventions and their meaning, by form and those attributes."""

_MOST_FORMS = 1024

_MOST_OPEN = 8
"""Limit of open datasets: HDF5 takes 64 KiB or more for each, and a file may have very many."""

_MARK, _TABLE, _NAME = MARK.encode(), TABLE.encode(), b"NAME"


def has_companion(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset has a companion, so that some of its values only fill the place of missing ones."""
    return bool(h5a.exists(dataset.id, _MARK))


def is_companion(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset is the companion of another one, by its attributes."""
    return bool(h5a.exists(dataset.id, _TABLE))


class Hdf5Dataset(WithMeaning):
    """A dataset that is opened on demand; only a few datasets of a file stay open."""

    form: Form | None = None
    """What it shares with other datasets, if native code knows it."""

    _contents: tuple[tuple[bytes, Any], ...] | None = None
    """The attributes of the conventions, as `QuickFacts` has them; None if they are not known."""

    _is_surveyed = False
    _dataset: h5py.Dataset | None = None

    def __init__(
        self,
        file: h5py.File,
        path: str,
        dataset: h5py.Dataset | None = None,
        *,
        stored_path: str | None = None,
        address: int | None = None,
    ) -> None:
        self.file, self.path = file, path
        if dataset is not None:
            self._dataset = dataset
        if stored_path is not None:
            self.__dict__["stored_path"] = stored_path
        if address is not None:
            self.__dict__["address"] = address

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> Self:
        """Return an h5py dataset as an array."""
        name = str(dataset.name)
        array = cls(dataset.file, name, dataset, stored_path=name)
        array._is_surveyed = dataset.name is None  # native code would not find it
        if _FACTS in vars(dataset):
            array.__dict__["facts"] = vars(dataset)[_FACTS]
        else:
            vars(dataset)[_FACTS] = array.facts
        isolate(stage.filter.id for stage in array.storage.pipeline.stages)
        return array

    def survey(self) -> None:
        """Read all facts of a small dataset in one call, unless already read; otherwise they are read when needed."""
        if not self._is_surveyed:
            self._is_surveyed = True
            if (facts := quick_facts(self.file, self.stored_path)) is not None:
                self.take(facts)

    def take(self, facts: QuickFacts, *, with_attributes: bool = True) -> None:
        """Take over facts that were read together; those that follow from form and attributes are shared.

        Without attributes, facts that follow from them are read when they are needed.
        """
        self._is_surveyed = True
        own, names = self.__dict__, dict(facts.attributes)
        own["shape"], own["maxshape"] = facts.shape, facts.maxshape
        own["has_scales"] = b"DIMENSION_LIST" in names
        self._contents = tuple(sorted((entry for entry in facts.attributes if is_known(entry[0])), key=itemgetter(0)))
        if (is_bare := _is_bare(names)) is not None:
            own["marks"] = Marks(_MARK in names, _TABLE in names, is_bare)
        if facts.stored_nbytes is not None:
            own["stored_nbytes"] = facts.stored_nbytes
        try:
            own["facts"] = self._shared_facts(facts.form)
            self.form = facts.form
            if with_attributes and all(content is not None for _, content in self._contents):
                own["attributes"], own["meaning"] = self._shared_meaning((facts.form, self._contents))
        except Exception:  # raised again when the fact is needed
            return

    def _shared_facts(self, form: Form) -> DatasetFacts:
        """Return the facts of all datasets of a form; those of this one if it is the first."""
        key = form, has_tree_indexes(self.file)
        if (known := _shared.get(key)) is None:
            known = facts_of(self.dataset, self.file, self._pipeline)
            if len(_shared) >= _MOST_FORMS:
                _shared.clear()
            _shared[key] = known
        return known

    def _shared_meaning(self, key: tuple[Form, Any]) -> tuple[dict[str, Any], Meaning]:
        """Return attributes and their meaning, for all datasets of a form and these attributes."""
        kept: dict[Any, tuple[dict[str, Any], Meaning]] = vars(self.file).setdefault(_FORMS, {})
        if (known := kept.get(key)) is None:
            known = self.attributes, self.meaning
            if len(kept) >= _MOST_FORMS:
                kept.clear()
            kept[key] = known
        return known

    @lazy_property
    def facts(self) -> DatasetFacts:
        """What follows from type and creation properties."""
        self.survey()  # which knows small datasets in a fifth of the time, without opening them
        known: DatasetFacts | None = vars(self).get("facts")
        return facts_of(self.dataset, self.file, self._pipeline) if known is None else known

    @lazy_property
    def _pipeline(self) -> Pipeline:
        """The filters, listed once: those of other packages are isolated before the facts are read."""
        return listed_pipeline(self.creation_list)

    @lazy_property
    def type(self) -> ValueType:
        """See `tamis.stores.protocols.StoredArray.type`."""
        return self.facts.type

    @lazy_property
    def storage(self) -> Storage:
        """See `tamis.stores.protocols.StoredArray.storage`."""
        return self.facts.storage

    @lazy_property
    def fill(self) -> Fill:
        """See `tamis.stores.protocols.StoredArray.fill`."""
        return self.facts.fill

    @property
    def numpy_type(self) -> np.dtype[Any] | None:
        """Type of the values in h5py; None if NumPy does not have it."""
        return self.facts.numpy_type

    @lazy_property
    def marks(self) -> Marks:
        """What attributes mark the dataset as; their values are not read."""
        is_bare = bool(h5a.exists(self.dataset.id, _NAME)) and is_bare_dimension(self.dataset)
        return Marks(has_companion(self.dataset), is_companion(self.dataset), is_bare)

    @lazy_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the conventions, without unreadable ones."""
        if self._contents is None:
            return known_attributes(self.dataset, "CLASS")
        return known_values(lambda: self.dataset, self._contents)

    @property
    def likeness(self) -> object:
        """Key that is equal for datasets that differ only in path, values and location; None if unknown.

        Companions and their variables never share a key.
        """
        self.survey()
        contents = self._contents or ()
        if self.form is None or any(self.marks) or any(content is None for _, content in contents):
            return None
        return self.form, self.shape, self.maxshape, contents

    @lazy_property
    def stored_path(self) -> str:
        """Path in HDF5."""
        return stored_path(self.file, self.path)

    @property
    def dataset(self) -> h5py.Dataset:
        """The h5py dataset."""
        if self._dataset is None:
            handle = h5d.open(self.file.id, self.stored_path.encode("utf-8", "surrogateescape"))
            return self.keep(h5py.Dataset(handle, readonly=is_read_only(self.file)))  # lets h5py cache the shape
        return self._dataset

    def keep(self, dataset: h5py.Dataset) -> h5py.Dataset:
        """Return the dataset, just opened by its path, and keep it open until some others are opened."""
        if self._dataset is not None:
            return self._dataset
        self._dataset = dataset
        facts: DatasetFacts | None = vars(self).get("facts")
        pipeline = self._pipeline if facts is None else facts.storage.pipeline
        try:
            isolate(stage.filter.id for stage in pipeline.stages)
        except MissingFilterError:
            self._release()
            raise
        others: deque[ref[Hdf5Dataset]] = vars(self.file).setdefault(_OPEN, deque())
        others.append(ref(self))
        if len(others) > _MOST_OPEN and (oldest := others.popleft()()) is not None:
            oldest._release()
        return dataset

    def _release(self) -> None:
        """Let HDF5 close the dataset as soon as nothing else uses it; keep the facts."""
        self._dataset = None

    @lazy_property
    def label(self) -> str:
        """File and path, for messages."""
        return f"{filename_of(self.file)}: {self.path}"

    @property
    def filename(self) -> str:
        """Path of the file."""
        return filename_of(self.file)

    @lazy_property
    def shape(self) -> Any:
        """Extents; None for a null dataspace."""
        return self.dataset.shape

    @lazy_property
    def maxshape(self) -> Any:
        """Largest extents; None for an unlimited axis."""
        return self.dataset.maxshape

    @property
    def datatype(self) -> h5t.TypeID:
        """Type of the values in the file; not cached, because HDF5 cannot close all types and properties at exit."""
        return self.dataset.id.get_type()

    @property
    def creation_list(self) -> h5p.PropDCID:
        """Creation properties of the dataset; not cached, like the type."""
        return self.dataset.id.get_create_plist()

    @lazy_property
    def stored_nbytes(self) -> int:
        """Bytes of the values in the file."""
        self.fetch_index()
        return int(self.dataset.id.get_storage_size())

    def fetch_index(self) -> None:
        """Fetch the chunk index in a file that is elsewhere, before libhdf5 walks over it, node by node."""
        if (remote := remote_of(self.file)) is not None:
            remote.prefetch_index(self.address)

    @property
    def is_unreadable_empty(self) -> bool:
        """True if there are neither values nor a fill value: HDF5 then refuses to read, and tamis reads zeros."""
        if self.facts.fill_state != h5d.FILL_VALUE_UNDEFINED or self.storage.layout in ELSEWHERE:
            return False
        return int(self.dataset.id.get_storage_size()) == 0  # not kept: another object of the file may write

    def fill_bytes(self) -> bytes:
        """Return the bytes of the fill value that the file records, whether HDF5 uses it or not."""
        return calls.fill_bytes(self.creation_list, self.datatype)

    @lazy_property
    def has_scales(self) -> bool:
        """True if dimension scales are attached to axes."""
        return bool(h5a.exists(self.dataset.id, b"DIMENSION_LIST"))

    @lazy_property
    def address(self) -> int:
        """Address in the file, which identifies the dataset under any path."""
        return calls.address_of(self.dataset.id)


def _is_bare(attributes: dict[bytes, Any]) -> bool | None:
    """Return whether attributes, as `QuickFacts` has them, are those of a bare dimension; None if that is not known."""
    if _NAME not in attributes:
        return False
    content = attributes[_NAME]
    raw = content[-1] if isinstance(content, tuple) else content
    return None if raw is None else is_bare_name(raw.decode("utf-8", "surrogateescape"))
