"""Wants as text and by name: what there is, what is refused, and where."""

from __future__ import annotations

import pytest

from tamis import ParameterError
from tamis.jobs.plan import PlanRequirement
from tamis.jobs.plan.requirements import KINDS, as_plan_requirement, parse_requirements, parse_size


def test_want_prints_what_it_reads() -> None:
    for text in ("abs=0.1", "abs=0.1,psnr=80.0", "digits=3,corr=0.99999", "bits=9", "lossless"):
        assert str(as_plan_requirement(text)) == text
        assert as_plan_requirement(str(as_plan_requirement(text))) == as_plan_requirement(text)
    assert as_plan_requirement({"abs": 0.1, "rmse": 1}) == as_plan_requirement("rmse=1,abs=0.1")
    assert as_plan_requirement(PlanRequirement()).is_lossless
    assert as_plan_requirement("sign,limits").is_lossless
    assert not as_plan_requirement("sign,std=0.1").is_lossless


def test_what_repack_is_to_prove_of_each_value() -> None:
    assert str(as_plan_requirement("abs=0.1,psnr=80,sign").required()) == "abs=0.1,sign"
    assert str(as_plan_requirement("std=0.1,range=0.5,digits=3").required(2.0)) == "abs=2.0,digits=3"
    assert as_plan_requirement("psnr=80").required() is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "kurtosis=3",
            "expected a requirement, one of abs, rel, .*limits, sign, zeros, lossless or recommended, got 'kurtosis'",
        ),
        ("sign=1", "sign takes no number"),
        ("abd=0.1", r"got 'abd' \(did you mean abs\?\)"),
        ("abs", "expected abs=VALUE in 'abs', got 'abs'"),
        ("abs=", "expected a number for abs in 'abs=', got ''"),
        ("abs=a", "expected a number for abs"),
        ("abs=0", "expected abs of more than 0, got abs=0"),
        ("abs=nan", "expected abs of more than 0"),
        ("abs=-1", "expected abs of more than 0"),
        ("digits=2.5", "expected digits of 1 to 15, got digits=2.5"),
        ("bits=53", "expected bits of 1 to 52"),
        ("dssim=1.1", "expected dssim of more than 0, at most 1"),
        ("abs=1,abs=2", "abs is given twice"),
        ("abs=1,lossless", "lossless cannot be combined"),
        ("", "got ''"),
        (0.1, "expected a requirement such as 'abs=0.1'"),
        ({"abs": "a"}, "expected abs of more than 0, got abs='a'"),
    ],
)
def test_wrong_want_is_refused_by_name(value: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        as_plan_requirement(value)


def test_relative_bound_is_the_tightest() -> None:
    assert as_plan_requirement("abs=1").relative is None
    assert as_plan_requirement("rel=0.01,digits=3,bits=3").relative == 0.005
    assert as_plan_requirement("bits=9").relative == 2.0**-10


def test_want_for_a_name_on_the_command_line() -> None:
    assert parse_requirements(["T*:abs=0.1"]) == [("T*", as_plan_requirement("abs=0.1"))]
    with pytest.raises(ParameterError, match=r"expected NAME:REQUIREMENT such as 'TS:abs=0\.1', got 'abs=0\.1'"):
        parse_requirements(["abs=0.1"])


def test_size_in_words() -> None:
    assert [parse_size(text) for text in ("16MB", "1.5 kB", "2GB", "7B")] == [16_000_000, 1500, 2 * 10**9, 7]
    for text in ("16", "MB", "1e3MB", "16 MiB", "-1MB"):
        with pytest.raises(ParameterError, match="expected a size such as 16MB"):
            parse_size(text)


def test_every_kind_says_what_it_means() -> None:
    assert all(kind.about for kind in KINDS.values())
