"""Filters of new variables: what is defined, compared with netCDF-C call by call, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import netcdf

from .conftest import CHUNKS, RawLibrary, netCDF4, new_dataset, variable_of

# Raw definitions of filters, in turn on one variable: id and parameters.
SEQUENCES = {
    "order": [(307, 9), (2,), (1, 4), (3,)],
    "again_keeps_place": [(307, 9), (1, 4), (307, 3)],
    "shuffle_then_fletcher32": [(2,), (3,)],
    "deflate_levels": [(1, 0), (1, 9), (1, 10), (1, 99)],
    "deflate_level_wrong": [(1, 10)],
    "deflate_without_level": [(1,)],
    "deflate_two_levels": [(1, 4, 5)],
    "deflate_after_szip": [(4, 32, 8), (1, 4)],
    "szip_after_deflate": [(1, 4), (4, 32, 8)],
    "szip_again_unchecked": [(4, 32, 8), (4, 99, 7)],
    "szip_one_number": [(4, 32)],
    "szip_odd_pixels": [(4, 32, 7)],
    "szip_many_pixels": [(4, 32, 64)],
    "absent": [(999,), (33000, 1)],
    "id_0": [(0,)],
    "id_65536": [(65536, 1)],
    "id_70000": [(70000,)],
    "zfp": [(32013, 3, 0, 0, 0x3F500000)],
    "zfp_again": [(32013, 5), (32013, 1, 0, 0, 0x40200000)],
    "no_parameters": [(3,), (2,)],
}


def status_of(call: Callable[[], object]) -> int:
    try:
        call()
    except netcdf.NetcdfError as error:
        return error.code
    return 0


@pytest.mark.parametrize("case", SEQUENCES)
def test_def_var_filter_raw_same_statuses_and_lists_as_netcdf_c(case: str, dataset: Any, raw: RawLibrary) -> None:
    ours, theirs = variable_of(dataset, "ours"), variable_of(dataset, "theirs")
    for number, *words in SEQUENCES[case]:
        status = raw.define(theirs, number, *words)
        assert status_of(lambda n=number, w=words: netcdf.def_var_filter(ours, n, w)) == status
        assert raw.listed(ours) == raw.listed(theirs)
        assert [netcdf.inq_var_filter_info(ours, each) for each in netcdf.inq_var_filter_ids(ours)] == raw.listed(ours)


# Functions of netCDF-C with their arguments, and ours.
FUNCTIONS: dict[str, tuple[tuple[Any, ...], Callable[[Any], object]]] = {
    "deflate": (("nc_def_var_deflate", 0, 1, 5), lambda v: netcdf.def_var_deflate(v, False, True, 5)),
    "deflate_shuffle": (("nc_def_var_deflate", 1, 1, 5), lambda v: netcdf.def_var_deflate(v, True, True, 5)),
    "deflate_0": (("nc_def_var_deflate", 1, 1, 0), lambda v: netcdf.def_var_deflate(v, True, True, 0)),
    "deflate_10": (("nc_def_var_deflate", 0, 1, 10), lambda v: netcdf.def_var_deflate(v, False, True, 10)),
    "shuffle": (("nc_def_var_deflate", 1, 0, 0), netcdf.def_var_shuffle),
    "fletcher32": (("nc_def_var_fletcher32", 1), netcdf.def_var_fletcher32),
    "no_fletcher32": (("nc_def_var_fletcher32", 0), lambda v: netcdf.def_var_fletcher32(v, False)),
    "szip": (("nc_def_var_szip", 32, 16), lambda v: netcdf.def_var_szip(v, "nn", 16)),
    "szip_ec": (("nc_def_var_szip", 4, 8), lambda v: netcdf.def_var_szip(v, "ec")),
    "szip_odd": (("nc_def_var_szip", 32, 7), lambda v: netcdf.def_var_szip(v, 32, 7)),
    "bzip2": (("nc_def_var_bzip2", 4), lambda v: netcdf.def_var_bzip2(v, 4)),
    "bzip2_0": (("nc_def_var_bzip2", 0), lambda v: netcdf.def_var_bzip2(v, 0)),
    "zstandard": (("nc_def_var_zstandard", 7), lambda v: netcdf.def_var_zstandard(v, 7)),
    "zstandard_negative": (("nc_def_var_zstandard", -131072), lambda v: netcdf.def_var_zstandard(v, -131072)),
    "zstandard_23": (("nc_def_var_zstandard", 23), lambda v: netcdf.def_var_zstandard(v, 23)),
    "blosc": (("nc_def_var_blosc", 1, 5, 0, 1), netcdf.def_var_blosc),
    "blosc_names": (("nc_def_var_blosc", 5, 3, 0, 2), lambda v: netcdf.def_var_blosc(v, "zstd", 3, shuffle="bit")),
    "blosc_6": (("nc_def_var_blosc", 6, 5, 0, 1), lambda v: netcdf.def_var_blosc(v, 6)),
    "quantize": (("nc_def_var_quantize", 1, 3), lambda v: netcdf.def_var_quantize(v, "BitGroom", 3)),
    "quantize_bits": (("nc_def_var_quantize", 3, 9), lambda v: netcdf.def_var_quantize(v, "BitRound", 9)),
    "quantize_7": (("nc_def_var_quantize", 1, 7), lambda v: netcdf.def_var_quantize(v, 1, 7)),
    "quantize_mode_4": (("nc_def_var_quantize", 4, 3), lambda v: netcdf.def_var_quantize(v, 4, 3)),
}


@pytest.mark.parametrize("case", FUNCTIONS)
@pytest.mark.parametrize("kind", ["f4", "i4"])
def test_def_var_function_same_status_and_list_as_netcdf_c(case: str, kind: str, dataset: Any, raw: RawLibrary) -> None:
    (name, *arguments), call = FUNCTIONS[case]
    ours, theirs = variable_of(dataset, "ours", kind), variable_of(dataset, "theirs", kind)
    status = raw(name, theirs, *arguments)
    if case.startswith(("zstandard", "blosc")) and not status and not raw.listed(theirs):
        status = -136  # built without the library, it reports success and does nothing
    assert status_of(lambda: call(ours)) == status
    assert raw.listed(ours) == raw.listed(theirs)
    assert netcdf.inq_var_quantize(ours) == netcdf.inq_var_quantize(theirs)


@pytest.mark.parametrize("place", ["read_only", "appended", "written", "scalar", "classic", "closed"])
def test_def_var_filter_in_wrong_place_same_status_as_netcdf_c(
    place: str, tmp_path: Path, raw: RawLibrary, values: np.ndarray
) -> None:
    path = tmp_path / "a.nc"
    dataset = new_dataset(path, format="NETCDF3_64BIT_OFFSET" if place == "classic" else "NETCDF4")
    variable = dataset.createVariable("v", "f4", () if place == "scalar" else ("z", "y", "x"))
    if place in ("read_only", "appended", "written"):
        variable[:] = values
        dataset.sync()
    if place in ("read_only", "appended"):
        dataset.close()
        dataset = netCDF4.Dataset(path, "r" if place == "read_only" else "a")
        variable = dataset["v"]
    if place == "closed":
        dataset.close()
    theirs = raw.define(variable, 1, 4)
    with pytest.raises(netcdf.NetcdfError) as caught:
        netcdf.def_var_filter(variable, tamis.Deflate(4))
    error = caught.value
    assert error.code == theirs
    assert {"read_only": "open for reading only", "scalar": "a scalar", "closed": "the dataset is closed"}.get(
        place, "format='NETCDF4'" if place == "classic" else "right after createVariable"
    ) in str(error)
    assert f"({error.name}, {theirs})" in str(error)
    assert error.dataset in ("/v", "v")
    if place != "closed":
        assert error.path == str(path)
        dataset.close()


def test_def_var_filter_id_of_closed_dataset_is_not_used_for_another(tmp_path: Path) -> None:
    first = new_dataset(tmp_path / "a.nc")
    old = variable_of(first)
    first.close()
    with new_dataset(tmp_path / "b.nc") as second:
        new = variable_of(second)
        assert (old._grpid, old._varid) == (new._grpid, new._varid)  # netCDF-C gives ids again
        with pytest.raises(netcdf.NetcdfError, match=r"the dataset is closed \(NC_EBADID, -33\)"):
            netcdf.def_var_filter(old, "deflate(4)")
        assert netcdf.inq_var_filter_ids(new) == ()


TEXTS: dict[str, tuple[object, list[int]]] = {
    "filter": (tamis.Zfp(accuracy=0.1), [32013]),
    "pipeline": (tamis.Pipeline.parse("zfp(accuracy=0.1)|fletcher32"), [3, 32013]),
    "text": ("zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32", [3, 2, 32013, 1]),
    "netcdf_text": ("32013,3,0,0.1d", [32013]),
    "netcdf_order": ("fletcher32|shuffle|deflate(4)", [3, 2, 1]),
    "h5repack_text": ("UD=32013,1,4,3,0,2576980378,1069128089", [32013]),
    "none": ("none", []),
}


@pytest.mark.parametrize("case", TEXTS)
def test_def_var_filter_defines_typed_filters_in_the_order_asked_for(
    case: str, tmp_path: Path, values: np.ndarray
) -> None:
    filters, ids = TEXTS[case]
    with new_dataset(tmp_path / "a.nc") as dataset:
        variable = variable_of(dataset)
        netcdf.def_var_filter(variable, filters)
        assert list(netcdf.inq_var_filter_ids(variable)) == ids
        planned = netcdf.filters(variable)
        variable[:] = values
        dataset.sync()
        assert [member.id for member in planned.filters] == [member.id for member in netcdf.filters(variable).filters]
    with h5py.File(tmp_path / "a.nc") as file:
        pipeline = tamis.hdf5.pipeline_of(file["v"])
        assert [member.name for member in pipeline.filters] == [member.name for member in planned.filters]
        if not isinstance(filters, tamis.Zfp) and case not in ("none", "netcdf_text", "h5repack_text"):
            assert str(pipeline).split("|")[1:] == str(filters).split("|")[1:]
        assert np.abs(file["v"][...] - values).max() <= (0.1 if 32013 in ids else 0)
        masks = (
            {file["v"].id.get_chunk_info(i).filter_mask for i in range(file["v"].id.get_num_chunks())} if ids else {0}
        )
        assert masks == {0}


def test_def_var_fletcher32_after_zfp_runs_after_zfp(tmp_path: Path, values: np.ndarray) -> None:
    with new_dataset(tmp_path / "a.nc") as dataset:
        variable = variable_of(dataset)
        netcdf.def_var_filter(variable, tamis.Zfp(accuracy=0.1))
        netcdf.def_var_deflate(variable, True, True, 4)
        netcdf.def_var_fletcher32(variable)
        variable[:] = values
        dataset.sync()
        assert [member.name for member in netcdf.filters(variable).filters] == [
            "zfp",
            "shuffle",
            "deflate",
            "fletcher32",
        ]
        assert np.abs(variable[:] - values).max() <= 0.1


WRONG: dict[str, tuple[object, str]] = {
    "text": ("zfp(acuracy=0.1)", "did you mean accuracy"),
    "netcdf_text": ("307,1.5", "at position"),
    "object": (3.5, "expected a filter, a pipeline, their text, or an id with values, got 3.5"),
    "order": ("shuffle|deflate(4)|fletcher32", r"write fletcher32\|shuffle\|deflate\(4\), or use h5py"),
    "flag": ("deflate(4)!", "netCDF cannot express flags"),
    "twice": ("deflate(4)|deflate(5)", "each filter once, got deflate twice"),
    "zfp_not_first": ("deflate(4)|zfp(rate=8)", "zfp first"),
}


@pytest.mark.parametrize("case", WRONG)
def test_def_var_filter_wrong_request_refused_before_anything_is_defined(case: str, dataset: Any) -> None:
    filters, message = WRONG[case]
    variable = variable_of(dataset)
    with pytest.raises(tamis.ParameterError, match=message):
        netcdf.def_var_filter(variable, filters)
    assert netcdf.inq_var_filter_ids(variable) == ()


def test_def_var_filter_zfp_after_deflate_refused(dataset: Any) -> None:
    variable = variable_of(dataset)
    netcdf.def_var_filter(variable, "deflate(4)")
    with pytest.raises(tamis.ParameterError, match=r"expected zfp first, got deflate \(filter 1\) before it"):
        netcdf.def_var_filter(variable, tamis.Zfp(rate=8))
    assert netcdf.inq_var_filter_ids(variable) == (1,)


def test_def_var_filter_type_that_zfp_cannot_encode_refused_here_and_not_on_writing(dataset: Any) -> None:
    variable = variable_of(dataset, dtype="i2")
    with pytest.raises(tamis.ParameterError, match=r"a\.nc: v: .*float32"):
        netcdf.def_var_filter(variable, tamis.Zfp(rate=8))
    big = dataset.createVariable("big", ">f4", ("z", "y", "x"), endian="big", chunksizes=CHUNKS)
    with pytest.raises(tamis.ParameterError, match="native byte order"):
        netcdf.def_var_filter(big, tamis.Zfp(rate=8))


def test_def_var_filter_other_objects_refused(dataset: Any, tmp_path: Path) -> None:
    with (
        h5py.File(tmp_path / "b.h5", "w") as file,
        pytest.raises(tamis.ParameterError, match=r"expected a variable of netCDF4, got Dataset: .*tamis\.hdf5"),
    ):
        netcdf.def_var_filter(file.create_dataset("v", data=[1]), "deflate(4)")
    with pytest.raises(tamis.ParameterError, match="expected the id of a filter with values"):
        netcdf.def_var_filter(variable_of(dataset), "deflate", [4])


def test_def_var_filter_pipeline_with_an_absent_filter_defines_nothing(dataset: Any) -> None:
    variable = variable_of(dataset)
    with pytest.raises(netcdf.NetcdfError, match="has no plugin for filter 33000"):
        netcdf.def_var_filter(variable, "shuffle|deflate(4)|filter(33000)")
    assert netcdf.inq_var_filter_ids(variable) == ()


def test_names_that_netcdf_does_not_know_refused(dataset: Any) -> None:
    variable = variable_of(dataset)
    with pytest.raises(tamis.ParameterError, match="expected coding 'ec' or 'nn', got 'xx'"):
        netcdf.def_var_szip(variable, "xx")
    with pytest.raises(tamis.ParameterError, match=r"expected compressor 'blosclz' or .*, got 'lz5'"):
        netcdf.def_var_blosc(variable, "lz5")
    with pytest.raises(tamis.ParameterError, match="expected mode 'BitGroom' or 'GranularBR' or 'BitRound', got ''"):
        netcdf.def_var_quantize(variable, "", 3)


@pytest.mark.parametrize("words", ["9", [1.5], [1 << 32], 9, [-(1 << 31) - 1]], ids=repr)
def test_def_var_filter_words_of_another_kind_refused(words: Any, dataset: Any) -> None:
    variable = variable_of(dataset)
    with pytest.raises(tamis.ParameterError, match="expected 32-bit words, got values="):
        netcdf.def_var_filter(variable, 32013, words)
    netcdf.def_var_filter(variable, 32013, [-1])
    assert netcdf.inq_var_filter_info(variable, 32013).values == ((1 << 32) - 1,)


@pytest.mark.parametrize("number", [1 << 32, (1 << 32) + 4, -1, 4.0, "4", None], ids=repr)
def test_numbers_that_ctypes_would_cut_refused(number: Any, dataset: Any) -> None:
    variable = variable_of(dataset)
    with pytest.raises(tamis.ParameterError):
        netcdf.def_var_deflate(variable, level=number)
    with pytest.raises(tamis.ParameterError, match="expected"):
        netcdf.def_var_filter(variable, 1 << 40, [])
    with pytest.raises(tamis.ParameterError, match="expected"):
        netcdf.inq_var_filter_info(variable, 1 << 40)
    assert netcdf.inq_var_filter_ids(variable) == ()


def test_parameters_that_netcdf_c_refuses_are_in_the_message(dataset: Any) -> None:
    variable = variable_of(dataset)
    with pytest.raises(netcdf.NetcdfError, match=r"takes for deflate \(filter 1\), got \(False, True, 12\)"):
        netcdf.def_var_deflate(variable, level=12)
    with pytest.raises(netcdf.NetcdfError, match=r"as many parameters .* for deflate \(filter 1\), got \(4, 5\)"):
        netcdf.def_var_filter(variable, 1, [4, 5])


def test_def_var_fletcher32_false_refused_where_it_is_defined(dataset: Any) -> None:
    variable = variable_of(dataset)
    netcdf.def_var_filter(variable, "fletcher32|shuffle")
    for function in (netcdf.def_var_fletcher32, netcdf.def_var_shuffle):
        with pytest.raises(netcdf.NetcdfError, match="netCDF cannot remove "):
            function(variable, False)


def test_netcdf_error_is_of_python_s_class_and_pickles(dataset: Any) -> None:
    variable = variable_of(dataset)
    with pytest.raises(tamis.MissingFilterError) as caught:
        netcdf.def_var_filter(variable, 999, [])
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, netcdf.NetcdfError)
    assert (error.code, error.name, error.dataset) == (-136, "NC_ENOFILTER", "/v")
    assert "has no plugin for filter 999" in str(error)
    with pytest.raises(tamis.ParameterError) as wrong:
        netcdf.def_var_filter(variable, 1, [10])
    assert (wrong.value.code, wrong.value.name) == (-36, "NC_EINVAL")
