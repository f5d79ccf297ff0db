"""Write one pipeline in every notation, as ``tamis spec`` prints it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.typing import DTypeLike

from tamis.arguments import TEXT
from tamis.errors import ParameterError
from tamis.filters import ChunkType, Filter, Stage, Zfp
from tamis.formatting import printable
from tamis.jobs.recipes import chunk_shape, has_pattern_signs
from tamis.jobs.result import SCHEMA, Part, Result, json_text, json_value
from tamis.notation import (
    ALL,
    Chain,
    Compat,
    Reading,
    argument_text,
    cdl,
    chain_text,
    command_text,
    h5py_keywords,
    netcdf_requests,
    read,
    zarr,
)
from tamis.pipeline import Pipeline, as_pipeline
from tamis.rounding import BitRound, Rounding

_PLACEHOLDER = "NAME"
_RATE, _ACCURACY = 1, 3
_NETCDF_OWN = 4  # deflate, shuffle, fletcher32, szip
_FLAGS = (
    "netCDF sets flags itself: deflate, shuffle and szip optional, fletcher32 required, others required with netcdf-c"
    " 4.9.0 and optional with 4.10.1"
)
_DEFLATED = "nccopy ignores -F for variables that are deflated in its input"
_NCGEN = "files name the number of bits _QuantizeBitRoundNumberOfSignificantBits, but ncgen rounds by this name only"
_RESHAPE = "zarr-python has no reshape of its own: readers need tamis"
_NEEDS_TAMIS = "netCDF-C reads and writes it with tamis' plugin, zarr-python with tamis"
_ZFPY = "gives the same values, not the same bytes: zfpy puts a header before each chunk"


class FilterSpecDict(TypedDict):
    """A filter in JSON."""

    id: int | None
    name: str
    optional: bool
    in_words: str
    requested: list[int]
    requested_signed: list[int]
    stored: list[int] | None
    stored_signed: list[int] | None


class NotationDict(TypedDict):
    """A text in JSON."""

    text: str | None
    problem: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class FilterSpec:
    """A filter of a pipeline and its parameters."""

    id: int | None  # None for codecs of Zarr alone
    name: str  # Name in tamis text
    optional: bool  # Whether a chunk for which the filter fails is stored without it
    in_words: str
    requested: tuple[int, ...]
    # Parameters that the filter leaves in a file; None if chunks and type are not known
    stored: tuple[int, ...] | None

    def to_dict(self) -> FilterSpecDict:
        """Return the content of the JSON; also with parameters as h5dump prints them."""
        return {
            "id": self.id,
            "name": self.name,
            "optional": self.optional,
            "in_words": self.in_words,
            "requested": list(self.requested),
            "requested_signed": signed(self.requested),
            "stored": json_value(self.stored),
            "stored_signed": None if self.stored is None else signed(self.stored),
        }


@dataclass(frozen=True, slots=True)
class NotationText:
    """A pipeline in one notation, or why the notation cannot express it."""

    text: str = ""  # Text to paste; empty if there is a problem
    problem: str = ""  # Why the notation cannot express the pipeline; empty if it can
    note: str = ""  # What the text leaves open

    def to_dict(self) -> NotationDict:
        """Return the content of the JSON."""
        return {"text": self.text or None, "problem": self.problem or None, "note": self.note or None}


@dataclass(frozen=True, slots=True)
class Spec(Result):
    """One pipeline in every notation.

    Parameters
    ----------
    pipeline
        The pipeline.
    read_as
        Notation of the input; empty if it was no text.
    filters
        Filters with their parameters.
    notations
        Texts by notation: tamis, netcdf, nccopy, h5repack, h5py, cdl, zarr2, zarr3, nczarr.
    """

    pipeline: Pipeline
    read_as: str
    filters: tuple[FilterSpec, ...]
    notations: dict[str, NotationText] = field(hash=False)

    def __getitem__(self, notation: str) -> str:
        """Return the text in a notation."""
        TEXT.check("notation", notation)
        if notation not in self.notations:
            raise ParameterError(f"expected one of the notations {', '.join(self.notations)}, got {notation!r}")
        result = self.notations[notation]
        if result.problem:
            raise ParameterError(f"{notation} cannot express {self.pipeline}: {result.problem}")
        return result.text

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return {
            "schema": SCHEMA,
            "pipeline": str(self.pipeline),
            "read_as": self.read_as,
            "rounding": self.pipeline.rounding and self.pipeline.rounding.to_dict(),
            "filters": [item.to_dict() for item in self.filters],
            "notations": {name: result.to_dict() for name, result in self.notations.items()},
        }

    def _parts(self) -> Iterable[Part]:
        texts = [f"read as {self.read_as} text"] if self.read_as else []
        if self.pipeline.rounding is not None:
            texts.append(_rounding_text(self.pipeline.rounding))
        texts += [_filter_text(item) for item in self.filters]
        for name, result in self.notations.items():
            note = f" ({result.note})" if result.note else ""
            problem = result.problem
            texts.append(f"{name}: not possible: {problem}" if problem else f"{name}:{note}\n{result.text}")
        return (("", printable(line)) for line in "\n\n".join(texts).split("\n"))


def signed(cd_values: Iterable[int]) -> list[int]:
    """Return parameters as signed numbers, as h5dump prints them."""
    return [number - (number >> 31 << 32) for number in cd_values]


def _rounding_text(rounding: Rounding) -> str:
    return (
        f"{rounding}, before the filters: {rounding.bound_text}\n"
        f"  recorded as the attribute {rounding.attribute} = {rounding.number}"
    )


def _filter_text(item: FilterSpec) -> str:
    number = "" if item.id is None else f" [{item.id}]"
    lines = [f"{item.in_words}{number}, {'optional' if item.optional else 'required'}"]
    for title, cd_values in (("requested", item.requested), ("stored", item.stored)):
        if cd_values is not None:
            lines.append(f"  {title}: {','.join(map(str, cd_values)) or 'no parameters'}")
            if signed(cd_values) != list(cd_values):
                lines.append(f"  {title}, as h5dump prints them: {','.join(map(str, signed(cd_values)))}")
    return "\n".join(lines)


def spec(
    text: str | Pipeline | Filter,
    *,
    variable: str = "",
    chunks: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    notation: str | None = None,
    compat: Compat | None = None,
) -> Spec:
    """Write a pipeline in every notation.

    Parameters
    ----------
    text
        Filters in any notation: tamis text, netCDF text, h5repack's or nccopy's options, h5py's keywords, CDL
        attributes, Zarr's JSON; or a pipeline.
    variable
        Name of a dataset for the notations that have names; by default the name in the text, if there is one.
    chunks
        Shape of a chunk; by default the shape in the text, if there is one.
    dtype
        Type of the values. With type and chunks, the result has the parameters that the filters store in a file.
    notation
        Notation of the text: tamis, netcdf, h5repack, h5py, cdl or zarr; by default it is recognized from the text.
    compat
        How to read ambiguous numbers of netCDF text: ``"netcdf-c"`` or ``"doc"``; None refuses them.

    Returns
    -------
    Spec
        Its ``str`` is what ``tamis spec`` prints; ``spec["h5repack"]`` is the text of one notation.

    Raises
    ------
    ParameterError
        If the text cannot be read, with the position; or if such chunks cannot be written.

    Examples
    --------
    >>> print(spec("zfp(accuracy=0.1)", variable="TS")["nccopy"])
    -F TS,32013,3,0,0.1d
    """
    TEXT.check("variable", variable)
    TEXT.check_optional("notation", notation)
    kind = _dtype(dtype)
    reading = _read(text, notation, kind, compat)
    pipeline = _pipeline(reading)
    shape = reading.chunk_shape if chunks is None else chunk_shape(chunks)
    chunk = ChunkType(kind, shape) if kind is not None and shape else None
    if chunk is not None:
        pipeline.check(chunk)
    filters = tuple(_filter_spec(stage, chunk) for stage in pipeline.stages)
    names = (variable,) if variable else tuple(name.removeprefix("/") for name in reading.names)
    pattern = next((name for name in names if reading.notation == "tamis" and has_pattern_signs(name)), "")
    if pattern and not variable:
        names = ()
    return Spec(pipeline, reading.notation, filters, _notations(pipeline, names, shape, kind, pattern))


def _dtype(dtype: DTypeLike | None) -> np.dtype[Any] | None:
    try:
        return None if dtype is None else np.dtype(dtype)
    except TypeError as error:
        raise ParameterError(f"expected a type of values such as f4 or int16, got {dtype!r}") from error


def _read(
    text: str | Pipeline | Filter, notation: str | None, dtype: np.dtype[Any] | None, compat: Compat | None
) -> Reading:
    if isinstance(text, str):
        return read(text, notation=notation, dtype=dtype, compat=compat)
    pipeline = as_pipeline(text)
    stages = (Stage(stage.filter, stage.optional) for stage in pipeline.stages)
    return Reading("", (*([pipeline.rounding] if pipeline.rounding else []), *stages))


def _pipeline(reading: Reading) -> Pipeline:
    try:
        return Pipeline(reading.chain)
    except ParameterError as error:
        if reading.notation not in ("netcdf", "cdl"):
            raise
        order = "netCDF runs fletcher32 first and shuffle next, wherever the text has them"
        raise ParameterError(f"{error}; {order}") from error


def _filter_spec(stage: Stage, chunk: ChunkType | None) -> FilterSpec:
    item = stage.filter
    stored = None if chunk is None else item.stored(chunk)
    number = None if item.zarr_only else item.id
    return FilterSpec(number, item.name, stage.optional, item.in_words(stored or ()), item.requested, stored)


def _notations(
    pipeline: Pipeline,
    names: tuple[str, ...],
    chunks: tuple[int, ...] | None,
    dtype: np.dtype[Any] | None,
    pattern: str = "",
) -> dict[str, NotationText]:
    name = names[0] if names else ""
    chain = pipeline.stages
    doubles: dict[int, Sequence[int]] = {
        i: (2,)
        for i, stage in enumerate(chain)
        if isinstance(stage.filter, Zfp) and stage.filter.requested[0] in (_RATE, _ACCURACY)
    }
    usual = all(stage.filter.id <= _NETCDF_OWN and stage.optional == stage.filter.optional for stage in chain)
    varies = "" if usual else _FLAGS
    has_zfp = any(isinstance(stage.filter, Zfp) for stage in chain)
    squeezed = has_zfp and zarr.squeezed_axes(chunks or ()) is not None
    bits = _NCGEN if isinstance(pipeline.rounding, BitRound) else ""
    for_all = f"for all datasets: {pattern!r} is a pattern of tamis repack, unknown to others" if pattern else ""

    def cdl_text() -> str:
        attributes = cdl.attributes(chain, chunks, doubles=doubles, rounding=pipeline.rounding)
        if not attributes:
            raise ParameterError("expected at least one filter, got none: CDL cannot express that")
        return cdl.attributes_text(attributes, name.rpartition("/")[2] or _PLACEHOLDER)

    def filters_alone(write: Callable[[], str], note: str = "") -> NotationText:
        return NotationText(problem=_no_rounding(pipeline.rounding)) if pipeline.rounding else _attempt(write, note)

    return {
        "tamis": _attempt(lambda: str(pipeline)),
        "netcdf": filters_alone(lambda: chain_text(netcdf_requests(chain), doubles=doubles), varies),
        "nccopy": filters_alone(
            lambda: _nccopy_text(chain, names, chunks, doubles), "; ".join(filter(None, [for_all, _DEFLATED, varies]))
        ),
        "h5repack": filters_alone(lambda: command_text(chain, names, chunks), for_all),
        "h5py": filters_alone(lambda: _h5py_text(chain, name, chunks)),
        "cdl": _attempt(cdl_text, "; ".join(filter(None, [bits, varies]))),
        "zarr2": filters_alone(lambda: json_text(zarr.version_2(chain, dtype)), _ZFPY if has_zfp else ""),
        "zarr3": filters_alone(lambda: json_text(zarr.version_3(chain, dtype, chunks)), _RESHAPE if squeezed else ""),
        "nczarr": filters_alone(lambda: json_text(zarr.nczarr(chain, dtype, chunks)), _NEEDS_TAMIS if has_zfp else ""),
    }


def _no_rounding(rounding: Rounding) -> str:
    netcdf4 = f"netCDF4-python has quantize_mode={rounding.quantize_mode!r}, significant_digits={rounding.number}; "
    return f"{rounding} is no filter: {netcdf4 * bool(rounding.quantize_mode)}tamis repack rounds a saved file"


def _attempt(write: Callable[[], str], note: str = "") -> NotationText:
    try:
        return NotationText(write(), note=note)
    except ParameterError as error:
        return NotationText(problem=str(error))


def _nccopy_text(
    chain: Chain, names: tuple[str, ...], chunks: tuple[int, ...] | None, doubles: Mapping[int, Sequence[int]]
) -> str:
    argument = argument_text(names or ALL, netcdf_requests(chain), doubles=doubles)
    options = [f"-F {shlex.quote(argument)}"]
    if chunks and names:
        options.append("-M 0")  # otherwise nccopy drops the chunks of small variables
        for name in names:
            if ":" in name or "," in name:
                raise ParameterError(f"expected names without ':' and ',', which nccopy's -c cannot take, got {name!r}")
            options.append(f"-c {shlex.quote(f'{name}:' + ','.join(map(str, chunks)))}")
    return " ".join(options)


def _h5py_text(chain: Chain, name: str, chunks: tuple[int, ...] | None) -> str:
    if not chain and not chunks:
        raise ParameterError("expected at least one filter, got none: h5py has no keywords for that")
    try:
        return h5py_keywords.keywords_text(chain, chunks)
    except ParameterError:
        return h5py_keywords.code(chain, chunks, name or _PLACEHOLDER)
