"""Filter 400 for libhdf5, written in Python, and the same filter as a package that tamis finds."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z
from numpy.typing import NDArray

from tamis import Pipeline
from tamis.filters import by_id, by_name
from tamis.formats.hdf5 import dataset as dataset_module
from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of
from tamis.formats.hdf5.lib import quick_facts as filter_list

HERE = Path(__file__).resolve().parent
TOY = 400
REVERSE = 0x0100  # H5Z_FLAG_REVERSE: the filter decodes

c_hid, c_uint, c_size = ctypes.c_int64, ctypes.c_uint, ctypes.c_size_t
FilterCall = ctypes.CFUNCTYPE(
    c_size, c_uint, c_size, ctypes.POINTER(c_uint), c_size, ctypes.POINTER(c_size), ctypes.POINTER(ctypes.c_void_p)
)
SetUpCall = ctypes.CFUNCTYPE(ctypes.c_int, c_hid, c_hid, c_hid)
GoOnCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, c_size, ctypes.c_void_p)

# HDF5 frees what a filter hands to it with free().
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [c_size]
libc.free.argtypes = [ctypes.c_void_p]


class FilterClass(ctypes.Structure):
    """H5Z_class2_t."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("encoder_present", c_uint),
        ("decoder_present", c_uint),
        ("name", ctypes.c_char_p),
        ("can_apply", SetUpCall),
        ("set_local", SetUpCall),
        ("filter", FilterCall),
    ]


@dataclass
class Toy:
    """How libhdf5's filter 400 behaves; what it did is counted."""

    compress: bool = False
    encoder: bool = True
    decoder: bool = True
    can_apply: int = 1
    set_local: int = 0
    declines: Callable[[bytes], bool] = lambda data: False
    decodes: bool = True
    encoded: int = 0
    keep: list[object] = field(default_factory=list)

    def run(self, data: bytes, key: int, reverse: bool) -> bytes | None:
        if reverse:
            if not self.decodes:
                return None
            return zlib.decompress(data) if self.compress else bytes(byte ^ key for byte in data)
        self.encoded += 1
        if self.declines(data):
            return None
        return zlib.compress(data, 6) if self.compress else bytes(byte ^ key for byte in data)

    def as_class(self) -> FilterClass:
        def call(flags: int, count: int, values: Any, nbytes: int, room: Any, buffer: Any) -> int:
            made = self.run(ctypes.string_at(buffer[0], nbytes), values[0] if count else 0, bool(flags & REVERSE))
            if made is None:
                return 0
            if len(made) > room[0]:
                libc.free(buffer[0])
                buffer[0], room[0] = libc.malloc(len(made)), len(made)
            ctypes.memmove(buffer[0], made, len(made))
            return len(made)

        calls = (SetUpCall(lambda *_: self.can_apply), SetUpCall(lambda *_: self.set_local), FilterCall(call))
        self.keep.append(calls)
        return FilterClass(1, TOY, self.encoder, self.decoder, b"toy", *calls)


