"""Facts of an open file that never change; each is read once, because it costs several calls of HDF5."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import h5py
from h5py import h5d, h5f, h5p, h5s, h5t

from tamis.arrays.source import Descriptor
from tamis.formats.hdf5.lib import calls

T = TypeVar("T")

_FACTS = "_tamis_facts"
"""Attribute of h5py's file objects with the facts."""

_NEW_SUPERBLOCK = 3
"""Version of the superblock that HDF5 1.10 writes when it may use its newest formats."""

_descriptors: weakref.WeakValueDictionary[tuple[int, int], Descriptor] = weakref.WeakValueDictionary()
"""Descriptors by device and inode: all datasets of a file share one."""


def once(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Cache the result of a function of an h5py file, for facts that cannot change while it is open."""
    key = function.__name__

    @functools.wraps(function)
    def ask(file: Any) -> T:
        facts = vars(file).setdefault(_FACTS, {})
        if key not in facts:
            facts[key] = function(file)
        fact: T = facts[key]
        return fact

    return ask


@once
def driver_of(file: h5py.File) -> str:
    """Return the name of the driver by which HDF5 reads a file."""
    return str(file.driver)


@once
def filename_of(file: h5py.File) -> str:
    """Return the path of a file in HDF5."""
    return str(file.filename)


@once
def is_plain(file: h5py.File) -> bool:
    """Return whether a file is one ordinary file, which can be read without HDF5."""
    return driver_of(file) in ("sec2", "stdio") and Path(file.filename).is_file()


@once
def is_read_only(file: h5py.File) -> bool:
    """Return whether a file is open for reading only."""
    return bool(file.mode == "r")


@once
def shares_messages(file: h5py.File) -> bool:
    """Return whether objects of a file share parts of their headers, which only some ways of copying support."""
    return calls.shares_messages(file.id.get_create_plist())


@once
def address_nbytes(file: h5py.File) -> int:
    """Return the size of an address in a file."""
    return int(file.id.get_create_plist().get_sizes()[0])


@once
def first_offset(file: h5py.File) -> int:
    """Return what to add to HDF5's offsets of chunks: the size of the user block, or 0."""
    base = int(file.userblock_size)
    return 0 if base and _offsets_count_user_block() else base


@once
def has_tree_indexes(file: h5py.File) -> bool:
    """Return whether chunk indexes are B-trees of the oldest kind, as in files without libver 1.10 or later."""
    return bool(file.id.get_create_plist().get_version()[0] < _NEW_SUPERBLOCK)


def descriptor_of(file: h5py.File) -> Descriptor:
    """Return a descriptor of a file, to read from it without HDF5."""
    # A duplicate of HDF5's descriptor leads to its file even if another file has the name now.
    own = driver_of(file) == "sec2"
    number = os.dup(file.id.get_vfd_handle()) if own else os.open(file.filename, os.O_RDONLY)
    opened = Descriptor(number)
    status = os.fstat(number)
    return _descriptors.setdefault((status.st_dev, status.st_ino), opened)


@cache
def _offsets_count_user_block() -> bool:
    """Return whether this libhdf5 counts offsets of chunks from the file's first byte, user block included."""
    return _offset_behind(512) == _offset_behind(0) + 512


def _offset_behind(user_block: int) -> int:
    access, create = h5p.create(h5p.FILE_ACCESS), h5p.create(h5p.FILE_CREATE)
    access.set_fapl_core(backing_store=False)
    create.set_userblock(user_block)
    layout = h5p.create(h5p.DATASET_CREATE)
    layout.set_chunk((1,))
    layout.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    file = h5f.create(b"tamis user block", h5f.ACC_TRUNC, create, access)
    try:
        dataset = h5d.create(file, b"x", h5t.NATIVE_INT8, h5s.create_simple((1,)), layout)
        return int(dataset.get_chunk_info_by_coord((0,)).byte_offset)
    finally:
        file.close()
