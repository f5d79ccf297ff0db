"""Time codecs of Zarr: ``python benchmarks/zarr_codecs.py [--quick] [--rounds N]``.

It prints one table. An array of float32 is written and read whole by zarr-python, in a temporary folder: with the
codec ``zfp`` of tamis (Zarr 3), numcodecs' ``ZFPY`` (Zarr 2, same tolerance), the usual ``bytes|zstd``, and without a
codec, and with a codec that takes no time but stores as much as ``zfp``: what zarr-python itself takes, which bounds
any codec. The last columns are one chunk by the codec alone; tamis proves what it encodes. Figures are the least CPU
seconds of all threads, and ratios of ZFPY to each; calls take turns.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from machine import machine
from numcodecs.zfpy import ZFPY
from turns import times_in_turns

import tamis
import tamis.zarr

NO_TIME = "zfp in no time"
SHAPE, QUICK_SHAPE, CHUNKS = (96, 384, 320), (16, 384, 320), (8, 384, 320)
TOLERANCE = 0.001
COLUMNS = ("write the array", "read the array", "encode a chunk", "decode a chunk")


def field(shape: tuple[int, ...]) -> np.ndarray:
    """Return a field like temperature: smooth, with noise in the last digits."""
    noise = np.random.default_rng(0).normal(0, 0.01, shape).astype("f4")
    steps = [np.sin(np.linspace(0, 3 + axis, size, dtype="f4")) for axis, size in enumerate(shape)]
    return 280 + 20 * steps[0][:, None, None] * steps[1][:, None] * steps[2] + noise


class NoTime(tamis.zarr.ZfpCodec):
    """The codec ``zfp``, of which every chunk is the first one, encoded and decoded once."""

    def __init__(self, *args: Any, **mode: Any) -> None:
        super().__init__(*args, **mode)
        object.__setattr__(self, "known", {})

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        if "stream" not in self.known:
            self.known["stream"] = self._encode_sync(chunk_data, chunk_spec)
        return self.known["stream"]

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        if "values" not in self.known:
            self.known["values"] = self._decode_sync(chunk_data, chunk_spec)
        return self.known["values"]


def kinds() -> dict[str, dict[str, Any]]:
    """Return arguments of ``zarr.create_array`` by name."""
    return {
        "numcodecs ZFPY": {"zarr_format": 2, "compressors": ZFPY(mode=4, tolerance=TOLERANCE)},
        "tamis zfp": tamis.zarr.codecs(f"zfp(accuracy={TOLERANCE})", "f4", CHUNKS),
        "bytes, zstd": {},
        "no codec": {"compressors": None},
        NO_TIME: {"serializer": NoTime(accuracy=TOLERANCE), "compressors": None},
    }


def by_codec(name: str, chunk: np.ndarray) -> list[Callable[[], Any]]:
    """Return functions that encode and decode a chunk; none for codecs that are not compared."""
    if name == "numcodecs ZFPY":
        codec = ZFPY(mode=4, tolerance=TOLERANCE)
        stream = codec.encode(chunk)
        return [lambda: codec.encode(chunk), lambda: codec.decode(stream)]
    if name == "tamis zfp":
        mode = tamis.Zfp(accuracy=TOLERANCE).mode
        own = tamis.zfp.encode(chunk, mode)

        def encode() -> None:
            tamis.zfp.prove(chunk, tamis.zfp.encode(chunk, mode), mode, None)

        return [encode, lambda: tamis.zfp.decode(own, chunk.shape, chunk.dtype, mode)]
    return []


def calls_of(name: str, options: dict[str, Any], values: np.ndarray, folder: Path) -> list[Callable[[], Any]]:
    """Return the timed functions of a codec, in the order of `COLUMNS`, after a check of what is read."""
    path = folder / name
    array = zarr.create_array(str(path), shape=values.shape, dtype="f4", chunks=CHUNKS, **options)

    def write() -> None:
        array[...] = values

    def read() -> Any:
        return array[...]

    write()
    error = np.abs(read() - values).max()
    if error > TOLERANCE and name != NO_TIME:
        raise SystemExit(f"{name}: expected values within {TOLERANCE}, got an error of {error}")
    return [write, read, *by_codec(name, np.ascontiguousarray(values[: CHUNKS[0]]))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a sixth of the values, for one round")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    values = field(QUICK_SHAPE if options.quick else SHAPE)
    print(f"{machine()}; {values.nbytes >> 20} MiB in chunks of {'×'.join(map(str, CHUNKS))}\n")
    folder = Path(tempfile.mkdtemp())
    try:
        groups = {name: calls_of(name, own, values, folder) for name, own in kinds().items()}
        path = folder / "tamis zfp"
        groups["tamis zfp, tamis.open"] = [lambda: tamis.open(path)["tamis zfp"][()]]
        calls = [call for group in groups.values() for call in group]
        rounds = 1 if options.quick else options.rounds
        least = iter([min(times) for times in times_in_turns(calls, rounds, time.process_time)])
    finally:
        shutil.rmtree(folder)
    print(f"| codec | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
    first: list[float] = []
    for name, group in groups.items():
        own: list[float | None] = [next(least) for _ in group]
        own = [None, *own] if len(own) == 1 else own
        first = first or [seconds or 0 for seconds in own]
        cells = [
            f"{seconds:.3f} s, {base / seconds:.1f}×" if seconds else ""
            for seconds, base in zip(own + [None] * (len(COLUMNS) - len(own)), first, strict=True)
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
