"""An HTTP server for ranges of files, with latency, faults and counters: for tests and benchmarks of remote files."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

_GOOGLE = "<Key>{key}</Key><Size>{size}</Size><LastModified>2026-11-26T08:00:00Z</LastModified>"
_AZURE = (
    "<Name>{key}</Name><Properties><Last-Modified>Thu, 26 Nov 2026 08:00:00 GMT</Last-Modified>"
    "<Content-Length>{size}</Content-Length><Content-Type>a/b</Content-Type><Etag>e</Etag></Properties>"
)


@dataclass
class Faults:
    """What goes wrong, and how often; each share is one of all GET requests."""

    unavailable: float = 0.0  # 503, as a busy store answers
    reset: float = 0.0  # The connection is closed before an answer
    truncated: float = 0.0  # The connection is closed in the middle of the body
    slow: float = 0.0  # Seconds between the two halves of a body
    status: int = 0  # The status of every answer, such as 403
    no_ranges: bool = False  # Ranges are ignored: 200 with the whole object
    no_head: bool = False  # HEAD is refused, as by signed addresses
    encoding: str = ""  # A content encoding, which a proxy adds
    wrong_range: bool = False  # Another range than asked for is returned, of the same length
    short: bool = False  # The header claims one byte less, and so many are sent
    weak_etag: bool = False  # ETags are weak ones, which If-Match never matches
    no_etag: bool = False  # Objects have neither ETag nor time
    ignores_match: bool = False  # If-Match is ignored


@dataclass
class Server:
    """A running server of a folder."""

    folder: Path
    latency: float = 0.0  # Seconds before each answer
    faults: Faults = field(default_factory=Faults)
    port: int = 0
    requests: int = 0
    nbytes: int = 0
    log: list[tuple[str, str, int, int]] = field(default_factory=list)  # Method, path, first and end of the range
    at_once: int = 0  # Largest number of requests that waited together
    in_rounds: bool = False  # Whether requests are answered in rounds: those that come until the client waits, together
    rounds: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    waiting: int = 0
    _round: asyncio.Task[None] | None = None

    def url(self, name: str) -> str:
        """Return the address of a file."""
        return f"http://127.0.0.1:{self.port}/{name}"

    def reset(self) -> None:
        """Set all counters to zero."""
        self.requests = self.nbytes = self.at_once = self.rounds = 0
        self.log.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        ends = OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError
        with suppress(*ends):
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").rstrip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                method, target, _ = first.split(" ", 2)
                self.waiting += 1
                self.at_once = max(self.at_once, self.waiting)
                try:
                    if self.latency:
                        await asyncio.sleep(self.latency)
                    if self.in_rounds:
                        await self._end_of_round()
                    parts = urlsplit(target)
                    path, query = unquote(parts.path), dict(parse_qsl(parts.query))
                    if "list" in (query.get("comp"), *(name.partition("-")[0] for name in query)):
                        kept = self._list(writer, path, query)
                    else:
                        kept = await self._answer(writer, method, path, headers)
                finally:
                    self.waiting -= 1
                if not kept:
                    break
        with suppress(OSError):
            writer.close()

    async def _end_of_round(self) -> None:
        """Wait until no thread of the client, which is in this process, can make another request of this round."""
        if self._round is None or self._round.done():
            self.rounds += 1
            self._round = asyncio.create_task(until_all_wait())
        await self._round

    async def _answer(self, writer: asyncio.StreamWriter, method: str, path: str, headers: dict[str, str]) -> bool:
        """Answer a request; return whether the connection stays open."""
        faults = self.faults
        self.requests += 1
        file = self.folder / path.lstrip("/")
        if faults.status or (faults.no_head and method == "HEAD"):
            return self._send(writer, faults.status or 403, {}, b"refused", method)
        if not file.is_file():
            return self._send(writer, 404, {}, b"", method)
        data = file.read_bytes() if file.stat().st_size < 1 << 20 else None
        size, status = file.stat().st_size, 200
        state = f"{size}-{file.stat().st_mtime_ns}"
        etag = f'"{hashlib.md5(state.encode(), usedforsecurity=False).hexdigest()}"'
        etag = f"W/{etag}" if faults.weak_etag else etag
        fields = {"Accept-Ranges": "bytes"}
        if not faults.no_etag:
            fields |= {"ETag": etag, "Last-Modified": "Thu, 26 Nov 2026 08:00:00 GMT"}
        if faults.encoding:
            fields["Content-Encoding"] = faults.encoding
        if "if-match" in headers and (headers["if-match"] != etag or faults.weak_etag) and not faults.ignores_match:
            return self._send(writer, 412, {}, b"", method)
        begin, end = 0, size
        if "range" in headers and not faults.no_ranges:
            low, _, high = headers["range"].removeprefix("bytes=").partition("-")
            begin = int(low) if low else max(size - int(high), 0)
            end = min(int(high) + 1, size) if low and high else size
            if begin >= size:
                return self._send(writer, 416, {"Content-Range": f"bytes */{size}"}, b"", method)
            if faults.wrong_range:
                begin, end = max(begin - 1, 0), max(begin - 1, 0) + end - begin
            status, fields["Content-Range"] = 206, f"bytes {begin}-{end - 1}/{size}"
        self.log.append((method, path, begin, end))
        if method == "HEAD":
            fields["Content-Length"] = str(size)
            return self._send(writer, status, fields, b"", method)
        chance = self.chance.random()
        if chance < faults.reset:
            return False
        if (chance := chance - faults.reset) < faults.unavailable:
            return self._send(writer, 503, {"Retry-After": "0"}, b"busy", method)
        chance -= faults.unavailable
        if data is None:
            with file.open("rb") as stream:
                stream.seek(begin)
                body = stream.read(end - begin)
        else:
            body = data[begin:end]
        body = body[:-1] if faults.short else body
        self.nbytes += len(body)
        fields["Content-Length"] = str(len(body))
        if chance < faults.truncated:
            self._send(writer, status, fields, body[: len(body) // 2], method)
            await writer.drain()
            return False
        if faults.slow:
            self._send(writer, status, fields, body[: len(body) // 2], method)
            await writer.drain()
            await asyncio.sleep(faults.slow)
            writer.write(body[len(body) // 2 :])
        else:
            self._send(writer, status, fields, body, method)
        await writer.drain()
        return True

    def _list(self, writer: asyncio.StreamWriter, path: str, query: dict[str, str]) -> bool:
        """List a bucket, which is a folder: in Azure's XML, or in that of S3 and Google."""
        self.requests += 1
        root, rows = self.folder / path.strip("/"), []
        one, entry = ("Blob", _AZURE) if "comp" in query else ("Contents", _GOOGLE)
        for file in sorted(item for item in root.rglob("*") if item.is_file()):
            key = file.relative_to(root).as_posix()
            if key.startswith(query.get("prefix", "")):
                rows.append(f"<{one}>{entry.format(key=key, size=file.stat().st_size)}</{one}>")
        body = "".join(rows)
        text = f"<EnumerationResults><Blobs>{body}</Blobs><NextMarker/></EnumerationResults>"
        text = text if one == "Blob" else f"<ListBucketResult>{body}</ListBucketResult>"
        return self._send(writer, 200, {"Content-Type": "application/xml"}, text.encode(), "GET")

    def _send(
        self, writer: asyncio.StreamWriter, status: int, fields: dict[str, str], body: bytes, method: str
    ) -> bool:
        fields.setdefault("Content-Length", str(len(body)))
        lines = [f"HTTP/1.1 {status} Answer", *itertools.starmap("{}: {}".format, fields.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if method == "HEAD" else body))
        return True


