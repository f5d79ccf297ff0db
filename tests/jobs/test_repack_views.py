"""Virtual datasets that stay virtual, or whose values are stored, while a run changes the datasets that they show."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import tamis
from tamis import FileError, ParameterError
from tamis.formats import open_store

SHAPE = (20, 32, 32)
VALUES = (280 + np.random.default_rng(0).normal(0, 3, SHAPE)).astype("f4")
PACK = {"*": "pack(bound=0.1)|shuffle|deflate(4)"}
QUIET: dict[str, Any] = {"workers": 1, "threads": 1}


def part(path: Path, name: str = "T") -> None:
    """Make a file with values."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "a") as file:
        file.create_dataset(name, data=VALUES, chunks=(5, 32, 32))


def view(path: Path, source: str, inner: str = "T", name: str = "T", shape: Sequence[int] = SHAPE) -> None:
    """Make a virtual dataset that shows another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    layout = h5py.VirtualLayout(tuple(shape), "f4")
    layout[:] = h5py.VirtualSource(source, inner, tuple(shape))
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset(name, layout, fillvalue=-1)


def lose_a_value(path: Path) -> None:
    """Make one of the last values missing."""
    with h5py.File(path, "r+") as file:
        file["T"][-1, -1, -2] = np.nan


def values(path: Path, name: str = "T") -> Any:
    """Read by h5py alone."""
    with h5py.File(path) as file:
        return file[name][()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a part, a master of it, and a master of that one."""
    part(tmp_path / "in/part.h5")
    view(tmp_path / "in/master.h5", "part.h5")
    view(tmp_path / "in/other.h5", "master.h5")
    return tmp_path / "in"


