"""Make the chunks of existing files readable as Zarr, through references to them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlparse

from tamis.arguments import FLAG, NAMES, PATH, PATHS, TEXT
from tamis.errors import FileError, ParameterError
from tamis.formats import open_store
from tamis.formats.references import KINDS, check_target, manifest_store, write_references
from tamis.formats.zarr import OF_TAMIS, check_installed
from tamis.formatting import plural, printable
from tamis.jobs.result import DatasetsResult, Fields, Part, Table
from tamis.remote import Address, located_path, place_of
from tamis.safety import reading
from tamis.stores import is_references, is_zarr

if TYPE_CHECKING:
    from tamis.formats.references import References


@dataclass(frozen=True, slots=True)
class ExportedArray(Fields):
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
    notes
        Links and attributes that are left out, because they mean nothing outside the file.
    """

    sources: tuple[str, ...]
    target: str
    kind: str
    datasets: tuple[ExportedArray, ...]
    notes: tuple[str, ...] = ()

    def _parts(self) -> Iterator[Part]:
        sources = self.sources[0]
        if len(self.sources) > 1:
            sources += f" and {len(self.sources) - 1} other files"
        yield "file", printable(f"{self.target}: {self.kind} references to {sources}")
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
        yield from (("note", note) for note in self.notes)
        names = sorted({name for array in self.datasets for name in array.codecs} & OF_TAMIS)
        if names:
            yield "note", f"readers need tamis (pip install 'tamis[zarr]') for {' and '.join(names)}"


def export(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    kind: str = "kerchunk",
    *,
    concat: str | None = None,
    url: str | None = None,
    drop: Collection[str] = (),
    overwrite: bool = False,
) -> ExportResult:
    """Write references to the chunks of files, through which Zarr reads the existing files.

    No values are copied, except chunks that references cannot express. The codecs of each array are first tried on some
    of its chunks. Missing values in missing-value masks are not restored.

    Parameters
    ----------
    sources
        Path of an HDF5 or netCDF-4 file, or of several.
    target
        Path of the JSON file (kerchunk), or of the new folder of a repository (icechunk) or of manifests.
    kind
        ``"kerchunk"``, ``"icechunk"``, or ``"zarr-manifest"`` for chunk manifests in JSON.
    concat
        Name of the dimension along which several files are joined, in the order of `sources`.
    url
        Address of the folder in which readers find the files, such as ``s3://bucket/run1``; by default their present
        folder.
    drop
        Names or patterns of arrays to leave out.
    overwrite
        Replace an existing JSON file.

    Returns
    -------
    ExportResult
        All arrays, with their codecs.

    Raises
    ------
    FileError
        If some arrays cannot be referenced (the error names all), files do not fit together, or the target cannot be
        written; nothing is left behind.
    ParameterError
        If an argument is wrong.
    MissingFilterError
        If zarr, numcodecs or icechunk is not installed; names the extra.
    """
    PATHS.check("sources", sources)
    PATH.check("target", target)
    TEXT.check("kind", kind)
    TEXT.check_optional("concat", concat)
    TEXT.check_optional("url", url)
    NAMES.check("drop", drop)
    FLAG.check("overwrite", overwrite)
    paths = [sources] if isinstance(sources, str | bytes | os.PathLike) else [*sources]
    if kind not in KINDS:
        raise ParameterError(f"expected kind to be one of {', '.join(KINDS)}, got {kind!r}")
    if not paths:
        raise ParameterError("expected at least one file, got none")
    if len(paths) > 1 and concat is None:
        raise ParameterError(f"{len(paths)} files need the dimension along which they are joined: --concat, or concat=")
    check_installed(os.fsdecode(target), *((kind,) if kind == "icechunk" else ()))
    place = place_of(target)
    check_target(place, kind, overwrite=overwrite)
    with ExitStack() as stack, reading(*map(located_path, paths), only_damage=True):
        references = _references(paths, url, concat, drop, stack)
        message = f"references to {plural(len(paths), 'file')} by tamis export"
        write_references(references, place, kind, message, overwrite=overwrite)
        zarr_format = 2 if kind == "kerchunk" else 3
        arrays = tuple(
            ExportedArray(
                path,
                str(array.dtype),
                array.shape,
                array.chunk_shape,
                array.codecs.names(zarr_format),
                len(array.chunks),
                sum(map(len, array.inlined.values())),
            )
            for path, array in references.arrays.items()
        )
        notes = references.notes_in(zarr_format)
    return ExportResult(tuple(map(os.fsdecode, paths)), os.fsdecode(target), kind, arrays, notes)


class ReferenceParser:
    """A parser for VirtualiZarr: HDF5 and netCDF-4 files with all filters of tamis, including zfp.

    Pass it to ``virtualizarr.open_virtual_dataset(url, registry=…, parser=tamis.ReferenceParser())``. Chunks that skip
    filters are decoded correctly, or the array is refused.

    Parameters
    ----------
    group
        Path of the group to open; by default the root.
    drop_variables
        Names or patterns of arrays to leave out.
    """

    def __init__(self, group: str | None = None, drop_variables: Iterable[str] | None = None) -> None:
        TEXT.check_optional("group", group)
        NAMES.check_optional("drop_variables", drop_variables)
        self.group, self.drop_variables = group, () if drop_variables is None else tuple(drop_variables)

    def __call__(self, url: str, registry: Any) -> Any:
        """Return the ``ManifestStore`` of a local file."""
        TEXT.check("url", url)
        check_installed("tamis.ReferenceParser", "virtualizarr")
        from tamis.formats.references import references_of

        address = urlparse(url)
        if address.scheme not in ("", "file"):
            raise FileError(
                f"{url}: expected a local file, because tamis must read it: copy it here, and change its address in "
                f"the references later"
            )
        path = address.path if address.scheme else url
        with open_store(path) as store:
            references = references_of(store, store.model, Path(path).absolute().as_uri(), self.drop_variables)
            return manifest_store(references, registry, self.group)


def _references(
    paths: list[str | os.PathLike[str]], url: str | None, concat: str | None, drop: Collection[str], stack: ExitStack
) -> References:
    from tamis.formats.references import joined, references_of

    parts = []
    for path in paths:
        if is_zarr(place := located_path(path)) or is_references(place):
            raise FileError(
                f"{os.fsdecode(path)}: a Zarr store or references need no references: Zarr reads them as they are"
            ).at(path=path)
        store = stack.enter_context(open_store(path))
        if url is not None:
            address = f"{url.rstrip('/')}/{quote(place_of(path).name)}"
        else:
            address = str(place) if isinstance(place, Address) else Path(place).absolute().as_uri()
        parts.append(references_of(store, store.model, address, drop))
    return parts[0] if concat is None else joined(parts, concat)
