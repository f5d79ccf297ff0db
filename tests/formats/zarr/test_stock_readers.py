"""What zarr-python reads without tamis, in environments of their own: `tamis inspect` says the same of each array."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from installation import environment_of, make_installation

import tamis

SHAPE = (5, 12, 16)
CHUNKS = {"whole": (4, 12, 16), "unit axes": (1, 12, 16), "one row": (1, 1, 16)}
# numcodecs 0.17 cannot be imported beside a zfpy whose version has words: "invalid literal for int(): 'post0'".
HAS_ZFPY = version("zfpy").replace(".", "").isdigit()
PACKAGES = {
    "stock": ["zarr"],
    "pcodec": ["zarr", "numcodecs[pcodec]"],
    **({"zfpy": ["zarr", "zfpy"]} if HAS_ZFPY else {}),
    "tamis": ["tamis[zarr,codecs,hdf5plugin]"],
}
READ_BY = {
    "Zarr": {*PACKAGES},
    "Zarr with pcodec": {"pcodec"},
    "Zarr with zfpy or tamis": {"zfpy", "tamis"},
    "Zarr with tamis": {"tamis"},
}
FILTERS = (
    "none",
    "deflate(4)",
    "shuffle|deflate(4)",
    "shuffle|deflate(4)|fletcher32",
    "fletcher32",
    "fletcher32|shuffle|deflate(1)",
    "shuffle",
    "bzip2(9)",
    "zstd(3)",
    "shuffle|zstd(3)",
    "blosc(zstd,5,byte)",
    "blosc(lz4,5,bit)",
    "deflate(1)|shuffle",
    "lzf",
    "lz4",
    "bitshuffle",
    "szip",
    "nbit",
    "scaleoffset(decimal,2)",
    "blosc2(zstd,9,byte)",
    "pcodec(8)",
    "absolute(0.1)|shuffle|deflate(4)",
    "pack(0.01)|shuffle|deflate(4)",
    "pack(0.01)|shuffle|zstd(3)",
    "pack(0.01)|szip(nn,16)",
    "pack(0.01)|pcodec(8)",
    "zfp(accuracy=0.1)",
    "zfp(bound=0.1)",
    "zfp(rate=8)",
    "zfp(precision=16)",
    "zfp(reversible=True)",
    "zfp(minbits=1,maxbits=16658,maxprec=20,minexp=-1074)",
    "zfp(accuracy=0.1)|fletcher32",
    "zfp(accuracy=0.1)|deflate(1)",
    "zfp(accuracy=0.1)|shuffle|zstd(3)|fletcher32",
    "sperr(bound=0.1)",
)
# Prints, for each array of a store, whether zarr-python gives the values beside it, and whether tamis was loaded.
READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, zarr
def reads(path, name):
    try:
        return bool(np.array_equal(zarr.open_array(f"{path}/{name}", mode="r")[...], expected[name], equal_nan=True))
    except Exception:
        return False
found = {}
for path in sys.argv[1:]:
    with np.load(path + ".npz") as expected:
        found[path] = {name: reads(path, name) for name in expected.files}
print(json.dumps([found, any(name.partition(".")[0] == "tamis" for name in sys.modules)]))
"""


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pythons with zarr-python, with some packages and without others."""
    folder = tmp_path_factory.mktemp("pythons")
    return {name: make_installation(folder / name, packages) for name, packages in PACKAGES.items()}


def field() -> np.ndarray[Any, Any]:
    return (280 + 10 * np.sin(np.arange(np.prod(SHAPE)) / 90)).reshape(SHAPE).astype("f4")


def write_source(path: Path, chunks: tuple[int, ...], *, gap: bool) -> dict[str, str]:
    """Write a variable for each pipeline of FILTERS; return their pipelines by name."""
    # SPERR takes fields of two or three axes.
    names = {f"v{i}": text for i, text in enumerate(FILTERS) if "sperr" not in text or chunks[1] > 1}
    values = field()
    if gap:
        values[2, 3, :3] = np.nan
    with h5py.File(path, "w") as file:
        for name in names:
            file.create_dataset(name, data=values, chunks=chunks)
    return names


def who_reads(pythons: dict[str, Path], *stores: Path) -> dict[str, dict[str, set[str]]]:
    """Return for each store and array which environments read its values as tamis does."""
    for store in stores:
        with tamis.open(store) as file:
            np.savez(f"{store}.npz", **{name: file[name][...] for name in file if not name.startswith("crs")})
    found: dict[str, dict[str, set[str]]] = {str(store): {} for store in stores}
    for environment, python in pythons.items():
        done = subprocess.run(
            [python, "-c", READ, *map(str, stores)],
            env=environment_of(python),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        reads, has_tamis = json.loads(done.stdout)
        assert environment == "tamis" or not has_tamis
        for store, arrays in reads.items():
            for name, right in arrays.items():
                found[store].setdefault(name, set()).update({environment} if right else ())
    return found


@pytest.mark.check
@pytest.mark.parametrize("gap", [False, True], ids=["full", "gaps"])
@pytest.mark.parametrize("chunks", CHUNKS)
def test_u72_inspect_says_of_each_codec_what_zarr_python_reads_without_tamis(
    chunks: str, gap: bool, pythons: dict[str, Path], tmp_path: Path
) -> None:
    names = write_source(tmp_path / "a.h5", CHUNKS[chunks], gap=gap)
    forms: dict[str, dict[str, Any]] = {"2": {"zarr_format": 2}, "3": {}, "sharded": {"shards": 2}}
    stores = [tmp_path / f"{form}.zarr" for form in forms]
    for store, options in zip(stores, forms.values(), strict=True):
        tamis.repack(tmp_path / "a.h5", store, names, checksum=False, **options)
    found = who_reads(pythons, *stores)
    for store in stores:
        for dataset in tamis.inspect(store).datasets:
            said = READ_BY[str(dataset.readers)]
            assert found[str(store)][dataset.path.strip("/")] == said & {*PACKAGES}, (
                store.name, names.get(dataset.path.strip("/")), str(dataset.readers),
            )  # fmt: skip


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u72_zfp_alone_where_the_shape_of_chunks_allows_it(zarr_format: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, chunks in (("whole", CHUNKS["whole"]), ("unit", CHUNKS["unit axes"])):
            file.create_dataset(name, data=field(), chunks=chunks)
    store = tmp_path / "a.zarr"
    result = tamis.repack(tmp_path / "a.h5", store, {"*": "zfp(accuracy=0.1)"}, checksum=False, zarr_format=zarr_format)
    names = {}
    for name in ("whole", "unit"):
        metadata = json.loads((store / name / (".zarray" if zarr_format == 2 else "zarr.json")).read_text())
        listed = [metadata["compressor"]] if zarr_format == 2 else metadata["codecs"]
        names[name] = [codec.get("id", codec.get("name")) for codec in listed]
    expected = (["zfpy"], ["zfpy"]) if zarr_format == 2 else (["zfp"], ["reshape", "zfp"])
    assert (names["whole"], names["unit"]) == expected
    package = "zfpy or tamis" if zarr_format == 2 else "tamis"
    for dataset in result.datasets:
        assert any(note.startswith(f"zarr-python reads it where {package} is installed") for note in dataset.notes)


@pytest.mark.matrix
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_consolidated_metadata_with_a_codec_that_zarr_python_lacks_close_the_store(
    zarr_format: int, consolidated: bool, pythons: dict[str, Path], tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("v", "other"):
            file.create_dataset(name, data=field(), chunks=CHUNKS["whole"], compression="gzip")
    tamis.repack(tmp_path / "a.h5", tmp_path / "first.zarr", {"v": "zfp(accuracy=0.1)"}, zarr_format=zarr_format)
    # The same without a recipe: what nobody asked for is said as well.
    options: dict[str, Any] = {"zarr_format": zarr_format, "consolidated": consolidated}
    tamis.repack(tmp_path / "a.h5", tmp_path / "zfp.h5", {"v": "zfp(accuracy=0.1)"})
    result = tamis.repack(tmp_path / "zfp.h5", tmp_path / "a.zarr", {}, **options)
    code = "import sys, zarr; print(float(zarr.open_group(sys.argv[1], mode='r')['other'][0, 0, 0]))"
    done = subprocess.run(
        [pythons["stock"], "-W", "ignore", "-c", code, tmp_path / "a.zarr"],
        env=environment_of(pythons["stock"]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (not consolidated), done.stderr
    (note,) = [note for note in result.notes if note.startswith("/v: zarr-python reads it where ")]
    assert (
        note.endswith("; elsewhere it opens no group of the store, unless it is made with --no-consolidated")
        == consolidated
    )
    notes = [note.code for note in tamis.inspect(tmp_path / "a.zarr")["v"].notes]
    assert ("codec-in-consolidated" in notes) == consolidated
    assert "codec-in-consolidated" not in [note.code for note in tamis.inspect(tmp_path / "a.zarr")["other"].notes]


@pytest.mark.check
def test_shuffle_of_netcdf_c_is_not_said_to_be_read(pythons: dict[str, Path], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=field(), chunks=CHUNKS["whole"], shuffle=True, compression="gzip")
    store = tmp_path / "a.zarr"
    tamis.repack(tmp_path / "a.h5", store, {}, zarr_format=2, consolidated=False)
    metadata = store / "v" / ".zarray"
    metadata.write_text(metadata.read_text().replace('"elementsize": 4', '"elementsize": 0'))
    assert str(tamis.inspect(store)["v"].readers) == "Zarr with corrected metadata (tamis repair)"
    assert who_reads(pythons, store)[str(store)]["v"] == set()
    (store / ".nczgroup").write_text("{}")  # as netCDF-C
    tamis.repair(store)
    assert str(tamis.inspect(store)["v"].readers) == "Zarr"
    assert who_reads(pythons, store)[str(store)]["v"] == {*PACKAGES}
