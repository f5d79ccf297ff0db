"""Copy a netCDF-4 file with the options of nccopy, and with the engine and proof of `tamis.repack`.

The first of these that applies gives the filters of a variable:

1. those of all ``-F`` that name it, in their order; a filter that is given twice keeps its first place, with its last
   parameters;
2. those of ``-F '*,…'``;
3. with ``-d``, deflate of that level instead of all others except fletcher32, and shuffle before it with ``-s``; level
   0 removes deflate and shuffle;
4. none after ``-F none``;
5. those that it has.

Unnamed variables follow 2 to 4 like a pattern of `tamis.repack`: those that cannot take filters, or should not take
lossy ones, are kept and listed.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from tamis.arguments import CALLBACK, NAMES, PATH, TEXT, WHOLE
from tamis.errors import FileError, ParameterError
from tamis.filters import Deflate, Fletcher32, Request, Shuffle, Stage
from tamis.formatting import did_you_mean
from tamis.jobs.copy_table import DEFAULTS, OF_NCCOPY, OF_REPACK, TABLE
from tamis.jobs.progress import Progress
from tamis.jobs.recipes import MissingPolicy
from tamis.jobs.repack import (
    RepackOptions,
    RepackResult,
    check_kinds,
    kinds_of,
    refuse_unknown,
    run_preview,
    run_repack,
    takes_options,
)
from tamis.lazy_property import lazy_property
from tamis.notation import ALL, NccopyArgument, in_netcdf_order, malformed, parse_argument
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.jobs.repack import RepackPreview
    from tamis.stores import Dimension, Store, StoredArray


_PART = re.compile(r"(?:\\.|[^\\,])*", re.DOTALL)
_COLON = re.compile(r"(?:\\.|[^\\:])*", re.DOTALL)
_LENGTH = re.compile(r"0*[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ChunkArgument:
    """An argument of nccopy's ``-c``, parsed."""

    dimensions: dict[str, int | None]  # Chunk length by path of a dimension; None for the whole dimension
    variable: str = ""  # Path of a variable; empty if the argument names dimensions
    shape: tuple[int, ...] = ()  # Chunk shape of the variable
    # Storage without chunks for the variable, or for all if there is none: ``contiguous`` or ``compact``
    unchunked: str = ""


def parse_chunk_argument(text: str) -> ChunkArgument:
    """Read an argument of nccopy's ``-c``."""
    if text == "/":
        return ChunkArgument({}, unchunked="contiguous")
    colon = _end(_COLON, text, 0)
    if colon < len(text):
        return _variable(text, colon)
    dimensions: dict[str, int | None] = {}
    for start, end in _parts(text, 0):
        slash = text.rfind("/", start, end)
        if slash < 0:
            raise malformed(text, start, "DIMENSION/LENGTH such as time/10, or VARIABLE:LENGTH,LENGTH")
        path = _path(text, start, slash)
        if path in dimensions:
            raise malformed(text, start, f"each dimension once, got {path.removeprefix('/')} again")
        dimensions[path] = _length(text, slash + 1, end) if slash + 1 < end else None
    return ChunkArgument(dimensions)


def _variable(text: str, colon: int) -> ChunkArgument:
    path, rest = _path(text, 0, colon), text[colon + 1 :]
    if rest in ("", "contiguous", "compact"):
        return ChunkArgument({}, path, unchunked=rest or "contiguous")
    return ChunkArgument({}, path, tuple(_length(text, *bounds) for bounds in _parts(text, colon + 1)))