def same(folder: Path, before: dict[str, bytes]) -> bool:
    """Return whether a folder has the files that it had."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


REFUSED = {
    "packed": (PACK, {}, "/T of {}/part.h5, which this run packs, so that it stores codes"),
    "masked": (
        {"*": "zfp(accuracy=0.1)"},
        {"missing": "mask"},
        "/T of {}/part.h5, whose missing values this run fills",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("in_place", [False, True])
def test_views_of_spoiled_sources_are_refused_before_anything_is_written(
    case: str, in_place: bool, folder: Path, tmp_path: Path
) -> None:
    recipe, options, text = REFUSED[case]
    lose_a_value(folder / "part.h5")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    out = None if in_place else tmp_path / "out"
    for run in (tamis.preview_repack_many, tamis.repack_many):
        with pytest.raises(ParameterError) as caught:
            run(folder, out, recipe, replace=in_place, **options)
        message = str(caught.value)
        assert f"{folder}/master.h5: /T: stays a virtual dataset" in message
        assert text.format(folder) in message
        assert "name it, give follow (--follow) or self_contained (--self-contained), or leave it out (drop)" in message
    assert same(folder, before)
    assert not (tmp_path / "out").exists()


def test_views_of_left_out_sources_are_refused(folder: Path, tmp_path: Path) -> None:
    part(folder / "more.h5", "raw/T")
    view(folder / "shows.h5", "more.h5", "raw/T", "V")
    recipe = tamis.Recipe({"*": "deflate(1)"}, drop=["raw/T"])
    with pytest.raises(
        ParameterError, match=r"shows\.h5: /V: .* shows /raw/T of .*more\.h5, which this run leaves out"
    ):
        tamis.repack_many(folder, tmp_path / "out", recipe, **QUIET)
    both = tamis.Recipe({"*": "deflate(1)"}, drop=["raw/T", "V"])
    assert tamis.repack_many(folder, tmp_path / "out", both, **QUIET).ok


@pytest.mark.parametrize("keywords", [{"follow": True}, {"self_contained": True}])
def test_views_of_packed_sources_are_stored_as_asked(folder: Path, tmp_path: Path, keywords: dict[str, Any]) -> None:
    assert tamis.repack_many(folder, tmp_path / "out", PACK, **keywords, **QUIET).ok
    for name in ("part.h5", "master.h5", "other.h5"):
        with h5py.File(tmp_path / "out" / name) as file:
            codes = file["T"]
            assert not codes.is_virtual
            unpacked = codes[()] * codes.attrs["scale_factor"] + codes.attrs["add_offset"]
            assert np.abs(unpacked - VALUES).max() <= 0.1


def test_views_are_kept_where_the_sources_keep_their_values(folder: Path, tmp_path: Path) -> None:
    part(folder / "part.h5", "packed")
    recipe = {"packed": PACK["*"], "*": "shuffle|deflate(1)"}
    assert tamis.repack_many(folder, tmp_path / "out", recipe, **QUIET).ok
    for name in ("master.h5", "other.h5"):
        with h5py.File(tmp_path / "out" / name) as file:
            assert file["T"].is_virtual
        assert (values(tmp_path / "out" / name) == VALUES).all()


def test_views_become_values_in_zarr(folder: Path, tmp_path: Path) -> None:
    assert tamis.repack_many(folder, tmp_path / "out", PACK, to="zarr", **QUIET).ok
    with tamis.open(tmp_path / "out/other.zarr") as store:
        assert (store["T"][...] == VALUES).all()


SAME_FILE = [
    ({"T": "pack(bound=0.1)|deflate(1)"}, {}),
    ({"T": "zfp(accuracy=0.1)"}, {"missing": "mask"}),
    ({}, {"drop": ["T"]}),
]


@pytest.mark.parametrize(("recipe", "options"), SAME_FILE)
def test_views_in_the_same_file(recipe: dict[str, str], options: dict[str, Any], tmp_path: Path) -> None:
    part(tmp_path / "a.h5")
    lose_a_value(tmp_path / "a.h5")
    view(tmp_path / "a.h5", ".", name="V")
    view(tmp_path / "a.h5", "a.h5", "V", name="W")
    expected = values(tmp_path / "a.h5")
    for run in (tamis.preview_repack, tamis.repack):
        with pytest.raises(ParameterError, match="/V: stays a virtual dataset, and shows /T, wh"):
            run(tmp_path / "a.h5", tmp_path / "b.h5", recipe, **options)
    without = {**options, "drop": [*options.get("drop", ()), "V"]}
    with pytest.raises(ParameterError, match=r"/W: stays a virtual dataset, and shows /V, which this run leaves out"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", recipe, **without)
    assert not (tmp_path / "b.h5").exists()
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {**recipe, "V": "deflate(1)"}, **options)
    assert np.array_equal(values(tmp_path / "b.h5", "V"), expected, equal_nan=True)
    assert np.array_equal(values(tmp_path / "b.h5", "W"), expected, equal_nan=True)


@pytest.mark.check
def test_views_of_sources_without_missing_values_stay_where_masks_are_asked_for(folder: Path, tmp_path: Path) -> None:
    recipe = {"*": "zfp(accuracy=0.1)"}
    assert tamis.repack_many(folder, tmp_path / "out", recipe, missing="mask", **QUIET).ok
    for name in ("part.h5", "master.h5", "other.h5"):
        assert np.abs(values(tmp_path / "out" / name) - VALUES).max() <= 0.1
        with h5py.File(tmp_path / "out" / name) as file:
            assert file["T"].is_virtual == (name != "part.h5")
            assert [*file] == ["T"]
    assert tamis.repack_many(folder, None, recipe, missing="mask", replace=True, **QUIET).ok
    assert np.abs(values(folder / "other.h5") - VALUES).max() <= 0.1


def test_fill_values_that_were_never_written_are_missing_values(folder: Path, tmp_path: Path) -> None:
    with h5py.File(folder / "part.h5", "w") as file:
        made = file.create_dataset("T", SHAPE, "f4", chunks=(5, 32, 32), fillvalue=np.nan)
        made[:5] = VALUES[:5]
    with pytest.raises(ParameterError, match="whose missing values this run fills"):
        tamis.repack_many(folder, tmp_path / "out", {"*": "zfp(accuracy=0.1)"}, missing="mask", **QUIET)


def test_damaged_sources_of_views_may_have_missing_values(folder: Path, tmp_path: Path) -> None:
    with h5py.File(folder / "part.h5", "r+") as file:
        del file["T"]
        damaged = file.create_dataset("T", data=VALUES, chunks=(5, 32, 32), compression="gzip")
        damaged.id.write_direct_chunk((15, 0, 0), b"no chunk of deflate")
    with pytest.raises(ParameterError, match="whose missing values this run fills"):
        tamis.repack_many(folder, tmp_path / "out", {"*": "zfp(accuracy=0.1)"}, missing="mask", **QUIET)


def test_views_through_links_and_numbers(tmp_path: Path) -> None:
    for name in ("x0", "x1"):
        part(tmp_path / "in/part.h5", name)
    with h5py.File(tmp_path / "in/part.h5", "a") as file:
        file["soft"] = h5py.SoftLink("/x1")
    with h5py.File(tmp_path / "in/links.h5", "w") as file:
        file["link"] = h5py.ExternalLink("part.h5", "/soft")
    view(tmp_path / "in/master.h5", "links.h5", "link", "V")
    space, plist = h5s.create_simple(SHAPE, (h5s.UNLIMITED, *SHAPE[1:])), h5p.create(h5p.DATASET_CREATE)
    space.select_hyperslab((0, 0, 0), (h5s.UNLIMITED, 1, 1), stride=SHAPE, block=SHAPE)
    plist.set_virtual(space, b"part.h5", b"x%b", h5s.create_simple(SHAPE))
    with h5py.File(tmp_path / "in/numbers.h5", "w", libver="v110") as file:
        whole = h5s.create_simple((40, *SHAPE[1:]), (h5s.UNLIMITED, *SHAPE[1:]))
        h5d.create(file.id, b"N", h5t.IEEE_F32LE, whole, plist)
    for name, found, shown in (("x1", "master.h5: /V", "soft"), ("x0", "numbers.h5: /N", "x0")):
        with pytest.raises(ParameterError, match=f"{found}: stays a virtual dataset, and shows /{shown} of"):
            tamis.repack_many(tmp_path / "in", tmp_path / "out", {name: PACK["*"]}, **QUIET)


def test_views_whose_values_cannot_be_read_do_not_stay_where_sources_are_masked(tmp_path: Path) -> None:
    part(tmp_path / "a.h5")
    lose_a_value(tmp_path / "a.h5")
    layout = h5py.VirtualLayout((40, 32, 32), "f4")
    layout[:20], layout[20:] = (h5py.VirtualSource(name, "T", SHAPE) for name in (".", "gone.h5"))
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file.create_virtual_dataset("V", layout, fillvalue=-1)
    with pytest.raises(FileError, match=r"gone\.h5"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(accuracy=0.1)"}, missing="mask", follow=True)
    assert not (tmp_path / "b.h5").exists()


def test_links_to_what_another_file_leaves_out_are_said(folder: Path, tmp_path: Path) -> None:
    part(folder / "more.h5", "raw/T")
    with h5py.File(folder / "links.h5", "w") as file:
        file["one"], file["two"] = h5py.ExternalLink("more.h5", "/raw/T"), h5py.ExternalLink("part.h5", "/T")
        file["x"] = VALUES
    recipe = tamis.Recipe({"x": "deflate(1)"}, drop=["raw/T"])
    expected = f"/one: this link leads to /raw/T of {folder}/more.h5, which this run leaves out (drop)"
    tamis.repack_many(folder, tmp_path / "out", recipe, **QUIET)
    notes = {file.path: file.notes for file in tamis.manifest(tmp_path / "out").files}
    assert [note for note in notes["links.h5"] if "this link" in note] == [expected]
    alone = tamis.repack(folder / "links.h5", tmp_path / "alone.h5", recipe.filters)
    assert not any("this link" in note for note in alone.notes)


def test_views_of_files_that_were_packed_in_place_before_stay(tmp_path: Path) -> None:
    part(tmp_path / "in/part.h5")
    assert tamis.repack_many(tmp_path / "in", None, PACK, replace=True, settle=0, **QUIET).ok
    with h5py.File(tmp_path / "in/part.h5") as file:
        dtype, attributes = file["T"].dtype, dict(file["T"].attrs)
    layout = h5py.VirtualLayout(SHAPE, dtype)
    layout[:] = h5py.VirtualSource("part.h5", "T", SHAPE)
    with h5py.File(tmp_path / "in/master.h5", "w") as file:
        file.create_virtual_dataset("T", layout).attrs.update(attributes)
    assert tamis.repack_many(tmp_path / "in", None, PACK, replace=True, settle=0, **QUIET).ok
    with tamis.open(tmp_path / "in/master.h5") as file:
        assert file["T"].shape == SHAPE


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Make views, each of the one before, without its first planes."""
    part(tmp_path / "in/a.h5")
    shape = SHAPE
    for before, name in ("ab", "bc", "cd"):
        inner = tuple(extent - 1 for extent in shape)
        layout = h5py.VirtualLayout(inner, "f4")
        layout[:] = h5py.VirtualSource(f"{before}.h5", "T", shape)[1:, 1:, 1:]
        with h5py.File(tmp_path / f"in/{name}.h5", "w") as file:
            file.create_virtual_dataset("T", layout)
        shape = inner
    return tmp_path / "in"


