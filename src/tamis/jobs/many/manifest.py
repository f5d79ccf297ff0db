"""The record of an archive: what was done to each file and dataset, and whether the files are still those."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from tamis.arguments import CALLBACK, PATH
from tamis.errors import FileError
from tamis.formatting import bound_text, plural, printable, ratio, ratio_text, size_text
from tamis.jobs.many.listing import is_ours
from tamis.jobs.many.state import FileRecord, State, has_record, new_content
from tamis.jobs.result import SCHEMA, VERSION, Line, Part, Result, Table, json_text
from tamis.safety import disk_text, nbytes_of, sha256_of
from tamis.stores import OtherFile, is_folder_store, needed_text

NAME = "manifest.json"

_COLUMNS = (
    *("path", "dataset", "filters", "bound", "relative_bound", "largest_error", "nbytes", "source_nbytes"),
    *("target_nbytes", "target_file_nbytes", "target_sha256", "source", "source_file_nbytes", "source_sha256"),
    *("version", "damaged", "runs"),
)


def state_of(folder: str | os.PathLike[str]) -> State:
    """Return the state in a folder; raise FileError if there is none."""
    state = State(os.fsdecode(folder))
    state.refresh()
    if not os.path.isdir(folder):
        found = "a file" if os.path.lexists(folder) else "none"
        raise FileError(f"{os.fsdecode(folder)}: expected the folder of targets, found {found}").at(path=folder)
    if not os.path.isdir(state.folder):
        around = next(
            (place for place in Path(os.path.abspath(os.fsdecode(folder))).parents if has_record(place)), None
        )
        what = f"the record of {around} may have it: name that" if around else "name the folder of its targets"
        raise FileError(
            f"{os.fsdecode(folder)}: has no {state.folder.name}, so tamis repack has made nothing here: {what}"
        ).at(path=folder)
    return state


def write_manifest(state: State) -> None:
    """Write the manifest of all files that are done, complete or not at all; file by file, for memory."""
    path = state.folder / NAME
    head = json_text({"schema": SCHEMA, "version": VERSION, "recipes": _recipes(state)})
    with new_content(path) as stream:
        stream.write(f'{head[:-1]}, "files": [')
        for number, line in enumerate(state.lines(sorted(state.done), done=True)):
            stream.write("," * bool(number) + "\n" + line.decode("ascii").rstrip())
        stream.write("\n]}\n")


def _recipes(state: State) -> dict[str, str]:
    return {str(run["key"]): str(run.get("recipe", "")) for run in state.runs() if "key" in run}


@dataclass(frozen=True, slots=True)
class Manifest(Result):
    """What was done to each file of a folder, and to each of its datasets.

    Parameters
    ----------
    folder
        Path of the folder.
    recipes
        Text of each recipe, by its key.
    files
        Record of each file, by path: source and target with bytes and SHA-256, recipe, version of tamis, and for each
        dataset filters, bound, largest error and bytes.
    """

    folder: str
    recipes: Mapping[str, str]
    files: tuple[FileRecord, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: that of ``manifest.json``."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "recipes": dict(self.recipes),
            "files": [{"schema": SCHEMA, **asdict(record)} for record in self.files],
        }

    def to_csv(self) -> str:
        """Return a line for each dataset, and one for each file without any, with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows([row.get(name) for name in _COLUMNS] for row in self._rows())
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return a table in Markdown with the most important columns."""
        header, *rows = self._table()
        lines = [header, ["---"] * len(header), *rows]
        return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for record in self.files:
            own = {
                "path": record.path,
                "target_file_nbytes": record.target_nbytes,
                "target_sha256": record.target_sha256,
                "source": record.source,
                "source_file_nbytes": record.original_nbytes,
                "source_sha256": record.original_sha256,
                "runs": len(record.runs) or 1,
                "version": record.version,
            }
            damaged = {str(item.get("path")): str(item.get("reason")) for item in record.damaged}
            paths = [dataset.get("path") for dataset in record.datasets]
            others = [{"path": path} for path in damaged if path not in paths]
            for dataset in (*record.datasets, *others) or ({},):
                named = {"dataset": dataset.get("path", ""), "filters": dataset.get("pipeline", "")}
                yield {**dataset, **named, **own, "damaged": damaged.get(named["dataset"], "")}

    def _table(self) -> list[list[str]]:
        rows = [["file", "dataset", "filters", "bound", "largest error", "ratio", "SHA-256", "damaged"]]
        for row in self._rows():
            before, after = row.get("nbytes"), row.get("target_nbytes")
            error = row.get("largest_error")
            numbers = (
                bound_text(row.get("bound"), row.get("relative_bound")),
                "" if error is None else f"{error:.3g}",
                ratio_text(ratio(before, after) if before and after else None),
            )
            names = (printable(str(row[name])) for name in ("path", "dataset", "filters"))
            damaged = printable(row["damaged"])
            rows.append([*names, *numbers, row["target_sha256"][:12], damaged])
        if not any(row[-1] for row in rows[1:]):
            return [row[:-1] for row in rows]
        return rows

    def _parts(self) -> Iterator[Part]:
        yield Table(self._table(), folded=[2], right=[3, 4, 5], code=[2], name="Files")
        for record in self.files:
            if record.other_files:
                others = needed_text(OtherFile(**other) for other in record.other_files)
                yield "note", f"{printable(record.path)}: {others}"
        files = [record for record in self.files if not record.link_of]
        before, after = (sum(map(attrgetter(name), files)) for name in ("original_nbytes", "target_nbytes"))
        sizes = f"{size_text(before)} -> {size_text(after)}"
        yield "name", f"{printable(self.folder)}: {plural(len(self.files), 'file')}, {sizes}"


def manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Return the record of a folder of targets: what an archive hands to its auditors.

    Parameters
    ----------
    folder
        Folder of the targets of `repack_many`, or one with a copy of them and of ``.tamis/manifest.json``.

    Raises
    ------
    FileError
        If there is no record in the folder, or it cannot be read.
    """
    PATH.check("folder", folder)
    state = state_of(folder)
    if state.done:
        records = map(FileRecord.from_line, state.lines(sorted(state.done), done=True))
        return Manifest(os.fsdecode(folder), _recipes(state), tuple(filter(None, records)))
    path = state.folder / NAME
    try:
        document = json.loads(path.read_bytes())
        found = [FileRecord.from_line(json_text(entry).encode()) for entry in document["files"]]
        recipes = {str(key): str(value) for key, value in document["recipes"].items()}
        if None in found:
            raise ValueError(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = disk_text(error) if isinstance(error, OSError) else "expected the JSON of tamis manifest"
        raise FileError(f"{path}: cannot be read: {reason}").at(path=path) from error
    return Manifest(os.fsdecode(folder), recipes, tuple(filter(None, found)))


class FailedFile(NamedTuple):
    """A file that no run could make."""

    path: str  # Path of the target below the folder
    reason: str


@dataclass(frozen=True, slots=True)
class ManifestCheck(Result):
    """Whether the files of a folder are those of its manifest.

    Parameters
    ----------
    folder
        Path of the folder.
    unchanged
        Number of files whose bytes have the recorded SHA-256.
    changed, missing, unreadable, unknown
        Paths of files with other bytes, of recorded files that are gone or cannot be read, and of files and Zarr stores
        without record.
    failed
        Paths of files that runs failed to make, so that they have no record, and why.
    """

    folder: str
    unchanged: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]
    unknown: tuple[str, ...]
    failed: tuple[FailedFile, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all recorded files are there, unchanged, and no file failed."""
        return not (self.differs or self.unreadable or self.failed)

    @property
    def differs(self) -> bool:
        """Whether a recorded file was changed or is missing."""
        return bool(self.changed or self.missing)

    def findings(self) -> Iterator[Line]:
        """Yield what is wrong with each file."""
        for kind, verb, paths in (
            ("violation", "changed since it was made", self.changed),
            ("violation", "missing", self.missing),
            ("problem", "cannot be read", self.unreadable),
        ):
            yield from ((kind, f"{printable(path)}: {verb}") for path in paths)
        for path, reason in self.failed:
            yield "problem", f"{printable(path)}: no run could make it: {printable(reason)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        failed = [item._asdict() for item in self.failed]
        return {"schema": SCHEMA, "ok": self.ok, **asdict(self), "failed": failed}

    def _parts(self) -> Iterator[Part]:
        yield from self.findings()
        for path in self.unknown:
            yield "note", f"{printable(path)}: not in the manifest"
        wrong = {"changed": self.changed, "missing": self.missing, "unreadable": self.unreadable, "failed": self.failed}
        wrong["without record"] = self.unknown
        words = "".join(f", {len(paths)} {word}" for word, paths in wrong.items() if paths)
        text = f"{printable(self.folder)}: {plural(self.unchanged, 'file')} unchanged{words}"
        yield ("name" if self.ok else "problem"), text


def check_manifest(
    folder: str | os.PathLike[str], progress: Callable[[str, int, int], None] | None = None
) -> ManifestCheck:
    """Compare the files of a folder with its manifest, by their SHA-256.

    Parameters
    ----------
    folder
        Folder of the targets of `repack_many`, or a copy of it.
    progress
        Called for each file, with its path, the number of bytes read before, and that of all.

    Raises
    ------
    FileError
        If there is no record in the folder.
    """
    PATH.check("folder", folder)
    CALLBACK.check_optional("progress", progress)
    report = progress or (lambda *_: None)
    files = manifest(folder).files
    total = sum(record.target_nbytes for record in files)
    done, unchanged = 0, 0
    changed, missing, unreadable = list[str](), list[str](), list[str]()
    for record in files:
        report("reading", done, total)
        path = Path(os.fsdecode(folder), record.path)
        try:
            if nbytes_of(path) == record.target_nbytes and sha256_of(path) == record.target_sha256:
                unchanged += 1
            else:
                changed.append(record.path)
        except FileNotFoundError:
            missing.append(record.path)
        except OSError:
            unreadable.append(record.path)
        done += record.target_nbytes
    report("reading", total, total)
    known = {record.path for record in files}
    failed = tuple(_failed(state_of(folder), known))
    unknown = tuple(_unknown(folder, known | {path for path, _ in failed}))
    return ManifestCheck(
        os.fsdecode(folder), unchanged, tuple(changed), tuple(missing), tuple(unreadable), unknown, failed
    )


def _failed(state: State, known: set[str]) -> Iterator[FailedFile]:
    """Yield the files without a record of success that runs failed to make, in the order of paths."""
    found = {path: FailedFile(path, text) for path, (_, text) in state.unread().items() if path not in known}
    for record in state.records({path for path, last in state.known.items() if last.action == "failed"}):
        if record.path not in known and os.path.lexists(record.source):
            found[record.path] = FailedFile(record.path, str((record.error or {}).get("message", "")))
    yield from (found[path] for path in sorted(found))


def _unknown(folder: str | os.PathLike[str], known: set[str]) -> Iterator[str]:
    """Yield the paths of files and Zarr stores that have no record, in the order of paths."""
    top = os.fsdecode(folder)
    for place, folders, names in os.walk(top):
        below = os.path.relpath(place, top)
        paths = {name: os.path.normpath(os.path.join(below, name)) for name in (*folders, *names)}
        new = [name for name in sorted(paths) if not is_ours(name) and paths[name] not in known]
        stores = {name for name in new if name in folders and is_folder_store(os.path.join(place, name))}
        folders[:] = [name for name in new if name in folders and name not in stores]
        yield from (paths[name] for name in new if name in names or name in stores)
