"""The ZFP codec: arrays to streams and back, byte for byte as libzfp 1.0 writes them.

A stream made by `encode` has no header: shape, type and mode must be known to read it, as they are inside an HDF5 or
Zarr chunk. `encode_with_header` makes the self-describing form that the ``zfp`` program and zfpy exchange.

Arrays have 1 to 4 axes. int32, int64, float32 and float64 are coded; uint32 and uint64 in reversible mode only. All
functions are safe in threads and release the interpreter's lock while bits are coded.

References
----------
P. Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", IEEE TVCG 20(12), 2014, doi:10.1109/TVCG.2014.2346458.
"""

from __future__ import annotations

from tamis.zfp.arrays import decode, decode_with_header, encode, encode_with_header
from tamis.zfp.checks import MAX_RANK, check_encodable, max_extent
from tamis.zfp.header import Header
from tamis.zfp.modes import Accuracy, Expert, Mode, Precision, Rate, Reversible, as_mode, is_lossless, mode, mode_of

__all__ = [
    "MAX_RANK",
    "Accuracy",
    "Expert",
    "Header",
    "Mode",
    "Precision",
    "Rate",
    "Reversible",
    "as_mode",
    "check_encodable",
    "decode",
    "decode_with_header",
    "encode",
    "encode_with_header",
    "is_lossless",
    "max_extent",
    "mode",
    "mode_of",
]
