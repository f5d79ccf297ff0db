"""The accessor ``tamis`` of xarray's datasets and trees: filters of variables, and files with any filters."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from xarray import Dataset, DataTree, register_dataset_accessor, register_datatree_accessor

if TYPE_CHECKING:  # imported when they are used, because xarray imports this module with every first file
    from tamis.accuracy.requirement import Requirements
    from tamis.jobs.plan.result import Plan
    from tamis.jobs.recipes.names import Recipes
    from tamis.jobs.recipes.policies import MissingPolicy
    from tamis.jobs.recipes.saved_recipe import Recipe
    from tamis.jobs.repack.result import RepackResult
    from tamis.jobs.report.result import Report
    from tamis.xarray.filter_encoding import Filters
    from tamis.xarray.saving import Encodings, SaveMode


_OF_SAVING = ("encoding", "group", "mode", "append_dim", "unlimited_dims", "overwrite", "progress")
"""Keywords of `to_zarr` that are none of repack's."""

P = ParamSpec("P")
R = TypeVar("R")


def _names_near_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Return a method whose error about an unknown keyword says which one is near, and which there are."""
    code = function.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if any(name not in known for name in kwargs):
            from tamis.jobs.repack.options import refuse_unknown

            refuse_unknown(function.__name__, kwargs, known)
        return function(*args, **kwargs)

    return call


@register_dataset_accessor("tamis")  # type: ignore[no-untyped-call, untyped-decorator, unused-ignore]
class DatasetAccessor:
    """``Dataset.tamis``.

    Parameters
    ----------
    dataset
        The dataset.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        return str(self.filters)

    def _repr_html_(self) -> str:
        return self.filters._repr_html_()

    @property
    def filters(self) -> Filters:
        """Filters of each variable from its encoding, as in the file that engine tamis opened."""
        from tamis.xarray.filter_encoding import Filters

        return Filters(self._dataset)

    @_names_near_keywords
    def to_netcdf(
        self,
        path: str | os.PathLike[str],
        recipes: Recipes | Recipe | None = None,
        *,
        chunks: Mapping[str, tuple[int, ...] | Mapping[str, int]] | None = None,
        encoding: Encodings | None = None,
        group: str = "",
        mode: SaveMode | None = None,
        append_dim: str | None = None,
        unlimited_dims: Collection[str] | None = None,
        require: Requirements | None = None,
        missing: MissingPolicy | None = None,
        checksum: bool = True,
        larger: bool = False,
        history: bool = False,
        overwrite: bool = False,
        threads: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> RepackResult:
        """Save the dataset as a netCDF-4 file with any filters, proven value by value.

        Values are encoded like in xarray's ``to_netcdf``, and then stored like in `tamis.repack`: every chunk is
        decoded again and compared before the file gets its name. Dask arrays are computed block by block, each once if
        its blocks are not larger than 64 MiB or align with the chunks of the file.

        Parameters
        ----------
        path
            Path of the new file.
        recipes
            Filters by name of the variable or pattern, or a `tamis.Recipe`, as for `tamis.repack`. A variable without
            a recipe keeps the filters of its encoding: of the file that it was opened from, or ``zlib`` and the like;
            ``"none"`` removes them.
        chunks
            Chunk shapes by name or pattern: extents, slowest axis first, or by dimension, ``{"time": 10}``; by default
            ``chunksizes`` of the encoding.
        encoding
            Encodings by variable that replace their own: ``dtype``, ``_FillValue``, ``scale_factor``, ``units``, ….
        group
            Path of the group in the file.
        mode
            ``"w"``, the default, writes a new file; ``"a"`` adds variables and groups to an existing one, and new
            values in place of those of its variables, or writes a new file if there is none. The file is changed as a
            whole or not at all, and what is not in the dataset stays as it is stored.
        append_dim
            Name of a dimension, such as ``time``: variables that have it get the steps of the dataset after those of
            the file, as the file stores them; all others must be equal. This implies ``mode="a"``.
        unlimited_dims
            Names of unlimited dimensions; by default those of the file that the dataset was opened from.
        require, missing, checksum, larger, overwrite, threads, progress
            See `tamis.repack`.

        history
            Whether the file gets a line in its ``history`` that says what was done, like in `tamis.repack`; by default
            its attributes are those of the dataset.

        Returns
        -------
        RepackResult
            Sizes, largest errors and times.

        Raises
        ------
        ParameterError
            If a variable cannot take its filters or chunks, or xarray cannot encode it.
        FileError
            If the file exists or cannot be written, or a name matches nothing.
        DataError
            If there are missing values and `missing` is ``"refuse"``.
        BoundError
            If decoded values differ by more than allowed, or a required measure is missed; no file is written.
        """
        from tamis.xarray.saving import group_path

        return _save(
            {group_path(group): self._dataset},
            path,
            recipes,
            encoding,
            unlimited_dims,
            progress,
            chunks=chunks,
            require=require,
            missing=missing,
            checksum=checksum,
            larger=larger,
            history=history,
            overwrite=overwrite,
            threads=threads,
            mode=mode,
            append_dim=append_dim,
        )

    def to_zarr(
        self,
        path: str | os.PathLike[str],
        recipes: Recipes | Recipe | None = None,
        *,
        encoding: Encodings | None = None,
        group: str = "",
        mode: SaveMode | None = None,
        append_dim: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        **options: Any,
    ) -> RepackResult:
        """Save the dataset as a Zarr hierarchy with any filters, proven value by value; see `to_netcdf`.

        Parameters
        ----------
        path
            Path of the folder, which ends with ``.zarr``.
        recipes, encoding, group, mode, append_dim, progress
            See `to_netcdf`.

        options
            ``zarr_format``, ``shards`` and ``consolidated`` of `tamis.repack`, and the other parameters of `to_netcdf`.

        Returns
        -------
        RepackResult
            Sizes, largest errors and times.

        Raises
        ------
        ParameterError
            If the path has another ending, or for a reason of `to_netcdf`.
        """
        from tamis.jobs.repack.option_table import DEFAULTS
        from tamis.jobs.repack.options import refuse_unknown
        from tamis.xarray.saving import check_zarr, group_path

        refuse_unknown("to_zarr", options, [*DEFAULTS, *_OF_SAVING])
        check_zarr(path)
        unlimited = options.pop("unlimited_dims", None)
        datasets = {group_path(group): self._dataset}
        given = {"history": False, "mode": mode, "append_dim": append_dim} | options
        return _save(datasets, path, recipes, encoding, unlimited, progress, **given)

    def plan(self, require: Mapping[str, object] | None = None, **options: Any) -> Plan:
        """Plan the filters with which `to_netcdf` saves the dataset, on a sample of its values.

        Variables have the types, packing, filters and chunks of their encoding. What went through lossy filters in the
        file that it was opened from is not planned again. Of dask arrays, the blocks of the sample are computed.

        Parameters
        ----------
        require
            What to preserve, by name or pattern, such as ``{"TS": "abs=0.1"}``; see `tamis.plan`. By default all stays
            lossless, and variables with noise get a list of bounds to choose from.
        **options
            Keywords of `tamis.plan`, such as ``readers="any"``, except ``confirm``.

        Returns
        -------
        Plan
            The candidates of each variable, and the recipe: ``ds.tamis.to_netcdf("small.nc", plan.recipe)``.

        Raises
        ------
        ParameterError
            If an argument is invalid, or xarray cannot encode a variable.
        FileError
            If a name matches no variable.
        """
        from tamis.xarray.planning import plan_dataset

        return plan_dataset(self._dataset, require, options)

    def report(self, other: Dataset | str | os.PathLike[str], **options: Any) -> Report:
        """Report what differs in another dataset: a page that a notebook shows, with statistics of each variable.

        The values of datasets go to temporary files first, as they are in memory; a file is read where it is, so that
        the report also has its filters and stored bytes.

        Parameters
        ----------
        other
            The dataset after compression, or the path of its file.
        **options
            Arguments of `tamis.report`, such as ``bounds={"TS": 0.1}``.

        Returns
        -------
        Report
            The statistics; `Report.save` writes the page.

        Raises
        ------
        ParameterError
            If an argument is invalid, or xarray cannot encode a variable.
        FileError
            If the file cannot be read.
        """
        from tamis.xarray.reporting import report_datasets

        return report_datasets(self._dataset, other, options)


def _save(
    datasets: Mapping[str, Dataset],
    path: str | os.PathLike[str],
    recipes: Recipes | Recipe | None,
    encoding: Encodings | None,
    unlimited_dims: Collection[str] | None,
    progress: Callable[[str, int, int], None] | None,
    *,
    mode: SaveMode | None,
    append_dim: str | None,
    **options: Any,
) -> RepackResult:
    """Save datasets by the path of their group."""
    from tamis.jobs.repack.options import RepackOptions
    from tamis.xarray.saving import save

    asked = RepackOptions.asked({} if recipes is None else recipes, command="to_netcdf", **options)
    arguments = (datasets, path, {} if encoding is None else encoding, unlimited_dims, asked, progress)
    if mode in (None, "w") and append_dim is None:
        return save(*arguments)
    from tamis.xarray.appending import append_or_save

    return append_or_save(*arguments, mode=mode, append_dim=append_dim)


@register_datatree_accessor("tamis")  # type: ignore[no-untyped-call, untyped-decorator, unused-ignore]
class DataTreeAccessor:
    """``DataTree.tamis``.

    Parameters
    ----------
    tree
        The tree.
    """

    def __init__(self, tree: DataTree) -> None:
        self._tree = tree

    @_names_near_keywords
    def to_netcdf(
        self,
        path: str | os.PathLike[str],
        recipes: Recipes | Recipe | None = None,
        *,
        chunks: Mapping[str, tuple[int, ...] | Mapping[str, int]] | None = None,
        encoding: Encodings | None = None,
        mode: SaveMode | None = None,
        append_dim: str | None = None,
        unlimited_dims: Collection[str] | None = None,
        require: Requirements | None = None,
        missing: MissingPolicy | None = None,
        checksum: bool = True,
        larger: bool = False,
        history: bool = False,
        overwrite: bool = False,
        threads: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> RepackResult:
        """Save the tree as a netCDF-4 file with groups; names of variables are paths such as ``/group/TS``.

        Parameters and errors are those of ``Dataset.tamis.to_netcdf``.
        """
        nodes = {posixpath.normpath(f"/{node.relative_to(self._tree)}"): node for node in self._tree.subtree}
        return _save(
            {place: node.to_dataset(inherit=False) for place, node in nodes.items()},
            path,
            recipes,
            encoding,
            unlimited_dims,
            progress,
            chunks=chunks,
            require=require,
            missing=missing,
            checksum=checksum,
            larger=larger,
            history=history,
            overwrite=overwrite,
            threads=threads,
            mode=mode,
            append_dim=append_dim,
        )
