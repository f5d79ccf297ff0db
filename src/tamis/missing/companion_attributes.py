"""Names and attributes by which arrays and companions of their missing values know each other: docs/missing.md."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tamis.missing.table import Flags

COMPANION_ENDING = "_missing"
"""Ending of the name of a companion, behind that of its array."""

MARK = "missing_companion"
"""Attribute of a variable: path of its companion."""

TABLE = "flag_missing_values"
"""Attribute of a companion: item k − 1 is the missing value of flag k."""

ANCILLARY = "ancillary_variables"
"""Attribute of CF: names of variables about the values of this one, separated by blanks."""

SHARED = ("coordinates", "grid_mapping")
"""Attributes about axes that a companion copies from its variable."""


def companion_names(path: str) -> Iterator[str]:
    """Yield names or paths for the companion of an array, by its own; the first that is free is taken."""
    yield f"{path}{COMPANION_ENDING}"
    yield from (f"{path}{COMPANION_ENDING}{number}" for number in itertools.count(2))


def companion_paths(variable: str, marked: str) -> tuple[str, str]:
    """Return where the companion of a variable may be: in the variable's own group first, as groups may be moved."""
    return posixpath.join(posixpath.dirname(variable), posixpath.basename(marked)), marked


def description(name: str, flags: Flags) -> dict[str, Any]:
    """Return the attributes of a companion that people and CF's readers look for, by the name of its variable."""
    meanings = flags.words()
    return {
        "long_name": f"where {name} is missing",
        "standard_name": "status_flag",
        "flag_values": np.arange(len(meanings), dtype=np.uint8),
        "flag_meanings": " ".join(meanings),
    }


def other_ancillary(ancillary: str, marked: str) -> list[str]:
    """Return the names of the ancillary variables of an array, except its companion, by both attributes."""
    own = marked.rpartition("/")[2]
    return [name for name in ancillary.split() if name != own]


def without_companion(attributes: Mapping[str, Any], others: Iterable[str]) -> dict[str, Any]:
    """Return the attributes of an array without what they say about its companion; `others` as `other_ancillary`."""
    changed = {MARK: "", ANCILLARY: " ".join(others)}
    return {name: changed.get(name, value) for name, value in attributes.items() if changed.get(name, True)}
