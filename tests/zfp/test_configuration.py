"""Which kernels of the codec are there, and which one is used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import processor
import pytest

import tamis
from tamis import _native
from tamis.jobs.installation import install_interface
from tamis.zfp import configuration

FIELD = np.add.outer(np.sin(np.arange(19.0)), np.arange(14.0)).astype(np.float32)
SHOW = "import tamis; print(tamis.config().kernel)"


def python(code: str, kernel: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != _native.kernel_variable}
    if kernel is not None:
        environment[_native.kernel_variable] = kernel
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_config_names_version_codec_and_kernels() -> None:
    found = tamis.config()
    assert found.version == tamis.__version__
    assert found.codec == "ZFP codec 5"
    assert found.kernel in found.kernels
    assert "portable" in found.kernels
    assert str(found).startswith(f"tamis {tamis.__version__}, ZFP codec 5, kernel {found.kernel}")


@pytest.mark.matrix
@pytest.mark.parametrize("asked", [None, "", *_native.kernels()])
def test_kernel_of_the_environment_is_used_the_fastest_if_none(asked: str | None) -> None:
    done = python(SHOW, asked)
    assert (done.stdout.strip(), done.stderr) == (asked or _native.kernels()[0], "")


@pytest.mark.matrix
@pytest.mark.parametrize("asked", ["sse9", "AVX2", "ünknown"])
def test_kernel_that_cannot_be_had_warned_about_and_the_fastest_used(asked: str) -> None:
    done = python(SHOW, asked)
    assert done.stdout.strip() == _native.kernels()[0]
    expected = f"expected TAMIS_KERNEL to be {' or '.join(_native.kernels())} on this machine, got '{asked}'"
    assert f"RuntimeWarning: {expected}; using {_native.kernels()[0]}" in done.stderr


def test_use_kernel_unknown_refused() -> None:
    with pytest.raises(ValueError, match=r"expected one of _native\.kernels"):
        _native.use_kernel("sse9")


def test_use_kernel_each_gives_the_same_bytes(kernel: str) -> None:
    assert tamis.config().kernel == kernel
    stream = tamis.zfp.encode(FIELD, tamis.zfp.Accuracy(1e-3))
    before = _native.use_kernel("portable")
    try:
        assert tamis.zfp.encode(FIELD, tamis.zfp.Accuracy(1e-3)) == stream
    finally:
        _native.use_kernel(before)


PLUGIN = """
import sys, h5py, numpy as np, tamis
with h5py.File(sys.argv[1] if len(sys.argv) > 1 else "unused", "w", driver="core", backing_store=False) as file:
    values = np.arange(4096.0, dtype="f4").reshape(64, 64)
    file.create_dataset("a", data=values, chunks=(32, 32), **tamis.Zfp(accuracy=1e-3))
    print(abs(file["a"][...] - values).max() <= 1e-3, file["a"].id.get_storage_size())
