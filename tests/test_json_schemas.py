"""The JSON of each command is what its schema in docs/schemas says, and these are those of the types."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from subprocess import run
from typing import Any

import h5py
import jsonschema
import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
ZFP = ("-f", "x:zfp(accuracy=0.1)")
LOSSY = ("-f", "x:absolute(0.25)|shuffle|deflate(4)")

COMMANDS: list[tuple[str, tuple[str, ...]]] = [
    ("inspect", ("inspect", "a.h5", "small/a.h5", "nothing.h5")),
    ("error", ("verify", "nothing.h5", "a.h5")),
    ("error", ("repack", "a.h5")),
    ("spec", ("spec", "absolute(0.25)|shuffle|deflate(4)", "--dtype", "f4", "--chunks", "8x8")),
    ("spec", ("spec", "zfp(accuracy=0.1)")),
    ("filters", ("filters",)),
    ("filters", ("filters", "zfp", "pack")),
    ("repack", ("repack", "a.h5", "b.h5", *ZFP, "--overwrite")),
    ("repack", ("repack", "a.h5", "c.zarr", *LOSSY, "--require", "x:rmse=0.3", "--overwrite")),
    ("repack", ("copy", "a.h5", "d.h5", "-d", "4", "-s")),
    ("repack-preview", ("repack", "a.h5", "e.h5", *ZFP, "--dry-run")),
    ("repack-folder", ("repack", "folder", "f", *ZFP, "-j", "1")),
    ("repack-folder", ("status", "small")),
    ("repack-folder-preview", ("repack", "folder", "g", *ZFP, "--dry-run")),
    ("verify", ("verify", "a.h5", "small.h5")),
    ("verify", ("verify", "a.h5", "other.h5")),
    ("verify-folder", ("verify", "folder", "small")),
    ("plan", ("plan", "a.h5", "--require", "x:abs=0.1", "--compare", "sz3")),
    ("report", ("report", "a.h5", "small.h5")),
    ("report-folder", ("report", "folder", "small")),
    ("export", ("export", "a.h5", "--to", "kerchunk", "-o", "a.json")),
    ("manifest", ("manifest", "small")),
    ("manifest-check", ("manifest", "small", "--check")),
    ("doctor", ("doctor",)),
]


def script() -> Any:
    """Return the module that makes the schemas."""
    spec = spec_from_file_location("json_schemas", DOCS / "json_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_schemas_are_those_of_the_types() -> None:
    made = script().texts()
    assert {path.name: path.read_text() for path in (DOCS / "schemas").glob("*.json")} == made


def without_others(schema: Any) -> Any:
    """Return a schema that allows no keys but those that it names."""
    if isinstance(schema, list):
        return [without_others(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: without_others(item) for key, item in schema.items()}
    return closed | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else closed


def tamis(folder: Path, *arguments: str) -> str:
    return run(
        [sys.executable, "-m", "tamis", *arguments], check=False, cwd=folder, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    (folder / "folder").mkdir()
    values = np.cumsum(np.random.default_rng(1).normal(size=(64, 64)), axis=0, dtype="f4")
    for name in ("a.h5", "folder/a.h5", "other.h5"):
        with h5py.File(folder / name, "w") as file:
            data = file.create_dataset("x", data=values, chunks=(16, 16), compression="gzip")
            data.attrs["units"] = "K"
            data.attrs["valid_min"] = np.float32(-1000)
            packed = file.create_dataset("packed", data=(values * 10).astype("i2"), chunks=(16, 16), shuffle=True)
            packed.attrs["scale_factor"] = 0.1
            file["group/link"] = h5py.ExternalLink("elsewhere.h5", "/y")
            if name == "other.h5":
                data[3, 5] = np.nan
                data[0, 0] = 5
    tamis(folder, "repack", "a.h5", "small.h5", *ZFP)
    tamis(folder, "repack", "folder", "small", *ZFP, "-j", "1", "--checksums")
    return folder


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "arguments"), COMMANDS, ids=[" ".join(words[:3]) for _, words in COMMANDS])
def test_json_of_each_command_is_what_its_schema_says(folder: Path, name: str, arguments: tuple[str, ...]) -> None:
    document = json.loads(tamis(folder, *arguments, "--json"))
    schema = json.loads((DOCS / "schemas" / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, without_others(schema))
