"""Native code calls the system in one folder only, whatever that system is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
HOME = NATIVE / "include" / "tamis" / "system"
SOURCES = sorted(path for path in NATIVE.rglob("*") if path.suffix in (".hpp", ".cpp", ".h"))

# Headers of one system or of a few.
HEADERS = re.compile(
    r"\s*#\s*include\s*[<\"]((?:sys|arpa|mach|mach-o|netinet|linux)/[\w/.-]+|(?:dlfcn|unistd|pthread|sched|fcntl|signal|xlocale|"
    r"locale|malloc|alloca|io|windows|process|intrin|semaphore|poll|dirent|spawn|termios|execinfo|strings)\.h)[>\"]"
)

# Calls that ISO C++ does not have.
CALLS = re.compile(
    r"(?<![\w.>:\"])(?:::)?(dlopen|dlsym|dladdr|dlclose|LoadLibrary\w*|GetModuleHandle\w*|GetProcAddress|FreeLibrary|"
    r"pread|pwrite|preadv|pwritev|fstat|stat|lstat|ftruncate|mmap|munmap|mprotect|memfd_create|ReadFile|WriteFile|"
    r"CreateFile\w*|fork|pause|usleep|nanosleep|sched_yield|sysconf|getpagesize|getpid|isatty|fileno|setenv|putenv|"
    r"unsetenv|secure_getenv|posix_memalign|memalign|malloc_usable_size|newlocale|uselocale|strtod_l|strtof_l|"
    r"pthread_\w+|Sleep|VirtualAlloc|_aligned_malloc)\("
)

TYPES = re.compile(r"\b(ssize_t|off_t|off64_t|pid_t|locale_t|HANDLE|HMODULE|DWORD)\b")


def own_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a file without what follows `//`, with their numbers."""
    return [(number, line.split("//")[0]) for number, line in enumerate(path.read_text().splitlines(), 1)]


def of_system(line: str) -> str | None:
    for pattern in (HEADERS, CALLS, TYPES):
        # A declaration that looks like a call: `hid_t (*open)(…)` has no name right before its parenthesis.
        if found := pattern.match(line) if pattern is HEADERS else pattern.search(line):
            return found[1]
    return None


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("#include <sys/stat.h>", "sys/stat.h"),
        ("#include <unistd.h>", "unistd.h"),
        ("  handle = dlopen(path, RTLD_LAZY);", "dlopen"),
        ("  const auto count = ::pread(file, out, 1, 0);", "pread"),
        ("  const ssize_t count = 0;", "ssize_t"),
        ("for (;;) pause();", "pause"),
        ("#include <thread>", None),
        ("const auto set = system.open(path);", None),
        ("hid_t (*open)(hid_t place, const char* path, hid_t access) = nullptr;", None),
        ("std::locale::classic()", None),
        ("reopen(file)", None),
    ],
)
def test_a_line_is_known_by_what_it_needs(line: str, found: str | None) -> None:
    assert of_system(line) == found


def test_native_code_calls_the_system_in_its_folder_only() -> None:
    against = [
        f"{path.relative_to(NATIVE)}:{number}: {found}"
        for path in SOURCES
        if HOME not in path.parents
        for number, line in own_lines(path)
        if (found := of_system(line))
    ]
    assert not against, "\n".join(["only native/include/tamis/system/ asks which system it is on:", *against])
    at_home = [
        path.name for path in SOURCES if HOME in path.parents and any(of_system(line) for _, line in own_lines(path))
    ]
    assert len(at_home) > 3


def test_native_code_asks_for_the_system_in_its_folder_only() -> None:
    asks = re.compile(r"\b(_WIN32|__APPLE__|__linux__|__unix__|__MINGW32__|_MSC_VER)\b")
    against = [
        str(path.relative_to(NATIVE)) for path in SOURCES if HOME not in path.parents and asks.search(path.read_text())
    ]
    assert not against
