"""What tamis spec prints does in its tools what our pipeline does: same parameters, flags and chunk bytes."""

from __future__ import annotations

import os
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis import ParameterError, Spec, spec
from tamis.filters import ChunkType, by_name
from tamis.notation.h5repack import parse_filter

SHAPE, CHUNKS = (40, 60), (20, 30)
VALUES = {
    "f4": np.cos(np.arange(2400) / 70).reshape(SHAPE).astype("f4"),
    "i4": (np.arange(2400) ** 2 % 1013).reshape(SHAPE).astype("i4"),
}
# Filters that stock HDF5 has, and zfp by our plugin.
EVERYWHERE = [
    "zfp(accuracy=0.01)",
    "zfp(rate=8)",
    "zfp(precision=16)",
    "zfp(reversible=true)",
    "zfp(minbits=1,maxbits=2000,maxprec=24,minexp=-20)",
    "zfp(accuracy=0.01)|deflate(4)",
    "deflate(0)",
    "shuffle|deflate(6)",
    "fletcher32|shuffle|deflate(9)",
    "fletcher32",
]
NOT_NETCDF = ["zfp(rate=8)|shuffle|deflate(4)|fletcher32", "deflate(4)|shuffle", "zfp(rate=8)|fletcher32", "none"]
REQUIRED = ["zfp(rate=8)!|fletcher32"]
NETCDF_TOO = [text for text in ("nbit", "szip(nn,8)") if text.partition("(")[0] in by_name()]
SCALED = ["scaleoffset(integer,0)|deflate(4)", "scaleoffset(decimal,2)"] if "scaleoffset" in by_name() else []
FROM_PLUGINS = [
    text
    for text in (
        "bzip2(9)",
        "zstd(3)",
        "zstd(-3)",
        "lz4",
        "bitshuffle",
        "bitshuffle(compressor=zstd,level=3)",
        "blosc(compressor=lz4)",
        "blosc(compressor=zstd,level=3,shuffle=bit)",
        "blosc2",
    )
    if text.partition("(")[0] in by_name()
]
BYTES_VARY = (1, 4, 307, 32001, 32004, 32008, 32015, 32026)
"""Filters whose bytes depend on the version of a library; what comes out does not."""


def run(*command: str | Path, plugins: str = "") -> str:
    """Run a tool with our plugin only, or with those of another folder."""
    needs.need(command[0])
    env = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    env["HDF5_PLUGIN_PATH"] = plugins or str(tamis.plugin_path())
    done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_as_ours(path: Path, found: Spec, values: NDArray[np.generic], *, flags: bool = True) -> None:
    """Check the dataset v of a file: parameters, flags and masks, and the bytes of every chunk."""
    pipeline, chunk = found.pipeline, ChunkType(values.dtype, CHUNKS)
    with h5py.File(path) as file:
        plist, made = file["v"].id.get_create_plist(), file["v"].id
        stored = [plist.get_filter(i)[:3] for i in range(plist.get_nfilters())]
        assert [(number, words) for number, _, words in stored] == [
            (each.filter.id, each.filter.stored(chunk)) for each in pipeline.stages
        ]
        if flags:
            assert [bool(flag) for _, flag, _ in stored] == [each.optional for each in pipeline.stages]
        assert file["v"].chunks == CHUNKS
        for at in [(0, 0), (20, 30)]:
            block = (slice(at[0], at[0] + 20), slice(at[1], at[1] + 30))
            mask, data = made.read_direct_chunk(at)
            expected, expected_mask = pipeline.encode(values[block])
            assert mask == expected_mask
            decoded = pipeline.decode(data, mask, chunk)
            if pipeline.error_bound == 0:
                assert np.array_equal(decoded, values[block])
            else:
                assert np.array_equal(decoded, file["v"][block])
            assert np.array_equal(decoded, pipeline.decode(expected, mask, chunk))
            if all(each.id not in BYTES_VARY for each in pipeline.filters):
                assert data == expected


def source_file(folder: Path, values: NDArray[np.generic]) -> Path:
    path = folder / "in.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(10, 60))
        file.create_dataset("w", data=values, chunks=(10, 60))
    return path


@pytest.mark.peer
@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("text", [*EVERYWHERE, *NETCDF_TOO, *SCALED, *NOT_NETCDF, *REQUIRED])
def test_h5repack_options_run_give_our_chunks(text: str, dtype: str, tmp_path: Path) -> None:
    try:
        found = spec(text, variable="v", chunks=CHUNKS, dtype=dtype)
    except ParameterError:
        assert dtype == "i4" or "integer" in text
        return
    source, target = source_file(tmp_path, VALUES[dtype]), tmp_path / "out.h5"
    run("h5repack", *shlex.split(found["h5repack"]), source, target)
    assert_as_ours(target, found, VALUES[dtype])
    with h5py.File(target) as file:
        assert file["w"].id.get_create_plist().get_nfilters() == 0


@pytest.mark.peer
@pytest.mark.parametrize("text", FROM_PLUGINS)
def test_options_of_plugins_run_give_our_chunks(text: str, tmp_path: Path) -> None:
    package = find_spec("hdf5plugin")
    assert package is not None
    assert package.submodule_search_locations
    plugins = str(Path(package.submodule_search_locations[0]) / "plugins")
    found = spec(text, variable="v", chunks=CHUNKS, dtype="f4")
    source, target = source_file(tmp_path, VALUES["f4"]), tmp_path / "out.h5"
    run("h5repack", *shlex.split(found["h5repack"]), source, target, plugins=plugins)
    assert_as_ours(target, found, VALUES["f4"])
    (tmp_path / "a.cdl").write_text(cdl_text("", VALUES["f4"]))
    run("ncgen", "-4", "-o", tmp_path / "a.nc", tmp_path / "a.cdl")
    run("nccopy", *shlex.split(found["nccopy"]), tmp_path / "a.nc", tmp_path / "b.nc", plugins=plugins)
    assert_as_ours(tmp_path / "b.nc", found, VALUES["f4"], flags=False)


