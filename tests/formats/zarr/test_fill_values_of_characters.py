"""Fill values of bytes of a fixed length in Zarr 2: in base64 by zarr-python, as they are by netCDF-C."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import netCDF4
import numpy as np
import pytest
import zarr
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tamis
from tamis.formats.zarr.stored import hierarchy
from tamis.formats.zarr.stored.hierarchy import in_usual_spelling

FORMS: list[tuple[str, dict[str, Any]]] = [("a.nc", {}), ("a.h5", {}), ("a.zarr", {}), ("b.zarr", {"zarr_format": 2})]


def _store(path: Path, fill: bytes | None, nbytes: int = 4) -> None:
    """Write an array of which only the first chunk is stored."""
    group = zarr.open_group(path, mode="w", zarr_format=2)
    about: dict[str, Any] = {"shape": (6,), "chunks": (3,), "dtype": f"S{nbytes}", "fill_value": fill}
    array = group.create_array("s", **about, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    array[:3] = [b"o", b"tw", b"tri"]


def _values(path: Path) -> list[bytes]:
    with tamis.open(path) as file:
        values = file["s"][:]
    return [text.encode("latin-1") if isinstance(text, str) else bytes(text) for text in values.tolist()]


CASES = [(form, fill) for form in FORMS for fill in (b"ab", b"abc", b"", b"\xff\0\x01")]
CASES.remove((FORMS[0], b"\xff\0\x01"))  # netCDF's texts are UTF-8


@pytest.mark.parametrize(("form", "fill"), CASES)
def test_chunks_that_are_not_stored_have_the_fill_value(
    tmp_path: Path, form: tuple[str, dict[str, Any]], fill: bytes
) -> None:
    (name, options), source = form, tmp_path / "source.zarr"
    target = tmp_path / name
    _store(source, fill)
    expected = zarr.open_group(source, mode="r")["s"][:].tolist()
    assert expected[-1] == fill
    assert _values(source) == expected
    result = tamis.repack(source, target, {}, **options)
    assert _values(target) == expected
    assert tamis.verify(source, target).ok
    assert not [note for note in result.notes if "consolidated" in note or "spelling" in note]
    if name.endswith(".zarr"):
        group = zarr.open_consolidated(target)
        assert group["s"][:].tolist() == expected


def test_a_rewritten_array_of_zarr_2_keeps_its_fill_value(tmp_path: Path) -> None:
    source, target = tmp_path / "source.zarr", tmp_path / "target.zarr"
    _store(source, b"ab")
    tamis.repack(source, target, {"s": "deflate(4)"}, zarr_format=2, min_size=1, larger=True)
    assert json.loads((target / "s/.zarray").read_text())["fill_value"] == "YWI="
    assert zarr.open_group(target, mode="r")["s"][:].tolist() == [b"o", b"tw", b"tri", *[b"ab"] * 3]


@st.composite
def _fills(draw: st.DrawFn) -> tuple[int, bytes]:
    nbytes = draw(st.integers(1, 16))
    letters = st.one_of(st.binary(max_size=nbytes), st.text("abYWI=+/\0 ", max_size=nbytes).map(str.encode))
    return nbytes, draw(letters).rstrip(b"\0")


@pytest.mark.check
@given(_fills())
@example((4, b"YWI="))
@example((8, b"YWJjZA=="))
@settings(max_examples=60, deadline=None)
def test_any_fill_value_of_zarr_python_is_read_as_it_reads_it(about: tuple[int, bytes]) -> None:
    nbytes, fill = about
    with TemporaryDirectory() as folder:
        source = Path(folder) / "a.zarr"
        _store(source, fill, nbytes)
        assert _values(source) == zarr.open_group(source, mode="r")["s"][:].tolist()
        document = json.loads((source / "s/.zarray").read_text())
    assert in_usual_spelling(document) == document


@given(st.integers(1, 16), st.text("abYWI=+/ none", max_size=16))
@settings(max_examples=200, deadline=None)
def test_any_text_in_an_array_of_netcdf_is_the_fill_value(nbytes: int, text: str) -> None:
    fill = text[:nbytes]
    document = {"zarr_format": 2, "dtype": f"|S{nbytes}", "fill_value": fill}
    for content, attributes in (({**document, "_NCZARR_ARRAY": {}}, {}), (document, {"_nczarr_array": {}})):
        usual = in_usual_spelling(content, attributes)["fill_value"]
        dtype = zarr.dtype.NullTerminatedBytes(length=nbytes)
        assert dtype.from_json_scalar(usual, zarr_format=2).rstrip(b"\0") == fill.encode()


@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
def test_netcdf_characters_are_read_as_it_writes_them(tmp_path: Path, mode: str) -> None:
    source = tmp_path / "source"
    with netCDF4.Dataset(f"file://{source}#mode={mode},file", "w") as file:
        file.createDimension("x", 2)
        file.createVariable("s", "S1", ("x",), fill_value=b"Y")
    tamis.repack(source, tmp_path / "a.h5", {})
    assert _values(source) == _values(tmp_path / "a.h5") == [b"Y", b"Y"]


def test_the_proof_sees_a_fill_value_that_is_read_in_the_wrong_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """zarr-python opens the sample of the proof by the stored metadata, not by what tamis makes of them."""
    _store(tmp_path / "a.zarr", b"ab")
    usual = in_usual_spelling

    def twice(content: object, attributes: object = None) -> object:
        known = usual(content, attributes)
        if isinstance(known, dict) and known.get("fill_value") == "YWI=":
            return known | {"fill_value": "WVdJPQ=="}
        return known

    monkeypatch.setattr(hierarchy, "in_usual_spelling", twice)
    with pytest.raises(tamis.BoundError, match="/s: values differ"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "a.h5", {})
    assert not (tmp_path / "a.h5").exists()


def test_base64_and_text_have_their_own_spelling() -> None:
    for fill in ("", "YWI=", "AAAA"):
        document = {"zarr_format": 2, "dtype": "|S4", "fill_value": fill}
        assert in_usual_spelling(document) == document
    for fill in (" ", "ab", "a b", "é"):
        changed = in_usual_spelling({"zarr_format": 2, "dtype": "|S4", "fill_value": fill})["fill_value"]
        assert np.frombuffer(base64.b64decode(changed), "S4")[0] == fill.encode("latin-1")
