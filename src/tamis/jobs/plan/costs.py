"""What filters cost, in classes: the same on each machine and in each run, so that plan chooses the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tamis.filters import Szip, Zfp

if TYPE_CHECKING:
    from tamis.pipeline import Pipeline


class Cost(NamedTuple):
    """Megabytes of values that one thread writes, with the proof, and reads in a second: powers of two."""

    write_mbs: int
    read_mbs: int

    @property
    def effort(self) -> float:
        """Seconds to write and to read a megabyte."""
        return 1 / self.write_mbs + 1 / self.read_mbs


# Printed by `python benchmarks/codecs.py --costs`: rounded so far that another machine gives nearly the same.
COSTS: Mapping[str, Cost] = {
    "shuffle|deflate(4)": Cost(32, 1024),
    "shuffle|deflate(9)": Cost(16, 1024),
    "shuffle|zstd(9)": Cost(64, 2048),
    "shuffle|zstd(3)": Cost(256, 2048),
    "shuffle|lz4(0)": Cost(512, 4096),
    "bitshuffle(compressor=zstd,level=3,block=0)": Cost(128, 1024),
    "shuffle|zstd(19)": Cost(2, 2048),
    "blosc2(compressor=zstd,level=9,shuffle=bytedelta)": Cost(2, 128),
    "zfp(reversible)": Cost(128, 1024),
    "zfp": Cost(256, 1024),
    "round|shuffle|deflate(4)": Cost(32, 1024),
    "round|shuffle|deflate(9)": Cost(8, 1024),
    "round|shuffle|zstd(9)": Cost(32, 1024),
    "round|shuffle|zstd(3)": Cost(64, 1024),
    "round|shuffle|lz4(0)": Cost(256, 2048),
    "round|bitshuffle(compressor=zstd,level=3,block=0)": Cost(64, 256),
    "round|shuffle|zstd(19)": Cost(2, 1024),
    "round|blosc2(compressor=zstd,level=9,shuffle=bytedelta)": Cost(2, 128),
    "pack|szip": Cost(1024, 4096),
    "pack|bzip2(9)": Cost(8, 32),
    "pack|shuffle|deflate(4)": Cost(128, 1024),
    "pack|shuffle|deflate(9)": Cost(16, 1024),
    "pack|shuffle|zstd(9)": Cost(64, 2048),
    "pack|shuffle|zstd(3)": Cost(512, 2048),
    "pack|shuffle|zstd(19)": Cost(4, 1024),
    "pack|blosc2(compressor=zstd,level=9,shuffle=bytedelta)": Cost(2, 128),
    "sperr": Cost(16, 32),
    "sz3": Cost(8, 64),
    "pcodec(8)": Cost(32, 1024),
    "blosc(compressor=zstd,level=5,shuffle=byte)": Cost(32, 2048),
    "blosc(compressor=zstd,level=5,shuffle=bit)": Cost(64, 1024),
    "round|pcodec(8)": Cost(64, 1024),
    "round|blosc(compressor=zstd,level=5,shuffle=byte)": Cost(32, 1024),
    "round|blosc(compressor=zstd,level=5,shuffle=bit)": Cost(64, 1024),
    "pack|pcodec(8)": Cost(64, 1024),
    "pack|blosc(compressor=zstd,level=5,shuffle=byte)": Cost(64, 2048),
    "pack|blosc(compressor=zstd,level=5,shuffle=bit)": Cost(128, 2048),
}


def cost_class(filters: Pipeline) -> Cost:
    """Return the class of filters that plan measures."""
    return COSTS[kind_of(filters)]


def kind_of(filters: Pipeline) -> str:
    """Return filters as the table has them, without bounds, and szip without the settings that plan chooses."""
    first = filters.bounded
    if isinstance(first, Zfp) and first.error_bound == 0:
        return "zfp(reversible)"
    if first is not None:
        return first.name
    if filters.rounding is None:
        return str(filters)
    if isinstance(filters.filters[0], Szip):
        return "pack|szip"
    return f"{'round' if filters.rounding.in_place else 'pack'}|{filters.without_rounding}"
