"""The header of a file as CDL, like ``ncdump -hs``, but with filters as stored."""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.formats import open_store
from tamis.formatting import printable
from tamis.notation import filters_as_stored

if TYPE_CHECKING:
    from tamis.stores import CdlType, Header, HeaderAttribute, HeaderGroup, HeaderVariable

KEYWORDS = frozenset(
    (
        *("variables", "dimensions", "data", "group", "types", "unlimited", "compound", "enum", "opaque"),
        *("char", "byte", "short", "int", "long", "float", "real", "double", "string"),
        *("ubyte", "ushort", "uint", "int64", "uint64"),
    )
)
"""Words that CDL reads as its own; a blank after them makes them names of variables."""

_SUFFIXES = {
    **{"byte": "b", "ubyte": "UB", "short": "s", "ushort": "US", "int": "", "uint": "U"},
    **{"int64": "LL", "uint64": "ULL", "float": "f", "double": ""},
}
_SPECIAL = re.compile(r"[ !\"#$&'()*,:;<=>?\[\\\]^`{|}~]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPES = {
    **{"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"},
    **{"\\": "\\\\", "'": "\\'", '"': '\\"'},
}


def escaped(name: str) -> str:
    """Return a name with the escapes that CDL needs."""
    text = _CONTROL.sub(lambda match: f"\\%{ord(match[0]):02x}", _SPECIAL.sub(r"\\\g<0>", name))
    return f"\\{text}" if text[:1].isdigit() and text[0].isascii() else text


def attribute_text(attribute: HeaderAttribute, *, splits_lines: bool) -> str:
    """Return the values of an attribute."""
    if not attribute.values:
        return '""'
    if attribute.type.form == "char":
        return quoted(attribute.values[0].rstrip("\0"), splits_lines=splits_lines)
    if attribute.type.form == "number":
        return ", ".join(_number(attribute.type, value) for value in attribute.values)
    return ", ".join(_inner(attribute.type, value) for value in attribute.values)


def quoted(text: str, *, splits_lines: bool = False) -> str:
    """Return text in double quotes, with escapes."""
    inner = "".join(map(_letter, text))
    return '"' + (inner.replace("\\n", '\\n",\n\t\t\t"') if splits_lines and "\n" in text else inner) + '"'


def _letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    code = ord(letter)
    if code < 32 or code == 127:
        return f"\\{code:03o}"
    if 0xD800 <= code <= 0xDFFF:  # a byte that is not UTF-8
        return f"\\{code & 0xFF:03o}"
    return letter


def _number(kind: CdlType, value: Any) -> str:
    """Return a number with the suffix of its type."""
    if kind.name not in ("float", "double"):
        return f"{int(value)}{_SUFFIXES[kind.name]}"
    if not math.isfinite(value):
        return _not_finite(kind, float(value))
    text = format(float(value), "#.7g" if kind.name == "float" else "#.15g")
    digits, sign, exponent = text.partition("e")
    return f"{digits.rstrip('0')}{sign}{exponent}{_SUFFIXES[kind.name]}"


def _not_finite(kind: CdlType, value: float) -> str:
    text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return text + ("f" if kind.name == "float" else "")


def _inner(kind: CdlType, value: Any) -> str:
    """Return a value of a user-defined type, or within one, where numbers have no suffix."""
    match kind.form:
        case "string":
            return quoted(_decoded(value))
        case "char":
            return quoted(_decoded(value).rstrip("\0"))
        case "enum":
            names = {number: name for name, number in kind.members}
            return escaped(names[int(value)]) if int(value) in names else str(int(value))
        case "opaque":
            return "0X" + np.asarray(value).tobytes().hex().upper()
        case "vlen":
            assert kind.base is not None
            return _braces(_inner(kind.base, item) for item in value)
        case "compound":
            parts = (value.real, value.imag) if isinstance(value, (complex, np.complexfloating)) else value
            return _braces(
                _inner(field, parts[index]) if not shape else _array(field, parts[index])
                for index, (_, field, shape) in enumerate(kind.fields)
            )
    if kind.name in ("float", "double"):
        number = float(value)
        digits = ".7g" if kind.name == "float" else ".15g"
        return format(number, digits) if math.isfinite(number) else _not_finite(kind, number)
    return str(int(value))


def _array(kind: CdlType, values: Any) -> str:
    if kind.form == "char":
        return _braces([quoted(_decoded(np.asarray(values).tobytes()).rstrip("\0"))])
    return _braces(_inner(kind, value) for value in np.asarray(values).reshape(-1))


