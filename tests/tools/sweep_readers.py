"""What two readers make of the same file: tamis and the library of its format, or those of a source and its copy.

Each function returns a list of differences in words. `sweep.py` calls them in processes of their own.
"""

from __future__ import annotations

import gc
import itertools
import json
import logging
import os
import posixpath
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

import h5py
import hdf5plugin  # noqa: F401 - h5py reads with its filters
import netCDF4
import numpy as np
import xarray as xr
import zarr

import tamis
from tamis import TamisError
from tamis.cli import main as tamis_main
from tamis.cli import preload

warnings.simplefilter("ignore")

for job in ("inspect", "plan", "repack", "verify", "export", "copy"):  # what commands need, before processes are forked
    preload([job])

LARGEST_NBYTES = 64 << 20
RAW: dict[str, Any] = dict.fromkeys(("mask_and_scale", "decode_times", "concat_characters", "decode_coords"), False)
PLACEHOLDER = "_nc4_non_coord_"
REFERENCES = {"DIMENSION_LIST", "REFERENCE_LIST"}


class Library(Protocol):
    """A file as the library of its format reads it."""

    def paths(self) -> list[str]: ...
    def shape(self, path: str) -> tuple[int, ...] | None: ...
    def dtype(self, path: str) -> Any: ...
    def values(self, path: str) -> Any: ...
    def attributes(self, path: str) -> dict[str, Any]: ...


class Hdf5:
    """A file as h5py reads it."""

    def __init__(self, path: Path) -> None:
        self.file = h5py.File(path, "r")

    def paths(self) -> list[str]:
        paths: list[str] = []

        def add(name: str | bytes, item: object) -> None:
            if isinstance(item, h5py.Dataset):
                paths.append(name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name)

        self.file.visititems(add)
        return paths

    def dataset(self, path: str) -> h5py.Dataset:
        return self.file[path.encode("utf-8", "surrogateescape")]

    def shape(self, path: str) -> tuple[int, ...] | None:
        return self.dataset(path).shape

    def dtype(self, path: str) -> Any:
        return self.dataset(path).dtype

    def values(self, path: str) -> Any:
        return self.dataset(path)[()]

    def attributes(self, path: str) -> dict[str, Any]:
        return attributes_of(self.dataset(path))

    def is_dimension(self, path: str) -> bool:
        """Return whether a dataset stands for a dimension of netCDF alone."""
        name = self.dataset(path).attrs.get("NAME", b"")
        return isinstance(name, bytes) and name.startswith(b"This is a netCDF dimension but not a netCDF variable")

    def close(self) -> None:
        self.file.close()


class Classic:
    """A classic file as netCDF4 reads it."""

    def __init__(self, path: Path) -> None:
        self.file = netCDF4.Dataset(path)
        self.file.set_auto_maskandscale(False)
        self.file.set_auto_chartostring(False)

    def paths(self) -> list[str]:
        return list(self.file.variables)

    def shape(self, path: str) -> tuple[int, ...] | None:
        return tuple(self.file[path].shape)

    def dtype(self, path: str) -> Any:
        return self.file[path].dtype

    def values(self, path: str) -> Any:
        return self.file[path][...]

    def attributes(self, path: str) -> dict[str, Any]:
        return {name: self.file[path].getncattr(name) for name in self.file[path].ncattrs()}

    def close(self) -> None:
        self.file.close()


class Zarr:
    """A store as zarr-python reads it."""

    def __init__(self, path: Path) -> None:
        self.root = zarr.open(str(path), mode="r", use_consolidated=False)

    def paths(self) -> list[str]:
        if isinstance(self.root, zarr.Array):
            return ["/"]
        return [name for name, item in self.root.members(max_depth=None) if isinstance(item, zarr.Array)]

    def _array(self, path: str) -> Any:
        return self.root if isinstance(self.root, zarr.Array) else self.root[path]

    def shape(self, path: str) -> tuple[int, ...] | None:
        return tuple(self._array(path).shape)

    def dtype(self, path: str) -> Any:
        return self._array(path).dtype

    def values(self, path: str) -> Any:
        return self._array(path)[...]

    def attributes(self, path: str) -> dict[str, Any]:
        attributes = dict(self._array(path).attrs)
        return {name: value for name, value in attributes.items() if not name.startswith(("_ARRAY_", "_nczarr", "_NC"))}

    def is_dimension(self, path: str) -> bool:
        """Return False: dimensions are names of axes alone."""
        return False

    def close(self) -> None:
        pass


