"""What the arrays of `tamis.open` have in common, whatever the format of their file."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tamis.errors import ParameterError
from tamis.formatting import printable
from tamis.kinds import ARRAY, explained


class OpenFile(Protocol):
    """The file of an array.

    Attributes
    ----------
    path
        Absolute path.
    threads
        Number of threads that decode the chunks of a selection.
    identity
        What identifies the content, as long as nobody writes to it.
    """

    path: str
    threads: int
    identity: tuple[str, int, int]

    def __reduce__(self) -> tuple[Any, ...]: ...


class SlicedArray:
    """An array of an open file, sliced like a NumPy array: dask, xarray and NumPy accept it, and it can be pickled.

    Parameters
    ----------
    file
        The file, which must stay open.
    name
        The path by which it was opened.
    shape, dtype
        Shape and type of the values.
    chunks
        Chunk shape, or None.
    """

    _file: OpenFile

    def __init__(
        self, file: OpenFile, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: tuple[int, ...] | None
    ) -> None:
        self._file, self.name = file, name
        self.shape, self.dtype, self.chunks = shape, dtype, chunks

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return self.size * self.dtype.itemsize

    @abstractmethod
    def __getitem__(self, key: Any) -> Any: ...

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("expected an array with axes, got a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read all values.

        Parameters
        ----------
        out
            Array to fill: of the same shape, with any strides, and of the same type or one that NumPy casts to safely.
            None for a new array.

        Returns
        -------
        array
            `out`, or the new array.

        Raises
        ------
        ParameterError
            If `out` does not fit.
        FileError
            If a chunk is damaged, or there are no values (a null dataspace).
        """
        if out is None:
            return np.asarray(self[()], self.dtype.base)
        self._check_out(out)
        out[...] = self[()]
        return out

    @explained(out=ARRAY)
    def _check_out(self, out: NDArray[Any]) -> None:
        base, shape = self.dtype.base, self.shape + self.dtype.shape
        if out.shape != shape or not np.can_cast(base, out.dtype, "safe"):
            raise ParameterError(f"expected out of {base} and shape {shape}, got {out.dtype} and shape {out.shape}")
        if not out.flags.writeable:
            raise ParameterError("expected out to be writeable, got a read-only array")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("expected to be allowed to copy, got copy=False: values are read from a file")
        return np.asarray(self.read(), dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return reopened, (self._file.__reduce__(), self.name)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return what identifies the values for dask: the file as it was opened, and the name."""
        return (*self._file.identity, self.name)

    def __repr__(self) -> str:
        chunks = f" in chunks of {self.chunks}" if self.chunks else ""
        return printable(f"<tamis array {self.name} {self.shape} {self.dtype}{chunks} of {self._file.path}>")


def reopened(file: tuple[Any, tuple[Any, ...]], name: str) -> Any:
    """Return an array or a group by the reduced form of its file, and its path."""
    return file[0](*file[1])[name]
