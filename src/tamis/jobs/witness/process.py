"""Processes without tamis in which xarray reads; each answers many requests, because it takes a second to start."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import MissingFilterError
from tamis.filters.plugin_folders import VARIABLE, hdf5plugin_folder, netcdf4_folder
from tamis.filters.zfp import plugin_path

Region = tuple[slice, ...]
Key = tuple[str, str]
"""Path of a group, and name of a variable in it."""


_ENDING_SECONDS = 5.0  # until a process that closed its pipe has ended


class Read(NamedTuple):
    """A variable as xarray reads it."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    kind: str  # Of the type, as NumPy has it
    attributes: Mapping[str, list[Any]]
    units: str  # Of times, before they were decoded
    is_packed: bool
    offset: float
    is_coordinate: bool
    samples: Sequence[tuple[Region, Any]]  # Parts and their values
    reason: str  # Why values cannot be read, such as a filter whose plugin is not installed; empty if they can


class Opened(NamedTuple):
    """A file or store as xarray reads it."""

    version: str  # Of xarray
    engine: str
    groups: Mapping[str, Mapping[str, list[Any]]]  # Attributes by path of the group
    variables: Mapping[Key, Read]
    decode_times: bool  # False if times are numbers, because they cannot be decoded


class UnopenedError(Exception):
    """No engine of xarray opens a file or store; the text says why."""


def check_installed() -> None:
    """Raise MissingFilterError if xarray is not installed."""
    if find_spec("xarray") is None:
        raise MissingFilterError("the witness xarray is not installed here: pip install 'tamis[xarray]'")


def read(
    path: str | os.PathLike[str],
    *,
    only: Mapping[Key, list[Region] | None] | None = None,
    also: Mapping[Key, list[Region]] | None = None,
    decode_times: bool | None = None,
    engine: str = "",
    with_codecs: bool = False,
    links_folder: str = "",
) -> Opened:
    """Return what xarray reads in a process without tamis: all metadata, and samples of values.

    Parameters
    ----------
    path
        Path of a file or Zarr store.
    only
        Parts to read by variable, None for its first and last chunk; by default those of each.
    also
        Further parts.
    decode_times
        Whether times are decoded; by default where that is possible for all.
    engine
        Engine of xarray; by default the first one that opens the path.
    with_codecs
        Let zarr-python use the codecs of tamis.
    links_folder
        Where HDF5 first looks for the files of external links; empty for nowhere.

    Raises
    ------
    UnopenedError
        If no engine opens it, or the process ends.
    """
    request = os.fspath(path), only, also, decode_times, engine, links_folder
    process = _idle_process(with_codecs)
    if (answer := process.answer(request)) is None:  # it ended, because it had no work for a minute
        process = _Process(with_codecs)
        answer = process.answer(request)
    if answer is None:
        raise UnopenedError("the process in which xarray reads ended at once")
    _idle.append(process)
    is_opened, content = answer
    if not is_opened:
        raise UnopenedError(content)
    variables = {key: Read(**fields) for key, fields in content.pop("variables").items()}
    return Opened(**content, variables=variables)


class _Process:
    """A process of `stock_reader`."""

    def __init__(self, with_codecs: bool) -> None:
        self.with_codecs, self.owner = with_codecs, os.getpid()
        script = Path(__file__).with_name("stock_reader.py")
        blocked = () if with_codecs else ("tamis", "tamis_xarray")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(script), *blocked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )

    @property
    def is_alive(self) -> bool:
        """Whether it is a process of ours that can answer: a forked process has none."""
        return self.owner == os.getpid() and self._process.poll() is None

    def answer(self, request: tuple[Any, ...]) -> tuple[bool, Any] | None:
        """Return whether a request was met, and the answer or why not; None if the process had ended by itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(request, self._process.stdin, protocol=5)
            self._process.stdin.flush()
            answer: tuple[bool, Any] = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_SECONDS)
            self.stop()
            code = self._process.returncode
            return (False, f"the process in which xarray reads ended ({_ending(code)})") if code else None
        except BaseException:  # Ctrl-C leaves half an answer in the pipe
            self.stop()
            raise
        return answer

    def stop(self) -> None:
        """End the process."""
        if self.owner == os.getpid():
            if self._process.poll() is None:
                self._process.kill()
            self._process.communicate()


_idle: list[_Process] = []


def _idle_process(with_codecs: bool) -> _Process:
    """Return a process that has no work, which is no longer in the list, or a new one."""
    for process in [*_idle]:
        if process.with_codecs == with_codecs:
            try:
                _idle.remove(process)
            except ValueError:  # another thread took it
                continue
            if process.is_alive:
                return process
    return _Process(with_codecs)


@atexit.register
def _stop() -> None:
    while _idle:
        _idle.pop().stop()


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _environment() -> dict[str, str]:
    """Return variables by which the process finds the packages of this one, and HDF5 the plugins of all packages."""
    folders = [str(plugin_path())]
    if (folder := netcdf4_folder()) is not None:
        folders.append(str(folder))
    with suppress(MissingFilterError):
        folders.append(str(hdf5plugin_folder()))
    folders += filter(None, [os.environ.get(VARIABLE, "")])
    return {
        **os.environ,
        VARIABLE: os.pathsep.join(folders),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OPENBLAS_NUM_THREADS": "1",
    }
