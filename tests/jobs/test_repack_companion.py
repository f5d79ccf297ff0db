"""``--missing mask``: valid values within the bound, missing ones bit by bit, and files that others read."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import BoundError, FileError, ParameterError

Real = Callable[[str], Path]
Run = Callable[..., str]
Make = Callable[..., Any]

FILL = np.float32(9.96921e36)
RECIPE = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
CHUNKS = {"TS": (30, 32, 32)}


@pytest.fixture(scope="module")
def ocean(make_ocean: Make, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Path, Any]:
    """Source, its values, the target, and what repack said."""
    folder = tmp_path_factory.mktemp("ocean")
    values = make_ocean(folder / "a.nc")
    result = tamis.repack(folder / "a.nc", folder / "b.nc", RECIPE, chunks=CHUNKS, missing="mask")
    return folder / "a.nc", values, folder / "b.nc", result


def missing(values: Any) -> Any:
    return (values == FILL) | ~np.isfinite(values)


def same_bits(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one.view("u4"), other.view("u4")))


def restored(path: Path, name: str = "TS") -> Any:
    with tamis.open(path) as file:
        return file[name][()]


def attributes(path: Path, name: str) -> dict[str, Any]:
    with h5py.File(path) as file:
        return dict(file[name].attrs)


def test_companion_keeps_the_bound_and_every_missing_value(ocean: tuple[Path, Any, Path, Any]) -> None:
    _, values, target, result = ocean
    gaps, found = missing(values), restored(target)
    assert np.abs(found - values)[~gaps].max() <= 0.1
    assert same_bits(found[gaps], values[gaps])
    (said,) = result.datasets
    assert (said.missing_values, said.lossless_chunks) == (gaps.sum(), 0)
    assert said.largest_error == np.abs(found.astype("f8") - values)[~gaps].max()


def test_companion_result_counts_its_bytes(ocean: tuple[Path, Any, Path, Any], tmp_path: Path) -> None:
    source, values, target, result = ocean
    (said,) = result.datasets
    with h5py.File(target) as file:
        sizes = [file[name].id.get_storage_size() for name in ("TS", "TS_missing")]
    assert (said.missing_mask, [said.target_nbytes, said.missing_mask_nbytes]) == ("/TS_missing", sizes)
    assert said.ratio == values.nbytes / sum(sizes)
    assert json.loads(result.to_json())["datasets"][0]["missing_mask"] == "/TS_missing"
    assert any("kept in /TS_missing" in note for note in said.notes)
    exact = tamis.repack(source, tmp_path / "c.nc", RECIPE, chunks=CHUNKS).datasets[0]
    assert (exact.missing_mask, exact.missing_mask_nbytes) == ("", 0)
    assert said.ratio > 1.5 * exact.ratio


def test_companion_is_a_variable_of_the_same_axes(ocean: tuple[Path, Any, Path, Any], tool: Run) -> None:
    _, values, target, _ = ocean
    assert attributes(target, "TS")["ancillary_variables"] == b"TS_quality TS_missing"
    found = attributes(target, "TS_missing")
    words = found["flag_meanings"].decode().split()
    assert len(words) == len(found["flag_values"]) == len(found["flag_missing_values"]) + 2
    with h5py.File(target) as file:
        flags = file["TS_missing"][()]
        assert [each[0].name for each in file["TS_missing"].dims] == ["/time", "/lat", "/lon"]
        assert file["TS_missing"].maxshape == file["TS"].maxshape
    assert np.array_equal(flags != 0, missing(values))
    assert words[flags[3, 5, 6]] == "nan"
    said = tool("ncdump", "-h", target)
    assert "ubyte TS_missing(time, lat, lon) ;" in said
    assert 'TS:ancillary_variables = "TS_quality TS_missing" ;' in said


def test_companion_and_variable_read_by_h5py_ncdump_and_netcdf4(ocean: tuple[Path, Any, Path, Any], tool: Run) -> None:
    _, values, target, _ = ocean
    code = """
