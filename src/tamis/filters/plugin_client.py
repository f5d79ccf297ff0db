"""Separate processes for filters of other packages, which may abort on damaged bytes."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import DataError, MissingFilterError, StreamError
from tamis.filters._plugin_worker import ANSWER, CALL, DECODE, ENCODE, FIND, READY, REQUEST, TOO_MUCH_MEMORY, UNLOADABLE
from tamis.filters.plugin_folders import hdf5plugin_folder
from tamis.forks import begin_in_each_process
from tamis.library_lock import unless_held
from tamis.system.libraries import plugin_in
from tamis.system.processes import answers
from tamis.system.processors import processor_count
from tamis.system.signals import how_it_ended

if TYPE_CHECKING:
    from tamis.filters.base import Data


_START_SECONDS = 30.0  # timeout of the start of the process, and of a search for a plugin
_SECONDS = 30.0  # timeout of a chunk, extended by one second for each _NBYTES_PER_SECOND
_FOREIGN_SECONDS = 300.0  # timeout of an unknown filter
_NBYTES_PER_SECOND = 1 << 20
_MOST_NBYTES = (1 << 32) - 1  # HDF5's limit of a chunk
_ENDING_SECONDS = 5.0  # until a process that closed its pipe has ended


class _EndedError(Exception):
    """The process ended during a request; the text says how."""


class _Request(NamedTuple):
    """A request of `tamis.filters._plugin_worker`, and how long it may take."""

    task: int
    plugin: str
    cd_values: tuple[int, ...]
    data: Data
    most: int
    seconds: float


class _Workers:
    """A process for each thread that asks at the same time, but as a rule no more than there are processors."""

    def __init__(self) -> None:
        begin_in_each_process(self._begin)

    def _begin(self) -> None:
        self._idle: list[_Worker] = []
        self._room = threading.BoundedSemaphore(processor_count())

    def answer(self, request: _Request) -> bytes:
        """Return the result; raises _EndedError if the process ends or takes too long."""
        with unless_held(self._room):
            try:
                worker = self._idle.pop()  # the one that was used last
            except IndexError:
                worker = _Worker()
            try:
                return worker.answer(request)
            finally:
                self._idle.append(worker)

    def stop(self) -> None:
        """End the processes."""
        while self._idle:
            self._idle.pop().stop()


class _Worker:
    """A process; it starts on first use, and again after it dies or we fork, and takes one request at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def answer(self, request: _Request) -> bytes:
        """See `_Workers.answer`."""
        process = self._running()
        try:
            answer = _exchange(process, request)
            if answer is None:
                raise _EndedError(_ending(process, request.seconds))
        except BaseException:  # an interrupt, for example, leaves half an answer in the pipe
            self.stop()
            raise
        return answer

    def stop(self) -> None:
        """End the process, if it is ours."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        # After a fork the pipes would be shared with the parent: the child starts its own process.
        # An idle process that was ended, for example because memory was short, must not cost a chunk.
        ended = self._process is not None and self._owner == os.getpid() and self._process.poll() is not None
        if self._process is None or self._owner != os.getpid() or ended:
            self._process = None
            script = Path(__file__).with_name("_plugin_worker.py")
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._process, self._owner = process, os.getpid()
            try:
                self._await_start(process)
            except BaseException:
                self.stop()
                raise
        return self._process

    @staticmethod
    def _await_start(process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        if not answers(process.stdout, _START_SECONDS) or process.stdout.read(len(READY)) != READY:
            process.kill()
            raise MissingFilterError(
                f"{sys.executable} could not start the process that runs plugins (exit code {process.wait()}): "
                "it may lack memory, see ulimit -v"
            )


def _exchange(process: subprocess.Popen[bytes], request: _Request) -> bytes | None:
    """Send a request and return the answer; None if the process ends or does not answer in time."""
    assert process.stdin is not None
    assert process.stdout is not None
    path, cd_values, data = os.fsencode(request.plugin), request.cd_values, request.data
    header = REQUEST.pack(request.task, len(cd_values), request.most, len(data), len(path))
    try:
        for part in (header, path, b"".join(word.to_bytes(4, "little") for word in cd_values), data):
            process.stdin.write(part)
        process.stdin.flush()
    except BrokenPipeError:
        return None
    if not answers(process.stdout, request.seconds):
        return None
    size = process.stdout.read(ANSWER.size)
    if len(size) < ANSWER.size:
        return None
    (length,) = ANSWER.unpack(size)
    if length == UNLOADABLE:
        raise MissingFilterError(f"{request.plugin} cannot be loaded here: it is built for other machines")
    answer = process.stdout.read(length)
    return answer if len(answer) == length else None


def _ending(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Return how a process ended, or why it must be ended."""
    assert process.stdout is not None
    if not answers(process.stdout, 0):
        return f"did not answer within {seconds:.0f} s"
    try:
        code = process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return "did not answer"
    return "took too much memory" if code == TOO_MUCH_MEMORY else how_it_ended(code)


