"""Required and optional filters that are there, are not, or fail: cell by cell, HDF5 and the pipeline of tamis."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from h5py import h5p, h5s, h5z
from numpy.typing import NDArray

from tamis import DataError, MissingFilterError, Pipeline, StreamError, UnknownFilter
from tamis.filters import ChunkType, Stage
from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of

REQUIRED, OPTIONAL = h5z.FLAG_MANDATORY, h5z.FLAG_OPTIONAL
KEY = 90
CHUNK = ChunkType(np.dtype("<i4"), (8,))
# HDF5 tells of a plugin folder that is not there instead.
NOT_REGISTERED = r"(required filter ('toy'|400) is not registered|can't open directory|can't find plugin)"
KINDS = pytest.mark.parametrize("variant", ["Xor", "Zlib"])


# Filter not available


def test_unavailable_set_filter_succeeds_and_a_pipeline_is_built(flag: int, hdf5: Any) -> None:
    with hdf5.registered(None):
        assert hdf5.plist(hdf5.toy(flag)).get_filter(0) == (400, flag, (KEY,), b"")
    pipeline = Pipeline([Stage(UnknownFilter(400, (KEY,)), flag == OPTIONAL)])
    assert (pipeline.stages[0].optional, pipeline.stages[0].request) == (flag == OPTIONAL, (400, (KEY,)))


def test_required_unavailable_create_fails_and_encode_names_it(hdf5: Any, values: NDArray[Any]) -> None:
    with hdf5.registered(None), pytest.raises(ValueError, match="required filter 400 is not registered"):
        hdf5.create(hdf5.toy(REQUIRED))
    with pytest.raises(MissingFilterError, match=r"filter 1, filter\(400,90\).* \(required\): .* a package can add it"):
        Pipeline([Stage(UnknownFilter(400, (KEY,)), optional=False)]).encode(values[:8])


@pytest.mark.parametrize("part", [slice(0, 8), slice(3, 6)], ids=["whole chunk", "part of it"])
def test_required_unavailable_write_fails_and_leaves_data_and_mask(
    part: slice, hdf5: Any, toy: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy()):
        hdf5.create(hdf5.toy(REQUIRED))
        hdf5.write(values)
        before = hdf5.stored()
    with hdf5.registered(None), hdf5.file("r+") as file, pytest.raises((OSError, RuntimeError), match=NOT_REGISTERED):
        file["x"][part] = values[part] + 1
    assert hdf5.stored() == before
    with hdf5.file() as file, pytest.raises(MissingFilterError, match=r"filter 400 .*a package can add it"):
        pipeline_of(file["x"]).encode(values[:8])


def test_unavailable_read_of_filtered_chunk_fails_and_decode_names_it(
    flag: int, hdf5: Any, toy: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy()):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values, 0)
    with hdf5.registered(None):
        with pytest.raises(OSError, match=NOT_REGISTERED):
            hdf5.read(slice(0, 8))
        assert not hdf5.read(slice(8, 24)).any()
    with hdf5.file() as file:
        pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
    assert isinstance(pipeline.filters[0], UnknownFilter)
    assert pipeline.missing()
    ((_, data, mask),) = hdf5.stored()
    message = r"filter 1, .*: tamis does not know filter 400 \(toy\): a package can add it"
    with pytest.raises(MissingFilterError, match=message):
        pipeline.decode(data, mask, chunk)


def test_unavailable_read_of_chunks_without_it_succeeds(flag: int, hdf5: Any, toy: Any, values: NDArray[Any]) -> None:
    with hdf5.registered(toy()):
        hdf5.create(hdf5.toy(flag))
    hdf5.write_raw([((start,), values[start : start + 8].tobytes(), 1) for start in (0, 16)])
    values[8:16] = 0
    with hdf5.registered(None):
        np.testing.assert_array_equal(hdf5.read(), values)
    np.testing.assert_array_equal(hdf5.decoded_by_us(), values)


def test_optional_unavailable_write_leaves_it_out_with_its_mask_bit(hdf5: Any, values: NDArray[Any]) -> None:
    with hdf5.registered(None):
        hdf5.create(hdf5.toy(OPTIONAL))
        hdf5.write(values)
        theirs = hdf5.stored()
        np.testing.assert_array_equal(hdf5.decoded_by_us(), values)
        with hdf5.file() as file:
            pipeline = pipeline_of(file["x"])
        ours = hdf5.encoded_by_us(pipeline, values)
        assert ours == theirs == [((start,), values[start : start + 8].tobytes(), 1) for start in (0, 8, 16)]
        hdf5.create(hdf5.toy(OPTIONAL))
        hdf5.write_raw(ours)
        np.testing.assert_array_equal(hdf5.read(), values)


def test_package_of_a_filter_missing_named_with_the_command_that_installs_it(
    flag: int, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy()):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values, 1)
    command = r"toy needs package_of_the_toy, not installed here: pip install package-of-the-toy"
    with installed("NeedsPackage"), hdf5.file() as file:
        pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
        assert pipeline.missing() == (command,)
        ((_, data, mask),) = hdf5.stored()
        with pytest.raises(MissingFilterError, match=rf"filter 1, toy\(90\) .*: {command}"):
            pipeline.decode(data, mask, chunk)
        if flag == REQUIRED:
            with pytest.raises(MissingFilterError, match=rf"filter 1, toy\(90\) .*: {command}"):
                pipeline.encode(values[:8])
        else:
            assert pipeline.encode(values[:8]) == (values[:8].tobytes(), 1)


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        (None, r"filter\(400,90\)!? .*: tamis does not know filter 400: a package can add it"),
        ("DecodeOnly", "tamis can decode toy but not encode it"),
        ("NeedsPackage", "toy needs package_of_the_toy, not installed here: pip install package-of-the-toy"),
    ],
)
def test_check_encodable_refuses_what_could_only_be_left_out_whatever_the_flag(
    variant: str | None, message: str, flag: int, installed: Any
) -> None:
    """Who asks for a filter is told that there will be none; HDF5 creates such datasets where it is optional."""
    if variant is None:
        pipeline = Pipeline([Stage(UnknownFilter(400, (KEY,)), flag == OPTIONAL)])
        with pytest.raises(MissingFilterError, match=message):
            pipeline.check_encodable()
        return
    with installed(variant) as found, pytest.raises(MissingFilterError, match=message):
        Pipeline([Stage(found(KEY), flag == OPTIONAL)]).check_encodable()


def test_check_encodable_takes_a_filter_that_is_there(flag: int, installed: Any) -> None:
    with installed("Xor") as found:
        Pipeline([Stage(found(KEY), flag == OPTIONAL)]).check_encodable()


# Filter available


@KINDS
def test_available_write_and_read_both_ways(
    flag: int, variant: str, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy(compress=variant == "Zlib")) as counted, installed(variant):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values)
        assert hdf5.masks() == [0, 0, 0]
        assert counted.encoded == 3
        np.testing.assert_array_equal(hdf5.decoded_by_us(), values)
        with hdf5.file() as file:
            pipeline = pipeline_of(file["x"])
        assert (type(pipeline.filters[0]).__name__, pipeline.stages[0].optional) == (variant, flag == OPTIONAL)
        ours = hdf5.encoded_by_us(pipeline, values)
        assert [mask for *_, mask in ours] == [0, 0, 0]
        assert all(data != values[start : start + 8].tobytes() for (start,), data, _ in ours)
        hdf5.create(hdf5.toy(flag))
        hdf5.write_raw(ours)
        np.testing.assert_array_equal(hdf5.read(), values)


def test_required_encoder_fails_hdf5_tells_at_flush_and_encode_at_once(
    hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    """H5Dwrite succeeds; the error comes at every flush, until the encoder works. Here encode fails, and names it."""
    with hdf5.registered(toy(declines=lambda data: data[0] == 0)) as counted:
        hdf5.create(hdf5.toy(REQUIRED))
        with hdf5.file("r+") as file:
            kept_open = file["x"]  # HDF5 2.0 crashes at the second flush if the dataset was closed before
            kept_open[8:16] = values[8:16]
            for attempts in (1, 2):
                with pytest.raises((OSError, RuntimeError), match="filter returned failure"):
                    file.flush()
                assert counted.encoded == attempts
            counted.declines = lambda data: False
            file.flush()
        np.testing.assert_array_equal(hdf5.read(slice(8, 16)), values[8:16])
    with installed("NoZeros") as no_zeros:
        pipeline = Pipeline([Stage(no_zeros(KEY), optional=False)])
        assert pipeline.encode(values[:8])[1] == 0
        with pytest.raises(DataError, match=r"filter 1, toy\(90\)!? \(required\): toy takes no chunk that starts with"):
            pipeline.encode(values[8:16])


def test_optional_encoder_fails_only_that_chunk_goes_without_it(
    hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy(declines=lambda data: data[0] == 0)), installed("NoZeros"):
        hdf5.create(hdf5.toy(OPTIONAL))
        hdf5.write(values)
        theirs = hdf5.stored()
        assert hdf5.masks() == [0, 1, 0]
        np.testing.assert_array_equal(hdf5.decoded_by_us(), values)
        with hdf5.file() as file:
            ours = hdf5.encoded_by_us(pipeline_of(file["x"]), values)
        assert ours == theirs
        hdf5.create(hdf5.toy(OPTIONAL))
        hdf5.write_raw(ours)
        np.testing.assert_array_equal(hdf5.read(), values)


def test_decoder_fails_read_fails_whatever_the_flag(
    flag: int, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy(decodes=False)), installed("NoDecode"):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values)
        with pytest.raises(OSError, match="filter returned failure during read"):
            hdf5.read()
        word = "optional" if flag else "required"
        with pytest.raises(StreamError, match=rf"filter 1, toy\(90\) \({word}\): toy finds it damaged"):
            hdf5.decoded_by_us()


def test_decoder_fails_and_hdf5_is_told_to_go_on_it_gives_encoded_bytes(
    flag: int, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    """H5Pset_filter_callback with H5Z_CB_CONT; tamis has no such thing, but masks."""
    with hdf5.registered(toy(decodes=False)), installed("NoDecode"):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values, 0)
        read = np.zeros(24, "<i4")
        with hdf5.going_on() as plist, hdf5.file() as file:
            file["x"].id.read(h5s.ALL, h5s.ALL, read, dxpl=plist)
        ((_, data, _),) = hdf5.stored()
        assert read[:8].tobytes() == data
        with hdf5.file() as file:
            np.testing.assert_array_equal(pipeline_of(file["x"]).decode(data, 1, CHUNK), read[:8])


def test_checksum_differs_and_hdf5_is_told_not_to_look_it_reads_and_decode_does_not(
    hdf5: Any, values: NDArray[Any]
) -> None:
    """H5Pset_edc_check: HDF5's flag H5Z_FLAG_SKIP_EDC, which only fletcher32 heeds."""
    hdf5.create([(h5z.FILTER_FLETCHER32, 0, ())])
    damaged = values[:8].tobytes() + b"1234"
    hdf5.write_raw([((0,), damaged, 0)])
    with pytest.raises(OSError, match="filter returned failure during read"):
        hdf5.read()
    plist = h5p.create(h5p.DATASET_XFER)
    assert hdf5.calls.H5Pset_edc_check(ctypes.c_int64(plist.id), 0) >= 0
    read = np.zeros(24, "<i4")
    with hdf5.file() as file:
        file["x"].id.read(h5s.ALL, h5s.ALL, read, dxpl=plist)
        np.testing.assert_array_equal(read[:8], values[:8])
        with pytest.raises(StreamError, match=r"filter 1, fletcher32 \(required\): fletcher32 checksum differs"):
            pipeline_of(file["x"]).decode(damaged, 0, CHUNK)


# One writer without the filter, another with it


def test_rewrite_of_raw_chunk_updates_the_mask_where_the_size_changes(
    flag: int, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    """A writes without the filter, B with it: what is left of A's chunks stays raw, and both read all of it (D20)."""
    with hdf5.registered(toy(compress=True)):
        hdf5.create(hdf5.toy(flag))
    hdf5.write_raw([((start,), values[start : start + 8].tobytes(), 1) for start in (0, 8, 16)])
    with hdf5.registered(toy(compress=True)), installed("Zlib"):
        values[8:16] = 7
        hdf5.write(values, 1)
        assert hdf5.masks() == [1, 0, 1]
        np.testing.assert_array_equal(hdf5.read(), values)
        np.testing.assert_array_equal(hdf5.decoded_by_us(), values)
    with hdf5.registered(None), pytest.raises(OSError, match=NOT_REGISTERED):
        hdf5.read()
