"""The engine ``"tamis"`` of xarray: netCDF-4 and HDF5 files, read in parallel and without plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from xarray import Dataset, DataTree
from xarray.backends import BackendEntrypoint

import tamis_xarray.accessor  # noqa: F401 - registers Dataset.tamis with whatever looks for engines

if TYPE_CHECKING:
    from tamis.xarray.backend import FileOfDatasets


class TamisEngine(BackendEntrypoint):
    """The engine ``"tamis"``.

    Beside the parameters of xarray's other engines:

    group
        Path of a group; its dimensions may be those of groups around it.
    phony_dims
        Names of dimensions without a name: ``"sort"`` as netCDF-C numbers them, or ``"access"`` from 0 on.
    threads
        Number of threads that decode a selection; by default as many as the process may use.
    restore
        Restore missing values in masks (``tamis repack --missing mask``), which are then no variables.
    auto_complex
        Read floats whose last dimension is ``complex``, ``ri`` or ``_pfnc_complex``, of size 2, as complex numbers, as
        netCDF4 does. Complex numbers of a compound type are always read as such.
    storage_options
        Settings and credentials of an address such as ``s3://bucket/a.nc``; see `tamis.Address`.
    allow_outside
        Whether references in JSON here may lead to files outside their folder.
    """

    description = "Open netCDF-4 and HDF5 files, decoded by tamis in parallel and without plugins"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return False: other engines also read such files, and tamis only acts on request."""
        return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        phony_dims: str = "sort",
        threads: int | None = None,
        restore: bool = True,
        auto_complex: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        allow_outside: bool = False,
    ) -> Dataset:
        """Open a file or one of its groups; see `xarray.open_dataset`.

        Raises
        ------
        FileError
            If there is no such file or group, or it is damaged or of another kind.
        ParameterError
            If `phony_dims` or `threads` is neither of the above, or a file in memory is given.
        """
        opened = _open(filename_or_obj, phony_dims, threads, restore, auto_complex, storage_options, allow_outside)
        return opened.dataset(
            "/" if group is None else group,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        phony_dims: str = "sort",
        threads: int | None = None,
        restore: bool = True,
        auto_complex: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        allow_outside: bool = False,
        **decoders: Any,
    ) -> dict[str, Dataset]:
        """Open a group and all groups in it, by path from there; parameters are those of `open_dataset`."""
        opened = _open(filename_or_obj, phony_dims, threads, restore, auto_complex, storage_options, allow_outside)
        return opened.groups("/" if group is None else group, drop_variables=drop_variables, **decoders)

    def open_datatree(self, filename_or_obj: Any, **parameters: Any) -> DataTree:
        """Open a group and all groups in it as a tree; parameters are those of `open_dataset`."""
        groups = self.open_groups_as_dict(filename_or_obj, **parameters)
        try:
            tree = DataTree.from_dict(groups)
        except Exception:
            for dataset in groups.values():
                dataset.close()
            raise
        for path, dataset in groups.items():
            tree[path].set_close(dataset.close)
        return tree


def _open(
    path: Any,
    phony_dims: str,
    threads: int | None,
    restore: bool,
    auto_complex: bool,
    storage_options: Mapping[str, Any] | None,
    allow_outside: bool,
) -> FileOfDatasets:
    """Open a file; tamis is imported only now."""
    from tamis.xarray.backend import FileOfDatasets

    return FileOfDatasets(
        path, phony_dims, threads, restore, auto_complex, storage_options, allow_outside=allow_outside
    )
