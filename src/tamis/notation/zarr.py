"""Zarr codecs that store the same bytes or values as HDF5 filters, as JSON of Zarr 2 and 3.

::

    version 2 : {"filters": [config, …] or null, "compressor": config or null}, or a list of configs
    version 3 : [codec, …], where the first turns values into bytes

========== ======================= ==============================
filter     version 2               version 3
========== ======================= ==============================
deflate    zlib                    numcodecs.zlib
shuffle    shuffle                 numcodecs.shuffle
fletcher32 fletcher32              numcodecs.fletcher32
bzip2      bz2                     numcodecs.bz2
zstd       zstd                    zstd
blosc      blosc                   blosc
pcodec     pcodec                  numcodecs.pcodec, in the place of bytes
zfp        zfpy, with a header     zfp
========== ======================= ==============================

netCDF-C writes version 2 with zfp as ``h5z_zfp``: HDF5's chunks, which have no header. Other filters have no codec.
Zarr has no flags: every codec is applied to every chunk.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tamis import zfp
from tamis.errors import ParameterError
from tamis.filters import ChunkType, Filter, Request, Shuffle, Stage, Zfp
from tamis.filters.pcodec import Pcodec
from tamis.filters.zfp import StoredZfp
from tamis.notation.text import Chain, malformed, parse_filters, refused

Json = dict[str, Any]

_BLOSC = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_NAMES = {1: "zlib", 2: "shuffle", 3: "fletcher32", 307: "bz2", 32015: "zstd", 32001: "blosc", 32013: "zfpy"}
_REGISTERED = ("zstd", "blosc", "zfp")  # names registered for version 3
_ANY_PIPELINE = "tamis.zarr.PipelineCodec stores any pipeline"
_PCODEC = {
    "mode_spec": "auto",
    "delta_spec": "auto",
    "paging_spec": "equal_pages_up_to",
    "delta_encoding_order": None,
    "equal_pages_up_to": 1 << 18,
}
"""Defaults of numcodecs, apart from the level."""
_ZFPY = {"rate": 2, "precision": 3, "tolerance": 4}
"""zfpy's numbers of the modes that numcodecs encodes, by their parameters."""

_ZFPY_REVERSIBLE = 5
"""zfpy's number of the mode that numcodecs only decodes."""


def version_2(chain: Chain, dtype: np.dtype[Any] | None = None) -> Json:
    """Write a pipeline as filters and compressor of version 2."""
    _refuse_late_shuffle(chain)
    return _in_version_2([_config(stage.filter, dtype) for stage in chain])


def _in_version_2(codecs: Sequence[Json]) -> Json:
    """Return codecs as filters and compressor."""
    return {"filters": list(codecs[:-1]) or None, "compressor": codecs[-1] if codecs else None}


def _refuse_late_shuffle(chain: Chain) -> None:
    """Raise ParameterError for shuffle after other filters: numcodecs' takes whole values only."""
    if late := next((stage for stage in chain[1:] if isinstance(stage.filter, Shuffle)), None):
        raise ParameterError(
            f"{late.filter} cannot follow {chain[0].filter} in Zarr, whose shuffle takes whole values only; "
            f"{_ANY_PIPELINE}"
        )


def squeezed_axes(chunk_shape: Sequence[int]) -> list[list[int]] | None:
    """Return the input axes of each axis of chunks whose unit axes are joined with others; None if nothing changes."""
    if all(extent > 1 for extent in chunk_shape) or math.prod(chunk_shape) == 1:
        return None
    groups: list[list[int]] = [[]]
    for axis, extent in enumerate(chunk_shape):
        if extent > 1 and any(chunk_shape[member] > 1 for member in groups[-1]):
            groups.append([])
        groups[-1].append(axis)
    return groups


def nczarr(chain: Chain, dtype: np.dtype[Any] | None = None, chunks: tuple[int, ...] | None = None) -> Json:
    """Write a pipeline as filters and compressor of netCDF-C's Zarr stores."""
    codecs = []
    for stage in chain:
        if isinstance(stage.filter, Zfp):
            codecs.append(_h5z_zfp(stage.filter, dtype, chunks))
        else:
            codecs.append(_config(stage.filter, dtype))
    return _in_version_2(codecs)


