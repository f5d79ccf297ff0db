"""Repack with ``zfp(bound=…)``: every value keeps the bound, and the tolerance is the loosest that the values allow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
import zarr
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import ParameterError
from tamis.cli import main

Make = Callable[..., Path]
Run = Callable[..., str]

TEXT = "zfp(bound=0.1)|shuffle|deflate(4)"
READ = "import sys, h5py, hdf5plugin, numpy; numpy.save(sys.argv[2], h5py.File(sys.argv[1])['x'][()])"


def field(shape: tuple[int, ...] = (24, 32, 32), roughness: float = 0.05, kind: str = "f4") -> Any:
    """Return a smooth field with noise, as measured ones are."""
    rng = np.random.default_rng(7)
    waves: Any = sum(np.sin(at / (5 + axis)) for axis, at in enumerate(np.indices(shape)))
    return (280 + 10 * waves + roughness * rng.standard_normal(shape)).astype(kind)


@pytest.fixture
def source(tmp_path: Path, make: Make) -> Path:
    return make(tmp_path / "a.h5", x={"data": field(), "chunks": (8, 16, 16)})


def repacked(source: Path, target: Path, text: str = TEXT, **options: Any) -> Any:
    (result,) = tamis.repack(source, target, {"x": text}, **options).datasets
    return result


def test_bound_takes_fewer_bytes_than_the_accuracy_and_hdf5plugin_reads_it_within(
    source: Path, tmp_path: Path, python: Run
) -> None:
    before = repacked(source, tmp_path / "accuracy.h5", "zfp(accuracy=0.1)|shuffle|deflate(4)")
    result = repacked(source, tmp_path / "b.h5")
    assert result.ratio > 1.2 * before.ratio
    assert (result.bound, result.lossless_chunks, result.tolerance) == (0.1, 0, 0.25)
    assert result.pipeline == "zfp(accuracy=0.25)|fletcher32"
    python(READ, tmp_path / "b.h5", tmp_path / "x.npy")
    error = float(np.abs(np.load(tmp_path / "x.npy").astype("f8") - field().astype("f8")).max())
    assert 0.0625 / 2 < error <= 0.1
    assert error == result.largest_error
    assert tamis.repack(source, tmp_path / "filter.h5", {"x": tamis.Zfp(bound=0.1)}).datasets[0].tolerance == 0.25


@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(1, 20), min_size=1, max_size=4).filter(lambda shape: 1 < np.prod(shape) <= 4000),
    bound=st.floats(1e-6, 1e3),
    kind=st.sampled_from(["f4", "f8", "i4"]),
    roughness=st.sampled_from([0.0, 1e-3, 1.0, 1e6]),
    data=st.data(),
)
def test_bound_holds_for_every_value_of_any_field(
    shape: list[int], bound: float, kind: str, roughness: float, data: st.DataObject, tmp_path_factory: Any
) -> None:
    chunks = tuple(data.draw(st.integers(1, extent)) for extent in shape)
    if np.prod(chunks) == 1:
        chunks = tuple(shape)
    bound = max(1.0, bound) if kind == "i4" else bound
    folder, values = tmp_path_factory.mktemp("bound"), field(tuple(shape), roughness, kind)
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=chunks)
    result = repacked(folder / "a.h5", folder / "b.h5", f"zfp(bound={bound!r})")
    with h5py.File(folder / "b.h5") as file:
        error = np.abs(file["x"][()].astype("f8") - values.astype("f8")).max()
    assert error == result.largest_error <= result.bound == bound
    assert result.tolerance > bound / 2
    assert np.log2(result.tolerance) % 1 == 0


def test_bytes_do_not_depend_on_threads_nor_on_chunks_of_the_source(source: Path, tmp_path: Path, make: Make) -> None:
    whole = make(tmp_path / "contiguous.h5", x=field())
    stored = {}
    for name, path, threads in (("1", source, 1), ("3", source, 3), ("whole", whole, 2)):
        result = repacked(path, tmp_path / f"{name}.h5", chunks={"x": (8, 16, 16)}, threads=threads)
        with h5py.File(tmp_path / f"{name}.h5") as file:
            chunks = [file["x"].id.read_direct_chunk((at, 0, 16)) for at in (0, 8, 16)]
        stored[name] = (result.tolerance, chunks)
    assert stored["1"] == stored["3"] == stored["whole"]


def test_chunks_too_large_for_a_sample_are_tried_in_parts(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x={"data": field((24, 64, 128)), "chunks": (24, 64, 128)})
    result = repacked(source, tmp_path / "b.h5")
    assert (result.tolerance, result.lossless_chunks) == (0.25, 0)
    assert "found on 4 parts of 4" in result.notes[0]


def test_chunks_that_miss_the_bound_are_stored_without_loss_and_many_of_them_tighten_the_tolerance(
    tmp_path: Path, make: Make
) -> None:
    rare, many = field((64, 32, 32), 0.0), field((64, 32, 32), 0.0)
    rng = np.random.default_rng(1)
    rare[5] += 1000 * rng.standard_normal((32, 32)).astype("f4")
    many[::3] += 1000 * rng.standard_normal(many[::3].shape).astype("f4")
    for name, values in (("rare", rare), ("many", many)):
        make(tmp_path / f"{name}.h5", x={"data": values, "chunks": (1, 32, 32)})
    few = repacked(tmp_path / "rare.h5", tmp_path / "r.h5", "zfp(bound=0.06)|shuffle|deflate(1)")
    more = repacked(tmp_path / "many.h5", tmp_path / "m.h5", "zfp(bound=0.06)|shuffle|deflate(1)")
    assert few.lossless_chunks <= 2
    assert more.tolerance < few.tolerance
    assert "0 of 64 chunks without zfp" in str(more)


def test_missing_values_stay_and_do_not_tighten_the_tolerance(tmp_path: Path, make: Make) -> None:
    values = field()
    values[:16, :16] = np.nan
    values[20, 20, 20] = 1e20
    source = make(tmp_path / "a.h5", x={"data": values, "chunks": (8, 16, 16), "._FillValue": np.float32(1e20)})
    exact = repacked(source, tmp_path / "exact.h5")
    companion = repacked(source, tmp_path / "mask.h5", missing="mask")
    assert exact.tolerance == companion.tolerance == 0.25
    assert (exact.lossless_chunks, exact.lossless_for_missing, companion.lossless_chunks) == (5, 5, 0)
    for name in ("exact", "mask"):
        with tamis.open(tmp_path / f"{name}.h5") as file:
            after = file["x"][()]
        assert np.array_equal(np.isnan(after), np.isnan(values))
        assert after[20, 20, 20] == np.float32(1e20)
        assert np.nanmax(np.abs(after - values)) <= 0.1


def test_bound_of_packed_values_is_in_units_of_the_variable(tmp_path: Path, make: Make) -> None:
    values = (field() * 10).astype("f4")
    source = make(tmp_path / "a.h5", x={"data": values, "chunks": (8, 16, 16), ".scale_factor": 0.1})
    result = repacked(source, tmp_path / "b.h5")
    assert (result.bound, result.tolerance) == (0.1, pytest.approx(0.2))
    assert result.pipeline.startswith("zfp(accuracy=2)")
    assert 0.025 < result.largest_error <= 0.1


def test_a_zarr_target_keeps_the_bound(source: Path, tmp_path: Path) -> None:
    result = repacked(source, tmp_path / "b.zarr")
    assert result.tolerance == 0.25
    tamis.zarr.codecs  # noqa: B018  # registers the codecs
    after = zarr.open_array(tmp_path / "b.zarr" / "x", mode="r")[:]
    assert 0.05 < np.abs(after - field()).max() <= 0.1


def test_an_interrupted_run_is_resumed_with_the_same_tolerance(source: Path, tmp_path: Path, python: Run) -> None:
    target = tmp_path / "b.h5"
    stop = "lambda step, done, count: os._exit(3) if step.startswith('writing') and done == 9 else None"
    call = f"tamis.repack(*sys.argv[1:], {{'x': '{TEXT}'}}, progress={stop})"
    python(f"import os, sys, tamis; {call}", source, target, exit_code=3)
    result = repacked(source, target, resume=True)
    assert result.reused_chunks >= 4
    whole = repacked(source, tmp_path / "whole.h5")
    assert target.read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert (result.tolerance, result.lossless_chunks) == (whole.tolerance, whole.lossless_chunks)


def test_a_finished_run_is_not_repeated_for_the_same_bound_alone(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    repacked(source, target)
    assert tamis.repack(source, target, {"x": TEXT}, resume=True).done_already
    copied = tmp_path / "copied.h5"  # without the record of the run: the content is compared
    copied.write_bytes(target.read_bytes())
    assert tamis.repack(source, copied, {"x": TEXT}, resume=True).done_already
    # The same filters in the file, with another promise.
    other = tamis.repack(source, target, {"x": TEXT.replace("bound=0.1", "accuracy=0.25")}, resume=True)
    assert not other.done_already


def test_values_that_have_such_a_tolerance_already_are_copied(source: Path, tmp_path: Path) -> None:
    repacked(source, tmp_path / "b.h5")
    again = repacked(tmp_path / "b.h5", tmp_path / "c.h5")
    assert again.copied
    assert again.largest_error == 0
    tighter = repacked(tmp_path / "b.h5", tmp_path / "d.h5", TEXT.replace("0.1", "1.0"))
    assert not tighter.copied


def test_a_required_zfp_gets_no_tolerance_above_the_bound(source: Path, tmp_path: Path) -> None:
    result = repacked(source, tmp_path / "b.h5", "zfp(bound=0.1)!")
    assert result.tolerance == 0.0625
    assert "zfp is required" in result.notes[0]


def test_dry_run_and_json_have_the_tolerance(source: Path, tmp_path: Path) -> None:
    arguments = ["repack", str(source), str(tmp_path / "b.h5"), "-f", f"x:{TEXT}", "--json"]
    preview = json.loads(CliRunner().invoke(main, [*arguments, "--dry-run"]).stdout)["datasets"][0]
    assert not (tmp_path / "b.h5").exists()
    result = json.loads(CliRunner().invoke(main, arguments).stdout)["datasets"][0]
    for entry in (preview, result):
        assert (entry["tolerance"], entry["bound"]) == (0.25, 0.1)
        assert "zfp's tolerance is 0.25, found on 12 chunks of 12" in entry["notes"][0]
    accuracy = tamis.preview_repack(source, tmp_path / "c.h5", {"x": "zfp(accuracy=0.1)"}).datasets[0]
    assert accuracy.tolerance is None


REFUSING: dict[str, Callable[[Any, Path], object]] = {
    "h5py": lambda zfp, path: h5py.File(path, "w").create_dataset("x", data=field(), chunks=(8, 16, 16), **zfp),
    "create": lambda zfp, path: tamis.hdf5.create_dataset(h5py.File(path, "w"), "x", (8, 8), "f4", filters=zfp),
    "encode": lambda zfp, path: tamis.Pipeline([zfp]).encode(field()),
    "spec": lambda zfp, path: tamis.spec(str(zfp)),
    "cd_values": lambda zfp, path: zfp.requested,
    "codec": lambda zfp, path: tamis.zfp.encode(field(), zfp),
    "zarr": lambda zfp, path: tamis.zarr.ZfpCodec(zfp),
    "zarr pipeline": lambda zfp, path: tamis.zarr.PipelineCodec(str(zfp)),
    "encoding": lambda zfp, path: tamis.encoding(xarray.Dataset({"x": ("t", field((9,)))}), {"x": zfp}),
}


@pytest.mark.parametrize("use", [*REFUSING])
def test_a_bound_is_refused_where_no_tolerance_can_be_found(use: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"zfp\(bound=0.1\) cannot be recorded .*repack.* or zfp\(accuracy=0.1\)"):
        REFUSING[use](tamis.Zfp(bound=0.1), tmp_path / "refused.h5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bound": 0}, "expected a finite bound above 0, got bound=0: use reversible=True"),
        ({"bound": float("nan")}, "expected a finite bound above 0, got bound=nan"),
        ({"bound": "0.1"}, "expected a finite bound above 0, got bound='0.1'"),
        ({"bound": 0.1, "accuracy": 0.1}, "bound cannot be combined with accuracy"),
        ({"bound": 0.1, "reversible": True}, "bound cannot be combined with reversible"),
    ],
)
def test_a_bound_that_is_none_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        tamis.Zfp(**arguments)


def test_a_bound_below_one_of_integers_is_refused(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x={"data": field().astype("i4"), "chunks": (8, 16, 16)})
    with pytest.raises(ParameterError, match=r"expected an accuracy of 1 or more for int32"):
        repacked(source, tmp_path / "b.h5", "zfp(bound=0.5)")
