"""Compare what users rely on with the release before: ``make api`` prints what breaks their programs, and fails.

- Public names of Python and their signatures, by griffe: with the last tag, or, where the history has none, with the
  stubs in tests/frozen/api-<version>.
- Commands and their options, and keys of JSON documents: with the lists there.

``python packaging/check_api.py --write`` writes the folder of this version: once for each release, before its tag.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import griffe

import tamis
from tamis.cli import main as commands

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "tests" / "frozen"
MODULES = ("", "cf", "filters", "hdf5", "netcdf", "zarr", "zfp")
"""Public modules; the first is tamis itself."""


def current() -> griffe.Module:
    """Return what the source has now."""
    return loaded(ROOT / "src")


def loaded(folder: Path) -> griffe.Module:
    """Return what the source in a folder has."""
    module = griffe.load("tamis", search_paths=[folder], allow_inspection=False, resolve_aliases=True)
    assert isinstance(module, griffe.Module)
    return module


def last_tag(root: Path = ROOT) -> str | None:
    """Return the last tag of a release in the history of the present commit; None if there is none."""
    done = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None


def latest_frozen() -> Path:
    """Return the folder of the last release."""
    folders = [path for path in FROZEN.glob("api-*") if path.is_dir()]
    return max(folders, key=lambda path: tuple(map(int, path.name.removeprefix("api-").split("."))))


def broken_names(new: griffe.Module, old: griffe.Module) -> Iterator[str]:
    """Yield what a program that uses public names of `old` does not find in `new`, a line each."""
    removed = set()
    for name in (name for name in MODULES if not name or name in old.members):
        before = old[name] if name else old
        after = new.members.get(name) if name else new
        listed = () if after is None else after.exports or ()
        removed |= {f"{before.path}.{member}" for member in map(str, before.exports or ()) if member not in listed}
    yield from (f"{path}: was removed" for path in sorted(removed))
    for breakage in griffe.find_breaking_changes(old, new):
        if breakage.kind not in _NOT_PROMISED and breakage.obj.path not in removed:
            values = f"{_word(breakage.old_value)} -> {_word(breakage.new_value)}"
            path = re.sub(r"\._of_(\w+)", r".\1", breakage.obj.path).replace(".__init__.", ".")
            yield f"{path}: {breakage.kind.value}: {values}"


_NOT_PROMISED = (griffe.BreakageKind.ATTRIBUTE_CHANGED_VALUE,)


def _word(value: Any) -> str:
    return str(getattr(value, "name", value))


def _target(found: Any) -> Any:
    return found.final_target if found.is_alias else found


# What is written down of a release.


def stubs(module: griffe.Module, name: str) -> dict[str, str]:
    """Return a public module as stubs, with all that can be told from the source, by the names of their files.

    What it has is declared in a module behind it, and imported, as in the source: griffe does not compare what was
    declared with what is imported.
    """
    names = [str(each) for each in module.exports or ()]
    found = {each: _target(module[each]) for each in names}
    declared = [line for each, one in found.items() if not one.is_module for line in _declared(each, one)]
    behind = f"_of_{name}"
    imported = [f"from tamis.{behind} import {each} as {each}" for each, one in found.items() if not one.is_module]
    return {
        f"{behind}.pyi": "\n".join([*_HEADER, *declared, ""]),
        f"{name}.pyi": "\n".join([*imported, "", f"__all__ = {json.dumps(names)}", ""]),
    }


_HEADER = ("import os", "from collections.abc import *", "from typing import *", "")


def _declared(name: str, found: Any, indent: str = "") -> list[str]:
    """Return the lines that declare an object; of a class also those of its public members."""
    if found.is_class:
        bases = ", ".join(str(base) for base in found.bases)
        own = [each for each in found.members.items() if not each[0].startswith("_") or each[0] == "__init__"]
        inside = [line for key, member in own for line in _declared(key, _target(member), f"{indent}    ")]
        return [f"{indent}class {name}({bases}):", *(inside or [f"{indent}    ..."])]
    if found.is_function:
        decorators = [f"{indent}@{label}" for label in ("classmethod", "staticmethod") if label in found.labels]
        return [*decorators, f"{indent}def {_signature(name, found, is_method=bool(indent))}: ..."]
    is_default = " = ..." if found.value is not None else ""
    return [f"{indent}{name}: {found.annotation or 'Any'}{is_default}"]


def _signature(name: str, found: Any, *, is_method: bool) -> str:
    """Return a function's signature with the first parameter of methods, which griffe leaves out."""
    text = str(found.signature(name=name))
    if not is_method or "staticmethod" in found.labels:
        return text
    first = "cls" if "classmethod" in found.labels else "self"
    return text.replace("(", f"({first}, " if len(found.parameters) > 1 else f"({first}", 1)


