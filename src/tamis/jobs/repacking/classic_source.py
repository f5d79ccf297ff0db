"""A netCDF classic file whose copy would be larger, because each variable of netCDF-4 has a header and an index."""

from __future__ import annotations

import shutil
from pathlib import Path

from tamis.errors import BoundError
from tamis.formatting import size_text
from tamis.netcdf.classic.classic_signature import is_classic
from tamis.store.array import Store
from tamis.store.disk import nbytes_of, size_and_checksum
from tamis.store.transaction import Transaction


def growth_of(store: Store, transaction: Transaction) -> str:
    """Return how a classic file has grown in a target that is written; empty if it has not, or for another target."""
    if not (is_classic(store.path) and transaction.path.is_file()):
        return ""
    before, after = nbytes_of(store.path), nbytes_of(transaction.path)
    return f"{size_text(after)} instead of {size_text(before)}" if after > before else ""


def copy_as_it_is(store: Store, transaction: Transaction) -> None:
    """Replace a target that is written by the bytes of its source.

    Raises
    ------
    BoundError
        If the target does not hold the same bytes.
    """
    shutil.copyfile(store.path, transaction.path)
    transaction.begin_sync()
    if transaction.finish_sync() != size_and_checksum(Path(store.path)):
        raise BoundError(f"{transaction.target}: expected the bytes of {store.path}, found others: run it again").at(
            path=transaction.target
        )
