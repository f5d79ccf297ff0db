"""The result of `tamis.export`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.formatting import printable
from tamis.jobs.result import SCHEMA, DatasetsResult, json_fields

if TYPE_CHECKING:
    from tamis.jobs.parts import Part


@dataclass(frozen=True, slots=True)
class ExportedArray:
    """References to one array.

    Parameters
    ----------
    path
        Path in the hierarchy.
    dtype, shape, chunk_shape
        Of the Zarr array.
    codecs
        Names of the codecs, in the order of encoding.
    referenced_chunks
        Number of chunks that are references.
    copied_nbytes
        Bytes of chunks that are copied, because references cannot express them.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    codecs: tuple[str, ...]
    referenced_chunks: int
    copied_nbytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return json_fields(self)

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.referenced_chunks} chunks by {', '.join(self.codecs) or 'no codecs'}")


@dataclass(frozen=True, slots=True)
class ExportResult(DatasetsResult[ExportedArray]):
    """Result of `tamis.export`.

    Parameters
    ----------
    sources
        Paths of the files.
    target
        Path of the target.
    kind
        ``kerchunk``, ``icechunk`` or ``zarr-manifest``.
    datasets
        All arrays.
    """

    sources: tuple[str, ...]
    target: str
    kind: str
    datasets: tuple[ExportedArray, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return {"schema": SCHEMA, **json_fields(self)}

    def _parts(self) -> Iterator[Part]:
        from tamis.jobs.parts import Table

        yield "file", printable(f"{self.target}: {self.kind} references to {_files(self.sources)}")
        header = ("dataset", "type", "shape", "chunks", "codecs", "references", "copied")
        rows = [
            (
                printable(array.path),
                array.dtype,
                " × ".join(map(str, array.shape)) or "scalar",
                " × ".join(map(str, array.chunk_shape)),
                "|".join(array.codecs),
                str(array.referenced_chunks),
                f"{array.copied_nbytes} B" if array.copied_nbytes else "",
            )
            for array in self.datasets
        ]
        yield Table([header, *rows], folded=(4,), right=(5, 6))
        if any("tamis.pipeline" in array.codecs or "h5z_zfp" in array.codecs for array in self.datasets):
            yield "note", "readers need tamis (pip install 'tamis[zarr]') for h5z_zfp and tamis.pipeline"


def _files(sources: tuple[str, ...]) -> str:
    return sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} other files"
