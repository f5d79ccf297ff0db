"""Find, correct and replace metadata of NCZarr stores whose shuffle claims elements of 0 bytes (D22)."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numcodecs
import numpy as np

from tamis.errors import FileError
from tamis.safety.library_errors import disk_text
from tamis.system.durability import sync_file, sync_folder

if TYPE_CHECKING:
    from tamis.formats.zarr.stored.array import ZarrArray
    from tamis.stores.protocols import Store, StoredArray

Json = dict[str, Any]

_LEFT_BEHIND = re.compile(r"\.(zarray|zmetadata)\.[0-9a-f]{8}\.tamis")
_CHECKED_CHUNKS = 3


@dataclass(frozen=True, slots=True)
class _Correction:
    """A metadata file with other content."""

    path: Path  # Path of the file
    before: bytes
    after: bytes
    arrays: tuple[str, ...]  # Keys of the corrected arrays in the store, such as ``g/TS``


def repair_shuffles(folder: Path, store: Store, *, dry_run: bool) -> list[StoredArray]:
    """Correct the shuffles of a store, and return the arrays that had a wrong one; see `tamis.repair`.

    `dry_run` changes nothing.
    """
    corrections = _corrections_of(folder)
    if corrections and not _is_by_netcdf(folder):
        raise FileError(
            f"{folder}: no sign that netCDF-C wrote this store: in stores of other writers, shuffle with "
            "elements of 0 bytes does nothing, and they are read correctly"
        ).at(path=folder)
    paths: dict[str, None] = {}
    for correction in corrections:
        for key in correction.arrays:
            own = store.first_path(f"/{key}") or next(iter(store.arrays))  # the folder may be an array itself
            paths[own] = None
            if correction.path.name == ".zarray":
                _check_correction(correction, cast("ZarrArray", store.array(own)))
    arrays = [store.array(own) for own in paths]
    if not dry_run:
        _remove_left_behind(folder)
        _replace_together(corrections)
    return arrays


def _is_by_netcdf(folder: Path) -> bool:
    """Return whether netCDF-C wrote a store, judging by attributes or files in the root."""
    if any((folder / name).is_file() for name in (".nczarr", ".nczgroup")):
        return True
    with suppress(FileNotFoundError):
        attributes = _parsed(folder / ".zattrs", (folder / ".zattrs").read_bytes())
        named = "nczarr" in str(attributes.get("_NCProperties", ""))
        return named or any(key.startswith(("_nczarr", "_NCZARR")) for key in attributes)
    return False


def _corrections_of(folder: Path) -> list[_Correction]:
    """Return the metadata files of a store with a wrong shuffle, corrected; none if there is nothing to repair."""
    corrections = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted({".zarray", ".zmetadata"} & set(names)):
            path = Path(parent, name)
            before = path.read_bytes()
            document = _parsed(path, before)
            arrays = []
            key = path.parent.relative_to(folder).as_posix()
            for inner, metadata in _arrays_in(document, key):
                if _correct(metadata, path):
                    arrays.append(inner)
            if arrays:
                corrections.append(_Correction(path, before, json.dumps(document).encode(), tuple(arrays)))
    return sorted(corrections, key=lambda correction: correction.path.name == ".zmetadata")


def _parsed(path: Path, content: bytes) -> Json:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: expected JSON: {error}").at(path=path) from error
    if not isinstance(document, dict):
        raise FileError(f"{path}: expected an object of JSON, got {type(document).__name__}").at(path=path)
    return document


def _arrays_in(document: Json, key: str) -> list[tuple[str, Json]]:
    """Return the metadata of arrays in a file, consolidated or not, by key."""
    if "metadata" not in document:
        return [(key, document)]
    inner = document["metadata"] if isinstance(document["metadata"], dict) else {}
    prefix = "" if key == "." else f"{key}/"
    return [
        (prefix + name.removesuffix("/.zarray"), metadata)
        for name, metadata in inner.items()
        if name.endswith("/.zarray") and isinstance(metadata, dict)
    ]


def _correct(metadata: Json, path: Path) -> bool:
    """Give each shuffle the size of values; return whether something changed."""
    codecs = [*(metadata.get("filters") or ()), *filter(None, [metadata.get("compressor")])]
    wrong = [
        position
        for position, codec in enumerate(codecs)
        if isinstance(codec, dict) and codec.get("id") == "shuffle" and not _is_size(codec.get("elementsize"))
    ]
    if wrong and wrong[-1] > 0:
        names = "|".join(str(codec.get("id")) for codec in codecs)
        raise FileError(
            f"{path}: expected shuffle as the first codec, got {names}: zarr-python shuffles whole values only, so no "
            f"element size is right: repack the store"
        ).at(path=path)
    for position in wrong:
        try:
            codecs[position]["elementsize"] = np.dtype(metadata["dtype"]).itemsize
        except (KeyError, TypeError) as error:
            raise FileError(f"{path}: expected the type of the values, got {metadata.get('dtype')!r}").at(
                path=path
            ) from error
    return bool(wrong)


def _is_size(value: Any) -> bool:
    return type(value) is int and value > 0


def _check_correction(correction: _Correction, array: ZarrArray) -> None:
    """Raise FileError unless numcodecs, with the corrected metadata, decodes chunks to the values that tamis reads."""
    metadata = json.loads(correction.after)
    configs = [*(metadata.get("filters") or ()), *filter(None, [metadata.get("compressor")])]
    reader = array.open_chunks()
    origins = [origin for origin, _ in reader.index.records()]
    for origin in origins[:: max(1, len(origins) // _CHECKED_CHUNKS)]:
        values, data = reader.values(origin), reader.stored(origin)[0]
        for config in reversed(configs):
            data = numcodecs.get_codec(config).decode(data)
        if bytes(np.ascontiguousarray(data).view(np.uint8)) != values.tobytes():
            raise FileError(
                f"{array.label}: chunk at {origin}: numcodecs and tamis read different values, so nothing is repaired"
            ).at(path=correction.path, dataset=array.path, chunk=origin)


def _replace_together(corrections: list[_Correction]) -> None:
    """Replace metadata files: all of them, or none.

    Each is replaced in one step, so a killed run leaves each array repaired or unchanged; the next run continues.
    """
    written: list[tuple[_Correction, Path]] = []
    replaced: list[_Correction] = []
    try:
        for correction in corrections:
            written.append((correction, _temporary(correction.path)))
            _write(written[-1][1], correction.after, correction.path)
        for correction, temporary in written:
            if correction.path.read_bytes() != correction.before:
                raise FileError(f"{correction.path}: the file changed during the repair").at(path=correction.path)
            os.replace(temporary, correction.path)
            replaced.append(correction)
    except OSError as error:
        for done in replaced:
            temporary = _temporary(done.path)
            _write(temporary, done.before, done.path)
            os.replace(temporary, done.path)
        if isinstance(error, FileError):
            raise
        place = written[-1][0].path if len(written) < len(corrections) else corrections[len(replaced)].path
        raise FileError(f"{place}: cannot be written: {disk_text(error)}").at(path=place) from error
    finally:
        for _, temporary in written:
            temporary.unlink(missing_ok=True)
    for parent in {correction.path.parent for correction in corrections}:
        sync_folder(parent)


def _remove_left_behind(folder: Path) -> None:
    """Remove the temporary files of killed runs."""
    for parent, _, names in os.walk(folder):
        for name in names:
            if _LEFT_BEHIND.fullmatch(name):
                Path(parent, name).unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.urandom(4).hex()}.tamis")


def _write(path: Path, content: bytes, like: Path) -> None:
    path.write_bytes(content)
    shutil.copymode(like, path)
    sync_file(path)