async def until_all_wait() -> None:
    """Return when every other thread of this process waits, whatever time that takes on a machine with other work."""
    quiet = 0
    while quiet < 5:
        await asyncio.sleep(0.001)  # reads what came, and lets threads run that wait for the interpreter
        quiet = 0 if is_another_thread_at_work() else quiet + 1


def is_another_thread_at_work() -> bool:
    """Return whether a thread of this process but this one runs, or could run."""
    own = str(threading.get_native_id())
    for name in os.listdir("/proc/self/task"):
        with suppress(FileNotFoundError):  # the thread has ended
            state = Path("/proc/self/task", name, "stat").read_text().rpartition(")")[2].split()[0]
            if name != own and state != "S":
                return True
    return False


@contextmanager
def range_server(folder: Path, **options: object) -> Iterator[Server]:
    """Run a server of a folder in a thread of its own."""
    server = Server(folder, **options)  # type: ignore[arg-type]
    loop = asyncio.new_event_loop()
    started = threading.Event()
    finish: asyncio.Event | None = None

    async def run() -> None:
        nonlocal finish
        finish = asyncio.Event()
        running = await asyncio.start_server(server.serve, "127.0.0.1", server.port)
        server.port = running.sockets[0].getsockname()[1]
        started.set()
        await finish.wait()
        running.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # connections that clients keep open
            task.cancel()
        await asyncio.sleep(0)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    started.wait()
    try:
        yield server
    finally:
        if finish is not None:
            loop.call_soon_threadsafe(finish.set)
        thread.join(10)
