"""The package as it is installed has what a wheel must have, and the check finds what must not be there.

No wheel is built: that takes minutes, and `make wheel` does it. What CI installs comes from the same build.
"""

from __future__ import annotations

import importlib.util
import zipfile
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from types import ModuleType

import needs
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "check_wheel.py"

pytestmark = needs.needs("readelf")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_wheel", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
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
        "expected pages of man, found none",
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
    assert "expected a tag manylinux or macosx" in output
    assert "expected tamis/hdf5_plugin/libh5ztamis.so, found none" in output
    assert check.main([]) == 1
    portable = "-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
    assert check._PORTABLE.search(f"tamis-1.0.0-cp312-cp312{portable}")
    assert check._PORTABLE.search("tamis-1.0.0-cp312-cp312-macosx_14_0_arm64.whl")
