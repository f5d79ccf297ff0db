"""Names and values of attributes as text of CDL, as ncdump writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from tamis.store.cdl_model import CdlType, HeaderAttribute

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


def escaped_path(path: str) -> str:
    """Return a path with the escapes that CDL needs."""
    return "/".join(map(escaped, path.split("/")))


def attribute_text(attribute: HeaderAttribute, *, splits_lines: bool) -> str:
    """Return the values of an attribute.

    Parameters
    ----------
    attribute
        The attribute.
    splits_lines
        Whether each line of text is a text of its own, as in the classic model, which has one text for an attribute.
    """
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
    if 0xD800 <= code <= 0xDFFF:  # a byte that is no UTF-8
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
            return _braces(
                _inner(field, value[index]) if not shape else _array(field, value[index])
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
