"""Which packages are here: those that tamis needs, and those of its extras."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from importlib import metadata
from itertools import zip_longest

from tamis.jobs.doctor.child import tried
from tamis.jobs.doctor.result import Finding, Package

GIVES = {
    "codecs": "filters beyond HDF5's own, such as blosc and zstd",
    "zarr": "Zarr",
    "icechunk": "Icechunk's stores",
    "kerchunk": "reading of references that tamis export writes",
    "virtualizarr": "references for VirtualiZarr",
    "hdf5plugin": "the filters sz3 and sperr",
    "plot": "tamis plan --plot",
    "pcodec": "the codec pcodec in Zarr",
    "netcdf": "tamis.netcdf",
    "xarray": "xarray's engine and accessor",
    "plan": "tamis plan --want '*:recommended'",
    "dask": "tamis repack --scheduler",
    "remote": "files at addresses such as s3://bucket/a.nc",
}
"""What each extra is for, by its name; others are for those who develop tamis."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[.*?\])?\s*(?P<wants>[^;]*?)\s*(?:;\s*(?P<marker>.*))?")
_EXTRA = re.compile(r"extra == ['\"](?P<name>[\w-]+)['\"]")


def find_packages() -> tuple[tuple[Package, ...], list[Finding]]:
    """Return the packages, and what is wrong with those that are here."""
    try:
        found = tuple(_packages())
    except metadata.PackageNotFoundError:  # see `machine.software`
        return (), []
    findings = [finding for package in found for finding in _findings_of(package)]
    return found, [*findings, *_failures({package.name for package in found if package.version})]


def _failures(names: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each package that is here, and fails while it is imported."""
    known = sorted(names)
    answers = tried("imports", [name.replace("-", "_") for name in known])
    for name, answer in zip(known, answers, strict=True):
        if said := answer.error or answer.value:
            cure = f"python -m pip install --upgrade {name}, or another version of what it names"
            yield Finding("problem", name, f"cannot be imported: {said}", cure)


def _packages() -> Iterator[Package]:
    for text in metadata.requires("tamis") or ():
        requirement = _REQUIREMENT.fullmatch(text)
        assert requirement is not None, text
        marked = _EXTRA.search(requirement["marker"] or "")
        extra = marked["name"] if marked else ""
        if requirement["name"] != "tamis" and (not extra or extra in GIVES):
            yield Package(
                extra,
                requirement["name"],
                requirement["wants"],
                _version_of(requirement["name"]),
                GIVES.get(extra, ""),
            )


def _version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _findings_of(package: Package) -> Iterator[Finding]:
    requirement = f"{package.name}{package.wants}"
    cure = f"python -m pip install --upgrade '{requirement}'"
    if not package.version:
        if not package.extra:
            yield Finding("problem", package.name, "is not installed, and tamis needs it", cure)
    elif not meets(package.version, package.wants):
        needed = f"the extra {package.extra}" if package.extra else "tamis"
        yield Finding("problem", package.name, f"is {package.version}, and {needed} needs {package.wants}", cure)


def meets(version: str, wants: str) -> bool:
    """Return whether a version meets bounds such as ``>=1.2,<2``; what it cannot compare is taken as met."""
    own = _numbers(version)
    for bound in filter(None, wants.split(",")):
        sign, other = re.fullmatch(r"\s*([<>=!~]+)\s*(.*?)\s*", bound).groups()  # type: ignore[union-attr]
        pairs = [*zip_longest(own, _numbers(other), fillvalue=0)]
        mine, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if (sign == ">=" and mine < theirs) or (sign == "<" and mine >= theirs):
            return False
    return True


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version before what marks it as one before a release."""
    return [int(part) for part in re.split(r"[^\d.]", version)[0].split(".") if part]
