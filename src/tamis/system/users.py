"""Users and groups of POSIX; on Windows all files belong to user 0 and group 0, and so does this process.

There, who may use a file is said by its access list, which new files take from their folder, and a file that replaces
another one from that file (`tamis.system.renames.replace_file`).
"""

from __future__ import annotations

import os
import sys

if sys.platform != "win32" and hasattr(os, "geteuid"):

    def user_id() -> int:
        """Return the user whose rights this process has."""
        return os.geteuid()

    def group_ids() -> tuple[int, ...]:
        """Return the groups whose rights this process has."""
        return (os.getegid(), *os.getgroups())

    def give_to(path: str | os.PathLike[str], owner: int, group: int) -> None:
        """Give a file to a user, -1 for its own one, and a group; raises PermissionError."""
        os.chown(path, owner, group)

else:

    def user_id() -> int:
        """Return 0, which Python gives as the owner of all files."""
        return 0

    def group_ids() -> tuple[int, ...]:
        """Return group 0 alone."""
        return (0,)

    def give_to(path: str | os.PathLike[str], owner: int, group: int) -> None:
        """Do nothing: a file belongs to who made it."""


def may_act_for(owner: int) -> bool:
    """Return whether this process may do what the owner of a file may: it is the same user, or root."""
    return user_id() in (0, owner)
