"""Add datasets to an existing netCDF-4 file or Zarr store: new steps of its variables, new variables and groups.

1. `tamis.xarray.appended_content` finds each variable of the datasets in the file (`tamis.xarray.existing`), which gets
   the encoding that it has there.
2. `tamis.xarray.appended_pieces` writes new values to files of their own, by `save_store`, which proves them: those
   that share chunks with old ones without loss, all others by the filters of the file.
3. A copy of the file takes their chunks as they are (`tamis.stores.extension`).
4. The copy is read: new values, old values beside them, old chunks; then xarray reads it, and it gets the name of the
   file.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xarray import Dataset

from tamis import _native
from tamis.arguments import TEXT
from tamis.arrays.grid import Region, grid_of
from tamis.arrays.reader import ArrayReader
from tamis.caller import warn_caller
from tamis.errors import BoundError, FileError, ParameterError, TamisError
from tamis.formats.registry import extender_of, open_store, target_form
from tamis.formatting import plural, printable, with_keywords
from tamis.jobs.progress import Progress
from tamis.jobs.repack.options import RepackOptions
from tamis.jobs.repack.result import Repacked, RepackResult
from tamis.jobs.witness.process import Key
from tamis.meaning.variables import HISTORY, with_line
from tamis.rounding import ERROR_BOUND
from tamis.safety.disk import Identity, nbytes_of
from tamis.safety.journal import marked
from tamis.safety.library_errors import disk_text
from tamis.safety.transaction import segments_of
from tamis.stores.first_bytes import zarr_format_of
from tamis.xarray.actual_range import ACTUAL_RANGE, range_of_both
from tamis.xarray.appended_content import Change, Content, lengths_of, sorted_content
from tamis.xarray.appended_pieces import Pieces, shifted
from tamis.xarray.dataset_store import attribute_forms, attribute_values
from tamis.xarray.earlier_loss import LOSS_ATTRIBUTES, record_of_both, with_earlier_losses
from tamis.xarray.existing import ExistingFile, same_value, short_text
from tamis.xarray.last_witness import Grown, check_extended
from tamis.xarray.packed_steps import IN_CODES, is_packed, limits_note
from tamis.xarray.saving import Encodings, SaveMode, check_arguments, save

if TYPE_CHECKING:
    from tamis.jobs.witness.look import Witnessed
    from tamis.stores.protocols import Store, StoredArray


def append_or_save(
    datasets: Mapping[str, Dataset],
    target: str | os.PathLike[str],
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    options: RepackOptions,
    progress: Progress | None,
    *,
    mode: SaveMode | None,
    append_dim: str | None,
) -> RepackResult:
    """Add datasets by the path of their group to a file or store, or save them if there is none.

    See ``Dataset.tamis.to_netcdf``.
    """
    check_arguments(target, encodings, unlimited_dims, options, progress)
    TEXT.check_optional("append_dim", append_dim)
    if mode not in (None, "w", "a"):
        raise ParameterError(f"expected mode to be 'w' or 'a', got {mode!r}")
    if mode == "w" and append_dim is not None:
        raise ParameterError(f"mode='w' writes a new file, and append_dim={append_dim!r} adds to one: leave one out")
    if options.overwrite:
        raise ParameterError("overwrite=True replaces a file, and mode='a' and append_dim keep it: leave one out")
    place = Path(os.fsdecode(target))
    if place.exists():
        return _append(datasets, place, encodings, unlimited_dims, options, progress, append_dim)
    unlimited_dims = _with_dimension(datasets, unlimited_dims, append_dim)
    return save(datasets, target, encodings, unlimited_dims, options, progress)


def _with_dimension(
    datasets: Mapping[str, Dataset], unlimited_dims: Collection[str] | None, append_dim: str | None
) -> Collection[str] | None:
    """Return the unlimited dimensions of a new file to which steps will be appended."""
    if append_dim is None:
        return unlimited_dims
    for dataset in datasets.values():
        if append_dim not in dataset.dims:
            continue
        known = dataset.encoding.get("unlimited_dims", ()) if unlimited_dims is None else unlimited_dims
        known = [known] if isinstance(known, str) else known
        return {*map(str, known), append_dim} & {*map(str, dataset.dims)}
    raise ParameterError(f"expected append_dim to be a dimension of the dataset, got {append_dim!r}")


def _append(
    datasets: Mapping[str, Dataset],
    target: Path,
    encodings: Encodings,
    unlimited_dims: Collection[str] | None,
    options: RepackOptions,
    progress: Progress | None,
    append_dim: str | None,
) -> RepackResult:
    """Add datasets by the path of their group to a file or store that exists."""
    began = time.perf_counter()
    extend, identity = extender_of(target), Identity.of(target)
    datasets, dropped = with_earlier_losses(datasets)
    recipe = options.recipe
    if recipe.missing == "mask":
        raise ParameterError("expected missing to be exact or refuse for a file that exists: masks are for new files")
    report = progress or (lambda *_: None)
    with ExistingFile(target) as file:
        form = target_form(target, **_form_options(target, options))
        content = sorted_content(datasets, file, encodings, unlimited_dims, recipe, append_dim)
        lengths = lengths_of(file, content, append_dim)
        with form.begin(target, overwrite=True) as transaction, marked(transaction):
            pieces = Pieces(segments_of(transaction.path), target, file, content, options, report)
            pieces.write(encodings)
            extension = extend(transaction.path, transaction.mode)
            attributes = dict(_new_attributes(file, datasets, content, pieces, keep=append_dim is not None))
            forms = {path: attribute_forms(values) for path, values in attributes.items()}
            attributes = {path: attribute_values(values) for path, values in attributes.items()}
            if options.history:
                _add_history(attributes, file, content, append_dim, lengths)
            with extension, _writing(transaction.path):
                for owner, (_, length) in lengths.items():
                    extension.set_length(owner, length)
                for path, change in content.changes.items():
                    found = change.found
                    said = extension.extend(found.array.path, found.new_shape, found.axis or 0, pieces.of(path))
                    content.warnings += [(path, said)] if said else []
                if (new := pieces.new) is not None:
                    extension.add(new, {path: group.attributes for path, group in content.encoded.items()})
                for path, values in attributes.items():
                    known = content.changes.get(path)
                    extension.set_attributes(path if known is None else known.found.array.path, values, forms.get(path))
                extension.finish()
            transaction.begin_sync()
            with open_store(transaction.path) as out:
                _check_values(content, pieces, file.store, out)
                extension.check_kept(
                    file.store, out, {path: _rewritten(item) for path, item in content.changes.items()}
                )
            results = pieces.results()
            witnessed = _witness(transaction.path, file, content, results)
            if Identity.of(target) != identity:
                raise FileError(f"{target}: changed while it was read: append again").at(path=target)
            transaction.commit()
    notes = [*dropped, *content.settled.notes, *content.notes, *pieces.notes]
    notes += [f"{posixpath.basename(owner)}: {old} + {new - old} steps" for owner, (old, new) in lengths.items()]
    if content.unchanged:
        notes.append(printable(f"already in the file, and equal: {', '.join(content.unchanged)}"))
    warned = (*content.warnings, *pieces.warnings)
    for place, text in warned:
        warn_caller(printable(f"{place}: {text}"))
    return RepackResult(
        source="xarray",
        target=os.fspath(target),
        source_nbytes=pieces.source_nbytes,
        target_nbytes=nbytes_of(target),
        datasets=results,
        kept=tuple((path, with_keywords(reason)) for path, reason in pieces.kept),
        seconds=time.perf_counter() - began,
        notes=tuple(map(with_keywords, (*notes, *transaction.notes))),
        warnings=warned,
        witness=witnessed,
    )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise errors of libraries that write a file as FileError, such as that of a full disk."""
    try:
        yield
    except TamisError:
        raise
    except (OSError, RuntimeError) as error:
        raise FileError(f"{path}: cannot be written: {disk_text(error)}").at(path=path) from error


