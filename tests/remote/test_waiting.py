"""A server that hangs is not waited for without a word."""

from __future__ import annotations

import socket
import threading
import time
import warnings

import pytest

import tamis
from tamis import Address
from tamis.remote import waiting


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at requests often."""
    monkeypatch.setattr(waiting, "NOTED_SECONDS", 0.2)
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.05)


def test_a_request_without_an_answer_is_told_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a.nc"
        options = {"client_options": {"timeout": "1s"}, "retry_config": {"max_retries": 0}}
        with (
            pytest.warns(UserWarning, match=r"a\.nc: no answer for 0\.2 seconds") as told,
            pytest.raises(tamis.FileError, match=r"a\.nc: cannot be read"),
        ):
            tamis.open(url, storage_options=options)
    assert 1 <= len([item for item in told if "no answer" in str(item.message)]) <= 2  # of two requests


def test_short_requests_are_not_told_and_the_thread_ends() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            with waiting.watch(Address("http://host/a.nc")):
                time.sleep(0.05)
    for _ in range(200):
        if not any(thread.name == "tamis-waiting" for thread in threading.enumerate()):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the thread goes on")
