"""Which recipe and chunk shape a dataset gets, what stands in the target's place, and what the result advises."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import FileError, MissingFilterError, ParameterError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name in ("TS", "T2", "lat"):
            file[name] = np.sin(np.arange(1024.0) / 30).reshape(32, 32)
    return path


@pytest.mark.parametrize("first", ["*", "TS"])
def test_repack_name_holds_over_pattern_in_any_order(first: str, source: Path, tmp_path: Path) -> None:
    recipes = {"*": "shuffle|deflate(1)", "TS": "zfp(accuracy=0.1)"}
    ordered = {name: recipes[name] for name in sorted(recipes, key=lambda name: name != first)}
    result = tamis.repack(source, tmp_path / "b.h5", ordered, checksum=False, larger=True)
    assert {each.path: each.pipeline for each in result.datasets} == {
        "/TS": "zfp(accuracy=0.1)",
        "/T2": "shuffle|deflate(1)",
        "/lat": "shuffle|deflate(1)",
    }


def test_repack_chunk_pattern_takes_only_what_gets_filters(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.h5", {"TS": "deflate"}, chunks={"*": (4, 8), "TS": (8, 8)})
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["TS"].chunks, file["T2"].chunks) == ((8, 8), None)


def test_repack_onto_a_link_replaces_the_file_behind_it(source: Path, tmp_path: Path) -> None:
    (tmp_path / "behind").mkdir()
    (tmp_path / "behind" / "old.h5").write_bytes(b"old")
    link = tmp_path / "link.h5"
    link.symlink_to(tmp_path / "behind" / "old.h5")
    tamis.repack(source, link, {"TS": "deflate"}, overwrite=True)
    assert link.is_symlink()
    assert os.listdir(tmp_path / "behind") == ["old.h5"]
    with h5py.File(tmp_path / "behind" / "old.h5") as file:
        assert "TS" in file


def test_repack_mostly_lossless_advises_smaller_chunks(tmp_path: Path) -> None:
    data = np.sin(np.arange(64 * 64) / 99).reshape(64, 64)
    data[::8, ::8] = 9.97e36
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=data, chunks=(16, 16))
    (found,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}).datasets
    assert found.lossless_chunks == found.chunks == 16
    assert any("chunks smaller than 16x16" in note for note in found.notes)
    data[:] = np.nan_to_num(0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=data, chunks=(16, 16))
    (found,) = tamis.repack(tmp_path / "a.h5", tmp_path / "c.h5", {"v": "zfp(accuracy=0.1)"}).datasets
    assert (found.lossless_chunks, found.notes) == (0, ())


def test_repack_sparse_dataset_of_many_chunks_writes_only_what_is_there(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (10**5, 10**5), "f4", chunks=(10, 10), fillvalue=-1)
        made[50_000:50_010, 70_000:70_010] = 3
    (found,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}).datasets
    assert (found.chunks, found.largest_error) == (1, 0)
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].id.get_num_chunks() == 1
        assert file["v"][49_999:50_001, 70_000].tolist() == [-1, 3]


def test_repack_chunk_outside_of_the_array_is_a_file_error(tmp_path: Path) -> None:
    # HDF5 keeps a chunk that a smaller shape has left outside only if the shape in the file is damaged.
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        made = file.create_dataset("v", (40,), "f4", chunks=(10,), maxshape=(40,))
        made[...] = 1
    data = (tmp_path / "a.h5").read_bytes()
    extent = (40).to_bytes(8, "little")
    at = data.index(extent + extent)  # the shape, before the largest shape
    (tmp_path / "a.h5").write_bytes(data[:at] + (20).to_bytes(8, "little") + data[at + 8 :])
    with pytest.raises(FileError, match=r"a\.h5"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "deflate"})
    assert os.listdir(tmp_path) == ["a.h5"]


def test_repack_target_made_by_somebody_in_the_meantime_kept(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"

    def progress(what: str, done: int, total: int) -> None:
        target.write_bytes(b"somebody's")

    with pytest.raises(FileError, match=r"b\.h5: File exists: another process"):
        tamis.repack(source, target, {"TS": "deflate"}, progress=progress)
    assert target.read_bytes() == b"somebody's"
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "b.h5"]


def test_repack_overwrite_keeps_the_permissions_of_the_target(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    target.write_bytes(b"old")
    target.chmod(0o600)
    tamis.repack(source, target, {"TS": "deflate"}, overwrite=True)
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("link", ["hard", "soft", "/soft"])
def test_repack_dataset_named_by_another_link_is_found(link: str, source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "a") as file:
        file["hard"], file["soft"] = file["TS"], h5py.SoftLink("/TS")
    (found,) = tamis.repack(source, tmp_path / "b.h5", {link: "deflate"}).datasets
    assert found.nbytes == 8192
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["hard"] == file["TS"] == file["soft"]
        assert file["TS"].compression == "gzip"


def test_repack_virtual_dataset_without_its_source_refused(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((8, 8), "f4")
    layout[...] = h5py.VirtualSource(str(tmp_path / "gone.h5"), "x", (8, 8))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    with pytest.raises(FileError, match=r"a\.h5: /v: No such file or directory: .*gone\.h5, a source"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "deflate"})
    assert os.listdir(tmp_path) == ["a.h5"]


def test_repack_and_inspect_parameters_of_smaller_chunks_found_out(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=np.sin(np.arange(4096.0)), chunks=(4096,), **tamis.Zfp(accuracy=1e-3))
    mode = tamis.zfp.Accuracy(1e-3)
    whole, part = (tamis.zfp.Header(np.dtype("f8"), (n,), mode).pack() for n in (4096, 64))
    data = path.read_bytes()
    assert data.count(whole) == 1
    path.write_bytes(data.replace(whole, part))
    assert "describe chunks of 512 bytes, but its chunks have 32768" in tamis.inspect(path).datasets[0].problem
    with pytest.raises(FileError, match=r"/v: damaged: its ZFP parameters describe chunks of 512 bytes"):
        tamis.repack(path, tmp_path / "b.h5", {"v": "deflate"})


def test_repack_two_recipes_for_one_dataset_refused_unless_alike(source: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"/TS: 'TS' and '.*' name the same dataset, with zfp\(rate=8\) and deflate"
    ):
        tamis.repack(source, tmp_path / "b.h5", {"TS": "zfp(rate=8)", "/TS": "deflate(4)"})
    with h5py.File(source, "a") as file:
        file["alias"] = file["TS"]
    with pytest.raises(ParameterError, match=r"/TS: 'TS' and '/alias' name the same dataset, with 8x8 and 4x4"):
        tamis.repack(source, tmp_path / "b.h5", {"TS": "deflate"}, chunks={"TS": (8, 8), "/alias": (4, 4)})
    assert not (tmp_path / "b.h5").exists()
    alike = {"TS": "deflate(4)", "/TS": "deflate(4)"}
    assert [each.path for each in tamis.repack(source, tmp_path / "b.h5", alike).datasets] == ["/TS"]


@pytest.fixture
def filtered(tmp_path: Path) -> Path:
    path = tmp_path / "filtered.h5"
    values = np.sin(np.arange(1024.0) / 30).reshape(32, 32)
    with h5py.File(path, "w") as file:
        file.create_dataset("zfp", data=values, chunks=(8, 8), **tamis.Zfp(accuracy=2**-6))
        file.create_dataset("gzip", data=values, chunks=(8, 8), compression=3, shuffle=True)
        file["plain"], file["text"] = values, ["a", "b"]
    return path


def test_repack_new_chunks_without_recipe_keep_the_filters(filtered: Path, tmp_path: Path) -> None:
    chunks = {"zfp": (16, 16), "gzip": (32, 4), "plain": (4, 32)}
    result = tamis.repack(filtered, tmp_path / "b.h5", {"text*": "deflate"}, chunks=chunks, checksum=False)
    assert {each.path: (each.pipeline, each.chunk_shape) for each in result.datasets} == {
        "/zfp": ("zfp(accuracy=0.015625)", (16, 16)),
        "/gzip": ("shuffle|deflate(3)", (32, 4)),
        "/plain": ("none", (4, 32)),
    }
    assert [path for path, _ in result.kept] == ["/text"]
    notes = {each.path: each.notes for each in result.datasets}
    note = "its values already went through zfp(accuracy=0.015625): the new error adds to the old one"
    assert f"{note}, and the file records the sum of both bounds" in notes["/zfp"]
    with h5py.File(filtered) as old, h5py.File(tmp_path / "b.h5") as new:
        assert {name: new[name].chunks for name in chunks} == chunks
        for name in ("gzip", "plain"):
            assert np.array_equal(old[name][...], new[name][...])


def test_repack_chunk_pattern_without_any_recipe_is_for_all_that_it_means(filtered: Path, tmp_path: Path) -> None:
    result = tamis.repack(filtered, tmp_path / "b.h5", {}, chunks={"*": (8, 8)})
    assert [(each.path, each.copied) for each in result.datasets] == [
        ("/gzip", True),
        ("/plain", False),
        ("/zfp", True),
    ]
    assert [path for path, _ in result.kept] == ["/text"]


def test_repack_names_the_file_and_the_dataset_of_what_cannot_be(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a\.h5: expected a dataset named 'XX'"):
        tamis.repack(source, tmp_path / "b.h5", {"XX": "deflate"})
    with pytest.raises(MissingFilterError, match=r"/TS: filter 1, "):
        tamis.repack(source, tmp_path / "b.h5", {"TS": "filter(399,1)"})


def test_repack_pattern_keeps_dimensions_that_have_no_variable(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time")
        file.createDimension("x", 4)
        file.createVariable("v", "f4", ("time", "x"))[:3] = 1
    result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"*": "shuffle|deflate(1)"}, larger=True)
    assert [each.path for each in result.datasets] == ["/v"]
    reason = "expected values, got a netCDF-4 dimension without a variable"
    assert dict(result.kept) == {"/time": reason, "/x": reason}
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert {name: (len(each), each.isunlimited()) for name, each in file.dimensions.items()} == {
            "time": (3, True),
            "x": (4, False),
        }
