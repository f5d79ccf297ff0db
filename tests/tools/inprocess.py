"""Commands of tamis in this process, for tests of what a command does to files: a start of one costs half a second.

How commands start and end as programs is shown by tests/cli, by the documents of tests/test_examples.py, by tests that
kill, limit or starve them, and by tests/known_defects/test_process_ends.py for every kind of file.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

from tamis.cli import main

_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def _print_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def run_tamis(*arguments: object, cwd: Path | str = ".") -> subprocess.CompletedProcess[str]:
    """Run `tamis` with such arguments; give its exit code and what it prints, warnings of Python as well."""
    words = [str(each) for each in arguments]
    with contextlib.chdir(cwd), mock.patch.object(sys, "argv", ["tamis", *words]), warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _HIDDEN:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = _print_warning
        done = CliRunner().invoke(main, words, prog_name="tamis")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(["tamis", *words], done.exit_code, done.stdout, done.stderr)
