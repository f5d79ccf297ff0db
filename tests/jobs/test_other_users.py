"""What tamis does for a user who is not the owner of a file, not in its group, or without rights.

Only root can become somebody else: `make check` runs these tests as root. What a user without rights sees of his own
files is in test_without_rights.py.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from other_user import User, can_become

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
TAMIS = [sys.executable, "-m", "tamis"]
ZFP = ("-f", "TS:zfp(accuracy=0.1)")
GROUP = 4200
ALICE, BOB = User(4101, (4101, GROUP), 0o002), User(4102, (4102, GROUP), 0o002)
EVE = User(4103, (4103,))

pytestmark = [
    pytest.mark.check,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else"),
    pytest.mark.skipif(not can_become(), reason="no file system can be mounted here"),
]


class Place:
    """A folder of a user, and what others do there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str, mode: int = 0o644, owner: User = ALICE, group: int = GROUP) -> Path:
        """Put a copy of the sample here."""
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        os.chown(path.parent, owner.number, group)
        shutil.copyfile(SAMPLE, path)
        os.chown(path, owner.number, group)
        path.chmod(mode)
        return path

    def run(self, user: User, *words: str, code: int = 0, **environment: str) -> str:
        """Run tamis as a user; return what it said."""
        done = user.run([*TAMIS, *words], self.path, **environment)
        said = done.stdout + done.stderr
        assert done.returncode == code, said[-3000:]
        assert "Traceback" not in said, said
        assert "[Errno" not in said, said
        return said

    def access(self, name: str) -> tuple[int, int, str]:
        status = (self.path / name).stat()
        return status.st_uid, status.st_gid, oct(stat.S_IMODE(status.st_mode))

    @property
    def names(self) -> set[str]:
        return set(os.listdir(self.path))


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A folder of Alice, with the mode that a test asks for; the one of pytest is for root alone."""
    with tempfile.TemporaryDirectory(prefix="tamis-users-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        path = Path(folder, "place")
        path.mkdir()
        os.chown(path, ALICE.number, GROUP)
        path.chmod(getattr(request, "param", 0o755))
        yield Place(path)


def with_mode(mode: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", [mode], indirect=True, ids=[oct(mode)])


COMMANDS = [
    ("inspect", "a.nc"),
    ("inspect", "a.nc", "--html", "made.html"),
    ("repack", "a.nc", "made.nc", *ZFP),
    ("repack", "a.nc", "made.zarr", *ZFP),
    ("copy", "a.nc", "made.nc"),
    ("plan", "a.nc", "--require", "TS:abs=0.1", "-o", "made.toml"),
    ("verify", "a.nc", "a.nc"),
    ("report", "a.nc", "a.nc", "-o", "made.html"),
    ("export", "a.nc", "--to", "kerchunk", "-o", "made.json"),
    ("export", "a.nc", "--to", "icechunk", "-o", "made.icechunk"),
    ("export", "a.nc", "--to", "zarr-manifest", "-o", "made.manifest"),
    ("repack", "a.nc", "made.nc", "--log", "made.log", *ZFP),
    ("repack", "data", "made/", *ZFP),
    ("repack", "data", "--replace", "--yes", *ZFP),
    ("config", "--install", "made"),
]


def is_reading(words: tuple[str, ...]) -> bool:
    return not any("made" in word or word == "--replace" for word in words)


@with_mode(0o777)
@pytest.mark.parametrize("words", [words for words in COMMANDS if "a.nc" in words], ids=" ".join)
def test_file_that_may_not_be_read_is_an_error_in_a_line(words: tuple[str, ...], place: Place) -> None:
    place.file("a.nc", 0o640)
    said = place.run(EVE, *words, code=1)
    assert re.search(r"^tamis \w+: a\.nc: Permission denied$", said, re.MULTILINE)
    assert place.names <= {"a.nc", "made.log"}


@pytest.mark.parametrize("words", [words for words in COMMANDS if not is_reading(words)], ids=" ".join)
def test_folder_that_may_not_be_written_is_an_error_in_a_line(words: tuple[str, ...], place: Place) -> None:
    place.file("a.nc")
    before = place.file("data/a.nc").read_bytes()
    said = place.run(EVE, *words, code=1)
    ending = rf"Permission denied(: \S+ belongs to user {ALICE.number})?"
    assert re.search(rf"^tamis \w+: .*: .*cannot be (written|opened): {ending}$", said, re.MULTILINE)
    assert "done" not in said  # it is said before the work
    assert place.names == {"a.nc", "data"}
    assert (place.path / "data" / "a.nc").read_bytes() == before


def test_files_of_another_user_are_read_by_everybody_who_may(place: Place) -> None:
    place.file("a.nc")
    place.run(ALICE, "repack", "a.nc", "out/", *ZFP, "-q")
    for words in [words for words in COMMANDS if is_reading(words)]:
        place.run(EVE, *words)
    assert "1 of 1 file done" in place.run(EVE, "status", "out")
    assert "1 file unchanged" in place.run(EVE, "manifest", "out", "--check")
    (place.path / "out" / ".tamis").chmod(0o700)
    for words in (("status", "out"), ("manifest", "out"), ("report", "out", "out", "-o", "/tmp/x.html")):
        assert "out/.tamis: cannot be read: Permission denied" in place.run(EVE, *words, code=1)


def test_u64_originals_are_kept_by_a_user_who_is_not_root(place: Place) -> None:
    before = place.file("archive/a.nc", 0o600).read_bytes()
    place.run(
        ALICE._replace(umask=0o022), "repack", "archive", "--replace", "--yes", *ZFP, "--keep-originals", "old", "-q"
    )
    assert (place.path / "old" / "a.nc").read_bytes() == before
    assert place.access("old") == (ALICE.number, ALICE.number, "0o755")
    assert place.access("archive/a.nc") == (ALICE.number, GROUP, "0o600")
    assert place.access("archive/.tamis/manifest.json")[2] == "0o644"


@with_mode(0o2775)
def test_files_of_others_are_replaced_by_nobody_but_root(place: Place) -> None:
    before = place.file("a.nc", 0o664).read_bytes()
    said = place.run(BOB, "repack", "a.nc", "--replace", "--yes", *ZFP, code=1)
    assert f"belongs to another user, to whom the new file could not be given: run as user {ALICE.number}" in said
    assert (place.path / "a.nc").read_bytes() == before
    assert place.names == {"a.nc", ".tamis"}
    shutil.rmtree(place.path / ".tamis")
    place.run(User(0, (0,)), "repack", "a.nc", "--replace", "--yes", *ZFP, "-q")
    assert place.access("a.nc") == (ALICE.number, GROUP, "0o664")
    assert (place.path / "a.nc").read_bytes() != before


@with_mode(0o2775)
@pytest.mark.parametrize("mode", [0o640, 0o664])
def test_target_of_another_user_is_overwritten_for_the_same_group(mode: int, place: Place) -> None:
    place.file("a.nc")
    place.file("target.nc", mode)
    place.run(BOB, "repack", "a.nc", "target.nc", "--overwrite", *ZFP, "-q")
    assert place.access("target.nc") == (BOB.number, GROUP, oct(mode))
    os.chown(place.path / "target.nc", ALICE.number, GROUP)
    place.run(User(0, (0,)), "repack", "a.nc", "target.nc", "--overwrite", *ZFP, "-q")
    assert place.access("target.nc") == (ALICE.number, GROUP, oct(mode))


def test_u104_group_that_the_owner_is_not_in_gets_no_more_than_all_others(place: Place) -> None:
    place.file("archive/a.nc", 0o660, group=9999)
    place.file("archive/b.nc", 0o664, group=9999)
    words = ("repack", "archive", "--replace", "--yes", *ZFP)
    lost = "this user may not give the new file to group 9999"
    assert place.run(ALICE, *words, "--dry-run").count(lost) == 2
    assert f"2 files: {lost}" in place.run(ALICE, *words)
    assert place.access("archive/a.nc") == (ALICE.number, ALICE.number, "0o600")
    assert place.access("archive/b.nc") == (ALICE.number, ALICE.number, "0o644")
    manifest = (place.path / "archive" / ".tamis" / "manifest.json").read_text()
    assert lost in manifest


@with_mode(0o2775)
def test_u104_group_of_a_folder_that_gives_its_own_is_kept(place: Place) -> None:
    place.file("archive/a.nc", 0o660, group=9999)
    os.chown(place.path / "archive", ALICE.number, 9999)
    (place.path / "archive").chmod(0o2775)
    words = ("repack", "archive", "--replace", "--yes", *ZFP)
    assert "may not give" not in place.run(ALICE, *words, "--dry-run") + place.run(ALICE, *words)
    assert place.access("archive/a.nc") == (ALICE.number, 9999, "0o660")


@with_mode(0o1777)
@pytest.mark.parametrize(
    "words",
    [
        ("repack", "a.nc", "target.nc", *ZFP),
        ("copy", "a.nc", "target.nc"),
        ("plan", "a.nc", "--require", "TS:abs=0.1", "-o", "target.nc"),
        ("export", "a.nc", "--to", "kerchunk", "-o", "target.nc"),
    ],
    ids=" ".join,
)
def test_file_of_another_user_in_a_sticky_folder_stays(words: tuple[str, ...], place: Place) -> None:
    place.file("a.nc")
    before = place.file("target.nc").read_bytes()
    assert "target.nc: cannot be written: " in place.run(BOB, *words, "--overwrite", code=1)
    assert place.names == {"a.nc", "target.nc"}
    assert (place.path / "target.nc").read_bytes() == before


@with_mode(0o2775)
def test_folder_of_targets_is_continued_by_another_user_of_the_group(place: Place) -> None:
    place.file("data/a.nc")
    place.run(ALICE, "repack", "data", "out/", *ZFP, "-q")
    place.file("data/b.nc")
    claim = place.path / "out" / ".tamis" / "claims" / hashlib.sha256(b"b.nc").hexdigest()[:32]
    claim.touch()  # of a process of hers that was killed under another umask
    os.chown(claim, ALICE.number, GROUP)
    claim.chmod(0o644)
    assert "2 of 2 files done" in place.run(BOB, "repack", "data", "out/", *ZFP)
    assert place.access("out/b.nc") == (BOB.number, GROUP, "0o664")
    assert not claim.exists()
    said = place.run(EVE, "repack", "data", "out/", *ZFP, code=1)
    assert "out/.tamis: the state cannot be written: Permission denied: " in said
    assert "out/.tamis belongs to user 4101" in said


@with_mode(0o2775)
def test_leftovers_of_another_user_stay_and_are_named(place: Place) -> None:
    place.file("a.nc")
    for name in (".new.nc.0123abcd.tamis", ".new.nc.0123abcd.tamis-journal"):
        place.file(name, 0o600)
    said = place.run(BOB, "repack", "a.nc", "new.nc", *ZFP, "--resume")
    assert ".new.nc.0123abcd.tamis: it has no journal that can be read and locked" in said
    assert place.names == {"a.nc", "new.nc", ".new.nc.0123abcd.tamis", ".new.nc.0123abcd.tamis-journal"}


@with_mode(0o1777)
def test_folder_of_another_user_is_not_taken_for_targets_that_go_elsewhere(place: Place) -> None:
    place.file("a.nc")
    (place.path / f"tamis-{EVE.number}").mkdir(mode=0o777)
    words = ("repack", "a.nc", "s3://bucket/a.zarr", *ZFP, "-q")
    said = place.run(EVE, *words, code=1, TMPDIR=str(place.path))
    assert (
        "must be a folder that belongs to you (user 4103), found one of user 0: remove it, or set TAMIS_STAGING" in said
    )


def test_root_is_left_for_good() -> None:
    done = EVE.run([sys.executable, "-c", "import os; print(os.getresuid(), os.getgroups())"], Path("/"))
    assert done.stdout.split() == ["(4103,", "4103,", "4103)", "[4103]"]
    assert subprocess.run(["mount"], capture_output=True, text=True, check=True).stdout.count(" on /root ") == 0
