"""Print every text that a user may see, with its file and line: errors, warnings, notes, help.

A field of an f-string is in braces. Read the whole after a change of many messages: ``python tests/tools/messages.py``.
Or a part: ``python tests/tools/messages.py src/tamis/cli native/hdf5``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
"""A string of C++."""
GAP = re.compile(r'"\s*"')
"""What lies between two strings that the compiler joins."""
COMMENT = re.compile(r"^\s*(//|#).*$", re.MULTILINE)


def python_messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of the strings of several words of a module; of its docstrings, those that click prints."""
    parents = {
        child: parent for parent in ast.walk(ast.parse(path.read_text())) for child in ast.iter_child_nodes(parent)
    }
    for node, parent in parents.items():
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                for part in node.values
                if isinstance(part, ast.Constant | ast.FormattedValue)
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not isinstance(parent, ast.JoinedStr):
            if isinstance(parent, ast.Expr) and not is_help(parents.get(parent)):
                continue
            text = node.value
        else:
            continue
        if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{.*?\}", "", text))) > 1 and " " in text.strip():
            yield node.lineno, text


def is_help(owner: ast.AST | None) -> bool:
    """Return whether click prints the docstring of a function or class."""
    if not isinstance(owner, ast.FunctionDef):
        return False
    return any(
        ast.unparse(decorator).split("(")[0].endswith(("command", "group")) for decorator in owner.decorator_list
    )


def native_messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of the strings of several words of a C++ file."""
    source = COMMENT.sub("", path.read_text())
    for match in LITERAL.finditer(GAP.sub("", source)):
        if len(re.findall(r"[A-Za-z]{2,}", match[1])) > 1 and " " in match[1].strip():
            yield source.count("\n", 0, source.find(match[1][:30])) + 1, match[1]


def main(places: list[str]) -> None:
    """Print the messages of files and folders; by default of all sources."""
    for place in places or ["src", "native"]:
        top = ROOT / place
        for path in sorted(top.rglob("*") if top.is_dir() else [top]):
            if path.suffix not in (".py", ".cpp", ".hpp") or "tests" in path.relative_to(ROOT).parts:
                continue
            messages = python_messages if path.suffix == ".py" else native_messages
            for line, text in sorted(messages(path)):
                print(f"{path.relative_to(ROOT)}:{line}:", text.strip().replace("\n", "\n    "))


if __name__ == "__main__":
    main(sys.argv[1:])