def _h5z_zfp(zfp_filter: Zfp, dtype: np.dtype[Any] | None, chunks: tuple[int, ...] | None) -> Json:
    """Return the configuration of netCDF-C's codec, with type and shape of the chunks if they are known."""
    config = {"id": "h5z_zfp", **zfp_configuration(zfp_filter.mode)}
    if dtype is None or chunks is None:
        return config
    stored = StoredZfp.parse(zfp_filter.stored(ChunkType(dtype, chunks)))
    return config | {"dtype": stored.dtype.name, "shape": list(stored.shape)}


def _config(owner: Filter, dtype: np.dtype[Any] | None) -> Json:
    """Return the configuration of a codec of version 2."""
    cd_values = owner.requested
    match owner.id, cd_values:
        case ((1 | 307), (level,)):
            return {"id": _NAMES[owner.id], "level": level}
        case 2, _:
            return {"id": "shuffle", "elementsize": _itemsize(dtype, owner)}
        case 3, _:
            return {"id": "fletcher32"}
        case 32015, (level, *_):
            return {"id": "zstd", "level": level - (level >> 31 << 32)}
        case 32001, (_, _, _, block, level, shuffle, codec, *_) if shuffle < len(_SHUFFLES) and codec < len(_BLOSC):
            return {"id": "blosc", "cname": _BLOSC[codec], "clevel": level, "shuffle": shuffle, "blocksize": block}
    if isinstance(owner, Zfp):
        return _zfpy(owner)
    if owner.zarr_only:
        return {"id": owner.name, "level": cd_values[0]}
    raise ParameterError(f"expected filters that Zarr has a codec for, got {owner}: Zarr has none; {_ANY_PIPELINE}")


def _itemsize(dtype: np.dtype[Any] | None, owner: Filter) -> int:
    """Return the bytes of a value; raise ParameterError if the type is not known."""
    if dtype is None:
        raise ParameterError(f"expected the type of the values, got none: Zarr's {owner.name} needs their size; say f4")
    return dtype.itemsize


def _zfpy(zfp_filter: Zfp) -> Json:
    """Return the configuration of numcodecs' codec; raise ParameterError if it cannot encode so."""
    config = zfpy_configuration(zfp_filter.mode)
    if config is not None and config["mode"] in _ZFPY.values():
        return config
    raise ParameterError(
        f"expected rate, precision or accuracy, got {zfp_filter}: Zarr 2 has zfpy, which writes these only"
    )


def zfpy_configuration(mode: zfp.Mode) -> Json | None:
    """Return the configuration of numcodecs' codec zfpy for a mode; None for the expert mode, which it lacks.

    numcodecs decodes the reversible mode, but does not encode it.
    """
    config = {"id": "zfpy", "mode": _ZFPY_REVERSIBLE, "tolerance": -1, "rate": -1, "precision": -1}
    match mode:
        case zfp.Rate(rate):
            return config | {"mode": _ZFPY["rate"], "rate": rate}
        case zfp.Precision(precision):
            return config | {"mode": _ZFPY["precision"], "precision": precision}
        case zfp.Accuracy(tolerance):
            return config | {"mode": _ZFPY["tolerance"], "tolerance": tolerance}
        case zfp.Reversible():
            return config
    return None


def version_3(chain: Chain, dtype: np.dtype[Any] | None = None, chunk_shape: Sequence[int] | None = None) -> list[Json]:
    """Write a pipeline as codecs of version 3."""
    _refuse_late_shuffle(chain)
    codecs = [_codec(stage.filter, dtype) for stage in chain]
    if codecs and codecs[0]["name"] == "zfp":
        axes = squeezed_axes(chunk_shape or ())
        return [{"name": "reshape", "configuration": {"shape": axes}}, *codecs] if axes else codecs
    if chain and chain[0].filter.zarr_only:
        return codecs
    if dtype is not None and dtype.itemsize == 1:  # without a byte order
        return [{"name": "bytes"}, *codecs]
    # Without a type, what every machine says: a text must not depend on where it is written.
    is_little = dtype is None or (sys.byteorder == "little") == dtype.isnative
    return [{"name": "bytes", "configuration": {"endian": "little" if is_little else "big"}}, *codecs]


def _codec(owner: Filter, dtype: np.dtype[Any] | None) -> Json:
    """Return a codec of version 3."""
    if isinstance(owner, Zfp):
        return {"name": "zfp", "configuration": zfp_configuration(owner.mode)}
    config = _config(owner, dtype)
    name = config.pop("id")
    if name == "zstd":
        config["checksum"] = False
    if name == "blosc":
        config |= {"shuffle": _SHUFFLES[config["shuffle"]], "typesize": _itemsize(dtype, owner)}
    # zarr-python requires a configuration, even if empty.
    return {"name": name if name in _REGISTERED else f"numcodecs.{name}", "configuration": config}


