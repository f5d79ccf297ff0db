"""What xarray's own engines read of a file or store: metadata of all variables, and samples of their values.

This module imports nothing of tamis. As a script, it is a process that answers requests until its input ends:
`tamis.jobs.witness.process` starts it.
"""

import os
import pickle
import sys
import threading
import warnings
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import xarray

Region = tuple[slice, ...]
Key = tuple[str, str]
"""Path of a group, and name of a variable in it."""

_SMALL_NBYTES = 64 << 10
"""Variables of at most this size are read whole."""

_MOST_NBYTES = 64 << 20
"""Most decoded bytes of one part of a sample: of a larger chunk, only the beginning is read."""

_IDLE_SECONDS = 60.0

_LINKS = "HDF5_EXT_PREFIX"
"""Names the folders where HDF5 looks for the files of external links."""

_PACKAGES = {"netcdf4": "netCDF4", "h5netcdf": "h5netcdf", "scipy": "scipy", "zarr": "zarr"}
"""Engines of xarray, and the packages that they need."""


class Request(NamedTuple):
    """What is to be read."""

    path: str
    # By key of a variable, the parts to read; None for its first and last chunk, or for those of each variable
    only: dict[Key, list[Region] | None] | None = None
    also: dict[Key, list[Region]] | None = None  # Further parts
    decode_times: bool | None = None  # None: times are left as numbers only where they cannot be decoded
    engine: str = ""  # The only engine; empty for the first one that opens the path
    links_folder: str = ""  # Where HDF5 first looks for the files of external links; empty for nowhere


def read(request: Request) -> dict[str, Any]:
    """Return what the first engine that opens a path reads, by the fields of `tamis.jobs.witness.process.Opened`.

    If none does, the error of the first one is raised.
    """
    known = (request.engine,) if request.engine else _engines(request.path)
    engines = [engine for engine in known if find_spec(_PACKAGES[engine])]
    errors: list[Exception] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for decode_times in (True, False) if request.decode_times is None else (request.decode_times,):
            for engine in engines:
                try:
                    return _read(request, engine, decode_times=decode_times)
                except Exception as error:
                    errors.append(error)
    if not errors:
        packages = " or ".join(_PACKAGES[engine] for engine in known)
        raise ModuleNotFoundError(f"xarray needs {packages}, which is not installed")
    raise errors[0]


def _engines(path: str) -> tuple[str, ...]:
    """Return the engines that read a file or store, the one that xarray itself prefers first."""
    if os.path.isdir(path):
        return ("zarr",)
    with open(path, "rb") as file:
        start = file.read(4)
    if start[:3] == b"CDF":
        return ("netcdf4", "scipy")
    return ("zarr",) if start[:2] == b"PK" else ("netcdf4", "h5netcdf")


def _read(request: Request, engine: str, *, decode_times: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"phony_dims": "access"} if engine == "h5netcdf" else {}
    groups = xarray.open_groups(request.path, engine=engine, decode_times=decode_times, **options)
    variables = {}
    try:
        for group, ds in groups.items():
            for name, variable in ds.variables.items():
                key = group, str(name)
                asked = None if request.only is None else request.only.get(key, [])
                parts = _parts(variable) if asked is None else asked
                parts += [part for part in (request.also or {}).get(key, []) if part not in parts]
                variables[key] = {**_facts(variable), **_samples(variable, parts), "is_coordinate": name in ds.coords}
        return {
            "version": xarray.__version__,
            "engine": engine,
            "groups": {group: _attributes(ds.attrs) for group, ds in groups.items()},
            "variables": variables,
            "decode_times": decode_times,
        }
    finally:
        for ds in groups.values():
            ds.close()