def _hdf5plugin_file(plugin: str) -> str:
    """Return the path of one of hdf5plugin's plugins, without importing it, which would change h5py's filters."""
    file = plugin_in(hdf5plugin_folder(), plugin)
    if not file.is_file():
        raise MissingFilterError(f"this hdf5plugin does not have {file.name} (no {file}): install another version")
    return str(file)


def hdf5plugin_version() -> str:
    """Return the version of hdf5plugin, which must be installed."""
    from importlib import metadata  # late: it takes as long as all of h5py

    return metadata.version("hdf5plugin")


_WORKERS = _Workers()
atexit.register(_WORKERS.stop)


def decode(plugin: str, cd_values: tuple[int, ...], data: Data, nbytes: int) -> bytes:
    """Decode a chunk with one of hdf5plugin's filters, in a separate process."""
    file = _hdf5plugin_file(plugin)
    request = _Request(DECODE, file, cd_values, data, nbytes, _seconds(_SECONDS, nbytes))
    try:
        answer = _WORKERS.answer(request)
    except _EndedError as error:
        raise StreamError(
            f"the process that decodes with {os.path.basename(file)} {error}: the chunk or its parameters are damaged"
        ) from None
    if len(answer) != nbytes:
        raise StreamError(f"{os.path.basename(file)} cannot decode the chunk: it or its parameters are damaged")
    return answer


def encode(plugin: str, cd_values: tuple[int, ...], data: Data, most: int) -> bytes:
    """Encode a chunk with one of hdf5plugin's filters, in a separate process."""
    file = _hdf5plugin_file(plugin)
    request = _Request(ENCODE, file, cd_values, data, most, _seconds(_SECONDS, most))
    try:
        answer = _WORKERS.answer(request)
    except _EndedError:
        raise DataError(f"{os.path.basename(file)} crashed on, or took too long for, the values of a chunk") from None
    if not answer:
        raise DataError(f"{os.path.basename(file)} refused the values of a chunk")
    return answer


class Plugin(NamedTuple):
    """A plugin of HDF5 for a filter, which only the separate process loads."""

    id: int  # Number of the filter
    path: str  # Path of the plugin
    label: str  # Name of the filter
    encodes: bool
    decodes: bool
    sees_datasets: bool  # Whether it may refuse a dataset that is created, or change its own parameters then

    @classmethod
    def find(cls, code: int, folders: tuple[str, ...]) -> Plugin | None:
        """Return the first plugin for a filter in folders; None if there is none."""
        question = json.dumps([code, folders]).encode()
        try:
            answer = _WORKERS.answer(_Request(FIND, "", (), question, 0, _START_SECONDS))
        except _EndedError as error:
            raise MissingFilterError(
                f"filter {code}: the process that loads the plugins in {', '.join(folders)} {error}: remove the plugin"
                " that does this from HDF5_PLUGIN_PATH"
            ) from None
        return cls(code, *json.loads(answer)) if answer else None

    @property
    def is_of_hdf5plugin(self) -> bool:
        """Whether it is one of hdf5plugin's, which find HDF5 only if hdf5plugin is imported."""
        with suppress(MissingFilterError, OSError):
            return Path(self.path).parent.samefile(hdf5plugin_folder())
        return False

    def filtered(self, data: Data, cd_values: tuple[int, ...], *, encodes: bool) -> bytes:
        """Return the output of the filter for a chunk."""
        task, verb = (ENCODE, "encode") if encodes else (DECODE, "decode")
        answer = self._answer(_Request(task, self.path, cd_values, data, _MOST_NBYTES, _FOREIGN_SECONDS), f"{verb}s")
        if not answer:
            raise StreamError(f"{self} cannot {verb} the chunk")
        return answer

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function of a module, with JSON arguments, where it may load the plugin to create a dataset."""
        data = json.dumps([sys.path, function.__module__, function.__name__, arguments]).encode()
        return json.loads(self._answer(_Request(CALL, self.path, (), data, 0, _FOREIGN_SECONDS), "creates a dataset"))

    def _answer(self, request: _Request, verb: str) -> bytes:
        try:
            return _WORKERS.answer(request)
        except _EndedError as error:
            raise StreamError(
                f"{self}: the process that {verb} with it {error}: copy the file again, or install another"
                " version of the plugin"
            ) from None

    def __str__(self) -> str:
        return f"filter {self.id} ({self.label.partition(';')[0]}) of {self.path}"


def _seconds(least: float, nbytes: int) -> float:
    return least + nbytes / _NBYTES_PER_SECOND
