"""U55: Ctrl-C keeps the progress of a run with --resume, whenever the signal comes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis.jobs.repack import resuming
from tamis.rewrite import resumed_chunks as history
from tamis.safety import disk, find_leftovers, journal, transaction

RECIPE = {"*": "shuffle|deflate(1)"}
CHUNKS = 8
FILES = {module.__file__ for module in (disk, history, journal, resuming, transaction)}


class Interrupts:
    """Raise KeyboardInterrupt before a bytecode of the modules that keep progress, as Python does for a signal.

    Attributes
    ----------
    count
        Number of bytecodes so far.
    recorded
        Number of chunks that were recorded when it was raised.
    """

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers
        self.count = self.recorded = 0

    def __enter__(self) -> Interrupts:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in FILES:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._opcode

    def _opcode(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        if event == "opcode":
            self.count += 1
            if self.count in self._numbers:
                if isinstance(owner := frame.f_locals.get("self"), journal.Journal) and hasattr(owner, "_state"):
                    self.recorded = owner._state.chunk_count
                raise KeyboardInterrupt
        return self._opcode


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(55).normal(size=(CHUNKS, 64, 256)).astype("f4")
        file.create_dataset("x", data=values, chunks=(1, 64, 256))
    return path


def run(source: Path, target: Path, *numbers: int) -> Interrupts:
    with Interrupts(*numbers) as interrupts:
        tamis.repack(source, target, RECIPE, resume=True, threads=1)
    return interrupts


def saved(target: Path) -> int:
    """Return how many chunks a later run can take over."""
    leftovers = find_leftovers(target)
    for leftover in leftovers.dead:
        leftover.close()
    return sum(leftover.total() for leftover in leftovers.dead)


def steps_of_writing(source: Path, target: Path) -> range:
    """Return the numbers of the bytecodes from the first record to the target's own name."""
    for _ in range(2):  # the first run also fills caches
        total = run(source, target).count
        target.unlink()
    first = next(number for number in range(100, total, 100) if is_recorded(source, target, number))
    return range(first, total)


def is_recorded(source: Path, target: Path, number: int) -> bool:
    with pytest.raises(KeyboardInterrupt):
        run(source, target, number)
    count = saved(target)
    clean(target)
    return count > 0


def clean(target: Path) -> None:
    for path in target.parent.iterdir():
        if path.name != "a.h5":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.check
def test_u55_progress_is_kept_at_whatever_step_the_interrupt_comes(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    steps = steps_of_writing(source, target)
    most = 0
    for number in steps[:: max(1, len(steps) // 150)]:
        interrupts = Interrupts(number)
        with pytest.raises(KeyboardInterrupt), interrupts:
            tamis.repack(source, target, RECIPE, resume=True, threads=1)
        if not target.exists():
            most = max(most, interrupts.recorded, 1)
            assert saved(target) >= max(interrupts.recorded, 1), number
        clean(target)
    assert most == CHUNKS


def test_u55_second_interrupt_keeps_progress_too(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    steps = steps_of_writing(source, target)
    middle = steps[len(steps) // 2]
    for later in range(1, 120, 3):
        with pytest.raises(KeyboardInterrupt):
            run(source, target, middle, middle + later)
        assert saved(target) or target.exists(), later
        clean(target)


def test_u55_interrupted_write_of_the_journal_can_be_continued(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, write, calls = tmp_path / "b.h5", os.pwrite, []

    def interrupted(handle: int, data: bytes, offset: int) -> int:
        calls.append(len(data))
        if len(calls) == 5:
            write(handle, data[: len(data) // 2], offset)
            raise KeyboardInterrupt
        return write(handle, data, offset)

    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tamis.repack(source, target, RECIPE, resume=True)
    monkeypatch.undo()
    count = saved(target)
    assert count == 4  # the first call writes what describes the run
    (dataset,) = tamis.repack(source, target, RECIPE, resume=True).datasets
    assert dataset.reused_chunks == count
