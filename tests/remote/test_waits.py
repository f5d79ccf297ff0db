"""U106: a command that waits for a server which does not answer ends by Ctrl-C, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

TAMIS = Path(sys.executable).with_name("tamis")
SAMPLE = Path(__file__).parents[2] / "examples" / "data" / "cam_ts.nc"
SECONDS = 100
"""Less than a request takes to fail by itself, with its repetitions."""


class Silent(ThreadingHTTPServer):
    """A server that answers some requests for ranges of the sample, and then no more."""

    daemon_threads = True

    def __init__(self, answers: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.is_silent = threading.Event()
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/cam_ts.nc"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Silent

    def do_GET(self) -> None:
        self.server.answers -= 1
        if self.server.answers < 0:
            self.server.is_silent.set()
            self.server.ended.wait()
            return
        data = SAMPLE.read_bytes()
        begin, _, end = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = data[int(begin) : int(end) + 1] if begin else data[-int(end) :]
        first = int(begin) if begin else len(data) - len(part)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def silent(answers: int) -> Iterator[Silent]:
    with Silent(answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()


def end_by(number: signal.Signals, server: Silent, *words: str | Path) -> tuple[int, str]:
    """Run a command until the server is silent, send a signal, and return the exit code and what was printed."""
    with subprocess.Popen([TAMIS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert server.is_silent.wait(SECONDS), "the command ended before it had to wait"
            process.send_signal(number)
            _, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert "Traceback" not in errors
    return process.returncode, errors


@pytest.mark.matrix
@pytest.mark.parametrize("answers", [0, 1])
@pytest.mark.parametrize("command", ["inspect", "plan", "verify", "export"])
def test_u106_command_that_waits_for_a_server_ends_by_ctrl_c(tmp_path: Path, command: str, answers: int) -> None:
    pytest.importorskip("obstore")
    out = tmp_path / "out"
    out.mkdir()
    more = {"verify": [SAMPLE], "export": ["--to", "kerchunk", "-o", out / "refs.json"]}.get(command, [])
    with silent(answers) as server:
        code, errors = end_by(signal.SIGINT, server, command, server.url, *more)
    assert code == 128 + signal.SIGINT
    assert "tamis: interrupted" in errors
    assert os.listdir(out) == []


@pytest.mark.matrix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("answers", [0, 2, 4])
def test_u106_repack_that_waits_for_a_server_leaves_nothing(
    tmp_path: Path, answers: int, number: signal.Signals
) -> None:
    pytest.importorskip("obstore")
    with silent(answers) as server:
        code, _ = end_by(number, server, "repack", server.url, tmp_path / "out.nc", "-f", "TS:zfp(accuracy=0.1)")
    assert code == 128 + number
    assert os.listdir(tmp_path) == []
