"""Filters of plugins on groups, in interpreters of their own that have them or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def python(code: str, *arguments: str | Path, plugins: bool = True) -> str:
    """Run code in another interpreter, where h5py has the filters of hdf5plugin, or none of them."""
    if plugins:
        code = "import hdf5plugin\n" + code
    code = "import sys, h5py, tamis\nfrom tamis.hdf5 import *\n" + code
    env = os.environ | {"HDF5_PLUGIN_PATH": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_group_safe_of_every_filter_is_what_hdf5_says() -> None:
    code = """
from io import BytesIO
from tamis.filters import UnknownFilter
from tamis.filters.registry import by_id
for each in by_id().values():
    if h5py.h5z.filter_avail(each.id) and not each.decode_only:
        try:
            create_group(h5py.File(BytesIO(), "w"), "g", UnknownFilter(each.id))
        except tamis.ParameterError:
            print(each.name, each.group_safe, False)
        else:
            print(each.name, each.group_safe, True)
"""
    found = [line.split() for line in python(code).splitlines()]
    assert {"deflate", "shuffle", "fletcher32", "zfp"} <= {name for name, _, _ in found}
    assert [name for name, said, works in found if said != works] == []


WRITE_200 = """
from tamis.filters import UnknownFilter
with h5py.File(sys.argv[1], "w") as file:
    group = create_group(file, "g", UnknownFilter(int(sys.argv[2]), (9,) if sys.argv[2] == "307" else ()))
    for i in range(200):
        group[f"a long name for a link {i:05d}"] = h5py.SoftLink("/")
"""
READ = """
with h5py.File(sys.argv[1]) as file:
    print(len([*file["g"]]), group_filters(file["g"]).filters[0].id)
"""
COPY = """
from tamis.formats.hdf5.tree.copy import TreeCopier
from tamis.formats.hdf5.tree.create import create_target
with h5py.File(sys.argv[1]) as old, create_target(old, sys.argv[2]) as new:
    try:
        copier = TreeCopier(old, new)
        assert not [*copier.slots()]
        copier.finish()
    except tamis.FileError as error:
        print(error)
"""


@pytest.mark.check
@pytest.mark.parametrize("code", [307, 32004, 32015], ids=["bzip2", "lz4", "zstd"])
def test_create_group_filters_of_plugins_work_and_are_copied_where_they_are(tmp_path: Path, code: int) -> None:
    path, copy = tmp_path / "a.h5", tmp_path / "b.h5"
    python(WRITE_200, path, str(code))
    assert b"a long name for a link 00100" not in path.read_bytes()
    assert python(READ, path) == f"200 {code}\n"
    assert python(COPY, path, copy) == ""
    assert python(READ, copy) == f"200 {code}\n"
    copy.unlink()
    # The filter is optional, but these links went through it.
    said = python(COPY, path, copy, plugins=False)
    assert said.startswith(f"cannot copy /g: links of /g cannot be read without HDF5 filter {code} (")


@pytest.mark.check
def test_links_of_group_that_only_a_missing_filter_reads_are_said_and_not_repacked(
    tmp_path: Path,
) -> None:
    python(WRITE_200, tmp_path / "a.h5", "32015")
    code = """
(group,) = tamis.inspect(sys.argv[1]).groups
print(group.path, group.problem)
try:
    tamis.repack(sys.argv[1], sys.argv[1] + "2", {"*": "deflate"})
except tamis.FileError as error:
    print(error)
import shutil
shutil.copy(sys.argv[1], sys.argv[1] + "3")
print(*(problem.text for problem in tamis.verify(sys.argv[1], sys.argv[1] + "3").problems))
"""
    shown, refused, compared = python(code, tmp_path / "a.h5", plugins=False).splitlines()
    assert "links of /g cannot be read without HDF5 filter 32015 (" in compared
    assert shown.startswith("/g links of /g cannot be read without HDF5 filter 32015 (")
    assert "a.h5: links of /g cannot be read without HDF5 filter 32015 (" in refused
    assert "damaged" not in shown + refused
