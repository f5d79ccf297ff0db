"""Addresses of files that are elsewhere, such as ``s3://bucket/a.nc``: texts that go wherever a path goes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from posixpath import basename
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from tamis.errors import FileError, ParameterError
from tamis.remote.object_store import LocalObjects

_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789+.-")  # a pattern takes 0.5 ms to compile
_LOCAL = "file"

ALLOW_OUTSIDE = "allow_outside"
"""Option of references: whether they may lead to files outside the folder of their document."""


class Address(str):
    """The address of a file or folder that is elsewhere; use it in place of a path. It pickles with its options.

    As text it has neither a query nor a password, so it can be shown. Messages name it.

    Parameters
    ----------
    url
        A URL such as ``s3://bucket/a.nc``, ``gs://``, ``az://``, ``https://`` or ``memory://``, or, with `store`, the
        path in the store.
    store
        A store of obstore, or a file system of fsspec, that has the file; None for that of the URL.
    options
        Settings and credentials as `obstore.store.from_url` takes them, such as ``region``, ``endpoint`` or
        ``skip_signature=True`` for a public bucket. Those that are not given come from the environment, as
        ``AWS_ACCESS_KEY_ID``. ``allow_outside=True`` is for references in a file of this machine, whose path is given
        as `url`: they may lead to files outside its folder.

    Examples
    --------
    >>> tamis.Address("https://example.org/a.nc?signature=secret")
    Address('https://example.org/a.nc')
    """

    url: str
    store: Any
    options: Mapping[str, Any]

    def __new__(cls, url: str | os.PathLike[str], store: Any = None, **options: Any) -> Address:  # noqa: D102
        if isinstance(url, Address):
            store = store or url.store
            options = {**url.options, **options}
            url = url.url
        url = os.fspath(url)
        if not isinstance(url, str):
            raise ParameterError(f"expected an address as text, got {url!r:.80}")
        if store is None and not is_address(url) and options.get(ALLOW_OUTSIDE) and os.path.isfile(url):
            url = os.path.abspath(url)
            store = LocalObjects()
        if store is None and not is_address(url):
            raise ParameterError(f"expected an address such as s3://bucket/a.nc, got {url!r:.80}")
        address = super().__new__(cls, _shown(url, store))
        address.url = url
        address.store = store
        address.options = options
        return address

    @property
    def name(self) -> str:
        """Last part of the path."""
        return basename(self.rstrip("/"))

    def __truediv__(self, name: str) -> Address:
        """Return the address of an object in this folder."""
        before, mark, query = self.url.partition("?")
        return Address(f"{before.rstrip('/')}/{name.lstrip('/')}{mark}{query}", self.store, **self.options)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Address, self.url, self.store, **self.options), ()

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


def is_address(path: object) -> bool:
    """Return whether a path is an address of a file that is elsewhere, not a local path."""
    if isinstance(path, Address):
        return True
    if not isinstance(path, str):
        return False
    scheme, mark, _ = path.lower().partition("://")
    is_scheme = len(scheme) > 1 and scheme[0].isalpha() and _SIGNS.issuperset(scheme)
    return bool(mark) and is_scheme and scheme != _LOCAL


_SCHEMES = ("http", "https", "s3", "gs", "az", "memory")


def _check_slashes(path: Any) -> None:
    """Raise FileError for an address with one slash, as `pathlib` makes of two, unless there is such a file."""
    text = os.fsdecode(path)
    scheme, mark, rest = text.partition(":/")
    if mark and scheme.lower() in _SCHEMES and not os.path.exists(text):
        raise FileError(f"{text}: No such file: an address has two slashes, and is no Path: {scheme}://{rest}").at(
            path=text
        )


def located_path(path: Any, options: Mapping[str, Any] | None = None) -> str:
    """Return a path as text: an `Address` if it is elsewhere, else the path itself.

    A file of fsspec (``fs.open(…)``, ``fsspec.open(…)``) leads to its file system.
    """
    filesystem, place = getattr(path, "fs", None), getattr(path, "path", None)
    if filesystem is not None and isinstance(place, str):
        return Address(place, filesystem, **options or {})
    if isinstance(path, Address) and not options:
        return path
    if isinstance(path, str) and path.lower().startswith(f"{_LOCAL}://"):
        path = unquote(urlsplit(path).path)
    if is_address(path):
        return Address(path, **options or {})
    _check_slashes(path)
    if options and _may_be_references(path):
        return Address(os.path.abspath(path), LocalObjects(), **options)
    if options and ALLOW_OUTSIDE in options:
        raise ParameterError(
            f"{os.fsdecode(path)}: allow_outside is only for references in a file that ends with .json"
        )
    if options:
        raise ParameterError(f"{os.fsdecode(path)}: storage options are only for addresses such as s3://bucket/a.nc")
    return os.fsdecode(path)


def with_outside(options: Mapping[str, Any] | None, *, is_allowed: bool) -> Mapping[str, Any]:
    """Return options, with that of references that may lead outside their folder."""
    known = dict(options or {})
    if is_allowed:
        known[ALLOW_OUTSIDE] = True
    return known


def without_outside(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are the store's own: all but that of references."""
    return {name: value for name, value in options.items() if name != ALLOW_OUTSIDE}


def _may_be_references(path: Any) -> bool:
    """Return whether a file of this machine may be references, whose targets are elsewhere."""
    return os.fsdecode(path).endswith(".json") and os.path.isfile(path)


def place_of(path: Any) -> Path | Address:
    """Return a path, or an address."""
    text = located_path(path)
    return text if isinstance(text, Address) else Path(text)


def absolute(path: str | os.PathLike[str]) -> str:
    """Return an absolute path; an address is one."""
    text = located_path(path)
    return text if isinstance(text, Address) else os.path.abspath(text)


def _shown(url: str, store: Any) -> str:
    """Return a URL without user, password, query and fragment, or the path in a store with a word for that."""
    if not is_address(url):
        kind = _kind(store)
        return url if kind == _LOCAL else f"{kind}://{url.lstrip('/')}"
    parts: SplitResult = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _kind(store: Any) -> str:
    """Return a word for a store that the user gave."""
    protocol = getattr(store, "protocol", None)
    if isinstance(protocol, (tuple, list)):
        protocol = protocol[0]
    if isinstance(protocol, str):
        return protocol
    return type(store).__name__.removesuffix("Store").lower() or "store"
