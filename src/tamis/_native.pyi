"""
The codec, the filters, and checks of values. Functions return a Failure if the data or the parameters are
wrong.
"""

from collections.abc import Sequence
import enum
from typing import Annotated

import numpy
from numpy.typing import NDArray

class Failure:
    """Why a call failed."""

    @property
    def code(self) -> str:
        """Name of the failure."""

    @property
    def where(self) -> int:
        """Index, block, axis or number of the failure."""

version: str = "1.0.0"

class Type(enum.Enum):
    """Scalar types, numbered as libzfp numbers them."""

    int32 = 1

    int64 = 2

    float32 = 3

    float64 = 4

class Params:
    """The four numbers that drive the codec."""

    @property
    def minbits(self) -> int:
        """Minimum number of bits per block."""

    @property
    def maxbits(self) -> int:
        """Maximum number of bits per block."""

    @property
    def maxprec(self) -> int:
        """Maximum number of bit planes per block."""

    @property
    def minexp(self) -> int:
        """Exponent of the lowest bit plane kept; below -1074: reversible."""

max_rank: int = 4

block_side: int = 4

max_bits: int = 16658

max_prec: int = 64

min_exp: int = -1074

header_max_bits: int = 32768

def rate_params(rate: float, type: Type, rank: int) -> Params | Failure:
    """Bits per value."""

def precision_params(precision: int) -> Params | Failure:
    """Bit planes, 1 to 64."""

def accuracy_params(tolerance: float) -> Params | Failure:
    """Largest absolute error; 0 means all planes."""

def expert_params(minbits: int, maxbits: int, maxprec: int, minexp: int) -> Params | Failure:
    """All four numbers."""

def reversible_params() -> Params:
    """Every bit kept."""

def encode(array: object, params: Params, with_header: bool = False, threads: int = 1) -> bytes | Failure:
    """Stream of an array."""

def decode(data: object, out: object, params: Params, start: int = 0, threads: int = 1) -> int | Failure:
    """
    Fill `out` from the stream at bit `start`; returns the bit at which it ended.
    """

def pack_header(type: Type, shape: Sequence[int], params: Params) -> bytes | Failure:
    """ZFP header, 12 or 19 bytes."""

def unpack_header(data: bytes) -> tuple[Type, list[int], Params, int] | Failure:
    """Type, shape, parameters and bits of a ZFP header."""

def prove(array: object, stream: object, params: Params, fill: int | None = None) -> Failure | None:
    """
    Compare an array with its stream where the promised tolerance is in doubt; `fill` is the bits of a fill
    value.
    """

def keeps_for_sure(type: Type, rank: int, params: Params, largest: float) -> bool:
    """
    Whether all values up to this magnitude are certain to keep a promised tolerance.
    """

def ladder(array: object, valid: object | None, modes: Sequence[Params]) -> list[tuple[int, float, float]] | Failure:
    """
    For each tolerance or precision: bits of the stream, the largest error and the sum of squared errors.

    `valid` are flags of the values whose errors count; the array is contiguous.
    """

def parse_stored(values: Sequence[int]) -> tuple[Type, list[int], Params, bool, bool, int | None] | Failure:
    """
    Type, shape, parameters, whether bytes are swapped, whether it is proven, and bits of a fill value.
    """

def stored_values(
    requested: Sequence[int], type: Type, shape: Sequence[int], fill: int | None = None
) -> list[int] | Failure:
    """
    cd_values that the filter stores; `shape` has no unit axes, `fill` is the bits of the fill value.
    """

def is_stored(values: Sequence[int]) -> bool:
    """Whether cd_values have the stored form."""

kernel_variable: str = "TAMIS_KERNEL"

def kernels() -> list[str]:
    """
    Names of the kernels that this machine can run, starting with the default.
    """

def kernel() -> str:
    """Name of the kernel in use."""

def kernel_as_asked() -> bool:
    """
    Whether the environment variable is unset or names one that this machine can run.
    """

def use_kernel(name: str) -> str:
    """For tests: use another kernel from now on; returns the previous one."""

def shuffle(data: object, itemsize: int) -> bytes | Failure:
    """Bytes of items, sorted by their position."""

