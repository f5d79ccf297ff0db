"""What runs, what this process may use, and how it shows text."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from tamis.formatting import size_text
from tamis.jobs.doctor.child import tried
from tamis.jobs.doctor.result import Finding
from tamis.jobs.result import VERSION
from tamis.system import memory_limits, open_file_limit, processor_count
from tamis.zfp import config

VARIABLES = (
    *("HDF5_PLUGIN_PATH", "HDF5_PLUGIN_PRELOAD", "HDF5_USE_FILE_LOCKING", "HDF5_DISABLE_VERSION_CHECK"),
    *("TAMIS_KERNEL", "TAMIS_ZFP_PROOF", "TAMIS_ZFP_NONFINITE"),
    *("LC_ALL", "LC_CTYPE", "LANG", "PYTHONIOENCODING", "PYTHONUTF8"),
)
"""What changes the work of HDF5, tamis and Python; no other variable is shown, because it might be a secret."""

_LEAST_NBYTES = 1_000_000_000


def software() -> tuple[dict[str, str], list[Finding]]:
    """Return names and versions of what runs, and what does not fit together."""
    own = config()
    facts = {
        "tamis": f"{own.version}, {own.codec}",
        "kernel": f"{own.kernel} (here are {', '.join(own.kernels)})",
        "Python": f"{platform.python_version()} ({platform.python_implementation()}) at {sys.executable}",
        "system": f"{platform.platform()}, {platform.machine()}",
        "package": str(Path(__file__).parents[2]),
        "command": shutil.which("tamis") or "not on the path",
    }
    return facts, [*_mixed(), *_kernel()]


def _mixed() -> Iterator[Finding]:
    try:
        installed = metadata.version("tamis")
    except metadata.PackageNotFoundError:
        text = "is not installed as a package: extras and entry points, such as xarray's engine, are not found"
        yield Finding("problem", "tamis", text, "python -m pip install . in the folder of the source")
        return
    if installed != VERSION:
        yield Finding(
            "problem",
            "tamis",
            f"its Python code is {installed}, its native code {VERSION}: one of them is left from another installation",
            "python -m pip install --force-reinstall --no-deps tamis",
        )


def _kernel() -> Iterator[Finding]:
    asked, own = os.environ.get("TAMIS_KERNEL"), config()
    if asked and asked not in own.kernels:
        yield Finding(
            "problem",
            "TAMIS_KERNEL",
            f"is {asked!r}, which this machine cannot run: {own.kernel} is used",
            f"unset TAMIS_KERNEL, or set it to {' or '.join(own.kernels)}",
        )


def variables() -> tuple[dict[str, str], list[Finding]]:
    """Return the variables that are set, and what is wrong with one."""
    found = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    problems = []
    if found.get("HDF5_PLUGIN_PRELOAD") == "::":
        problems.append(
            Finding("problem", "HDF5_PLUGIN_PRELOAD", "is '::', so HDF5 loads no plugin", "unset HDF5_PLUGIN_PRELOAD")
        )
    if found.get("TAMIS_ZFP_PROOF") == "off":
        problems.append(
            Finding(
                "note",
                "TAMIS_ZFP_PROOF",
                "is off: the plugin does not check its tolerance",
                "unset TAMIS_ZFP_PROOF, unless files have to be like those of H5Z-ZFP",
            )
        )
    return found, problems


def machine() -> tuple[dict[str, str], list[Finding]]:
    """Return processors, memory and locale, and what is wrong with them."""
    limits, files = memory_limits(), open_file_limit()
    facts = {
        "processors": f"{processor_count()} of {os.cpu_count()}",
        "memory": ", ".join(f"{size_text(nbytes)} ({name})" for name, nbytes in limits.items()) or "not known",
        "open files": "not limited" if files is None else f"at most {files}",
        "locale": f"{locale.setlocale(locale.LC_CTYPE)}, files {sys.getfilesystemencoding()}, "
        f"output {getattr(sys.stdout, 'encoding', None) or 'none'}",
    }
    return facts, [*_memory(limits), *_locale()]


def _memory(limits: dict[str, int]) -> Iterator[Finding]:
    for name, nbytes in limits.items():
        if nbytes < _LEAST_NBYTES:
            yield Finding(
                "note",
                "memory",
                f"{name} allows {size_text(nbytes)}: large chunks may not fit",
                "raise the limit, or work with fewer threads: tamis repack -j 1",
            )


def _locale() -> Iterator[Finding]:
    # LC_ALL outweighs the others; Python sets LC_CTYPE by itself where it does not know the locale.
    names = ["LC_ALL"] if os.environ.get("LC_ALL") else ["LC_CTYPE", "LANG"]
    asked = {name: os.environ[name] for name in names if os.environ.get(name)}
    for name, known in zip(asked, tried("locale", [*asked.values()]), strict=True):
        if known.error:
            text = f"{name} is {asked[name]!r}, which this system does not have: programs fall back to C"
            yield Finding("problem", "locale", text, f"export {name}=C.UTF-8, or another one that locale -a lists")
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "") != "utf8":
        yield Finding(
            "note",
            "locale",
            f"output is {encoding}: names with other letters are shown as escapes such as \\xe9",
            "export PYTHONIOENCODING=utf-8 if the terminal shows UTF-8",
        )
