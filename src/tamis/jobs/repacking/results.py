"""What `tamis.repack` did, as typed objects and as JSON; docs/repack.md describes the JSON, which is stable."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any

from tamis.cf import Packing

SCHEMA = 1
"""Number of the JSON schema: it changes where a key goes away or changes its meaning, not where one is added."""


@dataclass(frozen=True, slots=True)
class Repacked:
    """What became of one dataset.

    Parameters
    ----------
    path
        In both files.
    pipeline
        Through which it was stored; the text of a pipeline.
    nbytes, source_nbytes, target_nbytes
        Bytes of the values, and bytes that they take in source and target.
    bound
        Largest absolute error that was allowed, in units of the variable; 0 for lossless; None where the mode has none.
    largest_error
        Largest absolute error of what the stored bytes decode to, in the same units.
    chunks, lossless_chunks
        Chunks written, and those of them that were stored without zfp.
    notes
        What else a reader of the result should know.
    chunk_shape
        Slowest axis first.
    missing_values
        Missing values in the chunks, each of which is what it was; 0 where nothing is lossy, and nobody counted.
    lossless_for_missing
        Chunks stored without zfp that hold missing values.
    copied
        Whether its chunks were copied as they are stored, since they had these filters, type and shape already.
    read_by_hdf5
        Chunks that HDF5 itself was seen to read as tamis does.
    companion
        Path of the dataset that says where values are missing; empty where there is none.
    companion_nbytes
        Bytes that it takes in the target.
    reused_chunks
        Chunks taken over from a run that was interrupted.
    lossless_for_range
        Chunks without missing values that were stored without zfp, which would have made valid values invalid or
        invalid ones valid.
    packing
        How stored values become those in units of the variable, which `pipeline` does not use; None where they are in
        these units.
    """

    path: str
    pipeline: str
    nbytes: int
    source_nbytes: int
    target_nbytes: int
    bound: float | None
    largest_error: float
    chunks: int
    lossless_chunks: int
    notes: tuple[str, ...]
    chunk_shape: tuple[int, ...] = ()
    missing_values: int = 0
    lossless_for_missing: int = 0
    copied: bool = False
    read_by_hdf5: int = 0
    companion: str = ""
    companion_nbytes: int = 0
    reused_chunks: int = 0
    lossless_for_range: int = 0
    packing: Packing | None = None

    @property
    def ratio(self) -> float:
        """Bytes of the values for each byte in the target, those of the companion included."""
        return self.nbytes / max(self.target_nbytes + self.companion_nbytes, 1)

    def to_dict(self) -> dict[str, Any]:
        """Give what JSON holds; an error that is infinite is null there."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)} | {"ratio": self.ratio}


@dataclass(frozen=True, slots=True)
class RepackResult:
    """What `repack` did.

    Parameters
    ----------
    source, target
        Paths of the files.
    source_nbytes, target_nbytes
        Their sizes.
    datasets
        Those that a recipe was for; everything else was copied as it was.
    kept
        Datasets that a pattern matched but that cannot take the filters, with the reason.
    seconds
        Time taken, verification included.
    notes
        What the user should know about runs that were interrupted.
    """

    source: str
    target: str
    source_nbytes: int
    target_nbytes: int
    datasets: tuple[Repacked, ...]
    kept: tuple[tuple[str, str], ...]
    seconds: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give what JSON holds."""
        return {
            "schema": SCHEMA,
            "source": self.source,
            "target": self.target,
            "source_nbytes": self.source_nbytes,
            "target_nbytes": self.target_nbytes,
            "datasets": [each.to_dict() for each in self.datasets],
            "kept": kept_dicts(self.kept),
            "seconds": self.seconds,
            "notes": [*self.notes],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Write it as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """Turn tuples into lists, and numbers that JSON has not into null."""
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, Packing):
        return value.to_dict()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def kept_dicts(kept: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    """Name what stands in the pairs of `RepackResult.kept`."""
    return [{"path": path, "reason": reason} for path, reason in kept]
