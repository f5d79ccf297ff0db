"""A separate process for filters that may abort on damaged bytes."""

from __future__ import annotations

import atexit
import importlib.util
import os
import select
import subprocess
import sys
import threading
from pathlib import Path

from tamis.errors import DataError, MissingFilterError, StreamError
from tamis.filters._plugin_worker import ANSWER, DECODE, ENCODE, READY, REQUEST, UNLOADABLE
from tamis.filters.base import Data

_SECONDS = 30.0  # timeout of a chunk, extended by one second for each _NBYTES_PER_SECOND
_TRIAL_SECONDS = 5.0  # the same for encoding: SZ3 takes 15 s for 30 kB with NaN
_NBYTES_PER_SECOND = 1 << 20


class _Worker:
    """The process; it starts on first use, again after it dies or we fork, and takes one chunk at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def filtered(self, flags: int, plugin: str, cd_values: tuple[int, ...], data: Data, nbytes: int) -> bytes | None:
        """Return what a filter makes of a chunk; None if the process ends over it, or takes too long."""
        if not (file := _plugins() / plugin).is_file():
            raise MissingFilterError(f"expected hdf5plugin to have {plugin}, found no {file}: install another version")
        with self._lock:
            process = self._running()
            try:
                answer = _exchange(process, flags, plugin, cd_values, data, nbytes)
            except BaseException:  # an interrupt, for example, leaves half an answer in the pipe
                self.stop()
                raise
            if answer is None:
                self.stop()
        return answer

    def stop(self) -> None:
        """End the process, if it is ours."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        # After a fork the pipes would be shared with the parent: the child starts its own process.
        if self._process is None or self._owner != os.getpid():
            self._process = None
            script = Path(__file__).with_name("_plugin_worker.py")
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(script), str(_plugins())],
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
        if not _answers(process, _SECONDS) or process.stdout.read(len(READY)) != READY:
            process.kill()
            raise MissingFilterError(
                f"expected a process that decodes with hdf5plugin, but {sys.executable} did not start one (exit code"
                f" {process.wait()}): it may lack memory, see ulimit -v"
            )


def _exchange(
    process: subprocess.Popen[bytes], flags: int, plugin: str, cd_values: tuple[int, ...], data: Data, nbytes: int
) -> bytes | None:
    """Send a request and return the answer; None if the process ends or does not answer in time."""
    assert process.stdin is not None
    assert process.stdout is not None
    name = plugin.encode()
    header = REQUEST.pack(flags, len(cd_values), nbytes, len(data), len(name))
    try:
        for part in (header, name, b"".join(word.to_bytes(4, "little") for word in cd_values), data):
            process.stdin.write(part)
        process.stdin.flush()
    except BrokenPipeError:
        return None
    seconds = _TRIAL_SECONDS if flags == ENCODE else _SECONDS
    if not _answers(process, seconds + nbytes / _NBYTES_PER_SECOND):
        return None
    size = process.stdout.read(ANSWER.size)
    if len(size) < ANSWER.size:
        return None
    (length,) = ANSWER.unpack(size)
    if length == UNLOADABLE:
        raise MissingFilterError(f"{plugin} of hdf5plugin cannot be loaded here: it is built for other machines")
    answer = process.stdout.read(length)
    return answer if len(answer) == length else None


def _answers(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until the process writes or ends; return False after the timeout."""
    ready = select.poll()
    ready.register(process.stdout, select.POLLIN)  # type: ignore[arg-type]
    return bool(ready.poll(1000 * seconds))


def _plugins() -> Path:
    """Return the folder of hdf5plugin's plugins, without importing it, which would change h5py's filters."""
    spec = importlib.util.find_spec("hdf5plugin")
    if spec is None or not spec.submodule_search_locations:
        raise MissingFilterError("hdf5plugin is not installed here: pip install 'tamis[hdf5plugin]'")
    return Path(spec.submodule_search_locations[0]) / "plugins"


_WORKER = _Worker()
atexit.register(_WORKER.stop)
os.register_at_fork(after_in_child=_WORKER.__init__)  # type: ignore[misc]  # a thread that is absent after the fork may hold the lock


def decode(plugin: str, cd_values: tuple[int, ...], data: Data, nbytes: int) -> bytes:
    """Decode a chunk by one of hdf5plugin's filters, in a separate process.

    Raises
    ------
    StreamError
        If the chunk cannot be decoded, or the process dies or takes too long.
    MissingFilterError
        If hdf5plugin is not installed.
    """
    answer = _WORKER.filtered(DECODE, plugin, cd_values, data, nbytes)
    if answer is None:
        raise StreamError(
            f"the process that decodes with {plugin} died, took too much memory or did not answer in time: the"
            " chunk or its parameters are damaged"
        )
    if len(answer) != nbytes:
        raise StreamError(f"{plugin} cannot decode the chunk: it or its parameters are damaged")
    return answer


def encode(plugin: str, cd_values: tuple[int, ...], data: Data, most: int) -> bytes:
    """Encode a chunk by one of hdf5plugin's filters, in a separate process.

    Raises
    ------
    DataError
        If the filter refuses the values, needs more than so many bytes, or the process dies or takes too long.
    MissingFilterError
        If hdf5plugin is not installed.
    """
    answer = _WORKER.filtered(ENCODE, plugin, cd_values, data, most)
    if not answer:
        how = "crashed over, or took too long for," if answer is None else "refused"
        raise DataError(f"{plugin} {how} the values of a chunk")
    return answer
