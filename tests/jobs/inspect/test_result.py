"""An inspection as JSON: the schema that docs/inspect.md promises, whatever is in the file."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import tamis
from tamis import Pipeline
from tamis.formats.hdf5.tree.create import create_group
from tamis.jobs.inspect.result import json_document

PAGE = Path(__file__).resolve().parents[3] / "docs" / "inspect.md"


def in_file(path: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(tamis.inspect(path).to_json())
    return made


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A file with ZFP, skipped filters, flags that are not as usual, an unknown filter and a filtered group."""
    values = np.sin(np.arange(4096.0) / 90).reshape(16, 16, 16)
    values[0, 0, 0] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(6, 16, 16), fletcher32=True, **tamis.Zfp(accuracy=0.1))
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        for number, values in ((400, (1, 0xFFFFFFFF)), (1, (4,)), (1, (9,))):
            plist.set_filter(number, h5z.FLAG_OPTIONAL, values)
        h5d.create(file.id, b"unknown", h5t.IEEE_F32BE, h5s.create_simple((20,), (h5s.UNLIMITED,)), plist)
        create_group(file, "g", "deflate(9)")
        file["g/scalar"] = 1.5
    return tmp_path / "a.h5"


def test_json_of_every_dataset_and_group_has_the_keys_of_the_schema(mixed: Path) -> None:
    made = in_file(mixed)
    assert set(made) == {"schema", "path", "nbytes", "datasets", "groups"}
    assert (made["schema"], made["path"], made["nbytes"]) == (1, str(mixed), mixed.stat().st_size)
    for each in made["datasets"]:
        assert list(each) == [
            "path",
            "shape",
            "maxshape",
            "dtype",
            "byteorder",
            "layout",
            "chunks",
            "pipeline",
            "filters",
            "nbytes",
            "stored_nbytes",
            "ratio",
            "total_chunks",
            "stored_chunks",
            "chunk_groups",
            "readers",
            "zfp_padding",
            "zfp_better",
            "role",
            "packing",
            "valid_range",
            "rounding",
            "used_bits",
            "packed_to",
            "notes",
            "problem",
        ]
    (group,) = made["groups"]
    assert list(group) == ["path", "pipeline", "filters", "readers", "problem"]
    assert (group["path"], group["pipeline"], group["problem"]) == ("/g", "deflate(9)", None)


def test_json_of_zfp_dataset_gives_parameters_masks_padding_and_readers(mixed: Path) -> None:
    each = next(each for each in in_file(mixed)["datasets"] if each["path"] == "/v")
    zfp, fletcher32 = each["filters"]
    assert {key: zfp[key] for key in ("id", "name", "label", "text", "optional", "parameters")} == {
        "id": 32013,
        "name": "zfp",
        "label": "ZFP",
        "text": "zfp(accuracy=0.0625)",
        "optional": True,
        "parameters": {"accuracy": 0.0625},
    }
    assert zfp["words"].startswith("zfp accuracy, effective tolerance 2^-4 = 0.0625 (")
    with h5py.File(mixed) as file:
        assert tuple(zfp["values"]) == file["v"].id.get_create_plist().get_filter(0)[2]
    assert (fletcher32["text"], fletcher32["optional"], fletcher32["parameters"]) == ("fletcher32", False, {})
    assert each["chunk_groups"] == [
        {"mask": 0, "count": 2, "applied": ["zfp", "fletcher32"], "skipped": []},
        {"mask": 1, "count": 1, "applied": ["fletcher32"], "skipped": ["zfp"]},
    ]
    assert (each["stored_chunks"], each["total_chunks"]) == (3, 3)
    assert each["zfp_padding"] == 0.25
    assert each["zfp_better"].keys() == {"chunks", "padding", "saved", "saved_nbytes"}
    assert {note["code"] for note in each["notes"]} == {"zfp-padding"}
    assert each["readers"] == {
        "words": "HDF5 with the plugin H5Z-ZFP (here: h5py yes; tamis yes)",
        "any_hdf5": False,
        "plugins": ["H5Z-ZFP"],
        "szip": False,
        "not_by": [],
        "h5py": True,
        "tamis": True,
    }


def test_json_of_unknown_and_repeated_filters_keeps_order_words_and_flags(mixed: Path) -> None:
    """D26: order, duplicates, flags are kept as stored."""
    each = next(each for each in in_file(mixed)["datasets"] if each["path"] == "/unknown")
    assert [(found["id"], found["values"], found["optional"]) for found in each["filters"]] == [
        (400, [1, 0xFFFFFFFF], True),
        (1, [4], True),
        (1, [9], True),
    ]
    assert each["pipeline"] == "filter(400,1,4294967295)|deflate(4)|deflate(9)"
    assert (each["byteorder"], each["dtype"], each["maxshape"], each["ratio"]) == ("big", ">f4", [None], None)
    assert str(Pipeline.parse(each["pipeline"])) == each["pipeline"]


