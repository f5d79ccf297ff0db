"""`tamis doctor` says what is here, what is wrong and what to do, whatever is broken."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import needs
import pytest
from installation import environment_of, make_installation

import tamis
from tamis.jobs.doctor import job, machine, packages, place, plugins
from tamis.jobs.doctor.child import Tried, tried
from tamis.jobs.doctor.libraries import find_libraries
from tamis.jobs.doctor.result import Finding, Package, Reads, without_home

OWN = tamis.plugin_path()
PLUGIN = next(OWN.glob("libh5ztamis.*"))


def doctor(
    *arguments: str, python: Path = Path(sys.executable), **variables: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run the command with JSON; return how it ended, and the document."""
    kept = {name: value for name, value in environment_of(python).items() if not name.startswith("TAMIS_")}
    done = subprocess.run(
        [python, "-m", "tamis", "doctor", "--json", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=kept | {"LC_ALL": "C.UTF-8"} | variables,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done, json.loads(done.stdout)


def problems(document: dict[str, Any]) -> dict[str, str]:
    """Return what is wrong by its subject."""
    return {each["subject"]: each["text"] for each in document["findings"] if each["kind"] == "problem"}


def by_subject(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


def test_doctor_finds_nothing_wrong_where_nothing_is(tmp_path: Path) -> None:
    done, found = doctor(str(tmp_path))
    assert (problems(found), found["ok"], done.returncode) == ({}, True, 0)
    assert found["software"]["tamis"].startswith(tamis.__version__)
    assert found["software"]["kernel"].startswith(tamis.config().kernel)
    assert {each["name"]: each["version"] for each in found["packages"]}["h5py"] == metadata.version("h5py")
    h5py_library = next(each for each in found["libraries"] if each["of"] == "h5py")
    assert h5py_library["version"] == hdf5_version()
    (own,) = [each for each in found["folders"] if Path(each["path"]).name == OWN.name]
    assert [each["id"] for each in own["plugins"]] == [32013]
    deflate = next(each for each in found["reads"] if each["filter"] == "shuffle|deflate")
    assert deflate["written"]
    assert {*deflate["readers"].values()} == {True}
    assert os.listdir(tmp_path) == []


def hdf5_version() -> str:
    code = "import h5py; print(h5py.version.hdf5_version)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.check
def test_doctor_programs_read_what_they_have_plugins_for() -> None:
    needs.need("h5dump", "ncdump", "h5repack")
    _, found = doctor(HDF5_PLUGIN_PATH=str(OWN))
    read = {each["filter"]: each["readers"] for each in found["reads"]}
    for program in ("h5dump", "ncdump", "h5repack"):
        assert read["zfp"][program] is True
        assert read["shuffle|deflate"][program] is True
        assert read["bitshuffle"][program] is not True
    assert read["zfp"]["tamis"] is True


@pytest.mark.check
def test_doctor_names_all_that_is_broken_at_once(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "libbad.so").write_text("this is no library")
    home = tmp_path / "home"
    (home / "plugins").mkdir(parents=True)
    shutil.copy(PLUGIN, home / "plugins" / "libother.so")
    path = os.pathsep.join(map(str, (tmp_path / "missing", tmp_path / "broken", home / "plugins", OWN)))
    done, found = doctor(
        "/proc/self",
        HDF5_PLUGIN_PATH=path,
        LC_ALL="xx_YY.UTF-8",
        PYTHONIOENCODING="latin-1",
        HOME=str(home),
        AWS_SECRET_ACCESS_KEY="hunter2",
        TAMIS_KERNEL="mmx",
        TAMIS_ZFP_PROOF="off",
    )
    assert done.returncode == 1
    wrong = problems(found)
    assert "missing, which HDF5 cannot search: No such file or directory" in wrong["HDF5_PLUGIN_PATH"]
    assert "cannot be loaded: " in wrong[str(tmp_path / "broken" / "libbad.so")]
    assert wrong["zfp"].startswith("programs use ~/plugins/libother.so, and not tamis' plugin")
    assert "LC_ALL is 'xx_YY.UTF-8', which this system does not have" in wrong["locale"]
    assert "nothing can be written in /proc/self" in wrong["folder"]
    assert "is 'mmx', which this machine cannot run" in wrong["TAMIS_KERNEL"]
    notes = {each["text"] for each in found["findings"] if each["kind"] == "note"}
    assert any("output is iso8859-1" in text or "output is latin-1" in text for text in notes)
    assert any("does not check its tolerance" in text for text in notes)
    assert all(each["cure"] for each in found["findings"])
    assert "hunter2" not in done.stdout
    assert str(home) not in done.stdout


@pytest.mark.check
def test_doctor_without_extras_says_what_they_would_bring(tmp_path: Path) -> None:
    python = make_installation(tmp_path / ".venv", ["tamis"])
    done, found = doctor(str(tmp_path), python=python)
    assert (problems(found), done.returncode) == ({}, 0)
    absent = {each["extra"] for each in found["packages"] if not each["version"]}
    assert absent == {*packages.GIVES}
    zstd = next(each for each in found["reads"] if each["filter"] == "zstd")
    assert zstd["written"] is False
    assert zstd["readers"]["tamis"] is None
    command = [python, "-m", "tamis", "doctor", str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment_of(python)).stdout
    assert "imagecodecs absent, zstandard absent (filters beyond HDF5's own" in shown
    assert re.fullmatch(r"nothing is wrong(, \d+ notes? above)?", shown.splitlines()[-1])


def test_doctor_text_has_every_finding_and_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("problem", "a", "is wrong", "do this"), Finding("note", "b", "is so", "or that")]
    for name in ("software", "variables", "machine"):
        monkeypatch.setattr(job, name, lambda: ({}, []))
    monkeypatch.setattr(job, "find_packages", lambda: ((), findings))
    monkeypatch.setattr(job, "find_libraries", lambda: ((), []))
    monkeypatch.setattr(job, "find_plugins", lambda _: ((), []))
    monkeypatch.setattr(job, "find_readers", lambda _: ((), []))
    monkeypatch.setattr(job, "examine_place", lambda _: ({}, []))
    found = job.diagnose()
    lines = str(found).splitlines()
    assert lines[-5:] == ["problem: a: is wrong", "  do this", "note: b: is so", "  or that", "1 problem, 1 note above"]
    assert not found.ok


@pytest.mark.parametrize("is_known", [True, False])
def test_doctor_text_says_what_the_table_of_readers_means(is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("software", "variables", "machine"):
        monkeypatch.setattr(job, name, lambda: ({}, []))
    for name in ("find_packages", "find_libraries"):
        monkeypatch.setattr(job, name, lambda: ((), []))
    monkeypatch.setattr(job, "find_plugins", lambda _: ((), []))
    monkeypatch.setattr(job, "examine_place", lambda _: ({}, []))
    reads = (Reads("zfp", True, {"h5py": False}), Reads("zstd", is_known, {"h5py": False if is_known else None}))
    monkeypatch.setattr(job, "find_readers", lambda _: (reads, []))
    shown = str(job.diagnose())
    assert "who can read what, here: h5py and netCDF4 without tamis, which adds zfp to both" in shown
    assert ("?: not known, because tamis cannot write it here" in shown) == (not is_known)


@pytest.mark.parametrize("name", ["software", "find_packages", "find_libraries", "find_plugins", "examine_place"])
def test_doctor_subject_that_fails_leaves_the_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(job, "find_readers", lambda _: ((), []))
    monkeypatch.setattr(job, "find_libraries", lambda: ((), []))
    monkeypatch.setattr(job, name, fail)
    found = job.diagnose()
    (failed,) = [each for each in found.findings if "out of order" in each.text]
    assert failed.kind == "problem"
    assert "could not be examined: RuntimeError: out of order" in failed.text
    assert found.machine["processors"]


def test_find_plugins_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDF5_PLUGIN_PATH", f"{tmp_path}{os.pathsep}{OWN}")
    listed: Callable[[Any], list[str]] = os.listdir

    def refuse(path: Any) -> list[str]:
        if str(path) == str(tmp_path):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(plugins.os, "listdir", refuse)
    folders, findings = plugins.find_plugins(())
    assert [folder.problem for folder in folders] == ["Permission denied", ""]
    assert "Permission denied" in by_subject(findings)["HDF5_PLUGIN_PATH"].text


def test_find_plugins_that_of_tamis_first_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = shutil.copy(PLUGIN, tmp_path / "libother.so")
    monkeypatch.setenv("HDF5_PLUGIN_PATH", f"{OWN}{os.pathsep}{tmp_path}")
    folders, findings = plugins.find_plugins(())
    assert findings == []
    assert [(each.path, each.serves) for folder in folders for each in folder.plugins] == [
        (str(PLUGIN), True),
        (str(other), False),
    ]


def test_find_plugins_variable_without_zfp_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(tmp_path))
    folders, (finding,) = plugins.find_plugins(())
    assert [folder.searched for folder in folders] == [True, False]
    assert (finding.kind, finding.cure) == ("note", plugins.WITH_OTHERS)


@pytest.mark.peer
@needs.needs("cc")
def test_find_plugins_one_that_ends_the_process_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "crash.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n")
    command = ["cc", "-shared", "-fPIC", source, "-o", tmp_path / "libcrash.so"]
    subprocess.run(command, check=True)
    shutil.copy(PLUGIN, tmp_path / "libdone.so")
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(tmp_path))
    (folder, _), findings = plugins.find_plugins(())
    assert [(Path(each.path).name, each.id, each.problem) for each in folder.plugins] == [
        ("libcrash.so", None, "the process was ended by SIGABRT"),
        ("libdone.so", 32013, ""),
    ]
    assert "was ended by SIGABRT" in by_subject(findings)[str(tmp_path / "libcrash.so")].text


