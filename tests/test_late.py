"""Frozen dataclasses that are compiled on first use: nothing that a user of dataclasses knows tells the difference."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import ClassVar

import pytest

from tamis import late
from tamis.late import frozen


@frozen
class Point:
    """A class that others inherit."""

    x: int
    name: str = "p"
    KIND: ClassVar[int] = 3


@frozen
class Marked(Point):  # noqa: PLW1641 - the dataclass adds it
    """A class with a new default, a list that does not count, and an equality of its own."""

    name: str = "m"
    marks: list[int] = dataclasses.field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", self.x + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Marked) and other.x == self.x


def test_members_are_those_of_a_dataclass() -> None:
    assert repr(Marked(1)) == "Marked(x=2, name='m', marks=[])"
    assert Marked(1) == Marked(1, "other") != Marked(2)
    assert Point(1) == Point(1) != Point(2)
    assert hash(Point(1)) == hash(Point(1))
    assert hash(Marked(1, marks=[1])) == hash(Marked(1, marks=[2]))
    assert [each.name for each in dataclasses.fields(Marked)] == ["x", "name", "marks"]
    assert dataclasses.replace(Point(1), x=5) == Point(5)
    assert dataclasses.asdict(Point(1)) == {"x": 1, "name": "p"}
    assert list(inspect.signature(Marked).parameters) == ["x", "name", "marks"]
    match Point(4):
        case Point(x, name):
            assert (x, name) == (4, "p")
    assert Point.KIND == 3
    assert not hasattr(Point(1), "__dict__")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_values_are_copied_and_pickled() -> None:
    value = Marked(1, marks=[7])
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (other, other.marks, repr(other)) == (value, [7], repr(value))


def test_change_is_refused() -> None:
    point = Point(1)
    for name in ("x", "unknown"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(point, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x  # type: ignore[misc]
    assert point == Point(1)


def test_plain_dataclass_inherits_a_late_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class Named(Point):
        count: int = 0

    assert repr(Named(1, count=2)).endswith("Named(x=1, name='p', count=2)")


USES: dict[str, Callable[[type], object]] = {
    "call": lambda fresh: fresh(),
    "fields": lambda fresh: dataclasses.fields(fresh)[0].name,
    "hash": lambda fresh: fresh.__hash__,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_class_is_compiled_once_whoever_comes_first(use: Callable[[type], object]) -> None:
    @frozen
    class Fresh:
        x: int = 1

    barrier = Barrier(8)

    def first(_: int) -> object:
        barrier.wait()
        return use(Fresh)

    assert "__init__" in late_members(Fresh)
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(first, range(8))]
    assert answers == answers[:1] * 8
    assert Fresh(2).x == 2
    assert "__init__" not in late_members(Fresh)
    assert Fresh(2) == Fresh(2)
    assert repr(Fresh(2)).endswith("Fresh(x=2)")
    assert not late_members(Fresh)
    assert dataclasses.fields(Fresh)[0].default == 1
    assert Fresh.__dataclass_params__.eq  # type: ignore[attr-defined]


def test_call_compiles_nothing_else() -> None:
    @frozen
    class Fresh:
        x: int = 1

    assert Fresh(3).x == 3
    assert {"__eq__", "__hash__", "__repr__", "__dataclass_params__"} <= late_members(Fresh)
    assert {Fresh(3): 1}[Fresh(3)] == 1
    assert {"__repr__", "__dataclass_params__", "__match_args__"} <= late_members(Fresh)
    assert repr(Fresh(3)).endswith("Fresh(x=3)")
    assert dataclasses.replace(Fresh(3), x=4) == Fresh(4)


def test_class_works_after_an_interrupt_while_it_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    @frozen
    class Fresh:
        x: int = 1

    def interrupted(**options: bool) -> Callable[[type], type]:
        def compiled(cls: type) -> type:
            dataclasses.dataclass(frozen=True)(cls)
            raise KeyboardInterrupt

        return compiled

    monkeypatch.setattr(late, "dataclass", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Fresh()
    monkeypatch.undo()
    assert repr(Fresh(2)).endswith("Fresh(x=2)")


def late_members(cls: type) -> set[str]:
    return {name for name, value in vars(cls).items() if type(value).__name__ == "_Late"}


def test_import_compiles_no_class_of_filters() -> None:
    code = "import tamis.filters.standard as module, test_late; print(len(test_late.late_members(module.Deflate)))"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout) >= 7
