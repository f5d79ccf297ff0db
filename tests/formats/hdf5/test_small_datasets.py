"""Small datasets: what they cost repack and verify in calls, and that the short way gives what the long does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from calls import Job, calls_by_count

import tamis
from tamis.formats.hdf5 import writer
from tamis.formats.hdf5.lib.quick_facts import rewrite_small
from tamis.formats.hdf5.stored_array import Hdf5Array

# By zfp alone, and with what is for the chunks that zfp does not take.
PIPELINES = [
    "zfp(accuracy=0.01)",
    "zfp(accuracy=0.01)|fletcher32",
    "zfp(accuracy=0.01)|shuffle|deflate(4)|fletcher32",
    "zfp(rate=8)",
    "zfp(precision=16)",
    "zfp(reversible=True)",
    "zfp(bound=0.01)",
    "zfp(minbits=1,maxbits=4096,maxprec=20,minexp=-10)",
    "absolute(0.01)|shuffle|deflate(4)",
    "bitround(10)|shuffle|deflate(4)",
]

BOUNDS: list[Any] = [None, "recorded", {"*": 0.02}, {"*": 1e-9}]
"""Of which each pipeline has every second one."""


def smooth(shape: tuple[int, ...], dtype: str, phase: float) -> Any:
    axes = np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij")
    noise = np.random.default_rng(5).normal(size=shape)
    return (280 + 9 * np.sin(sum(axes) / 9 + phase) + 0.01 * noise).astype(dtype)


RECIPES = {"lossless": {"*": "shuffle|deflate(4)"}, "lossy": {"*": "zfp(accuracy=0.01)"}}
COSTS = [("lossless", {}), ("lossy", {}), ("lossy", {"_FillValue": np.float32(-999)})]
"""Ways to store a small dataset, with attributes besides its units."""


def write(path: Path, count: int, attributes: Mapping[str, Any]) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(count):
            values = smooth((32, 32), "f4", number)
            dataset = file.create_dataset(f"g{number % 5}/v{number}", data=values, chunks=(16, 32))
            dataset.attrs.update({"units": "K", **attributes})


@pytest.mark.matrix
@pytest.mark.parametrize(("way", "attributes"), COSTS, ids=["lossless", "lossy", "lossy with a fill value"])
@pytest.mark.parametrize("name", ["repack", "verify"])
def test_u13_and_u36_calls_for_a_small_dataset_grow_with_no_other(
    name: str, way: str, attributes: Mapping[str, Any], tmp_path: Path
) -> None:
    bounds = {"*": 0.01} if way == "lossy" else None
    jobs: dict[str, Job] = {
        "repack": lambda path, out: tamis.repack(path, out, RECIPES[way], overwrite=True, threads=1),
        "verify": lambda path, out: tamis.verify(path, out, bounds=bounds, threads=1),
    }

    def written(datasets: int) -> tuple[Path, Path]:
        path = tmp_path / f"{datasets}.h5"
        write(path, datasets, attributes)
        return path, tmp_path / f"{datasets}.out"

    counts = calls_by_count((20, 60, 140), written, jobs["repack"], jobs[name])
    few, many = (counts[60] - counts[20]) / 40, (counts[140] - counts[60]) / 80
    assert many <= 1.1 * few


def write_kinds(path: Path) -> None:
    """Write several small datasets of each kind: of each form, the first is written chunk by chunk in any case."""
    with h5py.File(path, "w") as file:
        for number in range(2):
            for dtype in ("f4", "f8", ">f4", "i2", "i4"):
                for shape, chunks in (((32, 32), (16, 16)), ((30, 31), (16, 16)), ((4, 8, 12), (4, 8, 12))):
                    name = f"{dtype.strip('>')}_{dtype.startswith('>')}_{len(shape)}_{shape[0]}_{number}"
                    dataset = file.create_dataset(name, data=smooth(shape, dtype, number), chunks=chunks)
                    dataset.attrs["units"] = "K"
        for number in range(2):
            write_odd(file.create_group(f"odd{number}"), smooth((32, 32), "f4", number))


def write_odd(group: h5py.Group, values: Any) -> None:
    """Write datasets with missing values, limits and the like, of which none may be treated as if it had none."""

    def add(name: str, values: Any, **settings: Any) -> h5py.Dataset:
        return group.create_dataset(name, data=values, chunks=(16, 16), **settings)

    gaps = values.copy()
    gaps[3:9, 5:21] = -999
    add("gaps", gaps).attrs["_FillValue"] = np.float32(-999)
    block = values.copy()
    block[:4, :4] = -999
    add("a whole block", block).attrs["_FillValue"] = np.float32(-999)
    add("filled", np.full_like(values, -999), fillvalue=-999).attrs["_FillValue"] = np.float32(-999)
    add("no gaps", values).attrs["missing_value"] = np.float32(1e20)
    odd = values.copy()
    odd[2, 2], odd[20, 20] = np.nan, np.inf
    add("not finite", odd)
    limited = add("limits", values)
    limited.attrs["valid_range"] = np.array([values.min(), values.max()], "f4")
    add("wide limits", values).attrs["valid_range"] = np.array([0, 1e6], "f4")
    beyond = add("beyond limits", values)
    beyond.attrs["valid_max"] = np.float32(280)
    packed = add("packed", (values * 100).astype("f4"))
    packed.attrs["scale_factor"], packed.attrs["add_offset"] = 0.01, 3.0
    add("huge", values * np.float32(1e30))
    add("zeros", np.zeros_like(values))
    add("compressed", values, compression="gzip", shuffle=True, fletcher32=True)
    add("growing", values, maxshape=(None, 32))
    add("noise", np.random.default_rng(1).normal(size=(32, 32)).astype("f4"))
    group.create_dataset("sparse", (32, 32), "f4", chunks=(16, 16))[:16, :16] = values[:16, :16]
    group.create_dataset("contiguous", data=values)


def outcome(result: tamis.RepackResult | tamis.Verification) -> Any:
    """Return what a job prints as JSON, and its result for people, without its time and the name of its target."""
    document = result.to_dict()
    for name in ("seconds", "target", "target_nbytes"):
        document.pop(name, None)
    return json.dumps(document), [str(part) for part in result.datasets]


def content(path: Path) -> dict[str, Any]:
    """Return type, filters, attributes, and for each chunk its filter mask and bytes, of each dataset."""
    datasets: dict[str, Any] = {}

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            chunks = item.id.get_num_chunks() if item.chunks else 0
            origins = [item.id.get_chunk_info(at).chunk_offset for at in range(chunks)]
            filters = item.id.get_create_plist()
            datasets[name] = (
                item.dtype.str,
                [filters.get_filter(at) for at in range(filters.get_nfilters())],
                {key: np.asarray(value).tobytes() for key, value in item.attrs.items()},
                [(origin, *item.id.read_direct_chunk(origin)) for origin in sorted(origins)],
            )

    with h5py.File(path) as file:
        file.visititems(add)
    return datasets


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("pipeline", "missing"),
    [*((text, "exact") for text in PIPELINES), *((text, "mask") for text in PIPELINES[:3])],
)
def test_u36_small_lossy_datasets_stored_at_once_are_as_those_stored_chunk_by_chunk(
    pipeline: str, missing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, wanted = tmp_path / "a.h5", BOUNDS[PIPELINES.index(pipeline) % 2 :: 2]
    write_kinds(source)
    at_once: list[str] = []

    def note(*arguments: Any) -> Any:
        result = rewrite_small(*arguments)
        at_once.extend([arguments[1]] if result is not None else [])
        return result

    outcomes = []
    for name, function in (("quick.h5", note), ("slow.h5", lambda *_: None)):
        with monkeypatch.context() as context:
            context.setattr(writer, "rewrite_small", function)
            if name == "slow.h5":
                context.setattr(Hdf5Array, "alike", lambda *_, **__: None)
            target = tmp_path / name
            result = tamis.repack(source, target, {"*": pipeline}, missing=missing, larger=True, min_size=0)
            results = [result, *(tamis.verify(source, target, bounds=bounds) for bounds in wanted)]
            outcomes.append(([outcome(item) for item in results], content(target)))
    quick, slow = outcomes
    assert quick[0] == slow[0]
    assert quick[1] == slow[1]
    simple = ("zfp(accuracy", "zfp(rate", "zfp(precision", "zfp(reversible", "absolute", "bitround")
    if missing == "exact" and pipeline.startswith(simple):
        # Not the first of each form, which shows how HDF5 records the filters, and not what is on the edge or missing.
        several = {"/f4_False_2_32_1", "/odd1/zeros", "/odd1/compressed"} if pipeline.startswith("zfp") else set()
        assert {"/f8_False_3_4_1", *several} <= {*at_once}
    if pipeline.startswith("zfp") and "reversible" not in pipeline:
        assert not {"/odd1/gaps", "/odd1/not finite", "/f4_False_2_30_1", "/f4_True_2_32_1"} & {*at_once}
