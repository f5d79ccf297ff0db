"""Known defects U89, U106 and U108: references with hostile targets, numbers and names are errors in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inprocess import run_tamis
from range_server import Server

import tamis

VALUES = np.arange(64, dtype="<f4")


def document(refs: dict[str, Any], **metadata: Any) -> str:
    """Return references to an array of four chunks, with other metadata and entries."""
    facts = {"zarr_format": 2, "shape": [64], "chunks": [16], "dtype": "<f4", "compressor": None, "filters": None}
    array = {**facts, "order": "C", "fill_value": 0, **metadata}
    return json.dumps({"version": 1, "refs": {".zgroup": {"zarr_format": 2}, "v/.zarray": array, **refs}})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of documents, beside a folder with a secret, with the same names in the working folder."""
    inside = tmp_path / "docs"
    (inside / "deep").mkdir(parents=True)
    for path in (inside / "data.bin", inside / "deep/data.bin", tmp_path / "secret.bin"):
        path.write_bytes(VALUES.tobytes())
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd/data.bin").write_bytes(bytes(256))
    monkeypatch.chdir(tmp_path / "cwd")
    return inside


def read(path: Any, **options: Any) -> list[float]:
    with tamis.open(path, **options) as file:
        return file["v"][:16].tolist()


@pytest.mark.parametrize("target", ["data.bin", "./data.bin", "deep/../data.bin", "{}/data.bin", "file://{}/data.bin"])
def test_u89_references_targets_are_relative_to_the_document(folder: Path, target: str) -> None:
    (folder / "r.json").write_text(document({"v/0": [target.format(folder), 0, 64]}))
    assert read(folder / "r.json") == VALUES[:16].tolist()
    assert read(os.path.relpath(folder / "r.json")) == VALUES[:16].tolist()


@pytest.mark.parametrize("target", ["../secret.bin", "deep/../../secret.bin", "{}/secret.bin", "file://{}/secret.bin"])
@pytest.mark.parametrize("whole", [True, False])
def test_u89_references_outside_the_folder_need_an_option(folder: Path, target: str, *, whole: bool) -> None:
    entry = [target.format(folder.parent)] + [0, 64] * (not whole)
    (folder / "r.json").write_text(document({"v/0": entry}))
    with pytest.raises(
        tamis.FileError, match=r"outside its folder .*: if you trust the document, give --allow-outside"
    ):
        read(folder / "r.json")
    expected = VALUES[:16].tolist()
    if not whole:
        assert read(folder / "r.json", allow_outside=True) == expected
        address = tamis.Address(str(folder / "r.json"), allow_outside=True)
        assert tamis.repack(address, folder / "o.h5", {}).target_nbytes


def test_u89_references_through_a_link_out_of_the_folder_need_an_option(folder: Path) -> None:
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    (folder / "way").symlink_to(folder.parent)
    for target in ("link.bin", "way/secret.bin"):
        (folder / "r.json").write_text(document({"v/0": [target, 0, 64]}))
        with pytest.raises(tamis.FileError, match="outside its folder"):
            read(folder / "r.json")


def test_u89_references_in_a_linked_folder_are_inside(folder: Path) -> None:
    (folder.parent / "way").symlink_to(folder)
    (folder / "r.json").write_text(document({"v/0": ["data.bin", 0, 64]}))
    assert read(folder.parent / "way/r.json") == VALUES[:16].tolist()


def test_u89_references_with_a_template_are_checked_when_it_is_filled_in(folder: Path) -> None:
    text = json.loads(document({"v/0": ["{{u}}", 0, 64]})) | {"templates": {"u": "../secret.bin"}}
    (folder / "r.json").write_text(json.dumps(text))
    with pytest.raises(tamis.FileError, match="outside its folder"):
        read(folder / "r.json")


@pytest.mark.parametrize("options", [[], ["--allow-outside"]])
def test_u89_references_command_has_the_option(folder: Path, options: list[str]) -> None:
    (folder / "r.json").write_text(document({f"v/{i}": ["../secret.bin", 64 * i, 64] for i in range(4)}))
    done = run_tamis("repack", folder / "r.json", folder / "o.h5", *options)
    assert (done.returncode == 0) == bool(options), done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def served(server: Server, folder: Path, tmp_path: Path) -> Server:
    (tmp_path / "deep").mkdir(exist_ok=True)
    (tmp_path / "deep/near.bin").write_bytes(VALUES.tobytes())
    return server


