"""The JSON of all results: one rule for values that JSON does not have, and one document for failures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = 1
"""Number of the JSON schema: it changes where a key goes away or changes its meaning, not where one is added."""


def json_text(document: object, *, indent: int | None = None) -> str:
    """Return JSON in ASCII; see `json_value`."""
    return json.dumps(json_value(document), indent=indent, allow_nan=False)


def json_value(value: object) -> Any:
    """Return a value in types of JSON.

    Numbers that are not finite become the texts ``inf``, ``-inf`` and ``nan``, numpy's scalars and arrays Python's
    numbers and lists, paths text, dataclasses what their ``to_dict`` returns or else their fields, and anything else
    its ``str``. A byte of a name that is not UTF-8 is a lone surrogate, as in Python.
    """
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, np.ndarray):
        return json_value(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return json_value(value.to_dict()) if hasattr(value, "to_dict") else json_fields(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    return [json_value(item) for item in value] if isinstance(value, Iterable) else str(value)


def json_fields(value: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a dataclass in types of JSON."""
    return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}


def error_document(error: Exception, code: int) -> dict[str, Any]:
    """Return the JSON document of a failed command, with its exit code."""
    return {"schema": SCHEMA, "error": {**error_dict(error), "exit_code": code}}


def error_dict(error: Exception) -> dict[str, Any]:
    """Return kind and message of an error, and its path, dataset, chunk and filter: None if unknown."""
    where = {name: getattr(error, name, None) for name in ("path", "dataset", "chunk", "filter")}
    kind = next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))
    return {"kind": kind, "message": str(error), **where}
