"""The HDF5 libraries that are here."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tamis.jobs.doctor.child import Tried, tried
from tamis.jobs.doctor.result import Finding, Library

_OTHERS = ("netCDF4", "tables")
"""Packages that may bring an HDF5 library besides h5py's."""


def find_libraries() -> tuple[tuple[Library, ...], list[Finding]]:
    """Return the HDF5 libraries of packages, when all are in one process, and of the system's programs."""
    names = ["h5py", *(name for name in _OTHERS if find_spec(name))]
    (together,) = tried("hdf5 of", [" ".join(names)])
    if together.error:  # they end the process
        found = [each for name, one in zip(names, tried("hdf5 of", names), strict=True) for each in _entries(one, name)]
    else:
        found = _entries(together, " ".join(names))
    findings = [_failed(each) for each in found if "error" in each]
    if together.error:
        text = f"{' and '.join(names)} in one process: {together.error}"
        findings.append(
            Finding("problem", "libhdf5", text, "install them from one source: all by pip, or all by conda")
        )
    for name in ("hdf5", "hdf5_serial"):
        (system,) = tried("hdf5 of system", [name])
        found += system.value or []
    libraries = {
        each["path"]: Library(each["of"], each["path"], each["version"], tuple(each["folders"]))
        for each in reversed(found)
        if "error" not in each
    }
    return tuple(reversed(libraries.values())), findings


def _entries(one: Tried, name: str) -> list[dict[str, Any]]:
    return list(one.value) if one.value is not None else [{"of": name, "error": one.error}]


def _failed(entry: dict[str, Any]) -> Finding:
    name = entry["of"]
    text = f"cannot be imported: {entry['error']}"
    return Finding("problem", name, text, f"python -m pip install --force-reinstall {name}")