def library(path: Path) -> Any:
    """Open a file by the library of its format, which its first bytes tell."""
    if path.is_dir():
        return Zarr(path)
    with path.open("rb") as file:
        return Classic(path) if file.read(3) == b"CDF" else Hdf5(path)


def can_open(path: Path) -> list[str]:
    """Return why the library of the format cannot open a file and list its arrays; nothing where it can."""
    return _obstacles(path, lambda opened, name: opened.shape(name))


def can_read(path: Path) -> list[str]:
    """Return why the library of the format cannot read the values of an array; nothing where it can."""
    return _obstacles(path, lambda opened, name: opened.values(name))


def _obstacles(path: Path, look: Callable[[Any, str], object]) -> list[str]:
    """Return why the library of the format cannot open a file, or look at one of its arrays; nothing where it can."""
    with ExitStack() as stack:
        try:
            opened = library(path)
            stack.callback(opened.close)
            for name in opened.paths():
                look(opened, name)
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    return []


def attributes_of(item: Any) -> dict[str, Any]:
    """Return the attributes of an h5py object that h5py can read."""
    attributes = {}
    for name in item.attrs:
        try:
            attributes[name] = item.attrs[name]
        except (OSError, TypeError, ValueError, RuntimeError, KeyError):
            continue
    return attributes


def plain(value: Any, file: Any = None) -> Any:
    """Return a value for comparison: numbers by their bits, texts without padding, references by their targets."""
    if isinstance(value, h5py.Empty):
        return "empty"
    if isinstance(value, h5py.Reference):
        return _target(value, file)
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value.rstrip("\0")
    if isinstance(value, dict) or (
        isinstance(value, list | tuple) and any(isinstance(item, list | dict) for item in value)
    ):
        return json.dumps(value)
    array = np.asarray(value)
    if array.dtype.kind == "O" and array.shape == () and not isinstance(value, np.ndarray):
        return repr(value)
    if array.dtype.names:
        return (array.shape, {name: plain(array[name], file) for name in array.dtype.names})
    if array.dtype.kind in "OSUT":
        texts = [plain(item, file) for item in array.reshape(-1).tolist()]
        return texts[0] if array.shape == () else (array.shape, texts)
    if array.dtype.kind == "V" or array.dtype.kind in "mM":
        return (array.shape, array.tobytes())
    return (array.shape, array.astype(array.dtype.newbyteorder("="), copy=False).tobytes())


def _target(reference: h5py.Reference, file: Any) -> str:
    try:
        return str(file[reference].name) if reference and file is not None else str(bool(reference))
    except (ValueError, RuntimeError, KeyError, AttributeError):
        return "dangling"


def nbytes(shape: tuple[int, ...], dtype: Any) -> int:
    """Return the size of an array in memory, at least."""
    count = 1
    for length in shape:
        count *= length
    return count * int(getattr(dtype, "itemsize", 8))


def tamis_opens(path: Path) -> list[str]:
    """Compare what `tamis.open` returns with what the library of the format reads."""
    own = library(path)
    problems: list[str] = []
    paths = own.paths()
    placeholders = {path for path in paths if posixpath.basename(path).startswith(PLACEHOLDER)}
    with tamis.open(path) as file:
        for name in paths:
            if posixpath.join(posixpath.dirname(name), PLACEHOLDER + posixpath.basename(name)) in placeholders:
                continue  # netCDF gives that name to another dataset
            problems += [f"{name}: {text}" for text in _differences(file, own, name)]
    own.close()
    return problems


