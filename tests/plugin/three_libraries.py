"""Write and read ZFP through h5py, netCDF4 and PyTables in turn, with errors in between: FOLDER ROUNDS IMPORTS.

The three carry a libhdf5 each. Two of them cannot ask for filter 32013 in Python: netCDF4's libnetcdf is called for it
directly, and PyTables fills datasets that h5py created.
"""

import ctypes
import importlib
import re
import sys
import warnings
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import tables

FOLDER, ROUNDS = Path(sys.argv[1]), int(sys.argv[2])
for module in sys.argv[3:]:
    importlib.import_module(module)

REVERSIBLE, ACCURACY = (5,), (3, 0, 0, 0x3F500000)  # of 2^-10
SHAPE, CHUNKS = (8, 12, 10), (4, 5, 10)

id_t, extents_t = ctypes.c_int64, ctypes.c_ulonglong * 5


def library(package: str, stem: str) -> str:
    """Find a shared library of a package among those that this process has loaded."""
    wanted = re.compile(rf"/\S*/{package}\.libs/{stem}-\S+")
    found = wanted.search(Path("/proc/self/maps").read_text())
    assert found is not None, f"{package} has no {stem} of its own"
    return found[0]


class ErrorRecord(ctypes.Structure):
    """H5E_error2_t."""

    _fields_ = [
        *((name, id_t) for name in ("class_id", "major", "minor")),
        ("line", ctypes.c_uint),
        *((name, ctypes.c_char_p) for name in ("function", "file", "text")),
    ]


Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.POINTER(ErrorRecord), ctypes.c_void_p)


class Library:
    """Calls of one libhdf5, past the Python package that carries it."""

    def __init__(self, package: str) -> None:
        self.path = library(package, "libhdf5")
        self.calls = ctypes.CDLL(self.path)
        for name in ("H5Fcreate", "H5Fopen", "H5Pcreate", "H5Screate_simple", "H5Dcreate2", "H5Dopen2"):
            getattr(self.calls, name).restype = id_t

    def variable(self, name: str) -> ctypes.c_int64:
        return id_t.in_dll(self.calls, name)

    def errors(self) -> list[str]:
        """Texts on this library's error stack, innermost first."""
        texts: list[str] = []
        visit = Visit(lambda _, record, __: texts.append(record[0].text.decode()) or 0)
        assert self.calls.H5Ewalk2(id_t(0), 0, visit, None) >= 0
        return texts

    def refused_create(self, path: Path) -> list[str]:
        """Create a dataset with a chunk of five axes, which fails; give the errors."""
        file = id_t(self.calls.H5Fcreate(str(path).encode(), 2, id_t(0), id_t(0)))
        space = id_t(self.calls.H5Screate_simple(5, extents_t(*[4] * 5), None))
        plist = id_t(self.calls.H5Pcreate(self.variable("H5P_CLS_DATASET_CREATE_ID_g")))
        assert self.calls.H5Pset_chunk(plist, 5, extents_t(*[4] * 5)) >= 0
        values = (ctypes.c_uint * 1)(5)
        assert self.calls.H5Pset_filter(plist, 32013, 1, ctypes.c_size_t(1), values) >= 0
        kind = self.variable("H5T_IEEE_F64LE_g")
        assert self.calls.H5Dcreate2(file, b"v", kind, space, id_t(0), plist, id_t(0)) < 0
        texts = self.errors()
        assert min(self.calls.H5Pclose(plist), self.calls.H5Sclose(space), self.calls.H5Fclose(file)) >= 0
        return texts

    def refused_read(self, path: Path) -> list[str]:
        """Read dataset ``cut``, which fails; give the errors."""
        file = id_t(self.calls.H5Fopen(str(path).encode(), 0, id_t(0)))
        dataset = id_t(self.calls.H5Dopen2(file, b"cut", id_t(0)))
        values = ctypes.create_string_buffer(8 * int(np.prod(SHAPE)))
        everything = id_t(0)
        kind = self.variable("H5T_IEEE_F64LE_g")
        assert self.calls.H5Dread(dataset, kind, everything, everything, everything, values) < 0
        texts = self.errors()
        assert min(self.calls.H5Dclose(dataset), self.calls.H5Fclose(file)) >= 0
        return texts


LIBRARIES = {package: Library(package) for package in ("h5py", "netcdf4", "tables")}
TOLD: set[str] = set()  # libraries that pass the filter's message on when a read fails
NETCDF = ctypes.CDLL(library("netcdf4", "libnetcdf"))


