"""Open files for reading, and facts of them that never change; each is read once."""

from __future__ import annotations

import errno
import functools
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import h5py
from h5py import h5d, h5f, h5fd, h5p, h5s, h5t

from tamis.arrays.source import ByteSource, Descriptor, FileSource
from tamis.errors import FileError
from tamis.filters.zfp import filter_class
from tamis.forks import call_in_each_child
from tamis.formats.hdf5.lib import calls
from tamis.library_lock import imported
from tamis.remote.address import Address
from tamis.stores.first_bytes import READABLE, kind_of, opened_remote
from tamis.system.files import memory_file, open_file, separate

if TYPE_CHECKING:
    from tamis.remote.metadata import MetadataFile

T = TypeVar("T")

_FACTS = "_tamis_facts"
"""Attribute of h5py's file objects with the facts."""

_WITH_DESCRIPTOR = ("sec2", "log")
"""Drivers that read by a file descriptor."""

_SIGNATURE = b"\x89HDF\r\n\x1a\n"

_NEW_SUPERBLOCK = 3
"""Version of the superblock that HDF5 1.10 writes when it may use its newest formats."""

_descriptors: weakref.WeakValueDictionary[tuple[int, int], Descriptor] = weakref.WeakValueDictionary()
"""Descriptors by device and inode: all datasets of a file share one."""

_remote: weakref.WeakValueDictionary[int, MetadataFile] = weakref.WeakValueDictionary()
"""Remote files by HDF5's identifier, as long as HDF5 has them open."""


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
    name = str(file.driver)
    is_log = name == "unknown" and file.id.get_access_plist().get_driver() == calls.log_driver()
    return "log" if is_log else name


@once
def filename_of(file: h5py.File) -> str:
    """Return the path of a file in HDF5."""
    return str(file.filename)


@once
def is_plain(file: h5py.File) -> bool:
    """Return whether a file is one ordinary file, here or elsewhere, which can be read without HDF5."""
    is_local = driver_of(file) in (*_WITH_DESCRIPTOR, "stdio")
    return remote_of(file) is not None or (is_local and Path(file.filename).is_file())


def remote_of(file: h5py.File) -> MetadataFile | None:
    """Return what libhdf5 reads of a file that is elsewhere; None for a local one."""
    return _remote.get(file.id.id) if _remote and driver_of(file) == "fileobj" else None


def source_of(file: h5py.File) -> ByteSource:
    """Return the bytes of an ordinary file, to read from it without HDF5."""
    remote = remote_of(file)
    return FileSource(descriptor_of(file)) if remote is None else remote.remote


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
    """Return a descriptor of a local file, to read from it without HDF5."""
    # A duplicate of HDF5's descriptor leads to its file even if another file has the name now.
    if driver_of(file) in _WITH_DESCRIPTOR:
        with calls.lock:  # so that no thread closes the file in between
            number = separate(file.id.get_vfd_handle(), file.filename)
    else:
        number = open_file(file.filename)
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


@cache
def register() -> None:
    """Register tamis with h5py's libhdf5 for filter 32013, replacing any other.

    Importing tamis does this; no environment variable is needed.
    """
    h5py.h5z.register_filter(filter_class())


CACHE_SLOTS = 521
"""Slots of HDF5's cache of decoded chunks: HDF5 2 has 8191, and clears 64 KiB whenever it opens a dataset."""


class OwnFile(h5py.File):  # type: ignore[misc]  # h5py has no types
    """A file that tamis opened, whose identifier does not outlive a failure to close it."""

    has_left_files: ClassVar[bool] = False
    """Whether this process was forked while its parent wrote files, which HDF5 still takes for open ones."""

    def __init__(self, file: h5f.FileID) -> None:
        super().__init__(file)
        call_in_each_child(self._leave_to_parent)

    @classmethod
    def to_write(cls, opened: Callable[[], h5f.FileID]) -> Self:
        """Open or create a file that is written; a process that is forked knows it, or comes before it."""
        with calls.lock:  # a fork waits for it
            return cls(opened())

    def _leave_to_parent(self) -> None:
        """Let nothing that HDF5 has in memory reach the file: it would write that when a forked process ends."""
        if not self or self.mode == "r":
            return
        OwnFile.has_left_files = True
        nowhere = memory_file()
        with suppress(OSError, RuntimeError, ValueError):  # of a file whose last close failed
            os.dup2(nowhere, self.id.get_vfd_handle(), inheritable=False)
        os.close(nowhere)

    def close(self) -> None:
        """Close the file."""
        try:
            super().close()
        except (OSError, RuntimeError):
            # HDF5 has released the file and keeps its identifier, on which calls that go over all open files crash.
            with suppress(OSError, RuntimeError):
                super().close()
            raise


