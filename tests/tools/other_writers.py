"""Write files and stores as other people's programs write them: food for `sweep.py`.

python3.13 -m venv writers && writers/bin/pip install zarr ome-zarr ngff-zarr anndata mudata bio2zarr rioxarray tensorstore \
    zarrs h5netcdf netCDF4 tables hdf5storage hdf5plugin kerchunk fastparquet icechunk virtualizarr pynwb hdmf-zarr \
    nexusformat xdggs pcodec dask scipy
writers/bin/python tests/tools/other_writers.py FOLDER [FAMILY]...

It imports no tamis. A family whose package is absent is left out, and named at the end. The content is the same in each run.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import shutil
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FAMILIES: dict[str, Callable[[Path], Iterator[str]]] = {}
RANDOM = np.random.default_rng(45)


def family(function: Callable[[Path], Iterator[str]]) -> Callable[[Path], Iterator[str]]:
    """Register a function that writes files into a folder, and yields the name of each."""
    FAMILIES[function.__name__] = function
    return function


def field(*shape: int, dtype: str = "f4") -> Any:
    """Return a smooth field with noise."""
    total = np.zeros(shape)
    for axis, extent in enumerate(shape):
        places = np.linspace(0, 3 + axis, extent)
        total = total + np.sin(places).reshape([-1 if number == axis else 1 for number in range(len(shape))])
    values = 280 + 20 * total + RANDOM.normal(0, 0.1, shape)
    return values.astype(dtype)


# Zarr: zarr-python itself, with every option

KINDS = (
    *("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"),
    *("S5", "U3", "M8[s]", "m8[D]", "V4"),
)
"""Types of values that both versions of the format have."""


@family
def zarr_python_2(folder: Path) -> Iterator[str]:
    """Every data type, order, separator, filter and compressor of Zarr 2."""
    import numcodecs
    import zarr

    kinds = [*KINDS, "S1", "M8[ns]"]
    for order in "CF":
        root = zarr.open_group(folder / f"types_{order}.zarr", mode="w", zarr_format=2)
        for kind in kinds:
            for endian in "<>":
                dtype = np.dtype(kind).newbyteorder(endian)
                if (kind[0] in "ifuc" and np.dtype(kind).itemsize > 1) or endian == "<":
                    values = (np.arange(35) % 2).astype("u1") if kind == "b1" else np.arange(35)
                    values = values.astype(f"S{4}").astype("V4") if kind[0] == "V" else values.astype(dtype)
                    array = root.create_array(
                        f"{kind.replace('[', '_').strip(']')}_{'le' if endian == '<' else 'be'}",
                        shape=(5, 7), chunks=(2, 3), dtype=dtype, order=order, compressors=None if endian == ">" else "auto",
                    )  # fmt: skip
                    array[...] = values.reshape(5, 7)
        yield f"types_{order}.zarr"
    compressors = {
        "zlib": numcodecs.Zlib(4), "gzip": numcodecs.GZip(4), "bz2": numcodecs.BZ2(4), "lzma": numcodecs.LZMA(),
        "lz4": numcodecs.LZ4(), "zstd": numcodecs.Zstd(3), "zstd_checksum": numcodecs.Zstd(3, checksum=True),
        "blosc_lz4": numcodecs.Blosc("lz4"), "blosc_lz4hc": numcodecs.Blosc("lz4hc", shuffle=2),
        "blosc_zstd": numcodecs.Blosc("zstd", shuffle=1), "blosc_zlib": numcodecs.Blosc("zlib", shuffle=0),
        "blosc_blocks": numcodecs.Blosc("blosclz", 9, 1, 256), "none": None,
    }  # fmt: skip
    filters: dict[str, list[Any]] = {
        "none": [], "shuffle": [numcodecs.Shuffle(4)], "delta": [numcodecs.Delta("f4")],
        "fixed": [numcodecs.FixedScaleOffset(280, 100, "f4", "i2")], "quantize": [numcodecs.Quantize(2, "f4")],
        "bitround": [numcodecs.BitRound(9)], "astype": [numcodecs.AsType("f4", "f8")], "crc32": [numcodecs.CRC32()],
        "adler32": [numcodecs.Adler32()], "fletcher32": [numcodecs.Fletcher32()], "jenkins": [numcodecs.JenkinsLookup3()],
        "two": [numcodecs.Delta("f4"), numcodecs.Shuffle(4)],
    }  # fmt: skip
    for name, chain in filters.items():
        root = zarr.open_group(folder / f"filters_{name}.zarr", mode="w", zarr_format=2)
        for word, compressor in compressors.items():
            try:
                array = root.create_array(
                    word, shape=(20, 30), chunks=(8, 16), dtype="f4", filters=chain or None, compressors=compressor
                )
                array[...] = field(20, 30)
            except Exception as error:
                print("not written:", name, word, error)
        yield f"filters_{name}.zarr"
    for separator in "./":
        root = zarr.open_group(
            folder / f"separator_{'dot' if separator == '.' else 'slash'}.zarr", mode="w", zarr_format=2
        )
        for shape in ((), (0,), (1,), (7,), (3, 0), (2, 3, 4), (1, 2, 3, 2, 1)):
            array = root.create_array(
                "r" + "x".join(map(str, shape)), shape=shape, dtype="i4", chunks=tuple(max(1, n // 2) for n in shape),
                chunk_key_encoding={"name": "v2", "separator": separator},
            )  # fmt: skip
            if array.size:
                array[...] = np.arange(array.size).reshape(shape)
        yield f"separator_{'dot' if separator == '.' else 'slash'}.zarr"
    fills = {"f4": [None, 0, np.nan, np.inf, -np.inf, -9999.0], "i2": [None, 0, -32768], "S3": [None, b"", b"ab"],
             "b1": [None, True], "c8": [None, 1 + 2j], "u8": [None, 2**64 - 1], "M8[s]": [None, np.datetime64("NaT", "s")]}  # fmt: skip
    root = zarr.open_group(folder / "fill_values.zarr", mode="w", zarr_format=2, attributes={"title": "fill"})
    for kind, values in fills.items():
        for number, fill in enumerate(values):
            array = root.create_array(
                f"{kind.replace('[', '_').strip(']')}_{number}", shape=(6,), chunks=(3,), dtype=kind, fill_value=fill
            )
            array[:3] = np.arange(3).astype(kind)
    yield "fill_values.zarr"
    records = np.dtype([("x", "<i4"), ("y", ">f8"), ("name", "S4")])
    root = zarr.open_group(folder / "records.zarr", mode="w", zarr_format=2)
    array = root.create_array("r", shape=(4,), chunks=(2,), dtype=records)
    array[...] = np.zeros(4, records)
    yield "records.zarr"
    single = zarr.create_array(folder / "one_array.zarr", shape=(10, 10), chunks=(5, 5), dtype="f4", zarr_format=2)
    single[...] = field(10, 10)
    single.attrs["units"] = "K"
    yield "one_array.zarr"
    root = zarr.open_group(folder / "consolidated.zarr", mode="w", zarr_format=2)
    inner = root.create_group("a/b/c", attributes={"deep": {"er": [1, None, True]}})
    inner.create_array("x", shape=(5,), dtype="f8", attributes={"n": float("nan"), "big": 2**63, "e": []})[:] = 1
    zarr.consolidate_metadata(folder / "consolidated.zarr", zarr_format=2)
    yield "consolidated.zarr"
    from numcodecs import VLenUTF8

    root = zarr.open_group(folder / "texts.zarr", mode="w", zarr_format=2)
    try:
        root.create_array("v", shape=(3,), dtype=str, filters=[VLenUTF8()])[:] = np.array(["a", "ü", ""], dtype=object)
    except Exception as error:
        print("not written: texts", error)
    yield "texts.zarr"


@family
def zarr_python_3(folder: Path) -> Iterator[str]:
    """Every data type, codec, key encoding and shard of Zarr 3."""
    import zarr
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

    root = zarr.open_group(folder / "types.zarr", mode="w", zarr_format=3)
    for kind in KINDS:
        try:
            array = root.create_array(kind.replace("[", "_").strip("]"), shape=(5, 7), chunks=(2, 3), dtype=kind)
            values = np.arange(35) % 2
            array[...] = (values.astype("S4").astype("V4") if kind == "V4" else values.astype(kind)).reshape(5, 7)
        except Exception as error:
            print("not written: v3", kind, error)
    try:
        root.create_array("text", shape=(3,), dtype=str)[:] = np.array(["a", "ü", ""])
    except Exception as error:
        print("not written: v3 text", error)
    yield "types.zarr"
    for kind in ("i4", "f4", "S5", "U3", "M8[s]"):
        name = f"type_{kind.replace('[', '_').strip(']')}.zarr"
        array = zarr.create_array(folder / name, shape=(6, 4), chunks=(4, 4), dtype=kind, attributes={"units": "K"})
        array[...] = np.arange(24).reshape(6, 4).astype(kind)
        yield name
    codecs: dict[str, dict[str, Any]] = {
        "none": {"compressors": None}, "gzip": {"compressors": GzipCodec(level=4)}, "zstd": {"compressors": ZstdCodec(level=4)},
        "blosc": {"compressors": BloscCodec(cname="zstd", shuffle="bitshuffle")},
        "two": {"compressors": [ZstdCodec(), GzipCodec()]}, "crc": {"compressors": [ZstdCodec(), Crc32cCodec()]},
        "big": {"serializer": BytesCodec(endian="big")}, "transposed": {"filters": [TransposeCodec(order=(1, 0))]},
        "crc_alone": {"compressors": [Crc32cCodec()]},
    }  # fmt: skip
    import numcodecs.zarr3 as extra

    for name, call in {
        "nc_shuffle": lambda: {"compressors": [extra.Shuffle(elementsize=4), extra.Zlib(level=4)]},
        "nc_bz2": lambda: {"compressors": extra.BZ2(level=4)}, "nc_lz4": lambda: {"compressors": extra.LZ4()},
        "nc_lzma": lambda: {"compressors": extra.LZMA()}, "nc_delta": lambda: {"filters": extra.Delta(dtype="<f4")},
        "nc_bitround": lambda: {"filters": extra.BitRound(keepbits=9)},
        "nc_fixed": lambda: {"filters": extra.FixedScaleOffset(offset=280, scale=100, dtype="<f4", astype="<i2")},
        "nc_quantize": lambda: {"filters": extra.Quantize(digits=2, dtype="<f4")},
        "nc_astype": lambda: {"filters": extra.AsType(encode_dtype="<f8", decode_dtype="<f4")},
        "nc_fletcher": lambda: {"compressors": extra.Fletcher32()}, "nc_pcodec": lambda: {"serializer": extra.PCodec()},
        "nc_zfpy": lambda: {"serializer": extra.ZFPY(mode=4, tolerance=0.01)}, "nc_packbits": lambda: {"filters": extra.PackBits()},
    }.items():  # fmt: skip
        try:
            codecs[name] = call()
        except Exception as error:
            print("not written: codec", name, error)
    for name, words in codecs.items():
        try:
            array = zarr.create_array(
                folder / f"codec_{name}.zarr",
                shape=(20, 30),
                chunks=(8, 16),
                dtype="f4",
                dimension_names=("y", "x"),
                **words,
            )
            array[...] = field(20, 30)
        except Exception as error:
            shutil.rmtree(folder / f"codec_{name}.zarr", ignore_errors=True)
            print("not written: codec", name, error)
            continue
        yield f"codec_{name}.zarr"
    for name, words in {
        "shards": {"shards": (16, 16)}, "shards_v2_keys": {"shards": (16, 16), "chunk_key_encoding": {"name": "v2", "separator": "/"}},
        "keys_dot": {"chunk_key_encoding": {"name": "default", "separator": "."}},
        "keys_v2": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
        "shards_order": {"shards": (16, 16), "filters": TransposeCodec(order=(1, 0))},
    }.items():  # fmt: skip
        root = zarr.open_group(folder / f"{name}.zarr", mode="w", zarr_format=3)
        array = root.create_array("x", shape=(20, 30), chunks=(8, 8), dtype="f4", fill_value=np.nan, **words)
        array[:9] = field(9, 30)
        yield f"{name}.zarr"
    root = zarr.open_group(folder / "fill_values.zarr", mode="w", zarr_format=3)
    for kind, values in {"f4": [np.nan, np.inf, -np.inf, -0.0, 1e-40], "f8": [np.nan, 9.96921e36], "c8": [1 + 2j, complex("nan")],
                         "b1": [True], "u8": [2**64 - 1], "i8": [-(2**63)]}.items():  # fmt: skip
        for number, fill in enumerate(values):
            array = root.create_array(f"{kind}_{number}", shape=(6,), chunks=(3,), dtype=kind, fill_value=fill)
            array[:3] = np.arange(3).astype(kind)
    yield "fill_values.zarr"
    root = zarr.open_group(folder / "shapes.zarr", mode="w", zarr_format=3)
    for shape in ((), (0,), (1,), (3, 0), (2, 3, 4), (1, 2, 3, 2, 1)):
        array = root.create_array(
            "r" + "x".join(map(str, shape)), shape=shape, dtype="i4", chunks=tuple(max(1, n // 2) for n in shape)
        )
        if array.size:
            array[...] = np.arange(array.size).reshape(shape)
    yield "shapes.zarr"
    path = folder / "zipped.zarr.zip"
    with zarr.storage.ZipStore(path, mode="w") as store:
        root = zarr.create_group(store, attributes={"a": [1, 2.5, None]})
        root.create_array("x", shape=(5,), dtype="f4")[:] = 1
    yield path.name


@family
def old_zarr_python_2(folder: Path) -> Iterator[str]:
    """Zarr 2 as zarr-python 2 wrote it (needs zarr<3): object codecs, records with axes, N5, zip, nested directories."""
    import numcodecs
    import zarr

    if not zarr.__version__.startswith("2"):
        raise ImportError("zarr<3")
    root = zarr.open_group(str(folder / "objects.zarr"), mode="w")
    words = np.array(["a", "ü", "", "long text"], object)
    for name, codec, values in (
        ("vlen_utf8", numcodecs.VLenUTF8(), words), ("vlen_bytes", numcodecs.VLenBytes(), np.array([b"a", b"", b"c\0d", b"e"], object)),
        ("json", numcodecs.JSON(), np.array([{"a": 1}, [1, 2], None, "x"], object)), ("msgpack", numcodecs.MsgPack(), words),
        ("pickle", numcodecs.Pickle(), words), ("categorize", numcodecs.Categorize(["a", "ü", "", "long text"], object), words),
        ("ragged", numcodecs.VLenArray("i4"), np.array([np.arange(n, dtype="i4") for n in range(4)] + [None], object)[:4]),
    ):  # fmt: skip
        array = root.create_dataset(name, shape=(4,), dtype=object, object_codec=codec, chunks=(3,))
        array[:] = values
        one = zarr.open_group(str(folder / f"object_{name}.zarr"), mode="w").create_dataset(
            "x", shape=(4,), dtype=object, object_codec=codec, chunks=(3,)
        )
        one[:] = values
        yield f"object_{name}.zarr"
    yield "objects.zarr"
    records = np.dtype(
        [("x", "<i4"), ("y", ">f8"), ("name", "S4"), ("v", "<f4", (2,)), ("in", [("a", "u1"), ("b", "M8[s]")])]
    )
    root = zarr.open_group(str(folder / "records.zarr"), mode="w")
    root.create_dataset("r", shape=(4,), chunks=(2,), dtype=records)[:2] = np.ones(2, records)
    root.create_dataset(
        "simple",
        shape=(4,),
        chunks=(2,),
        dtype=[("a", "<i4"), ("b", "<f8")],
        fill_value=np.array((1, 2.0), [("a", "<i4"), ("b", "<f8")])[()],
    )[:2] = np.ones(2, [("a", "<i4"), ("b", "<f8")])
    yield "records.zarr"
    nested = zarr.open_group(zarr.NestedDirectoryStore(str(folder / "nested.zarr")), mode="w")
    nested.create_dataset("a/b/x", data=field(20, 30), chunks=(8, 8), write_empty_chunks=False)
    yield "nested.zarr"
    with zarr.ZipStore(str(folder / "zipped.zarr.zip"), mode="w") as store:
        zarr.open_group(store, mode="w").create_dataset("x", data=field(20, 30), chunks=(8, 8))
    yield "zipped.zarr.zip"
    n5 = zarr.open_group(zarr.N5Store(str(folder / "zarr.n5")), mode="w")
    n5.create_dataset("x", data=field(20, 30), chunks=(8, 8))
    yield "zarr.n5"
    for kind in ("<M8[ns]", "<m8[s]", "<U3", "|b1", "|S3", "<f2"):
        name = "".join(letter for letter in kind if letter.isalnum())
        array = zarr.open_array(
            str(folder / f"alone_{name}.zarr"), mode="w", shape=(5,), chunks=(2,), dtype=kind, fill_value=None
        )
        array[:3] = np.arange(3).astype(kind)
        yield f"alone_{name}.zarr"
    import xarray as xr

    _dataset("era5").to_zarr(str(folder / "era5.zarr"), encoding={"valid_time": ENCODINGS["era5"]["valid_time"]})
    yield "era5.zarr"
    xr.Dataset(
        {
            "o": ("x", np.array(["a", "bb", "ü"], object)),
            "t": ("x", np.array(["a", "bb", "c"])),
            "b": ("x", [True, False, True]),
        }
    ).to_zarr(str(folder / "texts.zarr"))
    yield "texts.zarr"


@family
def cdl(folder: Path) -> Iterator[str]:
    """What ncgen makes of the texts in the sources of netCDF-C, NCO and others, in each format: needs CDL below folder/../cdl."""
    for source in sorted((folder.parent.parent / "cdl").rglob("*.cdl")):
        for kind in ("classic", "nc4"):
            name = f"{source.parent.name}_{source.stem}_{kind}.nc"
            command = ["timeout", "20", "ncgen", "-k", kind, "-o", folder / name, source]
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode == 0 and (folder / name).exists() and (folder / name).stat().st_size < 5_000_000:
                yield name
            else:
                (folder / name).unlink(missing_ok=True)


@family
def rectilinear(folder: Path) -> Iterator[str]:
    """Rectilinear chunks, extensions, must_understand: documents by hand, where no writer is at hand."""
    base = {
        "zarr_format": 3, "node_type": "array", "shape": [6], "data_type": "int16", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {},
    }  # fmt: skip
    changes: dict[str, dict[str, Any]] = {
        "short_names": {"chunk_key_encoding": "default", "codecs": ["bytes", "crc32c"], "data_type": "int8"},
        "bytes_only": {"codecs": ["bytes"], "data_type": "uint8"},
        "storage_transformers": {"storage_transformers": []},
        "must_understand": {"extra": {"must_understand": False, "note": 1}},
        "must_understand_true": {"extra": {"note": 1}},
        "rectilinear": {"chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, 2, 3]]}}},
        "dimension_null": {"dimension_names": [None]}, "dimension_empty": {"dimension_names": [""]},
        "no_attributes": {"attributes": None}, "bfloat16": {"data_type": "bfloat16", "fill_value": 0.0},
        "int4": {"data_type": "int4"}, "float8": {"data_type": "float8_e4m3fn", "fill_value": 0.0},
        "hex_fill": {"data_type": "float32", "fill_value": "0x7fc00001"}, "raw": {"data_type": "r16", "fill_value": [0, 0]},
        "complex_short": {"data_type": "complex64", "fill_value": ["NaN", "0x7f800000"]},
        "datetime": {"data_type": {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, "fill_value": -(2**63)},
    }  # fmt: skip
    for name, change in changes.items():
        document: dict[str, Any] = {**base, **change}
        if document["attributes"] is None:
            del document["attributes"]
        for inner in (True, False):
            root = folder / f"{name}_{'member' if inner else 'alone'}.zarr"
            place = root / "x" if inner else root
            place.mkdir(parents=True)
            if inner:
                (root / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))
                other = root / "other"
                other.mkdir()
                (other / "zarr.json").write_text(json.dumps(base))
                (other / "c").mkdir()
                (other / "c/0").write_bytes(np.arange(3, dtype="<i2").tobytes())
            (place / "zarr.json").write_text(json.dumps(document, indent=1))
            yield root.name


# Zarr by other writers


@family
def ome_zarr(folder: Path) -> Iterator[str]:
    """Images, labels, plates of ome-zarr and ngff-zarr, in each version."""
    import dask.array as da
    import zarr
    from ome_zarr import writer
    from ome_zarr.format import FormatV04, FormatV05

    for fmt, word in ((FormatV04(), "04"), (FormatV05(), "05")):
        zarr_format = fmt.zarr_format if hasattr(fmt, "zarr_format") else 2
        for axes in ("yx", "cyx", "tczyx", "zyx"):
            name = f"image_{word}_{axes}.zarr"
            shape = {"y": 65, "x": 70, "c": 2, "z": 5, "t": 2}
            root = zarr.open_group(folder / name, mode="w", zarr_format=zarr_format)
            data = field(*(shape[axis] for axis in axes), dtype="u2")
            writer.write_image(
                image=data,
                group=root,
                axes=axes,
                fmt=fmt,
                storage_options={"chunks": tuple(min(32, n) for n in data.shape)},
            )
            writer.write_labels((data > 280).astype("u1"), group=root, name="cells", axes=axes, fmt=fmt)
            yield name
        name = f"plate_{word}.zarr"
        root = zarr.open_group(folder / name, mode="w", zarr_format=zarr_format)
        writer.write_plate_metadata(root, ["A", "B"], ["1"], ["A/1", "B/1"], fmt=fmt)
        for row in "AB":
            well = root.require_group(row).require_group("1")
            writer.write_well_metadata(well, ["0"], fmt=fmt)
            writer.write_image(image=field(40, 40, dtype="u1"), group=well.require_group("0"), axes="yx", fmt=fmt)
        yield name
    import ngff_zarr

    for version in ("0.4", "0.5"):
        for name, words in {"plain": {}, "shards": {"chunks_per_shard": 2}}.items():
            if name == "shards" and version == "0.4":
                continue
            image = ngff_zarr.to_ngff_image(
                da.from_array(field(64, 64, dtype="u2"), chunks=16),
                dims=["y", "x"],
                scale={"y": 0.5, "x": 0.25},
                translation={"y": 1.0, "x": 2.0},
            )
            target = f"ngff_{name}_{version.replace('.', '')}.ome.zarr"
            scales = ngff_zarr.to_multiscales(image, scale_factors=1000, chunks=16)
            ngff_zarr.to_ngff_zarr(str(folder / target), scales, version=version, **words)
            yield target


def _anndata() -> Any:
    import anndata
    import pandas as pd
    import scipy.sparse as sp

    rows, columns = 30, 12
    return anndata.AnnData(
        X=sp.random(rows, columns, 0.2, "csr", "f4", random_state=1),
        obs=pd.DataFrame(
            {
                "cell": pd.Categorical(["T", "B", "T"] * 10), "ordered": pd.Categorical(["lo", "hi"] * 15, ["lo", "hi"], ordered=True),
                "n": np.arange(rows), "flag": np.arange(rows) % 2 == 0, "text": [f"s{i}" for i in range(rows)],
                "maybe": pd.array([1, None, 3] * 10, dtype="Int64"), "truth": pd.array([True, None, False] * 10, dtype="boolean"),
            }, index=[f"cell{i}" for i in range(rows)],
        ),
        var=pd.DataFrame({"gene": [f"g{i}" for i in range(columns)]}, index=[f"ENS{i}" for i in range(columns)]),
        obsm={"X_pca": field(rows, 3, dtype="f8"), "df": pd.DataFrame({"a": np.arange(rows)}, index=[f"cell{i}" for i in range(rows)])},
        layers={"counts": sp.random(rows, columns, 0.2, "csc", "f8", random_state=2), "dense": field(rows, columns)},
        obsp={"distances": sp.random(rows, rows, 0.1, "csr", random_state=3)},
        uns={"neighbors": {"params": {"method": "umap", "k": 15, "cut": 0.5, "use": True}}, "colors": np.array(["#ff0000", "#00ff00"]), "empty": {}, "none": None,
             "rec": np.array([(1, 2.0, "a")], dtype=[("i", "i4"), ("f", "f8"), ("s", "U3")])},
    )  # fmt: skip


@family
def anndata_(folder: Path) -> Iterator[str]:
    """AnnData and MuData in HDF5, Zarr 2 and Zarr 3."""
    import anndata

    for compression in (None, "gzip", "lzf"):
        name = f"plain_{compression}.h5ad"
        _anndata().write_h5ad(folder / name, compression=compression)
        yield name
    for version in (2, 3):
        anndata.settings.zarr_write_format = version
        name = f"plain_{version}.zarr"
        _anndata().write_zarr(folder / name)
        yield name
        name = f"chunks_{version}.zarr"
        _anndata().write_zarr(folder / name, chunks=(10, 5))
        yield name
    import mudata

    data = mudata.MuData({"rna": _anndata(), "prot": _anndata()})
    data.write(folder / "two.h5mu")
    yield "two.h5mu"
    data.write_zarr(folder / "two.zarr")
    yield "two.zarr"


VCF = """##fileformat=VCFv4.3
##contig=<ID=1,length=1000>
##contig=<ID=2,length=2000>
##FILTER=<ID=q10,Description="Quality below 10">
##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">
##INFO=<ID=AF,Number=A,Type=Float,Description="Frequency">
##INFO=<ID=DB,Number=0,Type=Flag,Description="dbSNP">
##INFO=<ID=AA,Number=1,Type=String,Description="Ancestral">
##INFO=<ID=C,Number=1,Type=Character,Description="c">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="Quality">
##FORMAT=<ID=HQ,Number=2,Type=Integer,Description="Haplotype">
##FORMAT=<ID=FT,Number=1,Type=String,Description="Filter">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tNA1\tNA2\tNA3
1\t14\trs1\tG\tA\t29\tPASS\tDP=14;AF=0.5;DB;AA=T;C=x\tGT:GQ:HQ:FT\t0|0:48:51,51:PASS\t1|0:48:51,51:q10\t1/1:43:.,.:.
1\t30\t.\tT\tA,GG\t.\tq10\tDP=11;AF=0.1,0.2\tGT:GQ\t0|1:3\t./.:.\t1|2:7
2\t110\trs9;rs10\tACG\tA\t67.5\tPASS\tDP=10\tGT\t0\t.\t1|1
2\t130\t.\tT\t.\t47\t.\t.\tGT:HQ\t0|0:56,60\t0|0:51,51\t0/0:.,.
"""


@family
def vcf_zarr(folder: Path) -> Iterator[str]:
    """VCF-Zarr by vcf2zarr."""
    import pysam
    from bio2zarr import vcf

    source = folder / "in.vcf"
    source.write_text(VCF)
    given = pysam.tabix_index(str(source), preset="vcf", force=True, keep_original=True)
    for version in (2, 3):
        for local in (False, True):
            name = f"sample_{version}{'_local' if local else ''}.vcz"
            vcf.convert([given], folder / name, worker_processes=0, local_alleles=local, zarr_format=version)
            yield name


@family
def tensorstore_(folder: Path) -> Iterator[str]:
    """Arrays of tensorstore: Zarr 2 and 3, each compressor, order, sharding; N5."""
    import tensorstore as ts

    two: dict[str, dict[str, Any]] = {
        "plain": {}, "zlib": {"compressor": {"id": "zlib", "level": 5}}, "blosc": {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}},
        "bz2": {"compressor": {"id": "bz2", "level": 3}}, "zstd": {"compressor": {"id": "zstd", "level": 3}}, "gzip": {"compressor": {"id": "gzip", "level": 3}},
        "f_order": {"order": "F"}, "slash": {"dimension_separator": "/"}, "none": {"compressor": None}, "null_fill": {"fill_value": None},
    }  # fmt: skip
    for name, extra in two.items():
        for dtype in ("<f4", ">i2", "|u1", "<c8"):
            target = f"zarr2_{name}_{dtype[1:]}.zarr"
            store = ts.open({"driver": "zarr", "kvstore": {"driver": "file", "path": str(folder / target)},
                             "metadata": {"shape": [20, 30], "chunks": [8, 16], "dtype": dtype, **extra}, "create": True}).result()  # fmt: skip
            store[:10].write(field(10, 30).astype(dtype.replace(">", "<"))).result()
            yield target
    record = ts.open({"driver": "zarr", "field": "x", "kvstore": {"driver": "file", "path": str(folder / "zarr2_record.zarr")},
                      "metadata": {"shape": [6], "chunks": [3], "dtype": [["x", "<i4"], ["y", "|u1", [2]]]}, "create": True}).result()  # fmt: skip
    record.write(np.arange(6, dtype="i4")).result()
    yield "zarr2_record.zarr"
    three: dict[str, list[Any]] = {
        "bytes": [{"name": "bytes", "configuration": {"endian": "little"}}], "big": [{"name": "bytes", "configuration": {"endian": "big"}}],
        "gzip": ["gzip"], "zstd": [{"name": "zstd", "configuration": {"level": 3}}], "blosc": [{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 3}}],
        "crc": ["crc32c"], "transpose": [{"name": "transpose", "configuration": {"order": [1, 0]}}, "gzip"],
        "shards": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 8], "codecs": ["gzip"]}}],
        "shards_start": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 8], "index_location": "start", "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, "gzip"]}}],
        "shards_in_shards": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [8, 8], "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 4]}}]}}],
    }  # fmt: skip
    for name, codecs in three.items():
        for dtype in ("float32", "int16", "bfloat16", "int4", "bool", "complex64"):
            target = f"zarr3_{name}_{dtype}.zarr"
            try:
                store = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(folder / target)},
                                 "metadata": {"shape": [16, 32], "data_type": dtype, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 16]}},
                                              "codecs": codecs, "dimension_names": ["y", "x"], "attributes": {"a": 1.0, "b": [1, "x", None]}}, "create": True}).result()  # fmt: skip
                store[:8].write(store[:8].read().result() + np.ones((8, 32)).astype(store.dtype.numpy_dtype)).result()
            except Exception as error:
                print("not written:", target, str(error)[:100])
                shutil.rmtree(folder / target, ignore_errors=True)
                continue
            yield target
    for compression in ("raw", "gzip", "bzip2", "blosc"):
        target = f"n5_{compression}.n5"
        words = {"type": compression, **({"cname": "lz4", "clevel": 5, "shuffle": 1} if compression == "blosc" else {})}
        store = ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": str(folder / target)},
                         "metadata": {"dimensions": [20, 30], "blockSize": [8, 16], "dataType": "float32", "compression": words}, "create": True}).result()  # fmt: skip
        store.write(field(20, 30)).result()
        yield target


@family
def zarrs_(folder: Path) -> Iterator[str]:
    """Arrays of zarr-python with the codec pipeline of zarrs."""
    import zarr
    import zarrs  # noqa: F401

    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        for name, words in {
            "plain": {}, "shards": {"shards": (16, 16)}, "gzip": {"compressors": zarr.codecs.GzipCodec()},
            "blosc": {"compressors": zarr.codecs.BloscCodec()}, "v2": {"zarr_format": 2},
        }.items():  # fmt: skip
            for dtype in ("f4", "u2", "f8", "b1"):
                array = zarr.create_array(
                    folder / f"{name}_{dtype}.zarr", shape=(20, 30), chunks=(8, 8), dtype=dtype, **words
                )
                array[:9, :17] = field(9, 17).astype(dtype)
                yield f"{name}_{dtype}.zarr"


@family
def acquire_zarr_(folder: Path) -> Iterator[str]:
    """Streams of microscopes by acquire-zarr."""
    import acquire_zarr as aqz

    for word, compress in (("plain", None), ("zstd", "zstd")):
        dims = [
            aqz.Dimension(name="t", kind=aqz.DimensionType.TIME, array_size_px=0, chunk_size_px=2, shard_size_chunks=1),
            aqz.Dimension(
                name="y", kind=aqz.DimensionType.SPACE, array_size_px=48, chunk_size_px=16, shard_size_chunks=3
            ),
            aqz.Dimension(
                name="x", kind=aqz.DimensionType.SPACE, array_size_px=64, chunk_size_px=32, shard_size_chunks=2
            ),
        ]
        words: dict[str, Any] = {}
        if compress:
            words["compression"] = aqz.CompressionSettings(
                codec=aqz.CompressionCodec.BLOSC_ZSTD, compressor=aqz.Compressor.BLOSC1, level=1, shuffle=1
            )
        settings = aqz.StreamSettings(
            arrays=[aqz.ArraySettings(output_key="raw" if word == "zstd" else "", dimensions=dims, data_type=aqz.DataType.UINT16, **words)],
            store_path=str(folder / f"{word}.zarr"), overwrite=True,
        )  # fmt: skip
        stream = aqz.ZarrStream(settings)
        stream.append(field(5, 48, 64, dtype="u2"))
        stream.close()
        yield f"{word}.zarr"


@family
def hdmf_zarr_(folder: Path) -> Iterator[str]:
    """NWB in HDF5 and Zarr."""
    import datetime

    from hdmf_zarr import NWBZarrIO
    from pynwb import NWBHDF5IO, NWBFile, TimeSeries

    for number, (target, opener) in enumerate((("one.nwb", NWBHDF5IO), ("one.nwb.zarr", NWBZarrIO))):
        file = NWBFile("session", f"id{number}", datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC))
        file.add_acquisition(TimeSeries(name="volts", data=field(200, 4), unit="V", rate=30.0))
        file.add_trial_column(name="stim", description="which")
        for start in range(5):
            file.add_trial(start_time=float(start), stop_time=start + 1.0, stim=f"s{start}")
        with opener(str(folder / target), mode="w") as io:
            io.write(file)
        yield target


# netCDF and its look-alikes


def _dataset(kind: str) -> Any:
    """Return a dataset of xarray with the names, types and attributes of a known archive."""
    import pandas as pd
    import xarray as xr

    lat, lon = np.linspace(90, -90, 13), np.linspace(0, 345, 24)
    if kind == "era5":  # of the new CDS: valid_time, number and expver as scalars or texts
        times = pd.date_range("2024-01-01", periods=6, freq="h")
        attributes = {"GRIB_paramId": np.int64(167), "GRIB_dataType": "an", "GRIB_numberOfPoints": np.int64(312), "GRIB_typeOfLevel": "surface",
                      "GRIB_stepUnits": np.int64(1), "GRIB_stepType": "instant", "GRIB_gridType": "regular_ll", "GRIB_missingValue": 3.4028234663852886e38,
                      "GRIB_iDirectionIncrementInDegrees": 15.0, "long_name": "2 metre temperature", "units": "K", "standard_name": "unknown"}  # fmt: skip
        return xr.Dataset(
            {"t2m": (("valid_time", "latitude", "longitude"), field(6, 13, 24), attributes),
             "tp": (("valid_time", "latitude", "longitude"), np.where(field(6, 13, 24) > 290, np.nan, 1e-5).astype("f4"), {"units": "m"})},
            {"valid_time": ("valid_time", times, {"long_name": "time", "standard_name": "time"}), "latitude": ("latitude", lat, {"units": "degrees_north", "stored_direction": "decreasing"}),
             "longitude": ("longitude", lon, {"units": "degrees_east"}), "number": ((), np.int64(0), {"units": "1"}),
             "expver": ("valid_time", np.array(["0001"] * 5 + ["0005"], dtype="<U4"))},
            {"GRIB_centre": "ecmf", "GRIB_subCentre": np.int64(0), "Conventions": "CF-1.7", "institution": "ECMWF", "history": "2024-01-01T00:00 GRIB to CDM+CF via cfgrib"},
        )  # fmt: skip
    if kind == "cmip6":
        import cftime

        times = [cftime.DatetimeNoLeap(1850, month, 16) for month in range(1, 7)]
        bounds = np.array(
            [
                [cftime.DatetimeNoLeap(1850, month, 1), cftime.DatetimeNoLeap(1850, month + 1, 1)]
                for month in range(1, 7)
            ]
        )
        return xr.Dataset(
            {"tas": (("time", "lat", "lon"), field(6, 13, 24), {"standard_name": "air_temperature", "units": "K", "cell_methods": "area: time: mean", "cell_measures": "area: areacella",
                     "missing_value": np.float32(1e20), "original_name": "T", "comment": "ü"}),
             "time_bnds": (("time", "bnds"), bounds), "lat_bnds": (("lat", "bnds"), np.stack([lat - 7, lat + 7], -1)), "lon_bnds": (("lon", "bnds"), np.stack([lon - 7, lon + 7], -1)),
             "height": ((), 2.0, {"units": "m", "positive": "up", "axis": "Z"}), "type": ((), np.bytes_(b"typebare"))},
            {"time": ("time", times, {"bounds": "time_bnds", "axis": "T"}), "lat": ("lat", lat, {"bounds": "lat_bnds"}), "lon": ("lon", lon, {"bounds": "lon_bnds"})},
            {"Conventions": "CF-1.7 CMIP-6.2", "mip_era": "CMIP6", "realization_index": np.int32(1), "branch_time_in_child": 0.0, "variant_label": "r1i1p1f1", "table_id": "Amon"},
        )  # fmt: skip
    if kind == "oisst":
        return xr.Dataset(
            {"sst": (("time", "zlev", "lat", "lon"), np.where(field(2, 1, 13, 24) > 300, np.nan, field(2, 1, 13, 24) - 273).astype("f4"), {"long_name": "Daily sea surface temperature", "units": "Celsius",
                     "valid_min": np.int16(-300), "valid_max": np.int16(4500)})},
            {"time": ("time", pd.date_range("2024-01-01T12", periods=2)), "zlev": ("zlev", np.zeros(1, "f4")), "lat": lat.astype("f4"), "lon": lon.astype("f4")},
            {"Conventions": "CF-1.6, ACDD-1.3", "id": "oisst-avhrr-v02r01", "time_coverage_start": "2024-01-01T00:00:00Z"},
        )  # fmt: skip
    raise ValueError(kind)


ENCODINGS: dict[str, dict[str, Any]] = {
    "era5": {"t2m": {"zlib": True, "complevel": 1, "shuffle": True, "_FillValue": np.float32(np.nan)}, "valid_time": {"units": "seconds since 1970-01-01", "calendar": "proleptic_gregorian", "dtype": "i8"}},
    "cmip6": {"tas": {"zlib": True, "shuffle": True, "_FillValue": np.float32(1e20), "chunksizes": (1, 13, 24)}, "time": {"units": "days since 1850-01-01", "dtype": "f8", "_FillValue": None}},
    "oisst": {"sst": {"dtype": "i2", "scale_factor": np.float32(0.01), "add_offset": np.float32(0), "_FillValue": np.int16(-999), "zlib": True}},
}  # fmt: skip


@family
def xarray_(folder: Path) -> Iterator[str]:
    """ERA5, CMIP6, OISST as xarray writes them, by each engine, and to Zarr 2 and 3."""
    for kind in ("era5", "cmip6", "oisst"):
        data, encoding = _dataset(kind), ENCODINGS[kind]
        for engine in ("netcdf4", "h5netcdf"):
            data.to_netcdf(
                folder / f"{kind}_{engine}.nc",
                engine=engine,
                encoding=encoding,
                unlimited_dims=[next(iter(data.sizes))],
            )
            yield f"{kind}_{engine}.nc"
        classic = data.drop_vars("expver") if kind == "era5" else data
        classic.to_netcdf(folder / f"{kind}_classic.nc", format="NETCDF3_64BIT")
        yield f"{kind}_classic.nc"
        cleaned = {
            name: {
                key: value for key, value in words.items() if key not in ("zlib", "complevel", "shuffle", "chunksizes")
            }
            for name, words in encoding.items()
        }
        for version in (2, 3):
            data.to_zarr(
                folder / f"{kind}_{version}.zarr",
                zarr_format=version,
                encoding=cleaned,
                mode="w",
                consolidated=version == 2,
            )
            yield f"{kind}_{version}.zarr"
    import xarray as xr

    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"t": 1}), "/a": _dataset("oisst"), "/b/c": _dataset("era5")})
    tree.to_netcdf(folder / "tree.nc")
    yield "tree.nc"
    for version in (2, 3):
        tree.to_zarr(folder / f"tree_{version}.zarr", zarr_format=version)
        yield f"tree_{version}.zarr"
    odd = xr.Dataset(
        {"bool": ("x", [True, False, True]), "str": ("x", np.array(["a", "bb", ""])), "obj": ("x", np.array(["ü", "b", "c"], object)), "bytes": ("x", np.array([b"a", b"bb", b"c"])),
         "dt": ("x", np.array(["2000-01-01", "NaT", "2000-01-03"], "M8[ns]")), "td": ("x", np.array([1, 2, 3], "m8[s]").astype("m8[ns]")), "f2": ("x", np.arange(3, dtype="f2")),
         "u8": ("x", np.array([0, 1, 2**64 - 1], "u8")), "scalar": 1.5, "text": "hello"},
        attrs={"list": [1, 2, 3], "texts": ["a", "b"], "empty": "", "f4": np.float32(1.5)},
    )  # fmt: skip
    odd.drop_vars("f2").to_netcdf(folder / "odd.nc")
    yield "odd.nc"
    for version in (2, 3):
        odd.to_zarr(folder / f"odd_{version}.zarr", zarr_format=version)
        yield f"odd_{version}.zarr"


@family
def geozarr(folder: Path) -> Iterator[str]:
    """GeoZarr: CRS as a grid_mapping variable, rasters of rioxarray, pyramids with tile matrix sets, conventions by name."""
    import rioxarray  # noqa: F401
    import xarray as xr
    import zarr

    data = xr.Dataset({"b02": (("y", "x"), field(64, 64, dtype="u2"), {"units": "1"})},
                      {"y": np.arange(64)[::-1] * 10.0 + 5e6, "x": np.arange(64) * 10.0 + 3e5}).rio.write_crs(32632).rio.write_transform()  # fmt: skip
    for version in (2, 3):
        name = f"rio_{version}.zarr"
        data.to_zarr(folder / name, zarr_format=version)
        yield name
        name = f"pyramid_{version}.zarr"
        zarr.open_group(folder / name, mode="w", zarr_format=version, attributes={
            "zarr_conventions": [{"uuid": "d35379db-88df-4056-af3a-620245f8e347", "name": "multiscales"}, {"uuid": "f17cb550-5864-4468-aeb7-f3180cfb622f", "name": "proj:"}],
            "multiscales": {"tile_matrix_set": "WebMercatorQuad", "tile_matrix_limits": {"0": {"minTileCol": 0}}, "layout": [{"asset": "r10m", "transform": {"scale": [1.0, 1.0]}}, {"asset": "r20m", "derived_from": "r10m"}]},
            "proj:epsg": 32632, "spatial:bbox": [3e5, 5e6, 300640.0, 5000640.0]})  # fmt: skip
        for level, step in (("r10m", 1), ("r20m", 2), ("r60m", 4)):
            data.isel(y=slice(None, None, step), x=slice(None, None, step)).to_zarr(
                folder / name, group=level, zarr_format=version, mode="a", consolidated=False
            )
        yield name
    data.to_netcdf(folder / "rio.nc")
    yield "rio.nc"
    flat = zarr.open_group(
        folder / "stac.zarr",
        mode="w",
        zarr_format=2,
        attributes={
            "stac_discovery": {
                "id": "S2A",
                "bbox": [1, 2, 3.5, 4],
                "properties": {"datetime": None, "eo:cloud_cover": 1e-5},
                "links": [],
            },
            "other_metadata": {},
        },
    )
    flat.create_group("measurements/reflectance/r10m").create_array(
        "b02",
        shape=(8, 8),
        dtype="u2",
        chunks=(4, 4),
        attributes={
            "_ARRAY_DIMENSIONS": ["y", "x"],
            "_eopf_attrs": {"add_offset": -0.1, "fill_value": 0, "dtype": "<u2"},
        },
    )[:] = 3
    flat.create_group("conditions")
    zarr.consolidate_metadata(folder / "stac.zarr", zarr_format=2)
    yield "stac.zarr"


@family
def netcdf4(folder: Path) -> Iterator[str]:
    """Argo, WRF, ROMS, radar and satellite files by netCDF4; every type, storage and odd name."""
    import netCDF4

    with netCDF4.Dataset(folder / "argo_R6901_001.nc", "w", format="NETCDF3_CLASSIC") as file:
        _argo(file)
    yield "argo_R6901_001.nc"
    with netCDF4.Dataset(folder / "argo_traj4.nc", "w", format="NETCDF4") as file:
        _argo(file)
    yield "argo_traj4.nc"
    with netCDF4.Dataset(folder / "argo_classic_model.nc", "w", format="NETCDF4_CLASSIC") as file:
        _argo(file)
    yield "argo_classic_model.nc"
    for form in ("NETCDF4", "NETCDF3_64BIT_OFFSET"):
        with netCDF4.Dataset(folder / f"wrfout_d01_{form}", "w", format=form) as file:
            for name, extent in {
                "Time": None,
                "DateStrLen": 19,
                "west_east": 10,
                "south_north": 8,
                "bottom_top": 3,
                "west_east_stag": 11,
            }.items():
                file.createDimension(name, extent)
            times = file.createVariable("Times", "S1", ("Time", "DateStrLen"))
            times[:2] = np.array([list("2024-01-01_00:00:00"), list("2024-01-01_01:00:00")], "S1")
            for name, axes in {
                "T": ("Time", "bottom_top", "south_north", "west_east"),
                "U": ("Time", "bottom_top", "south_north", "west_east_stag"),
                "XLAT": ("Time", "south_north", "west_east"),
            }.items():
                variable = file.createVariable(name, "f4", axes)
                variable.setncatts(
                    {
                        "FieldType": np.int32(104),
                        "MemoryOrder": "XYZ",
                        "description": "",
                        "units": "K",
                        "stagger": "",
                        "coordinates": "XLONG XLAT XTIME",
                    }
                )
                variable[:2] = field(2, *(len(file.dimensions[axis]) for axis in axes[1:]))
            file.setncatts(
                {
                    "TITLE": " OUTPUT FROM WRF V4.4 MODEL",
                    "START_DATE": "2024-01-01_00:00:00",
                    "DX": np.float32(3000),
                    "GRID_ID": np.int32(1),
                    "MMINLU": "MODIFIED_IGBP_MODIS_NOAH",
                    "NUM_LAND_CAT": np.int32(21),
                }
            )
        yield f"wrfout_d01_{form}"
    with netCDF4.Dataset(folder / "types.nc", "w") as file:
        file.createDimension("x", 5), file.createDimension("u", None), file.createDimension("none", 0)
        for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"):
            file.createVariable(kind, kind, ("x",))[:] = np.arange(5)
            file.createVariable(f"fill_{kind}", kind, ("u", "x"), fill_value=np.array(7).astype(kind)[()], zlib=True)[
                1
            ] = np.arange(5)
            file.createVariable(f"nofill_{kind}", kind, ("x",), fill_value=False)[:] = 1
            file.createVariable(f"big_{kind}", kind, ("x",), endian="big")[:] = np.arange(5)
            file.setncattr(f"a_{kind}", np.array([1, 2], kind))
            file.setncattr(f"s_{kind}", np.array(1, kind)[()])
        file.createVariable("text", str, ("x",))[:] = np.array(["a", "ü", "", "long text", " x "], object)
        file.createVariable("scalar_text", str)[...] = "one"
        file.createVariable("char", "S1", ("x",))[:] = np.array(list("abcde"), "S1")
        file.createVariable("unwritten", "f4", ("u", "x"))
        file.createVariable("empty", "f4", ("none",))
        (
            file.setncattr_string("strings", ["a", "ü"]),
            file.setncattr_string("one_string", "x"),
            file.setncattr("empty", ""),
        )
        file.setncattr("mixed", "line1\nline2\ttab")
    yield "types.nc"
    with netCDF4.Dataset(folder / "user_types.nc", "w") as file:
        file.createDimension("x", 3)
        compound = file.createCompoundType(np.dtype([("i", "i4"), ("f", "f8")]), "pair_t")
        file.createVariable("pairs", compound, ("x",))[:] = np.array([(1, 2.0)] * 3, compound.dtype)
        enum = file.createEnumType(np.uint8, "cloud_t", {"Clear": 0, "Cumulus": 1, "Missing": 255})
        file.createVariable("clouds", enum, ("x",), fill_value=255)[:2] = [0, 1]
        lists = file.createVLType(np.int32, "list_t")
        variable = file.createVariable("lists", lists, ("x",))
        for number in range(3):
            variable[number] = np.arange(number, dtype="i4")
        inner = file.createGroup("inner")
        inner.createVariable("clouds", enum, ("x",))[:] = 0
    yield "user_types.nc"
    with netCDF4.Dataset(folder / "user_enum.nc", "w") as file:
        file.createDimension("x", 3)
        enum = file.createEnumType(np.int16, "k_t", {"a b": -1, "c,d": 5})
        file.createVariable("k", enum, ("x",), fill_value=5)[:2] = [-1, 5]
    yield "user_enum.nc"
    with netCDF4.Dataset(folder / "groups.nc", "w") as file:
        file.createDimension("x", 4)
        one, two = file.createGroup("one"), file.createGroup("one/two")
        two.createDimension("x", 3), one.createDimension("t", None)
        one.createVariable("v", "f4", ("t", "x"))[:2] = 1
        two.createVariable("v", "f4", ("x",))[:] = 2
        two.createVariable("x", "f4", ("x",))[:] = [1, 2, 3]
        two.createVariable("t", "f8", ("t",))
        file.createGroup("empty group").setncattr("a b", 1)
    yield "groups.nc"
    filters: dict[str, dict[str, Any]] = {
        "zlib": {"compression": "zlib", "complevel": 4}, "zstd": {"compression": "zstd"}, "bzip2": {"compression": "bzip2"}, "blosc": {"compression": "blosc_zstd"}, "szip": {"compression": "szip"},
        "fletcher": {"fletcher32": True}, "quantized": {"compression": "zlib", "significant_digits": 3, "quantize_mode": "GranularBitRound"}, "bitgroom": {"compression": "zlib", "least_significant_digit": 2},
        "contiguous": {"contiguous": True},
    }  # fmt: skip
    for name, words in filters.items():
        with netCDF4.Dataset(folder / f"filter_{name}.nc", "w") as file:
            file.createDimension("y", 20), file.createDimension("x", 30)
            try:
                file.createVariable("v", "f4", ("y", "x"), **words)[:] = field(20, 30)
            except Exception as error:
                print("not written:", name, error)
                continue
        yield f"filter_{name}.nc"
    for number, name in enumerate(["a b", "x-y.z", "ünï", "a+b@c", "_under", "1digit", "time(s)"]):
        with netCDF4.Dataset(folder / f"name_{number}.nc", "w") as file:
            file.createDimension(name, 3)
            file.createVariable(name, "f4", (name,))[:] = 1
            file.createVariable(name + "2", "f4", (name,))[:] = 1
            file[name].setncattr(name, 1)
        yield f"name_{number}.nc"
    with netCDF4.Dataset(folder / "coordinate_2d.nc", "w") as file:
        file.createDimension("time", None), file.createDimension("x", 3), file.createDimension("unused", 7)
        file.createVariable("time", "f4", ("time", "x"))[:2] = 1
        file.createVariable("x", "f4", ("time",))[:2] = 1
        file.createVariable("unused", "f4", ())[...] = 3
    yield "coordinate_2d.nc"
    for form in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF3_64BIT_OFFSET"):
        with netCDF4.Dataset(folder / f"records_{form}.nc", "w", format=form) as file:
            file.createDimension("t", None), file.createDimension("x", 3)
            file.createVariable("only", "i1", ("t",))[:3] = [1, 2, 3]
            if form != "NETCDF3_CLASSIC":
                file.createVariable("two", "i2", ("t", "x"))[:2] = 5
            file.createVariable("c", "S1", ("x",))[:] = np.array([b"a", b"\0", b"c"], "S1")
            file.setncattr("none", "")
        yield f"records_{form}.nc"


def _argo(file: Any) -> None:
    """Write a profile of Argo: characters everywhere, 99999 as fill, units with a space before."""
    for name, extent in {
        "DATE_TIME": 14,
        "STRING256": 256,
        "STRING64": 64,
        "STRING8": 8,
        "STRING4": 4,
        "STRING2": 2,
        "N_PROF": 2,
        "N_PARAM": 3,
        "N_LEVELS": 20,
        "N_HISTORY": None,
        "N_CALIB": 1,
    }.items():
        file.createDimension(name, extent)
    kind = file.createVariable("DATA_TYPE", "S1", ("STRING64",), fill_value=" ")
    kind.setncatts({"long_name": "Data type", "conventions": "Argo reference table 1"})
    kind[:] = np.array(list("Argo profile".ljust(64)), "S1")
    for name, axes in {"PLATFORM_NUMBER": ("N_PROF", "STRING8"), "STATION_PARAMETERS": ("N_PROF", "N_PARAM", "STRING8"), "DIRECTION": ("N_PROF",), "PRES_QC": ("N_PROF", "N_LEVELS"),
                       "SCIENTIFIC_CALIB_EQUATION": ("N_PROF", "N_CALIB", "N_PARAM", "STRING256"), "HISTORY_INSTITUTION": ("N_HISTORY", "N_PROF", "STRING4")}.items():  # fmt: skip
        file.createVariable(name, "S1", axes, fill_value=" ")
    file["PLATFORM_NUMBER"][:] = np.array([list("6901234 "), list("6901235 ")], "S1")
    file["HISTORY_INSTITUTION"][:1] = np.array([[list("IF  "), list("CS  ")]], "S1")
    juld = file.createVariable("JULD", "f8", ("N_PROF",), fill_value=999999.0)
    juld.setncatts(
        {
            "units": "days since 1950-01-01 00:00:00 UTC",
            "conventions": "Relative julian days with decimal part (as parts of day)",
            "resolution": 1e-5,
            "axis": "T",
        }
    )
    juld[:] = [27000.25, 999999.0]
    for name in ("PRES", "TEMP", "PSAL", "TEMP_ADJUSTED"):
        variable = file.createVariable(name, "f4", ("N_PROF", "N_LEVELS"), fill_value=np.float32(99999))
        variable.setncatts(
            {
                "valid_min": np.float32(-2.5),
                "valid_max": np.float32(40),
                "C_format": "%9.3f",
                "FORTRAN_format": "F9.3",
                "resolution": np.float32(0.001),
            }
        )
        variable[:] = np.where(np.arange(40).reshape(2, 20) % 7 == 0, 99999, field(2, 20) / 20)
    file.createVariable("CYCLE_NUMBER", "i4", ("N_PROF",), fill_value=99999)[:] = [1, 99999]
    file.setncatts(
        {"title": "Argo float vertical profile", "user_manual_version": "3.1", "Conventions": "Argo-3.1 CF-1.6"}
    )


@family
def nczarr(folder: Path) -> Iterator[str]:
    """NCZarr by netCDF-C: each mode, type and filter; classic and netCDF-4 files sent through nccopy."""
    import netCDF4

    for mode in ("nczarr,file", "zarr,file", "nczarr,zip", "xarray,file"):
        name = f"types_{mode.replace(',', '_')}.{'zip' if 'zip' in mode else 'zarr'}"
        try:
            dataset = netCDF4.Dataset(f"file://{folder / name}#mode={mode}", "w")
        except OSError as error:
            print("not written:", name, error)
            continue
        with dataset as file:
            file.createDimension("y", 6), file.createDimension("x", 5)
            for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "S1"):
                variable = file.createVariable(kind, kind, ("y", "x"), **({"zlib": True} if kind == "f4" else {}))
                variable[:] = np.full((6, 5), b"a", "S1") if kind == "S1" else np.arange(30).reshape(6, 5)
                variable.setncatts(
                    {"units": "K", "scale": np.array([1, 2], "i2"), "valid": np.float32(1.5), "one": np.int64(3)}
                )
            file.createVariable("text", str, ("x",))
            file.createVariable("scalar", "f8")[...] = 2.5
            group = file.createGroup("g")
            group.createVariable("v", "f4", ("x",), fill_value=-1.0)[:3] = 1
            file.setncatts(
                {"title": "t", "n": np.int32(1), "json": '{"a": [1, 2]}', "empty": "", "list": np.array([1.5, 2.5])}
            )
        yield name
    with netCDF4.Dataset(folder / "in.nc", "w") as file:
        _argo(file)
    with netCDF4.Dataset(folder / "in3.nc", "w", format="NETCDF3_CLASSIC") as file:
        _argo(file)
    for source in ("in.nc", "in3.nc"):
        for mode in ("nczarr,file", "zarr,file"):
            name = f"copied_{source[:-3]}_{mode.replace(',', '_')}.zarr"
            done = subprocess.run(
                ["nccopy", "-u", folder / source, f"file://{folder / name}#mode={mode}"],
                capture_output=True,
                check=False,
            )
            if done.returncode == 0:
                yield name
            else:
                print("not written:", name, done.stderr[-200:])


# HDF5 by other writers


@family
def pytables_(folder: Path) -> Iterator[str]:
    """PyTables: tables, extendible arrays, ragged arrays, links, each compressor; pandas' stores in it."""
    import pandas as pd
    import tables as tb

    for compressor in ("zlib", "bzip2", "blosc", "blosc:lz4", "blosc:zstd", "blosc2", "blosc2:zstd", "lzo"):
        name = f"{compressor.replace(':', '_')}.h5"
        if not tb.which_lib_version(compressor.split(":")[0]):
            continue
        with tb.open_file(
            folder / name,
            "w",
            filters=tb.Filters(5, compressor, fletcher32=compressor == "zlib", bitshuffle=compressor == "blosc"),
        ) as file:

            class Row(tb.IsDescription):  # type: ignore[misc]
                name = tb.StringCol(8)
                number = tb.Int64Col(dflt=7)
                value = tb.Float32Col(shape=(2,))
                kind = tb.EnumCol(["red", "green"], "red", "uint8")
                time = tb.Time64Col()
                flag = tb.BoolCol()
                z = tb.ComplexCol(16)

                class inner(tb.IsDescription):  # type: ignore[misc]  # noqa: N801
                    a = tb.UInt8Col()
                    b = tb.Float64Col()

            table = file.create_table("/", "table", Row)
            for number in range(20):
                table.row["name"], table.row["number"], table.row["value"] = f"n{number}", number, (1, number)
                table.row.append()
            table.flush()
            table.cols.number.create_index()
            file.create_carray("/g", "c", obj=field(20, 30), createparents=True)
            grown = file.create_earray("/g", "e", atom=tb.Float64Atom(), shape=(0, 4))
            grown.append(field(7, 4, dtype="f8"))
            ragged = file.create_vlarray("/g", "v", atom=tb.Int32Atom(), filters=tb.Filters())
            ragged.append([1, 2, 3]), ragged.append([])
            objects = file.create_vlarray("/g", "o", atom=tb.ObjectAtom(), filters=tb.Filters())
            objects.append({"a": 1})
            texts = file.create_vlarray("/g", "t", atom=tb.VLUnicodeAtom(), filters=tb.Filters())
            texts.append("ü")
            file.create_array("/g", "a", obj=[[1, 2], [3, 4]], title="title")
            file.create_array("/g", "b", obj=np.array([True, False]))
            file.create_array("/g", "s", obj=np.array([b"ab", b"c"]))
            (
                file.create_soft_link("/", "soft", "/g/c"),
                file.create_hard_link("/", "hard", "/g/c"),
                file.create_external_link("/", "ext", "other.h5:/x"),
            )
            file.root.g._v_attrs.pickled, file.root._v_attrs.arr = {"a": [1]}, np.arange(3)
        yield name
    frame = pd.DataFrame(
        {
            "a": np.arange(10.0),
            "b": list("abcdefghij"),
            "c": pd.date_range("2000", periods=10),
            "d": pd.Categorical(["x", "y"] * 5),
        }
    )
    for form in ("fixed", "table"):
        for lib in ("zlib", "blosc:zstd"):
            name = f"pandas_{form}_{lib.replace(':', '_')}.h5"
            (frame.drop(columns="d") if form == "fixed" else frame).to_hdf(
                folder / name, key="df", format=form, complib=lib, complevel=4, mode="w"
            )
            yield name
    frame.a.to_hdf(folder / "pandas_series.h5", key="deep/s", mode="w")
    yield "pandas_series.h5"