def unshuffle(data: object, itemsize: int) -> bytes | Failure:
    """Undo `shuffle`."""

def bitshuffle(data: object, itemsize: int, block: int) -> bytes | Failure:
    """
    Bits of items, sorted by their position in each block of `block` items.
    """

def bitunshuffle(data: object, itemsize: int, block: int) -> bytes | Failure:
    """Undo `bitshuffle`."""

def fletcher32(data: object) -> int:
    """HDF5's checksum."""

def nbit_encode(data: object, values: Sequence[int]) -> bytes | Failure:
    """Chunk under HDF5 filter 5 with stored cd_values."""

def nbit_decode(data: object, values: Sequence[int], nbytes: int) -> bytes | Failure:
    """Chunk of `nbytes` bytes from one under HDF5 filter 5."""

def scaleoffset_encode(data: object, values: Sequence[int]) -> bytes | Failure:
    """Chunk under HDF5 filter 6 with stored cd_values."""

def scaleoffset_decode(data: object, values: Sequence[int], nbytes: int) -> bytes | Failure:
    """Chunk of `nbytes` bytes from one under HDF5 filter 6."""

def szip_encode(data: object, values: Sequence[int]) -> bytes | Failure:
    """Chunk under HDF5 filter 4 with stored cd_values."""

def szip_decode(data: object, values: Sequence[int], nbytes: int) -> bytes | Failure:
    """Chunk of `nbytes` bytes from one under HDF5 filter 4."""

def szip_nbytes(data: object, candidates: Sequence[Sequence[int]]) -> list[int] | Failure:
    """
    Bytes of a chunk under HDF5 filter 4, for each of several cd_values, without encoding it.
    """

def bit_pairs(
    values: object, valid: object | None, extents: Sequence[int]
) -> tuple[int, list[int], list[int], list[int]]:
    """
    Number of pairs of valid neighbours along an axis, and how often each bit is set in the first, the
    second and both, starting with the lowest bit.

    `extents` are the numbers of values before, along and after the axis.
    """

def count_in_bins(values: object, equal: bool, step: int, first: int, counts: object) -> None:
    """
    Count each value in its bin: bins of neighbouring floats or integers, or of equal width.

    A bin holds 2**step neighbours, or is 2**step wide; `first` is the number of the first bin.
    """

def dssim(first: object, second: object, present: object | None) -> float:
    """
    Data structural similarity of two fields of floats: the mean of all whole windows of 11 x 11 values
    around a present value; NaN if there are none.
    """

def statistics(
    before: object, after: object, marks: object, moments: bool
) -> tuple[int, int | float, int | float, int | float, float, int, float, float, float, float, float]:
    """
    Of the values that are not missing before: number, minimum, maximum, largest error, sum of squared errors
    as mantissa and power of 4; and moments, if requested: both means, sums of squares and of products of
    deviations.
    """

def valid_errors(before: object, after: object, zero: float) -> tuple[int, float, float, float, int, float, int]:
    """
    Of finite values before and after: index of the first with the largest error, that error, the largest
    relative to a value that is not `zero`, the largest as roundings bound it, number of zeros that changed,
    and the sum of squared errors as mantissa and power of 4.
    """

def survey(array: object, marks: object) -> tuple[float, int, bool]:
    """
    Largest magnitude of the finite values, how many are missing, and whether all are finite.
    """

def compare(expected: object, found: object, marks: object) -> tuple[float, bool, int]:
    """
    Largest absolute error, whether missing values were kept, and how many there were.
    """

class Quantizer:
    """A quantization for floats of one size: netCDF's, or to a step."""

    def __init__(self, kind: str, number: int, itemsize: int) -> None:
        """
        `kind` is bitround, granular, bitgroom or absolute; `number` counts bits or digits, or is the exponent of a
        step, a power of two.
        """

    def round(self, array: object, out: object, odd: object, marks: object, limits: tuple[float, float]) -> int:
        """
        Round values into `out`; missing ones, and those that would become missing or cross a limit, stay.

        `odd` has a byte for each row of the array: whether the index of its first value is odd. Returns the
        number of valid values that stay.
        """

