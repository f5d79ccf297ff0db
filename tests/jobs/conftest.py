"""What the tests of the jobs need besides pytest: files, real ones and small ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import needs
import pytest
from inprocess import threads_as_workers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workers_are_threads() -> Iterator[None]:
    """Folder runs work in threads of this process, which saves the start of others."""
    with threads_as_workers():
        yield


@pytest.fixture(scope="session")
def sample() -> Path:
    """The field that the repository ships."""
    return ROOT / "examples" / "data" / "cam_ts.nc"


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """Find a file of shared/data."""

    return needs.real


@pytest.fixture(scope="session")
def sha256() -> Callable[[Path], str]:
    return lambda path: hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def make() -> Callable[..., Path]:
    """Write datasets; a dict gives their options, and attributes after a dot."""

    def call(path: Path, **data: Any) -> Path:
        with h5py.File(path, "w") as file:
            for name, value in data.items():
                options = dict(value) if isinstance(value, dict) else {"data": value}
                attributes = {key[1:]: options.pop(key) for key in [*options] if key.startswith(".")}
                file.create_dataset(name, **options).attrs.update(attributes)
        return path

    return call


@pytest.fixture
def pair(tmp_path: Path, make: Callable[..., Path]) -> Callable[..., tuple[Path, Path]]:
    """Make two files of one dataset x each."""

    def call(before: Any, after: Any) -> tuple[Path, Path]:
        return make(tmp_path / "a.h5", x=before), make(tmp_path / "b.h5", x=after)

    return call