@pytest.mark.matrix
@pytest.mark.parametrize(
    "target", ["{}/secret.bin", "file://{}/secret.bin", "FILE://{}/secret.bin", "file:{}/secret.bin"]
)
def test_u89_references_elsewhere_lead_to_no_file_here(served: Server, tmp_path: Path, target: str) -> None:
    (tmp_path / "deep/r.json").write_text(document({"v/0": [target.format(tmp_path), 0, 64]}))
    for options in ({}, {"allow_outside": True}):
        with pytest.raises(tamis.FileError, match="on the machine of the reader"):
            read(served.url("deep/r.json"), **options)


@pytest.mark.matrix
@pytest.mark.parametrize("target", ["near.bin", "../secret.bin", "./../deep/near.bin"])
def test_u89_references_elsewhere_are_relative_to_the_document(served: Server, tmp_path: Path, target: str) -> None:
    (tmp_path / "deep/r.json").write_text(document({"v/0": [target, 0, 64]}))
    assert read(served.url("deep/r.json")) == VALUES[:16].tolist()
    assert read(served.url("deep/r.json") + "?signature=x") == VALUES[:16].tolist()


def test_u89_references_elsewhere_do_not_leave_the_server(served: Server, tmp_path: Path) -> None:
    (tmp_path / "deep/r.json").write_text(document({"v/0": ["../../../secret.bin", 0, 64]}))
    with pytest.raises(tamis.FileError, match="it is outside"):
        read(served.url("deep/r.json"))


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("target", "kind"), [("pipe", "a pipe"), ("deep", "a folder"), ("/dev/zero", "a device"), ("/dev/null", "a device")]
)
def test_u106_references_to_what_is_no_file_are_refused_at_once(folder: Path, target: str, kind: str) -> None:
    os.mkfifo(folder / "pipe")
    for entry in ([target, 0, 64], [target]):
        (folder / "r.json").write_text(document({"v/0": entry}))
        script = (
            "import sys, tamis\n"
            "try: tamis.open(sys.argv[1], allow_outside=True)['v'][:16]\n"
            "except tamis.FileError as error: print(error)\n"
        )
        command = [sys.executable, "-c", script, str(folder / "r.json")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert kind in done.stdout


@pytest.mark.matrix
@pytest.mark.parametrize(
    "entry",
    [
        *(["data.bin", offset, 64] for offset in (-1, 1.0, True, None, "0", 2**62, 2**63, 2**64, 10**40, 1e300)),
        *(["data.bin", 0, nbytes] for nbytes in (-1, 64.0, False, None, "64", 2**62, 2**63, 10**40)),
        ["data.bin", 2**62, 2**62],
        ["data.bin", 0, 2**52],
        ["data.bin", 2**52, 64],
        ["data.bin", 0],
        ["data.bin", 0, 1, 2],
        [],
        [None, 0, 64],
        [["data.bin"], 0, 64],
        None,
        7,
        True,
        ["data\0bin", 0, 64],
        ["\ud800", 0, 64],
        ["x" * 70000, 0, 64],
        ["http://[::1", 0, 64],
        ["x://y", 0, 64],
        ["s3://", 0, 64],
        ["", 0, 64],
        ["base64:", 0, 64],
        "base64:%%%",
        "base64:AAA",
        "\ud800",
    ],
)
def test_u108_references_with_a_hostile_entry_are_an_error(folder: Path, entry: Any) -> None:
    (folder / "r.json").write_text(document({"v/0": entry, "v/1": ["data.bin", 64, 64]}))
    with pytest.raises(tamis.FileError):
        read(folder / "r.json")
    with pytest.raises(tamis.FileError):
        tamis.repack(folder / "r.json", folder / "o.h5", {"v": "deflate(1)"})
    assert not tamis.verify(folder / "r.json", folder / "r.json").ok
    with suppress(tamis.FileError):
        tamis.inspect(folder / "r.json")


@pytest.mark.matrix
@pytest.mark.parametrize("axes", [33, 64, 65, 70, 1000])
def test_u108_references_with_too_many_axes_are_an_error(folder: Path, axes: int) -> None:
    (folder / "r.json").write_text(document({}, shape=[1] * axes, chunks=[1] * axes))
    done = _command("inspect", folder / "r.json")
    assert "Traceback" not in done.stderr
    for command in ("plan", "verify", "repack"):
        places = [folder / "r.json"] * (command == "verify") + [folder / f"{command}.h5"] * (command == "repack")
        done = _command(command, folder / "r.json", *places)
        assert "Traceback" not in done.stderr, done.stderr


def _command(*words: Any) -> subprocess.CompletedProcess[str]:
    return run_tamis(*words)


@pytest.mark.matrix
@pytest.mark.parametrize("key", ["/a/x/.zarray", "a//x/.zarray", "../x/.zarray", "a/./x/.zarray", "", "v/"])
def test_u108_references_with_a_hostile_name_are_an_error_without_noise(folder: Path, key: str) -> None:
    array = json.loads(document({}))["refs"]["v/.zarray"]
    (folder / "r.json").write_text(document({key: array}))
    done = _command("inspect", folder / "r.json")
    assert done.returncode == 1
    assert "expected names such as TS/0.0" in done.stderr
    assert len(done.stderr.splitlines()) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
NUMBERS = st.integers(-1, 300) | st.integers(2**31 - 2, 2**66) | st.floats() | st.booleans()
TARGETS = st.sampled_from(["data.bin", "pipe", "deep", "../secret.bin", "gone", "/dev/zero", "file:///etc/passwd"])
ENTRIES = st.one_of(
    st.tuples(TARGETS | st.text(max_size=5), NUMBERS, NUMBERS).map(list),
    st.just(["data.bin", 0, 64]),
    JSON,
)
NAMES = st.sampled_from(["v/0", "v/1", "v/.zattrs", "w/.zarray", "v/zarr.json", ".zattrs", ".zmetadata"])
KEYS = NAMES | st.text(alphabet="v/.0z\0é", max_size=6)
METADATA = st.dictionaries(
    st.sampled_from(["shape", "chunks", "dtype", "compressor", "filters", "order", "fill_value", "zarr_format"]),
    JSON | st.lists(NUMBERS, max_size=3) | st.sampled_from(["<f8", ">i2", "|O", "|S5", "nan", "F", {"id": "zlib"}]),
    max_size=2,
)


@given(refs=st.dictionaries(KEYS, ENTRIES, max_size=3), metadata=METADATA)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_u108_references_of_any_content_give_values_or_errors_of_tamis(
    folder: Path, refs: dict[str, Any], metadata: dict[str, Any]
) -> None:
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    (folder / "r.json").write_text(document(refs, **metadata))
    for job in (_read_all, tamis.inspect, _repack):
        with suppress(tamis.TamisError):
            job(folder / "r.json")


def _read_all(path: Path) -> None:
    with tamis.open(path) as file:
        for name in file:
            array = file[name]
            if np.prod([float(extent) for extent in array.shape or ()]) < 1e6:
                array[...]


def _repack(path: Path) -> None:
    with tamis.open(path) as file:
        small = all(np.prod([float(extent) for extent in file[name].shape or ()]) < 1e6 for name in file)
    if small:
        tamis.repack(path, path.with_name("any.h5"), {}, overwrite=True)


def test_u89_references_in_parquet_are_refused_and_not_read_as_fill_values(tmp_path: Path) -> None:
    (tmp_path / "refs.parq/v").mkdir(parents=True)
    array = json.loads(document({}))["refs"]["v/.zarray"]
    content = {"metadata": {".zgroup": {"zarr_format": 2}, "v/.zarray": array}, "record_size": 10000}
    (tmp_path / "refs.parq/.zmetadata").write_text(json.dumps(content))
    with pytest.raises(tamis.FileError, match="references in Parquet"):
        tamis.open(tmp_path / "refs.parq")
    assert _command("inspect", tmp_path / "refs.parq").returncode == 1