def pack(
    array: object,
    out: object,
    line: tuple[float, float, float],
    codes: tuple[int, int],
    bound: float,
    zeros: bool,
    marks: Sequence[tuple[float, int]],
    nan_code: int | None,
    limits: tuple[tuple[float, int] | None, tuple[float, int] | None],
) -> tuple[int, float, int]:
    """
    Store floats as integers in `out`: value = code * step + offset.

    `line` is the step, the offset, and the code that 0 would have; `codes` are the smallest and the largest
    code of a valid value; `marks` are values that mean missing, with their codes; `limits` are the smallest
    and the largest valid value, with their codes, or None. Each value is unpacked in its own type and in
    doubles, and both keep the bound. Returns the index of the first value for which no code does, or -1; the
    largest error; and the number of missing values.
    """

def unpack(codes: object, out: object, line: tuple[float, float], marks: Sequence[tuple[float, int]]) -> None:
    """
    Store the values of codes in `out`: code * step + offset, each operation rounded to its type.

    `line` is the step and the offset; `marks` are at most two values that mean missing, with their codes.
    """

def extent(array: object, marks: object) -> tuple[float, float, list[int], bool]:
    """
    Smallest and largest value of those that are neither NaN nor equal a mark; the indices of the marks that
    some value equals; and whether there is NaN. Without a valid value, the smallest is above the largest.
    """

def relative_error(expected: object, found: object) -> float:
    """
    Largest error relative to a value, infinite where NaN or an infinity changed.
    """

def use_libdeflate(path: str) -> bool:
    """
    Undo deflate with the libdeflate inside a loaded library; returns whether it has one.
    """

