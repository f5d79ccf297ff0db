"""What the result of a repack says of a dataset beside its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.formatting import percent_text, plural, shape_text, size_text
from tamis.hdf5.companions import Companion, companion_of
from tamis.hdf5.rewriting import Plan, Written, better_chunks, compresses

if TYPE_CHECKING:
    import h5py


GROWN = "it would take more room than in the source: name it to store it so, or use --larger"
"""Why a dataset that a pattern matches is kept."""


def written_notes(plan: Plan, source: h5py.Dataset, target: h5py.Dataset, written: Written) -> tuple[str, ...]:
    """Say which chunks are stored otherwise than the pipeline says, why, and what may help."""
    companion = companion_of(target)
    notes = (
        _growth_note(plan, source, target, companion)
        + _skipped_notes(written)
        + _missing_note(written, companion)
        + _range_note(plan, written)
    )
    return notes + _advice(plan, source, written)


def _growth_note(
    plan: Plan, source: h5py.Dataset, target: h5py.Dataset, companion: Companion | None
) -> tuple[str, ...]:
    """Say that a dataset that should have become smaller takes more room than in its source."""
    before, after = source.id.get_storage_size(), target.id.get_storage_size()
    after += 0 if companion is None else companion.dataset.id.get_storage_size()
    if after <= before or not compresses(plan.pipeline):
        return ()
    return (f"larger than in the source: {size_text(before)} became {size_text(after)}",)


def range_text(plan: Plan) -> str:
    """Write the range of valid stored values; empty where there is no limit."""
    limits = (("from", plan.missing.low), ("to", plan.missing.high))
    return " ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


def _skipped_notes(written: Written) -> tuple[str, ...]:
    return tuple(
        f"{count} of {written.chunks} chunks are stored without {text}, which could not be applied to them"
        for text, count in written.skipped.items()
    )


def _range_note(plan: Plan, written: Written) -> tuple[str, ...]:
    if not written.lossless_for_range:
        return ()
    text = (
        f"{written.lossless_for_range} of {written.chunks} chunks are stored without zfp, which would move values"
        f" across the limits of the valid range ({range_text(plan)})"
    )
    if 2 * written.lossless_for_range > written.chunks:
        text += ": use filters that keep zeros and signs, such as shuffle|deflate(4)"
    return (text,)


def _missing_note(written: Written, companion: Companion | None) -> tuple[str, ...]:
    if not written.missing_values:
        return ()
    if companion is not None:
        return (
            f"{plural(written.missing_values, 'missing value')} kept in {companion.dataset.name}"
            f" ({size_text(companion.dataset.id.get_storage_size())}): tamis.open restores each of them; other readers"
            " see invented values there",
        )
    return (
        f"{plural(written.missing_values, 'missing value')} kept exactly; {written.lossless_for_missing} of"
        f" {plural(written.chunks, 'chunk')} stored without zfp because of them",
    )


def _advice(plan: Plan, source: h5py.Dataset, written: Written) -> tuple[str, ...]:
    if not plan.recoded or 2 * written.lossless_chunks <= written.chunks:
        return ()
    shape = shape_text(plan.chunks)
    text = (
        f"{written.lossless_chunks} of {written.chunks} chunks are stored without zfp, which cannot keep them within"
        " the bound"
    )
    if 2 * written.lossless_for_range > written.lossless_chunks:
        return ()  # the note of the range says what to do
    if 2 * written.lossless_for_missing <= written.lossless_chunks:
        return (f"{text}: is it too small for such values? If not, chunks smaller than {shape} (-c) may help",)
    text += " next to missing values"
    # With one already, what is left are NaN of other bits, or valid values that would become missing ones.
    companion = "" if plan.flags else "; with --missing companion, for tamis.open alone, all could go through zfp"
    if (better := better_chunks(plan, source)) is None:
        return (f"{text}; chunks smaller than {shape} would not help much{companion}",)
    chunks, left = better
    return (
        f"{text}: chunks smaller than {shape} help; with -c '{plan.path}:{shape_text(chunks)}' about"
        f" {percent_text(left)} of the values would be stored without zfp{companion}",
    )