def command_lines() -> list[str]:
    """Return a line for each command and each of its options."""
    lines = []
    with click.Context(commands) as context:
        for name in commands.list_commands(context):
            command = commands.get_command(context, name)
            assert command is not None
            options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
            lines += [name, *(f"{name} {text}" for each in options for text in (*each.opts, *each.secondary_opts))]
    return sorted(lines)


def key_lines() -> list[str]:
    """Return a line for each key that the JSON documents of commands have, with its type."""
    spec = importlib.util.spec_from_file_location("json_schemas", ROOT / "docs" / "json_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    texts: dict[str, str] = module.texts()
    return sorted({line for name, text in texts.items() for line in _keys(Path(name).stem, json.loads(text))})


def _keys(name: str, schema: dict[str, Any]) -> Iterator[str]:
    for title, record in {name: schema, **schema.get("$defs", {})}.items():
        for key, kind in record.get("properties", {}).items():
            yield f"{name} {title if title != name else '.'} {key}: {_kind(kind)}"


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(sorted(map(_kind, schema["anyOf"])))
    if "enum" in schema:
        return "enum"
    inner = schema.get("items") or schema.get("additionalProperties")
    return f"{schema.get('type', 'any')}{f'[{_kind(inner)}]' if isinstance(inner, dict) else ''}"


def gone(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """Return the lines that are no longer there."""
    return sorted({*old} - {*new})


def write(folder: Path) -> None:
    """Write down what this version promises."""
    module = current()
    (folder / "tamis").mkdir(parents=True)
    for name in MODULES:
        for file, text in stubs(module[name] if name else module, name or "__init__").items():
            (folder / "tamis" / file).write_text(text)
    for name, lines in (("commands.txt", command_lines()), ("json.txt", key_lines())):
        (folder / name).write_text("\n".join([*lines, ""]))


def tagged(tag: str, root: Path = ROOT) -> griffe.Module:
    """Return what the source had at a tag."""
    module = griffe.load_git(
        "tamis", ref=tag, repo=root, search_paths=["src"], allow_inspection=False, resolve_aliases=True
    )
    assert isinstance(module, griffe.Module)
    return module


def problems() -> Iterator[str]:
    """Yield what breaks programs of users."""
    tag, folder = last_tag(), latest_frozen()
    yield from broken_names(current(), loaded(folder) if tag is None else tagged(tag))
    for name, lines, noun in (("commands.txt", command_lines(), "tamis"), ("json.txt", key_lines(), "JSON:")):
        yield from (f"{noun} {line}: was removed" for line in gone((folder / name).read_text().splitlines(), lines))


def main() -> int:
    """Compare, or write."""
    if "--write" in sys.argv:
        version = re.match(r"\d+\.\d+", tamis.__version__)
        assert version is not None
        write(FROZEN / f"api-{version[0]}")
        return 0
    found = [*problems()]
    print("\n".join(found) or f"nothing of {last_tag() or latest_frozen().name} is broken")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