import sys, h5py, hdf5plugin, numpy
with h5py.File(sys.argv[1]) as file:
    assert file["TS"].shape == file["TS_missing"].shape
    numpy.save(sys.argv[2], numpy.stack([file["TS"][()], file["TS_missing"][()]]))
assert not [name for name in sys.modules if name.startswith("tamis")]
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    out = target.with_suffix(".npy")
    subprocess.run([sys.executable, "-c", code, str(target), str(out)], env=env, check=True)
    seen, flags = np.load(out)
    gaps = missing(values)
    assert np.array_equal(flags != 0, gaps)
    assert np.abs(seen - values)[~gaps].max() <= 0.1
    valid = values[~gaps]
    filled = seen[gaps][seen[gaps] != 0]  # which is what chunks without any valid value have
    assert valid.min() - 0.1 <= filled.min()
    assert filled.max() <= valid.max() + 0.1
    assert tool("ncdump", "-v", "TS_missing", target).count("1") >= np.count_nonzero(flags == 1)
    tool("ncdump", "-v", "TS", target)
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(target, engine="h5netcdf", decode_times=False) as data:
        assert data["TS_missing"].dims == data["TS"].dims
        assert data["TS_missing"].dtype == np.uint8
        kept = data["TS"].where(data["TS_missing"] == 0).values
    assert np.array_equal(np.isnan(kept), gaps)


def test_companion_same_bytes_for_any_number_of_threads(ocean: tuple[Path, Any, Path, Any], tmp_path: Path) -> None:
    source, _, target, _ = ocean
    made = set()
    for threads in (1, 2, 8):
        tamis.repack(source, tmp_path / f"{threads}.nc", RECIPE, chunks=CHUNKS, missing="mask", threads=threads)
        made.add(hashlib.sha256((tmp_path / f"{threads}.nc").read_bytes()).hexdigest())
    assert made == {hashlib.sha256(target.read_bytes()).hexdigest()}


def test_companion_nan_of_other_bits_stays_in_a_lossless_chunk(make_ocean: Make, tmp_path: Path) -> None:
    values = make_ocean(tmp_path / "a.nc", other_nan=True)
    (said,) = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", RECIPE, chunks=CHUNKS, missing="mask").datasets
    assert said.lossless_chunks == 1
    gaps = missing(values)
    found = restored(tmp_path / "b.nc")
    assert same_bits(found[gaps], values[gaps])
    with h5py.File(tmp_path / "b.nc") as file:
        words = file["TS_missing"].attrs["flag_meanings"].decode().split()
        assert words[file["TS_missing"][7, 40, 100]] == "other_nan"


def test_companion_lossless_chunks_do_not_advise_a_companion(tmp_path: Path) -> None:
    values = np.linspace(270, 290, 8 * 32 * 32, dtype="f4").reshape(8, 32, 32)
    values.view("u4")[::2, ::3, ::3] = 0x7FC12345  # NaN of bits that no flag stands for
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("TS", data=values, chunks=(8, 16, 16))
    with_one = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", RECIPE, missing="mask").datasets[0]
    without = tamis.repack(tmp_path / "a.h5", tmp_path / "c.h5", RECIPE).datasets[0]
    assert with_one.lossless_chunks == without.lossless_chunks == 4
    assert "--missing mask" in without.notes[-1]
    assert "chunks smaller than 8x16x16" in with_one.notes[-1]
    assert "--missing mask" not in with_one.notes[-1]


def test_companion_only_where_values_are_missing(sample: Path, tmp_path: Path) -> None:
    (said,) = tamis.repack(sample, tmp_path / "b.nc", RECIPE, missing="mask").datasets
    assert (said.missing_mask, said.missing_values) == ("", 0)
    tamis.repack(sample, tmp_path / "c.nc", RECIPE)
    assert (tmp_path / "b.nc").read_bytes() == (tmp_path / "c.nc").read_bytes()


def test_companion_not_for_lossless_filters(ocean: tuple[Path, Any, Path, Any], tmp_path: Path) -> None:
    tamis.repack(ocean[0], tmp_path / "b.nc", {"TS": "shuffle|deflate"}, missing="mask")
    with h5py.File(tmp_path / "b.nc") as file:
        assert "TS_missing" not in file


