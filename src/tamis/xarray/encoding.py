"""Filters for xarray's ``to_netcdf``: requested ones, and those of the opened file."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xarray.conventions import encode_cf_variable

from tamis import meaning
from tamis.accuracy.requirement import Requirements
from tamis.arguments import MAPPING, TEXT
from tamis.arrays.grid import default_chunks
from tamis.caller import warn_caller
from tamis.errors import DataError, FileError, MissingFilterError, ParameterError, located
from tamis.filters import ChunkType, Filter, Stage, UnknownFilter
from tamis.filters.base import is_enum
from tamis.formats.hdf5.chunk_access import pipeline_of
from tamis.formats.hdf5.lib.files import is_hdf5, open_source
from tamis.formats.hdf5.lib.foreign_filters import encodes
from tamis.formats.hdf5.lib.netcdf_names import stored_path
from tamis.formatting import plural
from tamis.jobs.recipes.names import Chunks, DimensionChunks, Match, Recipes, assigned, assigned_shapes, matching
from tamis.jobs.recipes.saved_recipe import CHUNKS, Recipe, asked_recipe, refuse_drop
from tamis.jobs.repack.stored_units import in_stored_units
from tamis.jobs.result import SCHEMA, Part, Result, json_value
from tamis.meaning import FILL_ATTRIBUTES
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import absorbs_rounding
from tamis.rounding import PACKING_ATTRIBUTES, BitGroom, Granular, Pack, Rounding, still_needed
from tamis.xarray.dask_arrays import is_dates
from tamis.xarray.filter_encoding import (
    ENGINES,
    PIPELINE,
    encoding_chunks,
    encoding_keywords,
    encoding_pipeline,
    packed_encoding,
    table_of,
)
from tamis.xarray.settled import Asked, asked_by, inherited, without_encodings
from tamis.zfp import Accuracy

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement

# The keys of an encoding that xarray itself uses, with any engine: how values are stored, and attributes. Without
# "coordinates", which xarray stores before it looks at the encoding.
_KEPT = (
    *("dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "_Encoding", "char_dim_name"),
    *("units", "calendar", "grid_mapping", "bounds", "climatology", "geometry", "formula_terms", "cell_measures"),
    *("node_coordinates", "node_count", "part_node_count", "interior_ring"),
)


class Encoding(Result, dict[str, dict[str, Any]]):
    """The argument of ``to_netcdf(..., encoding=…)``, by variable; prints as a table.

    Attributes
    ----------
    engine
        The engine that will write.
    pipelines
        Filters by variable; requested accuracies are in units of the variable.
    """

    def __init__(self, encodings: Mapping[str, dict[str, Any]], engine: str, pipelines: Mapping[str, Pipeline]) -> None:
        MAPPING.check("encodings", encodings)
        TEXT.check("engine", engine)
        MAPPING.check("pipelines", pipelines)
        super().__init__(encodings)
        self.engine, self.pipelines = engine, dict(pipelines)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        variables = [
            {"name": name, "pipeline": str(self.pipelines[name]), "encoding": json_value(own)}
            for name, own in self.items()
        ]
        return {"schema": SCHEMA, "engine": self.engine, "variables": variables}

    def _parts(self) -> Iterator[Part]:
        yield table_of(self.pipelines, self)
        yield "", f"for the engine {self.engine}"


def encoding(
    ds: Any,
    recipes: Recipes | Recipe | None = None,
    *,
    engine: str = "h5netcdf",
    chunks: Mapping[str, tuple[int, ...] | Mapping[str, int]] | None = None,
    require: Requirements | None = None,
    group: str = "",
) -> Encoding:
    """Return the encoding for ``ds.to_netcdf(..., encoding=...)`` that stores variables through filters.

    ``ds.to_netcdf("a.nc", engine="h5netcdf", encoding=tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"}))``

    Variables without a recipe keep the filters and chunks of the file that they were read from, which is opened to read
    them; the recipe ``"none"`` removes filters. Other parts of an encoding (``dtype``, ``_FillValue``, ``units``, …) do
    not change.

    Parameters
    ----------
    ds
        An xarray ``Dataset``.
    recipes
        Filters by name of the variable or pattern, as for `repack`: a `Pipeline`, a filter, or its text; or a `Recipe`,
        whose other parts these arguments override. A pattern skips variables that cannot take its filters, such as text
        and scalars, and if it is lossy also coordinates, bounds, flags, integers and the like, with a ``UserWarning``
        that says why. An accuracy is in units of the variable, even if that is packed by ``scale_factor``.
    engine
        The engine that will write: ``"h5netcdf"``, which takes one compression of any kind with shuffle and fletcher32,
        or ``"netcdf4"``, which only has deflate, zstd, bzip2, szip and blosc, and rounds with netCDF's quantization.
        Both pack for ``"pack(bound=0.1)|…"``: all values are packed here first, as xarray does it, which proves the
        bound for these values.
    chunks
        Chunk shapes, slowest axis first, or extents by dimension, by name or pattern; by default those of the
        variable's file, or otherwise at most 1 MiB, in whole blocks of 4 for zfp.
    require
        Requirements by name or pattern, as for `repack`. xarray's engines prove nothing, so only filters whose own
        bound is sufficient are accepted; ``ds.tamis.to_netcdf`` proves the rest.
    group
        The group of its file that the dataset was opened from.

    Returns
    -------
    Encoding
        A dict by variable, without variables that have neither filters nor a recipe.

    Raises
    ------
    ParameterError
        If a variable cannot take its filters or chunks, if the engine cannot write them, or if filters may break a
        requirement; names an alternative.
    FileError
        If a name matches nothing, or the file of a variable no longer exists.
    DataError
        If lossy filters would get missing values as numbers, which would spoil their neighbours, or values so near
        ``valid_min`` or ``valid_max`` that they may become invalid; or if netCDF's rounding would do that.
    """
    TEXT.check("engine", engine)
    CHUNKS.check_optional("chunks", chunks)
    TEXT.check("group", group)
    if engine not in ENGINES:
        raise ParameterError(f"expected an engine that writes filters, {' or '.join(ENGINES)}, got {engine!r}")
    if isinstance(recipes, Filter) or not isinstance(recipes or {}, Mapping | Recipe):
        raise ParameterError(f"expected recipes such as {{'TS': 'zfp(accuracy=0.1)'}}, got {recipes!r}")
    if hasattr(ds, "subtree"):
        raise ParameterError(
            "expected an xarray Dataset, got a DataTree, whose to_netcdf takes an encoding for each group:"
            " {node.path: tamis.encoding(node.to_dataset(inherit=False), recipes[node.path], group=node.path)"
            " for node in tree.subtree}"
        )
    if not hasattr(ds, "variables"):
        raise ParameterError(f"expected an xarray Dataset, got {type(ds).__name__}: a DataArray has to_dataset(name=…)")
    paths = [f"/{name}" for name in ds.variables]

    def standard_names() -> dict[str, str]:
        return {f"/{name}": meaning.text(variable.attrs, "standard_name") for name, variable in ds.variables.items()}

    def match(name: str) -> Match:
        return matching(name, {path: path for path in paths}, standard_names)

    asked = asked_recipe(recipes or {}, chunks=chunks, require=require, missing=None)
    if asked.missing not in (None, "exact"):
        raise ParameterError(
            f"expected missing='exact', got {asked.missing!r}, which xarray's engines do not support: save with "
            f"ds.tamis.to_netcdf"
        )
    refuse_drop(asked)
    requested = asked.filters
    shapes = {path[1:]: shape for path, shape in assigned_shapes(asked.chunks, match, partial(_shape_of, ds)).items()}
    named = {entry.path[1:] for entry in assigned(asked.chunks, match) if entry.exact}
    required: dict[str, Requirement] = {}
    for requirement in assigned(asked.require, match):
        required.setdefault(requirement.path[1:], requirement.value)
    ds, unfit = _with_fitting_encodings(ds, requested, required, match)
    encodings: dict[str, dict[str, Any]] = {}
    pipelines: dict[str, Pipeline] = {}

    def encode(name: str, pipeline: Pipeline, *, in_units: bool = False) -> None:
        if name in required:
            _check_required(name, pipeline, required[name], in_units=in_units)
        encodings[name] = _encoding_of(ds, name, pipeline, shapes.get(name), engine, in_units=in_units)
        pipelines[name] = pipeline

    skipped: dict[str, ParameterError] = {}
    roles = cache(partial(roles_in_dataset, ds))
    for recipe in assigned(requested, match):
        if (variable := recipe.path[1:]) in encodings:
            continue
        try:
            if not recipe.exact and recipe.value.error_bound != 0:
                role, stored = roles()[variable], ds.variables[variable]
                if role.is_exact and stored.ndim and stored.dtype.kind in "iufmM":
                    raise ParameterError(f"{variable}: {role.reason}; name it to store it lossily")
            encode(variable, recipe.value, in_units=True)
            skipped.pop(variable, None)
        except ParameterError as error:
            if recipe.exact:
                raise
            skipped[variable] = error
    for variable, pipeline in _stored(ds, [name for name in ds.variables if name not in encodings], group):
        if pipeline.stages or variable in shapes or variable in unfit:
            encode(variable, pipeline)
    # Variables of no file, without a recipe. A pattern for chunks is for variables that get filters, unless there are
    # no recipes, as in repack.
    left = (shapes.keys() | unfit) - encodings.keys() - (skipped.keys() - unfit)
    for variable in [name for name in ds.variables if name in left]:  # in an order that does not depend on hashes
        try:
            if variable in named or variable in unfit or not requested:
                encode(variable, Pipeline(()))
        except ParameterError as error:
            if variable in named:
                raise
            skipped[variable] = error
    if skipped:
        warn_caller(f"left as they are: {'; '.join(map(str, skipped.values()))}")
    return Encoding({name: encodings[name] for name in ds.variables if name in encodings}, engine, pipelines)


def _with_fitting_encodings(
    ds: Any,
    requested: Mapping[str, Pipeline],
    required: Mapping[str, Requirement],
    match: Callable[[str], Match],
) -> tuple[Any, set[str]]:
    """Return a dataset without encodings that do not keep its values, with a warning, and the names of such variables.

    What no recipe asks for is compared for all values. Numbers in another type, without packing, that zfp bounds are
    tested together with it.
    """
    asked: dict[str, Asked] = {}
    for recipe in assigned(requested, match):
        asked.setdefault(recipe.path[1:], asked_by(recipe.value, required.get(recipe.path[1:])))
        variable = ds.variables[recipe.path[1:]]
        is_packed = any(variable.encoding.get(key) is not None for key in PACKING_ATTRIBUTES)
        if recipe.value.zfp is not None and not is_packed:
            asked[recipe.path[1:]] = Asked(absolute=inf)
    settled = inherited(ds, asked)
    if settled.notes:
        warn_caller("; ".join(settled.notes))
    by_path = {posixpath.join("/", name): encoding for name, encoding in settled.left_out.items()}
    return (without_encodings(ds, "/", by_path) if by_path else ds), set(settled.left_out)


def _shape_of(ds: Any, path: str, chunks: Chunks) -> tuple[int, ...]:
    """Return the chunk shape of a variable."""
    if not isinstance(chunks, DimensionChunks):
        return chunks
    name = path[1:]
    variable = ds.variables[name]
    growing = ds.encoding.get("unlimited_dims", ())
    own = _chunks(ds, variable, None) or tuple(max(extent, 1) for extent in variable.shape)
    most = [None if dim in growing else extent for dim, extent in zip(variable.dims, variable.shape, strict=True)]
    with located(name, dataset=name):
        return chunks.along(variable.dims, own, most)


def _check_required(name: str, pipeline: Pipeline, required: Requirement, *, in_units: bool) -> None:
    """Raise ParameterError if filters alone do not meet the requirements, because xarray's engines prove nothing."""
    bound = pipeline.error_bound
    keeps_abs = in_units and bound is not None and required.abs is not None and bound <= required.abs
    if bound != 0 and not (keeps_abs and required.given.keys() == {"abs"}):
        raise ParameterError(
            f"{name}: expected filters whose own bound keeps {required}, got {pipeline}, and xarray's engines do not "
            f"check it: save with ds.tamis.to_netcdf, which does"
        ).at(dataset=name)


def _encoding_of(
    ds: Any, name: str, pipeline: Pipeline, shape: tuple[int, ...] | None, engine: str, *, in_units: bool = False
) -> dict[str, Any]:
    """Return the encoding of one variable; `in_units` says whether accuracies are in its units."""
    variable = ds.variables[name]
    given = variable.encoding
    result = {key: given[key] for key in _KEPT if given.get(key) is not None or (key == "_FillValue" and key in given)}
    if "source" in variable.encoding and "_FillValue" not in variable.attrs:
        result.setdefault("_FillValue", None)  # xarray would add NaN
    if engine == "netcdf4" and "least_significant_digit" in variable.encoding:
        result["least_significant_digit"] = variable.encoding["least_significant_digit"]
    with located(name, dataset=name):
        if isinstance(pack := pipeline.rounding, Pack):
            result = {key: value for key, value in result.items() if key not in ("missing_value", "_Unsigned")}
            result |= packed_encoding(ds[name], pack)
            variable, pipeline = variable.copy(deep=False), pipeline.without_rounding
            variable.encoding = variable.encoding | result
        rounding = pipeline.rounding and still_needed(pipeline.rounding, attributes_of(variable))
        if pipeline != Pipeline():
            dtype = _stored_type(variable)
            if (pipeline.zfp is not None or pipeline.rounding is not None) and not dtype.isnative:
                result["dtype"] = dtype = dtype.newbyteorder("=")
            if in_units:
                pipeline = in_stored_units(pipeline, meaning.packing_of(attributes_of(variable)), dtype)
            shape = _chunks(ds, variable, shape) or default_chunks(
                variable.shape, dtype.itemsize, zfp=pipeline.zfp is not None
            )
            pipeline.check(ChunkType(dtype, shape))
            _check_known(pipeline, engine)
        else:
            shape = _chunks(ds, variable, shape)
        result |= encoding_keywords(pipeline.stages, engine, rounding)
    if rounding is not None:
        refuse_spoiled(ds[name], dtype, rounding)
    elif pipeline.without_rounding.error_bound != 0:
        _refuse_missing(ds[name], pipeline)
        _refuse_rounding(ds[name], dtype, pipeline)
        refuse_limits(ds[name], dtype, pipeline)
    return result | ({} if shape is None else {"chunksizes": shape, "contiguous": False})


def _stored_type(variable: Any) -> np.dtype[Any]:
    """Return the type in which xarray will store the values."""
    if variable.dtype.kind == "O" and is_dates(variable):  # those of a calendar that NumPy lacks
        dtype: np.dtype[Any] = encode_cf_variable(variable).dtype
        return dtype
    requested = variable.encoding.get("dtype", variable.dtype)
    if variable.dtype.kind in "OSUT" or requested is str:
        raise ParameterError("expected numbers, got text or objects, which xarray stores without filters of its own")
    if 0 in variable.shape or not variable.shape:
        raise ParameterError(f"expected an array with values, got shape {variable.shape}, which cannot be filtered")
    dtype = np.dtype(requested)
    if is_enum(dtype):
        raise ParameterError("expected numbers, got an enumeration, for which these engines drop filters")
    if dtype.kind in "mM":
        return np.dtype("i8")
    return np.dtype("i1") if dtype.kind == "b" else dtype


def _chunks(ds: Any, variable: Any, requested: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the requested chunk shape, or that of the file if it still fits."""
    if requested is not None:
        if len(requested) != variable.ndim:
            raise ParameterError(f"expected chunks with {variable.ndim} axes, got {requested}")
        return requested
    return encoding_chunks(variable, ds.encoding.get("unlimited_dims", ()))


def _check_known(pipeline: Pipeline, engine: str) -> None:
    for item in pipeline.filters:
        if isinstance(item, UnknownFilter) or (engine == "h5netcdf" and not encodes(item.hdf5_id)):
            raise MissingFilterError(
                f"{item.name} cannot be written by h5py here: import hdf5plugin first if it has it, or name other"
                " filters"
            )


def _refuse_missing(array: Any, pipeline: Pipeline) -> None:
    """Raise DataError if missing values would reach a lossy filter as numbers. All values are read."""
    fills = [array.encoding.get(key) for key in FILL_ATTRIBUTES]
    numbers = [value for fill in fills if fill is not None for value in np.atleast_1d(fill).ravel() if value == value]
    raw = [value for key in FILL_ATTRIBUTES if key in array.attrs for value in np.atleast_1d(array.attrs[key]).ravel()]
    if pipeline.zfp is not None and not numbers and not raw:
        return  # NaN reaches zfp as NaN, and such chunks are stored without zfp
    missing = int(array.isnull().sum()) + (int(array.isin(raw).sum()) if raw else 0)
    if missing:
        stored = ", ".join(dict.fromkeys(map(str, numbers or raw))) or "NaN"
        raise DataError(
            f"{array.name}: missing values ({missing} of {array.size}) are stored as {stored} beside others, so that "
            f"{pipeline} would break its bound: save it without that filter and let tamis repack add it, which "
            "keeps both; or, for zfp, store NaN: "
            f"ds[{array.name!r}].encoding.update(_FillValue=numpy.nan, missing_value=None)"
        )


def _refuse_rounding(array: Any, dtype: np.dtype[Any], pipeline: Pipeline) -> None:
    """Raise DataError if rounding to the stored type uses so much of the bound that zfp may break it."""
    bound, accuracy = pipeline.error_bound, pipeline.zfp and pipeline.zfp.mode
    if not bound or not isinstance(accuracy, Accuracy) or any(array.encoding.get(key) for key in PACKING_ATTRIBUTES):
        return
    if array.dtype.kind not in "iuf" or (array.dtype.kind == dtype.kind and np.can_cast(array.dtype, dtype, "safe")):
        return
    if dtype.kind == "f":
        largest = float(abs(array.where(abs(array) < np.inf)).max())
        kept = not largest > 0 or absorbs_rounding(bound, largest, dtype)  # NaN if there is no number
        content = f"values up to {largest:g}"
    else:
        kept, content = accuracy.effective + 0.5 <= bound, "whole numbers, which differ by up to 0.5"
    if not kept:
        raise DataError(
            f"{array.name}: expected {array.dtype} values that {pipeline} keeps as {dtype}, their encoding's dtype, got"
            f" {content}: rounding and zfp together may break the bound; store {array.dtype}"
            f" (ds[{array.name!r}].encoding['dtype']), or give a larger accuracy"
        )


def _stored(ds: Any, names: Iterable[str], group: str) -> Iterator[tuple[str, Pipeline]]:
    """Yield the filters of variables by the engine tamis, or in their files; skip variables without a file."""
    by_source: dict[str, list[str]] = {}
    for name in names:
        if PIPELINE in (encoding := ds.variables[name].encoding):
            yield name, encoding_pipeline(name, encoding)
        elif source := encoding.get("source"):
            by_source.setdefault(os.fspath(source), []).append(name)
    for source, own in by_source.items():
        if Path(source).exists() and not is_hdf5(source):
            continue  # a classic netCDF file, or a Zarr store: no filters of HDF5
        try:
            file = open_source(source)
        except FileError as error:
            raise FileError(f"{error}: give recipes for what was read from it, {', '.join(own)}") from error
        with file:
            for name in own:
                stored = file.get(stored_path(file, f"{group or '/'}/{name}"))
                if stored is None or not hasattr(stored, "chunks"):
                    raise FileError(
                        f"{source}: has no {name!r}, which was read from it: give the group that the dataset was "
                        "opened from, or a recipe where the variable was renamed"
                    )
                pipeline = Pipeline(Stage.of(item) for item in pipeline_of(stored).filters)
                if not _left_to_xarray(ds.variables[name], pipeline):
                    yield name, pipeline


def _left_to_xarray(variable: Any, pipeline: Pipeline) -> bool:
    """Return whether xarray itself keeps the filters: those of text, whose stored type may have more axes."""
    return variable.dtype.kind in "OSUT" and {item.id for item in pipeline.filters} <= {1, 2, 3}


def attributes_of(variable: Any) -> dict[str, Any]:
    """Return the attributes known to `tamis.cf` that a variable will have in a file."""
    both = {**variable.encoding, **variable.attrs}
    return {name: value for name, value in both.items() if meaning.is_known(str(name)) and value is not None}


def roles_in_dataset(ds: Any) -> dict[str, meaning.Role]:
    """Return the role of each variable by name; coordinates of the dataset count as coordinates."""
    variables = [
        meaning.Variable(
            f"/{name}",
            tuple(variable.shape),
            _number_type(variable),
            tuple(f"/{dim}" for dim in variable.dims),
            attributes_of(variable),
            name in variable.dims,
        )
        for name, variable in ds.variables.items()
    ]
    by_path = meaning.roles_of(variables)
    roles = {str(name): by_path[f"/{name}"] for name in ds.variables}
    for name in map(str, ds.coords):
        if not roles[name].is_exact:
            roles[name] = meaning.Role("auxiliary coordinate", "coordinate of the dataset")
    return roles


def refuse_limits(array: Any, dtype: np.dtype[Any], pipeline: Pipeline) -> None:
    """Raise DataError if a lossy filter could move values across a limit of the valid range. All values are read."""
    attributes = attributes_of(array.variable)
    low, high = meaning.valid_range(attributes, dtype.newbyteorder("="))
    packing = meaning.packing_of(attributes) if any(name in array.encoding for name in PACKING_ATTRIBUTES) else None
    reach = np.inf if pipeline.error_bound is None else pipeline.error_bound
    for name, limit in (("smallest", low), ("largest", high)):
        if limit is None:
            continue
        near, shown = (
            (reach, float(limit)) if packing is None else (reach * abs(packing.scale), packing.unpacked(limit))
        )
        count = int((abs(array - shown) <= near).sum())
        if count:
            raise DataError(
                f"{array.name}: {plural(count, 'value')} within {near:g} of {shown:g}, the {name} valid one, could "
                f"become invalid with {pipeline}: save it without that filter and let tamis repack add it, which "
                "keeps them valid"
            )


def refuse_spoiled(array: Any, dtype: np.dtype[Any], rounding: Rounding) -> None:
    """Raise DataError if netCDF, which only protects ``_FillValue``, would spoil values. All values are read."""
    attributes, dtype = attributes_of(array.variable), dtype.newbyteorder("=")
    packing = meaning.packing_of(attributes) if any(name in array.encoding for name in PACKING_ATTRIBUTES) else None
    values = array.values if packing is None else (array.values - packing.offset) / packing.scale
    stored = np.asarray(values).astype(dtype)
    marks = meaning.missing_values(attributes, dtype)
    count = rounding.rounded(stored, marks, meaning.valid_range(attributes, dtype), None, stored.shape).unrounded
    protected = meaning.missing_values(
        {name: value for name, value in attributes.items() if name == "_FillValue"}, dtype
    )
    exposed = [mark for mark in (*marks, dtype.type(np.inf), dtype.type(-np.inf)) if mark not in protected]
    for mark in exposed:
        if not np.array_equal(_alone(rounding, mark), [mark, mark]):
            count += int((stored == mark).sum())
    if count:
        raise DataError(
            f"{array.name}: {plural(count, 'value')} would become missing, or cross a limit of the valid range, if "
            f"netCDF rounded by {rounding}: save it without rounding and let tamis repack round it, which "
            "leaves those values as they are"
        )


def _alone(rounding: Rounding, value: Any) -> NDArray[Any]:
    """Return netCDF's rounding of an unprotected value, at even and odd indices."""
    if np.isinf(value):  # granular turns it into 0, and bitgroom into NaN at an odd index
        return np.array(
            [0 if isinstance(rounding, Granular) else value, np.nan if isinstance(rounding, BitGroom) else value]
        )
    return rounding.round(np.array([value, value]))


def _number_type(variable: Any) -> np.dtype[Any] | None:
    """Return the type in which numbers and times will be stored; None for other values."""
    if variable.dtype.kind in "mM":
        return np.dtype(np.int64)
    try:
        dtype: np.dtype[Any] = np.dtype(variable.encoding.get("dtype", variable.dtype))
    except TypeError:
        return None
    return dtype if dtype.kind in "iuf" and variable.dtype.kind in "iufb" else None
