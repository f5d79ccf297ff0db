"""What the tests of the plugin need besides pytest: our plugin, other people's plugins and files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import needs
import pytest

import tamis


@pytest.fixture(scope="session")
def plugins() -> Path:
    """The folder of our plugin."""
    return tamis.plugin_path()


@pytest.fixture(scope="session")
def debian_plugins() -> Path:
    """The folder of Debian's H5Z-ZFP."""
    return needs.debian_plugins() or needs.absent(needs.PLUGIN)


@pytest.fixture(scope="session")
def h5zzfp() -> Callable[[str], Path]:
    """Find one of H5Z-ZFP's own test files."""

    return lambda name: needs.real(f"h5zzfp/{name}")
