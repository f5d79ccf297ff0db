"""Filters and chunk shapes of a file as arguments of programs and calls, ready to paste."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tamis.errors import ParameterError
from tamis.filters import UnknownFilter
from tamis.formatting import printable, shape_text
from tamis.jobs.inspection.result import DatasetInfo, Inspection
from tamis.jobs.json_rule import json_text
from tamis.jobs.recipe import has_pattern_signs
from tamis.jobs.spec import spec


@dataclass(frozen=True, slots=True)
class Arguments:
    """What to paste.

    Parameters
    ----------
    text
        Lines; empty where no dataset has filters that the notation can say.
    problems
        Datasets whose filters it cannot say, and why.
    notes
        What becomes of the others that one might not expect.
    """

    text: str
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def arguments(found: Inspection, notation: str) -> Arguments:
    """Write the filters and chunk shapes of all datasets that have filters in one of `TARGETS`."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    notes: dict[str, None] = {}
    for each in found.datasets:
        if not each.pipeline.stages:
            continue
        try:
            _check(each, notation)
            texts[each.path], note = _WRITERS[notation](each)
        except ParameterError as error:
            problems.append(printable(f"{found.path}: {each.path}: {error}"))
        else:
            notes |= {note: None} if note else {}
    if notation == "zarr":
        entries = ",\n".join(f"{json_text(path)}: {codecs}" for path, codecs in texts.items())
        text = f"{{\n{entries}\n}}" if texts else ""
    else:
        sign = COMMENTS[notation]
        named = notation not in ("ncgen", "h5py")  # which do not name the dataset, or not its group
        text = "\n".join(line if named else f"{sign} {printable(path)}\n{line}" for path, line in texts.items())
    return Arguments(text, tuple(problems), tuple(notes))


def _check(each: DatasetInfo, notation: str) -> None:
    if each.problem:
        raise ParameterError(f"expected filters that can be read, got {each.pipeline}: {each.problem}")
    if not each.path.isprintable() and notation != "zarr":  # JSON has escapes
        raise ParameterError("expected a name that can be pasted, got one with control characters or broken UTF-8")


def _tamis(each: DatasetInfo) -> tuple[str, str]:
    name = each.path if has_pattern_signs(each.path) else _name(each)  # a whole path is no pattern where it is there
    pipeline = shlex.quote(f"{name}:{each.pipeline}")
    return f"-f {pipeline} -c {shlex.quote(f'{name}:{shape_text(each.chunks or ())}')}", ""


def _spec(notation: str) -> Callable[[DatasetInfo], tuple[str, str]]:
    def write(each: DatasetInfo) -> tuple[str, str]:
        dtype = _dtype(each) if notation == "zarr3" else None
        made = spec(each.pipeline, variable=_name(each), chunks=each.chunks, dtype=dtype)
        unknown = [str(one) for one in each.pipeline.filters if isinstance(one, UnknownFilter)]
        stored = (
            f"{', '.join(unknown)}: parameters as stored; its plugin may expect the requested ones" if unknown else ""
        )
        return made[notation], "; ".join(filter(None, [made.notations[notation].note, stored]))

    return write


def _name(each: DatasetInfo) -> str:
    """Path as users write it: without the slash where the dataset is in the root group."""
    return each.path if each.path.count("/") > 1 else each.path.removeprefix("/")


def _dtype(each: DatasetInfo) -> np.dtype[np.generic] | None:
    try:
        return np.dtype(each.dtype)
    except TypeError:
        return None


_WRITERS: dict[str, Callable[[DatasetInfo], tuple[str, str]]] = {
    "h5repack": _spec("h5repack"),
    "nccopy": _spec("nccopy"),
    "ncgen": _spec("cdl"),
    "h5py": _spec("h5py"),
    "zarr": _spec("zarr3"),
    "tamis": _tamis,
}
TARGETS = tuple(_WRITERS)
"""Whose arguments can be written."""

COMMENTS = dict.fromkeys(TARGETS, "#") | {"ncgen": "//", "zarr": ""}
"""What begins a comment; JSON has none."""