H5REPACK_TEXTS = [
    "GZIP=0",
    "GZIP=9",
    "SHUF",
    "FLET",
    "UD=1,1,1,4",
    "UD=32013,0,4,1,0,0,1074790400",
    "UD=32013,1,1,5",
    "UD=300,1,0",
    "UD=300,1,3,-1,4294967295,0x10",
    "UD=300,1,1,-2147483648",
    "SZIP=8,NN",
    "SZIP=32,EC",
    "NBIT",
    "SOFF=3,DS",
]


@pytest.mark.peer
@pytest.mark.parametrize("text", H5REPACK_TEXTS)
def test_h5repack_takes_texts_as_we_do(text: str, tmp_path: Path) -> None:
    made = parse_filter(text)[1]
    assert made is not None
    source, target = source_file(tmp_path, VALUES["f4"]), tmp_path / "out.h5"
    run("h5repack", "-f", text, "-l", "v:CHUNK=20x30", source, target)
    with h5py.File(target) as file:
        number, flag, words, _ = file["v"].id.get_create_plist().get_filter(0)
    assert (number, bool(flag)) == (made.filter.id, made.optional)
    if number == 4:
        assert (words[0] & 36, words[1]) == (made.request.values[0] & 36, made.request.values[1])
    elif number == 6:
        assert words[:2] == made.request.values
    elif number != 5:
        assert words == made.filter.stored(ChunkType(np.dtype("f4"), CHUNKS))


@pytest.mark.peer
@pytest.mark.parametrize("text", [*EVERYWHERE, *NETCDF_TOO])
def test_nccopy_options_run_give_our_chunks(text: str, tmp_path: Path) -> None:
    found = spec(text, variable="v", chunks=CHUNKS, dtype="f4")
    cdl, source, target = tmp_path / "in.cdl", tmp_path / "in.nc", tmp_path / "out.nc"
    cdl.write_text(cdl_text("", VALUES["f4"]))
    run("ncgen", "-4", "-o", source, cdl)
    run("nccopy", *shlex.split(found["nccopy"]), source, target)
    assert_as_ours(target, found, VALUES["f4"], flags=False)  # netcdf-c has the say, and it depends on its version


def cdl_text(attributes: str, values: NDArray[np.generic]) -> str:
    data = ", ".join(f"{float(value)!r}" for value in values.reshape(-1))
    return (
        "netcdf a { dimensions: x = 40 ; y = 60 ; variables: float v(x, y) ; float w(x, y) ;\n"
        f"{attributes}\ndata: v = {data} ;\n}}\n"
    )


@pytest.mark.peer
@pytest.mark.parametrize("text", [*EVERYWHERE, *NETCDF_TOO])
def test_cdl_attributes_run_give_our_chunks(text: str, tmp_path: Path) -> None:
    found = spec(text, variable="v", chunks=CHUNKS, dtype="f4")
    cdl, target = tmp_path / "a.cdl", tmp_path / "a.nc"
    cdl.write_text(cdl_text(found["cdl"], VALUES["f4"]))
    run("ncgen", "-4", "-o", target, cdl)
    assert_as_ours(target, found, VALUES["f4"], flags=False)


@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("text", [*EVERYWHERE, *NETCDF_TOO, *SCALED, *NOT_NETCDF, *REQUIRED, "deflate(4)!"])
def test_h5py_text_run_gives_our_chunks(text: str, dtype: str, tmp_path: Path) -> None:
    try:
        found = spec(text, variable="v", chunks=CHUNKS, dtype=dtype)
    except ParameterError:
        assert dtype == "i4" or "integer" in text
        return
    values = VALUES[dtype]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if "set_filter" in found["h5py"]:
            exec(found["h5py"], {"file": file, "values": values})
        else:
            file.create_dataset("v", data=values, **eval(f"dict({found['h5py']})"))
    assert_as_ours(tmp_path / "a.h5", found, values)


@pytest.mark.peer
@pytest.mark.parametrize("text", ["32013,1,0,0,1074790400|3", "32013,1,0,0,1074790400|2|1,4"])
def test_netcdf_text_that_we_refuse_fails_in_ncgen(text: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="netCDF runs fletcher32 first and shuffle next"):
        spec(text)
    (tmp_path / "a.cdl").write_text(cdl_text(f'v:_Filter = "{text}" ;', VALUES["f4"]))
    with pytest.raises(AssertionError, match="HDF error"):
        run("ncgen", "-4", "-o", tmp_path / "a.nc", tmp_path / "a.cdl")


@pytest.mark.peer
@pytest.mark.parametrize("text", ["1,4|2|3", "1,4|2", "2|1,4|3", "1,4|1,9"])
def test_netcdf_text_order_as_ncgen_makes_it(text: str, tmp_path: Path) -> None:
    found = spec(text)
    (tmp_path / "a.cdl").write_text(cdl_text(f'v:_Filter = "{text}" ;', VALUES["f4"]))
    run("ncgen", "-4", "-o", tmp_path / "a.nc", tmp_path / "a.cdl")
    with h5py.File(tmp_path / "a.nc") as file:
        plist = file["v"].id.get_create_plist()
        stored = [plist.get_filter(i) for i in range(plist.get_nfilters())]
    assert [each[0] for each in stored] == [each.id for each in found.filters]
    assert [each[2] for each in stored if each[0] == 1] == [each.requested for each in found.filters if each.id == 1]
