"""Run commands in copies of a process that has imported all of tamis: they start at once, and end as processes do.

``python forked.py`` reads lines of JSON, each with the words of a command, its folder, and the file for its standard
error, and answers each with an exit code. ``python forked.py identifiers`` has each say which HDF5 identifiers it left.
Imports that a command lacks are hidden: it has to be tested by starts as well.
"""

from __future__ import annotations

import atexit
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import identifiers

import tamis.cli.commands
import tamis.formats.zarr
import tamis.jobs
from tamis_command import main

Run = Callable[[list[str], Path], tuple[int, str]]


@contextmanager
def server(python: tuple[str, ...], words: tuple[str, ...], env: dict[str, str], errors: Path) -> Iterator[Run]:
    """Start this module; yield a function that runs a command and returns its exit code and standard error."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*python, __file__, *words], stdin=pipe, stdout=pipe, text=True, env=env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, answers = process.stdin, process.stdout

        def run(words: list[str], folder: Path) -> tuple[int, str]:
            print(json.dumps([words, str(folder), str(errors)]), file=given, flush=True)
            return int(answers.readline()), errors.read_text(errors="replace")

        yield run
        given.close()


def _import_all() -> None:
    for package in (tamis.cli.commands, tamis.jobs, tamis.formats.zarr):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            with suppress(Exception):  # a warning that is an error here, or an extra that is absent
                import_module(module.name)
    with suppress(Exception):
        import_module("zarr")


def _serve(looks_for_identifiers: bool) -> None:
    _import_all()
    for line in iter(sys.stdin.readline, ""):
        words, folder, errors = json.loads(line)
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        os.chdir(folder)
        for path, flags, number in ((os.devnull, os.O_RDWR, 0), (os.devnull, os.O_RDWR, 1), (errors, os.O_RDWR, 2)):
            os.dup2(os.open(path, flags | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["tamis", *words]
        if looks_for_identifiers:
            atexit.register(identifiers.report, identifiers.identifiers())
        main()


if __name__ == "__main__":
    _serve(sys.argv[1:] == ["identifiers"])
