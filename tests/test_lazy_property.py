"""Properties that are computed once, without a lock."""

from __future__ import annotations

import threading

from tamis.lazy_property import lazy_property


class Owner:
    def __init__(self) -> None:
        self.count = 0
        self.meeting: threading.Barrier | None = None

    @lazy_property
    def value(self) -> object:
        """What is computed."""
        self.count += 1
        if self.meeting is not None:
            self.meeting.wait()
        return object()


def test_lazy_property_asked_twice_computed_once() -> None:
    owner = Owner()
    assert owner.value is owner.value
    assert owner.count == 1
    assert Owner().value is not owner.value


def test_lazy_property_of_the_class_has_its_docstring() -> None:
    assert Owner.value.__doc__ == "What is computed."


def test_lazy_property_value_in_dict_taken_and_dropped() -> None:
    owner = Owner()
    vars(owner)["value"] = 7
    assert owner.value == 7
    del vars(owner)["value"]
    assert owner.value != 7


def test_lazy_property_two_threads_at_once_both_compute_and_get_the_same() -> None:
    owner, found = Owner(), list[object]()
    owner.meeting = threading.Barrier(2, timeout=30)  # with a lock, the second thread would not come
    threads = [threading.Thread(target=lambda: found.append(owner.value)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert owner.count == 2
    assert found[0] is found[1] is owner.value
