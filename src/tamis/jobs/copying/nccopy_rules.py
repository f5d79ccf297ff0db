"""nccopy's options for filters and chunks as a request of `tamis.repack`.

The filters of a variable are, by the first of these that applies:

1. those of all ``-F`` that name it, in their order; a filter that is given twice keeps its first place, with its last
   parameters;
2. those of ``-F '*,…'``;
3. with ``-d``, deflate of that level in place of all others but fletcher32, and shuffle before it with ``-s``; level 0
   removes deflate and shuffle;
4. none after ``-F none``;
5. those that it has.

What is not named follows 2 to 4 as a pattern of `tamis.repack` would: variables that cannot take filters, or should not
take lossy ones, are kept and listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.errors import ParameterError
from tamis.filters import Deflate, Fletcher32, Request, Shuffle, Stage
from tamis.jobs.copying.chunk_argument import ChunkArgument
from tamis.jobs.copying.named_variables import Variable, Variables
from tamis.notation.netcdf_argument import ALL, NccopyArgument
from tamis.notation.netcdf_order import in_netcdf_order
from tamis.pipeline import Pipeline
from tamis.store.array import Store, StoredArray

_RECORDS_NBYTES = 1 << 22
"""Bytes of a chunk of records, where neither the source nor an option says its length, as in netCDF."""


@dataclass(frozen=True, slots=True)
class NccopyOptions:
    """Options of nccopy.

    Parameters
    ----------
    filters, chunks
        Arguments of ``-F`` and of ``-c``, parsed.
    level
        Argument of ``-d``: 0 to 9; None without it.
    shuffle
        Whether ``-s`` is given.
    """

    filters: tuple[NccopyArgument, ...] = ()
    chunks: tuple[ChunkArgument, ...] = ()
    level: int | None = None
    shuffle: bool = False

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, or that nccopy ignores."""
        if self.level is not None and not 0 <= self.level <= 9:
            raise ParameterError(f"expected a level of 0 to 9 (-d), got {self.level}")
        if self.shuffle and not self.level:
            raise ParameterError(
                "expected -d 1 to 9 with -s, which is ignored by nccopy otherwise: add -d, or leave -s out"
            )
        if self.level is not None and any(ALL in item.variables and item.chain for item in self.filters):
            raise ParameterError(
                "expected filters for all variables once, got -d and -F '*,…': write all of them in one -F, such as"
                " -F '*,2|1,4'"
            )
        for item in self.chunks:
            if item.unchunked:
                raise ParameterError(_unchunked_text(item))


def _unchunked_text(item: ChunkArgument) -> str:
    name = item.variable.removeprefix("/")
    layout, argument = ("CONTI", "/") if item.unchunked == "contiguous" else ("COMPA", f"{name}:compact")
    chosen = f"{name}:{layout}" if name else layout
    return (
        f"expected chunk lengths (-c), got {item.unchunked} storage, which tamis does not write: use"
        f" h5repack -l {chosen}, or nccopy -c {argument if not name or item.unchunked == 'compact' else f'{name}:'}"
    )


@dataclass(frozen=True, slots=True)
class Rules:
    """Filters and chunk shapes by path: of variables that are named, and by rules for the others."""

    pipelines: Mapping[str, Pipeline]
    chunks: Mapping[str, tuple[int, ...]]
    rule_pipelines: Mapping[str, Pipeline]
    rule_chunks: Mapping[str, tuple[int, ...]]


def rules_for(store: Store, options: NccopyOptions) -> Rules:
    """Return what options of nccopy mean for a file.

    Raises
    ------
    FileError
        If a name leads to no variable or dimension.
    ParameterError
        If options contradict each other, or a chunk is longer than its dimension.
    """
    variables = Variables(store)
    named = _named_chains(options.filters, variables)
    pipelines = {path: Pipeline(()) if chain is None else pipeline_of(chain) for path, chain in named.items()}
    everywhere = [item.chain for item in options.filters if ALL in item.variables]
    general = pipeline_of(chained) if (chained := [one for chain in everywhere for one in chain or ()]) else None
    rule_pipelines = {}
    if general is not None or options.level is not None or None in everywhere:
        for path, array in store.arrays.items():
            if path not in pipelines and not array.is_bare_dimension:
                pipeline = _by_level(array, options, removed=None in everywhere) if general is None else general
                if pipeline.stages or array.pipeline.stages:
                    rule_pipelines[path] = pipeline
    chunks, rule_chunks = _chunks(store, variables, options.chunks)
    return Rules(_needed(store, pipelines), chunks, rule_pipelines, rule_chunks)


def _needed(store: Store, pipelines: Mapping[str, Pipeline]) -> dict[str, Pipeline]:
    """Leave out requests of no filters for variables that have none."""
    return {path: wanted for path, wanted in pipelines.items() if wanted.stages or store.arrays[path].pipeline.stages}


def pipeline_of(requests: Sequence[Request]) -> Pipeline:
    """Return filters in the order in which netCDF runs them, or as given where one of them has to be first.

    Raises
    ------
    ParameterError
        If the filters cannot be used in this order.
    """
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
                raise ParameterError(f"expected filters or none for {name!r}, got both: leave one -F out").at(
                    dataset=path
                )
            chains[path] = None if argument.chain is None else [*(before or ()), *argument.chain]
    return chains


def _by_level(array: StoredArray, options: NccopyOptions, *, removed: bool) -> Pipeline:
    """Return the filters of a variable that no ``-F`` gives filters: by ``-d``, none, or its own."""
    own = Pipeline(()) if removed else Pipeline(replace(stage, stored=None) for stage in array.pipeline.stages)
    if options.level is None:
        return own
    if options.level == 0:
        return Pipeline(stage for stage in own.stages if not isinstance(stage.filter, (Deflate, Shuffle)))
    stages = [stage for stage in own.stages if isinstance(stage.filter, Fletcher32)]
    last = bool(stages) and stages[0] != own.stages[0]
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
            path = variables.dimension_path(name, "-c")
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
            if (shape := _shape(array, variable, variables, lengths)) != array.chunk_shape:
                by_rule[variable.path] = shape
    return named, by_rule


def _shape(
    array: StoredArray, variable: Variable, variables: Variables, lengths: Mapping[str, int | None]
) -> tuple[int, ...]:
    """Return the chunk shape of a variable: of named dimensions, else its own, else the whole dimension."""
    dimensions = [variables.dimensions[path] for path in variable.dimensions]
    shape = []
    for axis, path in enumerate(variable.dimensions):
        length = lengths.get(path)
        if path not in lengths and array.chunk_shape:
            length = array.chunk_shape[axis]
        shape.append(length or max(dimensions[axis].size, 1))
    free = [
        axis
        for axis, path in enumerate(variable.dimensions)
        if path not in lengths and not array.chunk_shape and dimensions[axis].is_unlimited
    ]
    for axis in free:
        record = array.chunk.dtype.itemsize
        for other, length in enumerate(shape):
            record *= length if other != axis else 1
        shape[axis] = max(1, min(shape[axis], _RECORDS_NBYTES // record))
    return tuple(shape)
