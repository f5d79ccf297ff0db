"""Write random mixtures of values through filter 32013 by every writer, and read them with H5Z-ZFP.

``python tests/plugin/mixtures.py [values = 10000000] [seed = 1]``

Each round makes a field of ordinary, huge, tiny, missing and non-finite values of a random type, shape, chunk shape,
accuracy and fill value; writes it by h5py, netCDF4, xarray through h5netcdf, h5repack or nccopy, in one go or step by
step in random order; and reads it in a process that has hdf5plugin's filter alone. Then

- no value is off by more than the tolerance, NaN is NaN, and infinities are themselves;
- no valid value is missing, that is equal to the fill value, and no missing one is valid.

It prints what was done, and ends with 1 at the first value that is not so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tamis

os.environ["HDF5_PLUGIN_PATH"] = str(tamis.plugin_path())  # for the libhdf5 of netCDF4

NETCDF_FILLS = {"f4": 9.969209968386869e36, "f8": 9.969209968386869e36, "i4": -2147483647, "i8": -9223372036854775806}

READER = """
import sys
import h5py, hdf5plugin, numpy as np
assert "tamis" not in sys.modules
for line in sys.stdin:
    path, target = line.rstrip("\\n").split("\\t")
    with h5py.File(path) as file:
        data = file["v"]
        masks = []
        data.id.chunk_iter(lambda info: masks.append(info.filter_mask))
        np.savez(target, values=data[...], masks=np.array(masks, "u4"))
    print("done", flush=True)