LOSSY = {"T": "zfp(bound=0.1)|deflate(1)"}


def test_views_in_place_take_in_no_values_after_they_changed(chain: Path) -> None:
    before = {path.name: path.read_bytes() for path in chain.iterdir()}
    for recipe in (LOSSY, {"T": "pack(bound=0.1)|deflate(1)"}):
        with pytest.raises(FileError, match=r"b\.h5: takes in values of /T of .*a\.h5, which this run replaces with"):
            tamis.repack_many(chain, None, recipe, replace=True, settle=0, **QUIET)
    assert same(chain, before)


def test_views_in_place_may_take_in_what_does_not_change(chain: Path) -> None:
    with h5py.File(chain / "a.h5", "a") as file:
        file.create_dataset("U", data=VALUES, chunks=(5, 32, 32))
    recipe = {"T": "shuffle|deflate(1)", "U": "zfp(bound=0.1)"}
    assert tamis.repack_many(chain, None, recipe, replace=True, settle=0, **QUIET).ok
    for number, name in enumerate("abcd"):
        with h5py.File(chain / f"{name}.h5") as file:
            assert not file["T"].is_virtual
            assert (file["T"][()] == VALUES[number:, number:, number:]).all()


@pytest.mark.check
def test_views_in_place_one_after_the_other(chain: Path) -> None:
    for name in "dcba":
        assert tamis.repack_many(chain / f"{name}.h5", None, LOSSY, replace=True, settle=0, **QUIET).ok
    for number, name in enumerate("abcd"):
        error = np.abs(values(chain / f"{name}.h5") - VALUES[number:, number:, number:]).max()
        assert 0 < error <= 0.1


