"""Results of native filters: the bytes, or the error that a failure stands for."""

from __future__ import annotations

from tamis import _native
from tamis.errors import DataError, StreamError


def encoded(name: str, result: bytes | _native.Failure) -> bytes:
    """Return the bytes of an encoder, or raise DataError."""
    if isinstance(result, _native.Failure):
        raise DataError(f"{name} cannot take these values: {result.code.replace('_', ' ')}, at {result.where}")
    return result


def decoded(name: str, result: bytes | _native.Failure, stored: tuple[int, ...]) -> bytes:
    """Return the bytes of a decoder, or raise StreamError with the stored parameters."""
    if isinstance(result, _native.Failure):
        raise StreamError(
            f"{name} chunk or its parameters are damaged: {result.code.replace('_', ' ')}, at {result.where},"
            f" parameters {','.join(map(str, stored))}"
        )
    return result
