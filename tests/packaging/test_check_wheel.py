"""The package as it is installed has what a wheel must have, and the check finds what must not be there.

No wheel is built: that takes minutes, and `make wheel` does it. What CI installs comes from the same build.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from types import ModuleType

import needs
import pytest
from made_libraries import mac_library, windows_library

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "check_wheel.py"

PLUGIN = ("H5PLget_plugin_info", "H5PLget_plugin_type", "NCZ_get_codec_info")

pytestmark = needs.needs("readelf")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_wheel", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Link the installed files into a folder of their own, as a wheel has them."""
    folder = tmp_path / "package"
    for file in distribution("tamis").files or ():
        # What pip puts beside the packages stands in a folder of the wheel.
        inside = PurePosixPath("tamis.data", "data", *file.parts[3:]) if ".." in file.parts else PurePosixPath(file)
        source, target = Path(str(file.locate())), folder / inside
        if source.exists() and "__pycache__" not in file.parts:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
    return folder


def test_installed_package_is_what_a_wheel_must_be(check: ModuleType, package: Path) -> None:
    assert list(check.problems_in(package)) == []


def test_missing_files_are_named(check: ModuleType, package: Path) -> None:
    for name in ("tamis/hdf5_plugin/libh5ztamis.so", "tamis/py.typed", "tamis/fortran/H5Zzfp_props_f.F90"):
        (package / name).unlink()
    patterns = ("_native.*.so", "licenses/LICENSE", "sboms/tamis.cdx.json", "man1/tamis.1")
    for pattern in patterns:
        (path,) = package.rglob(pattern)
        path.unlink()
    assert set(check.problems_in(package)) == {
        "expected tamis/hdf5_plugin/libh5ztamis.so, found none",
        "expected tamis/py.typed, found none",
        "expected tamis/fortran/H5Zzfp_props_f.F90, found none",
        "expected the module tamis/_native, found none",
        "expected the licence, found none",
        "expected the list of what others wrote, found none",
        "expected man pages, found none",
    }


def test_foreign_library_and_link_are_named(check: ModuleType, package: Path) -> None:
    import h5py

    (tests := package / "tamis" / "tests").mkdir()
    (tests / "test_x.py").write_text("")
    (package / "tamis.libs").mkdir()
    (package / "tamis.libs" / "libhdf5-1f2e.so.310").write_bytes(b"")
    (module,) = Path(h5py.__file__).parent.glob("h5z.*.so")
    (package / "tamis" / "h5z.so").symlink_to(module)
    plugin = package / "tamis" / "hdf5_plugin" / "libh5ztamis.so"
    plugin.unlink()
    plugin.symlink_to(module)
    found = "\n".join(check.problems_in(package))
    assert "expected no tamis/tests/test_x.py" in found
    assert "expected no library of others, found tamis.libs/libhdf5-1f2e.so.310" in found
    assert "expected tamis/h5z.so to link what every system has, found libhdf5" in found
    assert "libh5ztamis.so to export ['H5PLget_plugin_info', 'H5PLget_plugin_type', 'NCZ_get_codec_info']" in found


def test_wheel_of_one_machine_is_refused(check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = tmp_path / "tamis-1.0.0-cp312-cp312-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tamis/__init__.py", "")
    assert check.main([str(wheel)]) == 1
    output = capsys.readouterr().out
    assert "expected a tag manylinux, musllinux, macosx or win_amd64" in output
    assert "expected tamis/hdf5_plugin/libh5ztamis.so, found none" in output
    assert check.main([]) == 1


@pytest.mark.parametrize(
    ("tag", "system"),
    [
        ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", "Linux"),
        ("musllinux_1_2_aarch64", "Linux"),
        ("macosx_14_0_arm64", "macOS"),
        ("win_amd64", "Windows"),
        ("linux_x86_64", None),
        ("any", None),
    ],
)
def test_system_is_that_of_the_tag(check: ModuleType, tag: str, system: str | None) -> None:
    assert check.system_of(f"tamis-0.1.0-cp312-cp312-{tag}.whl") == system


