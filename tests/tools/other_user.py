"""Run a command as another user, which only root can.

``python other_user.py USER GROUP,… UMASK COMMAND…``, with numbers: the first group is the one of new files. What the
command needs to start may be in folders that others cannot enter, such as the home of root: it is mounted anew, in a
namespace that ends with the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple


class User(NamedTuple):
    """A user, by numbers that nobody on the machine needs to have."""

    number: int
    groups: tuple[int, ...]
    umask: int = 0o022

    def run(
        self, command: Sequence[str | os.PathLike[str]], folder: Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder, with the environment of this process, but a home that is not there."""
        groups = ",".join(map(str, self.groups))
        words = [sys.executable, __file__, str(self.number), groups, oct(self.umask), *command]
        if closed_around(places()):
            words = ["unshare", "--mount", *words]
        env = os.environ | {"HOME": "/nonexistent", "TMPDIR": "/tmp"} | environment
        return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


def places() -> list[Path]:
    """Return the folders that a command needs."""
    executable = os.path.realpath(sys.executable)
    folders = (sys.base_prefix, sys.prefix, os.path.dirname(executable), os.path.dirname(__file__))
    found = {Path(os.path.realpath(folder)) for folder in folders}
    return sorted(folder for folder in found if found.isdisjoint(folder.parents))


def closed_around(folders: Iterable[Path]) -> dict[Path, list[Path]]:
    """Return the folders around others that only their owner can enter, each with those others."""
    closed: dict[Path, list[Path]] = {}
    for folder in folders:
        for parent in reversed(folder.parents):
            if not parent.stat().st_mode & 0o001:
                closed.setdefault(parent, []).append(folder)
                break
    return closed


def can_become() -> bool:
    """Return whether commands can be run as other users."""
    return os.geteuid() == 0 and (
        not closed_around(places()) or not subprocess.run(["unshare", "--mount", "true"], check=False).returncode
    )


def _open_folders() -> None:
    """Replace folders that others cannot enter by ones that have nothing but what a command needs."""
    for parent, folders in closed_around(places()).items():
        held = [tempfile.mkdtemp(dir="/run") for _ in folders]
        for folder, place in zip(folders, held, strict=True):
            _mount("--bind", folder, place)
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", parent)
        for folder, place in zip(folders, held, strict=True):
            folder.mkdir(parents=True)
            _mount("--move", place, folder)
            os.rmdir(place)


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


def main() -> None:
    """Become the user, and the command."""
    number, groups, umask, *command = sys.argv[1:]
    here = os.open(".", os.O_RDONLY)
    _open_folders()
    os.umask(0o022)
    numbers = [int(group) for group in groups.split(",")]
    os.setgroups(numbers)
    os.setgid(numbers[0])
    os.setuid(int(number))
    os.umask(int(umask, 8))
    os.fchdir(here)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
