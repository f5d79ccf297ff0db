"""What a run would make of each file, without making it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tamis.errors import TamisError
from tamis.jobs.many.again import why_again
from tamis.jobs.many.listing import SourceFile, left_out_notes
from tamis.jobs.many.look_ahead import few_of, look_at
from tamis.jobs.many.prepared import PreparedRun
from tamis.jobs.many.result import FileAction, FilePreview, FolderPreview
from tamis.jobs.many.state import State
from tamis.jobs.many.task import FolderOptions, what_is_lost, why_refused
from tamis.jobs.repack import needed_files
from tamis.stores import OtherFile, Places, format_of

if TYPE_CHECKING:
    from tamis.rewrite import Warned


def preview_of(run: PreparedRun) -> FolderPreview:
    """Return what a run would make."""
    failed = [FilePreview(path, source, "refuse", text, 0) for path, (source, text) in run.listing.failed.items()]
    places = Places.of_files(run.targets())
    actions = _actions(run, places)
    found = look_at(_to_repack(run, actions), run.options.repack)
    actions |= {target: ("refuse", reason) for target, reason in found.refused.items()}
    rows = [_row_of(file, *actions[file.target], run.options, places) for file in run.files]
    left_out = tuple(run.listing.left_out)
    notes = tuple(left_out_notes(left_out, may_copy=not run.options.replace))
    return FolderPreview(run.options.folder, (*rows, *failed), notes, found.warnings, left_out)


def coarse_bounds_of(run: PreparedRun) -> tuple[Warned, ...]:
    """Return the warnings about the bounds of a recipe for three of the files that a run repacks."""
    files = _to_repack(run, _actions(run, Places.of_files(run.targets())))
    return look_at(few_of(files), run.options.repack).warnings


def _to_repack(run: PreparedRun, actions: Mapping[str, tuple[FileAction, str]]) -> list[SourceFile]:
    return [file for file in run.files if file.is_read and actions[file.target][0] == "repack"]


def _actions(run: PreparedRun, places: Places) -> dict[str, tuple[FileAction, str]]:
    """Return by target what a run does with each file, and why, without reading it."""
    state = State(run.options.folder)
    state.refresh()
    return {file.target: _action_of(file, state, run.options, places) for file in run.files}


def _action_of(file: SourceFile, state: State, options: FolderOptions, places: Places) -> tuple[FileAction, str]:
    known, target = state.last(file.target), os.path.join(options.folder, file.target)
    # The ranges of packed variables are not known before all values are read.
    reason = why_again(file, known, options, places, packing=None if known is None else known.packing)
    if reason is None:
        return "done", ""
    refusal, waiting = why_refused(file, options)
    if refusal:
        return "refuse", refusal
    if reason == "" and known is not None and known.action == "failed":
        reason = f"failed before: {(state.record(file.target).error or {}).get('message', '')}"
    elif reason == "" and not (options.replace or options.repack.overwrite) and os.path.exists(target):
        reason = "the target exists: it is refused unless tamis made it from this source"
    reason = "; ".join(filter(None, (reason, waiting)))
    return "repack" if file.is_read else "copy", reason


def _row_of(file: SourceFile, action: FileAction, reason: str, options: FolderOptions, places: Places) -> FilePreview:
    if action == "repack" and (lost := what_is_lost(file, options)):
        reason = f"{reason}; {lost}" if reason else lost
    target, kind = os.path.join(options.folder, file.target), format_of(file.source)
    others = _others_of(file, target, options, places) if kind == "HDF5" and action in ("repack", "done") else ()
    return FilePreview(file.target, file.source, action, reason, file.nbytes, kind, others)


def _others_of(file: SourceFile, target: str, options: FolderOptions, places: Places) -> tuple[OtherFile, ...]:
    """Return the files that a target would lead to; none if its source cannot be read, which the run says."""
    try:
        return needed_files(file.source, target, options.repack, places)
    except TamisError:
        return ()
