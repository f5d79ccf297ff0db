"""Texts and their encodings: fill values that hide valid texts, and missing texts that no fill value marks."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from xarray import Dataset, Variable

from tamis.errors import DataError, TamisError
from tamis.jobs.witness.loss import Misfit, missing_among
from tamis.meaning import FILL_ATTRIBUTES
from tamis.xarray.dataset_store import encode_group
from tamis.xarray.encoding_loss import loss_of

_FILLS = ("", "NA", "missing")
"""Texts that may mark missing ones: the first one is also what readers without fill values show."""


class NewEncoding(NamedTuple):
    """An encoding that keeps texts, and a note about it."""

    encoding: dict[str, Any]
    note: str


def is_text(given: Variable, encoded: Variable) -> bool:
    """Return whether values are texts, which are stored as such or as characters with an axis of their own."""
    is_stored = encoded.dtype.kind == "O" or (encoded.dtype == np.dtype("S1") and encoded.ndim == given.ndim + 1)
    return given.dtype.kind in "OSTU" and is_stored


def may_lose_text(given: Variable, encoded: Variable) -> bool:
    """Return whether texts may be missing, seem to be, or lose characters."""
    has_fill = any(name in encoded.attrs for name in FILL_ATTRIBUTES)
    is_cut = encoded.dtype.kind == "S" and given.dtype.kind != "S"  # a zero ends text in characters
    return given.dtype.kind in "OT" or has_fill or is_cut


def kept_text(path: str, given: Variable, encoded: Variable, *, is_asked: bool) -> NewEncoding | None:
    """Return another encoding if that of texts does not keep them; None if it does.

    Parameters
    ----------
    path
        Path of the variable.
    given
        The variable, with its encoding.
    encoded
        What xarray will read of it, undecoded.
    is_asked
        Whether the encoding is one that the caller asks for, which is not replaced by another.

    Raises
    ------
    DataError
        If no encoding keeps them, or not the one that the caller asks for.
    """
    if not may_lose_text(given, encoded) or (first := loss_of(path, given, encoded).first) is None:
        return None
    fixed = {name for name in (*FILL_ATTRIBUTES, "dtype") if name in given.encoding} if is_asked else set[str]()
    if fixed:
        raise _refusal(path, first, given)
    new = {name: value for name, value in given.encoding.items() if name not in FILL_ATTRIBUTES}
    values = given.values
    missing = missing_among(values)
    if missing.any():
        valid = set(values[~missing].astype(object).tolist())
        if any(isinstance(value, bytes) for value in valid):
            raise _refusal(path, first, given)
        new["_FillValue"] = next(text for text in _free_texts() if text not in valid)
        if _is_characters(new.get("dtype")):  # xarray has no fill value for them
            del new["dtype"]
    if not _keeps(path, given, new):
        raise _refusal(path, first, given)
    return NewEncoding(new, _note(path, first, given, new))


def inherited_text(name: str, variable: Variable) -> NewEncoding | None:
    """Return another encoding for texts that xarray's own engines would not keep; None if they keep them or refuse."""
    has_fill = any(variable.encoding.get(key) is not None for key in FILL_ATTRIBUTES)
    if variable.dtype.kind not in ("OSTU" if has_fill else "OT"):
        return None
    try:
        encoded = encode_group(Dataset({name: variable}), ()).variables[name]
        return kept_text(name, variable, encoded, is_asked=False) if is_text(variable, encoded) else None
    except TamisError:
        return None  # no encoding keeps them, and the engine says why


def _free_texts() -> itertools.chain[str]:
    return itertools.chain(_FILLS, (f"missing {number}" for number in itertools.count(1)))


def _is_characters(dtype: Any) -> bool:
    return dtype is not None and dtype is not str and np.dtype(dtype).kind == "S"


def _keeps(path: str, given: Variable, encoding: Mapping[str, Any]) -> bool:
    """Return whether an encoding keeps texts, as xarray's engines for netCDF write it."""
    name = posixpath.basename(path)
    variable = Variable(given.dims, given._data, given.attrs, encoding)
    encoded = encode_group(Dataset({name: variable}), ()).variables[name]
    return is_text(given, encoded) and loss_of(path, given, encoded).first is None


def _note(path: str, first: Misfit, given: Variable, new: Mapping[str, Any]) -> str:
    notes = []
    before = {name: given.encoding[name] for name in FILL_ATTRIBUTES if given.encoding.get(name) is not None}
    if before:
        keys = ", ".join(f"{name}={value!r}" for name, value in before.items())
        notes.append(f"{keys} of its present encoding is left out, because it does not keep {first}")
    if "_FillValue" in new:
        about = "missing texts" if before else f"missing texts, the first at {[*first.index]},"
        notes.append(f"{about} are stored as {new['_FillValue']!r}, its new _FillValue, which no valid text is")
    if "dtype" in given.encoding and "dtype" not in new:
        notes.append("it is stored as texts of varying length, because xarray has no fill value for characters")
    return f"{path}: {'; '.join(notes)}"


def _refusal(path: str, first: Misfit, given: Variable) -> DataError:
    """Return the error about texts that their encoding does not keep."""
    name, is_bytes = posixpath.basename(path), isinstance(first.found, bytes)
    fill = f"{'b' if is_bytes else ''}'…'"
    if not missing_among(np.array([first.given], object))[0]:
        advice = "use another dtype or _FillValue"
    else:
        advice = f"mark missing texts by one that no valid text is, encoding={{{name!r}: {{'_FillValue': {fill}}}}}"
        if _is_characters(given.encoding.get("dtype")) and not is_bytes:
            advice += ", without dtype"
    return DataError(f"{path}: its encoding does not hold {first}: {advice}").at(dataset=path)