TAKES_IN: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"T": "shuffle|deflate(4)"}, {}),
    ({"*": "shuffle|deflate(4)"}, {"follow": True}),
    ({"*": "shuffle|deflate(4)"}, {"self_contained": True}),
    ({"*": "shuffle|deflate(4)"}, {"to": "zarr"}),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("recipe", "options"), TAKES_IN)
def test_targets_with_values_of_a_file_that_changed_are_made_again(
    recipe: dict[str, str], options: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    def run() -> tamis.FolderStatus:
        return tamis.repack_many(folder, tmp_path / "out", recipe, **options, **QUIET)

    assert run().ok
    assert run().made == 0
    with h5py.File(folder / "part.h5", "a") as file:
        file["T"][0] = 1
    assert run().again == {"a file that the target has taken in was changed": 2, "the source was changed": 1}
    for name in ("part", "master", "other"):
        path = next((tmp_path / "out").glob(f"{name}.*"))
        with tamis.open(path) as file:
            assert (file["T"][0] == 1).all()


def test_taken_in_files_are_those_on_the_way_to_the_values(folder: Path, tmp_path: Path) -> None:
    view(folder / "circle.h5", "back.h5")
    view(folder / "back.h5", "circle.h5")
    with h5py.File(folder / "links.h5", "w") as file:
        file["link"] = h5py.ExternalLink("other.h5", "/T")
        file.create_dataset("raw", (50,), "f8", external=[(str(folder / "raw.bin"), 0, 400)])
    np.arange(50.0).tofile(folder / "raw.bin")
    view(folder / "far.h5", "links.h5", "link")
    view(folder / "far.h5", "links.h5", "raw", "R", (50,))

    def files(name: str, path: str) -> list[str]:
        with open_store(folder / name) as store:
            return [os.path.basename(file) for file in store.array(path).elsewhere.value_files]

    assert files("far.h5", "/T") == ["links.h5", "other.h5", "master.h5", "part.h5"]
    assert files("far.h5", "/R") == ["links.h5", "raw.bin"]
    assert files("circle.h5", "/T") == ["back.h5"]
    (folder / "part.h5").unlink()
    assert files("other.h5", "/T") == ["master.h5"]
    result = tamis.preview_repack(folder / "links.h5", tmp_path / "out.h5", {"raw": "deflate(1)"})
    assert [os.path.basename(item.file) for item in result.taken_in] == ["raw.bin"]
