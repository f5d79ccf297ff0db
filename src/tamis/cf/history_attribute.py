"""The attribute ``history`` of a file: a line for each program that changed it, the last one first."""

from __future__ import annotations

from tamis.cf.variables import Attributes, text

HISTORY = "history"

_OWN = "tamis "
_MOST = 60000  # characters; HDF5 stores no larger attributes in the oldest of its file formats


def with_line(attributes: Attributes, line: str) -> str:
    """Return the history of a file after one more program, by the attributes of its root group.

    Returns
    -------
    str
        Empty if the file does not follow the conventions, since it has neither a history nor ``Conventions``, or if its
        history is no text, or too long for another line.
    """
    before = text(attributes, HISTORY)
    if not line or not (before if HISTORY in attributes else "Conventions" in attributes):
        return ""
    after = f"{line}\n{before}" if before else line
    return after if len(after.encode("utf-8", "surrogateescape")) <= _MOST else ""


def added_line(before: str, after: str) -> str:
    """Return the lines that tamis put in front of a history; empty if anything else happened to it."""
    line = after.removesuffix(f"\n{before}")
    is_own = before and line != after and all(each.startswith(_OWN) for each in line.split("\n"))
    return line if is_own else ""
