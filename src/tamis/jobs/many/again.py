"""Which files of a run have to be made, and why again, by the records about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tamis.jobs.many.listing import SourceFile
from tamis.jobs.many.prepared import PreparedRun
from tamis.jobs.many.state import Known, State
from tamis.jobs.many.task import FolderOptions
from tamis.safety import Identity, nbytes_of
from tamis.stores import Places


def why_again(
    file: SourceFile, known: Known | None, options: FolderOptions, places: Places, *, packing: str | None = None
) -> str | None:
    """Return why a file has to be made although there is a record of it; None if it is done, empty without a record.

    `packing` is the key of the ranges of packed variables, by default that of the options.
    """
    if known is None or known.action in ("failed", "replacing"):
        return ""
    if file.is_read and known.recipe != options.key:
        return "other filters, chunks or options were requested"
    if file.is_read and options.repack.witness and not known.has_witness:
        return f"the witness {options.repack.witness} has not seen the target"
    # What was replaced would lose more values: it keeps its packing.
    if file.is_read and not options.replace and known.packing != (options.packing_key if packing is None else packing):
        return "the ranges of packed variables are larger now"
    target = Path(options.folder, file.target)
    try:
        if nbytes_of(target) != known.target_nbytes:
            return "the target was changed"
    except FileNotFoundError:
        return "the target is gone"
    if any(places.target_of(path) is not None for path in known.other_files):
        return "a file that the target leads to is now one of the run"
    if not options.replace and not all(item.is_unchanged() for item in known.taken_in):
        return "a file that the target has taken in was changed"
    identity = Identity.of(file.source)
    if options.replace:
        return None if identity.mtime_ns == known.identity.mtime_ns else "the file was changed"
    return None if identity == known.identity else "the source was changed"


def is_as_made(target: Path, done: Known | None) -> bool:
    """Return whether a target has the size that a run recorded for it."""
    return done is not None and target.exists() and nbytes_of(target) == done.target_nbytes


def done_test(run: PreparedRun, *, packed: bool = False) -> Callable[[SourceFile], bool]:
    """Return a function that says whether an earlier run made a file as this one would.

    If `packed`, only files in recorded ranges of values count.
    """
    state, options = State(run.options.folder), run.options
    places = Places.of_files(run.targets())
    state.refresh()

    def is_done(file: SourceFile) -> bool:
        known = state.last(file.target)
        if known is None or (packed and not known.packing) or known.recipe != options.key:
            return False
        return why_again(file, known, options, places, packing=known.packing) is None

    return is_done