@family
def h5py_(folder: Path) -> Iterator[str]:
    """NeXus masters with links and virtual datasets, fast5, MATLAB 7.3, Keras, CGNS and EOS look-alikes."""
    import h5py
    import hdf5plugin

    for number in range(2):
        with h5py.File(folder / f"eiger_data_00000{number + 1}.h5", "w") as file:
            data = file.create_dataset(
                "entry/data/data", data=field(4, 32, 40, dtype="u2"), chunks=(1, 32, 40), **hdf5plugin.Bitshuffle()
            )
            data.attrs["image_nr_low"], data.attrs["image_nr_high"] = 4 * number + 1, 4 * number + 4
        yield f"eiger_data_00000{number + 1}.h5"
    with h5py.File(folder / "eiger_master.h5", "w") as file:
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        group = entry.create_group("data")
        group.attrs["NX_class"], group.attrs["signal"] = "NXdata", "data"
        for number in (1, 2):
            group[f"data_00000{number}"] = h5py.ExternalLink(f"eiger_data_00000{number}.h5", "entry/data/data")
        detector = entry.create_group("instrument/detector")
        detector.attrs["NX_class"] = "NXdetector"
        detector["description"] = np.bytes_(b"Dectris EIGER")
        detector.create_dataset("beam_center_x", data=np.float32(12.5)).attrs["units"] = "pixel"
        special = detector.create_group("detectorSpecific")
        special.create_dataset(
            "pixel_mask", data=np.zeros((32, 40), "u4"), chunks=(32, 40), **hdf5plugin.Bitshuffle(cname="lz4")
        )
        special.create_dataset("flatfield", data=np.ones((32, 40), "f4"))
        group["mask"] = h5py.SoftLink("/entry/instrument/detector/detectorSpecific/pixel_mask")
        entry["link"] = detector
        detector.attrs["target"] = "/entry/instrument/detector"
    yield "eiger_master.h5"
    with h5py.File(folder / "nexus_vds.nxs", "w") as file:
        layout = h5py.VirtualLayout((8, 32, 40), "u2", maxshape=(None, 32, 40))
        for number in (0, 1):
            layout[4 * number : 4 * number + 4] = h5py.VirtualSource(
                f"eiger_data_00000{number + 1}.h5", "entry/data/data", (4, 32, 40)
            )
        file.create_virtual_dataset("entry/data/data", layout, fillvalue=7)
        file["entry"].attrs.update({"NX_class": "NXentry", "default": "data"})
        file["entry/title"] = "a title"
        file["entry/start_time"] = "2024-01-01T00:00:00+00:00"
        file.attrs["file_time"] = "2024"
    yield "nexus_vds.nxs"
    for kind in ("single", "multi", "vbz"):
        with h5py.File(folder / f"{kind}.fast5", "w") as file:
            for read in range(1 if kind == "single" else 3):
                base = file.create_group("Raw/Reads/Read_1" if kind == "single" else f"read_0000-{read}")
                raw = base if kind == "single" else base.create_group("Raw")
                raw.attrs.update(
                    {
                        "duration": np.uint32(500),
                        "median_before": 220.5,
                        "read_id": np.bytes_(b"abc-1"),
                        "read_number": np.int32(1),
                        "start_mux": np.uint8(2),
                    }
                )
                signal = (field(500) * 2).astype("i2")
                words: dict[str, Any] = {"compression": "gzip", "compression_opts": 1, "maxshape": (None,)}
                if kind == "vbz":
                    words = {"chunks": (500,), **hdf5plugin.Zstd()}
                raw.create_dataset("Signal", data=signal, **words)
                if kind != "single":
                    base.create_group("channel_id").attrs.update(
                        {"channel_number": np.bytes_(b"12"), "digitisation": 8192.0, "offset": 6.0}
                    )
                    events = np.zeros(
                        5, [("mean", "<f4"), ("start", "<u8"), ("stdv", "<f4"), ("model_state", "S5"), ("move", "<i4")]
                    )
                    analysis = base.create_group("Analyses/Basecall_1D_000/BaseCalled_template")
                    analysis["Fastq"] = "@abc\nACGT\n+\n!!!!\n"
                    analysis["Events"] = events
                    if read:
                        base["context_tags"] = file["read_0000-0/context_tags"]
                    else:
                        base.create_group("context_tags").attrs["filename"] = np.bytes_(b"x")
            file.attrs["file_version"] = "2.2" if kind != "single" else 1.0
        yield f"{kind}.fast5"
    with h5py.File(folder / "matlab.mat", "w", userblock_size=512) as file:
        file.create_dataset("x", data=field(5, 4, dtype="f8")).attrs["MATLAB_class"] = np.bytes_(b"double")
        text = file.create_dataset("s", data=np.array([[ord(c)] for c in "hello"], "u2"))
        text.attrs.update({"MATLAB_class": np.bytes_(b"char"), "MATLAB_int_decode": np.int32(2)})
        refs = file.create_group("#refs#")
        refs["a"] = np.array([0, 0], "u8")
        refs["a"].attrs["MATLAB_empty"] = np.uint8(1)
        refs["b"] = field(3, 3, dtype="f8")
        cell = file.create_dataset("c", (1, 2), h5py.ref_dtype)
        cell[0, 0], cell[0, 1] = refs["a"].ref, refs["b"].ref
        cell.attrs["MATLAB_class"] = np.bytes_(b"cell")
        struct = file.create_group("st")
        struct.attrs["MATLAB_class"] = np.bytes_(b"struct")
        struct.attrs.create(
            "MATLAB_fields",
            np.array([np.array(list("ab"), "S1"), np.array(list("c"), "S1")], object),
            dtype=h5py.vlen_dtype("S1"),
        )
        struct["ab"], struct["c"] = 1.5, np.uint8(1)
        sparse = file.create_group("sp")
        sparse.attrs["MATLAB_sparse"] = np.uint64(5)
        sparse["data"], sparse["ir"], sparse["jc"] = np.arange(2.0), np.arange(2, dtype="u8"), np.arange(3, dtype="u8")
    with (folder / "matlab.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon".ljust(116) + bytes(8) + b"\x00\x02IM")
    yield "matlab.mat"
    with h5py.File(folder / "keras.weights.h5", "w") as file:
        file.attrs["layer_names"] = np.array([b"dense", b"dense_1"])
        for name in ("dense", "dense_1"):
            group = file.create_group(f"layers/{name}")
            group["vars/0"], group["vars/1"] = field(8, 4), np.zeros(4, "f4")
            group.create_group("optimizer")
            group.attrs["weight_names"] = np.array([], "S1")
        file.attrs["config"] = "x" * 6000
    yield "keras.weights.h5"
    with h5py.File(folder / "eos.he5", "w") as file:
        swath = file.create_group("HDFEOS/SWATHS/O3/Data Fields")
        column = swath.create_dataset(
            "ColumnAmountO3",
            data=np.where(field(20, 30) > 290, -1.2676506e30, field(20, 30)).astype("f4"),
            chunks=(10, 30),
            compression="gzip",
            fillvalue=np.float32(-1.2676506e30),
        )
        column.attrs.update(
            {
                "MissingValue": np.float32([-1.2676506e30]),
                "Title": np.bytes_(b"O3"),
                "Units": np.bytes_(b"DU"),
                "ScaleFactor": np.float64([1.0]),
                "ValidRange": np.float32([50, 700]),
            }
        )
        info = file.create_group("HDFEOS INFORMATION")
        info["StructMetadata.0"] = np.bytes_(b"GROUP=SwathStructure\nEND\n".ljust(32000, b"\0"))
        info.attrs["HDFEOSVersion"] = np.bytes_(b"HDFEOS_5.1.15")
        file["HDFEOS/ADDITIONAL/FILE_ATTRIBUTES/x"] = 1
    yield "eos.he5"
    with h5py.File(folder / "icesat2.h5", "w", libver="latest") as file:
        beam = file.create_group("gt1l/heights", track_order=True)
        times = beam.create_dataset(
            "delta_time",
            data=np.arange(100.0),
            chunks=(50,),
            compression="gzip",
            compression_opts=6,
            shuffle=True,
            maxshape=(None,),
        )
        times.make_scale("delta_time")
        height = beam.create_dataset(
            "h_ph",
            data=field(100),
            chunks=(50,),
            compression="gzip",
            maxshape=(None,),
            fillvalue=np.float32(3.4028235e38),
        )
        height.dims[0].attach_scale(times)
        confidence = beam.create_dataset(
            "signal_conf_ph", data=np.ones((100, 5), "i1"), chunks=(50, 5), compression="gzip", maxshape=(None, 5)
        )
        confidence.dims[0].attach_scale(times)
        confidence.attrs.update(
            {
                "flag_values": np.array([-2, -1, 0, 1, 2, 3, 4], "i1"),
                "flag_meanings": "possible_tep not_considered noise buffer low medium high",
                "valid_min": -2,
            }
        )
        lag = beam.create_dataset("ds_surf_type", data=np.arange(1, 6, dtype="i4"))
        lag.make_scale("ds_surf_type")
        confidence.dims[1].attach_scale(lag)
        file["orbit_info/sc_orient"] = np.array([1], "i1")
    yield "icesat2.h5"
    with h5py.File(folder / "loom.loom", "w") as file:
        file.create_dataset(
            "matrix", data=field(10, 8, dtype="f4"), chunks=(10, 8), compression="gzip", maxshape=(10, None)
        )
        for name in ("row_attrs", "col_attrs", "layers", "row_graphs", "col_graphs", "attrs"):
            file.create_group(name)
        file["row_attrs"].create_dataset(
            "Gene",
            data=np.array([f"g{i}" for i in range(10)], object),
            dtype=h5py.string_dtype(),
            chunks=(10,),
            compression="gzip",
        )
        file["attrs/LOOM_SPEC_VERSION"] = "3.0.0"
    yield "loom.loom"
    with h5py.File(folder / "cooler.cool", "w") as file:
        chroms = file.create_group("chroms")
        chroms["name"] = np.array([b"chr1", b"chr2"])
        enum = h5py.enum_dtype({"chr1": 0, "chr2": 1}, "i4")
        file.create_group("bins").create_dataset(
            "chrom", data=np.array([0, 0, 1], "i4"), dtype=enum, compression="gzip", chunks=(3,)
        )
        file["pixels/count"] = np.arange(6, dtype="i4")
        file.attrs.update(
            {"format": "HDF5::Cooler", "bin-size": 1000, "metadata": "{}", "creation-date": "2024", "nnz": np.int64(6)}
        )
    yield "cooler.cool"
    with h5py.File(folder / "imaris.ims", "w") as file:
        for level in range(2):
            data = file.create_dataset(
                f"DataSet/ResolutionLevel {level}/TimePoint 0/Channel 0/Data",
                data=field(4, 32 >> level, 32 >> level, dtype="u2"),
                chunks=(2, 16, 16),
                compression="gzip",
            )
            data.parent.attrs["ImageSizeX"] = np.array(list("32"), "S1")
        file["DataSetInfo/Image"] = h5py.Empty("f4")
        file.attrs["DataSetDirectoryName"] = np.array(list("DataSet"), "S1")
        file.create_dataset("Thumbnail/Data", data=np.zeros((8, 32), "u1"))
        file.attrs["NumberOfDataSets"] = np.array([1], "u4")
    yield "imaris.ims"
    with h5py.File(folder / "odd.h5", "w", libver=("v108", "latest")) as file:
        file.create_dataset("vlen_text_2d", data=np.array([["a", "b"], ["c", "ü"]], object), dtype=h5py.string_dtype())
        file.create_dataset("ascii", data="abc", dtype=h5py.string_dtype("ascii"))
        file.create_dataset("space_padded", data=np.array([b"a  ", b"bcd"]), dtype=h5py.string_dtype("ascii", 3))
        file.create_dataset("bool", data=np.array([True, False]))
        file.create_dataset("f2", data=np.arange(4, dtype="f2"))
        file.create_dataset("c16", data=np.arange(4) * (1 + 1j))
        file.create_dataset("scale", data=np.arange(100, dtype="i4"), chunks=(50,), scaleoffset=0)
        file.create_dataset(
            "lzf", data=field(20, 30), chunks=(10, 10), compression="lzf", shuffle=True, fletcher32=True
        )
        file.create_dataset("zero", shape=(0, 5), maxshape=(None, 5), dtype="f4")
        file.create_dataset("sparse", shape=(1 << 22,), chunks=(1 << 16,), dtype="u1")[5] = 1
        file.create_dataset("never", shape=(10,), dtype="f8", fillvalue=-1)
    yield "odd.h5"
    for name, words in {
        "blosc": hdf5plugin.Blosc(), "blosc2": hdf5plugin.Blosc2(), "zstd": hdf5plugin.Zstd(), "lz4": hdf5plugin.LZ4(), "bzip2": hdf5plugin.BZip2(), "zfp": hdf5plugin.Zfp(accuracy=0.01),
        "sz3": hdf5plugin.SZ3(absolute=0.01), "sperr": hdf5plugin.Sperr(absolute=0.01), "fcidecomp": hdf5plugin.FciDecomp(), "bshuf": hdf5plugin.Bitshuffle(cname="zstd"), "sz": hdf5plugin.SZ(absolute=0.01),
    }.items():  # fmt: skip
        try:
            with h5py.File(folder / f"plugin_{name}.h5", "w") as file:
                file.create_dataset(
                    "x", data=field(20, 30, dtype="u2" if name == "fcidecomp" else "f4"), chunks=(10, 30), **words
                )
        except Exception as error:
            print("not written:", name, error)
            continue
        yield f"plugin_{name}.h5"


