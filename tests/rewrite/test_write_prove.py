"""One dataset written anew and compared: bounds, masks, and what counts as a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from tamis import BoundError, Pipeline, Zfp
from tamis.accuracy.difference import largest_error
from tamis.arrays import Grid
from tamis.arrays.chunk_reader import ChunkReader
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.rewrite import ArrayPlan
from tamis.rewrite.outcome import Written
from tamis.rewrite.plan import Recode
from tamis.rewrite.prove import Verified
from tamis.rewrite.prove import verify as verify_array

Write = Callable[..., tuple[h5py.Dataset, Written]]


def quiet(done: int, total: int) -> None:
    pass


def plan(text: str, dtype: str = "f4", chunks: tuple[int, ...] = (8, 8)) -> ArrayPlan:
    return Recode("/v", Pipeline.parse(text), np.dtype(dtype), chunks)


def verify(plan: ArrayPlan, source: h5py.Dataset, target: h5py.Dataset, *arguments: Any) -> Verified:
    return verify_array(plan, Hdf5Array.of(source), Hdf5Array.of(target), *arguments)


def proven_origins(written: Written) -> list[tuple[int, ...]]:
    return [Grid((13, 21), (8, 8)).origin_of(number) for number in written.proven.columns()[0].tolist()]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        yield made


def field(dtype: str = "f4", shape: tuple[int, ...] = (13, 21)) -> NDArray[Any]:
    return (50 * np.sin(np.arange(np.prod(shape)) / 11)).reshape(shape).astype(dtype)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("zfp(accuracy=0.1)", 0.1),
        ("zfp(accuracy=3)|deflate", 3.0),
        ("zfp(reversible=true)", 0.0),
        ("zfp(minexp=-1075)", 0.0),
        ("shuffle|deflate(4)", 0.0),
        ("fletcher32", 0.0),
        ("zfp(rate=8)", None),
        ("zfp(precision=8)", None),
        ("zfp(maxprec=8)", None),
    ],
)
def test_plan_bound_follows_from_the_mode(text: str, bound: float | None) -> None:
    assert plan(text).bound == bound


@pytest.mark.parametrize("text", ["zfp(accuracy=0.1)|fletcher32", "zfp(accuracy=0.1)|shuffle|deflate(1)|fletcher32"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_write_then_verify_gives_the_largest_error(write_beside: Write, text: str, dtype: str, file: h5py.File) -> None:
    source = file.create_dataset("s", data=field(dtype))
    counts: list[tuple[int, int]] = []
    target, written = write_beside(plan(text, dtype), source, file, "v", lambda *each: counts.append(each))
    assert counts == [(done, 6) for done in range(7)]
    assert (target.chunks, target.dtype, written.outcome.lossless_chunks) == ((8, 8), source.dtype, 0)
    error = np.abs(source[()].astype("f8") - target[()].astype("f8")).max()
    assert verify(plan(text, dtype), source, target, quiet).largest_error == error
    assert 0 < error <= 0.1


def test_write_value_that_zfp_cannot_hold_masks_that_chunk_only(write_beside: Write, file: h5py.File) -> None:
    data = field()
    data[12, 20] = np.nan
    source = file.create_dataset("s", data=data)
    _, written = write_beside(plan("zfp(accuracy=0.1)|deflate"), source, file, "v", quiet)
    assert written.outcome.lossless_chunks == 1
    path = file.filename
    # Until the file is opened again, HDF5 takes the last chunk for one with mask 0 (seen in 2.0).
    file.close()
    with h5py.File(path) as again:
        source, target = again["s"], again["v"]
        infos = [target.id.get_chunk_info(index) for index in range(6)]
        assert {info.chunk_offset: info.filter_mask for info in infos if info.filter_mask} == {(8, 16): 1}
        assert np.array_equal(target[8:, 16:], data[8:, 16:], equal_nan=True)
        assert verify(plan("zfp(accuracy=0.1)|deflate"), source, target, quiet).largest_error <= 0.1


def test_write_bound_that_zfp_misses_beside_huge_values_masks_that_chunk(write_beside: Write, file: h5py.File) -> None:
    data = field()
    data[0, 0] = 9.96921e36
    source = file.create_dataset("s", data=data)
    target, written = write_beside(plan("zfp(accuracy=0.1)"), source, file, "v", quiet)
    assert written.outcome.lossless_chunks == 1
    assert np.array_equal(target[:8, :8], data[:8, :8])


def test_write_big_endian_source_as_native(write_beside: Write, file: h5py.File) -> None:
    source = file.create_dataset("s", data=field(">f4"))
    target, _ = write_beside(plan("shuffle|deflate"), source, file, "v", quiet)
    assert target.dtype.isnative
    assert np.array_equal(target[()], source[()])


def test_verify_other_dataset_refused_with_the_chunk(file: h5py.File) -> None:
    source = file.create_dataset("s", data=field())
    other = field()
    other[9, 17] += 0.3
    target = file.create_dataset("v", data=other)
    with pytest.raises(BoundError) as violated:
        verify(plan("zfp(accuracy=0.25)"), source, target, quiet)
    said = str(violated.value)
    assert said.startswith("/v: expected an error of at most 0.25, found 0.3")
    assert "in the chunk at (8, 16)" in said
    assert verify(plan("zfp(accuracy=0.5)"), source, target, quiet).largest_error == pytest.approx(0.3, rel=1e-5)
    # No bound, no refusal: the error is what is asked for.
    assert verify(plan("zfp(rate=8)"), source, target, quiet).largest_error == pytest.approx(0.3, rel=1e-5)


@pytest.mark.parametrize("chunks", [None, (8, 8)])
def test_verify_compares_what_was_never_written_too(chunks: tuple[int, ...] | None, file: h5py.File) -> None:
    """A reader sees the fill value there: what the writer left out is for the verification to judge, not to repeat."""
    source = file.create_dataset("s", (13, 21), "f4", chunks=chunks, fillvalue=1)
    target = file.create_dataset("v", (13, 21), "f4", chunks=(8, 8), fillvalue=2)
    with pytest.raises(BoundError, match=r"/v: expected the fill value 1.0, found 2.0"):
        verify(plan("shuffle|deflate"), source, target, quiet)


@pytest.mark.parametrize("text", ["shuffle|deflate", "zfp(reversible=true)"])
def test_verify_smallest_difference_is_too_much_for_lossless(text: str, file: h5py.File) -> None:
    source = file.create_dataset("s", data=field("f8"))
    other = field("f8")
    other[3, 3] = np.nextafter(other[3, 3], np.inf)
    target = file.create_dataset("v", data=other)
    with pytest.raises(BoundError, match=r"expected an error of at most 0, found .* in the chunk at \(0, 0\)"):
        verify(plan(text, "f8"), source, target, quiet)


@pytest.mark.parametrize(("was", "became"), [(np.nan, 0.0), (0.0, np.nan), (np.inf, -np.inf), (np.inf, 3e38)])
def test_verify_missing_value_that_changed_is_never_within_a_bound(was: float, became: float, file: h5py.File) -> None:
    old, new = field(), field()
    old[1, 1], new[1, 1] = was, became
    source, target = file.create_dataset("s", data=old), file.create_dataset("v", data=new)
    with pytest.raises(BoundError, match="found inf in the chunk at"):
        verify(plan("zfp(accuracy=1e38)"), source, target, quiet)


@pytest.mark.parametrize("text", ["zfp(accuracy=0.1)", "zfp(accuracy=0.1)|shuffle|deflate(1)|fletcher32", "deflate"])
def test_verify_of_what_was_proven_in_writing_decodes_nothing_again(
    write_beside: Write, text: str, file: h5py.File, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunked = plan(text, chunks=(64, 80))  # larger than what is read at once
    data = field(shape=(130, 210))
    data[12, 20] = np.nan
    source = file.create_dataset("s", data=data)
    _, written = write_beside(chunked, source, file, "v", quiet, threads=2)
    assert len(written.proven) == written.outcome.chunks == 9
    path = file.filename
    file.close()
    read: list[str] = []
    values = ChunkReader.values

    def noted(self: ChunkReader, *arguments: Any) -> Any:
        read.append(self.label)
        return values(self, *arguments)

    monkeypatch.setattr(ChunkReader, "values", noted)
    with h5py.File(path) as again:
        everything = verify(chunked, again["s"], again["v"], quiet)
        assert len(read) > 9
        read.clear()
        counts: list[tuple[int, int]] = []
        found = verify(chunked, again["s"], again["v"], lambda *each: counts.append(each), 2, written)
        assert found == everything
        assert counts == [(done, 9) for done in range(10)]
        assert len(read) == found.read_by_library, "those that HDF5 reads too"


def rewritten(write_beside: Write, file: h5py.File, text: str) -> tuple[Path, Written]:
    """Write a dataset, and close the file."""
    _, written = write_beside(plan(text), file.create_dataset("s", data=field()), file, "v", quiet)
    path = Path(file.filename)
    file.close()
    return path, written


@pytest.mark.parametrize("change", ["byte", "mask", "longer"])
def test_verify_chunk_that_is_not_as_it_was_written_refused(write_beside: Write, change: str, file: h5py.File) -> None:
    """A bit that does no harm to any value is enough: what the file holds was not proven."""
    path, written = rewritten(write_beside, file, "zfp(accuracy=0.1)|deflate")
    with h5py.File(path, "r+") as again:
        mask, data = again["v"].id.read_direct_chunk((8, 0))
        data = bytes(data)
        if change == "byte":
            data = data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]
        again["v"].id.write_direct_chunk((8, 0), data + b"\0" * (change != "byte"), 2 if change == "mask" else mask)
    with (
        h5py.File(path) as again,
        pytest.raises(
            BoundError,
            match=r"^/v: bytes or filter mask differ from what was written in the chunk at "
            r"\(8, 0\)$",
        ),
    ):
        verify(plan("zfp(accuracy=0.1)|deflate"), again["s"], again["v"], quiet, 1, written)


def test_verify_chunk_of_what_was_written_that_is_gone_refused(write_beside: Write, file: h5py.File) -> None:
    path, written = rewritten(write_beside, file, "zfp(accuracy=0.1)")
    with h5py.File(path, "r+") as again:
        chunks = {tuple(origin): again["v"].id.read_direct_chunk(origin) for origin in proven_origins(written)}
        words = Zfp(accuracy=0.1).requested
        del again["v"]
        made = again.create_dataset("v", (13, 21), "f4", chunks=(8, 8), compression=32013, compression_opts=words)
        for origin, (mask, data) in chunks.items():
            if origin != (8, 8):
                made.id.write_direct_chunk(origin, data, mask)
    with (
        h5py.File(path) as again,
        pytest.raises(BoundError, match=r"differ from what was written in the chunk at \(8, 8\)$"),
    ):
        verify(plan("zfp(accuracy=0.1)"), again["s"], again["v"], quiet, 1, written)


def test_verify_filters_that_are_others_than_those_of_the_proof_decodes_all(
    write_beside: Write, file: h5py.File
) -> None:
    """The very bytes of the proof, in a dataset whose header tells readers to decode them otherwise."""
    path, written = rewritten(write_beside, file, "scaleoffset(kind=decimal,factor=1)")
    with h5py.File(path, "r+") as again:
        chunks = {tuple(origin): again["v"].id.read_direct_chunk(origin) for origin in proven_origins(written)}
        del again["v"]
        made = again.create_dataset("v", (13, 21), "f4", chunks=(8, 8), scaleoffset=2)
        for origin, (mask, data) in chunks.items():
            made.id.write_direct_chunk(origin, data, mask)
    with h5py.File(path) as again, pytest.raises(BoundError, match=r"expected an error of at most 0\.1, found"):
        verify(plan("scaleoffset(kind=decimal,factor=1)"), again["s"], again["v"], quiet, 1, written)


@pytest.mark.parametrize(
    ("expected", "found", "error"),
    [
        (np.float32([1, 2, 3]), np.float32([1, 2.5, 2]), 1.0),
        (np.array([], "f8"), np.array([], "f8"), 0.0),
        (np.array([np.nan, np.inf, -np.inf]), np.array([np.nan, np.inf, -np.inf]), 0.0),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.5]), 0.5),
        (np.array([1.0, 1.0]), np.array([np.nan, 1.0]), float("inf")),
        (np.array([1.0]), np.array([np.inf]), float("inf")),
        (np.array([-1.7e308]), np.array([1.7e308]), float("inf")),
        (np.float32([-3e38]), np.float32([3e38]), 2 * float(np.float32(3e38))),
        (np.float32([16777216]), np.float32([16777218]), 2.0),
        (np.array([-(2**31)], "i4"), np.array([2**31 - 1], "i4"), 2.0**32 - 1),
        (np.array([-(2**63)], "i8"), np.array([2**63 - 1], "i8"), float(2**64 - 1)),
        (np.array([0, 255], "u1"), np.array([255, 0], "u1"), 255.0),
        (np.array([-128], "i1"), np.array([127], "i1"), 255.0),
        (np.array([2**64 - 1], "u8"), np.array([0], "u8"), float(2**64 - 1)),
    ],
)
def test_largest_error_of_known_arrays(expected: NDArray[Any], found: NDArray[Any], error: float) -> None:
    assert largest_error(expected, found) == error


@given(
    st.sampled_from(["f4", "f8", "i4", "u2"]).flatmap(
        lambda dtype: st.tuples(
            *[arrays.arrays(dtype, (7,), elements={"allow_nan": False} if dtype[0] == "f" else None)] * 2
        )
    )
)
def test_largest_error_of_any_arrays_is_that_of_exact_arithmetic(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    old, new = pair
    if not np.isfinite(old).all() or not np.isfinite(new).all():
        assert largest_error(old, new) == np.inf or np.array_equal(np.isfinite(old), np.isfinite(new))
        return
    from fractions import Fraction

    exact = max(abs(Fraction(a) - Fraction(b)) for a, b in zip(old.tolist(), new.tolist(), strict=True))
    found = largest_error(old, new)
    if exact > Fraction(np.finfo("f8").max):
        assert found >= np.finfo("f8").max
    else:
        assert abs(Fraction(found) - exact) <= exact / 2**52
