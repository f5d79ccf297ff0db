"""Local servers of files: one for ranges, with faults, and S3."""

from __future__ import annotations

import gc
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from range_server import Server, range_server


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep metadata of this test's files apart."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TAMIS_CACHE", str(folder))
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Return a server of the temporary folder.

    It is a thread of this process. A collection of garbage there would wait for h5py's lock, if it met objects of h5py,
    while the holder of that lock waits for the server.
    """
    gc.collect()
    gc.disable()
    try:
        with range_server(tmp_path) as running:
            yield running
    finally:
        gc.enable()


@pytest.fixture
def make_file(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a file with one dataset of chunks, 3 MB of them, and some others."""

    def make(name: str = "a.h5", **options: object) -> Path:
        path = tmp_path / name
        values = np.random.default_rng(3).normal(size=(60, 64, 96)).astype("f4").cumsum(axis=0)
        with h5py.File(path, "w", **options) as file:
            file.create_dataset("TS", data=values, chunks=(2, 16, 32), shuffle=True, compression=1)
            file.create_dataset("plain", data=values[:20])
            file.create_dataset("group/x", data=np.arange(9.0)).attrs["units"] = "K"
        return path

    return make


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Return the address of an S3 server with the bucket ``bucket``."""
    moto = pytest.importorskip("moto.server")
    running = moto.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    _, port = running.get_host_and_port()
    url = f"http://127.0.0.1:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")).close()
    yield url
    running.stop()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of the S3 server, which the environment names, with credentials."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    return s3_server
