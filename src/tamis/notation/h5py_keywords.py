"""Keywords of h5py's create_dataset, and property lists for pipelines that keywords cannot express.

::

    keywords : keyword '=' literal { ',' keyword '=' literal } | a dict of them
    keyword  : chunks | compression | compression_opts | shuffle | fletcher32 | scaleoffset

Whatever their order, h5py runs scaleoffset, shuffle, one compression, fletcher32, and makes all of them optional except
fletcher32. Any other pipeline needs a property list: `code` writes the lines for it, and `parse_keywords` reads them.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from tamis.errors import ParameterError
from tamis.filters import Request, Stage, Zfp, by_id
from tamis.formatting import did_you_mean
from tamis.notation.text import Chain, Reading, as_chunk_shape, malformed, refuse_other_flags, refused

KEYWORDS = ("chunks", "compression", "compression_opts", "shuffle", "fletcher32", "scaleoffset")

_LZF = 32000
_EC, _NN = 4, 32
_SZIP_ALWAYS, _SZIP_NEVER = 129, 2  # RAW and K13, CHIP: bits that H5Pset_szip sets and clears in any mask
_RANKS = {6: 0, 2: 1, 3: 3}
_FIRST_COMPRESSION = 10  # h5py treats smaller numbers as levels of gzip


def keywords(chain: Chain, chunk_shape: Sequence[int] | None = None) -> dict[str, Any]:
    """Write a pipeline as keywords of create_dataset."""
    refuse_other_flags(chain, "a keyword")
    result: dict[str, Any] = {} if chunk_shape is None else {"chunks": tuple(chunk_shape)}
    ranks = [_RANKS.get(stage.filter.id, 2) for stage in chain]
    for before, after in pairwise(ranks):
        if before >= after:
            raise ParameterError(
                f"expected scaleoffset, shuffle, one compression, fletcher32, which is the order of h5py's keywords,"
                f" got {'|'.join(str(stage.filter) for stage in chain)}"
            )
    if {0, 3} <= set(ranks):
        raise ParameterError("h5py's keywords refuse scaleoffset with fletcher32: use one of them")
    for stage in chain:
        result |= _keyword(stage)
    return result


def _keyword(stage: Stage) -> dict[str, Any]:
    """Return the keywords of one filter."""
    number, cd_values = stage.request
    match number, cd_values:
        case (1, (level,)) if level < 10:
            return {"compression": "gzip", "compression_opts": level}
        case (2, _):
            return {"shuffle": True}
        case (3, _):
            return {"fletcher32": True}
        case (4, (mask, pixels, *_)) if mask & (_EC | _NN) and pixels in range(2, 33, 2):
            # With both bits set, H5Pset_szip uses entropy coding.
            return {"compression": "szip", "compression_opts": ("ec" if mask & _EC else "nn", pixels)}
        case (6, (0 | 2, factor, *_)) if factor < 1 << 31:
            # True means as many bits as needed; 0 would mean 0 decimal digits if the values are floats.
            return {"scaleoffset": True if (number, *cd_values[:2]) == (6, 2, 0) else factor}
        case (32000, ()):
            return {"compression": "lzf"}
    if number < _FIRST_COMPRESSION:
        raise ParameterError(f"expected a filter that h5py has a keyword for, got {stage.filter}")
    return {"compression": number, "compression_opts": cd_values} if cd_values else {"compression": number}


def keywords_text(chain: Chain, chunk_shape: Sequence[int] | None = None) -> str:
    """Write keywords to paste into a call of create_dataset."""
    return ", ".join(f"{name}={value!r}" for name, value in keywords(chain, chunk_shape).items())


def code(chain: Chain, chunk_shape: Sequence[int] | None = None, name: str = "TS") -> str:
    """Write lines that create a dataset with any pipeline; they expect ``file`` and ``values``."""
    lines = ["import h5py"]
    if any(isinstance(stage.filter, Zfp) for stage in chain):
        lines.append("import tamis  # lets h5py write zfp")
    if any(stage.filter.id not in (*range(7), _LZF, Zfp.id) and stage.filter.id in by_id() for stage in chain):
        lines.append("import hdf5plugin")
    lines.append("dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)")
    if chain or chunk_shape:
        lines.append(f"dcpl.set_chunk({tuple(chunk_shape) if chunk_shape else 'values.shape'})")
    for stage in chain:
        number, cd_values = stage.request
        if number == 4 and cd_values:
            cd_values = (cd_values[0] & ~_SZIP_NEVER | _SZIP_ALWAYS, *cd_values[1:])
        lines.append(f"dcpl.set_filter({number}, {int(stage.optional)}, {cd_values})")
    lines.append(f"file.create_dataset({name!r}, data=values, dcpl=dcpl)")
    return "\n".join(lines)


def parse_keywords(text: str | Mapping[str, Any], *, dtype: np.dtype[Any] | str | None = None) -> Reading:
    """Read keywords of create_dataset, or the lines of `code`."""
    kind = None if dtype is None else np.dtype(dtype).kind
    if isinstance(text, str):
        return _parsed_text(text, kind)
    return _from_mapping(text, kind)


def _from_mapping(mapping: Mapping[str, Any], kind: str | None) -> Reading:
    """Read keywords by name; `kind` is that of the type of the values, None if it is not known."""
    if unknown := [key for key in mapping if key not in KEYWORDS]:
        raise ParameterError(
            f"expected keywords {', '.join(KEYWORDS)}, got {unknown[0]!r}{did_you_mean(unknown[0], KEYWORDS)}"
        )
    requests = _scaleoffset(mapping.get("scaleoffset"), kind)
    if mapping.get("shuffle"):
        requests.append(Request(2, ()))
    requests += _compression(mapping.get("compression"), mapping.get("compression_opts"))
    if mapping.get("fletcher32"):
        requests.append(Request(3, ()))
    if mapping.get("fletcher32") and mapping.get("scaleoffset") is not None:
        raise ParameterError("h5py refuses scaleoffset with fletcher32: use one of them")
    return Reading("h5py", tuple(map(Stage.of, requests)), (), _chunk_shape(mapping.get("chunks")))


def _chunk_shape(value: object) -> tuple[int, ...] | None:
    """Return the chunk shape; None if h5py chooses one, or there are no chunks."""
    if value is None or value is True:
        return None
    shape = as_chunk_shape(value)
    if shape is not None:
        return shape
    raise ParameterError(f"expected chunks of whole numbers above 0 such as (4, 96, 144), got chunks={value!r}")


def _scaleoffset(value: object, kind: str | None) -> list[Request]:
    """Return the filter of the keyword, if there is one."""
    if value is None:
        return []
    if not isinstance(value, int) or value is False or not 0 <= value < 1 << 31:
        raise ParameterError(f"expected scaleoffset of 0 or more, True or None, got {value!r}")
    if value is not True and kind is None:
        raise ParameterError(
            f"expected the type of the values with scaleoffset={value}, got none: h5py means bits of integers, and"
            " decimal digits of floats; give the type, such as f4"
        )
    if kind not in (None, "i", "u", "f") or (value is True and kind == "f"):
        raise ParameterError(
            f"expected scaleoffset that h5py supports for such values, got {value!r} for kind {kind!r}"
        )
    if kind == "f":
        return [Request(6, (0, int(value)))]
    return [Request(6, (2, 0 if value is True else value))]


def _compression(value: object, options: object) -> list[Request]:
    """Return the filter of both keywords, if there is one."""
    if value is None:
        if options is not None:
            raise ParameterError(f"expected compression with compression_opts={options!r}, got none")
        return []
    if isinstance(value, int) and value < _FIRST_COMPRESSION:
        # h5py keeps this from its early versions: True means gzip, and small numbers are levels of gzip.
        if value < 0 or options is not None:
            raise ParameterError(f"expected a name or the number of a filter, got compression={value!r}")
        return [Request(1, (4 if value is True else int(value),))]
    return [_named(value, options) if isinstance(value, str) else _numbered(value, options)]


def _named(value: str, options: object) -> Request:
    """Return the filter of a name with its options."""
    match value, options:
        case "gzip", None:
            return Request(1, (4,))
        case "gzip", int() as level if level in range(10):
            return Request(1, (level,))
        case "lzf", None:
            return Request(_LZF, ())
        case "szip", None:
            return Request(4, (_NN, 8))
        case "szip", (("ec" | "nn") as coding, int() as pixels) if pixels in range(2, 33, 2):
            return Request(4, (_EC if coding == "ec" else _NN, pixels))
    accepted = "'gzip' with a level of 0 to 9, 'lzf', 'szip' with ('nn' or 'ec', an even number up to 32)"
    raise ParameterError(f"expected {accepted} or a number, got compression={value!r}, compression_opts={options!r}")


def _numbered(value: object, options: object) -> Request:
    """Return the filter of a number with its options, which are its parameters."""
    cd_values = () if options is None else options
    if not isinstance(value, int) or value > 65535:
        raise ParameterError(f"expected a name or the number of a filter, got compression={value!r}")
    if not isinstance(cd_values, tuple) or not all(
        type(cd_value) is int and 0 <= cd_value < 1 << 32 for cd_value in cd_values
    ):
        raise ParameterError(f"expected compression_opts as a tuple of 0 to 4294967295, got {options!r}")
    return Request(value, cd_values)


def _parsed_text(text: str, kind: str | None) -> Reading:
    """Read keywords, a dict of them, or the lines of `code`."""
    if re.search(r"\.set_(filter|chunk)\b", text):
        return _from_code(text)
    prefix, end = "f(", "\n)"
    if re.match(r"\s*(\{|dict\s*\()", text):
        prefix = end = ""
    tree = _tree(f"{prefix}{text}{end}", text, len(prefix)).body
    if len(tree) != 1 or not isinstance(tree[0], ast.Expr):
        raise malformed(text, 0, "keywords with commas between them")
    node = tree[0].value
    if isinstance(node, ast.Dict):
        pairs = list(zip(node.keys, node.values, strict=True))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        pairs = [(ast.Constant(keyword.arg) if keyword.arg else None, keyword.value) for keyword in node.keywords]
    else:
        raise malformed(text, 0, f"keywords such as {KEYWORDS[1]}='gzip' with commas between them")
    mapping: dict[str, Any] = {}
    positions: dict[str, int] = {}
    for key, value_node in pairs:
        position = _position(text, value_node, len(prefix))
        keyword = _literal(text, key, position) if key else None
        if keyword not in KEYWORDS or keyword in mapping:
            nearest = "" if keyword in mapping else did_you_mean(str(keyword), KEYWORDS)
            raise malformed(text, position, f"a value of one of the keywords {', '.join(KEYWORDS)}, each once{nearest}")
        mapping[keyword] = _literal(text, value_node, position)
        positions[keyword] = position
    try:
        return _from_mapping(mapping, kind)
    except ParameterError as error:
        raise refused(text, max(min(positions.values(), default=0), 0), str(error)) from error


def _from_code(text: str) -> Reading:
    """Read the lines of `code`."""
    chunk_shape: tuple[int, ...] | None = None
    chain: list[Stage] = []
    for statement in _tree(text, text, 0).body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue  # imports, and the creation of the property list
        position = _position(text, call, 0)
        try:
            match call.func.attr:
                case "set_chunk":
                    chunk_shape = _code_chunks(text, call, position)
                case "set_filter":
                    chain.append(_code_filter(text, call, position))
                case "create_dataset":
                    continue
                case _:
                    raise malformed(text, position, "set_chunk, set_filter or create_dataset")
        except ParameterError as error:
            if str(error).endswith("^"):
                raise
            raise refused(text, position, str(error)) from error
    return Reading("h5py", tuple(chain), (), chunk_shape)


def _code_chunks(text: str, call: ast.Call, position: int) -> tuple[int, ...] | None:
    shape = call.args[0] if call.args else None
    return None if isinstance(shape, ast.Attribute) else _chunk_shape(_literal(text, shape, position))


def _code_filter(text: str, call: ast.Call, position: int) -> Stage:
    arguments = [_literal(text, argument, position) for argument in call.args]
    if len(arguments) not in (2, 3) or type(arguments[0]) is not int or arguments[1] not in (0, 1) or arguments[0] < 0:
        raise malformed(text, position, "set_filter with an id, a flag of 0 or 1 and a tuple")
    cd_values = arguments[2] if len(arguments) == 3 else ()
    return replace(Stage.of(_numbered(arguments[0], cd_values)), optional=bool(arguments[1]))


def _tree(source: str, text: str, prefix: int) -> ast.Module:
    """Parse Python that is a text behind a prefix of so many characters."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings
            return ast.parse(source)
    except SyntaxError as error:
        lines = source.splitlines(keepends=True)
        line = max(min(error.lineno or 1, len(lines)), 1)
        position = sum(map(len, lines[: line - 1])) + max((error.offset or 1) - 1, 0) - prefix
        raise malformed(text, min(max(position, 0), len(text)), f"Python ({error.msg})") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise malformed(text, 0, f"Python ({error})") from error


def _position(text: str, node: ast.AST, prefix: int) -> int:
    """Return where a node begins in a text."""
    lines = text.splitlines(keepends=True)
    line = getattr(node, "lineno", 1) - 1
    before = "".join(lines[:line])
    row = lines[line].encode() if line < len(lines) else b""
    offset = max(getattr(node, "col_offset", 0) - (0 if line else prefix), 0)
    return len(before) + len(row[:offset].decode(errors="ignore"))


def _literal(text: str, node: ast.expr | None, position: int) -> Any:
    """Return the value of a node, which must be a literal; None for no node."""
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise malformed(text, position, "a number, text, True, False, None or a tuple of them") from None