def test_companion_takes_a_free_name(make_ocean: Make, tmp_path: Path) -> None:
    make_ocean(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc", "r+") as file:
        file["TS_missing"] = [1, 2]
        file["TS_missing2"] = h5py.SoftLink("/nowhere")
    (said,) = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", RECIPE, missing="mask").datasets
    assert said.missing_mask == "/TS_missing3"
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc", bounds={"TS": 0.1}).ok


def test_companion_of_chunks_that_are_not_stored(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (64, 64), "f4", chunks=(16, 16), fillvalue=-99, maxshape=(None, 64))
        made[:16, :40] = np.arange(640).reshape(16, 40)
        made[5, 5] = -99
    (said,) = tamis.repack(
        tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.5)|deflate"}, missing="mask"
    ).datasets
    assert (said.chunks, said.missing_mask) == (3, "/v_missing")
    with h5py.File(tmp_path / "b.h5") as file:
        flags = file["v_missing"][()]
        assert len([file["v_missing"].id.get_chunk_info(i) for i in range(file["v_missing"].id.get_num_chunks())]) == 3
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(flags == 1, file["v"][()] == -99)
        assert np.abs(restored(tmp_path / "b.h5", "v") - file["v"][()]).max() <= 0.5


@pytest.mark.parametrize(
    ("shape", "chunks", "dtype", "fill"),
    [
        ((70,), (16,), "f8", 1e30),
        ((9, 1, 20), (4, 1, 8), "f4", -1),
        ((5, 6, 7, 8), (4, 4, 4, 4), "f4", np.nan),
        ((40, 40), (16, 16), "i4", -9),
    ],
)
def test_companion_of_any_shape_and_type(
    shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str, fill: float, tmp_path: Path
) -> None:
    values = (100 * np.sin(np.arange(np.prod(shape)) / 5)).astype(dtype).reshape(shape)
    gaps = np.random.default_rng(0).random(shape) < 0.3
    values[gaps] = fill
    gaps |= values == fill
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values).attrs["missing_value"] = np.array(fill, dtype)
    recipes, bound = {"v": "zfp(accuracy=2)|shuffle|deflate"}, 2
    (said,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", recipes, chunks={"v": chunks}, missing="mask").datasets
    assert said.missing_values == gaps.sum()
    assert dtype == "i4" or said.lossless_chunks == 0  # zfp has no bound for integers: some break it
    found = restored(tmp_path / "b.h5", "v")
    assert found[gaps].tobytes() == values[gaps].tobytes()
    assert np.abs(found - values)[~gaps].max() <= bound


def test_companion_planned_says_so(ocean: tuple[Path, Any, Path, Any], tmp_path: Path) -> None:
    preview = tamis.preview_repack(ocean[0], tmp_path / "b.nc", RECIPE, missing="mask")
    (said,) = [each for each in preview.datasets if each.path == "/TS"]
    assert any("go to a missing-value mask" in note for note in said.notes)
    preview = tamis.preview_repack(ocean[2], tmp_path / "b.nc", {"TS": "zfp(accuracy=1)"}, missing="mask")
    (said,) = [each for each in preview.datasets if each.path == "/TS_missing"]
    assert (said.action, said.reason) == ("drop", "it is the missing-value mask of /TS, which is rewritten")


def test_companion_of_a_coordinate_and_of_a_second_link(sample: Path, tool: Run, tmp_path: Path) -> None:
    """A coordinate is its own axis; a dataset in a group may have another path, too."""
    source, target = tmp_path / "a.nc", tmp_path / "b.nc"
    shutil.copy(sample, source)
    with h5py.File(source, "r+") as file:
        file["lat"][7] = np.nan
        file["group/v"] = np.where(np.arange(400) % 7, np.arange(400.0), np.nan)
        file["alias"] = file["group/v"]
    recipes = {"lat": "zfp(accuracy=0.1)|deflate", "group/v": "zfp(accuracy=0.1)|deflate"}
    result = tamis.repack(source, target, recipes, missing="mask", chunks={"*": (64,)})
    assert [each.missing_mask for each in result.datasets] == ["/lat_missing", "/group/v_missing"]
    assert "ubyte lat_missing(lat) ;" in tool("ncdump", "-h", target)
    for name in ("lat", "group/v", "alias"):
        with h5py.File(source) as file:
            values = file[name][()]
        assert np.array_equal(np.isnan(restored(target, name)), np.isnan(values))
    assert tamis.verify(source, target, bounds={"*": 0.1}).ok
    tamis.repack(target, tmp_path / "c.nc", recipes)
    assert tamis.verify(target, tmp_path / "c.nc", bounds={"*": 0.1}).ok
    assert tamis.verify(source, tmp_path / "c.nc", bounds={"*": 0.2}).ok
    with h5py.File(tmp_path / "c.nc") as file:
        assert not [name for name in file if "missing" in name]


@pytest.mark.parametrize("policy", ["exact", "mask"])
def test_repack_of_a_file_with_a_companion_takes_the_restored_values(
    policy: Any, ocean: tuple[Path, Any, Path, Any], tmp_path: Path
) -> None:
    """D15's like: the old flags must neither stay beside new values nor be doubled."""
    _, values, source, _ = ocean
    target = tmp_path / "c.nc"
    (said,) = tamis.repack(source, target, {"TS": "zfp(accuracy=0.5)|deflate"}, missing=policy).datasets
    gaps, found = missing(values), restored(target)
    assert same_bits(found[gaps], values[gaps])
    assert np.abs(found - restored(source))[~gaps].max() <= 0.5
    with h5py.File(target) as file:
        names = [name for name in file if "missing" in name]
        read = file["TS"][()]
        belonging = [file[each[0]].name for each in file["lat"].attrs["REFERENCE_LIST"]]
    wanted = ["TS_missing"] if policy == "mask" else []
    assert (names, [name for name in belonging if "missing" in name]) == (wanted, [f"/{name}" for name in wanted])
    found_names = attributes(target, "TS")["ancillary_variables"].decode().split()
    assert found_names == ["TS_quality", *wanted]
    assert (said.missing_mask, "missing_companion" in attributes(target, "TS")) == (
        "/TS_missing" if wanted else "",
        bool(wanted),
    )
    assert same_bits(read[gaps], values[gaps]) == (policy == "exact"), "for other readers"
    assert tamis.verify(source, target, bounds={"TS": 0.5}).ok


def test_repack_of_other_datasets_keeps_the_companion(ocean: tuple[Path, Any, Path, Any], tmp_path: Path) -> None:
    _, _, source, _ = ocean
    for recipes in (
        {"lat": "deflate"},
        {"TS_missing": "deflate(9)|fletcher32"},
        {"*": "zfp(accuracy=0.1)|shuffle|deflate(4)"},
    ):
        result = tamis.repack(source, tmp_path / "c.nc", recipes, missing="mask", overwrite=True)
        assert same_bits(restored(tmp_path / "c.nc"), restored(source))
        assert tamis.verify(source, tmp_path / "c.nc", bounds={"*": 0.1}).ok
    assert [each.missing_mask for each in result.datasets if each.path == "/TS"] == ["/TS_missing"]
    assert [each.path for each in result.datasets if each.copied] == ["/TS"]
    assert "/TS_missing" in dict(result.kept)


def test_repack_exact_of_a_companioned_dataset_copies_nothing(
    ocean: tuple[Path, Any, Path, Any], tmp_path: Path
) -> None:
    """The filters are there already, but without the companion the gaps are to be what they were."""
    _, values, source, _ = ocean
    (said,) = tamis.repack(source, tmp_path / "c.nc", RECIPE).datasets
    assert (said.copied, said.missing_mask) == (False, "")
    with h5py.File(tmp_path / "c.nc") as file:
        assert same_bits(file["TS"][()][missing(values)], values[missing(values)])


def test_repack_recipe_for_a_companion_that_is_replaced_refused(
    ocean: tuple[Path, Any, Path, Any], tmp_path: Path
) -> None:
    recipes = {"TS": "zfp(accuracy=1)", "TS_missing": "deflate(9)"}
    with pytest.raises(ParameterError, match="/TS_missing: expected no recipe for the missing-value mask of /TS"):
        tamis.repack(ocean[2], tmp_path / "c.nc", recipes, missing="mask")
    with pytest.raises(ParameterError, match="/TS_missing: expected lossless filters"):
        tamis.repack(ocean[2], tmp_path / "c.nc", {"TS_missing": "sz3(absolute,1)"}, missing="mask")
    assert not (tmp_path / "c.nc").exists()


def test_repack_wrong_companion_is_found_by_the_proof(
    ocean: tuple[Path, Any, Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a flag wrong in the file, no target would be left."""
    from tamis.rewrite.encode import ChunkEncoder

    real = ChunkEncoder.encode_filled

    def wrong(encoder: ChunkEncoder, values: Any, flags: Any, table: Any) -> Any:
        made = real(encoder, values, flags, table)
        flags[flags == flags.max()] = 1 if flags.max() > 1 else 2
        return made

    monkeypatch.setattr(ChunkEncoder, "encode_filled", wrong)
    with pytest.raises(BoundError, match="/TS: expected"):
        tamis.repack(ocean[0], tmp_path / "c.nc", RECIPE, chunks=CHUNKS, missing="mask", threads=1)
    assert not (tmp_path / "c.nc").exists()


def test_repack_of_a_file_whose_companion_is_gone_refused(ocean: tuple[Path, Any, Path, Any], tmp_path: Path) -> None:
    source = tmp_path / "a.nc"
    source.write_bytes(ocean[2].read_bytes())
    with h5py.File(source, "r+") as file:
        file.move("TS_missing", "TS_mask")
    with pytest.raises(FileError, match="/TS: its missing values are in the mask '/TS_missing', which does not exist"):
        tamis.repack(source, tmp_path / "b.nc", {"TS": "zfp(accuracy=1)"})
    tamis.repack(source, tmp_path / "b.nc", {"lat": "deflate"})  # no value of TS is read


def test_resumed_run_with_a_companion_gives_the_same_bytes(ocean: tuple[Path, Any, Path, Any], tmp_path: Path) -> None:
    source, _, target, _ = ocean
    code = f"""
import os, tamis
def stop(what, done, total):
    if what.startswith("writing") and done == 20:
        os.kill(os.getpid(), 9)
options = dict(chunks={CHUNKS!r}, missing="mask", progress=stop)
tamis.repack({str(source)!r}, {str(tmp_path / "b.nc")!r}, {RECIPE!r}, **options)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    result = tamis.repack(source, tmp_path / "b.nc", RECIPE, chunks=CHUNKS, missing="mask", resume=True)
    assert result.datasets[0].reused_chunks > 10
    assert (tmp_path / "b.nc").read_bytes() == target.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["b.nc"]


def test_companion_of_pop_sst_reaches_seven_times(real: Real, tmp_path: Path) -> None:
    """D9 on real data: 10.8 times in chunks of 60x16x16, where exact has 4.0 and bare zfp 4.0 with errors of 31 K."""
    source = real("pop_sst_60days.nc")
    recipes = {"SST": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
    with h5py.File(source) as file:
        values = file["SST"][()]
    gaps = values == FILL
    for chunks in ((60, 16, 16), (60, 64, 64)):
        (said,) = tamis.repack(
            source, tmp_path / "b.nc", recipes, chunks={"SST": chunks}, missing="mask", overwrite=True
        ).datasets
        assert (said.ratio > 10, said.lossless_chunks) == (True, 0)
        found = restored(tmp_path / "b.nc", "SST")
        assert np.abs(found - values)[~gaps].max() <= 0.1
        assert same_bits(found[gaps], values[gaps])
    (exact,) = tamis.repack(source, tmp_path / "c.nc", recipes, chunks={"SST": (60, 16, 16)}).datasets
    assert exact.ratio >= 3.5
