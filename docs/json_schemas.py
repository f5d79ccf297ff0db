"""Write docs/schemas, the JSON Schema of each result, from the types of the results: python docs/json_schemas.py."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict, Union

import msgspec

from tamis.accuracy.statistics import Number, Place, Tally
from tamis.advice.chunk_shapes import BetterChunks, Note
from tamis.arrays.grid import Region
from tamis.filters.registry import Entry
from tamis.jobs.doctor.result import Diagnosis
from tamis.jobs.export import ExportResult
from tamis.jobs.inspect.result import Inspection
from tamis.jobs.many.manifest import Manifest, ManifestCheck
from tamis.jobs.many.result import FolderPreview, FolderStatus
from tamis.jobs.many.state import FileRecord
from tamis.jobs.many.verify import FolderVerification
from tamis.jobs.plan.result import Plan
from tamis.jobs.repack.result import Repacked, RepackPreview, RepackResult
from tamis.jobs.repair import RepairResult
from tamis.jobs.report.folder import FolderReport
from tamis.jobs.report.maps import FieldMap
from tamis.jobs.report.reported import Reported
from tamis.jobs.report.result import Report
from tamis.jobs.spec import Spec
from tamis.jobs.verify.result import Verification
from tamis.meaning import Packing
from tamis.meaning.variables import PackingDict
from tamis.old_names import KEYS
from tamis.pipeline import Pipeline
from tamis.rounding.rounding_base import Rounding, RoundingDict
from tamis.safety.disk import Identity
from tamis.stores.readers import Readers

FOLDER = Path(__file__).with_name("schemas")

_FOR_TYPE_CHECKERS: Mapping[str, Any] = {
    "BetterChunks": BetterChunks,
    "FieldMap": FieldMap,
    "Note": Note,
    "Number": Number,
    "Packing": Packing,
    "PackingDict": PackingDict,
    "Pipeline": Pipeline,
    "Place": Place,
    "Readers": Readers,
    "Region": Region,
    "Rounding": Rounding,
    "RoundingDict": RoundingDict,
    "Tally": Tally,
}
"""Names in annotations that the modules of the results import for type checkers alone."""


class Failed(TypedDict):
    """An error, and where: path, dataset, chunk and filter, None if unknown."""

    kind: str
    message: str
    path: str | None
    dataset: str | None
    chunk: list[int] | None
    filter: str | None


class FailedCommand(Failed):
    """An error that ended a command, with its exit code."""

    exit_code: int


class ErrorDocument(TypedDict):
    """What a command prints with --json if it fails."""

    schema: int
    error: FailedCommand


class InspectDocument(TypedDict):
    """What inspect prints: files, and errors of those that it cannot read."""

    schema: int
    files: list[Inspection]
    errors: list[Failed]


class FiltersDocument(TypedDict):
    """The filters that tamis knows."""

    schema: int
    filters: list[Entry]


class Kept(TypedDict):
    """A dataset that was kept, with the reason."""

    path: str
    reason: str


DOCUMENTS: Mapping[str, type] = {
    "error": ErrorDocument,
    "inspect": InspectDocument,
    "filters": FiltersDocument,
    "spec": Spec,
    "repack": RepackResult,
    "repack-preview": RepackPreview,
    "repack-folder": FolderStatus,
    "repack-folder-preview": FolderPreview,
    "verify": Verification,
    "verify-folder": FolderVerification,
    "plan": Plan,
    "report": Report,
    "report-folder": FolderReport,
    "export": ExportResult,
    "repair": RepairResult,
    "manifest": Manifest,
    "manifest-check": ManifestCheck,
    "doctor": Diagnosis,
}
"""The documents that commands print, by the names of the schemas; copy and combine print that of repack."""

_ALSO: Mapping[type, Mapping[str, Any]] = {
    **{kind: {"schema": int} for kind in (ExportResult, FileRecord, Report, RepairResult)},
    Manifest: {"schema": int, "version": str},
    ManifestCheck: {"schema": int, "ok": bool},
    Diagnosis: {"schema": int, "ok": bool},
    FolderReport: {"schema": int, "ok": bool, "verdict": str},
    FolderVerification: {"schema": int, "ok": bool},
    FolderStatus: {"schema": int, "ratio": float | None},
    FolderPreview: {"schema": int, "dry_run": Literal[True]},
    RepackPreview: {"schema": int, "dry_run": Literal[True]},
    RepackResult: {"schema": int, "kept": list[Kept]},
    Verification: {"schema": int, "ok": bool},
    Repacked: {"ratio": float | None, "source_ratio": float | None},
    Reported: {"ratio": float | None, "outcome": str},
    Spec: {"schema": int, "rounding": RoundingDict | None},
    Plan: {
        "schema": int,
        "recipe": dict[str, str],
        "chunks": dict[str, list[int]],
        "require": dict[str, str],
        "options": str,
    },
}
"""What the method `to_dict` of a result adds to its fields, or says in another way."""

_WITHOUT: Mapping[type, frozenset[str]] = {
    Manifest: frozenset({"folder"}),
    Repacked: frozenset({"worst"}),
    FieldMap: frozenset({"pair", "error"}),
}
"""Fields that the method leaves out."""


def json_schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a result, or of a document that has results."""
    schema = msgspec.json.schema(json_type(kind))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def json_type(kind: Any) -> Any:
    """Return the type of a value in JSON: see `tamis.jobs.result.json_value`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is float:
        return float | Literal["inf", "-inf", "nan"]
    if kind in (Any, object, str, int, bool, types.NoneType) or origin is Literal:
        return kind
    if kind is Identity:
        return list[int]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(json_type, arguments))]  # noqa: UP007 - of a number of types that is not known
    if origin is tuple and arguments[1:] != (...,):
        return tuple[tuple(map(json_type, arguments))]  # type: ignore[misc]
    if origin is not None and issubclass(origin, Mapping):
        return dict[str, json_type(arguments[1])]  # type: ignore[misc]
    if origin is not None:
        return list[json_type(arguments[0])]  # type: ignore[misc]
    if hasattr(kind, "to_dict"):
        returned = typing.get_type_hints(kind.to_dict, localns=dict(_FOR_TYPE_CHECKERS))["return"]
        return _record(returned if typing.is_typeddict(returned) else kind)
    if typing.is_typeddict(kind) or dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return str if kind is Pipeline else _record(kind)
    raise TypeError(f"expected a type that JSON has, got {kind!r}")


@cache
def _record(kind: type) -> Any:
    """Return the type of the object in JSON for a class with fields."""
    hints = typing.get_type_hints(kind, localns=dict(_FOR_TYPE_CHECKERS))
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else [*hints]
    keys = {name: hints[name] for name in names if name not in _WITHOUT.get(kind, ())}
    keys |= {old: hints[new] for old, new in KEYS.get(kind.__name__, {}).items()}
    keys |= _ALSO.get(kind, {})
    made: Any = TypedDict(_name(kind), {name: json_type(own) for name, own in keys.items()})  # type: ignore[operator]
    made.__doc__ = (kind.__doc__ or "").partition("\n")[0]
    return made


def _name(kind: type) -> str:
    """Return the name of an object in a schema; two modules have a class Compared."""
    name = kind.__name__.removesuffix("Dict")
    return "ComparedFilter" if kind.__module__ == "tamis.jobs.plan.planned" and name == "Compared" else name


def texts() -> dict[str, str]:
    """Return the text of each file in docs/schemas, by its name."""
    return {
        f"{name}.json": json.dumps(json_schema(kind), indent=2, ensure_ascii=False) + "\n"
        for name, kind in DOCUMENTS.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