class Hdf5:
    """libhdf5 as h5py has it, at its low level."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "h5py" in line}
        self.calls = ctypes.CDLL(next(path for path in loaded if Path(path).name.startswith("libhdf5-")))

    @staticmethod
    @contextmanager
    def registered(toy: Toy | None) -> Iterator[Toy]:
        """Filter 400 is there, while it lasts; None: it is not."""
        assert not h5z.filter_avail(TOY)
        if toy is None:
            yield Toy()
            return
        made = toy.as_class()
        h5z.register_filter(ctypes.addressof(made))
        try:
            yield toy
        finally:
            h5z.unregister_filter(TOY)

    @contextmanager
    def going_on(self) -> Iterator[h5p.PropDXID]:
        """A transfer property list with which libhdf5 goes on when a filter fails."""
        plist = h5p.create(h5p.DATASET_XFER)
        go_on = GoOnCall(lambda *_: 1)  # H5Z_CB_CONT
        assert self.calls.H5Pset_filter_callback(c_hid(plist.id), go_on, None) >= 0
        yield plist

    def file(self, mode: str = "r") -> h5py.File:
        """The test's file."""
        return h5py.File(self.folder / "t.h5", mode)

    @staticmethod
    def plist(filters: Sequence[tuple[int, int, tuple[int, ...]]], chunk: tuple[int, ...] = (8,)) -> Any:
        made = h5p.create(h5p.DATASET_CREATE)
        made.set_chunk(chunk)
        for each in filters:
            made.set_filter(*each)
        return made

    @staticmethod
    def toy(flag: int) -> list[tuple[int, int, tuple[int, ...]]]:
        """A pipeline of the toy filter alone."""
        return [(TOY, flag, (90,))]

    def create(
        self,
        filters: Sequence[tuple[int, int, tuple[int, ...]]],
        dtype: str = "<i4",
        shape: tuple[int, ...] = (24,),
        chunk: tuple[int, ...] = (8,),
    ) -> None:
        """Make the test's file anew, with the empty dataset ``x`` of three chunks."""
        with self.file("w") as file:
            kind, space = h5t.py_create(np.dtype(dtype)), h5s.create_simple(shape)
            h5d.create(file.id, b"x", kind, space, self.plist(filters, chunk))

    def write(self, values: NDArray[Any], *chunks: int) -> None:
        """Write some chunks of ``x``, in one call; all of them if none is given."""
        with self.file("r+") as file:
            for start in [8 * each for each in chunks] or [None]:
                part = slice(None) if start is None else slice(start, start + 8)
                file["x"][part] = values[part]

    def write_raw(self, chunks: Sequence[tuple[tuple[int, ...], bytes, int]]) -> None:
        """Write encoded chunks, each with origin and mask."""
        with self.file("r+") as file:
            for origin, data, mask in chunks:
                file["x"].id.write_direct_chunk(origin, data, mask)

    def stored(self) -> list[tuple[tuple[int, ...], bytes, int]]:
        """Encoded chunks as they are in the file, each with origin and mask."""
        with self.file() as file:
            found = file["x"].id
            infos = [found.get_chunk_info(index) for index in range(found.get_num_chunks())]
            return [
                (each.chunk_offset, found.read_direct_chunk(each.chunk_offset)[1], each.filter_mask) for each in infos
            ]

    def masks(self) -> list[int]:
        return [mask for _, _, mask in self.stored()]

    def read(self, *part: slice) -> NDArray[Any]:
        with self.file() as file:
            values: NDArray[Any] = file["x"][part or ...]
            return values

    def decoded_by_us(self) -> NDArray[Any]:
        """What tamis makes of the stored chunks."""
        with self.file() as file:
            pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
        found = np.zeros(24, chunk.dtype)
        for (start,), data, mask in self.stored():
            found[start : start + 8] = pipeline.decode(data, mask, chunk)
        return found

    @staticmethod
    def encoded_by_us(pipeline: Pipeline, values: NDArray[Any]) -> list[tuple[tuple[int, ...], bytes, int]]:
        """All three chunks, each with origin and mask."""
        return [((start,), *pipeline.encode(values[start : start + 8])) for start in range(0, 24, 8)]


@pytest.fixture(params=[h5z.FLAG_MANDATORY, h5z.FLAG_OPTIONAL], ids=["required", "optional"])
def flag(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def values() -> NDArray[Any]:
    """Three chunks; the second starts with a zero."""
    found = np.arange(1, 25, dtype="<i4") * 1000
    found[8] = 0
    return found


@pytest.fixture
def hdf5(tmp_path: Path) -> Hdf5:
    return Hdf5(tmp_path)


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Callable[[str], AbstractContextManager[Any]]]:
    """Install a package with a variant of the toy filter, found by its entry point; gives its class."""

    @contextmanager
    def install(variant: str) -> Iterator[Any]:
        site = tmp_path / f"site-{variant}"
        about = site / "toy_filters-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-filters\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[tamis.filters]\ntoy = toy_filters:{variant}\n")
        shutil.copy(HERE / "toy_filters.py", site)
        sys.path.insert(0, str(site))
        forget()
        try:
            assert by_id()[TOY].__name__ == variant
            yield by_id()[TOY]
        finally:
            sys.path.remove(str(site))
            sys.modules.pop("toy_filters", None)
            forget()

    assert TOY not in by_id()
    yield install
    assert TOY not in by_id()


def forget() -> None:
    """Have the registry look for packages again, as a new process would."""
    importlib.invalidate_caches()
    by_id.cache_clear()
    by_name.cache_clear()
    # Filters of files are kept, too, and what datasets of a form share.
    filter_list._pipeline.cache_clear()
    dataset_module._shared.clear()


@pytest.fixture
def toy() -> type[Toy]:
    return Toy