def test_preload_that_turns_plugins_off_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDF5_PLUGIN_PRELOAD", "::")
    _, findings = machine.variables()
    assert by_subject(findings)["HDF5_PLUGIN_PRELOAD"].kind == "problem"


def test_find_libraries_package_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tables.py").write_text("raise ImportError('libhdf5.so.99: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    found, findings = find_libraries()
    assert "h5py" in {library.of for library in found}
    assert "libhdf5.so.99: cannot open" in by_subject(findings)["tables"].text


def test_find_libraries_packages_that_crash_together_are_tried_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = "import os, sys\nif 'h5py' in sys.modules:\n    os.abort()\n"
    (tmp_path / "tables.py").write_text(crash)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    found, findings = find_libraries()
    assert "h5py" in {library.of for library in found}
    assert "in one process: the process was ended by SIGABRT" in by_subject(findings)["libhdf5"].text


def test_extras_are_all_explained() -> None:
    extras = {*metadata.metadata("tamis").get_all("Provides-Extra", ())}
    assert {*packages.GIVES} == extras - {"all", "bench", "dev", "test", "wheel", "docs"}


@pytest.mark.parametrize(
    ("version", "wants", "expected"),
    [
        ("3.16.0", ">=3.11", True),
        ("3.9", ">=3.11", False),
        ("2024.9.22", ">=2024.9.22", True),
        ("0.1.0b1", "<0.2,>=0.1.0b1", True),
        ("0.2.0", "<0.2,>=0.1.0b1", False),
        ("1", ">=1.0.0", True),
        ("1.0", "", True),
    ],
)
def test_meets_bounds_of_versions(version: str, wants: str, expected: bool) -> None:
    assert packages.meets(version, wants) is expected


@pytest.mark.parametrize(
    ("package", "said"),
    [
        (Package("", "h5py", ">=3.11", "3.9", ""), "is 3.9, and tamis needs >=3.11"),
        (Package("zarr", "zarr", ">=3.1", "2.18", "Zarr"), "is 2.18, and the extra zarr needs >=3.1"),
        (Package("", "click", ">=8.1", "", ""), "is not installed, and tamis needs it"),
    ],
)
def test_package_of_another_version_is_a_problem(package: Package, said: str) -> None:
    (finding,) = packages._findings_of(package)
    assert (finding.kind, finding.text) == ("problem", said)
    assert finding.cure == f"python -m pip install --upgrade '{package.name}{package.wants}'"


def test_native_code_of_another_installation_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "VERSION", "0.9")
    _, findings = machine.software()
    assert "its native code 0.9" in by_subject(findings)["tamis"].text


