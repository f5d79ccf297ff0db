"""The form of a new Zarr hierarchy: what it holds of a store, and how it gets the content of one."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.formats.zarr.writing.layout import ZarrLayout
from tamis.formats.zarr.writing.target import ZarrTarget, check_array, kept_as_stored
from tamis.rewrite.transfer import Changes, NewStore, Transfer, check_storable
from tamis.safety.transaction import FolderTransaction, Transaction
from tamis.stores.first_bytes import is_zarr
from tamis.stores.other_files import OtherFiles
from tamis.stores.translation import translations

if TYPE_CHECKING:
    from tamis.stores.data_model import Translation
    from tamis.stores.protocols import Store


class ZarrForm(ZarrLayout):
    """The form of a new hierarchy: a `tamis.rewrite.transfer.TargetForm`, and a `FolderForm` of its transaction."""

    __slots__ = ()

    def begin(self, target: Path, *, overwrite: bool = True, private: bool = False) -> FolderTransaction:
        """Return the transaction of a folder."""
        return FolderTransaction(target, self, overwrite=overwrite, private=private)

    def check_copy(self, source: Store, dropped: Collection[str] = ()) -> None:
        """Raise an error if such a hierarchy cannot hold an array of the source that is not left out."""
        check_storable(source, partial(check_array, self), dropped)

    def kept_as_stored(self, source: Store) -> Collection[str]:
        """Return the paths of arrays that are only copied as they are, because of their type."""
        return kept_as_stored(self, source)

    @property
    def files(self) -> ZarrLayout:
        """The layout, which knows the files of chunks."""
        return self

    def translations(self, source: Store) -> Iterable[Translation]:
        """See `TargetForm.translations`."""
        yield from translations(source, to_zarr=True)
        if source.model.is_loose:
            yield from (item for item in source.model.extras() if not _is_carried(source, item))

    def copies_objects_of(self, source: Store) -> bool:
        """Return False: all arrays are written again."""
        return False

    @contextmanager
    def copying(self, source: Store, target: Transaction, changes: Changes, threads: int = 1) -> Iterator[NewStore]:
        """Create a hierarchy; see `tamis.rewrite.transfer.TargetForm.copying`."""
        hierarchy = ZarrTarget(target.path, self, threads, target.mode)
        new = Transfer(source, hierarchy, changes)
        yield new
        if source.model.is_loose:
            for item in source.model.extras():
                if _is_carried(source, item):
                    place = target.path / item.path[1:]
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(f"{source.path}{item.path}", place)
        new.others = OtherFiles(hierarchy.notes, [])

    def is_store(self, path: Path) -> bool:
        """Return whether a folder is a hierarchy."""
        return is_zarr(path)


def _is_carried(source: Store, item: Translation) -> bool:
    """Return whether a file of a store of Zarr that is not of Zarr itself is copied to another one.

    Links are not, which may lead to any file of this machine, nor what netCDF-C 4.8 says about dimensions and arrays.
    """
    place = f"{source.path}{item.path}"
    is_nczarr = posixpath.basename(item.path).startswith(".ncz")
    return not is_nczarr and os.path.isfile(place) and not os.path.islink(place)
