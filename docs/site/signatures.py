"""Signatures of public names as Python has them; griffe reads the source, where some are made by a decorator."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
from names import public_names, value


class Signatures(griffe.Extension):
    """Gives functions, methods and tuples with names the parameters that `inspect.signature` tells."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Let a docstring that names a page lead there."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"\bdocs/([\w-]+)\.md\b", r"[\1](../../\1.html)", obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change what was read of tamis."""
        for name in public_names():
            read: Any = pkg[name.removeprefix("tamis.")]
            read = read.final_target if read.is_alias else read
            found = value(name)
            if inspect.isfunction(found):
                _set_parameters(read, found)
            elif inspect.isclass(found):
                for own, method in vars(found).items():
                    if inspect.isfunction(method) and own in read.members and read[own].is_function:
                        _set_parameters(read[own], method)
                if hasattr(found, "_fields") or "__new__" in vars(found):
                    made = griffe.Function("__init__", parameters=griffe.Parameters(*parameters(found)))
                    read.set_member("__init__", made)


def _set_parameters(read: griffe.Function, found: Any) -> None:
    """Set the parameters of a function; if it can be called in several ways, those of all of them."""
    if "**options" in (found.__doc__ or ""):  # which are described elsewhere
        return
    ways: list[griffe.Parameter] = [each for way in read.overloads or () for each in way.parameters]
    known = {each.name: each for each in ways or parameters(found)}
    read.parameters = griffe.Parameters(*known.values())


def parameters(function: Any) -> Iterator[griffe.Parameter]:
    """Yield the parameters of a function; those of a TypedDict one by one."""
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.VAR_KEYWORD and str(each.annotation).startswith("Unpack["):
            kind = inspect.unwrap(function).__globals__[each.annotation[len("Unpack[") : -1]]
            for key, annotation in kind.__annotations__.items():
                yield griffe.Parameter(
                    key, annotation=text_of(annotation), kind=griffe.ParameterKind.keyword_only, default="..."
                )
        else:
            annotation = None if each.annotation is each.empty else text_of(each.annotation)
            default = None if each.default is each.empty else repr(each.default)
            yield griffe.Parameter(each.name, annotation=annotation, kind=KINDS[each.kind], default=default)


def text_of(annotation: Any) -> str:
    """Return the source of an annotation."""
    return str(getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation)))


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}
