"""The ZFP codec: arrays to streams and back, byte for byte as libzfp 1.0.

A stream of `encode` has no header: readers must know shape, type and mode, as in an HDF5 or Zarr chunk.
`encode_with_header` writes the self-describing form that the ``zfp`` program and zfpy exchange.

Arrays have 1 to 4 axes, of int32, int64, float32 or float64; uint32 and uint64 in reversible mode only. All functions
are thread-safe and release the interpreter's lock while they encode or decode.

References
----------
P. Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", IEEE TVCG 20(12), 2014, doi:10.1109/TVCG.2014.2346458.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import late_names
from tamis.zfp.header import BLOCK_SIDE, MAX_RANK, Header, check_encodable, max_extent
from tamis.zfp.modes import Accuracy, Expert, Mode, Precision, Rate, Reversible, as_mode, is_lossless, mode, mode_of

__all__ = [
    "BLOCK_SIDE",
    "MAX_RANK",
    "Accuracy",
    "Config",
    "Expert",
    "Header",
    "Mode",
    "Precision",
    "Rate",
    "Reversible",
    "as_mode",
    "check_encodable",
    "config",
    "decode",
    "decode_with_header",
    "encode",
    "encode_with_header",
    "is_lossless",
    "max_extent",
    "mode",
    "mode_of",
    "prove",
]

if TYPE_CHECKING:
    from tamis.zfp.arrays import decode, decode_with_header, encode, encode_with_header, prove
    from tamis.zfp.configuration import Config, config

_LATE = {
    **dict.fromkeys(("decode", "decode_with_header", "encode", "encode_with_header", "prove"), "tamis.zfp.arrays"),
    **dict.fromkeys(("Config", "config"), "tamis.zfp.configuration"),
}
"""Names that are imported when they are first used, with their modules."""

__getattr__ = late_names(globals(), _LATE)
