"""Copy a netCDF-4 file with the options of nccopy, and with the engine and proof of `tamis.repack`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from tamis.errors import ParameterError
from tamis.jobs.copy.nccopy_rules import NccopyOptions, parse_chunk_argument, rules_for
from tamis.jobs.recipes.names import least_nbytes
from tamis.jobs.recipes.saved_recipe import Recipe, check_policy
from tamis.jobs.repack.job import run_preview, run_repack
from tamis.jobs.repack.options import RepackOptions
from tamis.kinds import CALLBACK, FLAG, NAMES, PATH, TEXT, WHOLE, checked
from tamis.notation.netcdf_argument import parse_argument

if TYPE_CHECKING:
    from tamis.jobs.progress import Progress
    from tamis.jobs.recipes.saved_recipe import MissingPolicy
    from tamis.jobs.repack.result import RepackPreview, RepackResult
    from tamis.stores.protocols import Store

_CLASSIC_MODEL = "netCDF-4 classic model"
_KINDS = {
    **dict.fromkeys(("nc4", "netcdf-4", "netcdf4", "enhanced", "3"), "netCDF-4"),
    **dict.fromkeys(("nc7", "netcdf-4 classic model", "netcdf4-classic", "netcdf4_classic", "4"), _CLASSIC_MODEL),
}

_OPTION_KINDS = {
    **dict.fromkeys(("shuffle", "follow", "larger", "checksum", "history"), FLAG),
    **{"level": WHOLE.or_none(), "kind": TEXT.or_none(), "drop": NAMES},
}


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The options of `run_copy`."""

    # Arguments of ``-F``, ``-c`` and ``-d``, and whether ``-s`` is given: see `tamis.jobs.copy.nccopy_rules`
    filters: Sequence[str] = ()
    chunks: Sequence[str] = ()
    level: int | None = None
    shuffle: bool = False
    # As for `tamis.repack`; variables without a name in `filters` count as matched by a pattern
    missing: MissingPolicy = "exact"
    follow: bool = False
    min_size: int | None = None
    larger: bool = False
    checksum: bool = False  # Add fletcher32 to filters with zfp that have none
    history: bool = False  # Add a line to the history of the target, like `tamis.repack`; nccopy adds none
    # Kind of the target as in nccopy's ``-k``. It must match what the target becomes: netCDF-4, of the classic model if
    # the source is.
    kind: str | None = None
    drop: Sequence[str] = ()  # Names or patterns of variables that are left out
    nccopy: NccopyOptions = field(init=False)

    def __post_init__(self) -> None:
        """Check and parse the options."""
        for name, option in _OPTION_KINDS.items():
            option.check(name, getattr(self, name))
        check_policy(self.missing)
        filters, chunks = tuple(map(parse_argument, self.filters)), tuple(map(parse_chunk_argument, self.chunks))
        object.__setattr__(self, "nccopy", NccopyOptions(filters, chunks, self.level, self.shuffle))
        least_nbytes(self.min_size)
        if self.kind is not None and self.kind.lower() not in _KINDS:
            raise ParameterError(
                f"expected -k nc4 (netCDF-4) or nc7 (netCDF-4 classic model), got {self.kind!r}: the formats before"
                " netCDF-4 have no chunks and no filters: use nccopy"
            )

    def repack_options(self, **run: Any) -> RepackOptions:
        """Return these options, with those of a run, as options of repack."""
        return RepackOptions.asked(
            {},
            command="copy",
            missing=self.missing,
            follow=self.follow,
            min_size=self.min_size,
            larger=self.larger,
            checksum=self.checksum,
            history=self.history,
            **run,
        )

    def adapt(self, options: RepackOptions, store: Store) -> RepackOptions:
        """Return options of a repack with the filters and chunks that nccopy's rules give the variables of a file."""
        self._check_kind(store)
        rules = rules_for(store, self.nccopy)
        return replace(
            options,
            recipe=Recipe(rules.pipelines, chunks=rules.chunks, missing=self.missing, drop=self.drop),
            rule_pipelines=rules.rule_pipelines,
            rule_chunks=rules.rule_chunks,
        )

    def _check_kind(self, store: Store) -> None:
        # A file in a format before netCDF-4 becomes a netCDF-4 file.
        becomes = store.model.kind if store.model.kind in _KINDS.values() else "netCDF-4"
        wanted = becomes if self.kind is None else _KINDS[self.kind.lower()]
        if wanted != becomes:
            raise ParameterError(
                f"{store.path}: expected -k {becomes!r}, the kind of the file, which copy keeps, got {wanted!r}:"
                " leave -k out, or change the kind with nccopy first"
            ).at(path=store.path)


@checked(source=PATH, target=PATH, filters=NAMES, chunks=NAMES, overwrite=FLAG, resume=FLAG, progress=CALLBACK)
def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    filters: str | Sequence[str] = (),
    *,
    chunks: str | Sequence[str] = (),
    level: int | None = None,
    shuffle: bool = False,
    overwrite: bool = False,
    threads: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **options: Any,
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
    overwrite
        Replace an existing target.
    threads
        Number of threads that encode; None for as many as the process may use.
    resume
        Use the chunks of an interrupted run.
    progress
        Called with a step, the finished work and the total work.
    **options
        ``missing``, ``follow``, ``min_size``, ``larger``, ``checksum``, ``history`` and ``drop`` as for `tamis.repack`,
        and ``kind``, the kind of the target as in nccopy's ``-k``.

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
    known = {item.name for item in fields(CopyOptions) if item.init} - {"filters", "chunks", "level", "shuffle"}
    if unknown := options.keys() - known:
        raise ParameterError(f"expected options from {', '.join(sorted(known))}, got {', '.join(sorted(unknown))}")
    named = [filters] if isinstance(filters, str) else filters
    asked = CopyOptions(named, [chunks] if isinstance(chunks, str) else chunks, level, shuffle, **options)
    return run_copy(source, target, asked, overwrite=overwrite, threads=threads, resume=resume, progress=progress)


def run_copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    options: CopyOptions,
    *,
    overwrite: bool = False,
    threads: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> RepackResult:
    """Copy a file with the options of nccopy."""
    asked = options.repack_options(overwrite=overwrite, threads=threads, resume=resume)
    return run_repack(source, target, asked, progress, options.adapt)


def preview_copy(
    source: str | os.PathLike[str], target: str | os.PathLike[str], options: CopyOptions, *, resume: bool = False
) -> RepackPreview:
    """Return what `run_copy` would do to each dataset, and write nothing."""
    return run_preview(source, target, options.repack_options(resume=resume), options.adapt)
