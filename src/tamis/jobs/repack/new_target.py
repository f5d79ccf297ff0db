"""Write the arrays of a store to a new target by their plans, read them again, and compare them with the source."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import deflate
import numpy as np

from tamis.accuracy.fields import FIELD_WORDS
from tamis.accuracy.measured import AT_MOST, is_missed
from tamis.errors import BoundError, DataError, FileError, TamisError, located
from tamis.formats.registry import comparison_of, open_packed
from tamis.formatting import plural, size_text
from tamis.jobs.progress import Progress, Step
from tamis.jobs.repack.notes import (
    GROWN,
    history_line,
    measures_note,
    planned_notes,
    reader_note,
    recorded_filters,
    written_notes,
)
from tamis.jobs.repack.planning import Planning, replaced_companions
from tamis.jobs.repack.result import Action, DatasetPreview, Repacked
from tamis.meaning.missing import Missing
from tamis.pipeline import Pipeline
from tamis.remote.address import Address
from tamis.remote.file import RemoteFile
from tamis.rewrite.create import Create, Slot
from tamis.rewrite.damage import KEPT, MAY_KEEP, Damage, damage_of
from tamis.rewrite.growth import LargerError, likely_nbytes, most_nbytes, unreadable
from tamis.rewrite.outcome import Written
from tamis.rewrite.packed_array import float_type, in_units_of, marks_of, unpacked
from tamis.rewrite.plan import ArrayPlan, Checks, Copy, Recode, Recompress
from tamis.rewrite.prove import Verified, reached_while_writing, verify, verify_copied, verify_kept
from tamis.rewrite.steps import RoundStep
from tamis.rewrite.streams import carry, carry_flags
from tamis.rewrite.surveys import count_missing, count_partial, measured_fields, measured_pairs
from tamis.rewrite.transfer import Changes
from tamis.rewrite.witness import SmallArrays
from tamis.rewrite.write import EncodeElsewhere, here_alone, would_grow, write
from tamis.safety.disk import nbytes_of, size_and_checksum
from tamis.safety.library_errors import disk_text, is_disk_full, lacks_space, reading
from tamis.stores.extended import ExtendedArray
from tamis.stores.facts import ELSEWHERE, ArrayFacts, array_nbytes, size_of
from tamis.stores.first_bytes import is_classic
from tamis.stores.protocols import ArrayWriter, Store, StoreComparison, StoredArray

if TYPE_CHECKING:
    from tamis.jobs.repack.options import RepackOptions
    from tamis.jobs.repack.resuming import Resuming, Unresumed
    from tamis.rewrite.packed_array import PackedArray
    from tamis.safety.room import Room
    from tamis.safety.transaction import Transaction
    from tamis.stores.other_files import OtherFiles


def growth_of(store: Store, transaction: Transaction) -> str:
    """Return how a classic file has grown in a written target; empty if it has not, or for another target."""
    if not (transaction.path.is_file() and is_classic(store.path)):
        return ""
    before, after = store.nbytes, nbytes_of(transaction.path)
    return f"{size_text(after)} instead of {size_text(before)}" if after > before else ""


def _copied(path: str, copy: Path) -> tuple[int, int]:
    """Copy a file, and return size and checksum of what was read."""
    if not isinstance(path, Address):
        shutil.copyfile(path, copy)
        return size_and_checksum(Path(path))
    source = RemoteFile(path)
    checksum = 0
    with copy.open("wb") as file:
        for begin in range(0, source.nbytes, _COPIED_NBYTES):
            data = source.read(begin, _COPIED_NBYTES)
            checksum = deflate.crc32(data, checksum)
            file.write(data)
    return source.nbytes, checksum


_COPIED_NBYTES = 8 << 20


def copy_as_it_is(store: Store, transaction: Transaction) -> None:
    """Replace a written target by the bytes of its source."""
    copied = _copied(store.path, transaction.path)
    transaction.begin_sync()
    if transaction.finish_sync() != copied:
        raise BoundError(f"{transaction.target}: differs from {store.path} when it is read back: run it again").at(
            path=transaction.target
        )


def check_room(
    transaction: Transaction,
    source: Store,
    arrays: Mapping[str, StoredArray],
    plans: Mapping[str, ArrayPlan],
    removable_nbytes: int,
    segments_nbytes: int = 0,
    reserved: Room | None = None,
) -> None:
    """Check that a folder has space for the target; its size is only estimated by encoding if space could be short.

    `removable_nbytes` are the bytes of interrupted runs that this run removes before it writes, `segments_nbytes` the
    decoded bytes of chunks that other processes store beside the target until they are copied to it. With `reserved`,
    what other processes of the run will write counts, and is waited for.
    """
    folder = transaction.path.parent

    def has_room(nbytes: int, *, waits: bool) -> bool:
        transaction.needed_nbytes = nbytes
        if reserved is None:
            return shutil.disk_usage(folder).free + removable_nbytes >= nbytes
        return reserved.reserve(folder, transaction.path, nbytes, removable_nbytes, waits=waits)

    replaced = most = 0
    for path, plan in plans.items():
        with reading(source.path, dataset=path):
            replaced += arrays[path].stored_nbytes
            most += most_nbytes(plan, arrays[path])
    others = max(source.nbytes - replaced, 0)
    segments_share = min(1.0, segments_nbytes / max(most, 1))
    if has_room(others + round(most * (1 + segments_share)), waits=False):
        return
    encoded = sum(likely_nbytes(plan, plan.source_of(arrays[path])) for path, plan in plans.items())
    likely = others + round(encoded * (1 + segments_share))
    if not has_room(likely, waits=True):
        free = shutil.disk_usage(folder).free + removable_nbytes
        raise FileError(
            f"{folder}: No space left: expected about {size_text(likely)} of free space, found {size_text(free)}: make"
            " room, or write to another folder"
        ).at(path=folder) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def refuse_missing(planning: Planning, report: Progress, threads: int) -> None:
    """Raise DataError if lossy filters would get missing values."""
    refused = []
    lossy = [plan for plan in planning.plans.values() if plan.changes_values]
    for number, plan in enumerate(lossy, 1):
        step = Step(f"counting missing values of {plan.path}", number, len(lossy))
        try:
            source = planning.datasets[plan.path]
            values = source if plan.codes is None else in_units_of(source)
            count = count_missing(plan.in_variable_units, values, partial(report, step), threads)
        except FileError:
            if plan.path in planning.exact:
                raise
            continue  # repack keeps it
        if count.total and not would_grow(plan, plan.source_of(source)):
            refused.append(f"{plan.path}: {count.total} of {size_of(source)} ({count})")
    if refused:
        raise DataError(
            f"missing values found, which missing='refuse' (--missing refuse) does not allow: {'; '.join(refused)}:"
            " keep each of them as it is: missing='exact' (--missing exact)"
        )


_EXTENDED = "its chunks would not fit, because it gets more values"


def write_target(
    store: Store,
    planning: Planning,
    transaction: Transaction,
    resuming: Resuming | Unresumed,
    report: Progress,
    options: RepackOptions,
    elsewhere: EncodeElsewhere = here_alone,
) -> NewTarget:
    """Write the target, and return what it has."""
    plans, form = planning.plans, planning.form
    assert form is not None
    by_objects = planning.copies_objects_of(store)
    anew = [path for path, plan in plans.items() if not (isinstance(plan, Copy) and by_objects)]
    outdated = replaced_companions(planning.datasets, plans)
    changes = Changes(anew, outdated, planning.dropped, planning.places)
    writing = _Writing(store, planning, resuming, report, options, elsewhere)
    resuming.begin()
    try:
        with form.copying(store, transaction, changes, options.threads) as new:
            for slot in new.slots():
                writing.write(slot)
            new.finish(writing.companions(), writing.history_line())
    except (TamisError, OSError, RuntimeError) as error:  # HDF5 reports a full disk as either of these
        if isinstance(error, TamisError) and not is_disk_full(error):
            raise
        text = f"{transaction.target}: cannot be written: {disk_text(error)}"
        if lacks_space(error) and transaction.needed_nbytes:
            free = shutil.disk_usage(transaction.path.parent).free
            text += f": it takes up to {size_text(transaction.needed_nbytes)}, and {size_text(free)} are left"
        raise FileError(text).at(path=transaction.target) from error
    return NewTarget(writing.written, writing.kept, writing.unread, new.others)


class NewTarget(NamedTuple):
    """What a written target has, whose arrays remain to be compared with those of the source."""

    written: Mapping[str, Written]  # The arrays that were written anew, by path
    kept: Mapping[str, str]  # Why arrays with a plan were copied as stored, by path
    unread: Mapping[str, str]  # The same for arrays whose values cannot be read
    others: OtherFiles  # The other files that it leads to


class _Writing:
    """The arrays of a target that are written anew, one after the other."""

    def __init__(
        self,
        store: Store,
        planning: Planning,
        resuming: Resuming | Unresumed,
        report: Progress,
        options: RepackOptions,
        elsewhere: EncodeElsewhere,
    ) -> None:
        self._store, self._planning, self._options = store, planning, options
        self._resuming, self._report, self._elsewhere = resuming, report, elsewhere
        self._by_objects = planning.copies_objects_of(store)
        self._count = sum(not isinstance(plan, Copy) for plan in planning.plans.values())
        self._carried: dict[str, ArrayWriter | None] = {}  # Companions of arrays whose chunks are copied
        self.written: dict[str, Written] = {}
        self.kept: dict[str, str] = {}
        self.unread: dict[str, str] = {}

    def write(self, slot: Slot) -> None:
        """Write an array as planned; or let it be copied as stored, and note why."""
        plan = self._planning.plans[slot.path]
        source = plan.source_of(slot.array)
        if isinstance(slot.array, ExtendedArray) and not isinstance(plan, Recode):
            self.kept[slot.path] = _EXTENDED
            slot.keep()
        elif isinstance(plan, Copy):
            self._carried[slot.path] = carry(plan, source, slot.create)
        elif isinstance(plan, Recompress) and not self._by_objects:
            self._recompress(slot, plan, source)
        else:
            self._encode(slot, plan, source, slot.create)

    def _recompress(self, slot: Slot, plan: Recompress, source: StoredArray) -> None:
        """Write an array through other filters, and copy the flags of its missing values."""
        created: list[ArrayWriter] = []

        def create(plan: ArrayPlan) -> ArrayWriter:
            created.append(slot.create(plan))
            return created[-1]

        if self._encode(slot, plan, source, create):
            self._carried[slot.path] = carry_flags(source, created[-1])

    def _encode(self, slot: Slot, plan: ArrayPlan, source: StoredArray, create: Create) -> bool:
        """Write an array through its filters; return False if it is copied as stored, because that cannot be."""
        # Other processes have the array as it is stored.
        elsewhere = here_alone if isinstance(slot.array, ExtendedArray) else self._elsewhere
        report = partial(self._report, Step(f"writing {plan.path}", len(self.written) + 1, self._count))
        try:
            with reading(self._store.path, dataset=plan.path, only_damage=True):
                resumed = self._resuming.chunks(plan)
                result = write(plan, source, create, report, self._options.threads, resumed, elsewhere)
        except LargerError:
            self.kept[plan.path] = GROWN
            slot.keep()
            return False
        except (TamisError, OSError, RuntimeError) as error:
            if not self._may_keep(error, slot.array, plan, source):
                raise
            slot.keep()
            return False
        if plan.codes is not None:
            result = replace(result, packing_error=cast("PackedArray", source).largest_error)
        self.written[plan.path] = result
        refuse_missed_early(plan, slot.array, result)
        self._resuming.flush()
        return True

    def _may_keep(self, error: Exception, array: ArrayFacts, plan: ArrayPlan, source: StoredArray) -> bool:
        """Return whether an array that could not be written may be copied as stored, and note why."""
        is_needed = plan.path in self._planning.needed or (
            self._options.self_contained and array.storage.layout in ELSEWHERE
        )
        # A dataset with a companion cannot be kept: the companion may already be gone from the target.
        if is_disk_full(error) or array.marks.has_companion or is_needed:
            return False
        is_exact = plan.path in self._planning.exact
        if plan.codes is not None and isinstance(error, DataError):  # the values can be read, and have no codes
            if not is_exact:
                self.kept[plan.path] = str(error)
            return not is_exact
        if is_exact and not self._options.keep_damaged:
            if self._by_objects and isinstance(error, FileError) and unreadable(plan, source):
                raise FileError(f"{error}: {MAY_KEEP}").at(path=self._store.path, dataset=plan.path) from error
            return False
        if reason := unreadable(plan, source):
            self.unread[plan.path] = f"{KEPT}: {reason}"
        return bool(reason)

    def companions(self) -> dict[str, ArrayWriter | None]:
        """Return the new companions by the path of their variables; None for variables that lose theirs."""
        new = dict(self._carried)
        for path, result in self.written.items():
            if isinstance(self._planning.plans[path], Recode):
                new[path] = result.companion
        marked = set(self._planning.datasets.marked())
        return {path: companion for path, companion in new.items() if companion or path in marked}

    def history_line(self) -> str:
        """Return the line for the history of the target; empty for none."""
        command = self._options.history
        return history_line(command, self._planning.plans, self.written, self._planning.datasets) if command else ""


def describe(planning: Planning) -> tuple[DatasetPreview, ...]:
    """Return a preview of each dataset of a file."""
    plans = planning.plans
    dropped = {
        path: f"it is the missing-value mask of {variable}, which is rewritten"
        for path, variable in replaced_companions(planning.datasets, plans).items()
    }
    kept = {**planning.kept, **dropped}
    return tuple(
        _preview(path, dataset, plans.get(path), kept.get(path, "no recipe matches it"), dropped=path in dropped)
        for path, dataset in planning.datasets.items()
    )


def _action(plan: ArrayPlan | None, *, dropped: bool) -> Action:
    """Return in a word what becomes of a dataset; see `DatasetPreview`."""
    if plan is not None:
        return "copy" if isinstance(plan, Copy) else "store"
    return "drop" if dropped else "keep"


def _preview(path: str, dataset: ArrayFacts, plan: ArrayPlan | None, reason: str, *, dropped: bool) -> DatasetPreview:
    stored = str(dataset.storage.pipeline)
    return DatasetPreview(
        path=path,
        action=_action(plan, dropped=dropped),
        reason=reason if plan is None else "",
        dtype=dataset.type.text,
        shape=dataset.shape,
        source_pipeline=stored,
        source_chunks=dataset.storage.chunk_shape,
        pipeline=stored if plan is None or isinstance(plan, Copy) else str(plan.requested),
        chunks=dataset.storage.chunk_shape if plan is None else plan.chunk_shape,
        bound=0.0 if plan is None else plan.unpacked_bound,
        relative_bound=None if plan is None else plan.relative_bound,
        notes=() if plan is None else tuple(planned_notes(plan, dataset.shape)),
        packing=None if plan is None else plan.packing,
        tolerance=None if plan is None else plan.tolerance,
        require="" if plan is None or plan.required is None else str(plan.required),
    )


def prove(
    store: Store,
    planning: Planning,
    plans: Mapping[str, ArrayPlan],
    written: Mapping[str, Written],
    transaction: Transaction,
    report: Progress,
    threads: int,
    damaged: Collection[str] = (),
) -> tuple[Repacked, ...]:
    """Compare the planned datasets of a written target with those of the source.

    Datasets without a plan are also compared, unless they were copied as stored or left out. No other program reads
    the `damaged` ones, which have the stored bytes of the source.
    """
    by_objects = planning.copies_objects_of(store)
    source = planning.datasets
    results = []
    small = SmallArrays()
    with open_packed(transaction.path) as out:
        # A copy by objects has the same paths: its other objects need not be found.
        stores = None if by_objects else comparison_of(store, out)
        counterpart = stores.counterpart if stores else out.array
        others = _anew_without_plan(planning, plans, out, stores)
        repeated = _repeated(store, stores, (*plans, *others))
        count = len(plans) + len(others) + len(repeated)
        together = f"verifying {plural(count, 'dataset')}"
        for number, path in enumerate((*plans, *others), 1):
            step = Step(f"verifying {path}", number, count, together)
            before, after, plan = source[path], counterpart(path), plans.get(path)
            if after is None:
                raise BoundError(f"{path}: is not in the target").at(path=transaction.target)
            if stores:
                before, after = stores.as_read(path, before, after)
            with located(path=transaction.target), reading(store.path, out.path, dataset=path):
                witness = path not in damaged and small.takes(before, after)
                if plan is None:
                    verify_kept(path, before, after, partial(report, step), threads, witness=witness)
                elif isinstance(plan, Copy):
                    results.append(_check_copied(plan, before, after, report, step, threads, witness=witness))
                else:
                    result = _check_written(plan, before, after, written[path], report, step, threads, witness=witness)
                    results.append(result)
        for number, (path, first) in enumerate(repeated.items(), count - len(repeated) + 1):
            step = Step(f"verifying {path}", number, count, together)
            original, after = counterpart(first), counterpart(path)
            if original is None or after is None:
                raise BoundError(f"{path}: is not in the target").at(path=transaction.target)
            with located(path=transaction.target), reading(out.path, dataset=path):
                verify_kept(path, original, after, partial(report, step), threads)
    return tuple(results)


def _anew_without_plan(
    planning: Planning, plans: Mapping[str, ArrayPlan], out: Store, stores: StoreComparison | None
) -> list[str]:
    """Return the paths of datasets that are written anew although they have no plan.

    Parameters
    ----------
    planning, plans
        The planning of a file, and the plans of what its target has.
    out
        The target.
    stores
        The comparison of source and target; None if the target is a copy by objects.
    """
    source = planning.datasets
    paths = [path for path in source if path not in plans and path not in planning.dropped]
    if stores is None:  # others than those whose values were taken in are copied as stored
        paths = [path for path in paths if source[path].storage.layout in ELSEWHERE]
        paths = [path for path in paths if source[path].type.dtype is not None]
        paths = [path for path in paths if out.array(path).storage.layout not in ELSEWHERE]
    else:  # a companion is compared as another array's missing values
        paths = [path for path in paths if path not in stores.companions]
    return [path for path in paths if not source[path].marks.is_bare_dimension]


def _repeated(store: Store, stores: StoreComparison | None, paths: Collection[str]) -> dict[str, str]:
    """Return the other paths at which a target has copies of datasets, with those by which these are verified."""
    if stores is None:
        return {}
    verified = {store.first_path(path): path for path in paths}
    repeated = ((path, verified[first]) for path, first in stores.repeated().items() if first in verified)
    return {path: first for path, first in repeated if path != first}


def damage_in(
    planning: Planning, written: Collection[str], report: Progress, threads: int, *, by_objects: bool
) -> tuple[Damage, ...]:
    """Return the datasets of a target that have chunks as they are stored in the source, some of them damaged.

    All others were decoded to be written. A copy by objects has the stored bytes of all datasets that were not written.
    """
    plans = planning.plans
    paths = [path for path in planning.datasets if path not in written and path not in planning.dropped]
    paths = [path for path in paths if by_objects or (path in plans and isinstance(plans[path], Copy))]
    together = f"decoding {plural(len(paths), 'dataset')} copied as stored"
    damaged = []
    for number, path in enumerate(paths, 1):
        step = Step(f"decoding {path}", number, len(paths), together)
        if reason := damage_of(planning.datasets[path], partial(report, step), threads):
            damaged.append(Damage(path, reason))
    return tuple(damaged)


def _check_copied(
    plan: ArrayPlan,
    source: StoredArray,
    target: StoredArray,
    report: Progress,
    step: Step,
    threads: int,
    *,
    witness: bool,
) -> Repacked:
    if target.storage.has_own_bytes:
        verify_kept(plan.path, source, target, partial(report, step), threads, witness=witness)
        masks = source.chunk_index().masks
    else:
        masks = verify_copied(plan, source, target, partial(report, step), threads, witness=witness)
    before, after = source.companion, target.companion
    if before and after:
        # Compare the companion's values, not its bytes, because it may have its own recipe.
        flags = Recode(after.path, Pipeline(), np.dtype(np.uint8), plan.chunk_shape)
        verify(flags, before, after, partial(report, step), threads)
    bounded = plan.pipeline.bounded is not None
    return Repacked(
        **_facts(plan, source, target, recorded_filters(plan, target)),
        largest_error=0.0,
        chunks=len(masks),
        lossless_chunks=int(np.count_nonzero(masks & 1)) if bounded else 0,
        notes=(*plan.notes, *reader_note(target)),
        copied=True,
    )


def _check_written(
    plan: ArrayPlan,
    source: StoredArray,
    target: StoredArray,
    written: Written,
    report: Progress,
    step: Step,
    threads: int,
    *,
    witness: bool,
) -> Repacked:
    stored = plan.source_of(source)
    verified = verify(plan, stored, target, partial(report, step), threads, written, witness=witness)
    if plan.codes is None:
        error, worst = plan.in_units(verified.largest_error), verified.worst
        measures = _measures(plan, source, target, verified, report, threads)
    else:
        packed = cast("PackedArray", stored)
        error, worst = max(written.packing_error, packed.largest_error), packed.worst
        measures = _measures_of_packing(plan, source, target, report, threads)
    partial_count = count_partial(plan, target)
    filters = recorded_filters(plan, target)
    notes = written_notes(plan, source, target, written.outcome, partial_count, filters[1])
    return Repacked(
        **_facts(plan, source, target, filters),
        **written.outcome.counts(),
        largest_error=error,
        notes=(*plan.notes, *notes, *measures_note(plan, measures)),
        read_by_hdf5=verified.read_by_library,
        reused_chunks=written.reused_chunks,
        lossless_for_growth=partial_count,
        measures=measures,
        worst=worst,
    )


def _measures(
    plan: ArrayPlan, source: StoredArray, target: StoredArray, verified: Verified, report: Progress, threads: int
) -> dict[str, float | None]:
    """Return the required measures of a whole dataset, whose chunks are proven."""
    values = plan.reached(verified.measured, all_stored=verified.all_stored)
    if words := [word for word in plan.measures if word in FIELD_WORDS and word not in values]:
        step = Step(f"measuring fields of {plan.path}", 1, 1)
        fields = measured_fields(plan, source, target, words, partial(report, step), threads).by_word
        values |= {word: fields[word] for word in words}
    return values


def _measures_of_packing(
    plan: ArrayPlan, source: StoredArray, target: StoredArray, report: Progress, threads: int
) -> dict[str, float | None]:
    """Return the required measures of a packed dataset, whose values are compared unpacked."""
    if plan.codes is None or plan.codes.asked is None or plan.required is None or not plan.required.measures:
        return {}
    before = in_units_of(source)
    dtype = float_type(source)
    after, marks = unpacked(target, plan.codes, dtype), [dtype.type(mark) for mark in marks_of(source) if mark == mark]
    model = Recode(
        plan.path,
        Pipeline(),
        dtype,
        plan.chunk_shape,
        required=plan.required,
        steps=(RoundStep(plan.codes.asked, source.shape),),
        checks=Checks(missing=Missing(tuple(marks))),
    )
    step = Step(f"measuring {plan.path}", 1, 1)
    measured = measured_pairs(model, before, after, partial(report, step), threads)
    return _measures(model, before, after, Verified(0.0, 0, measured), report, threads)


def _facts(
    plan: ArrayPlan, source: StoredArray, target: StoredArray, filters: tuple[Pipeline, Pipeline]
) -> dict[str, Any]:
    """Return the fields of a result that all datasets have, with the filters of `recorded_filters`."""
    recorded, left_out = filters
    facts = {
        "path": plan.path,
        "pipeline": str(recorded),
        "left_out": str(left_out) if left_out.stages else "",
        "nbytes": array_nbytes(source),
        "source_nbytes": source.stored_nbytes,
        "target_nbytes": target.stored_nbytes,
        "bound": plan.unpacked_bound,
        "chunk_shape": plan.chunk_shape,
        "packing": plan.packing,
        "relative_bound": plan.relative_bound,
        "tolerance": plan.tolerance,
        "require": "" if plan.required is None else str(plan.required),
    }
    if target.companion is None:
        return facts
    return facts | {"missing_mask": target.companion.path, "missing_mask_nbytes": target.companion.stored_nbytes}


def refuse_missed(plans: Mapping[str, ArrayPlan], results: Iterable[Repacked]) -> None:
    """Raise BoundError for missed measures of whole datasets, with the requested and the reached value of each."""
    changed = (result for result in results if result.largest_error and result.path in plans)
    _refuse({result.path: _missed(plans[result.path], result.measures) for result in changed})


def refuse_missed_early(plan: ArrayPlan, source: StoredArray, written: Written) -> None:
    """Raise the same error for a dataset that is written but not yet read again, if already known."""
    measures = reached_while_writing(plan, source, written) if written.outcome.largest_error else {}
    _refuse({plan.path: _missed(plan, measures)})


def _missed(plan: ArrayPlan, measures: Mapping[str, float | None]) -> list[str]:
    """Return a text for each measure of changed values that is missed."""
    asked = {} if plan.required is None else plan.required.measures
    return [
        f"{plan.path}: expected {word} of at {'most' if word in AT_MOST else 'least'} {asked[word]!r}, reached"
        f" {_text(value)} with {plan.requested}"
        for word, value in measures.items()
        if word in asked and is_missed(word, asked[word], value)
    ]


def _refuse(missed: Mapping[str, Sequence[str]]) -> None:
    if texts := [text for own in missed.values() for text in own]:
        raise BoundError(
            f"{'; '.join(texts)}: nothing was kept: take filters that lose less, such as a smaller accuracy of zfp or"
            " a rounding to more bits, or require less"
        ).at(dataset=next(path for path, own in missed.items() if own))


def _text(value: float | None) -> str:
    return "none, since it is not defined for such values" if value is None else f"{value:.9g}"
