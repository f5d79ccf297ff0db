"""Names by which arrays and companions of their missing values know each other: docs/missing.md."""

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