def zfp_configuration(mode: zfp.Mode) -> Json:
    """Return the configuration of the registered codec zfp for a mode."""
    match mode:
        case zfp.Rate(rate):
            return {"mode": "fixed_rate", "rate": rate}
        case zfp.Precision(precision):
            return {"mode": "fixed_precision", "precision": precision}
        case zfp.Accuracy(tolerance):
            return {"mode": "fixed_accuracy", "tolerance": tolerance}
        case zfp.Expert(minbits, maxbits, maxprec, minexp):
            return {"mode": "expert", "minbits": minbits, "maxbits": maxbits, "maxprec": maxprec, "minexp": minexp}
    return {"mode": "reversible"}


def parse_text(text: str) -> tuple[Stage, ...]:
    """Read codecs of either version from JSON."""
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as error:
        raise malformed(text, error.pos, f"JSON ({error.msg})") from error
    except (RecursionError, ValueError) as error:
        raise malformed(text, 0, f"JSON ({error})") from error
    chain: list[Stage] = []
    configs = _codec_list(parsed, text)
    if [_name(config) for config in configs] == ["tamis.pipeline"]:
        return _pipeline_stages(configs[0], text)
    if [_name(config) for config in configs[:2]] == ["reshape", "zfp"]:
        configs = configs[1:]  # it joins unit axes, which HDF5's zfp leaves out by itself
    for config in configs:
        try:
            codec_filter = _filter_of(config)
        except ParameterError as error:
            start = max(text.find(json.dumps(_name(config))), 0)
            raise refused(text, start, str(error)) from error
        if codec_filter is not None:
            chain.append(Stage(codec_filter, codec_filter.optional))
    return tuple(chain)


def _name(config: object) -> object:
    """Return the name of a codec of either version; None if it is no object."""
    return config.get("id", config.get("name")) if isinstance(config, dict) else None


def _pipeline_stages(config: Json, text: str) -> tuple[Stage, ...]:
    """Return the filters of a codec ``tamis.pipeline``; its mask belongs to existing chunks."""
    configuration = config.get("configuration", config)
    filters = configuration.get("filters") if isinstance(configuration, dict) else None
    if not isinstance(filters, str):
        raise malformed(text, max(text.find("tamis.pipeline"), 0), "tamis.pipeline with the text of its filters")
    stages = tuple(parse_filters(filters))
    if any(not isinstance(stage, Stage) for stage in stages):
        raise malformed(text, max(text.find("filters"), 0), "filters alone, without a rounding")
    return tuple(stage for stage in stages if isinstance(stage, Stage))


def _codec_list(parsed: object, text: str) -> list[Any]:
    """Return the codecs of a document of either version."""
    if isinstance(parsed, dict) and {"filters", "compressor"} & parsed.keys() and "id" not in parsed:
        filters = parsed.get("filters")
        if filters is not None and not isinstance(filters, list):
            raise malformed(text, max(text.find('"filters"'), 0), "a list of filters, or null")
        codecs = list(filters or ())
        if parsed.get("compressor") is not None:
            codecs.append(parsed["compressor"])
        return codecs
    if isinstance(parsed, dict):
        parsed = parsed.get("codecs", [parsed])
    if not isinstance(parsed, list):
        raise malformed(text, 0, "a list of codecs, or an object with filters and compressor")
    return parsed


def _filter_of(config: object) -> Filter | None:
    """Return the filter of a codec; None for ``bytes``, which only has the byte order."""
    if not isinstance(config, dict):
        raise ParameterError(f"expected an object with id or name, got {config!r}")
    name = _name(config)
    configuration = config.get("configuration", {}) if "name" in config else config
    if not isinstance(name, str) or not isinstance(configuration, dict):
        raise ParameterError(f"expected an object with id or name, got {config!r}")
    if name == "bytes" and "name" in config:
        if configuration.get("endian", "little") != "little":
            raise ParameterError(
                "expected little-endian bytes, got big: HDF5 records the byte order in the type of the values"
            )
        return None
    name = name.removeprefix("numcodecs.")
    if name not in _READERS:
        raise ParameterError(f"expected one of {', '.join(_READERS)}, got {name!r}")
    result = _READERS[name](configuration)
    return result if isinstance(result, Filter) else Stage.of(result).filter


