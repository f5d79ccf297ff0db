"""Journals of runs, and what is found of them: whole, torn, changed, in use, and files that only look like it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.arrays.source import checksum_of
from tamis.safety import Transaction, find_leftovers
from tamis.safety.journal import CHECKSUM, HEAD, MAGIC, RECORD, Journal, JournalRecord, Leftover, Leftovers, RunKey
from tamis.safety.transaction import journal_of

RUN = RunKey({"nbytes": 7, "inode": 1 << 60}, {"/x": {"filters": "deflate(4)"}, "/y\udc80": {"filters": "zfp"}})
CHUNKS = [(place % 2, place, bytes([place]) * (10 + place)) for place in range(20)]
STEP = RECORD.size + CHECKSUM.size


def leave(target: Path) -> Path:
    """Write a temporary file with some chunks and its journal, as a run that is killed leaves them."""
    transaction = Transaction(target)
    journal = Journal(transaction.journal, RUN)
    offset = 0
    with transaction.path.open("wb") as stream:
        for dataset, place, data in CHUNKS:
            stream.write(data)
            counts = place, 0, place % 2
            journal.add(JournalRecord(dataset, place, offset, len(data), 3, *counts, checksum_of(data)), 1 << 20)
            offset += len(data)
    journal.close()
    return transaction.path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "a.h5"


@pytest.fixture
def left(target: Path) -> Path:
    return leave(target)


def only(found: Leftovers) -> Leftover:
    assert (found.busy, found.unknown) == ((), ())
    (leftover,) = found.dead
    return leftover


def chunks_of(leftover: Leftover) -> Iterator[tuple[int, int, bytes | None]]:
    for number, path in enumerate(RUN.datasets):
        for record in leftover.records(path):
            assert (record.mask, record.missing, record.missed) == (3, record.chunk, record.chunk % 2)
            yield number, record.chunk, leftover.read(record.place)


def test_journal_of_a_dead_run_gives_its_run_and_chunks(target: Path, left: Path) -> None:
    leftover = only(find_leftovers(target))
    assert leftover.path == left
    assert leftover.run == RUN
    assert leftover.total() == 20
    assert [leftover.count(path) for path in (*RUN.datasets, "/z")] == [10, 10, 0]
    assert sorted(chunks_of(leftover), key=lambda each: each[1]) == CHUNKS
    leftover.remove()
    leftover.close()
    assert os.listdir(target.parent) == []


def test_journal_that_was_cut_gives_the_records_before(target: Path, left: Path) -> None:
    whole = journal_of(left).read_bytes()
    begin = len(whole) - 20 * STEP
    for length in range(len(whole)):
        journal_of(left).write_bytes(whole[:length])
        leftover = only(find_leftovers(target))
        assert leftover.run == (RUN if length >= begin else None)
        assert leftover.total() == max(length - begin, 0) // STEP
        leftover.close()


def test_journal_with_any_bit_changed_gives_right_chunks_or_none(target: Path, left: Path) -> None:
    """A record after the changed one is not believed."""
    whole = journal_of(left).read_bytes()
    begin = len(whole) - 20 * STEP
    right = {(dataset, place, data) for dataset, place, data in CHUNKS}
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        journal_of(left).write_bytes(changed)
        found = find_leftovers(target)
        if at < len(MAGIC):
            assert found == ((), (), (left,))
            continue
        leftover = only(found)
        assert leftover.total() == max(at - begin, 0) // STEP
        assert set(chunks_of(leftover)) <= right
        leftover.close()


def test_temporary_with_any_bit_changed_gives_right_chunks_or_none(target: Path, left: Path) -> None:
    whole = left.read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        left.write_bytes(changed)
        leftover = only(find_leftovers(target))
        given = [each for each in chunks_of(leftover) if each[2] is not None]
        assert len(given) == 19
        assert all(each in CHUNKS for each in given)
        leftover.close()


def test_journal_of_random_bytes_is_never_believed(target: Path, left: Path) -> None:
    source = random.Random(0)
    for _ in range(200):
        journal_of(left).write_bytes(MAGIC + source.randbytes(source.randrange(400)))
        leftover = only(find_leftovers(target))
        assert (leftover.run, leftover.total()) == (None, 0)
        leftover.close()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"source": 1, "datasets": []}',
        b'{"source": {}, "datasets": 1}',
        b'{"source": {}, "datasets": [["x"]]}',
        b'{"source": {}, "datasets": [["x", []]]}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_journal_with_a_text_of_another_kind_is_of_no_run(text: bytes, target: Path, left: Path) -> None:
    journal_of(left).write_bytes(MAGIC + HEAD.pack(len(text), zlib.crc32(text)) + text + bytes(500))
    leftover = only(find_leftovers(target))
    assert (leftover.run, leftover.total()) == (None, 0)
    leftover.close()


def test_journal_with_huge_lengths_reads_nothing(target: Path, left: Path) -> None:
    """Lengths that are right by their checksum: nothing of that size may be allocated."""
    text = RUN.to_bytes()
    head = MAGIC + HEAD.pack(len(text), zlib.crc32(text)) + text
    records = [
        RECORD.pack(0, 0, 0, 1 << 62, 0, 0, 0, 0, 0),
        RECORD.pack(0, 1, (1 << 64) - 1, (1 << 64) - 1, 0, 0, 0, 0, 0),
        RECORD.pack(0, 2, 1 << 40, 10, 0, 0, 0, 0, 0),
        RECORD.pack((1 << 32) - 1, (1 << 64) - 1, 0, 0, (1 << 32) - 1, (1 << 64) - 1, (1 << 64) - 1, 255, 0),
    ]
    noted = b"".join(each + CHECKSUM.pack(zlib.crc32(each, zlib.crc32(text))) for each in records)
    journal_of(left).write_bytes(head + noted)
    os.truncate(left, 1 << 40)  # sparse
    os.truncate(journal_of(left), 1 << 40)
    leftover = only(find_leftovers(target))
    assert leftover.total() == 4
    assert [leftover.read(each.place) for each in leftover.records("/x")] == [None] * 3
    leftover.close()
    journal_of(left).write_bytes(MAGIC + HEAD.pack((1 << 32) - 1, 0))
    os.truncate(journal_of(left), 1 << 40)
    leftover = only(find_leftovers(target))
    assert leftover.run is None
    leftover.close()


LIVE = """
import sys
from pathlib import Path
from tamis.safety.journal import Journal, RunKey
journal = Journal(Path(sys.argv[1]), RunKey({}, {}))
print("there", flush=True)
sys.stdin.read()
"""


def test_journal_of_a_live_run_is_busy_until_that_is_killed(target: Path) -> None:
    transaction = Transaction(target)
    command = [sys.executable, "-c", LIVE, transaction.journal]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as live:
        assert live.stdout is not None
        live.stdout.readline()
        transaction.path.write_bytes(b"x")
        assert find_leftovers(target) == ((), (transaction.path,), ())
        live.kill()
    leftover = only(find_leftovers(target))
    assert leftover.run == RunKey({}, {})
    # Whoever found it first has it.
    assert find_leftovers(target).busy == (transaction.path,)
    leftover.close()


def test_journal_taken_away_while_it_is_made_is_made_again(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run may find it empty and remove it, before it is locked."""
    import fcntl

    lock, path = fcntl.flock, Transaction(target).journal
    calls: list[int] = []

    def flock(handle: int, flags: int) -> None:
        calls.append(handle)
        if len(calls) == 1:
            path.unlink()
        if len(calls) == 2:
            path.unlink()
            raise BlockingIOError
        lock(handle, flags)

    monkeypatch.setattr(fcntl, "flock", flock)
    journal = Journal(path, RUN)
    assert len(calls) == 3
    assert path.read_bytes().startswith(MAGIC)
    journal.close()


