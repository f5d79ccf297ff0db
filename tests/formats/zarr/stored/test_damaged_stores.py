"""Known defect U62: damaged metadata of Zarr are a FileError in every command and reader."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from inprocess import run_tamis

import tamis

pytestmark = pytest.mark.filterwarnings("ignore")

OTHERS = (None, True, 7, -1, 2.5, "text", [], [1], {}, {"a": 1}, [[1, 2], [3]], 10**30)
METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
COUNT = 25
"""Damaged stores of each kind that a run looks at, of some thousands."""

Path_ = tuple[Any, ...]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    with h5py.File(folder / "a.h5", "w") as file:
        file.attrs["title"] = "t"
        x = file.create_dataset("x", data=np.arange(24.0).reshape(4, 6), chunks=(2, 3), compression="gzip")
        x.attrs.update({"units": "K", "m": np.eye(2), "_FillValue": 7.0})
        enum = h5py.enum_dtype({"a": 1, "b": 2}, basetype="i2")
        file.create_dataset("e", data=np.array([1, 2], "i2"), dtype=enum)
        file.create_dataset("words", data=["a", "b"], dtype=h5py.string_dtype())
        file["text"] = np.array([b"ab", b"c"])
        file["g/y"] = np.arange(5, dtype="i2")
        file["g"].attrs["k"] = [1, 2, 3]
    values = np.where(np.arange(64).reshape(8, 8) % 7 == 0, 1e20, np.arange(64.0).reshape(8, 8))
    with h5py.File(folder / "b.h5", "w") as file:
        file.create_dataset("x", data=values.astype("f4"), chunks=(4, 4)).attrs["_FillValue"] = np.float32(1e20)
    for name, form in (("2", {"zarr_format": 2}), ("3", {}), ("sharded", {"shards": 4})):
        tamis.repack(folder / "a.h5", folder / f"{name}.zarr", {}, **form)
    tamis.repack(folder / "b.h5", folder / "companion.zarr", {"x": "zfp(accuracy=0.1)"}, missing="mask")
    return folder


def places(node: Any, start: Path_ = ()) -> Iterator[Path_]:
    """Yield the places of all values of JSON."""
    yield start
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from places(node[key], (*start, key))


def changed(content: Any, place: Path_, value: Any) -> Any:
    if not place:
        return value
    content = copy.deepcopy(content)
    owner = content
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    return content


def damages(store: Path) -> Iterator[tuple[Path, bytes | None]]:
    """Yield each file of a store with other bytes: missing, cut, or with a value of JSON replaced by another."""
    for file in sorted(path for path in store.rglob("*") if path.is_file()):
        name, data = file.relative_to(store), file.read_bytes()
        yield from ((name, other) for other in (None, b"", data[: len(data) // 2], b"\xff" + data))
        if file.name in METADATA:
            content = json.loads(data)
            for place in places(content):
                yield from ((name, json.dumps(changed(content, place, other)).encode()) for other in OTHERS)


def readers(store: Path, source: Path, out: Path) -> dict[str, Callable[[], object]]:
    def read() -> None:
        with tamis.open(store) as file:
            _ = file.attrs
            for name in file:
                _ = file[name].attrs, file[name][...]

    def engine() -> None:
        with xarray.open_dataset(store, engine="tamis", decode_cf=False) as dataset:
            dataset.load()

    return {
        "inspect": lambda: str(tamis.inspect(store)),
        "plan": lambda: str(tamis.plan(store, {"*": "abs=0.1"})),
        "verify": lambda: str(tamis.verify(store, source)),
        "verify a copy": lambda: str(tamis.verify(source, store)),
        "repack": lambda: tamis.repack(store, out / "out.h5", {}, overwrite=True),
        "repack to Zarr": lambda: tamis.repack(store, out / "out.zarr", {}, overwrite=True),
        "export": lambda: tamis.export(store, out / "out.json", "kerchunk", overwrite=True),
        "open": read,
        "engine": engine,
    }


@pytest.mark.check
@pytest.mark.parametrize("name", ["2", "3", "sharded", "companion"])
def test_u62_damaged_stores_are_errors_of_tamis(name: str, made: Path, tmp_path: Path) -> None:
    every = list(damages(made / f"{name}.zarr"))
    source = made / ("b.h5" if name == "companion" else "a.h5")
    for number, (file, data) in enumerate(random.Random(62).sample(every, COUNT)):
        store = tmp_path / f"{number}.zarr"
        shutil.copytree(made / f"{name}.zarr", store)
        (store / file).unlink() if data is None else (store / file).write_bytes(data)
        for job, run in readers(store, source, tmp_path).items():
            try:
                run()
            except tamis.TamisError:
                pass
            except Exception as error:
                pytest.fail(f"{job}: {file} {data!r:.300}: {error!r}")


ATTRIBUTES = [
    ("3.zarr", "zarr.json", ("attributes",)),
    ("3.zarr", "x/zarr.json", ("attributes",)),
    ("2.zarr", ".zattrs", ()),
    ("2.zarr", "x/.zattrs", ()),
]


@pytest.mark.parametrize(("name", "file", "place"), ATTRIBUTES)
@pytest.mark.parametrize("value", [7, "text"])
def test_u62_attributes_that_are_no_object(
    name: str, file: str, place: Path_, value: Any, made: Path, tmp_path: Path
) -> None:
    store = tmp_path / name
    shutil.copytree(made / name, store)
    content = json.loads((store / file).read_text())
    (store / file).write_text(json.dumps(changed(content, place, value)))
    for command in (("inspect", store), ("verify", made / "a.h5", store), ("repack", store, tmp_path / "b.h5")):
        done = run_tamis(*command)
        assert done.returncode in (1, 3), done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert "cannot be read" in done.stderr + done.stdout
