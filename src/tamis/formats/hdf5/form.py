"""The form of a new HDF5 file: what it holds of a store, and how it gets the content of one."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.formats.hdf5.netcdf_target import NetcdfTarget, check_array
from tamis.formats.hdf5.store import Hdf5Store
from tamis.formats.hdf5.tree.copy import check_scales
from tamis.formats.hdf5.writer import copied_file
from tamis.formatting import printable
from tamis.rewrite.transfer import Changes, NewStore, Transfer, check_storable
from tamis.safety.transaction import Transaction
from tamis.stores.data_model import Translation, is_fixed_text
from tamis.stores.facts import values_nbytes_of
from tamis.stores.other_files import OtherFiles
from tamis.stores.translation import translations

if TYPE_CHECKING:
    from tamis.stores.protocols import Store

CLOUD_BLOCK_NBYTES = 1 << 20
"""Size of the blocks of metadata in files for the cloud: chunk indexes and headers lie together."""


_FIXED_TEXT = "text of a fixed length, which netCDF lacks"
_NETCDF_ENDINGS = (".nc", ".nc4", ".netcdf", ".cdf")


class Hdf5Form:
    """The form of a new HDF5 file; see `tamis.rewrite.transfer.TargetForm`. Other formats become netCDF-4 files."""

    def __init__(self, *, cloud: bool = False) -> None:
        self._block_nbytes = CLOUD_BLOCK_NBYTES if cloud else None
        self._is_netcdf = False

    def begin(self, target: Path, *, overwrite: bool = True, private: bool = False) -> Transaction:
        """Return the transaction of a file."""
        self._is_netcdf = target.suffix.lower() in _NETCDF_ENDINGS
        return Transaction(target, overwrite=overwrite, private=private)

    def check_copy(self, source: Store, dropped: Collection[str] = ()) -> None:
        """Raise an error if HDF5 cannot hold an array of the source, or if one that is left out is needed."""
        if not isinstance(source, Hdf5Store):
            check_storable(source, partial(check_array, is_netcdf=self._is_netcdf), dropped)
        elif dropped:
            check_scales(source.file, dropped)

    def translations(self, source: Store) -> Iterable[Translation]:
        """See `TargetForm.translations`."""
        if isinstance(source, Hdf5Store):
            return ()

        def changed(path: str) -> Translation:
            encoding = ", and no attribute '_Encoding'" if "_Encoding" in source.arrays[path].attributes else ""
            text = f"{_FIXED_TEXT}: it gets a varying length{encoding}"
            return Translation(path, "zarr fixed text", text, is_lost=False)

        return itertools.chain(translations(source, to_zarr=False), map(changed, self.kept_as_stored(source)))

    def kept_as_stored(self, source: Store) -> Collection[str]:
        """Return the paths of texts that get a varying length, because netCDF lacks those of a fixed one."""
        if not self._is_netcdf or isinstance(source, Hdf5Store):
            return ()
        return [path for path, array in source.arrays.items() if is_fixed_text(array.as_values().type.values)]

    @property
    def files(self) -> None:
        """None: one process writes all chunks."""

    def copies_objects_of(self, source: Store) -> bool:
        """Return whether the source is also HDF5."""
        return isinstance(source, Hdf5Store)

    @contextmanager
    def copying(self, source: Store, target: Transaction, changes: Changes, threads: int = 1) -> Iterator[NewStore]:
        """Create a file; see `tamis.rewrite.transfer.TargetForm.copying`."""
        if isinstance(source, Hdf5Store):
            with copied_file(source, target, changes, self._block_nbytes) as copy:
                yield copy
            if self._is_netcdf and Path(source.path).suffix.lower() not in _NETCDF_ENDINGS:
                copy.others.notes.extend(_foreign_types(source, changes.dropped))
            return
        values_nbytes = sum(values_nbytes_of(array) for array in source.arrays.values())
        with NetcdfTarget(
            target.path, values_nbytes, self._block_nbytes, target.mode, threads, is_netcdf=self._is_netcdf
        ) as out:
            new = Transfer(source, out, changes)
            yield new
        new.others = OtherFiles(out.notes, [])

    def __str__(self) -> str:
        return "cloud" if self._block_nbytes else ""


def _foreign_types(source: Hdf5Store, dropped: Collection[str]) -> Iterator[str]:
    """Yield a note for each dataset with floats or text that netCDF lacks, where the name of a copy promises netCDF."""
    for path, array in source.arrays.items():
        dtype = array.type.numbers
        if path not in dropped and dtype is not None and dtype.kind == "f" and dtype.itemsize not in (4, 8):
            yield printable(f"{path}: netCDF lacks the type {dtype}: its library and programs fail with it")
        elif path not in dropped and is_fixed_text(array.type.values):
            yield printable(f"{path}: {_FIXED_TEXT}: ncdump may fail with it")
