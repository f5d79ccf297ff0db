"""The public face: what `tamis` names, and what all results have."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import subprocess
import sys
import typing
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.formatting import with_keywords

ZFP = "zfp(accuracy=0.1)|shuffle|deflate(4)"

PUBLIC = """
    Bitshuffle Blosc Blosc2 Bzip2 Deflate Fletcher32 Lz4 Lzf Nbit Pcodec Scaleoffset Shuffle Sperr Sz3 Szip
    UnknownFilter Zfp Zstd Absolute Address BitGroom BitRound Granular Pack Pipeline
    TamisError BoundError DataError FileError MissingFilterError ParameterError StreamError
    inspect copy export ReferenceParser ExportResult plan Plan repack preview_repack verify spec encoding open
    FolderPreview FolderStatus FolderVerification Manifest ManifestCheck check_manifest combine manifest
    preview_repack_many repack_many status verify_many
    Recipe repair RepairResult report Report report_many FolderReport
    Inspection RepackResult RepackPreview Verification Spec Encoding
    Config config plugin_path __version__
    cf filters hdf5 netcdf zarr zfp
"""
"""Frozen: a name that goes away or changes breaks somebody's program, and one that is added is promised for ever."""

MODULES = {
    "cf": """DATA FILL_ATTRIBUTES KINDS Packing Role ValidRange Variable missing_values packing_of roles_of
        valid_range""",
    "filters": """Bitshuffle Blosc Blosc2 Bzip2 ChunkType Data Deflate Filter Fletcher32 Lz4 Lzf Nbit Parameter Pcodec
        Request Scaleoffset Shuffle Sperr Stage StoredZfp Sz3 Szip UnknownFilter Zfp Zstd by_id by_name choice
        filter_named from_values number plugin_path real requested_filter""",
    "hdf5": """Appender Partial PhaseChange chunk_type create_appender create_dataset create_group group_filters
        group_phase_change pipeline_of read_chunk write write_stream""",
    "netcdf": """Deflation FilterInfo NetcdfError Quantization create_variable def_var_blosc def_var_bzip2
        def_var_deflate
        def_var_filter def_var_fletcher32 def_var_quantize def_var_shuffle def_var_szip def_var_zstandard filters
        filterspec_fix8 filterspec_parse filterspec_parse_parameter filterspec_parselist inq_filter_avail inq_var_blosc
        inq_var_bzip2 inq_var_deflate inq_var_filter inq_var_filter_ids inq_var_filter_info inq_var_fletcher32
        inq_var_quantize inq_var_shuffle inq_var_szip inq_var_zstandard plugin_path_append plugin_path_get
        plugin_path_prepend plugin_path_set""",
    "zarr": """H5zZfp Pipeline2Codec PipelineCodec ReshapeCodec ZfpCodec Zfpy codecs""",
    "zfp": """Accuracy BLOCK_SIDE Config Expert Header MAX_RANK Mode Precision Rate Reversible as_mode check_encodable
        config decode decode_with_header encode encode_with_header is_lossless max_extent mode mode_of prove""",
}


def dataset() -> Any:
    xarray = pytest.importorskip("xarray")
    return xarray.Dataset({"TS": (("time", "lat", "lon"), np.zeros((8, 8, 8), "f4"))})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    sample = Path(__file__).resolve().parents[1] / "examples" / "data" / "cam_ts.nc"
    target = tmp_path_factory.mktemp("public") / "b.nc"
    recipes, chunks = {"TS": ZFP}, {"TS": (4, 96, 144)}
    return {
        "preview": tamis.preview_repack(sample, target, recipes, chunks=chunks),
        "repack": tamis.repack(sample, target, recipes, chunks=chunks),
        "verify": tamis.verify(sample, target, bounds={"TS": 0.1}),
        "report": tamis.report(sample, target),
        "inspect": tamis.inspect(target),
        "plan": tamis.plan(sample, {"TS": "abs=0.1"}, sample=1_000_000),
        "spec": tamis.spec(ZFP, variable="TS"),
        "encoding": tamis.encoding(dataset(), {"TS": "zfp(accuracy=0.1)"}, chunks={"TS": (4, 4, 4)}),
    }


def test_public_names_are_frozen() -> None:
    assert sorted(PUBLIC.split()) == tamis.__all__


def test_dir_is_the_public_list_and_nothing_else() -> None:
    assert dir(tamis) == tamis.__all__