@family
def matlab(folder: Path) -> Iterator[str]:
    """MATLAB 7.3 by hdf5storage."""
    import hdf5storage

    hdf5storage.savemat(str(folder / "types.mat"), {
        "d": field(3, 4, dtype="f8"), "i": np.int8(3), "text": "hello ü", "logical": np.array([True, False]), "cell": np.array([1.0, "a", None], object), "c": np.array([1 + 2j]), "empty": np.zeros((0, 3)),
        "struct": {"a": 1, "b": {"c": [1, 2]}}, "bytes": b"abc"}, format="7.3")  # fmt: skip
    yield "types.mat"
    hdf5storage.write({"a": {"b": [1, 2, "x"], "n": None, "t": (1, 2)}}, path="/", filename=str(folder / "python.h5"))
    yield "python.h5"


@family
def nexus(folder: Path) -> Iterator[str]:
    """NeXus by nexusformat."""
    from nexusformat.nexus import NXdata, NXentry, NXfield, NXlink, NXroot, NXsample

    root = NXroot(
        NXentry(
            NXdata(
                NXfield(field(10, 12), name="v", units="K", compression="gzip", chunks=(5, 12)),
                (NXfield(np.arange(10.0), name="y"), NXfield(np.arange(12.0), name="x")),
            ),
            NXsample(temperature=40.0, name="ü"),
        )
    )
    root["entry/link"] = NXlink("/entry/data/v")
    root.save(str(folder / "plain.nxs"), "w")
    yield "plain.nxs"