class SourceFile(OwnFile):
    """A file that is only read, so that errors on closing, as on network file systems, do not matter."""

    def close(self) -> None:
        """Close the file."""
        if (remote := remote_of(self) if self else None) is not None:
            with suppress(FileError):
                remote.keep()
        with suppress(OSError, RuntimeError):
            super().close()


def access_list(*, keeps_chunks: bool = True) -> h5p.PropFAID:
    """Return how files are opened."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    *_, nbytes, preemption = fapl.get_cache()
    fapl.set_cache(0, CACHE_SLOTS, nbytes if keeps_chunks else 0, preemption)
    calls.accept_unused_bits(fapl)
    return fapl


def open_source(path: str | os.PathLike[str], *, keeps_chunks: bool = True) -> h5py.File:
    """Open an HDF5 or netCDF-4 file for reading.

    Without `keeps_chunks`, HDF5 keeps no decoded chunks. H5Ocopy would encode these again instead of copying the stored
    bytes, which changes lossy values, ends the process in filters that can only decode, and writes beyond the end of a
    chunk in memory (HDF5 2.0). A file that is open in this process already is therefore opened by another driver, with
    which HDF5 shares nothing.
    """
    if isinstance(path, Address):
        return _open_remote(path)
    place = Path(os.fsdecode(path))
    try:
        os.stat(place)  # raises errors that exists() hides: permission denied, too many links, a name that is too long
        if not place.is_file() or not h5py.is_hdf5(place):
            raise FileError(f"{place}: expected {READABLE}, got {kind_of(place)}")
        fapl = access_list(keeps_chunks=keeps_chunks)
        file = _open_to_read(place, fapl)
        if not keeps_chunks and file.get_access_plist().get_cache()[2]:
            with calls.lock:  # a writer that another thread closes has no identifier any more
                for other in writers_of(file):
                    h5f.flush(other)
            calls.use_log_driver(fapl)
            fapl.set_file_locking(False, False)
            with suppress(OSError):
                file = h5f.open(os.fsencode(place), h5f.ACC_RDONLY, fapl)
        return SourceFile(file)
    except FileError as error:
        error.at(path=place)
        raise
    except FileNotFoundError as error:
        raise FileError(f"{place}: No such file or directory").at(path=place) from error
    except PermissionError as error:
        raise FileError(f"{place}: Permission denied").at(path=place) from error
    except Exception as error:  # h5py raises many kinds
        if (refusal := _refusal_to_share(error)) is not None:
            raise FileError(f"{place}: {refusal}").at(path=place) from error
        if part := _part_of_several(place):
            raise FileError(f"{place}: {part}").at(path=place) from error
        advice = ": truncated, copy it again" if "truncated file" in str(error) else ""
        raise FileError(f"{place}: cannot be opened as HDF5{advice}: {error}").at(path=place) from error


_DRIVERS = {
    b"NCSAfami": "is the first of several files of HDF5's family driver: join them with h5repart -m 0 {} one.h5, where"
    " the name has %d in the place of its number",
    b"NCSAmult": "is one of several files of HDF5's split or multi driver: join them with h5repack -f NONE, which takes"
    " the driver, or h5py's driver='split'",
}
"""Drivers of files that are stored as several ones, by the mark in the superblock, and what to do."""

_SUPERBLOCK_NBYTES = 4096


def _part_of_several(place: Path) -> str:
    """Return what to do with a file that is one of several of one driver; empty for any other."""
    try:
        with place.open("rb") as stream:
            head = stream.read(_SUPERBLOCK_NBYTES)
    except (OSError, ValueError):  # also a name that no file can have
        return ""
    return next((words.format(place.name) for mark, words in _DRIVERS.items() if mark in head), "")


_ALREADY_WRITTEN = "file is already open for write"
"""What HDF5 says of a file whose superblock has the mark of a writer."""


def _open_to_read(place: Path, fapl: h5p.PropFAID) -> h5f.FileID:
    """Open a file of this machine; one that another program writes in SWMR mode, as its readers open it."""
    name = os.fsencode(place)
    if OwnFile.has_left_files and _is_taken_for_another(name, fapl):
        calls.use_log_driver(fapl)
    try:
        return h5f.open(name, h5f.ACC_RDONLY, fapl)
    except OSError as error:
        if _ALREADY_WRITTEN not in str(error):
            raise
        try:
            return h5f.open(name, h5f.ACC_RDONLY | h5f.ACC_SWMR_READ, fapl)
        except OSError:
            raise error from None  # the first error says what is wrong with the file


def _is_taken_for_another(name: bytes, fapl: h5p.PropFAID) -> bool:
    """Return whether HDF5 takes a file for one that the parent wrote, because the system gave it the same number."""
    try:
        file = h5f.open(name, h5f.ACC_RDONLY, fapl)
    except OSError:
        return True
    return not os.path.samestat(os.fstat(file.get_vfd_handle()), os.stat(name))


def create_file(path: str | os.PathLike[str], fcpl: h5p.PropFCID, fapl: h5p.PropFAID) -> OwnFile:
    """Create a file with these properties, in place of an empty one."""
    name = os.fsencode(path)
    create = partial(h5f.create, name, h5f.ACC_TRUNC, fcpl, fapl)
    try:
        return OwnFile.to_write(create)
    except OSError:
        if not OwnFile.has_left_files:
            raise
        calls.use_log_driver(fapl)  # it may take the file for one that the parent wrote
        return OwnFile.to_write(create)


def _refusal_to_share(error: Exception) -> str | None:
    """Return why HDF5 does not open a file that another program has open, or had; None for other errors."""
    said = str(error)
    if _ALREADY_WRITTEN in said:
        return (
            "another program writes it, or ended before it closed it. Wait until it is closed; if no program has it "
            "open any more, `h5clear -s FILE` removes the mark of the writer"
        )
    if "unable to lock file" not in said:
        return None
    if getattr(error, "errno", None) in _LOCKED:
        return "another program has it open for writing: wait until it is closed there"
    return (
        f"the file system cannot lock it ({os.strerror(getattr(error, 'errno', 0) or errno.ENOLCK)}): "
        "set HDF5_USE_FILE_LOCKING=FALSE in the environment if no program writes it"
    )


_LOCKED = (errno.EAGAIN, errno.EACCES)


def is_being_written(file: h5py.File) -> bool:
    """Return whether another program had a file open for writing, in SWMR mode, when it was opened."""
    return bool(file.id.get_intent() & h5f.ACC_SWMR_READ)


def _open_remote(address: Address) -> h5py.File:
    """Open a file that is elsewhere."""
    remote = opened_remote(address)
    if not any(remote.head[at : at + 8] == _SIGNATURE for at in (0, 512, 1024, 2048, 4096, 8192)):
        raise FileError(f"{address}: expected {READABLE}, got {kind_of(address)}").at(path=address)
    metadata: MetadataFile = imported("tamis.remote.metadata").MetadataFile(remote)  # late: most files are here
    metadata.crawl()
    fapl = access_list(keeps_chunks=False)
    fapl.set_fileobj_driver(h5fd.fileobj_driver, metadata)
    try:
        file = h5f.open(address.encode(), h5f.ACC_RDONLY, fapl)
    except Exception as error:  # h5py raises many kinds
        if metadata.error is not None:
            raise metadata.error from None
        raise FileError(f"{address}: cannot be opened as HDF5: {error}").at(path=address) from error
    _remote[file.id] = metadata
    return SourceFile(file)


def writers_of(file: h5f.FileID) -> list[h5f.FileID]:
    """Return the identifiers with which this process writes a file that HDF5 shares with them."""
    # Of this file alone: a file whose last close failed keeps an identifier, and asking for its intent crashes HDF5.
    with calls.lock:  # another thread that closes the file closes these identifiers, too
        return [other for other in h5f.get_obj_ids(file, h5f.OBJ_FILE) if other.get_intent() != h5f.ACC_RDONLY]


def is_hdf5(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is HDF5 or netCDF-4, by its signature."""
    return bool(h5py.is_hdf5(os.fspath(path)))
