"""An HDF5 file for `tamis.open`; its datasets are arrays that are read in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py

from tamis.errors import FileError, MissingFilterError
from tamis.formats.hdf5.lib.attributes import all_attributes
from tamis.formats.hdf5.lib.netcdf_names import renamed_paths, stored_path
from tamis.formats.hdf5.lib.source_file import open_source
from tamis.formats.hdf5.model.hdf5_model import Hdf5Model
from tamis.formats.hdf5.opened_array import DatasetArray
from tamis.formats.hdf5.tree.groups import check_links
from tamis.safety.library_errors import reading
from tamis.stores.protocols import NotFoundError

if TYPE_CHECKING:
    from tamis.reading.file import File


class Hdf5Reader:
    """A file that is open for reading; see `tamis.reading.file.Reader`. Nothing is read before it is requested."""

    def __init__(self, path: str) -> None:
        self._path, self._root = path, open_source(path)

    def array(self, file: File, path: str) -> DatasetArray | None:
        """Return the array of the dataset at a path; None for a group."""
        target = None if "\0" in path else self._object(path)  # HDF5 would cut the name there
        if isinstance(target, h5py.Group):
            return None
        if not isinstance(target, h5py.Dataset):
            raise NotFoundError("none" if target is None else "a named type")
        with reading(self._path, dataset=path):
            try:
                return DatasetArray(file, target, path)
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(f"{self._path}: {path}: expected values of a type that NumPy has: {error}") from error

    def _object(self, path: str) -> Any:
        with reading(self._path, dataset=path):
            return self._root.get(_key(stored_path(self._root, path)))

    def array_paths(self, group: str) -> list[str]:
        """Return the paths of the datasets in a group and its inner groups, each dataset once, in order."""
        start, paths = self._object(group), []

        def visit(name: str | bytes, item: h5py.HLObject) -> None:
            if isinstance(item, h5py.Group):
                check_links(item)
            elif isinstance(item, h5py.Dataset):
                paths.append(_text(name))

        try:
            with reading(self._path):
                check_links(start)
                start.visititems(visit)
        except MissingFilterError as error:
            raise FileError(f"{self._path}: {error}").at(path=self._path) from error
        names = renamed_paths(start, paths)
        return sorted(names.get(path, path) for path in paths)

    def group_attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group."""
        group = self._object(path)
        with reading(self._path, dataset=path):
            return all_attributes(group)

    def data_model(self, phony_dims: str, *, restore: bool) -> Hdf5Model:
        """Return the file in netCDF's data model."""
        return Hdf5Model(self._root, phony_dims, restore=restore, follow=True)

    def close(self) -> None:
        """Close the file."""
        self._root.close()


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _key(name: str) -> str | bytes:
    """Return a name in the form that h5py finds."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape")
