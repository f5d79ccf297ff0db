"""What the text of a package's modules says, without running them: imports and their circles, classes and members."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTERS = ("imported", "import_module", "__import__")
"""Functions that import a module by its name."""
LAZY = ("late_names", "face_names", "lazy_loader", "attach", "attach_stub")
"""Functions that make names of a package which are imported when they are first used."""

When = Literal["at once", "late", "for types"]


class Import(NamedTuple):
    """That one module names another one."""

    module: str
    line: int
    # "late" in functions and by name, "for types" in `if TYPE_CHECKING:`, and "at once" otherwise
    when: When


@dataclass
class Module:
    """A module of the package."""

    name: str
    path: Path
    text: str
    tree: ast.Module = field(repr=False)


class Package:
    """All modules of a package, by name."""

    def __init__(self, folder: Path) -> None:
        self.modules: dict[str, Module] = {}
        for path in sorted(folder.rglob("*.py")):
            name = ".".join([folder.name, *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")
            text = path.read_text()
            self.modules[name] = Module(name, path, text, ast.parse(text, path))
        # Compiled modules import none of the others, and are known by their stubs.
        self.names = {*self.modules, *(f"{folder.name}.{path.stem}" for path in folder.glob("*.pyi"))}
        self.imports = {name: [*self._imports(module)] for name, module in self.modules.items()}
        self._origins = {name: {**_imported_names(each), **_defined_names(each)} for name, each in self.modules.items()}
        self.classes = {
            f"{name}.{node.name}": node
            for name, module in self.modules.items()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef)
        }

    def _imports(self, module: Module) -> Iterator[Import]:
        """Yield what a module imports of the package."""
        for node, when in with_time(module.tree):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                inner = [(str(node.module), f"{node.module}.{alias.name}") for alias in node.names]
                found = [name if name in self.names else outer for outer, name in inner]
            else:
                continue
            for name in dict.fromkeys(found):
                if name in self.names:
                    yield Import(name, node.lineno, when)
        for name, line in self._named(module):
            yield Import(name, line, "late")

    def _named(self, module: Module) -> Iterator[tuple[str, int]]:
        """Yield modules that a module imports by their names.

        These are the strings that it gives to one of `IMPORTERS`. If it gives them something else, or calls one of
        `LAZY`, they are all strings in its tables and calls that name a module: alone or among several words, by all of
        its name or by what follows the package's own name or the beginning of an f-string, also as `module:name`.
        """
        calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
        by_name = [node for node in calls if _called(node) in IMPORTERS and node.args]
        given = [node.args[0] for node in by_name]
        if all(isinstance(each, ast.Constant) for each in given) and not any(_called(call) in LAZY for call in calls):
            strings, starts = [each for each in given if isinstance(each, ast.Constant)], {""}
        else:
            nodes = [*ast.walk(module.tree)]
            alone = {id(node.value) for node in nodes if isinstance(node, ast.Assign | ast.Expr)}  # such as docstrings
            strings = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in alone]
            texts = [node.values[0] for node in nodes if isinstance(node, ast.JoinedStr) and node.values]
            starts = {"", f"{module.name}."} | {str(text.value) for text in texts if isinstance(text, ast.Constant)}
        for node in strings:
            words = [word.partition(":")[0] for word in node.value.split()] if isinstance(node.value, str) else []
            for name in dict.fromkeys(start + word for start in sorted(starts) for word in words):
                if name in self.names and name != module.name and "." in name:
                    yield name, node.lineno

    def circles(self, *times: When) -> list[list[str]]:
        """Return the groups of modules that all lead to each other by imports of these times; the largest first."""
        leads = {
            name: {each.module for each in found if each.when in times and each.module in self.modules}
            for name, found in self.imports.items()
        }
        groups = [sorted(group) for group in _strongly_connected(leads) if len(group) > 1]
        return sorted(groups, key=lambda group: (-len(group), group))

    def bases(self, name: str) -> Iterator[str]:
        """Yield the classes of the package that a class is derived from."""
        module = name.rpartition(".")[0]
        for base in self.classes[name].bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            origin = self._origin(module, plain.id) if isinstance(plain, ast.Name) else ""
            if origin in self.classes and origin != name:
                yield origin

    def _origin(self, module: str, name: str) -> str:
        """Return where a name of a module is defined, through packages that pass it on."""
        origin = self._origins.get(module, {}).get(name, "")
        outer, _, inner = origin.rpartition(".")
        return origin if origin in self.classes or outer in ("", module) else self._origin(outer, inner) or origin

    def members(self, name: str) -> set[str]:
        """Return the members of a class and of its bases in the package."""
        return own_members(self.classes[name]).union(*map(self.members, self.bases(name)))

    def fields(self, name: str) -> set[str]:
        """Return the fields of a record, also those of its bases in the package."""
        return set(own_fields(self.classes[name])).union(*map(self.fields, self.bases(name)))


def own_members(node: ast.ClassDef) -> set[str]:
    """Return names of fields, methods, properties, and attributes that methods set; but for `__names__`."""
    names: set[str] = set()
    for part in node.body:
        if isinstance(part, FUNCTIONS):
            names.add(part.name)
            names.update(
                each.attr
                for each in ast.walk(part)
                if isinstance(each, ast.Attribute)
                and isinstance(each.ctx, ast.Store)
                and isinstance(each.value, ast.Name)
                and each.value.id == "self"
            )
        else:
            names.update(_assigned(part))
    return {name for name in names if not name.startswith("__")}


def own_fields(node: ast.ClassDef) -> list[str]:
    """Return the names that the body of a class annotates, which are its fields if it is a record."""
    return [name for part in node.body if isinstance(part, ast.AnnAssign) for name in _assigned(part)]


def is_for_types(node: ast.AST) -> bool:
    """Return whether a node is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and getattr(node.test, "attr", getattr(node.test, "id", "")) == "TYPE_CHECKING"


def with_time(parent: ast.AST, when: When = "at once") -> Iterator[tuple[ast.AST, When]]:
    """Yield all nodes, with the time when an import there is made."""
    for child in ast.iter_child_nodes(parent):
        own: When = "late" if isinstance(child, FUNCTIONS) else when
        yield child, own
        if isinstance(child, ast.If) and is_for_types(child):
            for part in child.body:
                yield part, "for types"
                yield from with_time(part, "for types")
            yield from with_time(ast.Module(child.orelse, []), own)
        else:
            yield from with_time(child, own)


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _imported_names(module: Module) -> dict[str, str]:
    found = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in found for alias in node.names}


def _defined_names(module: Module) -> dict[str, str]:
    found = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    return {node.name: f"{module.name}.{node.name}" for node in found}


def _strongly_connected(leads: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of names that all lead to each other (Kosaraju's algorithm)."""
    order: list[str] = []
    seen: set[str] = set()
    for first in leads:
        waiting = [(first, False)]
        while waiting:
            name, is_done = waiting.pop()
            if is_done:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                waiting += [(name, True), *((each, False) for each in leads[name])]
    back: dict[str, set[str]] = {name: set() for name in leads}
    for name, found in leads.items():
        for each in found:
            back[each].add(name)
    groups: list[set[str]] = []
    left = set(leads)
    for first in reversed(order):
        group, ready = set(), [first] if first in left else []
        while ready:
            name = ready.pop()
            if name in left:
                left.discard(name)
                group.add(name)
                ready += back[name]
        if group:
            groups.append(group)
    return groups