@pytest.mark.parametrize(
    ("keywords", "parameters"),
    [
        ({"rate": 8}, {"rate": 8.0}),
        ({"precision": 16}, {"precision": 16}),
        ({"reversible": True}, {"reversible": True}),
        (
            {"minbits": 40, "maxbits": 700, "maxprec": 22, "minexp": -9},
            {"minbits": 40, "maxbits": 700, "maxprec": 22, "minexp": -9},
        ),
    ],
    ids=str,
)
def test_json_parameters_of_each_zfp_mode_make_the_same_filter(
    keywords: dict[str, Any], parameters: dict[str, Any], tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.ones((8, 8)), chunks=(8, 8), **tamis.Zfp(**keywords))
    (found,) = in_file(tmp_path / "a.h5")["datasets"][0]["filters"]
    assert found["parameters"] == parameters
    assert tamis.Zfp(**found["parameters"]) == tamis.Zfp(**keywords)


HOSTILE = [
    b'"},{"',
    b"\x1b[31mred",
    b"tab\there",
    b"<script>alert(1)<\xe2\x88\x95script>",
    "\u202eevil".encode(),
    b"\xff\xfe",
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_json_of_hostile_names_is_ascii_and_gives_them_back(name: bytes, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        h5d.create(file.id, name, h5t.NATIVE_INT8, h5s.create(h5s.SCALAR))
    text = tamis.inspect(tmp_path / "a.h5").to_json()
    assert text.isascii()
    assert json.loads(text)["datasets"][0]["path"].encode("utf-8", "surrogateescape") == b"/" + name


def test_json_of_damaged_words_is_strict_json(tmp_path: Path) -> None:
    """Any byte of stored ZFP parameters may be damaged: JSON knows no NaN and no Infinity."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", data=np.ones((8, 8)), chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
        words = made.id.get_create_plist().get_filter(0)[2]
    data = (tmp_path / "a.h5").read_bytes()
    start = data.index(b"".join(word.to_bytes(4, "little") for word in words))
    problems = 0
    for index in range(4 * len(words)):
        for bits in (0x01, 0x80, 0xFF):
            changed = bytearray(data)
            changed[start + index] ^= bits
            (tmp_path / "b.h5").write_bytes(changed)
            text = tamis.inspect(tmp_path / "b.h5", "v").to_json()
            (found,) = json.loads(text, parse_constant=pytest.fail)["datasets"]
            problems += found["problem"] is not None
    assert problems > 10


def test_json_document_of_several_files_and_errors(sample: Path, mixed: Path) -> None:
    made = json.loads(
        json_document(
            [tamis.inspect(sample), tamis.inspect(mixed)], [("x.nc", tamis.FileError("gone").at(dataset="/TS"))]
        )
    )
    assert set(made) == {"schema", "files", "errors"}
    assert [each["path"] for each in made["files"]] == [str(sample), str(mixed)]
    assert made["files"][0] == {key: value for key, value in in_file(sample).items() if key != "schema"}
    place = {"path": "x.nc", "dataset": "/TS", "chunk": None, "filter": None}
    assert made["errors"] == [{"kind": "FileError", "message": "gone", **place}]


def test_page_describes_every_key_and_every_note(mixed: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    described = set(re.findall(r"`([a-z0-9_-]+)`", page))
    made = in_file(mixed)
    keys = set(made) | set(made["datasets"][0]) | set(made["groups"][0])
    zfp = next(each for each in made["datasets"] if each["path"] == "/v")
    keys |= set(zfp["filters"][0]) | set(zfp["chunk_groups"][0]) | set(zfp["readers"]) | set(zfp["notes"][0])
    assert keys <= described
    source = (Path(tamis.__file__).parent / "advice" / "chunk_shapes.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'Note\(\s*"([a-z0-9-]+)"', source))
    assert len(codes) >= 9
    assert codes <= described


def test_inspection_is_frozen_and_compares_by_value(sample: Path) -> None:
    found = tamis.inspect(sample)
    assert found == tamis.inspect(sample)
    with pytest.raises(AttributeError):
        found.datasets[0].path = "x"  # type: ignore[misc]
    assert math.isclose(found.datasets[0].ratio or 0, 1.72, abs_tol=0.01)


def test_inspect_needs_no_plugin_and_imports_none(sample: Path, real: Callable[[str], Path]) -> None:
    code = """
import sys, tamis
for path in sys.argv[1:]:
    tamis.inspect(path).to_json()
print([name for name in ("hdf5plugin", "netCDF4", "imagecodecs", "rich") if name in sys.modules])
"""
    command = [sys.executable, "-c", code, str(sample), str(real("h5zzfp/test_zfp_le.h5"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