def _braces(items: Iterable[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


_WIDTH = 80
_CLASSIC = ("classic", "64-bit offset", "cdf5", "netCDF-4 classic model")


def cdl_header(path: str | os.PathLike[str]) -> str:
    """Return the header of a file as CDL."""
    with open_store(path) as store:
        return header_text(os.fsdecode(path), store.header())


def header_text(path: str, header: Header) -> str:
    """Return a header as text, which ends with a line end."""
    name = PurePath(path).name
    stem = name.rpartition(".")[0] or name
    writer = _Writer(header)
    lines = [f"netcdf {escaped(stem)} {{", *writer.group(header.root, ""), "}"]
    return "\n".join(lines) + "\n"


class _Writer:
    """Writes the groups of a file, with names of types and dimensions as they are seen in each of them."""

    def __init__(self, header: Header) -> None:
        self._header = header
        # ncdump also calls NCZarr netCDF-4, and ncgen knows no other name.
        self._format = header.kind if header.kind in (*_CLASSIC, "netCDF-4") else "netCDF-4"
        self._splits_lines = header.kind in _CLASSIC
        self._types: dict[str, set[str]] = {}
        self._dimensions: dict[str, set[str]] = {}

    def group(self, group: HeaderGroup, indent: str) -> Iterator[str]:
        """Yield the lines of a group."""
        path = group.path
        self._types[path] = {kind.name for kind in group.types}
        self._dimensions[path] = set(group.dimensions)
        if group.types:
            yield f"{indent}types:"
            for kind in group.types:
                yield from self._definition(kind, path, f"{indent}  ")
        if group.dimensions:
            yield f"{indent}dimensions:"
        for name, dimension in group.dimensions.items():
            size = f"UNLIMITED ; // ({dimension.size} currently)" if dimension.is_unlimited else f"{dimension.size} ;"
            yield f"{indent}\t{escaped(name)} = {size}"
        if group.variables:
            yield f"{indent}variables:"
        for variable in group.variables:
            yield from self._variable(variable, path, indent)
        for name, reason in group.left_out.items():
            yield f"{indent}\t// left out: {printable(escaped(name))}: {reason}"
        yield from ("", f"{indent}// {'group' if indent else 'global'} attributes:")
        yield from (f"{indent}\t\t{line}" for line in self._attributes(group, path))
        if not indent:
            yield from (f"\t\t:{name} = {_value(value)} ;" for name, value in self._header.hidden.items())
            yield f'\t\t:_Format = "{self._format}" ;'
        for inner in group.groups:
            name = escaped(posixpath.basename(inner.path))
            yield from ("", f"{indent}group: {name} {{")
            yield from self.group(inner, f"{indent}  ")
            yield f"{indent}  }} // group {name}"

    def _attributes(self, owner: HeaderGroup | HeaderVariable, path: str, name: str = "") -> Iterator[str]:
        """Yield the attributes of a group, or of a variable with a name."""
        shown = escaped(name) + " " * (name in KEYWORDS)
        for attribute in owner.attributes:
            kind = attribute.type
            is_plain = kind.form in ("number", "char")
            prefix = "" if is_plain else f"{self._type_name(kind, path)} "
            text = attribute_text(attribute, splits_lines=self._splits_lines)
            yield f"{prefix}{shown}:{escaped(attribute.name)} = {text} ;"

    def _variable(self, variable: HeaderVariable, path: str, indent: str) -> Iterator[str]:
        axes = ", ".join(self._dimension_name(axis, path) for axis in variable.dimensions)
        name = escaped(variable.name)
        yield f"{indent}\t{self._type_name(variable.type, path)} {name}{f'({axes})' if axes else ''} ;"
        yield from (f"{indent}\t\t{line}" for line in self._attributes(variable, path, variable.name))
        shown = name + " " * (variable.name in KEYWORDS)
        for key, value in _special(variable).items():
            yield f"{indent}\t\t{shown}:{key} = {value}"

    def _definition(self, kind: CdlType, path: str, indent: str) -> Iterator[str]:
        """Yield the definition of a type."""
        name = escaped(kind.name)
        if kind.form == "enum":
            assert kind.base is not None
            lines = [f"{indent}{kind.base.name} enum {name} {{"]
            last = len(kind.members) - 1
            for index, (member, number) in enumerate(kind.members):
                text = f"{escaped(member)} = {number}{'} ;' if index == last else ', '}"
                if len(lines[-1]) + len(text) > _WIDTH + len(indent) - 1 and index:
                    lines.append(f"{indent}    ")
                lines[-1] += text
            yield from lines
        elif kind.form == "opaque":
            yield f"{indent}opaque({kind.nbytes}) {name} ;"
        elif kind.form == "vlen":
            assert kind.base is not None
            yield f"{indent}{self._type_name(kind.base, path)}(*) {name} ;"
        else:
            yield f"{indent}compound {name} {{"
            for field, field_type, shape in kind.fields:
                sizes = f"({', '.join(map(str, shape))})" if shape else ""
                yield f"{indent}  {self._type_name(field_type, path)} {escaped(field)}{sizes} ;"
            yield f"{indent}}}; // {name}"

    def _type_name(self, kind: CdlType, path: str) -> str:
        return _seen(self._types, kind.group, kind.name, path) if kind.group else kind.name

    def _dimension_name(self, dimension: str, path: str) -> str:
        group, _, name = dimension.rpartition("/")
        return _seen(self._dimensions, group or "/", name, path)


def _seen(names: Mapping[str, set[str]], group: str, name: str, path: str) -> str:
    """Return the name of an item of one group as seen from another: its path if the name is ambiguous."""
    while path != group and path != "/" and name not in names[path]:
        path = posixpath.dirname(path)
    return escaped(name) if path == group else "/".join(map(escaped, posixpath.join(group, name).split("/")))


def _value(value: str | int) -> str:
    return quoted(value) if isinstance(value, str) else str(value)


def _special(variable: HeaderVariable) -> dict[str, str]:
    """Return the attributes that describe how a variable is stored, as text with the semicolon."""
    special = {"_Storage": f'"{variable.storage}" ;'} if variable.storage else {}
    if variable.chunk_shape:
        special["_ChunkSizes"] = f"{', '.join(map(str, variable.chunk_shape))} ;"
    special |= filters_as_stored(variable.pipeline.stages)
    if variable.codecs:
        special["_Codecs"] = f"{quoted(variable.codecs)} ;"
    if variable.byteorder:
        special["_Endianness"] = f'"{variable.byteorder}" ;'
    if variable.has_no_fill:
        special["_NoFill"] = '"true" ;'
    return special
