"""Filters on groups: that links really go through them, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis
from tamis import Deflate, FileError, MissingFilterError, ParameterError, Pipeline, UnknownFilter
from tamis.filters import Stage
from tamis.formats.hdf5.lib import calls
from tamis.hdf5 import create_group, group_filters, group_phase_change

Fill, Links, Storage = Callable[..., h5py.Group], Callable[[h5py.Group], dict[str, str]], Callable[[h5py.Group], int]
FILTERS = "deflate(9)|fletcher32"
# Of the ids that HDF5 leaves to tests: no plugin has it.
NOWHERE = 511
VERSIONS = [None, "earliest", "v108", "latest"]


def tool(*command: str | Path) -> str:
    needs.need(command[0])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("libver", VERSIONS)
@pytest.mark.parametrize(("max_compact", "min_dense"), [(8, 6), (0, 0), (3, 1), (65535, 0)])
@pytest.mark.parametrize("filters", ["none", FILTERS])
def test_create_group_dense_from_the_link_after_max_compact(
    tmp_path: Path,
    libver: str | None,
    max_compact: int,
    min_dense: int,
    filters: str,
    storage: Storage,
    names: list[str],
) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        group = create_group(file, "g", filters, max_compact=max_compact, min_dense=min_dense)
        assert group_phase_change(group) == (max_compact, min_dense)
        for i, name in enumerate(names[:20], start=1):
            group[name] = h5py.SoftLink("/somewhere")
            assert storage(group) == (calls.DENSE if i > max_compact else calls.COMPACT)
        for i, name in list(enumerate(names[:20]))[::-1]:
            del group[name]
            assert (storage(group) == calls.DENSE) == (max_compact < 20 and i >= max(min_dense, 1))


def test_create_group_format_of_later_groups_stays_that_of_the_file(tmp_path: Path, storage: Storage) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="earliest") as file:
        create_group(file, "new", max_compact=0)
        with pytest.raises(FileError):
            create_group(file, "new", max_compact=0)
        file.create_group("old")
        assert storage(file["old"]) == calls.SYMBOL_TABLE
        assert group_phase_change(file["old"]) is None
        assert file.id.get_create_plist().get_version()[0] == 0


@pytest.mark.parametrize("libver", VERSIONS)
def test_create_group_filtered_takes_less_than_half_the_space(
    tmp_path: Path, libver: str | None, fill: Fill, names: list[str]
) -> None:
    sizes = {}
    for filters in ("none", FILTERS):
        path = tmp_path / f"{filters[:4]}.h5"
        with h5py.File(path, "w", libver=libver) as file:
            fill(create_group(file, "g", filters, max_compact=0))
        sizes[filters] = path.stat().st_size
        assert (names[100].encode() in path.read_bytes()) == (filters == "none")
    assert sizes[FILTERS] < sizes["none"] / 2


@pytest.mark.peer
@pytest.mark.parametrize("libver", VERSIONS)
def test_create_group_filtered_read_by_older_hdf5(
    tmp_path: Path, libver: str | None, fill: Fill, names: list[str]
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        fill(create_group(file, "deep/er", FILTERS, max_compact=0))["data"] = np.arange(7)
    listed = tool("h5ls", path / "deep/er").replace("\\", "")
    assert len(listed.splitlines()) == 201
    assert all(name in listed for name in names)
    assert "0, 1, 2, 3, 4, 5, 6" in tool("h5dump", "-d", "/deep/er/data", path)
    assert tool("h5dump", "-H", path).count("SOFTLINK") == 200


def test_create_group_links_changed_and_reopened_read_right(
    tmp_path: Path, fill: Fill, links: Links, storage: Storage, names: list[str]
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        fill(create_group(file, "g", FILTERS, max_compact=4, min_dense=2))
    with h5py.File(path, "r+") as file:
        group = file["g"]
        for name in names[::2]:
            del group[name]
        group.move(names[1], "größe")
        for i in range(300):
            group[f"later {i:04d}"] = h5py.SoftLink("/up" + "/far" * (i % 40))
    expected = dict.fromkeys(["größe", *names[3::2]], "/somewhere")
    expected |= {f"later {i:04d}": "/up" + "/far" * (i % 40) for i in range(300)}
    with h5py.File(path) as file:
        assert links(file["g"]) == expected
        assert (storage(file["g"]), str(group_filters(file["g"]))) == (calls.DENSE, FILTERS)
    with h5py.File(path, "r+") as file:
        for name in list(file["g"])[1:]:
            del file["g"][name]
        assert storage(file["g"]) == calls.COMPACT


@pytest.mark.parametrize("track_order", [False, True])
def test_create_group_track_order_lists_in_order_of_creation(
    tmp_path: Path, track_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        asked = create_group(file, "g", FILTERS, max_compact=0, track_order=track_order)
        monkeypatch.setattr(h5py.get_config(), "track_order", track_order)
        for group in (asked, create_group(file, "h", FILTERS, max_compact=0)):
            for name in "zyx":
                group[name] = group.attrs[name] = 1
            assert list(group) == list(group.attrs) == list("zyx" if track_order else "xyz")


def test_create_group_on_the_way_are_made_without_filters(tmp_path: Path, names: list[str]) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        inner = create_group(create_group(file, "/a/b", FILTERS), "c/d", "deflate(1)")
        root = create_group(inner, "/top/", "fletcher32")
        names: list[str] = []
        file.visit(names.append)
        assert {name: str(group_filters(file[name])) for name in names} == {
            "a": "none",
            "a/b": FILTERS,
            "a/b/c": "none",
            "a/b/c/d": "deflate(1)",
            "top": "fletcher32",
        }
        assert root.name == "/top"


@pytest.mark.parametrize(
    "filters", [Pipeline.parse(FILTERS), Deflate(3), "deflate(9)?|fletcher32?", "deflate!", "none"]
)
def test_group_filters_gives_back_what_was_asked(tmp_path: Path, filters: object, fill: Fill) -> None:
    pipeline = filters if isinstance(filters, Pipeline) else tamis.pipeline.as_pipeline(filters)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill(create_group(file, "g", filters))
    with h5py.File(tmp_path / "a.h5") as file:
        found = group_filters(file["g"])
        assert str(found) == str(pipeline)
        assert [each.optional for each in found.stages] == [each.optional for each in pipeline.stages]
        assert len(group_filters(file).stages) == 0


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ("shuffle", "got shuffle: it needs a type and a chunk shape, and links have none"),
        ("shuffle|deflate(4)", "got shuffle: it needs a type and a chunk shape, and links have none"),
        ("zfp(reversible=true)", r"got zfp\(.*\): it needs the type of values, and links have none"),
        (UnknownFilter(4, (4, 8)), "does not work on links of groups: .*not a datatype"),
        (UnknownFilter(5), "does not work on links of groups: .*not a datatype"),
        (UnknownFilter(6, (2, 0)), "does not work on links of groups: .*not a datatype"),
        (UnknownFilter(32000), "does not work on links of groups: .*not a property list"),
        ("lz5", "lz5"),
        (7, "expected a pipeline, a filter or their text, got 7"),
    ],
    ids=str,
)
def test_create_group_unfit_filter_refused_and_nothing_made(tmp_path: Path, filters: object, reason: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ParameterError, match=reason):
            create_group(file, "a/b", filters)
        assert list(file) == []


def test_create_group_required_filter_missing_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        missing = Pipeline([Stage(UnknownFilter(NOWHERE), optional=False)])
        with pytest.raises(MissingFilterError, match=rf"HDF5 filter {NOWHERE}\): set HDF5_PLUGIN_PATH"):
            create_group(file, "g", missing)
        assert list(file) == []


def test_create_group_optional_filter_missing_warns_and_stores_raw(
    tmp_path: Path, fill: Fill, links: Links, names: list[str]
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        missing = Pipeline([Stage(UnknownFilter(NOWHERE, (1, 2)), optional=True)])
        with pytest.warns(UserWarning, match="stored without it, because it is optional") as caught:
            group = create_group(file, "g", missing)
        assert caught[0].filename == __file__
        fill(group)
    assert names[100].encode() in path.read_bytes()
    with h5py.File(path) as file:
        assert links(file["g"]) == dict.fromkeys(names, "/somewhere")
        assert [(each.filter, each.optional) for each in group_filters(file["g"]).stages] == [
            (UnknownFilter(NOWHERE, (1, 2)), True)
        ]


@pytest.mark.parametrize(
    ("numbers", "match"),
    [
        ({"max_compact": -1}, "expected max_compact of 0 to 65535, got max_compact=-1"),
        ({"max_compact": 65536}, "expected max_compact of 0 to 65535, got max_compact=65536"),
        ({"max_compact": 2.5}, r"expected max_compact of 0 to 65535, got max_compact=2\.5"),
        ({"min_dense": 9}, "expected min_dense of 0 to 8, got min_dense=9"),
        ({"max_compact": 0, "min_dense": 1}, "expected min_dense of 0 to 0, got min_dense=1"),
        ({"min_dense": -1}, "expected min_dense of 0 to 8, got min_dense=-1"),
    ],
    ids=str,
)
def test_create_group_numbers_out_of_range_refused(tmp_path: Path, numbers: dict[str, int], match: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ParameterError, match=match):
            create_group(file, "g", FILTERS, **numbers)
        assert list(file) == []


@pytest.mark.parametrize("name", ["taken", "data/x"])
def test_create_group_bad_name_refused(tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data"] = file["taken"] = 1
        with pytest.raises(FileError, match=f"a.h5: cannot create group {name!r}: "):
            create_group(file, name, FILTERS)


def test_create_group_in_file_open_for_reading_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("g")
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(FileError, match="cannot create group 'new': "):
        create_group(file["g"], "new", FILTERS)


def test_create_group_without_the_librarys_calls_refuses_only_what_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: Fill
) -> None:
    monkeypatch.setattr(calls, "_function", lambda name: None)
    monkeypatch.setattr(calls, "has", lambda name: False)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill(create_group(file, "g", FILTERS))
        with pytest.raises(FileError, match="the libhdf5 that h5py uses has no H5Pset_link_phase_change"):
            create_group(file, "h", FILTERS, max_compact=0)
        assert list(file) == ["g"]


@pytest.mark.parametrize("name", ["", "/", "a\0b", None, 5])
def test_create_group_without_a_name_refused(name: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        before = file.id.get_filesize()
        with pytest.raises(ParameterError, match="expected the name of a group, got"):
            create_group(file, name)
        assert (list(file), file.id.get_filesize()) == ([], before)


def test_age_of_a_group_is_not_read_from_freed_memory(tmp_path: Path) -> None:
    """h5py's header of an object points into the facts of the object, and does not keep them."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("g").attrs["a"] = 1
        file.create_group("new", track_order=True)
    ask = (
        "import sys, h5py; from tamis.formats.hdf5.tree.create import is_old_group; file = h5py.File(sys.argv[1]);"
        "print(is_old_group(file['g'].id), is_old_group(file['new'].id))"
    )
    environment = {**os.environ, "PYTHONMALLOC": "debug"}  # which overwrites what is freed
    line = [sys.executable, "-c", ask, str(tmp_path / "a.h5")]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["True", "False"]