def _whole(config: Mapping[str, Any], key: str, low: int, high: int, default: int | None = None) -> int:
    """Return a whole number of a configuration; raise ParameterError if it is none within limits."""
    value = config.get(key, default)
    if type(value) is not int or not low <= value <= high:
        raise ParameterError(f"expected {key} of {low} to {high}, got {value!r}")
    return value


def _read_zstd(config: Mapping[str, Any]) -> Request:
    if config.get("checksum"):
        raise ParameterError("expected zstd without checksum, which HDF5's filter does not have, got checksum: true")
    return Request(32015, (_whole(config, "level", -(1 << 31), 22, 0) & 0xFFFFFFFF,))


def _read_blosc(config: Mapping[str, Any]) -> Request:
    codec, shuffle = config.get("cname", "lz4"), config.get("shuffle", 1)
    number = _SHUFFLES.index(shuffle) if shuffle in _SHUFFLES else shuffle
    if codec not in _BLOSC or type(number) is not int or not 0 <= number < len(_SHUFFLES):
        raise ParameterError(f"expected blosc with a codec and shuffle of HDF5's filter, got {codec!r}, {shuffle!r}")
    if block := _whole(config, "blocksize", 0, (1 << 32) - 1, 0):
        raise ParameterError(f"expected blosc with blocksize 0, as HDF5's filter has it, got {block}")
    return Request(32001, (0, 0, 0, 0, _whole(config, "clevel", 0, 9, 5), number, _BLOSC.index(codec)))


def _read_pcodec(config: Mapping[str, Any]) -> Filter:
    if other := [key for key, usual in _PCODEC.items() if config.get(key, usual) != usual]:
        raise ParameterError(f"expected pcodec with a level alone, got {other[0]}={config[other[0]]!r}")
    return Pcodec(_whole(config, "level", 0, 12, 8))


def _read_zfpy(config: Mapping[str, Any]) -> Filter:
    mode = config.get("mode", 4)
    for key, number in _ZFPY.items():
        if mode == number:
            return _zfp_filter({"accuracy" if key == "tolerance" else key: config.get(key)})
    if mode == _ZFPY_REVERSIBLE:
        return Zfp(reversible=True)
    raise ParameterError(f"expected zfpy of mode 2 rate, 3 precision, 4 accuracy or 5 reversible, got {mode!r}")


_ZFP_KEYS = {
    "fixed_rate": {"rate": "rate"},
    "fixed_precision": {"precision": "precision"},
    "fixed_accuracy": {"tolerance": "accuracy"},
    "expert": {name: name for name in ("minbits", "maxbits", "maxprec", "minexp")},
    "reversible": {},
}
"""Parameters of the registered codec zfp and of `Zfp`, by the registered names of modes."""


def zfp_of(config: Mapping[str, Any]) -> Zfp:
    """Return the filter of a configuration of the registered codec zfp."""
    mode = config.get("mode")
    if not isinstance(mode, str) or mode not in _ZFP_KEYS:
        raise ParameterError(f"expected a mode of zfp such as 'fixed_accuracy', got {mode!r}")
    keys = _ZFP_KEYS[mode]
    if unknown := sorted(map(str, config.keys() - {"mode", *keys})):
        raise ParameterError(f"expected {', '.join(['mode', *keys])} for zfp mode {mode}, got {unknown[0]!r} as well")
    if not keys:
        return Zfp(reversible=True)
    return _zfp_filter({name: config.get(key) for key, name in keys.items()})


def _read_h5z_zfp(config: Mapping[str, Any]) -> Zfp:
    return zfp_of({key: value for key, value in config.items() if key not in ("id", "dtype", "shape")})


def _zfp_filter(arguments: Mapping[str, Any]) -> Zfp:
    # Larger integers do not fit into a float.
    if wrong := [name for name, value in arguments.items() if type(value) not in (int, float) or abs(value) > 1e308]:
        raise ParameterError(f"expected a number as {wrong[0]}, got {arguments[wrong[0]]!r}")
    return Zfp(**arguments)


_READERS: dict[str, Callable[[Mapping[str, Any]], Request | Filter]] = {
    "zlib": lambda config: Request(1, (_whole(config, "level", 0, 9, 1),)),
    "shuffle": lambda _: Request(2, ()),
    "fletcher32": lambda _: Request(3, ()),
    "bz2": lambda config: Request(307, (_whole(config, "level", 1, 9, 1),)),
    "zstd": _read_zstd,
    "blosc": _read_blosc,
    "zfp": zfp_of,
    "h5z_zfp": _read_h5z_zfp,
    "zfpy": _read_zfpy,
    "pcodec": _read_pcodec,
}
