"""What the native code made of a chunk, or the error that it stands for."""

from __future__ import annotations

from tamis import _native
from tamis.errors import DataError, StreamError


def encoded(name: str, made: bytes | _native.Failure) -> bytes:
    """Return the bytes of an encoder, or raise DataError."""
    if isinstance(made, _native.Failure):
        raise DataError(f"{name} cannot take these values: {made.code.replace('_', ' ')}, at {made.where}")
    return made


def decoded(name: str, made: bytes | _native.Failure, stored: tuple[int, ...]) -> bytes:
    """Return the bytes of a decoder, or raise StreamError, with the parameters that it got."""
    if isinstance(made, _native.Failure):
        raise StreamError(
            f"{name} chunk or its parameters are damaged: {made.code.replace('_', ' ')}, at {made.where}, parameters"
            f" {','.join(map(str, stored))}"
        )
    return made
