"""Pipelines of every filter that tamis knows, with every flag, for the round trips of the notations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tamis import ParameterError, UnknownFilter, Zfp
from tamis.filters import Filter, Parameter, Stage, by_id

WORDS = st.integers(0, (1 << 32) - 1)


def values_of(each: Parameter) -> st.SearchStrategy[Any]:
    if each.choices:
        return st.sampled_from(each.choices)
    return st.floats(each.low, each.high) if each.real else st.integers(int(each.low), int(each.high))


@st.composite
def filters_of(draw: st.DrawFn, kind: type[Filter]) -> Filter:
    if kind is Zfp:
        positive = st.floats(1e-300, 1e300)
        return draw(
            st.one_of(
                st.floats(0.125, 4096).map(lambda rate: Zfp(rate=rate)),
                st.integers(1, 64).map(lambda precision: Zfp(precision=precision)),
                positive.map(lambda accuracy: Zfp(accuracy=accuracy)),
                st.integers(-1074, 1000).map(lambda minexp: Zfp(minbits=1, maxbits=4096, maxprec=60, minexp=minexp)),
                st.just(Zfp(reversible=True)),
            )
        )
    given = {name: draw(values_of(each)) for name, each in kind.parameters().items()}
    try:
        made = kind(**given)
    except ParameterError:
        assume(False)
    # Some parameters mean nothing beside others, and are not in the words for HDF5.
    return kind.from_values(made.requested)


@st.composite
def flagged(draw: st.DrawFn) -> Stage:
    known = by_id()
    kind = draw(st.sampled_from([*known.values(), None]))
    if kind is None:
        number = draw(st.integers(256, 65535).filter(lambda number: number not in known))
        made: Filter = UnknownFilter(number, tuple(draw(st.lists(WORDS, max_size=22))))
    else:
        made = draw(filters_of(kind))
    # Mostly the usual flag: most notations have no other.
    return Stage(made, made.optional ^ (draw(st.integers(0, 9)) == 0))


@pytest.fixture(scope="session")
def chains() -> st.SearchStrategy[list[Stage]]:
    """Up to eight filters, unknown ones among them, in any order."""
    return st.lists(flagged(), max_size=8)


@pytest.fixture(scope="session")
def names() -> st.SearchStrategy[str]:
    """Names that every notation can say somehow."""
    return st.text(st.characters(codec="utf-8", exclude_characters="/:,\n\0", exclude_categories=["C"]), min_size=1)
