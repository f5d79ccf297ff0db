"""Stores of objects by their addresses, through obstore or fsspec. Every failure is a FileError without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tamis.errors import FileError, located
from tamis.library_lock import without_collection
from tamis.optional import optional
from tamis.remote.address import Address, without_outside
from tamis.remote.object_store import Entry, Objects, Part, Range

TIMEOUT_SECONDS = 60.0
"""Longest time for one request."""

_RETRIES = 8
_RETRY_SECONDS = 90.0
_RETRIED = (429, 500, 502, 503, 504)
"""How often and how long obstore asks again after which answers of a server."""


class RequestError(FileError):
    """A request that failed for good; `status` is that of HTTP, 0 if there was none."""

    status = 0


class NoRangesError(Exception):
    """Raised for a server that only returns whole objects."""


_first_process = lru_cache(maxsize=1)(os.getpid)
"""The process of the first request: the threads of obstore and fsspec do not exist in one that it forks."""


def check_not_forked(address: Address) -> None:
    """Raise FileError in a process that was forked after a request, where any request would wait forever."""
    if _first_process() != os.getpid():
        raise FileError(
            f"{address}: remote files cannot be read in a process that was forked after its parent read "
            'some: start processes by "spawn" or "forkserver" (multiprocessing.get_context)'
        ).at(path=address)


def objects_of(address: Address) -> tuple[Objects, str]:
    """Return the store of an address, and the key in it.

    Raises
    ------
    MissingFilterError
        If the package for such stores is not installed; names the extra.
    FileError
        If the address or its options are wrong.
    """
    check_not_forked(address)
    if address.store is not None:
        objects = _given(address)
        if isinstance(objects, FsspecObjects):
            return objects, str(objects.store._strip_protocol(address.url))  # some keep the protocol, as http
        key = address.url.split("://")[-1]
        return objects, key.lstrip("/") if isinstance(objects, ObstoreObjects) else key
    parts = urlsplit(address.url)
    root = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme.lower() == "memory":
        memory = _package("fsspec", "memory://", address).filesystem("memory")
        return FsspecObjects(memory), f"{parts.netloc}{unquote(parts.path)}"
    if parts.scheme.lower() in ("http", "https"):
        root += f"/?{parts.query}" if parts.query else ""
    _package("obstore", "addresses", address)
    key = address.url.partition("://")[2].partition("/")[2]
    try:
        objects = _opened(root, _frozen(without_outside(address.options)), _environment())
        return objects, unquote(parts.path).lstrip("/") if parts.scheme.lower().startswith("http") else key
    except Exception as error:  # obstore raises its own kinds, and TypeError for options
        if "Unable to recogni" in str(error):
            text = (
                f"{address}: tamis does not know {parts.scheme}:// addresses, only s3://, gs://, az://, http://, "
                "https://, memory://"
            )
            raise FileError(text).at(path=address) from None
        raise FileError(f"{address}: cannot be opened: {reason_of(error, address)}").at(path=address) from None


def _frozen(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((key, _frozen(item) if isinstance(item, Mapping) else item) for key, item in options.items()))


def _environment() -> tuple[tuple[str, str], ...]:
    """Return the variables that stores may read: others give another store."""
    return tuple(sorted(item for item in os.environ.items() if item[0].startswith(("AWS_", "AZURE_", "GOOGLE_"))))


@lru_cache(maxsize=32)
def _opened(root: str, options: tuple[tuple[str, Any], ...], environment: tuple[tuple[str, str], ...]) -> Objects:
    """Open a store once: its connections are kept."""
    from obstore.store import HTTPStore, from_url

    settings = {key: dict(item) if isinstance(item, tuple) else item for key, item in options}
    client = {"timeout": timedelta(seconds=TIMEOUT_SECONDS), **settings.pop("client_options", {})}
    retry = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)}
    retry |= settings.pop("retry_config", {})
    endpoints = [value for key, value in (*environment, *settings.items()) if re.search("endpoint|url", key.lower())]
    if any(str(url).startswith("http://") for url in (root, *endpoints)):
        client.setdefault("allow_http", True)
    opens = HTTPStore.from_url if root.startswith(("http://", "https://")) else from_url
    return ObstoreObjects(opens(root, client_options=client, retry_config=retry, **settings))


def _package(name: str, use: str, address: Address) -> Any:
    """Import a package; raise MissingFilterError that names the extra."""
    with located(str(address)):
        return optional(
            name, f"the package {name}, which is needed for {use}, is not installed: pip install 'tamis[remote]'"
        )


def _given(address: Address) -> Objects:
    """Return a store that the user gave."""
    store = address.store
    if hasattr(store, "get_many"):
        counting: Objects = store
        return counting
    if hasattr(store, "cat_file"):
        return FsspecObjects(store)
    if type(store).__module__.startswith("obstore"):
        return ObstoreObjects(store)
    raise FileError(f"{address}: expected a store of obstore or a file system of fsspec, got {store!r:.80}")


def reason_of(error: BaseException, address: Address) -> str:
    """Return why a request failed, in words without the URL, which may have secrets."""
    text = str(error)
    status = _status_of(text)
    if isinstance(error, FileNotFoundError) or status == 404:
        return "no such object"
    kind = type(error).__name__
    if status in (401, 403) or "PermissionDenied" in kind or "Unauthenticated" in kind:
        advice = "check the credentials, or read a public bucket without them (--anonymous, or skip_signature=True)"
        if urlsplit(address.url).query:
            advice = "the signed address may have expired: get a new one"
        answer = f" ({status})" if status else ""
        return f"access denied{answer}: {advice}"
    if status == 416:
        return "it has fewer bytes than expected: it changed, or the references to it are those of another file"
    if status:
        again = " again and again" if status in _RETRIED else ""
        return f"the server answered {status}{again}"
    if "Timeout" in text or "TimedOut" in text or isinstance(error, TimeoutError):
        return f"no answer in {TIMEOUT_SECONDS:g} seconds, again and again"
    first = re.sub(r"\S+://\S+", "the address", text.partition("\n")[0]).strip() or type(error).__name__
    return first[:200]


def _status_of(text: str) -> int:
    match = re.search(r"status code: (\d{3})", text)
    return int(match[1]) if match else 0


def failure(error: BaseException, address: Address, verb: str = "read") -> FileError:
    """Return the FileError of a request that failed; one that is a FileError already says why."""
    if isinstance(error, FileError):
        return error
    found = RequestError(f"{address}: cannot be {verb}: {reason_of(error, address)}").at(path=address)
    found.status = 404 if isinstance(error, FileNotFoundError) else _status_of(str(error))
    return found


class ObstoreObjects:
    """A store of obstore, which retries with backoff, and whose waiting takes no lock of Python."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.can_list = type(store).__name__ != "HTTPStore"
        self.reads_tails = type(store).__name__ != "AzureStore"

    def get(self, key: str, span: Range | None, version: str) -> Part:
        """Return a range of an object; see `Objects.get`."""
        import obstore

        options: dict[str, Any] = {}
        if span is not None:
            options["range"] = span if span[0] >= 0 else {"suffix": -span[0]}
        if version.startswith('"'):  # a weak ETag never matches; it is compared with that of the answer
            options["if_match"] = version
        try:
            answer = obstore.get(self.store, key, options=options)
        except obstore.exceptions.NotSupportedError as error:
            raise NoRangesError from error
        except obstore.exceptions.PreconditionError as error:
            raise ChangedError from error
        meta = answer.meta
        encoding = str(dict(answer.attributes).get("Content-Encoding", "identity"))
        if encoding.lower() not in ("", "identity"):
            raise EncodedError(encoding)
        data = answer.bytes()
        return Part(memoryview(data), int(meta["size"]), _version(meta))

    def get_many(self, key: str, spans: Sequence[Range]) -> list[bytes | memoryview]:
        """Return ranges of an object; see `Objects.get_many`."""
        import obstore

        starts, ends = zip(*spans, strict=True)
        return [memoryview(data) for data in obstore.get_ranges(self.store, key, starts=starts, ends=ends, coalesce=0)]

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        import obstore

        for batch in obstore.list(self.store, prefix.rstrip("/") or None):
            for item in batch:
                yield Entry(item["path"], int(item["size"]))

    def put(self, key: str, data: Any) -> None:
        """Write an object."""
        import obstore

        obstore.put(self.store, key, data if isinstance(data, bytes) else Path(data))

    def delete(self, key: str) -> None:
        """Remove an object."""
        import obstore

        obstore.delete(self.store, key)


