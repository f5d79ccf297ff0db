"""Keywords of h5py's create_dataset, and property lists for what keywords cannot say.

::

    keywords : keyword '=' literal { ',' keyword '=' literal } | a dict of them
    keyword  : chunks | compression | compression_opts | shuffle | fletcher32 | scaleoffset

h5py runs them as scaleoffset, shuffle, compression, fletcher32, whatever order they are given in, with one compression,
and makes all but fletcher32 optional. Any other pipeline takes a property list: `code` writes it, `parse_keywords`
reads it.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from tamis.errors import ParameterError
from tamis.filters import Request, Stage, Zfp, by_id
from tamis.formatting import did_you_mean
from tamis.notation.chain import Chain, refuse_other_flags
from tamis.notation.places import malformed, refused

KEYWORDS = ("chunks", "compression", "compression_opts", "shuffle", "fletcher32", "scaleoffset")

_LZF = 32000
_EC, _NN = 4, 32
_SZIP_ALWAYS, _SZIP_NEVER = 129, 2  # RAW and K13, CHIP: what H5Pset_szip makes of any mask
_RANKS = {6: 0, 2: 1, 3: 3}
_FIRST_COMPRESSION = 10  # h5py takes smaller numbers for levels of gzip


@dataclass(frozen=True, slots=True)
class Keywords:
    """The content of keywords.

    Parameters
    ----------
    chain
        Filters in the order in which they run.
    chunks
        Shape of a chunk; None where h5py chooses.
    """

    chain: tuple[Stage, ...]
    chunks: tuple[int, ...] | None = None


def keywords(chain: Chain, chunks: Sequence[int] | None = None) -> dict[str, Any]:
    """Write a pipeline as keywords of create_dataset.

    Raises
    ------
    ParameterError
        If keywords cannot say it; says why. `code` can.
    """
    refuse_other_flags(chain, "a keyword")
    made: dict[str, Any] = {} if chunks is None else {"chunks": tuple(chunks)}
    ranks = [_RANKS.get(each.filter.id, 2) for each in chain]
    for before, after in pairwise(ranks):
        if before >= after:
            raise ParameterError(
                f"expected scaleoffset, shuffle, one compression, fletcher32, which is the order of h5py's keywords,"
                f" got {'|'.join(str(each.filter) for each in chain)}"
            )
    if {0, 3} <= set(ranks):
        raise ParameterError("expected scaleoffset or fletcher32, got both: h5py's keywords refuse that")
    for each in chain:
        made |= _keyword(each)
    return made


def _keyword(each: Stage) -> dict[str, Any]:
    number, values = each.request
    match number, values:
        case (1, (level,)) if level < 10:
            return {"compression": "gzip", "compression_opts": level}
        case (2, _):
            return {"shuffle": True}
        case (3, _):
            return {"fletcher32": True}
        case (4, (mask, pixels, *_)) if mask & (_EC | _NN) and pixels in range(2, 33, 2):
            # H5Pset_szip takes both bits for the first of them.
            return {"compression": "szip", "compression_opts": ("ec" if mask & _EC else "nn", pixels)}
        case (6, (0 | 2, factor, *_)) if factor < 1 << 31:
            # Of 0 bits as needed h5py makes 0 decimal digits where the values are floats; of True it does not.
            return {"scaleoffset": True if (number, *values[:2]) == (6, 2, 0) else factor}
        case (32000, ()):
            return {"compression": "lzf"}
    if number < _FIRST_COMPRESSION:
        raise ParameterError(f"expected a filter that h5py has a keyword for, got {each.filter}")
    return {"compression": number, "compression_opts": values} if values else {"compression": number}


def keywords_text(chain: Chain, chunks: Sequence[int] | None = None) -> str:
    """Write keywords to paste into a call of create_dataset.

    Raises
    ------
    ParameterError
        If keywords cannot say the pipeline; says why.
    """
    return ", ".join(f"{name}={value!r}" for name, value in keywords(chain, chunks).items())


def code(chain: Chain, chunks: Sequence[int] | None = None, name: str = "TS") -> str:
    """Write lines that create a dataset with any pipeline; they expect ``file`` and ``values``.

    Parameters
    ----------
    chain
        Filters in the order in which they run.
    chunks
        Shape of a chunk; where it is None the lines take all values as one.
    name
        Of the dataset.
    """
    lines = ["import h5py"]
    if any(isinstance(each.filter, Zfp) for each in chain):
        lines.append("import tamis  # lets h5py write zfp")
    if any(each.filter.id not in (*range(7), _LZF, Zfp.id) and each.filter.id in by_id() for each in chain):
        lines.append("import hdf5plugin")
    lines.append("dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)")
    if chain or chunks:
        lines.append(f"dcpl.set_chunk({tuple(chunks) if chunks else 'values.shape'})")
    for each in chain:
        number, values = each.request
        if number == 4 and values:
            values = (values[0] & ~_SZIP_NEVER | _SZIP_ALWAYS, *values[1:])
        lines.append(f"dcpl.set_filter({number}, {int(each.optional)}, {values})")
    lines.append(f"file.create_dataset({name!r}, data=values, dcpl=dcpl)")
    return "\n".join(lines)


def parse_keywords(text: str | Mapping[str, Any], *, dtype: np.dtype[Any] | str | None = None) -> Keywords:
    """Read keywords of create_dataset, or lines as `code` writes them.

    Parameters
    ----------
    text
        Such as ``chunks=(4, 96, 144), compression="gzip", compression_opts=4, shuffle=True``; or a mapping.
    dtype
        Of the values, which scaleoffset depends on.

    Raises
    ------
    ParameterError
        If it is malformed, with the place; or if h5py or a filter refuses it.
    """
    kind = None if dtype is None else np.dtype(dtype).kind
    if isinstance(text, str):
        return _parsed_text(text, kind)
    return _from_mapping(text, kind)


def _from_mapping(given: Mapping[str, Any], kind: str | None) -> Keywords:
    if unknown := [key for key in given if key not in KEYWORDS]:
        raise ParameterError(
            f"expected keywords {', '.join(KEYWORDS)}, got {unknown[0]!r}{did_you_mean(unknown[0], KEYWORDS)}"
        )
    requests = [
        *_scaleoffset(given.get("scaleoffset"), kind),
        *([Request(2, ())] if given.get("shuffle") else []),
        *_compression(given.get("compression"), given.get("compression_opts")),
        *([Request(3, ())] if given.get("fletcher32") else []),
    ]
    if given.get("fletcher32") and given.get("scaleoffset") is not None:
        raise ParameterError("expected scaleoffset or fletcher32, got both, which h5py refuses")
    return Keywords(tuple(map(Stage.of, requests)), _chunks(given.get("chunks")))


def _chunks(value: object) -> tuple[int, ...] | None:
    if value is None or value is True:
        return None
    shape = (value,) if isinstance(value, int) else value
    if isinstance(shape, (tuple, list)) and shape and all(type(step) is int and step > 0 for step in shape):
        return tuple(shape)
    raise ParameterError(f"expected chunks of whole numbers above 0 such as (4, 96, 144), got chunks={value!r}")


def _scaleoffset(value: object, kind: str | None) -> list[Request]:
    if value is None:
        return []
    if not isinstance(value, int) or value is False or not 0 <= value < 1 << 31:
        raise ParameterError(f"expected scaleoffset of 0 or more, True or None, got {value!r}")
    if value is not True and kind is None:
        raise ParameterError(
            f"expected the type of the values beside scaleoffset={value}, got none: h5py means bits of integers, and"
            " decimal digits of floats; give the type, such as f4"
        )
    if kind not in (None, "i", "u", "f") or (value is True and kind == "f"):
        raise ParameterError(f"expected scaleoffset that h5py has for such values, got {value!r} for kind {kind!r}")
    return [Request(6, (0, int(value)) if kind == "f" else (2, 0 if value is True else value))]


def _compression(value: object, options: object) -> list[Request]:
    if value is None:
        if options is not None:
            raise ParameterError(f"expected compression beside compression_opts={options!r}, got none")
        return []
    if isinstance(value, int) and value < _FIRST_COMPRESSION:
        # h5py knows these from its first days: True is gzip with its level, numbers are levels of gzip.
        if value < 0 or options is not None:
            raise ParameterError(f"expected a name or the number of a filter, got compression={value!r}")
        return [Request(1, (4 if value is True else int(value),))]
    return [_named(value, options) if isinstance(value, str) else _numbered(value, options)]


def _named(value: str, options: object) -> Request:
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
    known = "'gzip' with a level of 0 to 9, 'lzf', 'szip' with ('nn' or 'ec', an even number up to 32)"
    raise ParameterError(f"expected {known} or a number, got compression={value!r}, compression_opts={options!r}")


def _numbered(value: object, options: object) -> Request:
    words = () if options is None else options
    if not isinstance(value, int) or value > 65535:
        raise ParameterError(f"expected a name or the number of a filter, got compression={value!r}")
    if not isinstance(words, tuple) or not all(type(each) is int and 0 <= each < 1 << 32 for each in words):
        raise ParameterError(f"expected compression_opts as a tuple of 0 to 4294967295, got {options!r}")
    return Request(value, words)


def _parsed_text(text: str, kind: str | None) -> Keywords:
    if re.search(r"\.set_(filter|chunk)\b", text):
        return _from_code(text)
    mapping = re.match(r"\s*(\{|dict\s*\()", text)
    prefix = "" if mapping else "f("
    tree = _tree(prefix + text + ("" if mapping else "\n)"), text, len(prefix)).body
    if len(tree) != 1 or not isinstance(tree[0], ast.Expr):
        _fail(text, 0, "keywords with commas between them")
    found = tree[0].value
    if isinstance(found, ast.Dict):
        pairs = list(zip(found.keys, found.values, strict=True))
    elif isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and not found.args:
        pairs = [(ast.Constant(each.arg) if each.arg else None, each.value) for each in found.keywords]
    else:
        _fail(text, 0, f"keywords such as {KEYWORDS[1]}='gzip' with commas between them")
    given: dict[str, Any] = {}
    places: dict[str, int] = {}
    for key, node in pairs:
        place = _place(text, node, len(prefix))
        label = _literal(text, key, place) if key else None
        if label not in KEYWORDS or label in given:
            nearest = "" if label in given else did_you_mean(str(label), KEYWORDS)
            _fail(text, place, f"a value of one of the keywords {', '.join(KEYWORDS)}, each once{nearest}")
        given[label], places[label] = _literal(text, node, place), place
    try:
        return _from_mapping(given, kind)
    except ParameterError as error:
        raise refused(text, max(min(places.values(), default=0), 0), str(error)) from error


def _from_code(text: str) -> Keywords:
    chunks, chain = None, []
    for statement in _tree(text, text, 0).body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue  # imports, and the property list made
        place = _place(text, call, 0)
        try:
            match call.func.attr:
                case "set_chunk":
                    chunks = _code_chunks(text, call, place)
                case "set_filter":
                    chain.append(_code_filter(text, call, place))
                case "create_dataset":
                    continue
                case _:
                    _fail(text, place, "set_chunk, set_filter or create_dataset")
        except ParameterError as error:
            if str(error).endswith("^"):
                raise
            raise refused(text, place, str(error)) from error
    return Keywords(tuple(chain), chunks)


def _code_chunks(text: str, call: ast.Call, place: int) -> tuple[int, ...] | None:
    shape = call.args[0] if call.args else None
    return None if isinstance(shape, ast.Attribute) else _chunks(_literal(text, shape, place))


def _code_filter(text: str, call: ast.Call, place: int) -> Stage:
    values = [_literal(text, each, place) for each in call.args]
    if len(values) not in (2, 3) or type(values[0]) is not int or values[1] not in (0, 1) or values[0] < 0:
        _fail(text, place, "set_filter with an id, a flag of 0 or 1 and a tuple")
    number, flag, words = (*values, ())[:3]
    return replace(Stage.of(_numbered(number, words)), optional=bool(flag))


def _tree(source: str, text: str, prefix: int) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings that were meant for something else
            return ast.parse(source)
    except SyntaxError as error:
        lines = source.splitlines(keepends=True)
        line = max(min(error.lineno or 1, len(lines)), 1)
        at = sum(map(len, lines[: line - 1])) + max((error.offset or 1) - 1, 0) - prefix
        _fail(text, min(max(at, 0), len(text)), f"Python ({error.msg})")
    except (ValueError, RecursionError, MemoryError) as error:
        _fail(text, 0, f"Python ({error})")


def _place(text: str, node: ast.AST, prefix: int) -> int:
    lines = text.splitlines(keepends=True)
    line = getattr(node, "lineno", 1) - 1
    before = "".join(lines[:line])
    row = lines[line].encode() if line < len(lines) else b""
    offset = max(getattr(node, "col_offset", 0) - (0 if line else prefix), 0)
    return len(before) + len(row[:offset].decode(errors="ignore"))


def _literal(text: str, node: ast.expr | None, place: int) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        _fail(text, place, "a number, text, True, False, None or a tuple of them")


def _fail(text: str, place: int, expected: str) -> NoReturn:
    raise malformed(text, place, expected)