def _parts(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the pieces between commas."""
    while True:
        end = _end(_PART, text, start)
        yield start, end
        if end == len(text):
            return
        start = end + 1


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    end = match.end() if match else start
    if text[end : end + 1] == "\\":
        raise malformed(text, end, "a character after '\\'")
    return end


def _length(text: str, start: int, end: int) -> int:
    if not _LENGTH.fullmatch(text[start:end]):
        raise malformed(text, start, "a chunk length of 1 or more")
    return int(text[start:end])


def _path(text: str, start: int, end: int) -> str:
    name = re.sub(r"\\(.)", r"\1", text[start:end], flags=re.DOTALL)
    if not name.strip("/"):
        raise malformed(text, start, "a name")
    return name if name.startswith("/") else f"/{name}"


@dataclass(frozen=True, slots=True)
class CopiedVariable:
    """A variable of a file."""

    path: str  # First path of its array in the file
    dimensions: tuple[str, ...]  # Path of the dimension of each axis


class Variables:
    """The variables and dimensions of a file by their paths, without patterns."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @lazy_property
    def _tables(self) -> tuple[dict[str, CopiedVariable], dict[str, Dimension]]:
        variables: dict[str, CopiedVariable] = {}
        dimensions: dict[str, Dimension] = {}
        model, arrays = self._store.model, self._store.arrays
        for group_path in model.group_paths():
            group = model.group(group_path)
            dimensions |= {posixpath.join(group_path, name): item for name, item in group.dimensions.items()}
            for name, variable in group.variables.items():
                path = variable.path if variable.path in arrays else self._store.first_path(variable.path)
                if path:
                    names = tuple(_dimension_path(group_path, axis, dimensions) for axis in variable.dimensions)
                    variables[posixpath.join(group_path, name)] = CopiedVariable(path, names)
        return variables, dimensions

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """All dimensions by path."""
        return self._tables[1]

    def __iter__(self) -> Iterator[CopiedVariable]:
        return iter({variable.path: variable for variable in self._tables[0].values()}.values())

    def array_path(self, name: str, option: str) -> str:
        """Return the path of the array of a variable."""
        path = "/" + posixpath.normpath(name).strip("/")
        if path in self._store.arrays and not self._store.arrays[path].marks.is_bare_dimension:
            return path  # without looking at all variables
        variables = self._tables[0]
        if path in variables:
            return variables[path].path
        if first := self._store.first_path(path):
            return first
        raise self._absent(option, "variable", path, variables)

    def dimension_path(self, name: str) -> str:
        """Return the path of a dimension."""
        path = "/" + posixpath.normpath(name).strip("/")
        if path not in self.dimensions:
            raise self._absent("-c", "dimension", path, self.dimensions)
        return path

    def _absent(self, option: str, kind: str, path: str, known: Mapping[str, object]) -> FileError:
        """Return the error for a name that leads to nothing."""
        name = posixpath.basename(path)
        elsewhere = [other for other in known if posixpath.basename(other) == name]
        if elsewhere:
            hint = f"; there is {', '.join(elsewhere[:4])}: write the whole path"
        else:
            words = [word for other in known for word in (posixpath.basename(other), other)]
            listed = ", ".join([*known][:8]) + ", …" * (len(known) > 8)
            hint = did_you_mean(path.removeprefix("/"), words) or f"; there are {listed or 'none'}"
        signs = "; patterns are not supported, except * alone" if any(sign in name for sign in "*?[") else ""
        text = f"{self._store.path}: expected a {kind} at {path!r} ({option}), found none{hint}{signs}"
        return FileError(text).at(path=self._store.path, dataset=path)


def _dimension_path(group: str, name: str, dimensions: Mapping[str, Dimension]) -> str:
    """Return the path of a dimension by its name in a group: of this group or an enclosing one."""
    while (path := posixpath.join(group, name)) not in dimensions and group != "/":
        group = posixpath.dirname(group)
    return path


_RECORDS_NBYTES = 1 << 22
"""Bytes of a chunk of records, where neither the source nor an option says its length, as in netCDF."""


def _unchunked_text(item: ChunkArgument) -> str:
    name = item.variable.removeprefix("/")
    layout, argument = ("CONTI", "/") if item.unchunked == "contiguous" else ("COMPA", f"{name}:compact")
    chosen = f"{name}:{layout}" if name else layout
    return (
        f"-c asks for {item.unchunked} storage, which tamis does not write: use h5repack -l {chosen}, or "
        f"nccopy -c {argument if not name or item.unchunked == 'compact' else f'{name}:'}"
    )


def pipeline_of(requests: Sequence[Request]) -> Pipeline:
    """Return filters in the order in which netCDF runs them, or as given if one of them must be first."""
    try:
        return Pipeline(map(Stage.of, in_netcdf_order(requests)))
    except ParameterError:
        last = {request.id: request for request in requests}
        return Pipeline(map(Stage.of, last.values()))


def _named_chains(arguments: Iterable[NccopyArgument], variables: Variables) -> dict[str, list[Request] | None]:
    """Return the filters of each variable that some ``-F`` names; None for no filters."""
    chains: dict[str, list[Request] | None] = {}
    for argument in arguments:
        for name in argument.variables:
            if name == ALL:
                continue
            path = variables.array_path(name, "-F")
            before = chains.get(path)
            if path in chains and (before is None) != (argument.chain is None):
                raise ParameterError(f"-F gives {name!r} both filters and none: leave one -F out").at(dataset=path)
            chains[path] = None if argument.chain is None else [*(before or ()), *argument.chain]
    return chains


def _by_level(array: StoredArray, options: CopyOptions, *, removed: bool) -> Pipeline:
    """Return the filters of a variable without ``-F``: those of ``-d``, none, or its own."""
    own = [] if removed else [replace(stage, stored=None) for stage in array.storage.pipeline.stages]
    if not options.level:
        try:
            return Pipeline(stage for stage in own if not isinstance(stage.filter, (Deflate, Shuffle)))
        except ParameterError as error:  # files have orders that tamis does not write
            raise ParameterError(f"{array.path}: {error}").at(dataset=array.path) from error
    stages = [stage for stage in own if isinstance(stage.filter, Fletcher32)]
    last = bool(stages) and stages[0] != own[0]
    new = [Shuffle()] * options.shuffle + [Deflate(options.level)]
    return Pipeline([*new, *stages] if last else [*stages, *new])


def _chunks(
    store: Store, variables: Variables, arguments: Iterable[ChunkArgument]
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Return chunk shapes of named variables, and of those with named dimensions."""
    named: dict[str, tuple[int, ...]] = {}
    lengths: dict[str, int | None] = {}
    for argument in arguments:
        if argument.variable:
            path = variables.array_path(argument.variable, "-c")
            if named.setdefault(path, argument.shape) != argument.shape:
                raise ParameterError(f"expected one chunk shape for {argument.variable!r} (-c), got two")
        for name, length in argument.dimensions.items():
            path = variables.dimension_path(name)
            if lengths.setdefault(path, length) != length:
                raise ParameterError(f"expected one chunk length for {name!r} (-c), got two")
            dimension = variables.dimensions[path]
            if length is not None and length > dimension.size and not dimension.is_unlimited:
                raise ParameterError(
                    f"expected a chunk length of at most {dimension.size} for {name.removeprefix('/')} (-c), got"
                    f" {length}"
                )
    by_rule = {}
    for variable in variables if lengths else ():
        if variable.path not in named and not lengths.keys().isdisjoint(variable.dimensions):
            array = store.arrays[variable.path]
            if (shape := _shape(array, variable, variables, lengths)) != array.storage.chunk_shape:
                by_rule[variable.path] = shape
    return named, by_rule


def _shape(
    array: StoredArray, variable: CopiedVariable, variables: Variables, lengths: Mapping[str, int | None]
) -> tuple[int, ...]:
    """Return the chunk shape of a variable: of named dimensions, else its own, else the whole dimension."""
    dimensions = [variables.dimensions[path] for path in variable.dimensions]
    shape = []
    for axis, path in enumerate(variable.dimensions):
        length = lengths.get(path)
        if path not in lengths and array.storage.chunk_shape:
            length = array.storage.chunk_shape[axis]
        shape.append(length or max(dimensions[axis].size, 1))
    free = [
        axis
        for axis, path in enumerate(variable.dimensions)
        if path not in lengths and not array.storage.chunk_shape and dimensions[axis].is_unlimited
    ]
    for axis in free:
        record = array.storage.chunk.dtype.itemsize
        for other, length in enumerate(shape):
            record *= length if other != axis else 1
        shape[axis] = max(1, min(shape[axis], _RECORDS_NBYTES // record))
    return tuple(shape)


_CLASSIC_MODEL = "netCDF-4 classic model"
_KINDS = {
    **dict.fromkeys(("nc4", "netcdf-4", "netcdf4", "enhanced", "3"), "netCDF-4"),
    **dict.fromkeys(("nc7", "netcdf-4 classic model", "netcdf4-classic", "netcdf4_classic", "4"), _CLASSIC_MODEL),
}

_OPTION_KINDS = {**kinds_of(OF_NCCOPY), "level": WHOLE, "kind": TEXT}


class CopyKeywords(TypedDict, total=False):
    """The options of `tamis.copy`; those that `tamis.repack` has, too, are explained there."""

    chunks: str | Sequence[str]
    level: int | None
    shuffle: bool
    kind: str | None
    min_size: int | None
    checksum: bool
    threads: int | None
    missing: MissingPolicy
    follow: bool
    self_contained: bool
    larger: bool
    history: bool
    resume: bool
    drop: str | Iterable[str]


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """What `run_copy` does with a source, and how."""

    filters: Sequence[NccopyArgument]  # Those of ``-F``
    chunks: Sequence[ChunkArgument]  # Those of ``-c``
    level: int | None  # Of deflate (``-d``); None to keep filters
    shuffle: bool  # Whether shuffle comes before deflate (``-s``)
    # What the target has to be, as in nccopy's ``-k``: a netCDF-4 file, of the classic model if the source is
    kind: str | None
    repack: RepackOptions  # Variables without a name in `filters` count as matched by a pattern

    @classmethod
    def asked(
        cls, filters: str | Sequence[str] = (), *, overwrite: bool = False, **options: Unpack[CopyKeywords]
    ) -> Self:
        """Return the checked options of a call; refuse those that contradict each other, or that nccopy ignores."""
        given: dict[str, Any] = {**DEFAULTS, **options}
        NAMES.check("filters", filters)
        check_kinds(given, _OPTION_KINDS, DEFAULTS)
        of_repack = {option.name: given[option.name] for option in OF_REPACK}
        repack = RepackOptions.asked({}, command="copy", overwrite=overwrite, **of_repack)
        chains = [*map(parse_argument, _listed(filters))]
        chunks = [*map(parse_chunk_argument, _listed(given["chunks"]))]
        level, shuffle, kind = given["level"], given["shuffle"], given["kind"]
        if level is not None and not 0 <= level <= 9:
            raise ParameterError(f"expected a level of 0 to 9 (-d), got {level}")
        if shuffle and not level:
            raise ParameterError("-s needs -d 1 to 9, because nccopy otherwise ignores it: add -d, or leave -s out")
        if level is not None and any(ALL in item.variables and item.chain for item in chains):
            raise ParameterError(
                "-d and -F '*,…' both give filters for all variables: write all of them in one -F, such as -F '*,2|1,4'"
            )
        for item in chunks:
            if item.unchunked:
                raise ParameterError(_unchunked_text(item))
        if kind is not None and kind.lower() not in _KINDS:
            raise ParameterError(
                f"expected -k nc4 (netCDF-4) or nc7 (netCDF-4 classic model), got {kind!r}: the formats before"
                " netCDF-4 have no chunks and no filters: use nccopy"
            )
        return cls(chains, chunks, level, shuffle, kind, repack)

    def adapt(self, options: RepackOptions, store: Store) -> RepackOptions:
        """Return options of a repack with the filters and chunks that nccopy's rules give the variables of a file."""
        self._check_kind(store)
        variables = Variables(store)
        named = _named_chains(self.filters, variables)
        pipelines = {path: Pipeline(()) if chain is None else pipeline_of(chain) for path, chain in named.items()}
        everywhere = [item.chain for item in self.filters if ALL in item.variables]
        general = pipeline_of(chained) if (chained := [one for chain in everywhere for one in chain or ()]) else None
        rule_pipelines = {}
        if general is not None or self.level is not None or None in everywhere:
            for path, array in store.arrays.items():
                if path not in pipelines and not array.marks.is_bare_dimension:
                    pipeline = _by_level(array, self, removed=None in everywhere) if general is None else general
                    if pipeline.stages or array.storage.pipeline.stages:
                        rule_pipelines[path] = pipeline
        chunks, rule_chunks = _chunks(store, variables, self.chunks)
        # Without requests for no filters on variables that have none.
        needed = {
            path: asked
            for path, asked in pipelines.items()
            if asked.stages or store.arrays[path].storage.pipeline.stages
        }
        recipe = replace(options.recipe, filters=needed, chunks=chunks)
        return replace(options, recipe=recipe, rule_pipelines=rule_pipelines, rule_chunks=rule_chunks)

    def _check_kind(self, store: Store) -> None:
        # A file in a format before netCDF-4 becomes a netCDF-4 file.
        becomes = store.model.kind if store.model.kind in _KINDS.values() else "netCDF-4"
        wanted = becomes if self.kind is None else _KINDS[self.kind.lower()]
        if wanted != becomes:
            raise ParameterError(
                f"{store.path}: copy keeps the kind of the file, {becomes!r}, but -k asks for {wanted!r}: leave "
                "-k out, or change the kind with nccopy first"
            ).at(path=store.path)


def _listed(texts: str | Sequence[str]) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts


@takes_options(TABLE, CopyKeywords)
def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    filters: str | Sequence[str] = (),
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[CopyKeywords],
) -> RepackResult:
    """Copy a file with the options of nccopy, and prove the result, like the command ``tamis copy``.

    Parameters
    ----------
    source
        Path of an HDF5, netCDF-4 or netCDF classic file.
    target
        Path of the new netCDF-4 file.
    filters
        Arguments of ``-F``: names and filters in netCDF's notation, such as ``"TS,32013,3,0,0.1d"``.
    chunks
        Arguments of ``-c``: dimensions and chunk lengths, such as ``"time/10,lat/96,lon/"``.
    level
        Level of deflate, 0 to 9, as with ``-d``.
    shuffle
        Shuffle before deflate, as with ``-s``.
    kind
        The kind that the target must have as in nccopy's ``-k``, which only checks it.
    overwrite
        Replace an existing target.
    progress
        Called with a step, the finished work and the total work.
    threads, missing, follow, self_contained, min_size, larger, checksum, history, resume, drop
        See `tamis.repack`.

    Returns
    -------
    RepackResult
        What was done to each dataset, with its largest error.

    Raises
    ------
    ParameterError
        If an argument is wrong, or names no variable.
    FileError
        If the source cannot be read or the target cannot be written.
    BoundError
        If a value breaks its bound; no target is written then.

    Examples
    --------
    ::

        tamis.copy("in.nc", "out.nc", "TS,32013,3,0,0.1d", level=4, shuffle=True)
    """
    CALLBACK.check_optional("progress", progress)
    refuse_unknown("copy", options, DEFAULTS)
    asked = CopyOptions.asked(filters, overwrite=overwrite, **options)
    return run_copy(source, target, asked, progress=progress)


def run_copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    options: CopyOptions,
    *,
    progress: Progress | None = None,
) -> RepackResult:
    """Copy a file with the options of nccopy."""
    _check_paths(source, target)
    return run_repack(source, target, options.repack, progress, options.adapt)


def preview_copy(source: str | os.PathLike[str], target: str | os.PathLike[str], options: CopyOptions) -> RepackPreview:
    """Return what `run_copy` would do to each dataset, and write nothing."""
    _check_paths(source, target)
    return run_preview(source, target, options.repack, options.adapt)


def _check_paths(source: Any, target: Any) -> None:
    PATH.check("source", source)
    PATH.check("target", target)