def _facts(variable: xarray.Variable) -> dict[str, Any]:
    return {
        "dims": tuple(map(str, variable.dims)),
        "shape": variable.shape,
        "dtype": str(variable.dtype),
        "kind": variable.dtype.kind,
        "attributes": _attributes(variable.attrs),
        "units": str(variable.encoding.get("units", "")),
        "is_packed": "scale_factor" in variable.encoding or "add_offset" in variable.encoding,
        "offset": _number(variable.encoding.get("add_offset", 0.0)),
    }


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def _attributes(attributes: dict[Any, Any]) -> dict[str, Any]:
    """Return attributes as lists of Python's values, whatever package they come from."""
    return {str(name): _plain(value) for name, value in attributes.items()}


def _plain(value: Any) -> list[Any]:
    try:
        values = np.asarray(value)
    except (TypeError, ValueError):
        return [repr(value)]
    if values.dtype.kind not in "biufcSUO":
        return [repr(value)]
    return [_text(item) for item in values.reshape(-1).tolist()]


def _text(item: Any) -> Any:
    if isinstance(item, bytes):
        return item.decode("utf-8", "surrogateescape")
    return item if isinstance(item, bool | int | float | complex | str) else repr(item)


def _samples(variable: xarray.Variable, parts: list[Region]) -> dict[str, Any]:
    samples: list[tuple[Region, Any]] = []
    try:
        for part in parts:
            values = np.asarray(variable[part].values)
            samples.append((part, values.astype(object) if values.dtype.kind == "T" else values))
    except Exception as error:
        return {"samples": [], "reason": f"{type(error).__name__}: {error}"}
    return {"samples": samples, "reason": ""}


def _parts(variable: xarray.Variable) -> list[Region]:
    """Return the first and the last chunk, or all of a small variable."""
    if not variable.size:
        return []
    whole = tuple(slice(0, extent) for extent in variable.shape)
    if variable.nbytes <= _SMALL_NBYTES:
        return [whole]
    sizes = variable.encoding.get("chunksizes") or variable.encoding.get("chunks") or ()
    if len(sizes) != variable.ndim:  # contiguous, or characters with an axis of their own
        sizes = (1, *variable.shape[1:])
    pairs = [(min(step, extent), extent) for step, extent in zip(sizes, variable.shape, strict=True)]
    first = tuple(slice(0, step) for step, _ in pairs)
    last = tuple(slice((extent - 1) // step * step, extent) for step, extent in pairs)
    parts = [first] if first == last else [first, last]
    return [shortened(part, variable.dtype.itemsize) for part in parts]


def shortened(part: Region, itemsize: int) -> Region:
    """Return the beginning of a part, with no more bytes than a sample may have."""
    extents = [axis.stop - axis.start for axis in part]
    for at, extent in enumerate(extents):
        rest = int(np.prod(extents[at + 1 :])) * itemsize
        extents[at] = max(min(extent, _MOST_NBYTES // max(rest, 1)), 1)
    return tuple(slice(axis.start, axis.start + extent) for axis, extent in zip(part, extents, strict=True))


def _look_for_links(folder: str, given: str) -> None:
    """Let HDF5 look for the files of external links in a folder first, then in those that the user gives."""
    folders = os.pathsep.join(name for name in (folder, given) if name)
    if folders:
        os.environ[_LINKS] = folders
    else:
        os.environ.pop(_LINKS, None)


def serve(blocked: list[str]) -> None:
    """Answer requests of standard input on standard output, without these modules.

    It ends with the input, or after a minute without a request, because it takes 100 MB of memory.
    """
    answers = os.fdopen(os.dup(1), "wb")
    requests = sys.stdin.buffer
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries may print
    for name in blocked:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's way to bar a module
    given = os.environ.get(_LINKS, "")
    while True:
        idle = threading.Timer(_IDLE_SECONDS, os._exit, (0,))  # Windows cannot wait for a pipe with a time limit
        idle.start()
        try:
            fields = pickle.load(requests)
        except EOFError:
            return
        finally:
            idle.cancel()
        answer: tuple[bool, Any]
        try:
            request = Request(*fields)
            _look_for_links(request.links_folder, given)
            answer = True, read(request)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers, protocol=5)
        answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1:])
