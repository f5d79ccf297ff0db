"""The engine ``"tamis"`` of xarray: netCDF-4 and HDF5 files, read in parallel and without plugins."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from xarray import Dataset, DataTree
from xarray.backends import BackendEntrypoint, CachingFileManager, StoreBackendEntrypoint
from xarray.backends.locks import HDF5_LOCK

import tamis.xarray.accessor  # noqa: F401 - registers Dataset.tamis with whatever looks for engines
from tamis.errors import ParameterError
from tamis.xarray.file_store import FileStore

if TYPE_CHECKING:
    from tamis.hdf5.file import File
    from tamis.store.opened.opened_store import OpenedStore


class TamisEngine(BackendEntrypoint):
    """The engine ``"tamis"``.

    Beside the parameters of xarray's other engines:

    group
        Path of a group; its dimensions may be those of groups around it.
    phony_dims
        Names of dimensions without a name: ``"sort"`` as netCDF-C numbers them, or ``"access"`` from 0 on.
    threads
        Number of threads that decode a selection; by default as many as the process may use.
    restore
        Restore missing values in companions (``tamis repack --missing companion``), which are then no variables.
    """

    description = "Open netCDF-4 and HDF5 files, decoded by tamis in parallel and without plugins"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return False: other engines read such files, too, and tamis reads only what is asked of it."""
        return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        phony_dims: str = "sort",
        threads: int | None = None,
        restore: bool = True,
    ) -> Dataset:
        """Open a file or one of its groups; see `xarray.open_dataset`.

        Raises
        ------
        FileError
            If there is no such file or group, or it is damaged or of another kind.
        ParameterError
            If `phony_dims` or `threads` is neither of the above, or a file in memory is given.
        """
        opened = _OpenFile(filename_or_obj, phony_dims, threads, restore)
        return opened.dataset(
            group or "/",
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        phony_dims: str = "sort",
        threads: int | None = None,
        restore: bool = True,
        **decoders: Any,
    ) -> dict[str, Dataset]:
        """Open a group and all groups in it, by path from there; parameters are those of `open_dataset`."""
        opened = _OpenFile(filename_or_obj, phony_dims, threads, restore)
        return opened.groups(group or "/", drop_variables=drop_variables, **decoders)

    def open_datatree(self, filename_or_obj: Any, **parameters: Any) -> DataTree:
        """Open a group and all groups in it as a tree; parameters are those of `open_dataset`."""
        groups = self.open_groups_as_dict(filename_or_obj, **parameters)
        try:
            tree = DataTree.from_dict(groups)
        except Exception:
            for dataset in groups.values():
                dataset.close()
            raise
        for path, dataset in groups.items():
            tree[path].set_close(dataset.close)
        return tree


def _opened(path: str, threads: int | None, restore: bool, mode: str) -> File | OpenedStore:
    """Open a file for reading; a pickled manager of xarray always passes a mode."""
    from tamis import _open

    return _open.open(path, threads, restore=restore)


class _OpenFile:
    """A file that was just opened, to make datasets of its groups."""

    def __init__(self, path: Any, phony_dims: str, threads: int | None, restore: bool) -> None:
        if not isinstance(path, (str, os.PathLike)) or "://" in os.fspath(path):
            raise ParameterError(
                f"expected the path of a file on this machine, got {path!r}: engine='h5netcdf' opens files in memory"
                " and remote ones"
            )
        self._path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._manager = CachingFileManager(_opened, self._path, threads, restore, mode="r")
        try:
            with HDF5_LOCK:
                self._model = self._manager.acquire(needs_lock=False).data_model(phony_dims)
        except Exception:
            self._manager.close()
            raise

    def dataset(self, path: str, **decoders: Any) -> Dataset:
        """Return the dataset of a group."""
        try:
            with HDF5_LOCK:
                group = self._model.group(path)
            store = FileStore(self._path, self._manager, group)
            return StoreBackendEntrypoint().open_dataset(store, **decoders)
        except Exception:
            self._manager.close()
            raise

    def groups(self, path: str, **decoders: Any) -> dict[str, Dataset]:
        """Return the datasets of a group and of all groups in it, by path from the first."""
        try:
            with HDF5_LOCK:
                paths = self._model.group_paths(path)
        except Exception:
            self._manager.close()
            raise
        start = paths[0].rstrip("/")
        return {inner.removeprefix(start) or "/": self.dataset(inner, **decoders) for inner in paths}
