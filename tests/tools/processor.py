"""What this processor can run, as Linux says it, and what the kernels of the codec need."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
_AVX2 = frozenset({"avx2", "bmi1", "bmi2", "abm", "popcnt", "pclmulqdq"})
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi", "gfni"}
_NONE = frozenset[str]()
NEEDED = {"avx512": _AVX512, "avx2": _AVX2, "avx2-tzcnt": _AVX2, "neon": _NONE, "portable": _NONE}
"""The instructions of x86-64 that each kernel needs, by Linux's names."""

# What GCC 12 and Clang have; a compiler that takes these makes the kernels.
_OPTIONS = {"avx2": "-mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -mpclmul"}
_OPTIONS["avx512"] = f"{_OPTIONS['avx2']} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mgfni"
_OPTIONS["avx2-tzcnt"] = _OPTIONS["avx2"]


def facts() -> dict[str, str]:
    """Return what /proc/cpuinfo says of the first processor; nothing where there is none."""
    if platform.machine() != "x86_64" or not CPUINFO.exists():
        return {}
    lines = CPUINFO.read_text().split("\n\n")[0].splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def can_run(kernel: str) -> bool:
    """Return whether this processor has the instructions of a kernel."""
    if kernel == "neon":  # every aarch64 has them
        return platform.machine() in {"aarch64", "arm64"}
    return set(facts().get("flags", "").split()) >= NEEDED[kernel]


def runs_pext_fast() -> bool:
    """Return whether PDEP and PEXT take a few cycles: they are microcode in AMD's processors before Zen 3."""
    maker, family = facts().get("vendor_id"), int(facts().get("cpu family", 0))
    return maker != "HygonGenuine" and (maker != "AuthenticAMD" or family >= 0x19)


def compiler_makes(kernel: str) -> bool:
    """Return whether the compiler makes a kernel; true where there is none to ask, because another made the package."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if kernel not in _OPTIONS or shutil.which(compiler[0]) is None:
        return True
    command = [*compiler, *_OPTIONS[kernel].split(), "-x", "c++", "-S", "-o", os.devnull, "-"]
    return subprocess.run(command, input="", capture_output=True, text=True, check=False).returncode == 0


def left_out(kernel: str) -> bool:
    """Return whether the build was told to leave a kernel out: SKBUILD_CMAKE_DEFINE='TAMIS_KERNELS=avx2'."""
    told = os.environ.get("SKBUILD_CMAKE_DEFINE", "")
    name, _, kernels = told.partition("=")
    return name == "TAMIS_KERNELS" and kernel.replace("-", "_") not in ("portable", *kernels.replace(";", " ").split())
