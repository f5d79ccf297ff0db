"""Write the frozen store of zarr-python 3.4, which has what older versions lack: run once, never again.

    pip install 'zarr==3.4.*' cast-value-rs
    python tests/frozen/make_zarr.py

`zarr-3.4.zip` has a store with an array for each case, and the values that zarr-python itself reads, in `values.npz`.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec, CastValue, ScaleOffset, ShardingCodec, TransposeCodec, ZstdCodec

HERE = Path(__file__).parent
EDGES = [[2, 5, 3], [4, 4, 1, 3]]
"""Extents of chunks along both axes."""


def ramp(dtype: str) -> np.ndarray[Any, Any]:
    return (np.arange(120).reshape(10, 12) * 7 % 101).astype(dtype)


def temperatures() -> np.ndarray[Any, Any]:
    values = 250 + ramp("f8") / 4
    values[3, 4:7] = np.nan
    return values


def records() -> np.ndarray[Any, Any]:
    values = np.zeros((10, 12), [("number", "i4"), ("inner", [("x", ">f8"), ("flag", "u1")])])
    values["number"], values["inner"]["x"] = ramp("i4"), ramp("f8") / 8
    return values


PACKED = [
    ScaleOffset(offset=270.0, scale=4.0),
    CastValue(data_type="int16", scalar_map={"encode": [("NaN", -32768)], "decode": [(-32768, "NaN")]}),
]


def write(root: zarr.Group) -> None:
    def create(name: str, values: np.ndarray[Any, Any], **options: Any) -> None:
        made = root.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            dimension_names=("y", "x"),
            **{"chunks": (5, 8), "compressors": ZstdCodec(), **options},
        )
        made[:] = values

    create("plain", ramp("f4"))
    with zarr.config.set({"array.rectilinear_chunks": True}):
        create("rectilinear", ramp("f4"), chunks=EDGES, fill_value=-1)
        part = root.create_array(
            "rectilinear_absent", shape=(10, 12), dtype="i2", chunks=EDGES, fill_value=9, dimension_names=("y", "x")
        )
        part[2:7, 8:9] = 5
        sharding = ShardingCodec(chunk_shape=(2, 3), codecs=[BytesCodec(), ZstdCodec()])
        create(
            "rectilinear_shards",
            ramp("i4"),
            chunks=[[4, 6], [3, 9]],
            serializer=sharding,
            compressors=None,
        )
    create("packed", temperatures(), filters=PACKED, fill_value=np.nan)
    create("packed_shards", temperatures(), filters=PACKED, fill_value=np.nan, chunks=(4, 5), shards=(8, 10))
    create("transposed", temperatures(), filters=[*PACKED, TransposeCodec(order=(1, 0))], fill_value=np.nan)
    absent = root.create_array(
        "packed_absent",
        shape=(10, 12),
        dtype="f4",
        chunks=(4, 5),
        fill_value=0.1,
        filters=[ScaleOffset(offset=5, scale=3), CastValue(data_type="int32")],
        dimension_names=("y", "x"),
    )
    absent[:4, :5] = ramp("f4")[:4, :5]
    create("scaled_integers", ramp("i2"), filters=[ScaleOffset(offset=3, scale=2)])
    top = 1 << 63
    create("scaled_uint64", ramp("u8") + np.uint64(top), filters=[ScaleOffset(offset=top)], fill_value=top)
    rounded = CastValue(data_type="float32", rounding="towards-zero", out_of_range="clamp")
    create("rounded", ramp("i2"), filters=[rounded])
    create("single", ramp("i4"), filters=[CastValue(data_type="uint8")], serializer=BytesCodec(endian=None))
    create("directed", ramp("i8"), filters=[CastValue(data_type="float64", rounding="towards-positive")])
    create("records", records())
    create("records_big", records(), serializer=BytesCodec(endian="big"))
    create("times", ramp("i8").astype("M8[s]"))
    create("texts", ramp("i4").astype("U4"))
    create("characters", ramp("i4").astype("S4"))
    create("opaque", np.frombuffer(ramp("i4").tobytes(), "V4").reshape(10, 12))


def main() -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, zarr.config.set({"array.rectilinear_chunks": True}):
        store = Path(folder, "made", "a.zarr")
        root = zarr.create_group(store)
        write(root)
        zarr.consolidate_metadata(store)
        values: Any = {name: np.frombuffer(array[:].tobytes(), "u1") for name, array in root.arrays()}
        np.savez_compressed(store.parent / "values.npz", **values)
        shutil.make_archive(str(HERE / "zarr-3.4"), "zip", store.parent)


if __name__ == "__main__":
    main()
