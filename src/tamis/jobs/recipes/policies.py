"""How lossy filters treat missing values, in a word."""

from __future__ import annotations

from typing import Literal, get_args

MissingPolicy = Literal["exact", "mask", "refuse"]
POLICIES = get_args(MissingPolicy)