# References and Icechunk


@family
def references(folder: Path) -> Iterator[str]:
    """kerchunk JSON and parquet, and Icechunk with and without virtual chunks."""
    import netCDF4
    from kerchunk.df import refs_to_dataframe
    from kerchunk.hdf import SingleHdf5ToZarr
    from kerchunk.netCDF3 import NetCDF3ToZarr

    data = _dataset("cmip6").drop_vars("type")
    data.to_netcdf(folder / "cmip6.nc", encoding=ENCODINGS["cmip6"], engine="h5netcdf")
    data.to_netcdf(folder / "cmip6_classic.nc", format="NETCDF3_64BIT")
    _dataset("oisst").to_netcdf(folder / "oisst.nc", encoding=ENCODINGS["oisst"])
    with netCDF4.Dataset(folder / "types.nc", "w") as file:
        file.createDimension("x", 5)
        for kind in ("i1", "i2", "u4", "f8"):
            file.createVariable(kind, kind, ("x",))[:] = np.arange(5)
        file.createVariable("text", str, ("x",))[:] = np.array(list("abcde"), object)
    for name, maker in {
        "cmip6": SingleHdf5ToZarr,
        "oisst": SingleHdf5ToZarr,
        "types": SingleHdf5ToZarr,
        "cmip6_classic": NetCDF3ToZarr,
    }.items():
        try:
            words = maker(str(folder / f"{name}.nc"), inline_threshold=20).translate()
        except Exception as error:
            print("not written:", name, error)
            continue
        (folder / f"{name}.json").write_text(json.dumps(words))
        yield f"{name}.json"
        for size in (2, 100):
            target = folder / f"{name}_{size}.parquet"
            refs_to_dataframe(words, str(target), record_size=size)
            yield target.name
    import icechunk
    import zarr

    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder / "icechunk")))
    session = repository.writable_session("main")
    _dataset("oisst").to_zarr(session.store, zarr_format=3, consolidated=False)
    zarr.open_group(session.store, mode="a").create_array("more/x", shape=(4,), dtype="f4")[:] = 1
    session.commit("first")
    yield "icechunk"


def write(folder: Path, name: str) -> int:
    """Write one family into a folder of its own, and print how many files it has."""
    warnings.simplefilter("ignore")
    own = folder / name.rstrip("_")
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    count = 0
    try:
        for _ in FAMILIES[name](own):
            count += 1
    except Exception:
        traceback.print_exc()
    print(f"{name.rstrip('_')}\t{count}", flush=True)
    return count


if __name__ == "__main__":
    place, *names = sys.argv[1:]
    if len(names) == 1:
        sys.exit(not write(Path(place).resolve(), names[0]))
    for each in names or FAMILIES:  # in processes of their own, because their libraries disturb each other
        subprocess.run([sys.executable, __file__, place, each], check=False)
