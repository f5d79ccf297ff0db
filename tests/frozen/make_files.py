"""Write the frozen files of this version of tamis: run once per release, never again for one that was released.

    python tests/frozen/make_files.py          # with the packages of tamis[all]

`tamis-<version>-files.zip` has a source, what tamis makes of it in each format, with each filter, as a folder and as
references, and `files.json`: what `tamis.open` reads of each array.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from make import noise

import tamis

HERE = Path(__file__).parent
FILTERS = {
    "bitshuffle": "bitshuffle",
    "blosc": "blosc",
    "blosc2": "blosc2",
    "bzip2": "bzip2",
    "checksum": "shuffle|deflate(4)|fletcher32",
    "lz4": "lz4",
    "lzf": "lzf",
    "nbit": "nbit",
    "rounded": "absolute(bound=0.1)|shuffle|deflate(4)",
    "scaleoffset": "scaleoffset(kind=decimal,factor=2)",
    "sperr": "sperr(bound=0.1)",
    "sz3": "sz3(bound=0.1)",
    "szip": "szip",
    "zfp_accuracy": "zfp(accuracy=0.1)",
    "zfp_bound": "zfp(bound=0.1)|shuffle|deflate(4)",
    "zfp_precision": "zfp(precision=20)",
    "zfp_rate": "zfp(rate=16)",
    "zfp_reversible": "zfp(reversible=true)",
    "zstd": "zstd(3)",
}
"""Filters, by the name of an array that has them."""
INTEGERS = ("nbit",)
RECIPES = {
    "t": FILTERS["zfp_bound"],
    "packed": "pack(bound=0.05)|shuffle|deflate(4)",
    "gaps": "zfp(bound=0.1)",
    "i": "shuffle|deflate(4)",
}
SHAPE = (6, 13, 18)


def write_source(path: Path) -> None:
    """Write fields with dimensions, some of them with missing values."""
    with h5py.File(path, "w") as file:
        for name, size in zip(("time", "lat", "lon"), SHAPE, strict=True):
            file[name] = np.arange(size, dtype="f8")
            file[name].make_scale(name)
        fields: dict[str, Any] = {name: noise("f4", SHAPE) for name in ("t", "packed", "gaps")}
        fields["gaps"][2:4, 5, :7] = -9999
        for name, values in {**fields, "i": noise("i2", SHAPE).astype("i2")}.items():
            made = file.create_dataset(name, data=values, chunks=(2, 13, 18), compression="gzip")
            made.attrs["units"] = "K"
            for axis, scale in enumerate(("time", "lat", "lon")):
                made.dims[axis].attach_scale(file[scale])
        file["gaps"].attrs["_FillValue"] = np.float32(-9999)


def write_filters(path: Path) -> None:
    """Write an array for each filter."""
    with h5py.File(path, "w") as file:
        for name, filters in FILTERS.items():
            values = noise("i4", SHAPE).astype("i4") if name in INTEGERS else noise("f4", SHAPE)
            tamis.hdf5.write(file, name, values, filters=filters, chunks=(4, 8, 9))


def forget_machine(record: Path, folder: str) -> None:
    """Write /data and host in the place of this machine's folder and name."""
    host = platform.node()
    for path in [path for path in record.rglob("*") if path.is_file()]:
        path.write_text(path.read_text().replace(folder, "/data").replace(f'"{host}"', '"host"'))
        path.rename(path.with_name(path.name.replace(f"-{host}-", "-host-")))


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return what tamis reads of each array."""
    with tamis.open(path) as file:
        return {
            name: {
                "dtype": file[name].dtype.str,
                "shape": list(file[name].shape),
                "sha256": hashlib.sha256(np.ascontiguousarray(file[name][...]).tobytes()).hexdigest(),
            }
            for name in sorted(file)
        }


def main() -> None:
    warnings.simplefilter("ignore")
    version = tamis.__version__.rsplit(".", 1)[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "files")
        folder.mkdir()
        write_source(folder / "source.nc")
        write_filters(folder / "filters.h5")
        tamis.repack(folder / "source.nc", folder / "repacked.nc", RECIPES, missing="mask")
        tamis.repack(folder / "source.nc", folder / "zarr3.zarr", RECIPES)
        tamis.repack(folder / "source.nc", folder / "shards.zarr", RECIPES, shards=2)
        tamis.repack(folder / "source.nc", folder / "zarr2.zarr", RECIPES, zarr_format=2)
        (folder / "many").mkdir()
        for number in range(2):
            shutil.copy(folder / "source.nc", folder / "many" / f"{number}.nc")
        tamis.repack_many(folder / "many", folder / "done", RECIPES, checksums=True)
        forget_machine(folder / "done" / ".tamis", str(folder))
        (folder / "recipe.toml").write_text(f"{tamis.plan(folder / 'source.nc', {'t': 'abs=0.1'}).recipe}")
        files = ("source.nc", "filters.h5", "repacked.nc", "zarr3.zarr", "shards.zarr", "zarr2.zarr", "done/0.nc")
        made = {"recipes": RECIPES, "files": {name: read(folder / name) for name in files}}
        (folder / "files.json").write_text(json.dumps(made, indent=1) + "\n")
        shutil.make_archive(str(HERE / f"tamis-{version}-files"), "zip", folder)


if __name__ == "__main__":
    main()
