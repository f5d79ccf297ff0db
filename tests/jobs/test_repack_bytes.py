"""Values that are no numbers through filters of bytes: compound, text of fixed length, enumerations and the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import tamis
from tamis import ParameterError

Run = Callable[..., str]

RECORD = np.dtype([("id", ">i4"), ("name", "S5"), ("at", "<f8", (2,)), ("on", "?")])
SHAPE = (37, 5)


def records() -> np.ndarray[Any, Any]:
    values = np.zeros(SHAPE, RECORD)
    values["id"] = np.arange(values.size).reshape(SHAPE) // 7
    values["name"], values["at"][..., 1], values["on"][::2] = b"buoy", np.pi, True
    return values


def with_type(file: h5py.File, name: str, kind: h5t.TypeID, data: np.ndarray[Any, Any]) -> None:
    """Make a dataset of a type that numpy does not have, from its bytes."""
    layout = h5p.create(h5p.DATASET_CREATE)
    layout.set_chunk((16, 5))
    made = h5d.create(file.id, name.encode(), kind, h5s.create_simple(SHAPE), layout)
    made.write(h5s.ALL, h5s.ALL, data, kind)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    few = np.arange(np.prod(SHAPE)).reshape(SHAPE) // 11
    with h5py.File(path, "w") as file:
        file["compound"] = records()
        fill = np.array((7, b"none", (1, 2), True), RECORD)
        holes = file.create_dataset("holes", SHAPE, RECORD, chunks=(8, 5), fillvalue=fill)
        holes[9:12] = records()[9:12]
        file["kinds/record"] = RECORD
        file.create_dataset("named", data=records(), dtype=file["kinds/record"], chunks=(10, 5), compression="lzf")
        file["text"] = few.astype("S8")
        file["flag"] = few % 2 == 0
        colour = h5py.enum_dtype({"A": 0, "B": 1, "C": 2}, ">i2")
        file.create_dataset("enum", data=few % 3, dtype=colour, chunks=(10, 2))
        file["complex"] = few.astype("c16")
        file["opaque"] = few.astype("<u8").view("V8")
        array = h5t.array_create(h5t.IEEE_F32BE, (3,))
        with_type(file, "array", array, np.repeat(few[..., None], 3, -1).astype(">f4"))
        with_type(file, "bits", h5t.STD_B16BE, few.astype(">u2"))
        file.create_dataset("compact", data=records()[:2], dcpl=_compact())
        file["strings"] = ["a", "bc"] * 9
        file["reference"] = np.array([file.ref] * 3, dtype=h5py.ref_dtype)
        file["mixed"] = np.array([(1, b"x")] * 4, [("id", "i4"), ("note", h5py.string_dtype())])
    return path


def _compact() -> h5p.PropDCID:
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_layout(h5d.COMPACT)
    return made


FIXED = ("array", "bits", "compact", "complex", "compound", "enum", "flag", "holes", "named", "opaque", "text")
VARIED = ("mixed", "reference", "strings")


@pytest.mark.matrix
@pytest.mark.parametrize(
    "filters",
    [
        "shuffle|deflate(4)|fletcher32",
        "deflate(9)",
        "fletcher32",
        "lzf",
        "bzip2(9)",
        "zstd(3)",
        "blosc(level=5)",
        "nbit",
    ],
)
def test_repack_pattern_compresses_all_values_of_a_fixed_size(
    filters: str, source: Path, tmp_path: Path, tool: Run
) -> None:
    target = tmp_path / "b.h5"
    result = tamis.repack(source, target, {"*": filters}, threads=2, min_size=0, larger=True)
    assert [each.path for each in result.datasets] == [f"/{name}" for name in FIXED]
    assert [path for path, _ in result.kept] == [f"/{name}" for name in VARIED]
    assert all(reason.startswith("expected values of a fixed size") for _, reason in result.kept)
    for each in result.datasets:
        assert (each.largest_error, each.bound, each.lossless_chunks) == (0.0, 0.0, 0)
    assert tamis.verify(source, target, bounds={"*": 0}).ok
    with h5py.File(target) as file:
        for name in FIXED:
            assert file[name].chunks is not None
            assert file[name].id.get_create_plist().get_nfilters() == filters.count("|") + 1
        assert file["named"].id.get_type().committed()
        assert file["holes"].fillvalue.tobytes() == np.array((7, b"none", (1, 2), True), RECORD).tobytes()
        assert file["holes"].id.get_num_chunks() == 1
    if filters.startswith(("shuffle", "deflate", "fletcher32")):
        for name in set(FIXED) - {"named"}:  # whose lzf h5diff has not
            tool("h5diff", source, target, f"/{name}")


def test_repack_of_records_makes_them_smaller_and_reads_back_by_h5py(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "b.h5", {"compound": "shuffle|deflate(4)", "text": "deflate"})
    assert all(each.ratio > 4 for each in result.datasets)
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["compound"][...].tobytes() == records().tobytes()
        assert file["compound"].dtype == RECORD


def test_repack_of_records_into_other_chunks_keeps_those_never_written(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.h5", {"holes": "shuffle|deflate"}, chunks={"holes": (5, 3)})
    with h5py.File(source) as old, h5py.File(tmp_path / "b.h5") as new:
        assert new["holes"].chunks == (5, 3)
        assert 0 < new["holes"].id.get_num_chunks() < 16
        assert new["holes"][...].tobytes() == old["holes"][...].tobytes()


def test_repack_again_copies_chunks_of_records_as_they_are(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.h5", {"*": "shuffle|deflate(4)"}, min_size=0, larger=True)
    preview = tamis.preview_repack(tmp_path / "b.h5", "c.h5", {"*": "shuffle|deflate(4)"}, min_size=0)
    again = {each.path.removeprefix("/"): each.action for each in preview.datasets}
    # A named type is not the same one in another file.
    assert again == dict.fromkeys(FIXED, "copy") | {"named": "store"} | dict.fromkeys(VARIED, "keep")
    result = tamis.repack(tmp_path / "b.h5", tmp_path / "c.h5", {"*": "shuffle|deflate(4)"}, min_size=0)
    assert {each.path for each in result.datasets if not each.copied} == {"/named"}
    assert tamis.verify(source, tmp_path / "c.h5", bounds={"*": 0}).ok


@pytest.mark.parametrize("filters", ["zfp(reversible=true)", "szip(nn,8)", "scaleoffset(decimal,2)"])
def test_repack_filter_of_numbers_for_records_refused_with_what_takes_them(
    filters: str, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        ParameterError, match=r"/compound: expected numbers, got values of the type compound: use filters of bytes"
    ):
        tamis.repack(source, tmp_path / "b.h5", {"compound": filters})
    assert not (tmp_path / "b.h5").exists()