@pytest.mark.parametrize("name", MODULES)
def test_dir_of_public_module_is_its_frozen_list(name: str) -> None:
    module = getattr(tamis, name)
    assert dir(module) == sorted(module.__all__) == sorted(MODULES[name].split())


@pytest.mark.parametrize("name", ["is_known", "is_unsigned", "numbers", "text"])
def test_helper_of_cf_works_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"tamis.cf.{name} is deprecated"):
        assert callable(getattr(tamis.cf, name))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tamis' has no attribute 'plan_repack'"):
        tamis.plan_repack  # noqa: B018


@pytest.mark.parametrize("name", ["preview", "repack", "verify", "report", "inspect", "plan"])
def test_result_has_datasets_by_name(name: str, results: dict[str, Any]) -> None:
    result = results[name]
    assert result["TS"] is result["/TS"]
    assert result["TS"].path == "/TS"
    assert list(result) == [each.path for each in result.datasets]
    assert "TS" in result
    assert "/TS" in result
    assert "T" not in result
    assert str(result["TS"]).startswith("/TS ")
    assert json.loads(result.to_json())["datasets"] == [each.to_dict() for each in result.datasets]
    with pytest.raises(KeyError, match="T"):
        result["T"]


@pytest.mark.parametrize("name", ["preview", "repack", "verify", "report", "inspect", "plan", "spec", "encoding"])
def test_result_prints_and_becomes_json(name: str, results: dict[str, Any]) -> None:
    result = results[name]
    document = json.loads(result.to_json())
    assert document == json.loads(result.to_json(indent=2))
    assert document["schema"] >= 1
    assert document == result.to_dict()
    assert str(result) == with_keywords("\n".join(text for _, text in result.lines()))
    assert "TS" in str(result)
    assert not str(result).startswith(type(result).__name__)


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open += [tag] if tag != "br" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["preview", "repack", "verify", "report", "inspect", "plan", "spec", "encoding"])
def test_result_in_a_notebook_is_closed_html(name: str, results: dict[str, Any]) -> None:
    html = results[name]._repr_html_()
    assert html.startswith('<div class="tamis">')
    assert _Tags(html).open == []
    assert "TS" in html


@pytest.mark.parametrize("name", ["preview", "repack", "verify", "report", "inspect", "plan", "spec", "encoding"])
def test_result_pickled_is_equal(name: str, results: dict[str, Any]) -> None:
    assert pickle.loads(pickle.dumps(results[name])) == results[name]


@pytest.mark.parametrize("name", ["preview", "repack", "verify", "report", "inspect", "plan", "spec", "encoding"])
def test_result_class_is_public(name: str, results: dict[str, Any]) -> None:
    kind = type(results[name])
    assert getattr(tamis, kind.__name__) is kind


def test_python_m_tamis_is_the_command() -> None:
    run = [sys.executable, "-m", "tamis"]
    version = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True).stdout
    assert version == f"{tamis.config()}\n"
    failed = subprocess.run([*run, "inspect", "nothing.nc"], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stderr) == (1, "tamis inspect: nothing.nc: No such file or directory\n")


def test_encoding_is_the_dict_that_xarray_takes(results: dict[str, Any], tmp_path: Path) -> None:
    encoding = results["encoding"]
    assert isinstance(encoding, dict)
    assert encoding["TS"]["chunksizes"] == (4, 4, 4)
    assert "/TS" not in encoding
    assert copy.deepcopy(encoding).pipelines == encoding.pipelines
    assert str(encoding).splitlines()[1].split() == ["TS", "zfp(accuracy=0.1)", "4x4x4"]
    pytest.importorskip("h5netcdf")
    dataset().to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
    assert tamis.inspect(tmp_path / "a.nc")["TS"].chunks == (4, 4, 4)


def public_functions() -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes of the public names, and the functions and properties of these classes."""
    for module in (tamis, tamis.zfp, tamis.filters, tamis.netcdf, tamis.hdf5, tamis.zarr, tamis.cf):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                yield name, found
                for own, value in vars(found).items():
                    if isinstance(value, property):
                        yield f"{name}.{own}", value.fget
                    elif isinstance(value, classmethod | staticmethod):
                        yield f"{name}.{own}", value.__func__
                    elif inspect.isfunction(value):
                        yield f"{name}.{own}", value
            elif inspect.isfunction(found):
                yield name, found


def test_annotations_of_all_public_names_resolve() -> None:
    unresolved = {}
    for name, function in public_functions():
        try:
            typing.get_type_hints(function)
        except (NameError, TypeError) as error:
            unresolved[name] = str(error)
    assert unresolved == {}
