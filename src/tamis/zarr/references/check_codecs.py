"""A check that the codecs of references decode what tamis decodes: the first chunk of each kind."""

from __future__ import annotations

from contextlib import closing

import numcodecs
import numpy as np

from tamis.errors import FileError
from tamis.store.array import StoredArray
from tamis.zarr.references.referenced_array import Index, ReferencedArray


def check_codecs(referenced: ReferencedArray, array: StoredArray) -> None:
    """Raise FileError if the codecs of an array make other values of a referenced or an inlined chunk than tamis.

    Parameters
    ----------
    referenced
        The references.
    array
        The array that they refer to, whose file is open.
    """
    if array.chunk_shape is None or not referenced.codecs.version_2:
        return
    codecs = [numcodecs.get_codec(config) for config in referenced.codecs.version_2]
    with closing(array.open_chunks()) as reader:
        for index in _samples(referenced):
            origin = tuple(i * step for i, step in zip(index, referenced.chunk_shape, strict=True))
            data = referenced.inlined[index] if index in referenced.inlined else reader.stored(origin)[0]
            try:
                for codec in reversed(codecs):
                    data = codec.decode(data)
                decoded = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            except Exception as error:  # codecs of other packages raise many kinds
                raise _failure(array, origin, str(error)) from error
            expected = np.frombuffer(np.ascontiguousarray(reader.values(origin)).tobytes(), np.uint8)
            if not np.array_equal(decoded, expected):
                raise _failure(array, origin, f"the codecs {referenced.codecs.version_2} give other values")


def _samples(referenced: ReferencedArray) -> list[Index]:
    """Return the first referenced chunk, the last one, and the first inlined one, as far as there are any."""
    places, copies = list(referenced.chunks), list(referenced.inlined)
    return list(dict.fromkeys([*places[:1], *places[-1:], *copies[:1]]))


def _failure(array: StoredArray, origin: Index, reason: str) -> FileError:
    return FileError(
        f"{array.label}: expected Zarr's codecs to decode the chunk at {origin}, but {reason}: leave the dataset out,"
        " or repack it with other filters"
    ).at(dataset=array.path, chunk=origin)