RUNTIME = "api-ms-win-crt-heap-l1-1-0.dll"
OTHERS = {
    "macosx_14_0_arm64": {
        "_native.cpython-312-darwin.so": mac_library(["PyInit__native"], ["/usr/lib/libc++.1.dylib"]),
        "hdf5_plugin/libh5ztamis.so": mac_library(PLUGIN, ["/usr/lib/libc++.1.dylib"]),
        "lib/libh5zzfp.dylib": mac_library(["H5Z_zfp_initialize"], install_name="@rpath/libh5zzfp.dylib"),
        "lib/libtamis.dylib": mac_library(["tamis_encode"], install_name="@rpath/libtamis.dylib"),
        "lib/libh5zzfp.a": b"",
        "lib/libtamis.a": b"",
    },
    "win_amd64": {
        "_native.cp312-win_amd64.pyd": windows_library(["PyInit__native"], ["python312.dll", RUNTIME]),
        "hdf5_plugin/libh5ztamis.dll": windows_library(PLUGIN, ["KERNEL32.dll", RUNTIME]),
        "lib/libtamis.dll": windows_library(["tamis_encode"], ["KERNEL32.dll"]),
        "lib/libh5zzfp.lib": b"",
        "lib/libtamis.lib": b"",
        "lib/tamis.lib": b"",
    },
}
"""What the wheels of other systems have of their own."""

WRONG = {
    "macosx_14_0_arm64": (
        {
            "hdf5_plugin/libh5ztamis.so": mac_library(["H5Zzfp"], ["/opt/lib/libhdf5.310.dylib"]),
            "lib/libhdf5.310.dylib.dylib": b"",
            "lib/libtamis.a": None,
        },
        {
            "expected a file tamis/lib/libtamis\\.a, found none",
            "expected no library of others, found tamis/lib/libhdf5.310.dylib.dylib",
            "expected tamis/hdf5_plugin/libh5ztamis.so to link what every system has, found /opt/lib/libhdf5.310.dylib",
            f"expected tamis/hdf5_plugin/libh5ztamis.so to export {sorted(PLUGIN)}, found ['H5Zzfp']",
        },
    ),
    "win_amd64": (
        {
            "hdf5_plugin/libh5ztamis.dll": windows_library(PLUGIN, ["MSVCP140.dll"]),
            "lib/hdf5.dll": b"",
            "lib/libtamis.dll": None,
            "_native.cp312-win_amd64.pyd": None,
        },
        {
            r"expected a file tamis/lib/libtamis\.dll, found none",
            "expected no library of others, found tamis/lib/hdf5.dll",
            "expected tamis/hdf5_plugin/libh5ztamis.dll to link what every system has, found MSVCP140.dll",
            "expected tamis/hdf5_plugin/libh5ztamis.dll to bring its C++ runtime along, found MSVCP140.dll",
            "expected the module tamis/_native, found none",
        },
    ),
}


def made_wheel(folder: Path, package: Path, tag: str, changed: Mapping[str, bytes | None]) -> Path:
    """Make a wheel of another system: what is the same on all, and libraries that say the right thing."""
    wheel = folder / f"tamis-0.1.0-cp312-cp312-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(package.rglob("*")):
            name = path.relative_to(package).as_posix()
            if path.is_file() and not re.search(r"\.(a|so)$|/(bin|__pycache__)/", name):
                archive.write(path, name)
        for name, content in {**OTHERS[tag], **changed}.items():
            if content is not None:
                archive.writestr(f"tamis/{name}", content)
    return wheel


@pytest.mark.parametrize("tag", OTHERS)
def test_wheels_of_other_systems_are_read_here(check: ModuleType, package: Path, tmp_path: Path, tag: str) -> None:
    assert list(check.problems_of(made_wheel(tmp_path, package, tag, {}))) == []
    changed, said = WRONG[tag]
    assert set(check.problems_of(made_wheel(tmp_path, package, tag, changed))) == said