def _form_options(target: Path, options: RepackOptions) -> dict[str, Any]:
    """Return the options of the format; the version of Zarr is that of the store."""
    given = {name: value for name, value in options.form.items() if value is not None}
    if target.is_dir() and given.setdefault("zarr_format", own := zarr_format_of(target)) != own:
        raise ParameterError(f"expected zarr_format={own}, that of {target}, got {given['zarr_format']}: leave it out")
    return given


def _rewritten(change: Change) -> tuple[int, int]:
    """Return the axis, and the first step along it, from which on chunks of a variable are new."""
    return (change.found.axis, change.found.begin) if change.found.axis is not None else (0, 0)


def _new_attributes(
    file: ExistingFile, datasets: Mapping[str, Dataset], content: Content, pieces: Pieces, *, keep: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the attributes that are set in the file, by path: of groups and of variables that it has.

    `keep` says that attributes with another value in the file keep that one.
    """
    for group, dataset in datasets.items():
        if group not in file.paths:
            continue
        before = file.decoded(group)
        listed = _listed(file.group(group).attributes, content.encoded[group].attributes, content.added.get(group, ()))
        values, notes = _compared(group, dataset.attrs, before.attrs, listed, keep=keep)
        content.notes += notes
        if values:
            yield group, values
        for key, variable in dataset.variables.items():
            path = posixpath.join(group, str(key))
            if path not in content.changes and path not in content.unchanged:
                continue
            known = before.variables[str(key)]
            kept: tuple[str, ...] = ()
            if is_packed(found := content.existing[path]):
                kept = IN_CODES
                content.notes += filter(None, [limits_note(found, variable)])
            given = {
                name: value
                for name, value in variable.attrs.items()
                if name not in (*kept, *LOSS_ATTRIBUTES, ACTUAL_RANGE) and not _has(known.encoding, name, value)
            }
            encoded = content.encoded[group].variables[str(key)]
            listed = _listed(
                file.group(group).variables[str(key)].attributes, encoded.attrs, content.added.get(group, ())
            )
            values, notes = _compared(path, given, known.attrs, listed, keep=keep)
            content.notes += notes
            if path in content.changes:
                values |= range_of_both(content.changes[path], pieces.of(path))
            if path in content.changes and (losses := record_of_both(found, variable)):
                content.notes.append(printable(f"{path}: {_loss_note(losses)}"))
                values |= losses
            if values:
                yield path, values


def _loss_note(losses: Mapping[str, Any]) -> str:
    pairs = ", ".join(f"{name} {short_text(value)}" for name, value in losses.items())
    # netCDF-C and tamis round whatever is written to a variable with such an attribute.
    later = "" if losses.keys() <= {ERROR_BOUND} else "; values that are appended later are rounded alike"
    return f"records the earlier loss of new values: {pairs}{later}"


def _compared(
    path: str, given: Mapping[Any, Any], known: Mapping[Any, Any], listed: Mapping[str, str], *, keep: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes that are set for a group or variable, and notes about those that the file lacks or has."""
    new = {name: value for name, value in given.items() if name not in known} | dict(listed)
    other = {name: value for name, value in given.items() if name in known and not _has(known, name, value)}
    notes = [f"{path}: new attributes: {', '.join(new)}"] if new else []
    if other:
        begin, word = ("keeps attributes of the file", "not") if keep else ("attributes replaced", "now")
        pairs = (f"{name} {short_text(known[name])}, {word} {short_text(value)}" for name, value in other.items())
        notes.append(f"{path}: {begin}: {'; '.join(pairs)}")
    return new | ({} if keep else other), [*map(printable, notes)]


def _has(attributes: Mapping[Any, Any], name: object, value: Any) -> bool:
    return name in attributes and same_value(attributes[name], value)


_COORDINATES = "coordinates"


def _listed(before: Mapping[str, Any], after: Mapping[str, Any], added: Collection[str]) -> dict[str, str]:
    """Return the attribute that lists coordinates, with those that are new; nothing if none is."""
    known = str(before.get(_COORDINATES, "")).split()
    new = [name for name in str(after.get(_COORDINATES, "")).split() if name in added and name not in known]
    return {_COORDINATES: " ".join([*known, *new])} if new else {}


def _add_history(
    attributes: dict[str, dict[str, Any]],
    file: ExistingFile,
    content: Content,
    append_dim: str | None,
    lengths: Mapping[str, tuple[int, int]],
) -> None:
    """Add a line about what was done to the attributes of the root group, if that has a history."""
    steps = "".join(f", {append_dim} {old} + {new - old} steps" for old, new in {*lengths.values()})
    added = [posixpath.join(group, name) for group, names in content.added.items() for name in names]
    more = f", {plural(len(added), 'new variable')}" if added else ""
    line = f"tamis {_native.version}: to_netcdf, mode a{steps}{more}"
    if history := with_line({**file.group("/").attributes, **attributes.get("/", {})}, line):
        attributes["/"] = attributes.get("/", {}) | {HISTORY: history}


def _check_values(content: Content, pieces: Pieces, before: Store, after: Store) -> None:
    """Compare new values with those that were proven, and old ones in the same chunks with those of the file, by bits.

    Raises
    ------
    BoundError
        If any differ.
    """
    for path, change in content.changes.items():
        found, axis = change.found, change.found.axis or 0
        array = after.array(found.array.path)
        if array.shape != found.new_shape:
            raise BoundError(f"{path}: expected the shape {found.new_shape}, found {array.shape}").at(dataset=path)
        with closing(array.open_reader()) as reader:
            for piece in pieces.of(path):
                with open_store(piece.path) as store, closing(store.array(piece.array).open_reader()) as expected:
                    _compare(path, expected, reader, store.array(piece.array), axis, piece.start, 0)
            if change.grows and found.begin < found.length:
                with closing(before.array(found.array.path).open_reader()) as expected:
                    _compare(path, expected, reader, before.array(found.array.path), axis, 0, found.begin)
    if pieces.new is not None:
        with open_store(pieces.new) as store:
            for path in (posixpath.join(group, name) for group, names in content.added.items() for name in names):
                array = store.array(store.model.group(posixpath.dirname(path)).variables[posixpath.basename(path)].path)
                copy = after.array(after.model.group(posixpath.dirname(path)).variables[posixpath.basename(path)].path)
                with closing(array.open_reader()) as expected, closing(copy.open_reader()) as reader:
                    _compare(path, expected, reader, array, 0, 0, 0)


def _compare(
    path: str, expected: ArrayReader, found: ArrayReader, array: StoredArray, axis: int, start: int, begin: int
) -> None:
    """Compare values from a step on with those of another array, further along an axis."""
    chunks = array.storage.chunk_shape or tuple(max(extent, 1) for extent in array.shape)
    grid = grid_of(array.shape, chunks)
    for number in range(grid.chunk_count):
        part = grid.region_of(number)
        if part and part[axis].stop <= begin:
            continue  # its chunks are compared as they are stored
        place = shifted(part, axis, start)
        before, after = expected.read(part), found.read(place)
        same = (
            before.tolist() == after.tolist()
            if before.dtype.kind in "OT" or after.dtype.kind in "OT"
            else before.tobytes() == after.astype(before.dtype, copy=False).tobytes()
        )
        if not same:
            raise BoundError(
                f"{path}: chunk at {tuple(axis.start for axis in place)}: differs when it is read back"
            ).at(dataset=path)


def _witness(path: Path, file: ExistingFile, content: Content, results: Iterable[Repacked]) -> Witnessed | None:
    """Let xarray, in a process without tamis, read the file, with the chunks that have old and new steps."""
    boundaries: dict[Key, list[Region]] = {}
    expected: dict[Key, Grown] = {}
    for group, encoded in content.encoded.items():
        before = file.decoded(group).variables
        for name in {*encoded.variables, *map(str, before)}:
            place = posixpath.join(group, name)
            change = content.changes.get(place)
            new = encoded.dataset.variables.get(name) if place not in content.unchanged else None
            if change is None or not change.grows:
                expected[group, name] = Grown(None if new is not None else before.get(name), new)
                continue
            found = change.found
            assert found.axis is not None
            expected[group, name] = Grown(before[name], new, found.axis, found.length)
            if found.begin < found.length and found.count:
                steps = slice(found.begin, min(found.begin + found.chunk_length, found.new_shape[found.axis]))
                chunks = found.array.storage.chunk_shape or found.new_shape
                region = tuple(
                    steps if number == found.axis else slice(0, min(extent, step))
                    for number, (extent, step) in enumerate(zip(found.new_shape, chunks, strict=True))
                )
                boundaries[group, name] = [region[: before[name].ndim]]
    return check_extended(path, expected, {item.path: item for item in results}, content.settled.losses, boundaries)