def test_journal_without_locks_is_not_written(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could tell that its run lives."""
    import fcntl

    def flock(handle: int, flags: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    journal = Journal(Transaction(target).journal, RUN)
    journal.add(JournalRecord(0, 0, 0, 1, 0, 0, 0, 0, checksum_of(b"x")), 1 << 30)
    journal.close()
    assert os.listdir(target.parent) == []


def test_files_that_only_look_like_leftovers_are_not_touched(target: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".a.h5.00000000.tamis"
    folder.mkdir()
    (tmp_path / ".a.h5.00000000.tamis-journal").mkdir()
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    (tmp_path / ".a.h5.11111111.tamis").symlink_to(precious)
    (tmp_path / ".a.h5.11111111.tamis-journal").symlink_to(precious)
    (tmp_path / ".a.h5.22222222.tamis").write_bytes(b"mine")
    (tmp_path / ".a.h5.22222222.tamis-journal").write_bytes(b"mine")
    os.mkfifo(tmp_path / ".a.h5.33333333.tamis-journal")
    for name in (".a.h5.4444444.tamis", ".b.h5.55555555.tamis", "a.h5.66666666.tamis", ".a.h5.7777777X.tamis-journal"):
        (tmp_path / name).write_bytes(b"other")
    before = sorted(os.listdir(tmp_path))
    found = find_leftovers(target)
    assert (found.dead, found.busy) == ((), ())
    assert [each.name[6:14] for each in found.unknown] == ["00000000", "11111111", "22222222"]
    assert sorted(os.listdir(tmp_path)) == before


def test_leftover_whose_temporary_is_a_link_is_not_followed_nor_removed(target: Path, left: Path) -> None:
    precious = target.parent / "precious"
    left.rename(precious)
    left.symlink_to(precious)
    leftovers = find_leftovers(target)
    assert leftovers == Leftovers(dead=(), busy=(), unknown=(left,))
    assert left.is_symlink()
    assert precious.exists()


def test_leftover_removed_only_where_it_is_still_the_same_file(target: Path, left: Path) -> None:
    leftover = only(find_leftovers(target))
    left.unlink()
    left.write_bytes(b"another one's")
    leftover.remove()
    leftover.close()
    assert left.read_bytes() == b"another one's"
    assert not journal_of(left).exists()


def test_leftovers_of_a_target_with_the_longest_name_are_found(tmp_path: Path) -> None:
    target = tmp_path / ("ü" * 127)
    leave(target)
    leftover = only(find_leftovers(target))
    assert leftover.total() == 20
    leftover.close()


def test_journal_on_a_full_disk_ends_and_keeps_what_it_has(target: Path) -> None:
    import resource
    import signal

    transaction = Transaction(target)
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = Journal(transaction.journal, RUN)
    size = transaction.journal.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 3 * STEP + 5, before[1]))
    try:
        for dataset, place, data in CHUNKS:
            journal.add(JournalRecord(dataset, place, 0, len(data), 0, 0, 0, 0, checksum_of(data)), 1 << 30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    journal.close()
    transaction.path.write_bytes(b"")
    leftover = only(find_leftovers(target))
    assert leftover.total() == 3
    leftover.close()


@pytest.mark.parametrize("length", [1, 2, 511, 512, 513, 4096, 10_000])
@pytest.mark.parametrize("byte", [0, 255, 7])
def test_checksum_of_pages_that_a_disk_lost_is_another(length: int, byte: int) -> None:
    data = bytes([byte]) * length
    for lost in {0, 255} - {byte}:
        for begin in range(0, length, 512):
            page = bytes([lost]) * len(data[begin : begin + 512])
            assert checksum_of(data[:begin] + page + data[begin + 512 :]) != checksum_of(data)
