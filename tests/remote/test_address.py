"""Addresses in place of paths."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import tamis
from tamis import Address
from tamis.remote import is_address, located_path
from tamis.remote.address import absolute


def test_an_address_shows_neither_query_nor_password() -> None:
    address = Address("HTTPS://user:password@example.org/a/b.nc?signature=secret#part")
    assert str(address) == "https://example.org/a/b.nc"
    assert "secret" not in repr(address)
    assert "password" not in repr(address)
    assert address.name == "b.nc"
    assert address.url.endswith("signature=secret#part")


def test_an_address_pickles_with_its_options() -> None:
    address = Address("s3://bucket/a.nc", region="eu-west-1", skip_signature=True)
    copy = pickle.loads(pickle.dumps(address))
    assert copy == address
    assert copy.options == {"region": "eu-west-1", "skip_signature": True}


def test_an_object_in_a_folder_keeps_query_and_options() -> None:
    inner = Address("https://h/a.zarr?token=1", region="x") / "c/0"
    assert inner.url == "https://h/a.zarr/c/0?token=1"
    assert inner.options == {"region": "x"}


@pytest.mark.parametrize("text", ["s3://b/k", "https://h/x", "memory://x", "gs://b/k", "az://c/k"])
def test_addresses_are_recognized(text: str) -> None:
    assert is_address(text)
    assert absolute(text) == text


@pytest.mark.parametrize("text", ["a.nc", "/a/b.nc", "C:/a.nc", "file:///a.nc", "a://"[:1]])
def test_paths_are_no_addresses(text: str) -> None:
    assert not is_address(text)


def test_a_file_url_is_a_path() -> None:
    assert located_path("file:///a%20b.nc") == "/a b.nc"


def test_options_need_an_address(tmp_path: Path) -> None:
    with pytest.raises(tamis.ParameterError, match=r"storage options are only for addresses such as s3://bucket/a\.nc"):
        tamis.open(tmp_path / "a.nc", storage_options={"region": "x"})


@pytest.mark.parametrize(("url", "text"), [("a.nc", "expected an address"), (b"s3://b/k", "as text")])
def test_wrong_addresses_are_refused(url: object, text: str) -> None:
    with pytest.raises(tamis.ParameterError, match=text):
        Address(url)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["http:/host/x.nc", "https:/host/x.nc", "S3:/bucket/x.zarr"])
def test_an_address_with_one_slash_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme, rest = text.split(":/")
    with pytest.raises(tamis.FileError, match=f"an address has two slashes, and is no Path: {scheme}://{rest}"):
        tamis.open(text)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / text
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    with pytest.raises(tamis.FileError, match="empty"):  # a file of that name
        tamis.open(text)


def test_known_kinds_of_addresses_are_listed() -> None:
    with pytest.raises(tamis.FileError, match=r"does not know htp:// addresses, only .*https://, memory://"):
        tamis.open("htp://x/y.nc")