class ChangedError(Exception):
    """Raised for an object that is not the one of before."""


class EncodedError(Exception):
    """Raised for an object that a proxy encoded, so that its ranges mean nothing."""


def _version(meta: Mapping[str, Any]) -> str:
    """Return what identifies the content of an object: its ETag, else the time of its last change."""
    if meta.get("e_tag"):
        return str(meta["e_tag"])
    changed = meta.get("last_modified")
    return changed.isoformat() if changed is not None and changed.timestamp() > 0 else ""


class FsspecObjects:
    """A file system of fsspec."""

    can_list = True
    reads_tails = False

    def __init__(self, filesystem: Any) -> None:
        self.store = filesystem

    def get(self, key: str, span: Range | None, version: str) -> Part:
        """Return a range of an object; see `Objects.get`. Its version is asked for once, and after each range."""
        with without_collection():
            info = self.store.info(key)
            size, found = int(info.get("size") or 0), _fsspec_version(info)
            if version and found != version:
                raise ChangedError
            if info.get("type") == "directory":
                raise IsADirectoryError(key)
            begin, end = (0, size) if span is None else span
            data = self.store.cat_file(key, start=begin, end=min(end, size)) if begin < size else b""
        return Part(data, size, found)

    def get_many(self, key: str, spans: Sequence[Range]) -> list[bytes | memoryview]:
        """Return ranges of an object; see `Objects.get_many`."""
        starts, ends = zip(*spans, strict=True)
        with without_collection():
            return list(self.store.cat_ranges([key] * len(spans), list(starts), list(ends), on_error="raise"))

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        with without_collection():
            found = self.store.find(prefix, detail=True)
        for key, info in found.items():
            yield Entry(key, int(info["size"]))

    def put(self, key: str, data: Any) -> None:
        """Write an object."""
        with without_collection():
            if isinstance(data, bytes | bytearray | memoryview):
                self.store.pipe_file(key, bytes(data))
            else:
                self.store.put_file(os.fspath(data), key)

    def delete(self, key: str) -> None:
        """Remove an object."""
        with without_collection():
            self.store.rm_file(key)


def _fsspec_version(info: Mapping[str, Any]) -> str:
    names = "ETag", "etag", "LastModified", "mtime", "created"
    return next((str(info[name]) for name in names if info.get(name)), "")
