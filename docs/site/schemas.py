"""Pages of the JSON that commands print, each from its JSON Schema in docs/schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = "reference/json"


def write(pages: Path) -> list[dict[str, str]]:
    """Write a page for each schema; return them for the navigation."""
    (pages / FOLDER).mkdir(parents=True)
    items = []
    for path in sorted((pages / "schemas").glob("*.json")):
        (pages / FOLDER / f"{path.stem}.md").write_text("".join(lines(path.stem, json.loads(path.read_text()))))
        items.append({path.stem: f"{FOLDER}/{path.stem}.md"})
    return items


def lines(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page of a schema: a table for each kind of object."""
    root = schema["$ref"].rpartition("/")[2]
    yield f"# JSON: {name}\n\n"
    yield f"This page shows [{name}.json](../../schemas/{name}.json), a JSON Schema made from the code.\n\n"
    for kind in [root, *sorted(set(schema["$defs"]) - {root})]:
        described = schema["$defs"][kind]
        yield f"## {kind}\n\n{described.get('description', '')}\n\n"
        if "properties" in described:
            yield "| key | type |\n|---|---|\n"
            for key, own in described["properties"].items():
                yield f"| `{key}` | {type_of(own)} |\n"
            yield "\n"


def type_of(own: Mapping[str, Any]) -> str:
    """Return a JSON Schema in words."""
    if "$ref" in own:
        kind = own["$ref"].rpartition("/")[2]
        return f"[{kind}](#{kind.lower()})"
    if "anyOf" in own:
        return " or ".join(dict.fromkeys(type_of(each) for each in own["anyOf"]))
    if "enum" in own:
        return ", ".join(f"`{json.dumps(each)}`" for each in own["enum"])
    if "const" in own:
        return f"`{json.dumps(own['const'])}`"
    if "prefixItems" in own:
        return f"\\[{', '.join(type_of(each) for each in own['prefixItems'])}\\]"
    if own.get("type") == "array":
        return f"array of {type_of(own.get('items', {}))}"
    if own.get("type") == "object" and isinstance(own.get("additionalProperties"), Mapping):
        return f"object whose values are {type_of(own['additionalProperties'])}"
    return str(own.get("type", "any value"))