"""


@dataclass(frozen=True)
class Mixture:
    """What a round writes. `fill` is None where nobody chose one."""

    values: NDArray[Any]
    chunks: tuple[int, ...]
    accuracy: float
    fill: float | None
    pieces: tuple[slice, ...]

    @property
    def tolerance(self) -> float:
        return 2.0 ** np.floor(np.log2(self.accuracy))


def random_mixture(random: np.random.Generator, count: int, writer: str) -> Mixture:
    """Make about so many values; a share of them is not ordinary."""
    dtype = random.choice(["f4", "f8", "i4", "i8"])
    rank = int(random.integers(1, 5))
    extents = np.maximum(1, (count ** (1 / rank) * random.uniform(0.6, 1.6, rank)).astype(int))
    shape = tuple(int(extent) for extent in extents)
    most = (1000, 60, 20, 12)[rank - 1]
    chunks = tuple(int(random.integers(min(2, extent), min(extent, most) + 1)) for extent in shape)
    accuracy = float(2.0 ** random.uniform(-12, 8) if dtype[0] == "f" else 2.0 ** random.uniform(0, 10))
    scale = 10.0 ** random.uniform(-2, 5)
    smooth = np.sin(np.linspace(0, random.uniform(1, 50), int(np.prod(shape)))).reshape(shape)
    values = (scale * (smooth + random.normal(scale=0.05, size=shape)) + random.choice([0, 280])).astype(dtype)
    fill = random.choice([None, NETCDF_FILLS[dtype], -999, -99, 0, 1e20 if dtype[0] == "f" else 123456])
    if writer == "nccopy" and fill not in (None, NETCDF_FILLS[dtype]):
        fill = NETCDF_FILLS[dtype]  # others it only writes down as an attribute
    strange = [] if fill is None else [fill]
    if dtype[0] == "f":
        strange += [1e30, -3e8, 1e-30, 1e-310 if dtype == "f8" else 1e-44, 0.0]
        # xarray turns NaN into the fill value.
        strange += [np.nan, np.inf, -np.inf] if random.random() < 0.2 and writer != "xarray" else []
    else:
        strange += [2**29, -(2**30) + 1, 2**31 - 1 if dtype == "i4" else 2**62]
    for _ in range(int(random.integers(0, 4))):
        value = random.choice(np.array(strange, object))
        if random.random() < 0.5:  # cells here and there
            values[random.random(shape) < random.choice([1e-4, 1e-2])] = value
        else:  # a box
            low = [int(random.integers(0, extent)) for extent in shape]
            box = tuple(
                slice(at, at + 1 + int(random.integers(0, extent))) for at, extent in zip(low, shape, strict=True)
            )
            values[box] = value
    pieces = steps(random, shape[0]) if writer in ("h5py", "netCDF4") else (slice(0, shape[0]),)
    chosen = None if fill is None else values.dtype.type(fill).item()
    return Mixture(values, chunks, accuracy, chosen, pieces)


def steps(random: np.random.Generator, count: int) -> tuple[slice, ...]:
    """All of the first axis at once, or in pieces in random order."""
    if random.random() < 0.5:
        return (slice(0, count),)
    ends = sorted({0, count, *map(int, random.integers(0, count + 1, 4))})
    pieces = [slice(low, high) for low, high in pairwise(ends)]
    return tuple(pieces[i] for i in random.permutation(len(pieces)))


def by_h5py(path: Path, mixture: Mixture) -> None:
    """One piece per opening of the file."""
    import h5py

    zfp = tamis.Zfp(accuracy=mixture.accuracy)
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "v", mixture.values.shape, mixture.values.dtype, chunks=mixture.chunks, fillvalue=mixture.fill, **zfp
        )
    for piece in mixture.pieces:
        with h5py.File(path, "r+") as file:
            file["v"][piece] = mixture.values[piece]


def by_netcdf4(path: Path, mixture: Mixture) -> None:
    """Append to a repacked netCDF file, one piece per opening.

    Without a filter behind zfp that makes sizes of chance: HDF5 keeps the old mask of a chunk whose size stays.
    """
    import netCDF4

    plain = path.with_suffix(".plain")
    with netCDF4.Dataset(plain, "w") as nc:
        names = tuple(f"d{axis}" for axis in range(mixture.values.ndim))
        for name, extent in zip(names, mixture.values.shape, strict=True):
            nc.createDimension(name, None if name == "d0" else extent)
        nc.createVariable("v", mixture.values.dtype, names, chunksizes=mixture.chunks, fill_value=mixture.fill)
    tamis.repack(plain, path, {"/v": f"zfp(accuracy={mixture.accuracy!r})"})
    for piece in mixture.pieces:
        with netCDF4.Dataset(path, "a") as nc:
            nc.set_auto_maskandscale(False)
            nc["v"][piece] = mixture.values[piece]


def by_xarray(path: Path, mixture: Mixture) -> None:
    """All at once, through h5netcdf."""
    import xarray as xr

    names = tuple(f"d{axis}" for axis in range(mixture.values.ndim))
    encoding = {"chunksizes": mixture.chunks, **tamis.Zfp(accuracy=mixture.accuracy)}
    attrs = {} if mixture.fill is None else {"_FillValue": mixture.values.dtype.type(mixture.fill)}
    dataset = xr.Dataset({"v": (names, mixture.values, attrs)})
    dataset.to_netcdf(path, engine="h5netcdf", encoding={"v": encoding})


def plain_hdf5(path: Path, mixture: Mixture) -> Path:
    import h5py

    plain = path.with_suffix(".plain")
    with h5py.File(plain, "w") as file:
        file.create_dataset("v", data=mixture.values, chunks=mixture.chunks, fillvalue=mixture.fill)
    return plain


def by_h5repack(path: Path, mixture: Mixture) -> None:
    """An optional filter."""
    words = tamis.Zfp(accuracy=mixture.accuracy).requested
    copy("h5repack", "-f", f"v:UD=32013,1,{len(words)},{','.join(map(str, words))}", plain_hdf5(path, mixture), path)


def by_nccopy(path: Path, mixture: Mixture) -> None:
    """The filter is required in netCDF-C 4.9.0, which then refuses what it cannot keep."""
    import netCDF4

    plain = path.with_suffix(".plain")
    with netCDF4.Dataset(plain, "w") as nc:
        names = tuple(f"d{axis}" for axis in range(mixture.values.ndim))
        for name, extent in zip(names, mixture.values.shape, strict=True):
            nc.createDimension(name, extent)
        nc.set_auto_maskandscale(False)
        v = nc.createVariable("v", mixture.values.dtype, names, chunksizes=mixture.chunks, fill_value=mixture.fill)
        v[...] = mixture.values
    words = tamis.Zfp(accuracy=mixture.accuracy).requested
    copy("nccopy", "-F", f"v,32013,{','.join(map(str, words))}", plain, path)


def copy(*command: str | Path) -> None:
    env = os.environ | {"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}
    done = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RefusedError(done.stdout + done.stderr)


class RefusedError(Exception):
    """The writer said that it cannot."""


WRITERS: dict[str, Callable[[Path, Mixture], None]] = {
    "h5py": by_h5py,
    "netCDF4": by_netcdf4,
    "xarray": by_xarray,
    "h5repack": by_h5repack,
    "nccopy": by_nccopy,
}


class Reader:
    """A process that reads with hdf5plugin's filter, and never imports tamis."""

    def __init__(self) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, "-c", READER], stdin=pipe, stdout=pipe, text=True, env=env)

    def read(self, path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give the values of dataset v, and the masks of its chunks."""
        target = path.with_suffix(".npz")
        print(path, target, sep="\t", file=self._process.stdin, flush=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "done\n":
            raise RuntimeError(f"{path} cannot be read")
        with np.load(target) as found:
            return found["values"], found["masks"]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def check(mixture: Mixture, found: NDArray[Any]) -> None:
    """Raise AssertionError at the first value that is not what it should be."""
    expected, fill = mixture.values, mixture.fill
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    with np.errstate(all="ignore"):
        same = (expected == found) | (np.isnan(expected) & np.isnan(found))
        wide = np.longdouble
        error = np.where(same, 0, np.abs(expected.astype(wide) - found.astype(wide)))
    # A chunk that is written in several pieces is decoded and encoded for each.
    times = np.zeros(-(-len(expected) // mixture.chunks[0]), int)
    for piece in mixture.pieces:
        times[piece.start // mixture.chunks[0] : -(-piece.stop // mixture.chunks[0])] += 1
    bound = np.repeat(times, mixture.chunks[0])[: len(expected)] * mixture.tolerance
    over = ~(error <= bound.reshape(-1, *[1] * (expected.ndim - 1)))
    assert not over.any(), ("over the bound", expected[over][:3], found[over][:3])
    if fill is not None:
        mark = expected.dtype.type(fill)
        wrong = (expected == mark) != (found == mark)
        assert not wrong.any(), ("missing values", expected[wrong][:3], found[wrong][:3])


def run(count: int, seed: int) -> Counter[str]:
    """Do rounds until so many values were written; what was done."""
    done: Counter[str] = Counter()
    reader = Reader()
    folder = Path(tempfile.mkdtemp(prefix="tamis-mixtures-"))
    try:
        number = 0
        while done["values"] < count:
            random = np.random.default_rng((seed, number))
            names = [name for name in WRITERS if name not in ("h5repack", "nccopy") or shutil.which(name)]
            name = names[number % len(names)]
            mixture = random_mixture(random, min(int(10 ** random.uniform(3, 5)), count), name)
            path = folder / f"{number}.h5"
            try:
                WRITERS[name](path, mixture)
                found, masks = reader.read(path)
                check(mixture, found)
            except RefusedError as error:
                if name != "nccopy" or "HDF error" not in str(error):
                    raise
                done["refused by nccopy"] += 1
            except Exception as error:
                error.add_note(f"round {number} of seed {seed}: {name}, {mixture}")
                raise
            else:
                done["values"] += mixture.values.size
                done[f"values by {name}"] += mixture.values.size
                done["chunks by zfp"] += int((masks & 1 == 0).sum())
                done["chunks without zfp"] += int((masks & 1 == 1).sum())
            number += 1
            for each in folder.iterdir():
                each.unlink()
        done["rounds"] = number
    finally:
        reader.close()
        shutil.rmtree(folder)
    return done


def main() -> None:
    """Print what was done."""
    count, seed = (int(each) for each in (*sys.argv[1:3], *("10000000", "1")[len(sys.argv) - 1 :]))
    for name, number in sorted(run(count, seed).items()):
        print(f"{name:24} {number:>12,}")
    print("no value over the bound, no valid value missing, no missing one valid")


if __name__ == "__main__":
    main()
