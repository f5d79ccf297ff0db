"""U26, U31: the module _native at the end of the interpreter, and with damaged streams."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import zfpy

import tamis
from tamis import _native, zfp

Run = Callable[..., str]

ENDING = """
import threading, time
import numpy as np, tamis
from tamis.filters import ChunkType
values = np.random.default_rng(0).normal(size=(128, 64, 64))
mode = tamis.zfp.Reversible()
stream = tamis.zfp.encode(values, mode)
pipeline, chunk = tamis.Pipeline.parse({filters!r}), ChunkType(values.dtype, values.shape)
encoded = pipeline.encode(values)
started = threading.Event()
def work():
    while True:
        {work}
        started.set()
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""

WORK = {
    "encode": ("", "tamis.zfp.encode(values, mode)"),
    "encode in threads": ("", "tamis.zfp.encode(values, mode, threads=4)"),
    "decode": ("", "tamis.zfp.decode(stream, values.shape, values.dtype, mode)"),
    "decode in threads": ("", "tamis.zfp.decode(stream, values.shape, values.dtype, mode, threads=4)"),
    "shuffle bits": ("bitshuffle(compressor=none)", "pipeline.encode(values)"),
    "unshuffle bits": ("bitshuffle(compressor=none)", "pipeline.decode(*encoded, chunk)"),
    "prove a tolerance": ("zfp(accuracy=1e-14)", "pipeline.encode(values)"),
    "encode szip": ("szip(nn,16)", "pipeline.encode(values)"),
    "decode szip": ("szip(nn,16)", "pipeline.decode(*encoded, chunk)"),
    "check sums": ("fletcher32", "pipeline.decode(*encoded, chunk)"),
}


@pytest.mark.matrix
@pytest.mark.parametrize(("filters", "work"), WORK.values(), ids=WORK.keys())
def test_u26_daemon_thread_in_native_code_does_not_abort_the_exit(python: Run, filters: str, work: str) -> None:
    python(ENDING.format(filters=filters or "none", work=work))  # checks that the exit code is 0


def without_exponent(values: np.ndarray, start: int, width: int) -> bytes:
    """Encode a reversible block of floats, and clear the exponent that it has in common."""
    data = zfp.encode_with_header(values, zfp.Reversible())
    bits = int.from_bytes(data, "little")
    assert bits >> start & 3 == 1, "the block is sent as integers with a common exponent"
    return (bits & ~(((1 << width) - 1) << (start + 2))).to_bytes(len(data), "little")


@pytest.mark.parametrize("kernel", tamis.config().kernels)
@pytest.mark.parametrize(("dtype", "width"), [("f4", 8), ("f8", 11)])
@pytest.mark.parametrize("shape", [(4,), (13,), (4, 4), (9, 4), (4, 4, 4), (4, 6, 4), (4, 4, 4, 4)], ids=str)
def test_u31_reversible_stream_without_exponent_is_positive_zeros(
    kernel: str, dtype: str, width: int, shape: tuple[int, ...]
) -> None:
    used = _native.use_kernel(kernel)
    try:
        values = (np.arange(1, 1 + np.prod(shape)) * 2.0**-60).reshape(shape).astype(dtype)
        values[..., ::2] *= -1
        damaged = without_exponent(values, 96, width)
        expected = zfpy.decompress_numpy(damaged)
        assert zfp.decode_with_header(damaged).tobytes() == expected.tobytes()
        first = expected[tuple(slice(4) for _ in shape)]
        assert not first.any()
        assert not np.signbit(first).any()
    finally:
        _native.use_kernel(used)
