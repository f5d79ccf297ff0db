"""What the command line imports, which is most of the time of a command on a small file."""

from __future__ import annotations

import os
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.cli import many
from tamis.cli.commands import export, inspect, spec
from tamis.jobs import copy_table
from tamis.jobs import export as export_job
from tamis.jobs.copy import CopyKeywords
from tamis.jobs.inspect import arguments
from tamis.jobs.many import listing
from tamis.jobs.repack import Option, RepackKeywords, option_table
from tamis.notation import detect

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
RECIPE = ("-f", "TS:zfp(accuracy=0.1)")


def test_choices_of_the_command_line_are_all_that_there_are() -> None:
    """They are written out, so that what defines them need not be imported."""
    assert inspect.TARGETS == arguments.TARGETS
    assert spec.NOTATIONS == detect.NOTATIONS
    assert export.KINDS == export_job.KINDS
    assert many.OTHERS == listing.OTHERS


@pytest.mark.parametrize(
    ("table", "keywords"), [(option_table.TABLE, RepackKeywords), (copy_table.TABLE, CopyKeywords)]
)
def test_choices_of_an_option_are_those_of_its_type(table: tuple[Option, ...], keywords: type) -> None:
    hints = typing.get_type_hints(keywords)
    for option in table:
        assert {*option.choices} == {*_texts(hints[option.name])}, option.name


def _texts(hint: Any) -> Iterator[str]:
    """Yield the texts of a hint such as ``Literal["a", "b"] | None``."""
    for item in typing.get_args(hint):
        if isinstance(item, str):
            yield item
        else:
            yield from _texts(item)


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (("--version",), {"h5py", "deflate", "rich"}),
        (("--help",), {"h5py", "numpy", "deflate", "rich"}),
        (("repack", "--help"), {"h5py", "numpy", "deflate", "rich"}),
        (("spec", "zfp(rate=8)|deflate"), {"h5py"}),
        (("filters", "zfp"), {"h5py"}),
    ],
    ids=["version", "help", "repack help", "spec", "filters"],
)
def test_command_that_opens_no_file_does_not_import_h5py(arguments: tuple[str, ...], unneeded: set[str]) -> None:
    code = """
import sys, tamis_command
try:
    tamis_command.main()
finally:
    print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    loaded = {*done.stdout.splitlines()[-1].split()}
    assert "tamis.cli.main" in loaded
    assert not unneeded & loaded


def test_importing_tamis_registers_the_filter() -> None:
    code = "import tamis, h5py; print(h5py.h5z.filter_avail(32013))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_repack_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    code = "import sys; from tamis.cli import main; main(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    command = [sys.executable, "-c", code, "repack", SAMPLE, tmp_path / "a.nc", *RECIPE]
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=True)
    loaded = {*done.stdout.splitlines()[-1].split()}
    assert "tamis.jobs.repack.job" in loaded
    slow = {
        "importlib.metadata",
        "numpy.ma",
        "rich.console",
        "tamis.jobs.verify.job",
        "tamis.jobs.inspect.job",
        "email",
    }
    assert not slow & loaded


def test_command_starts_no_threads_for_algebra() -> None:
    code = """
import os, sys, tamis_command
sys.argv = ["tamis", "--version"]
try:
    tamis_command.main()
finally:
    print(len(os.listdir("/proc/self/task")), "numpy" in sys.modules)
"""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1 True"


USED = """
import sys
sys.modules["zfpy"] = sys.modules["numcodecs"] = None  # importing either raises
import numpy, tamis
values = numpy.arange(64.0).reshape(4, 4, 4)
mode = tamis.zfp.Reversible()
assert (tamis.zfp.decode(tamis.zfp.encode(values, mode), values.shape, values.dtype, mode) == values).all()
assert "32013" in str(tamis.spec("zfp(accuracy=0.1)"))
print("done")
"""


def test_d28_neither_zfpy_nor_numcodecs_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", USED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")
