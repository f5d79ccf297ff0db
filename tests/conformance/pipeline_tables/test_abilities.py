"""Filters that only decode, only encode, or are not for such chunks: cell by cell, HDF5 and the pipeline of tamis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from h5py import h5z
from numpy.typing import NDArray

from tamis import MissingFilterError, ParameterError, Pipeline, UnknownFilter
from tamis.filters import ChunkType, Stage

REQUIRED, OPTIONAL = h5z.FLAG_MANDATORY, h5z.FLAG_OPTIONAL
KEY = 90
CHUNK = ChunkType(np.dtype("<i4"), (8,))


# Filter that can do one thing only


def test_decode_only_hdf5_refuses_to_create_and_encode_follows_the_flag(
    flag: int, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    """HDF5's manual has it succeed, not applied, where it is optional; HDF5 fails, tamis does what the manual says."""
    with hdf5.registered(toy(encoder=False)):
        assert hdf5.plist(hdf5.toy(flag)).get_nfilters() == 1
        with pytest.raises(ValueError, match="encoding is disabled"):
            hdf5.create(hdf5.toy(flag))
    with hdf5.registered(toy()):
        hdf5.create(hdf5.toy(flag))
    with installed("DecodeOnly") as decode_only:
        pipeline = Pipeline([Stage(decode_only(KEY), flag == OPTIONAL)])
        if flag == REQUIRED:
            with pytest.raises(MissingFilterError, match=r"filter 1, toy\(90\).*: tamis can decode toy but not encode"):
                pipeline.encode(values[:8])
            return
        ours = hdf5.encoded_by_us(pipeline, values)
    assert ours == [((start,), values[start : start + 8].tobytes(), 1) for start in (0, 8, 16)]
    hdf5.write_raw(ours)
    with hdf5.registered(toy(encoder=False)):
        np.testing.assert_array_equal(hdf5.read(), values)


def test_decode_only_write_to_existing_dataset_fails_in_hdf5(
    flag: int, hdf5: Any, toy: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy()):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values)
        before = hdf5.stored()
    with (
        hdf5.registered(toy(encoder=False)),
        hdf5.file("r+") as file,
        pytest.raises((OSError, RuntimeError), match="encoding is disabled"),
    ):
        file["x"][:8] = values[:8] + 1
    assert hdf5.stored() == before


def test_decode_only_read_succeeds(flag: int, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]) -> None:
    with hdf5.registered(toy()):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values)
    with hdf5.registered(toy(encoder=False)), installed("DecodeOnly"):
        np.testing.assert_array_equal(hdf5.read(), values)
        np.testing.assert_array_equal(hdf5.decoded_by_us(), values)


def test_encode_only_hdf5_reads_nevertheless_and_decode_names_it(
    flag: int, hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    """HDF5 looks at encoder_present only: the decoder of a filter that says that it has none is called."""
    with hdf5.registered(toy(decoder=False)), installed("EncodeOnly"):
        hdf5.create(hdf5.toy(flag))
        hdf5.write(values)
        assert hdf5.masks() == [0, 0, 0]
        np.testing.assert_array_equal(hdf5.read(), values)
        with pytest.raises(MissingFilterError, match=r"filter 1, toy\(90\) .*: toy does not decode"):
            hdf5.decoded_by_us()


# Filter that is not for such chunks


def test_required_can_apply_says_no_create_fails_and_encode_names_it(
    hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy(can_apply=0)), pytest.raises(ValueError, match="filter parameters not appropriate"):
        hdf5.create(hdf5.toy(REQUIRED))
    with installed("NotForThese") as not_for_these:
        pipeline = Pipeline([Stage(not_for_these(KEY), optional=False)])
        with pytest.raises(ParameterError, match="toy takes no int32"):
            pipeline.check(CHUNK)
        with pytest.raises(ParameterError, match=r"filter 1, toy\(90\).* \(required\): toy takes no int32"):
            pipeline.encode(values[:8])


def test_optional_can_apply_says_no_hdf5_calls_it_nevertheless_and_tamis_leaves_it_out(
    hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy(can_apply=0)) as counted:
        hdf5.create(hdf5.toy(OPTIONAL))
        hdf5.write(values)
        assert hdf5.masks() == [0, 0, 0]
        assert counted.encoded == 3
    with installed("Xor"):  # a reader goes by the mask
        np.testing.assert_array_equal(hdf5.decoded_by_us(), values)
    with installed("NotForThese") as not_for_these:
        pipeline = Pipeline([not_for_these(KEY)])
        with pytest.raises(ParameterError, match="toy takes no int32"):
            pipeline.check(CHUNK)  # where one is asked for, one is told
        ours = hdf5.encoded_by_us(pipeline, values)
    assert ours == [((start,), values[start : start + 8].tobytes(), 1) for start in (0, 8, 16)]
    with hdf5.registered(toy(can_apply=0)):
        hdf5.create(hdf5.toy(OPTIONAL))
        hdf5.write_raw(ours)
        np.testing.assert_array_equal(hdf5.read(), values)


@pytest.mark.parametrize(
    ("call", "message"), [("can_apply", "error during user callback"), ("set_local", "error during user callback")]
)
def test_set_up_fails_create_fails_and_check_refuses_whatever_the_flag(
    call: str, message: str, flag: int, hdf5: Any, toy: Any, installed: Any
) -> None:
    with hdf5.registered(toy(**{call: -1})), pytest.raises(ValueError, match=message):
        hdf5.create(hdf5.toy(flag))
    with installed("NotForThese") as not_for_these, pytest.raises(ParameterError, match="toy takes no int32"):
        Pipeline([Stage(not_for_these(KEY), flag == OPTIONAL)]).check(CHUNK)


# What H5Pset_filter takes


@pytest.mark.parametrize(
    ("number", "flag", "message"),
    [(-1, 0, "invalid filter identifier"), (65536, 0, "invalid filter identifier"), (400, 0x100, "invalid flags")],
)
def test_set_filter_refuses_ids_and_flags_that_there_are_none_of(
    number: int, flag: int, message: str, hdf5: Any
) -> None:
    with pytest.raises(ValueError, match=message):
        hdf5.plist([(number, flag, ())])
    if number != 400:
        with pytest.raises(ParameterError, match="expected a filter id of 0 to 65535"):
            UnknownFilter(number)


@pytest.mark.parametrize("number", [0, 65535])
def test_set_filter_takes_first_and_last_id(number: int, hdf5: Any) -> None:
    plist = hdf5.plist([(number, 1, (7,))])
    assert plist.get_filter(0)[:3] == (number, 1, (7,))
    assert Pipeline([UnknownFilter(number, (7,))]).stages[0].request == (number, (7,))