def _differences(file: Any, own: Any, name: str) -> Iterator[str]:
    try:
        shape, dtype = own.shape(name), own.dtype(name)
    except Exception:
        return
    try:
        array = file if name == "/" and not hasattr(file, "arrays") and hasattr(file, "shape") else file[name]
        if name == "/":
            array = file[next(iter(file))] if not hasattr(array, "dtype") else array
        if shape is not None and array.shape != shape:
            yield f"shape is {shape}, tamis.open has {array.shape}"
        if isinstance(own, Hdf5) and array.dtype != dtype:
            yield f"type is {dtype}, tamis.open has {array.dtype}"
        expected = {key: plain(value) for key, value in own.attributes(name).items()}
        known = dict(array.attrs)
        if isinstance(own, Classic):  # netCDF4 replaces what is no UTF-8
            known = {key: _without_zeros(value) for key, value in known.items()}
        yield from _attribute_differences(expected, known, "tamis.open")
    except TamisError as error:
        yield f"tamis.open cannot open it: {error}"
        return
    if shape is None or nbytes(shape, dtype) > LARGEST_NBYTES:
        return
    try:
        values = plain(own.values(name))
    except Exception:
        return
    try:
        if plain(array[()]) != values:
            yield "values of tamis.open differ"
    except TamisError as error:
        yield f"tamis.open cannot read it: {error}"


def _attribute_differences(
    expected: dict[str, Any], got: dict[str, Any], whose: str, file: Any = None
) -> Iterator[str]:
    for key, value in expected.items():
        if key not in got:
            yield f"attribute {key!r} is not in {whose}"
        elif (other := plain(got[key], file)) != value:
            yield f"attribute {key!r} is {str(value)[:80]}, {whose} has {str(other)[:80]}"


def engines(path: Path) -> list[str]:
    """Compare the groups that xarray opens by tamis with those that it opens by the usual engine."""
    reference, decoded = _reference_groups(path)
    if reference is None:
        return []
    options = {} if decoded else RAW
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        own = xr.open_groups(path, engine="tamis", **options)
    left_out = [str(item.message) for item in said if "left out" in str(item.message)]
    problems = []
    for group, dataset in reference.items():
        if group not in own:
            problems.append(f"group {group} is not there by engine tamis")
            continue
        for name, variable in dataset.variables.items():
            label = f"{group.rstrip('/')}/{name}"
            if name in own[group].variables:
                problems += [f"{label}: {text}" for text in _variable_differences(variable, own[group].variables[name])]
            elif not any(name in text for text in left_out):
                problems.append(f"{label}: is not there by engine tamis, without a warning")
        problems += [f"{group}: {text}" for text in _attrs_differences(dataset.attrs, own[group].attrs)]
    return problems


def usual_engine(path: Path) -> list[str]:
    """Read everything by the usual engine, which may not survive it; return why it cannot open the file."""
    groups, _ = _reference_groups(path)
    if groups is None:
        return ["not opened"]
    for dataset in groups.values():
        for variable in dataset.variables.values():
            with suppress(Exception):
                if nbytes(variable.shape, variable.dtype) <= LARGEST_NBYTES:
                    np.asarray(variable.values)
    return []


def engine_opens(path: Path) -> list[str]:
    """Read everything by engine tamis, where no other opens the file; errors of tamis are no fault.

    Neither are those of xarray about the content, which it has whatever the engine.
    """
    try:
        for dataset in xr.open_groups(path, engine="tamis", **RAW).values():
            for variable in dataset.variables.values():
                with suppress(TamisError):
                    if nbytes(variable.shape, variable.dtype) <= LARGEST_NBYTES:
                        np.asarray(variable.values)
    except TamisError:
        pass
    except Exception as error:  # only now, because netCDF-C may die of the file
        if type(error) is not type(_usual_error(path)):
            raise
    return []


def _usual_error(path: Path) -> Exception | None:
    """Return the error of xarray itself about a file that the usual engine opens."""
    try:
        xr.open_groups(path, engine="zarr" if path.is_dir() else "netcdf4", **RAW)
    except ValueError as error:
        return error if "already exists as a scalar variable" in str(error) else None
    except Exception:
        return None
    return None