def write_h5py(path: Path, data: np.ndarray, values: tuple[int, ...]) -> None:
    # netCDF-4 changes only files that track the order of creation.
    with h5py.File(path, "w", track_order=True) as file:
        file.create_dataset("v", data=data, chunks=CHUNKS, compression=32013, compression_opts=values)


def write_netcdf4(path: Path, data: np.ndarray, values: tuple[int, ...]) -> None:
    with netCDF4.Dataset(path, "w") as file:
        names = [f"d{axis}" for axis in range(data.ndim)]
        for name, extent in zip(names, data.shape, strict=True):
            file.createDimension(name, extent)
        variable = file.createVariable("v", "f8", names, chunksizes=CHUNKS[: data.ndim], fill_value=False)
        words = (ctypes.c_uint * len(values))(*values)
        count = ctypes.c_size_t(len(values))
        assert NETCDF.nc_def_var_filter(file._grpid, variable._varid, 32013, count, words) == 0
        variable[:] = data


def write_tables(path: Path, data: np.ndarray, values: tuple[int, ...]) -> None:
    write_h5py(path, np.zeros_like(data), values)
    with tables.open_file(path, "a") as file:
        file.root.v[:] = data


def read_h5py(path: Path, name: str = "v") -> np.ndarray:
    with h5py.File(path) as file:
        return file[name][...]


def read_netcdf4(path: Path, name: str = "v") -> np.ndarray:
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return file[name][...]


def read_tables(path: Path, name: str = "v") -> np.ndarray:
    with tables.open_file(path) as file:
        return file.get_node(f"/{name}")[:]


WRITERS, READERS = (write_h5py, write_netcdf4, write_tables), (read_h5py, read_netcdf4, read_tables)


def check_storage(path: Path) -> None:
    """See that the filter was ours, and applied to every chunk."""
    with h5py.File(path) as file:
        assert b"tamis" in file["v"].id.get_create_plist().get_filter(0)[3]
        assert [file["v"].id.get_chunk_info(i).filter_mask for i in range(6)] == [0] * 6


def check_errors(path: Path) -> None:
    """Provoke errors in all three; each has our message on its own stack."""
    for package, each in LIBRARIES.items():
        texts = each.refused_create(path.with_suffix(".five"))
        assert texts[0] == "zfp: chunk must have only 1...4 non-unity dimensions, got 4x4x4x4x4 with 5; use 1x4x4x4x4"
        if "zfp: chunk is truncated or damaged" in each.refused_read(path)[0]:
            TOLD.add(package)
    for read in READERS:
        try:
            read(path, "cut")
        except (OSError, RuntimeError, tables.HDF5ExtError):
            continue
        raise AssertionError(f"{read.__name__} took a truncated chunk")


def play_round(turn: int) -> None:
    rng = np.random.default_rng(turn)
    data = rng.standard_normal(SHAPE) * 10.0 ** rng.integers(-1, 3)
    values = REVERSIBLE if turn % 2 else ACCURACY
    path = FOLDER / f"{turn % 7}.h5"
    WRITERS[turn % 3](path, data, values)
    check_storage(path)
    found = [read(path) for read in READERS]
    for each in found:
        assert np.array_equal(each, found[0])
        assert np.abs(each - data).max() <= (0 if turn % 2 else 2**-10)
    # Another library changes part of it, and the first reads that.
    data[2:7] *= -2
    with [tables.open_file, h5py.File, netCDF4.Dataset][turn % 3](path, "a") as file:
        (file.root.v if turn % 3 == 0 else file["v"])[2:7] = data[2:7]
    assert np.abs(READERS[turn % 3](path) - data).max() <= (0 if turn % 2 else 2**-9)
    with h5py.File(path, "a") as file:
        cut = file.create_dataset("cut", SHAPE, "f8", chunks=SHAPE, compression=32013, compression_opts=REVERSIBLE)
        cut.id.write_direct_chunk((0, 0, 0), b"\xff" * 9)
    check_errors(path)


assert len({each.path for each in LIBRARIES.values()}) == 3
warnings.simplefilter("ignore", tables.exceptions.DataTypeWarning)
for turn in range(ROUNDS):
    play_round(turn)
plugins = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libh5z" in line}
assert len(plugins) == 1, plugins
print(f"{ROUNDS} rounds, filter's message on read: {' '.join(sorted(TOLD))}")
