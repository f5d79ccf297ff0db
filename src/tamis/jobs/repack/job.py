"""Copy a file with new filters on some of its datasets, and prove that their bounds are kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from tamis.advice.chunk_shapes import oversized, oversized_note
from tamis.arguments import CALLBACK, CLIENT, COUNT, FLAG, PATH
from tamis.errors import BoundError, FileError
from tamis.formats.registry import target_form
from tamis.formatting import plural, printable, size_text
from tamis.jobs.progress import Progress
from tamis.jobs.recipes.names import Recipes
from tamis.jobs.recipes.saved_recipe import Recipe
from tamis.jobs.repack.new_target import (
    NewTarget,
    check_room,
    copy_as_it_is,
    damage_in,
    describe,
    growth_of,
    prove,
    refuse_missed,
    refuse_missing,
    write_target,
)
from tamis.jobs.repack.options import RepackKeywords, RepackOptions, refuse_unknown, takes_repack_options
from tamis.jobs.repack.planning import Planning, may_spoil, plan_datasets, taken_in
from tamis.jobs.repack.result import Repacked, RepackPreview, RepackResult
from tamis.jobs.repack.resuming import Resuming, TargetRecord, Unresumed, check_place, check_target, interrupted
from tamis.jobs.repack.spread import Pool
from tamis.jobs.repack.survey import SURVEY_ALONE, GivenRanges, ReadSurvey, Survey
from tamis.jobs.repack.upload import made_already, repack_to_address, staged_place
from tamis.jobs.repack.views import checked_views
from tamis.jobs.repack.witnessing import look, witness_of
from tamis.remote.address import Address, place_of
from tamis.rewrite.plan import Copy
from tamis.rewrite.spread import Warned, coarse_bounds
from tamis.rewrite.write import EncodeElsewhere, here_alone
from tamis.safety.disk import nbytes_of
from tamis.safety.journal import marked, remove_leftovers
from tamis.safety.library_errors import is_disk_full, reading
from tamis.safety.room import Room
from tamis.safety.whole_file import check_free
from tamis.stores.facts import ELSEWHERE, values_nbytes_of
from tamis.stores.other_files import OtherFile, OtherFiles, Places, TakenIn, place

if TYPE_CHECKING:
    from tamis.jobs.witness.look import Witnessed, XarrayWitness
    from tamis.rewrite.damage import Damage
    from tamis.rewrite.transfer import ChunkFiles, TargetForm
    from tamis.safety.transaction import Transaction
    from tamis.stores.protocols import Store, StoredArray

_NOTHING_ASKED = "no filters or chunks were requested: all datasets keep theirs"

Warn = Callable[[Warned], object]
"""Takes a warning before anything is written."""

Adapt = Callable[[RepackOptions, "Store"], RepackOptions]
"""Completes options according to the source."""


@takes_repack_options
def repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    recipes: Recipes | Recipe,
    *,
    overwrite: bool = False,
    keep_damaged: bool = False,
    workers: int | None = None,
    client: Any = None,
    warn: Warn | None = None,
    progress: Progress | None = None,
    **options: Unpack[RepackKeywords],
) -> RepackResult:
    """Copy an HDF5 or netCDF file or a Zarr store, with new filters on some of its datasets.

    Groups, attributes, dimension scales, links and all other datasets are copied unchanged, and so are the chunks of
    datasets that already have the requested filters. A netCDF classic file or a Zarr store becomes a
    netCDF-4 file, and any source becomes a Zarr store if the name of the target ends in ``.zarr``. Before the target
    gets its name, every encoded chunk is decoded again and compared with the source, value by value, and the file is
    read to check that it holds these bytes. Until then, a file of that name stays unchanged. A chunk that zfp cannot
    store within the bound, because of missing values, NaN or infinities, is stored without loss through the other
    filters, and any reader with a ZFP plugin can read it.

    Parameters
    ----------
    source, target
        Paths of two different files.
    recipes
        Filters by dataset name or pattern: a `Pipeline`, a filter, or its text. Exact names take precedence over
        patterns, and earlier patterns over later ones. A pattern keeps and lists datasets that cannot take the filters
        or whose values cannot be read, and with lossy filters also coordinates, bounds, flags, integers and the like:
        see docs/metadata.md. An accuracy is in units of the variable: of unpacked values if it has ``scale_factor``.
        Or a `tamis.Recipe`, which has all of these, and chunks. With ``{}``, all datasets keep their filters.
    chunks
        Chunk shapes by name or pattern: extents, slowest axis first, or by dimension, ``{"time": 10}``, with the others
        unchanged; by default a dataset keeps its own. They override those of a `Recipe`. A dataset that is named here
        and has no recipe keeps its filters. A pattern applies to datasets that get filters, unless there are no
        recipes.
    require
        Requirements by name or pattern, whatever the filters promise: a text such as ``"abs=0.1,limits"``, or values by
        word, ``{"abs": 0.1, "limits": True}``; see docs/bounds.md. A chunk that fails them is stored without loss. If a
        measure of a whole dataset, such as ``rmse``, is missed, no target is written. They override those of a
        `Recipe`.
    checksum
        Add fletcher32 to pipelines with zfp that have none, so that damage is detected.
    overwrite
        Replace an existing target.
    keep_damaged
        Copy a dataset that has chunks which cannot be decoded as it is stored, also if the recipe names it exactly,
        which is an error otherwise; it is listed.
    missing
        How to treat missing values: NaN, infinities, the values of the attributes ``_FillValue`` and
        ``missing_value``, and a fill value other than 0. ``"exact"``, the default unless a `Recipe` has another, keeps
        each of them bit by bit. ``"mask"`` fills gaps from their neighbours, so that zfp can encode every chunk, and
        records the missing values in a second dataset, the missing-value mask. `tamis.open` restores them; every other
        reader sees the filling as valid values: see docs/missing.md. ``"refuse"`` raises an error if lossy filters
        would get any.
    threads
        Number of threads; by default as many as the process may use. The target does not depend on it.
    resume
        Continue interrupted runs for the same target, so that the same call can be repeated. A target that an earlier
        run made from this source with these recipes stays, and the result has `done_already`. Chunks of an interrupted
        run are reused, and the target gets the same bytes as without the interruption. If source or recipes changed,
        the target is made anew, and the notes of the result say why. A target that tamis did not make from this source
        is refused unless `overwrite` is given. An interrupted run keeps its encoded chunks. Without `resume`, the files
        of interrupted runs are removed.
    follow
        Let patterns also copy the values of virtual datasets and external raw files into the target. Otherwise patterns
        leave them in those files, which are not opened.
    self_contained
        Copy the values of all virtual datasets and external raw files, and what external links lead to, into the
        target, which then needs no other file. Links to one object become hard links to one copy. Names and patterns
        mean the copies by their paths in the target.
    min_size
        Patterns skip datasets with fewer bytes of values; by default 4096 for a dataset without chunks, whose index
        would take more than filters save, and 0 for one with chunks.
    larger
        Let patterns store datasets even if they become larger than in the source. Otherwise these are kept and listed.
        A named dataset is always stored, and a note says that it grew.
    keep_classic
        Copy a netCDF classic file unchanged if it would be larger as netCDF-4, whatever the recipes say. Otherwise a
        note says that it grew.
    zarr_format
        2 or 3, the version of a Zarr store; by default 3. A target whose name ends in ``.zarr`` becomes such a store.
    shards
        Largest number of chunks in a file of a Zarr 3 store; by default each chunk has a file.
    packed_as
        How a Zarr 3 store has packed values, those of ``pack`` and those that are packed in the source:
        ``"attributes"`` as integers with ``scale_factor`` and ``add_offset``, ``"codecs"`` by the registered codecs
        ``scale_offset`` and ``cast_value``, which give floats to zarr-python from version 3.2 on. By default, ``pack``
        writes attributes, and what is packed in a Zarr source stays what it is. See docs/packing.md.
    consolidated
        Whether the root of a Zarr store also has the metadata of all arrays; by default yes, because xarray looks for
        them there.
    cloud
        Whether an HDF5 or netCDF-4 target has its metadata together, in blocks of 1 MiB, so that opening it over a
        network takes few requests.
    storage
        Where the target is read from. For ``"s3"``, an object store, datasets that get filters and no chunk shape get
        chunks of 4 to 16 MiB of stored bytes, as a sample shows, and an HDF5 or netCDF-4 target is as by `cloud`.
    history
        Whether a target that follows the netCDF conventions, that is, has the attribute ``history`` or ``Conventions``,
        gets a line in its history that says what was done. It has no time, so the same call makes the same bytes.
    drop
        Names or patterns of datasets that are left out, with all links to them, in addition to those of a `Recipe`, for
        example those that Zarr cannot store. References to them become null.
    witness
        ``"xarray"``: before the target gets its name, xarray reads source and target in a process without tamis, and
        finds the same metadata, and the same values within their bounds in the first, the last and the worst chunk of
        each variable. It costs a second; see docs/repack.md.
    workers
        Number of processes that encode large datasets, each with `threads`, by default the processors divided by the
        processes. This process writes what they encode, in order, so the target does not depend on them.
    client
        A Dask client, whose workers encode instead, with one thread by default; they must reach source and target by
        the same paths.
    warn
        Called with each of the `warnings` of the result before anything is written.
    progress
        Called before the first and after each chunk, with the step (`tamis.jobs.progress.Step`), the number of finished
        chunks, and the number of all chunks.

    Returns
    -------
    RepackResult
        Sizes, errors and times.

    Raises
    ------
    FileError
        If a file cannot be read or written, the target exists, a name matches nothing, there is no space for the
        target, or the run to resume is still writing.
    ParameterError
        If a dataset cannot take its filters or chunks.
    DataError
        If there are missing values and `missing` is ``"refuse"``.
    BoundError
        If decoded values differ by more than allowed, a measure of a dataset is missed, the target does not hold the
        encoded bytes, or the witness reads it differently from the source; the target is removed.
    MissingFilterError
        If the witness is not installed.
    """
    PATH.check("source", source)
    PATH.check("target", target)
    COUNT.check_optional("workers", workers)
    CLIENT.check_optional("client", client)
    CALLBACK.check_optional("warn", warn)
    CALLBACK.check_optional("progress", progress)
    refuse_unknown("repack", options)
    FLAG.check("keep_damaged", keep_damaged)
    asked = RepackOptions.asked(recipes, overwrite=overwrite, **options)
    asked = replace(asked, keep_damaged=keep_damaged)
    if workers is None and client is None:
        return run_repack(source, target, asked, progress, warn=warn)
    pool = Pool.of(workers, client, options.get("threads"))
    return run_repack(source, target, asked, progress, pool=pool, warn=warn)


def run_repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    options: RepackOptions,
    progress: Progress | None = None,
    adapt: Adapt | None = None,
    pool: Pool | None = None,
    *,
    private: bool = False,
    places: Places | None = None,
    warn: Warn | None = None,
    room: Room | None = None,
) -> RepackResult:
    """Do as `repack` does; a private target here is for its owner alone.

    `places` says where the files of the run go, by default this one alone. The target reserves its bytes in `room`,
    for whoever has that to give back.
    """
    address = place_of(target)
    report = progress or (lambda *_: None)
    if isinstance(address, Address):

        def run(staged: Path, asked: RepackOptions) -> RepackResult:
            sent = Places().and_file(os.fspath(place_of(source)), address)
            return run_repack(source, staged, asked, progress, adapt, pool, places=sent, warn=warn, room=room)

        return repack_to_address(place_of(source), address, options, report, run)
    began = time.perf_counter()
    source, target = place_of(source), Path(os.fsdecode(target))
    with options.open(source) as store, reading(source, only_damage=True):
        form = target_form(target, **options.form)
        with form.begin(target, overwrite=options.overwrite, private=private) as transaction:
            check_place(transaction, source, options)
            if not form.copies_objects_of(store):
                store.read_ahead()
            options = adapt(options, store) if adapt else options
            survey = GivenRanges(options.ranges, ReadSurvey(report, options.threads))
            places = (places or Places()).and_file(os.fspath(source), os.fspath(target))
            planning, notes = _checked_planning(store, options, form, places, survey)
            witness = witness_of([source], store, options)
            record = TargetRecord.of(source, planning, options)
            others = OtherFiles([], [])
            if options.resume and target.exists():
                others = _other_files(store, target, planning, options)
                record = replace(record, links=others.key)
            earlier = check_target(transaction, source, record, planning.plans, options)
            if earlier is not None:
                notes.append(f"{target}: {earlier}")
            is_done = earlier is not None and earlier.done
            warnings: tuple[Warned, ...] = ()
            if is_done:
                notes += remove_leftovers(transaction)
                witnessed = look(witness, target, store, planning, (), of_run=others.of_run)
                done = _Done(planning.kept, others=tuple(others.files), witnessed=witnessed)
            else:
                warnings = coarse_bounds(planning.plans, planning.datasets, planning.patterns)
                for warning in warnings:
                    if warn is not None:
                        warn(warning)
                if options.missing == "refuse":
                    refuse_missing(planning, report, options.threads)
                done = _Run(store, planning, record, transaction, report, options, pool, witness, room).finish()
        source_nbytes = store.nbytes if isinstance(source, Address) else nbytes_of(source)
    return RepackResult(
        source=os.fspath(source),
        target=os.fspath(target),
        source_nbytes=source_nbytes,
        target_nbytes=nbytes_of(target),
        datasets=done.datasets,
        kept=(*done.kept.items(), *done.unread.items()),
        seconds=time.perf_counter() - began,
        notes=(*notes, *done.notes, *transaction.notes),
        unreadable=tuple(done.unread),
        done_already=is_done,
        unmatched=tuple(planning.unmatched),
        other_files=done.others,
        damaged=done.damaged,
        warnings=warnings,
        taken_in=planning.taken_in,
        witness=done.witnessed,
    )


@takes_repack_options
def preview_repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    recipes: Recipes | Recipe,
    **options: Unpack[RepackKeywords],
) -> RepackPreview:
    """Return what `repack` would do to each dataset, and write nothing.

    It raises the same errors as `repack` before writing, except those about the target or values.

    Parameters
    ----------
    source, target, recipes
        See `repack`.
    **options
        Keywords of `repack`, except ``overwrite`` and ``progress``. With ``resume=True``, the result also has the
        chunks that could be taken over from an interrupted run. Whether a dataset would grow is known only after
        encoding.
    """
    PATH.check("source", source)
    PATH.check("target", target)
    refuse_unknown("preview_repack", options)
    return run_preview(source, target, RepackOptions.asked(recipes, **options))


def run_preview(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    options: RepackOptions,
    adapt: Adapt | None = None,
) -> RepackPreview:
    """Do as `preview_repack` does."""
    source, place = place_of(source), place_of(target)
    is_elsewhere = isinstance(place, Address)
    made_at = staged_place(place) if isinstance(place, Address) else place
    # A target that is elsewhere is made in a folder that nothing else uses: only a run with `resume` finds anything.
    has_earlier = not is_elsewhere or (options.resume and made_at.parent.is_dir())
    source_text, target_text = os.fspath(source), os.fspath(place)
    with options.open(source) as store, reading(source):
        witness_of([source], store, options)
        options = adapt(options, store) if adapt else options
        form = target_form(made_at, **options.form)
        transaction = form.begin(made_at) if has_earlier else None
        planning, notes = _checked_planning(store, options, form, Places().and_file(source_text, target_text))
        datasets = describe(planning)
        others = _other_files(store, made_at, planning, options)
        notes += others.notes
        if isinstance(place, Address) and (done := made_already(source, place, options)):
            notes = [done]
        elif transaction is not None and not options.resume:
            notes = [*interrupted(made_at), *notes]
        elif transaction is not None:
            record = replace(TargetRecord.of(source, planning, options), links=others.key)
            earlier = check_target(transaction, source, record, planning.plans, options)
            if earlier is not None and earlier.done:
                notes = [f"{target}: {earlier}"]
            else:
                with Resuming(transaction, source, planning.plans, resume=True) as resuming:
                    datasets = tuple(replace(item, reusable_chunks=resuming.reusable(item.path)) for item in datasets)
                    notes = [*resuming.notes, *notes]
        warnings = coarse_bounds(planning.plans, planning.datasets, planning.patterns)
    return RepackPreview(
        source=source_text,
        target=target_text,
        datasets=datasets,
        notes=tuple(notes),
        other_files=tuple(others.files),
        warnings=warnings,
        taken_in=planning.taken_in,
    )


def _is_changed(item: TakenIn, places: Places) -> bool:
    """Return whether another program changed a file, which a run in place may have replaced by equal values."""
    return not item.is_unchanged() and place(places.target_of(item.file) or "") != place(item.file)


def _check_sources(store: Store, planning: Planning) -> None:
    """Raise FileError if values that are to be taken in are in files that do not exist."""
    for path, array in planning.datasets.items():
        if path in planning.dropped or array.storage.layout not in ELSEWHERE:
            continue
        if absent := array.elsewhere.absent_files:
            more = f" ({len(absent)} such files or datasets in all)" if len(absent) > 1 else ""
            text = f"{store.path}: {path}: its values are in {absent[0]}, which does not exist{more}"
            raise FileError(f"{text}: leave it out (drop), or do without self_contained").at(
                path=store.path, dataset=path
            )


def _planning(store: Store, options: RepackOptions, form: TargetForm, survey: Survey = SURVEY_ALONE) -> Planning:
    """Return the planning for the arrays of a store, in the form that the target has."""
    store.check_finished()
    planning = plan_datasets(store, options, survey)._replace(form=form)
    if options.self_contained:
        _check_sources(store, planning)
    planning = planning.keeping(form.kept_as_stored(store))
    by_objects = form.copies_objects_of(store)
    # A target of another format has values, never places where they are.
    stored = planning.plans if by_objects and not options.self_contained else planning.datasets
    arrays = [planning.datasets[path] for path in stored if path not in planning.dropped]
    elsewhere = [array for array in arrays if array.storage.layout in ELSEWHERE]
    linked = store.linked_files() if options.self_contained else ()
    planning = planning._replace(taken_in=taken_in(store, elsewhere, linked))
    return planning if by_objects else planning.of_values()


def _checked_planning(
    store: Store, options: RepackOptions, form: TargetForm, places: Places, survey: Survey = SURVEY_ALONE
) -> tuple[Planning, list[str]]:
    """Return the planning of a run, which the form of the target can hold, and notes about it."""
    planning = _planning(store, options, form, survey)._replace(places=places)
    form.check_copy(store, planning.dropped)
    planning, dangling = _checked_views(store, planning, options)
    return planning, [*_notes_of(store, planning, options), *dangling, *_translated(store, planning)]


def _checked_views(store: Store, planning: Planning, options: RepackOptions) -> tuple[Planning, list[str]]:
    """Do as `tamis.jobs.repack.views.checked_views` where there is anything to check; most files have nothing."""
    if not may_spoil(options) or options.self_contained or not planning.copies_objects_of(store):
        return planning, []  # virtual datasets are stored as values, from the source
    is_virtual = any(array.storage.layout == "virtual" for array in planning.datasets.values())
    if not (is_virtual or [*store.links_elsewhere()]):
        return planning, []
    return checked_views(store, planning, options)


def needed_files(source: str, target: str, options: RepackOptions, places: Places) -> tuple[OtherFile, ...]:
    """Return the files that a target would lead to, and that its run, with these places, would not make."""
    with options.open(source) as store, reading(source):
        planning = _planning(store, options, target_form(Path(target), **options.form))
        return tuple(_other_files(store, Path(target), planning._replace(places=places), options).files)


def targets_led_to(source: str, target: str, options: RepackOptions, places: Places) -> list[str]:
    """Return the targets of a run, with these places, to which one of its targets would lead, without any plan."""
    with options.open(source) as store, reading(source):
        if options.self_contained or not target_form(Path(target), **options.form).copies_objects_of(store):
            return []
        return [other.file for other in store.survey_other_files(target, places).of_run]


def _other_files(store: Store, target: Path, planning: Planning, options: RepackOptions) -> OtherFiles:
    """Return which other files a target leads to, by the plans for its source."""
    if options.self_contained or not planning.copies_objects_of(store):
        return OtherFiles([], [])
    rewritten = [path for path, plan in planning.plans.items() if not isinstance(plan, Copy)]
    return store.survey_other_files(os.fspath(target), planning.places, rewritten)


def _notes_of(store: Store, planning: Planning, options: RepackOptions) -> list[str]:
    notes = [printable(f"{name}: {reason}") for name, reason in planning.unmatched.items()]
    notes += [printable(f"{path}: left out of the target (drop)") for path in sorted(planning.dropped)]
    if options.is_empty and not options.self_contained:
        is_other = not planning.copies_objects_of(store)
        notes.append(_NOTHING_ASKED + (", as far as the format of the target has them" if is_other else ""))
    if options.self_contained:
        notes += _taken_in_notes(store, planning)
    return [*notes, *_oversized_notes(planning)]


def _taken_in_notes(store: Store, planning: Planning) -> Iterator[str]:
    """Yield notes about what a target has of other files, with its size."""
    arrays, dropped = planning.datasets, planning.dropped
    for file, paths in store.linked_files().items():
        nbytes = sum(values_nbytes_of(store.arrays[path]) for path in paths if path not in dropped)
        count = plural(sum(path not in dropped for path in paths), "dataset")
        yield printable(f"takes in {count} of {file}, to which links lead ({size_text(nbytes)} of values)")
    elsewhere = [array for path, array in arrays.items() if array.storage.layout in ELSEWHERE and path not in dropped]
    if elsewhere:
        nbytes = sum(values_nbytes_of(array) for array in elsewhere)
        names = ", ".join(array.path for array in elsewhere[:_MOST_NAMED])
        more = ", …" if len(elsewhere) > _MOST_NAMED else ""
        yield printable(f"takes in the values of {names}{more} from other files ({size_text(nbytes)} of values)")


_MOST_NAMED = 8


def _oversized_notes(planning: Planning) -> Iterator[str]:
    """Yield notes about chunks that are copied, although they are much larger than their array."""
    for path, array in planning.datasets.items():
        if path not in planning.plans and path not in planning.dropped and (chunking := oversized(array)) is not None:
            yield printable(f"{path}: {oversized_note(path, chunking)}")


def _translated(store: Store, planning: Planning) -> list[str]:
    """Return what the target does not have, or has in another form, by name."""
    assert planning.form is not None
    return [
        item.as_plan()
        for item in planning.form.translations(store)
        if not planning.dropped or store.first_path(item.path) not in planning.dropped
    ]


class _Done(NamedTuple):
    """What a run made, or found done."""

    kept: Mapping[str, str]  # Why datasets that a pattern matches were copied as stored, by path
    datasets: tuple[Repacked, ...] = ()  # Those that were stored as planned
    unread: Mapping[str, str] = {}  # Datasets whose values cannot be read, with the reason
    notes: tuple[str, ...] = ()
    others: tuple[OtherFile, ...] = ()  # Files that the target leads to, and that the run does not make
    damaged: tuple[Damage, ...] = ()
    witnessed: Witnessed | None = None


class _Stale(NamedTuple):
    """A run failed because chunks of an interrupted one, which it reused, do not match the source."""

    note: str


class _Run(NamedTuple):
    """All that a run needs once its target has begun."""

    store: Store
    planning: Planning
    record: TargetRecord
    transaction: Transaction
    report: Progress
    options: RepackOptions
    pool: Pool | None  # Processes that encode; None if this one does
    witness: XarrayWitness | None
    room: Room | None  # Where other processes reserve room on the disk, too; None if there are none

    def finish(self) -> _Done:
        """Write, verify and commit the target; a second time if chunks of an interrupted run do not match."""
        done = self._attempt()
        if isinstance(done, _Done):
            return done
        self.transaction.discard()
        again = self._replace(options=replace(self.options, resume=False)).finish()
        return again._replace(notes=(done.note, *again.notes))

    def _attempt(self) -> _Done | _Stale:
        try:
            return self._make_target()
        except FileError as error:
            # A target of objects gets damaged bytes as they are; any other has values, which nobody can read.
            if error.dataset is None or is_disk_full(error) or self.planning.copies_objects_of(self.store):
                raise
            text = f"{error}: drop (--drop) leaves it out, and only a target of the same format can have it as it is"
            raise FileError(text).at(path=error.path, dataset=error.dataset, chunk=error.chunk) from error

    def _make_target(self) -> _Done | _Stale:
        with Resuming(
            self.transaction,
            place_of(self.store.path),
            self.planning.plans,
            resume=self.options.resume,
            gives_way=self.room is not None,
        ) as resuming:
            new = self._written(resuming)
            growth = growth_of(self.store, self.transaction)
            if growth and self.options.keep_classic:
                return self._kept_classic(resuming, growth)
            self.transaction.begin_sync()
            return self._proven(resuming, new, growth)

    def _written(self, resuming: Resuming) -> NewTarget:
        """Write the target, in several processes if there are any."""
        store, planning, transaction, options = self.store, self.planning, self.transaction, self.options
        room = transaction, store, planning.datasets, planning.plans, resuming.removable_nbytes
        if self.pool is None:
            check_room(*room, reserved=self.room)
            return write_target(store, planning, transaction, resuming, self.report, options)
        with self.pool.spread(store, planning, transaction, resuming.run, options) as spread:
            check_room(*room, spread.segments_nbytes, reserved=self.room)
            return write_target(store, planning, transaction, resuming, self.report, options, spread)

    def _kept_classic(self, resuming: Resuming, growth: str) -> _Done:
        """Put a netCDF classic file in the place of a written target that is larger, and commit it."""
        copy_as_it_is(self.store, self.transaction)
        witnessed = look(self.witness, self.transaction.path, self.store, self.planning, ())
        self._commit(resuming, self.record, 0)
        note = f"kept as a netCDF classic file: netCDF-4 would take {growth}"
        return _Done({}, notes=(*resuming.notes, note), witnessed=witnessed)

    def _proven(self, resuming: Resuming, new: NewTarget, growth: str) -> _Done | _Stale:
        """Compare a written target with its source, and commit it."""
        store, planning, transaction, threads = self.store, self.planning, self.transaction, self.options.threads
        written = new.written
        stored = {
            path: plan
            for path, plan in planning.plans.items()
            if path in written or (isinstance(plan, Copy) and path not in new.kept)
        }
        by_objects = planning.copies_objects_of(store)
        try:
            damaged = damage_in(planning, written, self.report, threads, by_objects=by_objects)
            names = {item.path for item in damaged}
            datasets = prove(store, planning, stored, written, transaction, self.report, threads, names)
        except BoundError as error:
            if not any(result.reused_chunks for result in written.values()):
                raise
            text = f"chunks left by the interrupted run do not match {place_of(store.path)}"
            return _Stale(f"{text}; everything is encoded again: {error}")
        refuse_missed(planning.plans, datasets)
        if changed := [item.file for item in planning.taken_in if _is_changed(item, planning.places)]:
            raise FileError(f"{changed[0]}: changed while it was read: repack again").at(path=changed[0])
        witnessed = look(self.witness, transaction.path, store, planning, datasets, names, new.others.of_run)
        self._commit(resuming, replace(self.record, links=new.others.key), len(names | new.unread.keys()))
        notes = [*resuming.notes, *new.others.notes]
        if growth:
            notes.append(f"larger as netCDF-4, {growth}: --keep-classic copies such a file unchanged")
        return _Done(
            kept={**planning.kept, **new.kept},
            datasets=datasets,
            unread=new.unread,
            notes=tuple(notes),
            others=tuple(new.others.files),
            damaged=damaged,
            witnessed=witnessed,
        )

    def _commit(self, resuming: Resuming, record: TargetRecord, unread_count: int) -> None:
        """Give the target its record and its name, and remove what interrupted runs left."""
        record.write(self.transaction.path, *self.transaction.finish_sync(), unread_count)
        self.transaction.commit()
        resuming.finish()


def save_store(
    store: Store,
    target: str | os.PathLike[str],
    options: RepackOptions,
    report: Progress,
    check: Callable[[Path, tuple[Repacked, ...], Planning], Witnessed | None] = lambda *_: None,
    elsewhere: Callable[[Path, ChunkFiles | None], EncodeElsewhere] = lambda *_: here_alone,
    survey: Callable[[Progress, int], Survey] = ReadSurvey,
    sample: Callable[[Any], StoredArray] = lambda array: array,
) -> RepackResult:
    """Write a store to a new file or Zarr store, which gets its name once it is complete, proven and checked.

    `sample` returns an array whose values are for a sample of those of another, whose bound may be too large for it.
    """
    began = time.perf_counter()
    target_path, threads = Path(os.fsdecode(target)), options.threads
    form = target_form(target_path, **options.form)
    with form.begin(target_path, overwrite=options.overwrite) as transaction, marked(transaction):
        if target_path.exists() and not options.overwrite:
            check_free(target_path)
        planning = plan_datasets(store, options, survey(report, threads))._replace(form=form)
        bounded = {path: plan for path, plan in planning.plans.items() if plan.unpacked_bound}
        samples = {path: sample(planning.datasets[path]) for path in bounded}
        warnings = coarse_bounds(bounded, samples, planning.patterns)
        if options.missing == "refuse":
            refuse_missing(planning, report, threads)
        form.check_copy(store)
        check_room(transaction, store, planning.datasets, planning.plans, 0)
        encode = elsewhere(transaction.path, form.files)
        new = write_target(store, planning, transaction, Unresumed(), report, options, encode)
        transaction.begin_sync()
        plans = {path: plan for path, plan in planning.plans.items() if path in new.written}
        datasets = prove(store, planning, plans, new.written, transaction, report, threads)
        refuse_missed(planning.plans, datasets)
        witnessed = check(transaction.path, datasets, planning)
        transaction.commit()
    return RepackResult(
        source=store.path,
        target=os.fspath(target_path),
        source_nbytes=store.nbytes,
        target_nbytes=nbytes_of(target_path),
        datasets=datasets,
        kept=(*planning.kept.items(), *new.kept.items(), *new.unread.items()),
        seconds=time.perf_counter() - began,
        notes=(*new.others.notes, *transaction.notes),
        warnings=warnings,
        witness=witnessed,
    )