def read_ranges(
    file: int,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    nbytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> list[bytes | None]:
    """
    Bytes of ranges of a file, given by its descriptor; None for a range that it lacks or that cannot be read.
    """

class ChunkPipeline:
    """The native filters of chunks of one shape."""

    def __init__(self, shape: Sequence[int], itemsize: int, filters: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Filters, by their numbers and the file's parameters."""

    @property
    def foreign(self) -> int:
        """Bits of the filters that are not native, as in a mask."""

    def encodes(self, mask: int) -> bool:
        """Whether `encode` takes this mask."""

    def read(
        self,
        file: int,
        origins: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        nbytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        masks: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: object,
        threads: int = 1,
    ) -> list[int]:
        """
        Read and decode chunks to their places in `out`, the part of an array that begins at `start`. Returns
        the numbers of damaged or non-native chunks, whose places are undefined.
        """

    def read_one(self, file: int, offset: int, nbytes: int, mask: int, out: object) -> bool:
        """
        Read and decode a chunk to `out`, an array of its shape or the part of it inside the array.

        Returns False if it is damaged or not native; then `out` is undefined.
        """

    def encode(
        self,
        values: object,
        start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        origins: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        mask: int,
        marks: object,
        limits: tuple[float, float],
        bound: float | None,
    ) -> list[tuple[bytes, float, int] | None]:
        """
        Encode chunks with zfp and the filters that the mask leaves on, decode and compare them.

        `values` is the part of an array that begins at `start`. Returns bytes, largest error and number of
        missing values of each; None for one that breaks the bound or the limits, is refused, or is
        incomplete.
        """

    @property
    def encodes_bytes(self) -> bool:
        """Whether `encode_bytes` applies these filters."""

    def encode_bytes(
        self,
        values: object,
        start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        origins: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> list[bytes | None]:
        """
        Encode chunks without loss with all filters, decode and compare them.

        `values` is the part of an array that begins at `start`. Returns the bytes of each; None for one that
        is incomplete, or that the caller must encode.
        """

class Depth(enum.Enum):
    """How much of a small dataset is requested."""

    facts = 0
    """Facts only."""

    attributes = 1
    """Also all attributes, in the order of creation or storage."""

    values = 2
    """Also values, decoded without HDF5."""

    twice = 3
    """Values only if HDF5 reads the same."""

class Libhdf5:
    """Calls to a libhdf5 for many facts at once; the caller holds its lock."""

    def __init__(self, path: str) -> None:
        """The libhdf5 that a loaded library contains or needs."""

    @property
    def complete(self) -> bool:
        """Whether all calls exist."""

    def survey(self, place: tuple[int, int, int], path: bytes, depth: Depth) -> object:
        """
        Facts of a small dataset of numbers, and its values; None if it is not certainly one.

        The file is given by its identifier, its descriptor, and the number to add to HDF5's offsets.
        """

    def look(self, place: tuple[int, int, int], group: int, name: bytes, depth: Depth) -> object:
        """
        A member of a group: the identifier of a group, which the caller closes, or the result of `survey`.
        """

    def attributes(self, owner: int) -> object:
        """
        Attributes of an object, in the order of creation or storage: the name of each; name, type, dataspace
        and values of each, None if one is unusual; address of the last dimension scale of each axis; and how
        many axes have this dimension scale. None if HDF5 cannot list them.
        """

    def headers(self, group: int, names: Sequence[bytes]) -> object:
        """
        Form, extents, largest extents and `attributes` of each dataset of a group, and True for each group.

        None for other objects, and for datasets that are not numbers or strings of a fixed size; None
        instead of all if one cannot be opened.
        """

    def links(self, group: int) -> object:
        """
        Name, kind, address, character set and number in creation order, if it is tracked, of each link of a
        group, in the order in which they are stored; None if they cannot be listed.
        """

    def bare_address(self, group: int) -> int | None:
        """
        Address of a group that certainly has no attributes, comment or settings: its formats are older than
        HDF5 1.8.
        """

    def copy_empty_group(self, source: int, target: int, name: bytes, link: int, properties: int) -> bool:
        """
        Copy a group, by its name in another one, if `bare_address` knows it and it has no links.

        `link` and `properties` are the properties of its link and of such a group. Returns whether it was
        copied. Raises RuntimeError if HDF5 cannot create it.
        """

    def copy_attributes(self, source: int, target: int, name: bytes) -> bool:
        """
        Copy all attributes of an object to its copy, which has the same name in another group, and no
        attributes.

        Returns whether they were copied; none are if the object has a comment, may have references, or has
        an attribute that is neither plain bytes nor strings. Raises RuntimeError if HDF5 cannot write one.
        """

    def chunk_records(self, dataset: int, grid: tuple[Sequence[int], Sequence[int]]) -> bytes | None:
        """
        Number, offset, size and mask of each stored chunk, 64 bits each, in the order of the index.

        `grid` are the extents of the array and of its chunks. None if HDF5 is older than 1.14, or a record
        is damaged.
        """

    def write_chunks(
        self, dataset: int, grid: tuple[Sequence[int], Sequence[int]], path: bytes | None, chunks: Sequence[object]
    ) -> tuple[int, ...]:
        """
        Write encoded chunks: tuples that begin with number, bytes and mask.

        Returns the size of the file at `path` after each, -1 if it is not known. Raises RuntimeError if HDF5
        cannot write one.
        """

    def rewrite(
        self,
        place: tuple[int, int, int],
        path: bytes,
        settings: tuple[int, int, int, int],
        name: bytes,
        pipeline: ChunkPipeline,
        most_nbytes: int,
        loss: tuple[int, object, tuple[float, float], float | None] | None = None,
        changed: tuple[bytes, Sequence[tuple[bytes, int, int, bytes]]] | None = None,
    ) -> object:
        """
        Store a small dataset again, in a group of another file, with other filters.

        `settings` are identifiers: of the group, the link's properties, the type, and the dataset's
        properties, with the filters of `pipeline`. `loss` are mask, marks, limits and bound, as for
        `ChunkPipeline.encode`; without it nothing is lost. `changed` are other values in the file's type,
        and new attributes: name, identifiers of type and dataspace, and values. The encoded chunks are
        decoded and compared, and so are HDF5's records of them. Returns whether the attributes were also
        copied, and offset, size, CRC-32, number of missing values and largest error of each chunk. Returns
        None and writes nothing if more is needed, the chunks break the bound or the limits, or they take
        more than `most_nbytes`. Raises RuntimeError if HDF5 cannot write.
        """
