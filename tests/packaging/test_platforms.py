"""What `make check-macos` and `make check-windows` read of libraries, and what they say where a tool is absent."""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = ROOT / "packaging" / "platforms"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PLATFORMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made  # dataclasses look for it
    spec.loader.exec_module(made)
    return made


mach_o, pe = module("mach_o"), module("pe")


def command(number: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<II", number, 8 + len(body)) + body


def dylib(name: str) -> bytes:
    return struct.pack("<IIII", 24, 0, 0, 0) + name.encode() + b"\0"


# Two names with the same beginning, as edges: "_ta" then "mis" or "xi", which end at 0 with 2 bytes each.
TRIE = (
    b"\0\1_ta\0" + bytes([7])  # the root, whose child begins at 7
    + b"\0\2mis\0" + bytes([18]) + b"xi\0" + bytes([22])  # 7
    + b"\2\0\0\0" + b"\2\0\0\0"  # 18 and 22
)  # fmt: skip


def mac_library(**changed: int) -> bytes:
    """Make a library for arm64 with a symbol that it needs."""
    names = b"\0_needed\0"
    symbols = struct.pack("<IBBHQ", 1, 1, 0, 0, 0)
    fixed = [
        command(0xD, dylib("@rpath/libtamis.dylib")),
        command(0xC, dylib("/usr/lib/libSystem.B.dylib")),
        command(0x32, struct.pack("<IIII", 1, 14 << 16 | 2 << 8, 0, 0)),
    ]
    start = 32 + sum(map(len, fixed)) + 16 + 24
    after = start + len(TRIE)
    last = [
        command(0x80000033, struct.pack("<II", start, len(TRIE))),
        command(0x2, struct.pack("<IIII", after, 1, after + len(symbols), len(names))),
    ]
    words = {"magic": 0xFEEDFACF, "processor": 0x0100000C, "kind": 6} | changed
    head = struct.pack("<IIIIIIII", words["magic"], words["processor"], 0, words["kind"], 5, 0, 0, 0)
    return head + b"".join([*fixed, *last]) + TRIE + symbols + names


def test_mach_o_library_has_what_its_commands_say(tmp_path: Path) -> None:
    path = tmp_path / "libtamis.dylib"
    path.write_bytes(mac_library())
    assert mach_o.read(path) == mach_o.MachO(
        "arm64", "dylib", "@rpath/libtamis.dylib", ("/usr/lib/libSystem.B.dylib",), (), "14.2",
        ("tamis", "taxi"), ("needed",),
    )  # fmt: skip


@pytest.mark.parametrize("changed", [{"magic": 0xCAFEBABE}, {"processor": 12}, {"kind": 2}])
def test_mach_o_other_files_are_refused(tmp_path: Path, changed: dict[str, int]) -> None:
    path = tmp_path / "other"
    path.write_bytes(mac_library(**changed))
    with pytest.raises(ValueError, match="expected a"):
        mach_o.read(path)


def windows_library() -> bytes:
    """Make a library for x86-64 with one section, which is as in the file 0x1000 bytes further on in memory."""
    head = bytearray(0x200)
    head[:2], head[60:64], head[64:68] = b"MZ", struct.pack("<I", 64), b"PE\0\0"
    struct.pack_into("<HH12xH", head, 68, 0x8664, 1, 112 + 16)
    struct.pack_into("<H", head, 88, 0x20B)
    struct.pack_into("<IIII", head, 88 + 112, 0x1000, 40, 0x1080, 40)
    struct.pack_into("<8sIIII", head, 88 + 128, b".rdata", 0x200, 0x1000, 0x200, 0x200)
    body = bytearray(0x200)
    struct.pack_into("<24xI4xI", body, 0, 1, 0x1040)
    struct.pack_into("<I", body, 0x40, 0x1050)
    body[0x50:0x56] = b"tamis\0"
    struct.pack_into("<12xI", body, 0x80, 0x10C0)
    body[0xC0:0xCD] = b"KERNEL32.dll\0"
    return bytes(head + body)


def test_pe_library_has_its_exports_and_what_it_links(tmp_path: Path) -> None:
    path = tmp_path / "libtamis.dll"
    path.write_bytes(windows_library())
    assert pe.read(path) == pe.Pe(("tamis",), ("KERNEL32.dll",))
    path.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(ValueError, match="expected a PE file"):
        pe.read(path)


def said_without(script: str, folder: Path, path: str) -> tuple[int, str]:
    """Run a check where neither zig nor, if the path says so, wine is."""
    code = f"import runpy, sys; sys.modules['ziglang'] = None; sys.argv = ['', {str(folder)!r}]; sys.path[:0] = [{str(PLATFORMS)!r}]; runpy.run_path({str(PLATFORMS / script)!r}, run_name='__main__')"  # noqa: E501
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(importlib.util.find_spec("nanobind") is None, reason="nanobind is not installed: make test does")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("check_macos.py", "expected zig, found none: pip install ziglang, as make does\n"),
        (
            "check_windows.py",
            "expected wine for programs of x86-64, found none: apt-get install wine64 (Debian, Ubuntu)\n",
        ),
    ],
)
def test_absent_tool_is_named(tmp_path: Path, script: str, said: str) -> None:
    assert said_without(script, tmp_path, str(tmp_path)) == (1, said)


def test_names_that_apple_and_windows_take_are_those_of_linux() -> None:
    build = (ROOT / "CMakeLists.txt").read_text()
    given = re.search(r"tamis_export\(tamis_plugin native/hdf5/exports.map (.+)\)", build)
    assert given is not None
    linux = re.findall(r"\w+(?=;)", (ROOT / "native/hdf5/exports.map").read_text().partition("local")[0])
    assert sorted(given[1].split()) == sorted(linux)


def test_wheels_are_tested_by_the_list_of_make_quick() -> None:
    first = re.search(r"^FIRST := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] in (ROOT / ".github/workflows/wheels.yml").read_text()
