"""Requirements as text and by word: what there is, what is refused, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError
from tamis.accuracy import Requirement
from tamis.accuracy.requirement import VOCABULARY, as_requirement

_WORDS = st.fixed_dictionaries(
    {},
    optional={
        **{
            name: st.floats(max(word.low, 1e-30), min(word.high, 1e30))
            if word.real
            else st.integers(int(word.low), int(word.high))
            for name, word in VOCABULARY.numbers.items()
        },
        **dict.fromkeys(VOCABULARY.flags, st.booleans()),
    },
).filter(lambda words: any(value is not False for value in words.values()))


@given(words=_WORDS)
def test_text_of_any_requirement_is_read_back(words: dict[str, float | bool]) -> None:
    requirement = as_requirement(words)
    assert Requirement.parse(str(requirement)) == requirement == as_requirement(requirement)
    assert requirement.given == {name: value for name, value in words.items() if value is not False}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("ab=0.1", r"expected a requirement, one of abs, rel, .*sign or zeros, got 'ab' \(did you mean abs\?\)"),
        ("abs", "expected abs=VALUE in 'abs', got 'abs'"),
        ("abs=a", "expected a number for abs in 'abs=a', got 'a'"),
        ("abs=0", "expected abs of more than 0, got abs=0"),
        ("rel=2", "expected rel of more than 0, at most 1, got rel=2"),
        ("sign=1", "sign takes no number, got 'sign=1' in 'sign=1'"),
        ("abs=1,sign,sign", "sign is given twice"),
        ("", "expected a requirement, one of abs, .*got ''"),
        ("lossless", "got 'lossless'"),
        ({}, "expected a requirement such as 'abs=0.1', got none"),
        ({"sign": False}, "expected a requirement such as 'abs=0.1', got none"),
        ({"sign": 1}, "expected True or False for sign, got sign=1"),
        ({"digits": 2.5}, "expected digits of 1 to 15"),
        (0.1, "expected a requirement such as 'abs=0.1' or .*, got 0.1"),
    ],
)
def test_wrong_requirement_is_refused_by_word(value: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        as_requirement(value)


def test_requirement_for_each_value_and_for_the_whole_dataset() -> None:
    requirement = Requirement.parse("digits=3, bits=3,corr=0.99999,rmse=1,zeros")
    assert requirement.relative == 0.005
    assert requirement.measures == {"rmse": 1.0, "corr": 0.99999}
    assert Requirement(abs=0.1).relative is None