def _reference_groups(path: Path) -> tuple[Any, bool]:
    """Return the groups by the first usual engine that opens them, decoded or else as stored."""
    names = ["zarr"] if path.is_dir() else ["netcdf4"]
    for name, decoded in itertools.product(names, (True, False)):
        options = {} if decoded else dict(RAW)
        if name == "zarr":
            options["consolidated"] = False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return xr.open_groups(path, engine=name, **options), decoded
        except Exception:  # whatever it raises: it does not open the file
            continue
    return None, False


def _variable_differences(expected: Any, got: Any) -> Iterator[str]:
    if expected.dtype == "S1" and got.dtype == "S1" and got.shape == expected.shape[:-1]:
        return  # xarray joins characters by the types of other texts, which are str in netCDF4 and bytes in h5py
    if got.dtype.kind == "c" and expected.dtype.names:
        return  # complex numbers in h5py, compounds in netCDF4
    if tuple(expected.dims) != tuple(got.dims) or expected.shape != got.shape:
        yield f"dimensions are {dict(expected.sizes)}, by engine tamis {dict(got.sizes)}"
        return
    # Types of records are compared with h5py's; texts of a fixed size are str with padding in netCDF4, bytes in h5py.
    kinds = {expected.dtype.kind, got.dtype.kind}
    if (expected.dtype, got.dtype.kind) == (np.int8, "b"):  # an enumeration of FALSE and TRUE, booleans in h5py
        expected = expected.astype(bool)
    is_list = got.dtype.kind == "O"  # which has the type of its items in netCDF4
    # Some engines of xarray give texts numpy's newest type, which has no byte order.
    if kinds - set("SUOVT") and not is_list and expected.dtype.newbyteorder("=") != got.dtype.newbyteorder("="):
        yield f"type is {expected.dtype}, by engine tamis {got.dtype}"
    yield from _attrs_differences(expected.attrs, got.attrs)
    if nbytes(expected.shape, expected.dtype) > LARGEST_NBYTES or expected.dtype.kind == "V":
        return
    try:
        values = np.asarray(expected.values)
    except Exception:  # the usual engine does not read it
        return
    if _stripped(values) != _stripped(np.asarray(got.values)):
        yield "values by engine tamis differ"


def _stripped(values: Any) -> Any:
    """Return values to compare, texts without spaces at their ends, which netCDF4 keeps and h5py does not."""
    return plain(
        np.strings.rstrip(values, b" " if values.dtype.kind == "S" else " ") if values.dtype.kind in "SU" else values
    )