"""


@pytest.mark.check
def test_plugin_takes_the_kernel_of_the_environment_and_says_where_it_cannot() -> None:
    sizes = {python(PLUGIN, asked).stdout for asked in (None, *_native.kernels())}
    assert len(sizes) == 1
    assert sizes.pop().startswith("True ")
    done = python(PLUGIN, "sse9")
    assert done.stdout.startswith("True ")
    assert "tamis: expected TAMIS_KERNEL to name a kernel of this machine, got 'sse9'; using" in done.stderr


@pytest.mark.parametrize("kernel", processor.NEEDED)
def test_u33_kernel_that_this_processor_can_run_is_there(kernel: str) -> None:
    if not processor.can_run(kernel):
        assert kernel not in tamis.config().kernels
        pytest.skip(f"this processor cannot run the kernel {kernel}")
    if processor.left_out(kernel):
        assert kernel not in tamis.config().kernels
        pytest.skip(f"the build was told to leave out the kernel {kernel}")
    if not processor.compiler_makes(kernel):
        assert kernel not in tamis.config().kernels
        pytest.skip(f"this compiler does not make the kernel {kernel}")
    assert kernel in tamis.config().kernels


def test_u33_no_kernel_is_unknown_to_these_tests() -> None:
    assert set(tamis.config().kernels) <= processor.NEEDED.keys()


def test_u33_fastest_kernel_is_chosen() -> None:
    fast = ("neon", "avx512", "avx2", "avx2-tzcnt", "portable")
    order = fast if processor.runs_pext_fast() else ("avx2-tzcnt", "portable", "avx2", "avx512")
    environment = {name: value for name, value in os.environ.items() if name != "TAMIS_KERNEL"}
    command = [sys.executable, "-c", "import tamis; print(tamis.config().kernel)"]
    chosen = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert chosen == next(kernel for kernel in order if kernel in tamis.config().kernels)


# What the package has on each system, and the linker options for both libraries, shared and static.
LIBRARIES = {
    "Linux": (
        ("libh5zzfp.so", "libh5zzfp.a", "libtamis.so", "libtamis.a"),
        {
            (False, False): "-L{} -Wl,-rpath,{} -lh5zzfp",
            (False, True): "{}/libh5zzfp.a -lm",
            (True, False): "-L{} -Wl,-rpath,{} -ltamis",
            (True, True): "{}/libtamis.a -lstdc++ -lm -pthread",
        },
    ),
    "macOS": (
        ("libh5zzfp.dylib", "libh5zzfp.a", "libtamis.dylib", "libtamis.a"),
        {
            (False, False): "-L{} -Wl,-rpath,{} -lh5zzfp",
            (False, True): "{}/libh5zzfp.a -lm",
            (True, False): "-L{} -Wl,-rpath,{} -ltamis",
            (True, True): "{}/libtamis.a -lc++",
        },
    ),
    "Windows, MinGW": (
        ("libh5zzfp.a", "libtamis.dll", "libtamis.dll.a", "libtamis.a"),
        {
            (False, False): "{}/libh5zzfp.a -lm",
            (False, True): "{}/libh5zzfp.a -lm",
            (True, False): "-L{} -ltamis",
            (True, True): "{}/libtamis.a -lstdc++ -lm -pthread",
        },
    ),
    "Windows, clang-cl": (
        ("libh5zzfp.lib", "libtamis.dll", "tamis.lib", "libtamis.lib"),
        {
            (False, False): "{}/libh5zzfp.lib",
            (False, True): "{}/libh5zzfp.lib",
            (True, False): "-L{} -ltamis",
            (True, True): "{}/libtamis.lib",
        },
    ),
}


@pytest.mark.parametrize("system", LIBRARIES)
def test_linker_options_are_for_the_libraries_of_the_system(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration, "_package", lambda: tmp_path)
    folder = tmp_path / "lib"
    folder.mkdir()
    names, expected = LIBRARIES[system]
    for name in names:
        (folder / name).touch()
    for (codec, static), options in expected.items():
        assert tamis.config().libs(codec=codec, static=static) == options.replace("{}", str(folder))


@pytest.mark.parametrize("system", LIBRARIES)
def test_installed_folder_has_the_libraries_of_the_system(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    shutil.copytree(
        tamis.config().include_path.parent, package, ignore=shutil.ignore_patterns("lib*.a", "*.so", "*.py")
    )
    for name in LIBRARIES[system][0]:
        (package / "lib" / name).touch()
    monkeypatch.setattr(configuration, "_package", lambda: package)
    installed = install_interface(tmp_path / "prefix").files
    # The static library alone lies where `-lh5zzfp` looks.
    expected = {f"lib/{'' if name.endswith(('.a', '.lib')) else 'shared/'}{name}" for name in LIBRARIES[system][0]}
    assert {name for name in installed if "libh5zzfp" in name} == {name for name in expected if "h5zzfp" in name}
    assert all((tmp_path / "prefix" / name).is_file() for name in installed)
