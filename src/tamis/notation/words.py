"""Stored filters in words, as `inspect` shows them."""

from __future__ import annotations

import math

from tamis import zfp
from tamis.errors import ParameterError, StreamError
from tamis.filters import BY_NAME, Deflate, Filter, Fletcher32, Shuffle, StoredZfp, Zfp
from tamis.filters.zfp import is_stored

_NAMES = {known.id: name for name, known in BY_NAME.items()} | {
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    307: "bzip2",
    32000: "lzf",
    32001: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32015: "zstd",
    32024: "sz3",
    32026: "blosc2",
    32028: "sperr",
}


def typed(number: int, values: tuple[int, ...]) -> Filter | None:
    """Return the filter that parameters in a file stand for, where tamis has a type for it.

    Raises
    ------
    StreamError, ParameterError
        If the parameters are damaged.
    """
    if number == Zfp.id:
        return StoredZfp.parse(values).filter if is_stored(values) else Zfp.from_requested(values)
    if number == Shuffle.id:
        return Shuffle()
    if number == Deflate.id and values:
        return Deflate(values[0])
    if number == Fletcher32.id:
        return Fletcher32()
    return None


def in_words(number: int, values: tuple[int, ...], name: str = "") -> str:
    """Say what a filter in a file is and does."""
    try:
        known = typed(number, values)
        if known is None:
            return f"{_NAMES.get(number) or name or 'filter'} [{number}] {','.join(map(str, values))}".rstrip()
        if not isinstance(known, Zfp):
            return str(known)
        if not is_stored(values):
            return f"{known} as requested, not set up by the filter: chunks are stored unfiltered"
        stored = StoredZfp.parse(values)
        order = ", written on a machine of the other byte order" if stored.swapped else ""
        return f"zfp {_mode_in_words(known.mode)} ({stored.versions}{order})"
    except (ParameterError, StreamError) as error:
        return f"{_NAMES.get(number, name)} [{number}], not readable: {error}"


def _mode_in_words(mode: zfp.Mode) -> str:
    match mode:
        case zfp.Accuracy(tolerance):
            return f"accuracy, effective tolerance 2^{round(math.log2(tolerance))} = {tolerance:g}"
        case zfp.Rate(rate):
            return f"rate, {rate:g} bits per value"
        case zfp.Precision(precision):
            return f"precision, {precision} bit planes"
        case zfp.Reversible():
            return "reversible (lossless)"
    return f"expert, {mode}"
