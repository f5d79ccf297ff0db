"""Shared libraries: their names on each system, and which ones this process has."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import h5py
import pytest
from second_copy import second_copy

from tamis.system import libraries

# What HDF5 takes for a plugin: H5PL__path_table and H5PL__find_plugin_in_path of its H5PLpath.c.
PLUGINS = [
    ("linux", "libh5z.so", True),
    ("linux", "libh5z.so.1.2", True),
    ("linux", "libh5z.dylib", False),
    ("linux", "h5z.so", False),
    ("darwin", "libh5z.dylib", True),
    ("darwin", "libh5z.so", True),
    ("darwin", "h5z.dll", False),
    ("win32", "h5z.dll", True),
    ("win32", "libh5z.DLL", True),
    ("win32", "libh5z.so", False),
]


@pytest.mark.parametrize(("suffixes", "name", "expected"), PLUGINS)
def test_plugins_are_known_by_the_names_of_their_system(
    suffixes: str, name: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"linux": (".so",), "darwin": (".dylib", ".so"), "win32": (".dll",)}
    monkeypatch.setattr(libraries, "PLUGIN_SUFFIXES", known[suffixes])
    assert libraries.is_plugin(name) is expected


def test_plugin_in_a_folder_is_the_one_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "PLUGIN_SUFFIXES", (".dylib", ".so"))
    assert libraries.plugin_in(tmp_path, "libx") == tmp_path / "libx.dylib"
    (tmp_path / "libx.so").touch()
    assert libraries.plugin_in(tmp_path, "libx") == tmp_path / "libx.so"


def test_folders_in_a_variable_are_parted_as_on_this_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDF5_PLUGIN_PATH", "/a::/b")
    assert libraries.folders_in("HDF5_PLUGIN_PATH") == ["/a", "/b"]
    monkeypatch.setenv("HDF5_PLUGIN_PATH", r"C:\a;D:\b")
    monkeypatch.setattr(os, "pathsep", ";")
    assert libraries.folders_in("HDF5_PLUGIN_PATH") == [r"C:\a", r"D:\b"]


def test_loaded_libraries_have_those_of_h5py() -> None:
    loaded = [path for path in libraries.loaded_libraries() if os.path.exists(path)]
    assert any(os.path.samefile(path, h5py.h5p.__file__) for path in loaded)
    assert any("libhdf5" in os.path.basename(path) for path in loaded)
    assert len(loaded) == len(set(loaded))


def test_library_with_a_function_is_searched_among_loaded_ones_where_the_system_looks_in_one_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Windows, where an extension module does not have the functions of the libraries that it needs."""

    class Alone(ctypes.CDLL):
        """A library that only has the functions that are in itself: here, those of HDF5 in libhdf5."""

        def __getattr__(self, name: str) -> object:
            if name.startswith("H5") and "libhdf5" not in os.path.basename(self._name):
                raise AttributeError(name)
            return super().__getattr__(name)

    assert not hasattr(Alone(h5py.h5p.__file__), "H5open")
    monkeypatch.setattr(libraries, "PLUGIN_SUFFIXES", (".dll",))
    found = libraries.library_with("H5open", h5py.h5p.__file__, Alone)
    assert "libhdf5" in os.path.basename(found._name)
    assert found.H5open() >= 0
    assert libraries.library_with("no_such_function", h5py.h5p.__file__, Alone)._name == h5py.h5p.__file__


def test_function_that_the_c_library_lacks_is_none() -> None:
    assert libraries.c_function("tamis_has_no_such_function") is None
    assert libraries.c_function("malloc") is not None


def test_c_library_that_cannot_be_found_has_no_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = second_copy("tamis.system.libraries")
    monkeypatch.setattr(copy, "_C_LIBRARY", "no such library")
    assert copy.c_function("malloc") is None


def test_images_of_macos_are_asked_for_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for dyld, whose list may become shorter meanwhile."""
    paths = [b"/usr/lib/libSystem.B.dylib", None, b"/opt/lib/libhdf5.310.dylib"]

    class NameOf:
        restype: object = None

        def __call__(self, number: ctypes.c_uint32) -> bytes | None:
            assert self.restype is ctypes.c_char_p  # else the address would be cut to an int
            return paths[number.value]

    class Dyld:
        _dyld_get_image_name = NameOf()

        def _dyld_image_count(self) -> int:
            return len(paths)

    monkeypatch.setattr(libraries, "c_library", Dyld)
    assert [*libraries._images()] == ["/usr/lib/libSystem.B.dylib", "/opt/lib/libhdf5.310.dylib"]