def test_tamis_that_is_not_installed_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(machine.metadata, "version", fail)
    monkeypatch.setattr(packages.metadata, "requires", fail)
    facts, findings = machine.software()
    assert facts["tamis"].startswith(tamis.__version__)
    assert "is not installed as a package" in by_subject(findings)["tamis"].text
    assert packages.find_packages() == ((), [])


def test_locale_that_does_not_exist_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "xx_YY.ISO-8859-1")):
        monkeypatch.setenv(name, value)
    _, findings = machine.machine()
    assert by_subject(findings)["locale"].text.startswith("LANG is 'xx_YY.ISO-8859-1'")
    monkeypatch.setenv("LC_ALL", "C")  # which outweighs it
    assert "locale" not in by_subject(machine.machine()[1])


def test_memory_below_a_gigabyte_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_limits", lambda: {"ulimit -v": 500_000_000})
    facts, findings = machine.machine()
    assert facts["memory"] == "500 MB (ulimit -v)"
    assert by_subject(findings)["memory"].kind == "note"


def test_place_without_locks_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "lock_at_once", lambda _: None)
    monkeypatch.setattr(place, "tried", lambda *_: [Tried(error="OSError: No locks available")])
    facts, findings = place.examine_place(str(tmp_path))
    assert facts["locks"] == "no, HDF5's no"
    assert [finding.kind for finding in findings] == ["note", "problem"]
    assert "HDF5_USE_FILE_LOCKING=BEST_EFFORT" in findings[1].cure
    assert os.listdir(tmp_path) == []


def test_place_that_is_no_folder(tmp_path: Path) -> None:
    facts, (finding,) = place.examine_place(str(tmp_path / "none"))
    assert facts == {"folder": str(tmp_path / "none")}
    assert (finding.kind, finding.text) == ("problem", f"{tmp_path}/none is no folder")


def test_without_home_only_whole_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/bob")
    monkeypatch.setenv("USERPROFILE", "/home/bob")
    texts = {"a": "/home/bob/x:/home/bob", "b": "/home/bobby/x"}
    assert without_home(texts) == {"a": "~/x:~", "b": "/home/bobby/x"}
    finding = Finding("note", "/home/bob", "see /home/bob, or '/home/bob'", "")
    assert without_home((finding,))[0].text == "see ~, or '~'"


def test_tried_what_raises_is_told_from_what_ends_the_process(tmp_path: Path) -> None:
    missing, own = str(tmp_path / "libnone.so"), str(PLUGIN)
    first, second = tried("plugin", [missing, own])
    assert first.value is None
    assert first.error.startswith("OSError: ")
    assert (second.value["id"], second.error) == (32013, "")
