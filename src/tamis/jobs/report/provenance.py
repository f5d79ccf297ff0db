"""Where a report comes from: versions, commands, recipe, sizes and checksums."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis import _native, meaning
from tamis.errors import TamisError
from tamis.formatting import shell_line, size_text
from tamis.rounding import recorded_rounding
from tamis.safety.disk import sha256_of

if TYPE_CHECKING:
    from tamis.jobs.progress import Progress
    from tamis.jobs.recipes.saved_recipe import Recipe
    from tamis.stores.protocols import Store

_MOST_HISTORY = 2000


def provenance_of(source: Store, target: Store, recipe: Recipe | None, progress: Progress) -> dict[str, str]:
    """Return facts by name."""
    facts: dict[str, str] = {}
    elsewhere = []
    for number, (name, store) in enumerate((("source", source), ("target", target))):
        progress("checksums", number, 2)
        facts[name] = store.path
        facts[f"size of {name}"] = f"{store.nbytes} bytes ({size_text(store.nbytes)})"
        if checksum := _checksum(store.path):
            facts[f"sha256 of {name}"] = checksum
        elsewhere += [] if checksum else [name]
    if elsewhere:
        facts["sha256"] = f"not computed of what is read in parts over a network: {' and '.join(elsewhere)}"
    progress("checksums", 2, 2)
    if history := _history(target):
        facts["history of target"] = history
    if recipe is not None:
        facts["recipe"] = str(recipe)
    command = [Path(sys.argv[0]).name, *sys.argv[1:]] if "tamis_command" in sys.modules else []
    if command:
        facts["command"] = shell_line(command)
    facts["tamis"] = _native.version
    facts["Python, NumPy"] = f"{platform.python_version()}, {np.__version__}"
    facts["system"] = platform.platform()
    return facts


def _checksum(path: str) -> str:
    """Return the SHA-256 of a file or folder here; empty for others, which would have to be read whole."""
    if not os.path.exists(path):
        return ""
    with suppress(OSError):
        return sha256_of(Path(path))
    return ""


def _history(store: Store) -> str:
    with suppress(TamisError, KeyError):
        attributes: Any = store.model.group("/").attributes
        return meaning.text(attributes, "history")[:_MOST_HISTORY]
    return ""


def rounding_text(array: Any) -> str:
    """Return the rounding that an array records; empty if it records none."""
    found = recorded_rounding(array.attributes, array.number_type)
    return "" if found is None else str(found)
