"""The loosest rung that keeps what is wanted, and the measures of a sample against plain numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import Pipeline, cf, zfp
from tamis.formats import open_store
from tamis.jobs.plan import VariableToPlan, cost_of, loss_of, sample_of
from tamis.jobs.plan.measure import Facts, absolute_errors, facts_of, kept_bits, loosest, losses_of_modes, zfp_ladders
from tamis.jobs.plan.requirements import as_plan_requirement
from tamis.stores import values_nbytes_of

FACTS = Facts(low=-3.0, high=5.0, deviation=1.0, largest=5.0, scale=1.0, keepbits=None)


@pytest.mark.parametrize("kept", ["", "0", "9", "456789", "0123456789", "0289", "56 89", "89"])
def test_loosest_rung_and_the_next_one_keep_it(kept: str) -> None:
    asked: list[str] = []

    def keeps(rung: str) -> bool:
        asked.append(rung)
        return rung in kept

    found = loosest([*"0123456789"], keeps)
    assert len(asked) == len(set(asked))
    if not kept or kept == "0":
        assert found is None
    elif kept == "9":
        assert found == "9"
    else:
        assert found in kept
        assert found == "9" or str(int(found) + 1) in kept
        assert found == "0" or str(int(found) - 1) not in kept


def test_likely_rung_is_taken_if_it_keeps_what_is_wanted() -> None:
    asked: list[str] = []

    def keeps(rung: str) -> bool:
        asked.append(rung)
        return rung in "3456789"

    assert loosest([*"0123456789"], keeps, likely=3) == "3"
    assert asked == ["3"]
    assert loosest([*"0123456789"], keeps, likely=1) == "3"


def _texts(requirement: str) -> Iterator[list[str]]:
    return ([*map(str, rungs)] for rungs in zfp_ladders(as_plan_requirement(requirement), FACTS, 4))


def test_zfp_ladders_begin_at_the_bound_and_have_a_ladder_for_each_mode_without_one() -> None:
    (bounds,) = _texts("abs=0.1")
    assert bounds[:2] == ["zfp(bound=0.1)", "zfp(bound=0.05)"]
    assert next(_texts("range=0.5,abs=100"))[0] == "zfp(bound=4)"
    accuracies, precisions, rates = _texts("rmse=0.1")
    assert accuracies[:2] == ["zfp(accuracy=4)", "zfp(accuracy=2)"]
    assert (precisions[0], precisions[-1]) == ("zfp(precision=2)", "zfp(precision=31)")
    assert (rates[0], rates[-1]) == ("zfp(rate=2)", "zfp(rate=31)")
    assert next(_texts("dssim=0.9"))[0] == "zfp(accuracy=8)"
    assert not [*zfp_ladders(as_plan_requirement("abs=0.1,digits=3"), FACTS, 4)]
    assert [*zfp_ladders(as_plan_requirement("range=0.1"), FACTS._replace(high=-3.0), 4)] == [[]]


def test_absolute_errors_begin_at_the_bound_and_are_powers_of_two_without_one() -> None:
    assert [*absolute_errors(as_plan_requirement("abs=0.1"), FACTS)][:2] == [0.1, 0.05]
    assert next(absolute_errors(as_plan_requirement("std=0.5"), FACTS)) == 0.5
    assert next(absolute_errors(as_plan_requirement("rmse=0.1"), FACTS)) == 0.25
    assert not [*absolute_errors(as_plan_requirement("range=0.1"), FACTS._replace(high=-3.0))]


@pytest.mark.parametrize("bound", [0.3, 0.25, 1e-3, 40.0])
@pytest.mark.parametrize("largest", [5.0, 4.0, 7.999, 0.01])
def test_first_number_of_bits_keeps_an_absolute_bound(bound: float, largest: float) -> None:
    least = next(kept_bits(as_plan_requirement({"abs": bound}), FACTS._replace(largest=largest), 4))
    values = np.linspace(-largest, largest, 4001, dtype="f4")

    def error(bits: int) -> float:
        shift = 23 - bits
        half = np.uint32(1 << shift >> 1)
        rounded = (values.view("u4") + half & ~np.uint32((1 << shift) - 1)).view("f4")
        return float(np.abs(rounded.astype("f8") - values).max())

    assert error(least) <= bound
    assert least == 1 or error(least - 1) > bound / 2.01


def test_kept_bits_of_relative_requirements() -> None:
    assert next(kept_bits(as_plan_requirement("rel=0.001"), FACTS, 4)) == 9
    assert next(kept_bits(as_plan_requirement("bits=5"), FACTS, 4)) == 5
    assert next(kept_bits(as_plan_requirement("information=0.9"), FACTS._replace(keepbits=12), 4)) == 12
    assert next(kept_bits(as_plan_requirement("psnr=60"), FACTS, 8)) == 1
    assert not [*kept_bits(as_plan_requirement("rel=1e-8"), FACTS, 4)]


def write(path: Path, data: NDArray[Any], **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=data, **{"chunks": (2, 16, 16)} | options)
        file["v"].attrs["_FillValue"] = data.dtype.type(-999)
    return path


def field() -> NDArray[Any]:
    steps = np.random.default_rng(1).standard_normal((8, 40, 48))
    return (np.cumsum(np.cumsum(steps, 1), 2) / 10).astype("f4")


def test_loss_and_facts_of_a_whole_sample_are_those_of_the_array(tmp_path: Path) -> None:
    data = field()
    data[:, 3:9, 5:20] = -999
    requirement = as_plan_requirement("corr=0.5,dssim=0.5,information=0.9")
    with open_store(write(tmp_path / "a.h5", data)) as store:
        array = store.arrays["/v"]
        sample = sample_of([array], (2, 16, 16), 10**7)
        assert sample.nbytes == values_nbytes_of(array) == sum(piece.values.nbytes for piece in sample.tiles[0])
        variable = VariableToPlan("/v", requirement, [store], [array], (2, 16, 16), "exact")
        loss = loss_of(variable.plans(Pipeline.parse("bitround(keepbits=4)|shuffle|deflate(4)")), sample, requirement)
        facts = facts_of(sample, [array.meaning.missing], None, requirement)
    shift = np.uint32(1 << 18)
    after = np.where(data == -999, data, ((data.view("u4") + shift) & ~np.uint32((1 << 19) - 1)).view("f4"))
    valid = data != -999
    error = np.abs(after.astype("f8") - data)[valid]
    assert loss.tally.error == error.max()
    assert loss.tally.rmse == pytest.approx(math.sqrt((error**2).mean()))
    assert loss.moments.correlation == pytest.approx(np.corrcoef(data[valid], after[valid])[0, 1])
    assert (facts.low, facts.high) == (data[valid].min(), data[valid].max())
    assert facts.deviation == pytest.approx(float(data[valid].astype("f8").std()))
    assert facts.keepbits is not None


@pytest.mark.parametrize("mode", [zfp.Accuracy(8), zfp.Accuracy(0.125), zfp.Precision(2), zfp.Precision(9)])
def test_losses_of_modes_are_those_of_each(mode: Any, tmp_path: Path) -> None:
    modes, requirement = [zfp.Accuracy(2), mode, zfp.Precision(20)], as_plan_requirement("psnr=60")
    near = field()
    near[5, 5, 5] = -1001  # next to the fill value: errors do not tell which values would be missing
    for data in (field(), near):
        with open_store(write(tmp_path / "a.h5", data)) as store:
            array = store.arrays["/v"]
            sample = sample_of([array], (2, 16, 16), 10**7)
            variable = VariableToPlan("/v", requirement, [store], [array], (2, 16, 16), "exact")
            plans = variable.plans(Pipeline.parse(f"zfp({mode})|shuffle|deflate(4)"))
            losses, loss = losses_of_modes(plans, sample, modes), loss_of(plans, sample, requirement)
        if data is near:
            assert losses is None
        else:
            assert losses is not None
            assert losses[1].tally.error == loss.tally.error
            assert losses[1].tally.psnr == pytest.approx(loss.tally.psnr, rel=1e-12)


def test_packed_values_are_measured_in_units_of_the_variable(tmp_path: Path) -> None:
    data = np.arange(8 * 40 * 48, dtype="i4").reshape(8, 40, 48)
    requirement = as_plan_requirement("abs=0.5")
    with open_store(write(tmp_path / "a.h5", data)) as store:
        sample = sample_of([store.arrays["/v"]], (2, 16, 16), 10**7)
        packing = cf.Packing(-0.1, 5.0)
        facts = facts_of(sample, [store.arrays["/v"].meaning.missing], packing, requirement)
    assert (facts.low, facts.high) == pytest.approx((5.0 - 0.1 * data.max(), 5.0))
    assert facts.scale == 0.1
    assert next(kept_bits(requirement, facts, 4)) == 14 - 2 - 2  # 15,359 in stored values, with steps of 5 at most


def test_cost_of_a_part_has_the_true_ratio_in_its_range(tmp_path: Path) -> None:
    requirement = as_plan_requirement("lossless")
    with open_store(write(tmp_path / "a.h5", np.tile(field(), (8, 4, 4)), chunks=(1, 160, 192))) as store:
        array = store.arrays["/v"]
        whole = sample_of([array], (1, 160, 192), 10**8)
        part = whole.thinned(whole.nbytes // 8)
        plans = VariableToPlan("/v", requirement, [store], [array], (1, 160, 192), "exact").plans(
            Pipeline.parse("shuffle|deflate(4)")
        )
        expected, found = (cost_of(plans, each, lambda _: None) for each in (whole, part))
    assert part.nbytes < whole.nbytes / 4
    assert expected.low == expected.ratio == expected.high
    assert found.low < found.ratio < found.high
    assert found.ratio == pytest.approx(expected.ratio, rel=0.05)
    assert whole.thinned(whole.nbytes) is whole


def test_cost_counts_the_chunks_that_zfp_cannot_keep(tmp_path: Path) -> None:
    data = field()
    data[:4, 3:9, 5:12] = -999
    with open_store(write(tmp_path / "a.h5", data)) as store:
        array = store.arrays["/v"]
        sample = sample_of([array], (2, 16, 16), 10**7)
        fallbacks = {}
        for missing in ("exact", "mask"):
            plans = VariableToPlan("/v", as_plan_requirement("abs=1"), [store], [array], (2, 16, 16), missing).plans(  # type: ignore[arg-type]
                Pipeline.parse("zfp(bound=1.0)|shuffle|deflate(4)")
            )
            fallbacks[missing] = cost_of(plans, sample, lambda _: None).fallbacks
    chunk_count = 4 * 3 * 3
    assert fallbacks == {"exact": 2 / chunk_count, "mask": 0}


def test_sample_is_bounded_and_from_all_over_the_array(tmp_path: Path) -> None:
    data = np.arange(64 * 64 * 64, dtype="f4").reshape(64, 64, 64)
    with open_store(write(tmp_path / "a.h5", data, chunks=(4, 32, 64))) as store:
        array = store.arrays["/v"]
        sample = sample_of([array], (4, 32, 64), 10 * 4 * 32 * 64 * 4)
        assert len(sample.chunks[0]) == 10
        assert {piece.origin[0] // 32 for piece in sample.chunks[0]} == {0, 1}
        assert {piece.origin[1] for piece in sample.chunks[0]} == {0, 32}
        again = sample_of([array], (4, 32, 64), 10 * 4 * 32 * 64 * 4)
        assert [piece.origin for piece in again.chunks[0]] == [piece.origin for piece in sample.chunks[0]]
        for pieces in (*sample.chunks, *sample.tiles):
            for piece in pieces:
                np.testing.assert_array_equal(piece.values, data[piece.region])
        large = sample_of([array], (64, 64, 64), 1 << 17)
        assert large.nbytes <= 1 << 17
        assert not large.chunks[0][0].is_chunk
        fields = sample_of([array], (4, 32, 64), 1 << 20, fields=True)
        assert {piece.values.shape for piece in fields.tiles[0]} == {(4, 64, 64)}