def _attrs_differences(expected: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    ours = {key: _without_zeros(value) for key, value in got.items() if key not in REFERENCES}
    texts = {key: plain(_without_zeros(value)) for key, value in expected.items()}
    for key, text in texts.items():  # netCDF4 shows what follows the zero that ends a text, h5netcdf does not
        if isinstance(text, str) and isinstance(ours.get(key), str) and ours[key]:
            texts[key] = ours[key] if text.startswith(ours[key]) else text
    yield from _attribute_differences(texts, ours, "engine tamis")


def _without_zeros(value: Any) -> Any:
    """Return a text as netCDF4 reads it: without zeros, wherever they are, and with a mark for what is no UTF-8."""
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return raw.decode("utf-8", "replace").replace("\0", "") if isinstance(raw, bytes) else value


def copies(source: Path, target: Path, tolerance: float | None) -> list[str]:
    """Compare the values of a copy, read by the library of its format, with those of its source."""
    with ExitStack() as stack:
        own, other = library(source), library(target)
        stack.callback(own.close)
        stack.callback(other.close)
        there = set(other.paths())
        problems = []
        for name in own.paths():
            problems += [f"{name}: {text}" for text in _copy_differences(own, other, name, there, tolerance)]
    return problems


def _name_in(own: Any, other: Any, name: str) -> str | None:
    """Return the name of an array in the copy; None for what only stands for a dimension."""
    if name == "/":
        return next((path for path in other.paths() if not other.is_dimension(path)), None)
    if isinstance(other, Zarr) and isinstance(own, Hdf5):
        if own.is_dimension(name):
            return None
        base = posixpath.basename(name)
        return posixpath.join(posixpath.dirname(name), base.removeprefix(PLACEHOLDER))
    placeholder = posixpath.join(posixpath.dirname(name), PLACEHOLDER + posixpath.basename(name))
    if (
        not isinstance(own, Hdf5)
        and isinstance(other, Hdf5)
        and placeholder.encode("utf-8", "surrogateescape") in other.file
    ):
        return placeholder
    return name


def _copy_differences(own: Any, other: Any, name: str, there: set[str], tolerance: float | None) -> Iterator[str]:
    try:
        shape, dtype = own.shape(name), own.dtype(name)
    except Exception:
        return
    copy = _name_in(own, other, name)
    if copy is None:
        return
    if copy not in there:
        if shape is not None:
            yield "is not in the copy"
        return
    if isinstance(own, Hdf5) and isinstance(other, Hdf5):
        # Lossy filters store big-endian floats as native ones
        same = dtype if tolerance is None or dtype.kind != "f" else dtype.newbyteorder("=")
        if other.dtype(copy) not in (dtype, same):
            yield f"type is {dtype}, in the copy {other.dtype(copy)}"
        expected = {key: plain(value, own.file) for key, value in own.attributes(name).items()}
        if tolerance is None:
            yield from _attribute_differences(expected, other.attributes(copy), "the copy", other.file)
    if other.shape(copy) != shape:
        yield f"shape is {shape}, in the copy {other.shape(copy)}"
        return
    if shape is None or nbytes(shape, dtype) > LARGEST_NBYTES:
        return
    try:
        values = own.values(name)
    except Exception:
        return
    yield from _value_differences(values, other.values(copy), own, other, tolerance)


def _value_differences(values: Any, copied: Any, own: Any, other: Any, tolerance: float | None) -> Iterator[str]:
    expected, got = np.asarray(values), np.asarray(copied)
    if tolerance is not None and expected.dtype.kind in "f":
        with np.errstate(all="ignore"):
            error = np.abs(expected.astype("f8") - got.astype("f8"))
        usual = np.isfinite(expected)
        if not np.array_equal(np.isnan(expected), np.isnan(got)):
            yield "NaN is elsewhere in the copy"
        elif usual.any() and not error[usual].max() <= tolerance * (1 + 1e-6):
            yield f"error in the copy is {error[usual].max()}, more than {tolerance}"
        return
    if tolerance is not None and expected.dtype.kind in "iu":
        return  # packed values have their bound in other units
    if plain(values, getattr(own, "file", None)) != plain(copied, getattr(other, "file", None)):
        yield "values in the copy differ"


def command(arguments: list[str], folder: Path) -> list[Any]:
    """Run a command of tamis in this process; return its exit code, its output and its errors."""
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        code: Any = 0
        try:
            tamis_main(arguments, "tamis")
        except SystemExit as end:
            code = end.code
        except BaseException:
            code = 1
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(kept, 1):
            os.dup2(copy, number)
            os.close(copy)
        texts = [os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace") for file in (output, errors)]
    return [code or 0, *texts]


def called(function: str, arguments: tuple[Any, ...]) -> list[str]:
    """Return what a function of this module returns, or what it raises."""
    try:
        return globals()[function](*arguments)
    except BaseException as error:
        kind = "" if isinstance(error, TamisError) else "traceback: "
        return [f"{kind}{type(error).__name__}: {str(error)[:500]}"]
    finally:
        asyncio_log = logging.getLogger("asyncio")  # which would tell of errors of zarr-python that nobody fetched
        asyncio_log.disabled = True
        gc.collect()
        asyncio_log.disabled = False


def whole(*arguments: Any) -> Any:
    """Run all steps of `sweep.py` in this process."""
    import sweep

    return sweep.whole(*arguments)


def run(function: str, arguments: tuple[Any, ...], results: Any) -> None:
    """Send what a function of this module returns, or what it raises, through a pipe, and end this process.

    It ends at once, because some libraries wait for threads that the fork left behind.
    """
    results.send(called(function, arguments))
    results.close()
    os._exit(0)
