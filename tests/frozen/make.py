"""Write the frozen streams of this version of tamis: run once per release, never again for one that was released.

    python tests/frozen/make.py

Each `tamis-<version>-<case>.bin` is a stream; `tamis-<version>.json` says how to decode it and the sha256 of what must
come out.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import tamis
from tamis import zfp
from tamis.filters import ChunkType

HERE = Path(__file__).parent


def noise(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A ramp with noise in the low bits, by whole numbers only: the same on every machine."""
    index = np.arange(int(np.prod(shape)), dtype=np.uint64)
    values = index * np.uint64(977) % np.uint64(65521) + (index * np.uint64(2654435761) >> np.uint64(12)) % np.uint64(
        97
    )
    return (values.astype("i8") - 30000).reshape(shape).astype(dtype) / np.dtype(dtype).type(
        1 if dtype[0] == "i" else 64
    )


def specials() -> np.ndarray[Any, Any]:
    values = noise("f8", (9, 5))
    values[::2, 1] = np.nan
    values[1, 2], values[3, 3], values[4, 4], values[5, 0] = np.inf, -np.inf, -0.0, 5e-324
    values[5:] = 0
    return values


def main() -> None:
    version = tamis.__version__.rsplit(".", 1)[0]
    manifest: dict[str, dict[str, Any]] = {}

    def keep(case: str, stream: bytes, decoded: bytes, **how: Any) -> None:
        name = f"tamis-{version}-{case}.bin"
        (HERE / name).write_bytes(stream)
        manifest[name] = {**how, "decoded_sha256": hashlib.sha256(decoded).hexdigest()}

    with_header = {
        "accuracy-f4-3d": (noise("f4", (5, 7, 6)), zfp.Accuracy(0.1)),
        "rate-f8-2d": (noise("f8", (9, 10)), zfp.Rate(3.7)),
        "precision-i4-1d": (noise("i4", (53,)).astype("i4"), zfp.Precision(21)),
        "rate-i8-4d": (noise("i8", (2, 5, 3, 6)).astype("i8"), zfp.Rate(9)),
        "expert-f4-2d": (noise("f4", (9, 10)), zfp.Expert(20, 300, 24, -3)),
        "reversible-f8-2d": (specials(), zfp.Reversible()),
        "reversible-i4-3d": (noise("i4", (5, 6, 3)).astype("i4") * np.int32(65537), zfp.Reversible()),
    }
    for case, (values, mode) in with_header.items():
        stream = zfp.encode_with_header(values, mode)
        decoded = zfp.decode_with_header(stream)
        keep(case, stream, decoded.tobytes(), dtype=decoded.dtype.name, shape=decoded.shape, reversible="rev" in case)

    values, text = noise("f8", (1, 9, 10)), "zfp(accuracy=0.01)|shuffle|deflate(6)|fletcher32"
    pipeline, chunk = tamis.Pipeline.parse(text), ChunkType(values.dtype, values.shape)
    stream, mask = pipeline.encode(values)
    keep(
        "pipeline-f8-3d",
        stream,
        pipeline.decode(stream, mask, chunk).tobytes(),
        dtype="float64",
        shape=values.shape,
        pipeline=text,
    )

    (HERE / f"tamis-{version}.json").write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    main()
