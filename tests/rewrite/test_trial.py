"""Parts of a sample encoded with several tolerances: the ladder tells what encoding each of them does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import Pipeline
from tamis.meaning import NONE_MISSING, Missing
from tamis.meaning.missing import Flags
from tamis.rewrite import ArrayPlan, make_chunk
from tamis.rewrite import tolerance as module
from tamis.rewrite.plan import Checks, Recode
from tamis.rewrite.steps import FillStep
from tamis.rewrite.tolerance import Trial, provisional
from tamis.rewrite.values import Padding

CHUNK = (4, 9, 10)
TOLERANCES = [2.0**exponent for exponent in range(-5, 4)]
FILL = Missing((np.float32(1e20),))


def field(roughness: float = 0.01) -> NDArray[np.float32]:
    axes = np.meshgrid(*(np.linspace(0, 3, extent) for extent in CHUNK), indexing="ij")
    noise = np.random.default_rng(5).normal(size=CHUNK)
    return (np.sin(sum(axes)) * 30 + roughness * noise).astype("f4")


def plan(text: str, missing: Missing = NONE_MISSING, flags: Flags | None = None, **options: Any) -> Recode:
    steps = () if flags is None else (FillStep(flags),)
    pipeline, checks = provisional(Pipeline.parse(text)), Checks(missing=missing)
    return Recode("/x", pipeline, np.dtype("f4"), CHUNK, steps=steps, checks=checks, **options)


def outcomes(plan: ArrayPlan, values: NDArray[Any], tolerances: list[float]) -> list[tuple[int, int]]:
    part = tuple(map(slice, values.shape))
    trial = Trial(plan, [(part, values), (part, values * np.float32(0.5))])
    return [(trial.missed(tolerance), trial.nbytes(tolerance)) for tolerance in tolerances]


def climbs(monkeypatch: pytest.MonkeyPatch, plan: ArrayPlan, values: NDArray[Any]) -> bool:
    """Compare what the ladder tells with what encoding tells; return whether the parts were not encoded."""
    encoded: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(module, "make_chunk", lambda *given: encoded.append(given) or make_chunk(*given))
        found = outcomes(plan, values, TOLERANCES)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_climbed", lambda plan, values: None)
        assert outcomes(plan, values, TOLERANCES) == found
    assert {missed for missed, _ in found} >= {0, 2}, "some tolerances keep the bound, others do not"
    return not encoded


@pytest.mark.parametrize("roughness", [0.0, 0.01, 3.0])
@pytest.mark.parametrize("tail", ["", "|shuffle|deflate(4)", "|shuffle|deflate(4)|fletcher32"])
def test_the_ladder_has_the_bytes_and_misses_of_each_tolerance(
    monkeypatch: pytest.MonkeyPatch, tail: str, roughness: float
) -> None:
    values = field(roughness)
    assert climbs(monkeypatch, plan(f"zfp(bound=0.1){tail}"), values)
    assert climbs(monkeypatch, plan(f"zfp(bound=0.1){tail}"), values[:3, :, :7]), "a part at the edge of the array"


def test_filled_gaps_are_measured_together(monkeypatch: pytest.MonkeyPatch) -> None:
    values = field()
    values[1:, 3:6, 2:] = np.nan
    with_flags = plan("zfp(bound=0.1)|shuffle", missing=FILL, flags=Flags.of([np.float32(1e20)], np.dtype("f4")))
    assert climbs(monkeypatch, with_flags, values)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("zfp(bound=0.1)|deflate(4)", {}),  # applied to the stream
        ("zfp(bound=0.1)|shuffle!", {}),
        ("zfp(bound=0.1)|shuffle", {"missing": Missing((), np.float32(-30.05))}),  # a limit within reach
        ("zfp(bound=0.1)|shuffle", {"missing": Missing((np.float32(30.05),))}),
    ],
)
def test_what_depends_on_more_than_the_error_is_encoded(
    monkeypatch: pytest.MonkeyPatch, text: str, options: dict[str, Any]
) -> None:
    assert not climbs(monkeypatch, plan(text, **options), field())


def test_missing_values_and_padding_that_is_read_are_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    values = field()
    growing = plan("zfp(bound=0.1)|shuffle", padding=Padding((True, False, False), np.float32(5), exact=False))
    assert climbs(monkeypatch, growing, values)
    assert not climbs(monkeypatch, growing, values[:2])
    values[2, 2, 2] = np.nan
    exact = plan("zfp(bound=0.1)|shuffle")
    assert outcomes(exact, values, [0.125])[0][0] == 2, "NaN is not lost"
