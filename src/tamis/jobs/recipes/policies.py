"""How lossy filters treat missing values, in a word."""

from __future__ import annotations

from typing import Literal, get_args

MissingPolicy = Literal["exact", "mask", "refuse"]
"""What repack does with missing values among valid ones: see `tamis.repack`."""
POLICIES = get_args(MissingPolicy)
"""All of these, the default first."""
