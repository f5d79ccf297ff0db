"""References in JSON, as kerchunk and `tamis.export` write them, to files here and elsewhere."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from range_server import Server

import tamis

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"


@pytest.fixture
def references(server: Server, tmp_path: Path) -> Path:
    """Return references to a file on a web server, with a variable in zfp."""
    tamis.repack(SAMPLE, tmp_path / "a.nc", {"TS": "zfp(accuracy=0.1)"}, chunks={"TS": (5, 24, 36)})
    path = tmp_path / "refs.json"
    tamis.export(server.url("a.nc"), path)
    return path


def test_references_to_a_web_server_are_read(server: Server, references: Path, tmp_path: Path) -> None:
    server.reset()
    with tamis.open(references) as file, tamis.open(tmp_path / "a.nc") as local:
        array, values = file["TS"], local["TS"][...]
        assert server.requests == 0  # the metadata are in the references
        np.testing.assert_array_equal(array[:, 20, 30], values[:, 20, 30])
        assert server.requests <= values.shape[0] // 5 + 1
        server.reset()
        np.testing.assert_array_equal(array[...], values)
        assert server.requests <= 4  # near chunks share requests
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[3], values[3])
        assert file.path == str(references)
        assert file["TS"].attrs["units"] == "K"
    with tamis.open(server.url("refs.json")) as file:
        np.testing.assert_array_equal(file["TS"][3], values[3])


def test_jobs_take_references(references: Path, tmp_path: Path) -> None:
    assert "zfp accuracy" in tamis.inspect(references)["TS"].filters[0]
    assert tamis.verify(tmp_path / "a.nc", references).ok
    assert [name for name, _ in tamis.plan(references, {"TS": "abs=1"}).kept] == ["/TS"]  # it is lossy already
    tamis.repack(references, tmp_path / "back.nc", {"TS": "shuffle|deflate(1)"})
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "back.nc").ok
    with xr.open_dataset(references, engine="tamis") as found, xr.open_dataset(tmp_path / "a.nc") as expected:
        xr.testing.assert_identical(found.drop_attrs().load(), expected.drop_attrs().load())
    with pytest.raises(tamis.FileError, match="a Zarr store or references need no references"):
        tamis.export(references, tmp_path / "more.json")


@pytest.mark.matrix
@pytest.mark.parametrize("is_local", [True, False])
def test_references_of_kerchunk_are_read(
    server: Server,
    make_file: Callable[..., Path],
    tmp_path: Path,
    run_script: Callable[..., str],
    *,
    is_local: bool,
) -> None:
    path, script = make_file(), tmp_path / "references.py"
    script.write_text(  # in a process of its own: kerchunk imports hdf5plugin
        "import json, sys\n"
        "from kerchunk.hdf import SingleHdf5ToZarr\n"
        "print(json.dumps(SingleHdf5ToZarr(sys.argv[1], inline_threshold=100).translate()))\n"
    )
    text = run_script(script, path).replace(str(path), "{{u}}")
    document = json.loads(text) | {"templates": {"u": str(path) if is_local else server.url(path.name)}}
    (tmp_path / "refs.json").write_text(json.dumps(document))
    (tmp_path / "plain.json").write_text(text.replace("{{u}}", path.as_uri()))
    for name in ("refs.json", "plain.json"):
        with tamis.open(tmp_path / name) as file, tamis.open(path) as local:
            assert set(file) == set(local)
            for array in file:
                np.testing.assert_array_equal(file[array][...], local[array][...])


def test_arrays_of_other_codecs_are_read_by_zarr(tmp_path: Path) -> None:
    values = np.arange(48.0).reshape(6, 8)
    (tmp_path / "data").write_bytes(b"".join(values[i : i + 2].tobytes() for i in range(0, 6, 2)))
    array = {"zarr_format": 2, "shape": [6, 8], "chunks": [2, 8], "dtype": "<f8", "order": "C", "fill_value": None}
    codec = {"id": "delta", "dtype": "<i8"}  # HDF5 has no such filter
    stored = np.diff(values.view("i8").reshape(3, -1), prepend=0)
    (tmp_path / "delta").write_bytes(stored.tobytes())
    refs: dict[str, object] = {".zgroup": {"zarr_format": 2}}
    for name, filters in (("data", None), ("delta", [codec])):
        refs[f"{name}/.zarray"] = array | {"filters": filters, "compressor": None}
        refs |= {f"{name}/{i}.0": [str(tmp_path / name), 128 * i, 128] for i in range(3)}
    refs["data/2.0"] = [(tmp_path / "data").as_uri(), 256, 128]
    (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
    with tamis.open(tmp_path / "refs.json") as file:
        np.testing.assert_array_equal(file["data"][...], values)
        np.testing.assert_array_equal(file["delta"][...], values)


@pytest.mark.parametrize("dtype", ["<f4", ">i8"])
def test_a_selection_of_a_chunk_without_filters_reads_a_part_of_it(dtype: str, server: Server, tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(-1000, 1000, (60, 80, 100)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = values
    tamis.export(server.url("a.h5"), tmp_path / "refs.json")
    with tamis.open(tmp_path / "refs.json") as file:
        array = file["v"]
        for key in [(30,), (-1, 5), (slice(3, 9, 2), 7), (10, slice(None, None, 3), 99), (12, [1, 5, 70], 4)]:
            server.reset()
            np.testing.assert_array_equal(array[key], values[key])
            assert server.requests == 1
            assert server.nbytes < values.nbytes // 8
        server.reset()
        np.testing.assert_array_equal(array[:, 40, 50], values[:, 40, 50])
        assert server.nbytes == values.nbytes  # from the first to the last value, more than half of the chunk
        np.testing.assert_array_equal(array[55], values[55])
        assert server.nbytes == values.nbytes  # which is kept


def test_options_reach_the_targets(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tamis.repack(SAMPLE, "s3://bucket/test_references/a.nc", {})
    tamis.export("s3://bucket/test_references/a.nc", tmp_path / "refs.json")
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    options = {"endpoint": s3, "region": "us-east-1", "access_key_id": "key", "secret_access_key": "secret"}
    with tamis.open(tmp_path / "refs.json", storage_options=options) as file, tamis.open(SAMPLE) as local:
        np.testing.assert_array_equal(file["TS"][...], local["TS"][...])
    words = [word for name, value in options.items() for word in ("--storage-option", f"{name}={value}")]
    command = [Path(sys.executable).with_name("tamis"), "verify", *words, SAMPLE, tmp_path / "refs.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_wrong_references_and_changed_files_are_errors(server: Server, references: Path, tmp_path: Path) -> None:
    document = json.loads(references.read_text())
    key, (url, _, nbytes) = next(item for item in document["refs"].items() if isinstance(item[1], list))
    size = (tmp_path / "a.nc").stat().st_size
    name = key.partition("/")[0]
    for entry, text in (
        ([url, size - 10, nbytes], r"a\.nc: expected \d+ bytes or more by the references of .*refs\.json"),
        ([url, size + 10, nbytes], r"a\.nc: expected \d+ bytes or more"),
        ([url.replace("a.nc", "b.nc"), 0, nbytes], r"b\.nc: cannot be read: no such object"),
        ([url, "x", nbytes], r"expected \[address, offset, size\] with numbers from 0 to"),
        (["{{f(x)}}", 0, nbytes], "templates that are names"),
    ):
        document["refs"][key] = entry
        references.write_text(json.dumps(document))
        with tamis.open(references) as file, pytest.raises(tamis.FileError, match=text):
            file[name][...]
    for content, text in (
        ('{"refs": {}}', "expected references"),
        ('{"refs": {".zgroup": "', "cannot be read as JSON"),
        ('{"refs": {".zgroup": "{}"}, "gen": [1]}', "generated ones"),
        ('{"a": 1}', "got JSON text: of JSON, tamis reads only references"),
    ):
        references.write_text(content)
        with pytest.raises(tamis.FileError, match=text):
            tamis.open(references)


def test_a_target_that_changes_while_it_is_read_is_an_error(references: Path, tmp_path: Path) -> None:
    with tamis.open(references) as file:
        file["TS"][0]
        path = tmp_path / "a.nc"
        path.write_bytes(path.read_bytes())
        with pytest.raises(tamis.FileError, match=r"a\.nc: the file changed while it was read"):
            file["TS"][-1]


def test_a_selection_looks_up_few_of_many_references(server: Server, tmp_path: Path) -> None:
    values = np.random.default_rng(6).integers(1, 99, (60, 48, 60), np.int32)
    with h5py.File(tmp_path / "many.h5", "w") as file:
        chunked = file.create_dataset("v", values.shape, "i4", chunks=(2, 8, 10), shuffle=True, compression=1)
        chunked[:40] = values[:40]  # chunks of the rest are absent
    values[40:] = 0
    tamis.export(tmp_path / "many.h5", tmp_path / "refs.json", "kerchunk", url=server.url("").rstrip("/"))
    with tamis.open(tmp_path / "refs.json") as file:
        for key in (7, 45, (slice(None), 9, 11), (slice(None, None, 7), slice(5, 9), 3), ([1, 39, 50], 4)):
            np.testing.assert_array_equal(file["v"][key], values[key])
        server.reset()
        server.in_rounds = True
        np.testing.assert_array_equal(file["v"][31], values[31])
        assert (server.requests, server.rounds) == (1, 1)
        np.testing.assert_array_equal(file["v"][...], values)
