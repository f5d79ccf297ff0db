"""The examination: all subjects in a row."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from tamis.arguments import PATH
from tamis.jobs.doctor.libraries import find_libraries
from tamis.jobs.doctor.machine import machine, software, variables
from tamis.jobs.doctor.packages import find_packages
from tamis.jobs.doctor.place import examine_place
from tamis.jobs.doctor.plugins import find_plugins
from tamis.jobs.doctor.readers import find_readers
from tamis.jobs.doctor.result import Diagnosis, Finding, Library, Package, PluginFolder, Reads, without_home

T = TypeVar("T")


class _Examination:
    """Examines subjects one by one; one that fails is a finding, and the others go on."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def of(self, subject: str, examine: Callable[[], tuple[T, list[Finding]]], nothing: T) -> T:
        """Return what an examination finds; `nothing` if it fails."""
        try:
            found, findings = examine()
        except Exception as error:  # whatever this machine has that nobody thought of
            text = f"could not be examined: {type(error).__name__}: {error}"
            findings = [Finding("problem", subject, text, "report it, with all that stands here")]
            found = nothing
        self.findings += findings
        return found


def diagnose(folder: str | os.PathLike[str] = ".") -> Diagnosis:
    """Return what is installed and runs here, what is wrong, and what to do about it.

    Parameters
    ----------
    folder
        The folder whose file system is tried; files that this needs are removed again.
    """
    PATH.check("folder", folder)
    examination = _Examination()
    own: dict[str, str] = examination.of("software", software, {})
    values: dict[str, str] = examination.of("variables", variables, {})
    limits: dict[str, str] = examination.of("machine", machine, {})
    packages: tuple[Package, ...] = examination.of("packages", find_packages, ())
    libraries: tuple[Library, ...] = examination.of("libhdf5", find_libraries, ())
    folders: tuple[PluginFolder, ...] = examination.of("plugins", lambda: find_plugins(libraries), ())
    reads: tuple[Reads, ...] = examination.of("readers", lambda: find_readers(packages), ())
    place: dict[str, str] = examination.of("folder", lambda: examine_place(os.fsdecode(folder)), {})
    findings = sorted(examination.findings, key=lambda finding: finding.kind != "problem")
    return without_home(Diagnosis(own, limits, values, packages, libraries, folders, reads, place, tuple(findings)))
