"""An open file, and datasets of its groups."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xarray import Dataset
from xarray.backends import CachingFileManager, StoreBackendEntrypoint
from xarray.backends.locks import HDF5_LOCK

from tamis.errors import ParameterError
from tamis.kinds import FLAG, NAMES, TEXT, WHOLE, checked
from tamis.xarray.file_store import FileStore

if TYPE_CHECKING:
    from tamis.hdf5.file import File
    from tamis.store.opened.opened_store import OpenedStore


def _opened(path: str, threads: int | None, restore: bool, mode: str) -> File | OpenedStore:
    """Open a file for reading; a pickled manager of xarray always passes a mode."""
    from tamis import _open

    return _open.open(path, threads, restore=restore)


class OpenFile:
    """A file that was just opened, to make datasets of its groups."""

    @checked(phony_dims=TEXT, threads=WHOLE.or_none(), restore=FLAG, auto_complex=FLAG)
    def __init__(self, path: Any, phony_dims: str, threads: int | None, restore: bool, auto_complex: bool) -> None:
        if not isinstance(path, (str, os.PathLike)) or "://" in os.fspath(path):
            raise ParameterError(
                f"expected the path of a file on this machine, got {path!r}: engine='h5netcdf' opens files in memory"
                " and remote ones"
            )
        self._auto_complex = auto_complex
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
            _check(path, decoders)
            with HDF5_LOCK:
                group = self._model.group(path)
            masked = bool(decoders.get("mask_and_scale", True))
            store = FileStore(self._path, self._manager, group, self._auto_complex, masked)
            return StoreBackendEntrypoint().open_dataset(store, **decoders)
        except Exception:
            self._manager.close()
            raise

    def groups(self, path: str, **decoders: Any) -> dict[str, Dataset]:
        """Return the datasets of a group and of all groups in it, by path from the first."""
        try:
            _check(path, decoders)
            with HDF5_LOCK:
                paths = self._model.group_paths(path)
        except Exception:
            self._manager.close()
            raise
        start = paths[0].rstrip("/")
        return {inner.removeprefix(start) or "/": self.dataset(inner, **decoders) for inner in paths}


def _check(path: object, decoders: Mapping[str, Any]) -> None:
    TEXT.check("group", path)
    NAMES.or_none().check("drop_variables", decoders.get("drop_variables"))
