"""Filters for xarray's ``to_netcdf``: those that are asked for, and those that the opened file had."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis import cf
from tamis.cf import FILL_ATTRIBUTES
from tamis.chunks.grid import default_chunks
from tamis.errors import DataError, FileError, MissingFilterError, ParameterError, TamisError
from tamis.filters import ChunkType, Filter, Stage, UnknownFilter
from tamis.filters.base import is_enum
from tamis.formatting import printable, shape_text
from tamis.hdf5.chunk_access import pipeline_of
from tamis.hdf5.lib.plugin import writes
from tamis.hdf5.lib.source_file import is_hdf5, open_source
from tamis.jobs.dataset_meaning import attributes_of, refuse_limits, roles_in_dataset
from tamis.jobs.json_rule import SCHEMA, json_value
from tamis.jobs.recipe import Match, Recipes, assigned, chunk_shape, matching
from tamis.jobs.result import Result
from tamis.jobs.stored_units import in_stored_units
from tamis.notation.xarray_encoding import ENGINES, encoding_keywords
from tamis.pipeline import Pipeline, as_pipeline
from tamis.rewrite.encode import absorbs_rounding
from tamis.zfp import Accuracy

if TYPE_CHECKING:
    from tamis.jobs.parts import Part

# What xarray itself takes out of an encoding, whatever writes the file: how values are stored, and attributes. It has
# written down the coordinates of variables before it looks at what it is given.
_KEPT = (
    *("dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "_Encoding", "char_dim_name"),
    *("units", "calendar", "grid_mapping", "bounds", "climatology", "geometry", "formula_terms", "cell_measures"),
    *("node_coordinates", "node_count", "part_node_count", "interior_ring"),
)


_PACKING = ("scale_factor", "add_offset")


class Encoding(Result, dict[str, dict[str, Any]]):
    """What ``to_netcdf(..., encoding=…)`` takes, by variable; prints as a table.

    Attributes
    ----------
    engine
        What will write.
    pipelines
        Filters by variable, with accuracies in units of the variable where they were asked for.
    """

    def __init__(self, encodings: Mapping[str, dict[str, Any]], engine: str, pipelines: Mapping[str, Pipeline]) -> None:
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
        from tamis.jobs.parts import Table

        rows = [("variable", "filters", "chunks", "type")]
        for name, own in self.items():
            filters = "\n".join(map(str, self.pipelines[name].stages))
            chunks, dtype = own.get("chunksizes"), own.get("dtype")
            rows.append(
                (printable(name), filters, shape_text(chunks) if chunks else "", "" if dtype is None else str(dtype))
            )
        yield Table(rows, folded=[1], code=[1])
        yield "", f"for the engine {self.engine}"


def encoding(
    ds: Any,
    recipes: Recipes | None = None,
    *,
    engine: str = "h5netcdf",
    chunks: Mapping[str, tuple[int, ...]] | None = None,
    group: str = "",
) -> Encoding:
    """Give what ``ds.to_netcdf(..., encoding=...)`` needs to store variables through filters, or to keep theirs.

    ``ds.to_netcdf("a.nc", engine="h5netcdf", encoding=tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"}))``

    Variables without a recipe keep the filters and chunks that they have in the file that they were read from, which is
    opened for that; ``"none"`` takes filters away. How values are encoded besides (``dtype``, ``_FillValue``,
    ``units``, …) stays as it is.

    Parameters
    ----------
    ds
        An xarray ``Dataset``.
    recipes
        Filters by name of the variable or pattern, as for `repack`: a `Pipeline`, a filter, or its text. A pattern
        passes over variables that cannot take its filters, such as text and scalars, and if it is lossy over
        coordinates, bounds, flags, integers and the like, with a ``UserWarning`` that says why. An accuracy is in units
        of the variable, also where it is packed by ``scale_factor``.
    engine
        What will write: ``"h5netcdf"``, which takes one compression of any kind with shuffle and fletcher32, or
        ``"netcdf4"``, which has deflate, zstd, bzip2, szip and blosc only.
    chunks
        Chunk shapes, slowest axis first, by name or pattern; by default those of the file that the variable is from, or
        of at most 1 MiB, in whole blocks of 4 for zfp.
    group
        The group of its file that the dataset was opened from.

    Returns
    -------
    Encoding
        A dict by variable; those that have no filters and no recipe are not in it.

    Raises
    ------
    ParameterError
        If a variable cannot take its filters or chunks, or the engine cannot write them; says what can.
    FileError
        If a name matches nothing, or the file that a variable is from is no longer there.
    DataError
        If lossy filters would get missing values as numbers, which would ruin the values beside them, or values so
        near to ``valid_min`` or ``valid_max`` that they may become invalid.
    """
    if engine not in ENGINES:
        raise ParameterError(f"expected an engine that writes filters, {' or '.join(ENGINES)}, got {engine!r}")
    if isinstance(recipes, Filter) or not isinstance(recipes or {}, Mapping):
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

    def meant(name: str) -> Match:
        return matching(name, {path: path for path in paths})

    wanted = {name: as_pipeline(value) for name, value in (recipes or {}).items()}
    shapes: dict[str, tuple[int, ...]] = {}
    named: set[str] = set()
    for shape in assigned({name: chunk_shape(value) for name, value in (chunks or {}).items()}, meant):
        shapes.setdefault(shape.path[1:], shape.value)
        named |= {shape.path[1:]} if shape.exact else set()
    made: dict[str, dict[str, Any]] = {}
    pipelines: dict[str, Pipeline] = {}

    def encode(name: str, pipeline: Pipeline, *, in_units: bool = False) -> None:
        made[name] = _encoded(ds, name, pipeline, shapes.get(name), engine, in_units=in_units)
        pipelines[name] = pipeline

    passed: dict[str, ParameterError] = {}
    roles = cache(partial(roles_in_dataset, ds))
    for each in assigned(wanted, meant):
        if (variable := each.path[1:]) in made:
            continue
        try:
            if not each.exact and each.value.error_bound != 0:
                _refuse_role(ds.variables[variable], variable, roles()[variable])
            encode(variable, each.value, in_units=True)
            passed.pop(variable, None)
        except ParameterError as error:
            if each.exact:
                raise
            passed[variable] = error
    for variable, pipeline in _stored(ds, [name for name in ds.variables if name not in made], group):
        if pipeline.stages or variable in shapes:
            encode(variable, pipeline)
    # From no file, without a recipe; a pattern of chunks is for what gets filters, unless nothing does, as in repack.
    for variable in shapes.keys() - made.keys() - passed.keys():
        try:
            if variable in named or not wanted:
                encode(variable, Pipeline(()))
        except ParameterError as error:
            if variable in named:
                raise
            passed[variable] = error
    if passed:
        warnings.warn(f"left as they are: {'; '.join(map(str, passed.values()))}", UserWarning, stacklevel=2)
    return Encoding({name: made[name] for name in ds.variables if name in made}, engine, pipelines)


def _refuse_role(variable: Any, name: str, role: cf.Role) -> None:
    """Raise ParameterError for a variable that a lossy pattern passes over."""
    if role.is_exact and variable.ndim and variable.dtype.kind in "iufmM":
        raise ParameterError(f"{name}: {role.reason}; name it to store it lossily")


def _encoded(
    ds: Any, name: str, pipeline: Pipeline, shape: tuple[int, ...] | None, engine: str, *, in_units: bool = False
) -> dict[str, Any]:
    """Return the encoding of one variable, in whose units an accuracy is if asked for; errors name it."""
    variable = ds.variables[name]
    given = variable.encoding
    made = {key: given[key] for key in _KEPT if given.get(key) is not None or (key == "_FillValue" and key in given)}
    if "source" in variable.encoding and "_FillValue" not in variable.attrs:
        made.setdefault("_FillValue", None)  # xarray would add NaN
    if engine == "netcdf4" and "least_significant_digit" in variable.encoding:
        made["least_significant_digit"] = variable.encoding["least_significant_digit"]
    try:
        if pipeline.stages:
            dtype = _stored_type(variable)
            if pipeline.zfp is not None and not dtype.isnative:
                made["dtype"] = dtype = dtype.newbyteorder("=")
            if in_units:
                pipeline = in_stored_units(pipeline, cf.packing_of(attributes_of(variable)), dtype)
            shape = _chunks(ds, variable, shape) or default_chunks(
                variable.shape, dtype.itemsize, zfp=pipeline.zfp is not None
            )
            pipeline.check(ChunkType(dtype, shape))
            _check_known(pipeline, engine)
        else:
            shape = _chunks(ds, variable, shape)
        made |= encoding_keywords(pipeline.stages, engine)
    except TamisError as error:
        error.at(name, dataset=name)
        raise
    if pipeline.error_bound != 0:
        _refuse_missing(ds[name], pipeline)
        _refuse_rounding(ds[name], dtype, pipeline)
        refuse_limits(ds[name], dtype, pipeline)
    return made | ({} if shape is None else {"chunksizes": shape, "contiguous": False})


def _stored_type(variable: Any) -> np.dtype[Any]:
    """Type of the values as xarray will store them."""
    wanted = variable.encoding.get("dtype", variable.dtype)
    if variable.dtype.kind in "OSUT" or wanted is str:
        raise ParameterError("expected numbers, got text or objects, which xarray stores without filters of its own")
    if 0 in variable.shape or not variable.shape:
        raise ParameterError(f"expected an array with values, got shape {variable.shape}, which cannot be filtered")
    dtype = np.dtype(wanted)
    if is_enum(dtype):
        raise ParameterError("expected numbers, got an enumeration, for which these engines drop filters")
    if dtype.kind in "mM":
        return np.dtype("i8")
    return np.dtype("i1") if dtype.kind == "b" else dtype


def _chunks(ds: Any, variable: Any, wanted: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Choose chunks: what is asked for, or those of the file as far as they still fit."""
    if wanted is not None:
        if len(wanted) != variable.ndim:
            raise ParameterError(f"expected chunks with {variable.ndim} axes, got {wanted}")
        return wanted
    before = variable.encoding.get("chunksizes")
    if before is None or len(before) != variable.ndim:
        return None
    growing = ds.encoding.get("unlimited_dims", ())
    ends = zip(variable.dims, before, variable.shape, strict=True)
    return tuple(step if dim in growing else max(min(step, extent), 1) for dim, step, extent in ends)


def _check_known(pipeline: Pipeline, engine: str) -> None:
    for each in pipeline.filters:
        if isinstance(each, UnknownFilter) or (engine == "h5netcdf" and not writes(each.id)):
            raise MissingFilterError(
                f"{each.name} cannot be written by h5py here: import hdf5plugin first if it has it, or name other"
                " filters"
            )


def _refuse_missing(array: Any, pipeline: Pipeline) -> None:
    """Raise DataError where missing values would reach a lossy filter as numbers. It reads the values for that."""
    fills = [array.encoding.get(key) for key in FILL_ATTRIBUTES]
    numbers = [each for fill in fills if fill is not None for each in np.atleast_1d(fill).ravel() if each == each]
    raw = [each for key in FILL_ATTRIBUTES if key in array.attrs for each in np.atleast_1d(array.attrs[key]).ravel()]
    if pipeline.zfp is not None and not numbers and not raw:
        return  # NaN reaches zfp as NaN, and leaves such chunks without it
    missing = int(array.isnull().sum()) + (int(array.isin(raw).sum()) if raw else 0)
    if missing:
        stored = ", ".join(dict.fromkeys(map(str, numbers or raw))) or "NaN"
        raise DataError(
            f"{array.name}: expected no missing values for {pipeline}, found {missing} of {array.size}, stored as"
            f" {stored} beside others, which a lossy filter then changes beyond its bound: save it without that filter"
            f" and let tamis repack add it, which keeps both; or, for zfp, store NaN: ds[{array.name!r}].encoding"
            ".update(_FillValue=numpy.nan, missing_value=None)"
        )


def _refuse_rounding(array: Any, dtype: np.dtype[Any], pipeline: Pipeline) -> None:
    """Raise DataError where the type in which values are stored takes so much of the bound that zfp may break it."""
    bound, accuracy = pipeline.error_bound, pipeline.zfp and pipeline.zfp.mode
    if not bound or not isinstance(accuracy, Accuracy) or any(array.encoding.get(key) for key in _PACKING):
        return
    if array.dtype.kind not in "iuf" or (array.dtype.kind == dtype.kind and np.can_cast(array.dtype, dtype, "safe")):
        return
    if dtype.kind == "f":
        largest = float(abs(array.where(abs(array) < np.inf)).max())
        kept = not largest > 0 or absorbs_rounding(bound, largest, dtype)  # NaN where there is no number
        found = f"values up to {largest:g}"
    else:
        kept, found = accuracy.effective + 0.5 <= bound, "whole numbers, which differ by up to 0.5"
    if not kept:
        raise DataError(
            f"{array.name}: expected {array.dtype} values that {pipeline} keeps as {dtype}, their encoding's dtype, got"
            f" {found}: rounding and zfp together may break the bound; store {array.dtype}"
            f" (ds[{array.name!r}].encoding['dtype']), or give a larger accuracy"
        )


def _stored(ds: Any, names: Iterable[str], group: str) -> Iterator[tuple[str, Pipeline]]:
    """Yield the filters that variables have in the files that they were read from; nothing of those from no file."""
    by_source: dict[str, list[str]] = {}
    for name in names:
        if source := ds.variables[name].encoding.get("source"):
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
                found = [file.get(f"{group or '/'}/{prefix}{name}") for prefix in ("", "_nc4_non_coord_")]
                stored = next((each for each in found if each is not None), None)
                if stored is None or not hasattr(stored, "chunks"):
                    raise FileError(
                        f"{source}: expected {name!r}, which was read from it, found none: give the group that the"
                        " dataset was opened from, or a recipe where the variable was renamed"
                    )
                pipeline = Pipeline(Stage.of(each) for each in pipeline_of(stored).filters)
                if not _left_to_xarray(ds.variables[name], pipeline):
                    yield name, pipeline


def _left_to_xarray(variable: Any, pipeline: Pipeline) -> bool:
    """Tell text with filters that xarray keeps by itself, in a type that has more axes than the variable."""
    return variable.dtype.kind in "OSUT" and {each.id for each in pipeline.filters} <= {1, 2, 3}
