"""What is said of chunk shapes: only what is so, with a shape that is better."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Fletcher32, Pipeline, UnknownFilter, Zfp
from tamis.advice import Chunking, Note
from tamis.advice.chunk_shapes import outside
from tamis.arrays import zfp_padding
from tamis.filters import ChunkType, Stage, StoredZfp

CHECKED = "zfp(accuracy=0.1)|fletcher32"


def chunking(
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    filters: str | Pipeline = CHECKED,
    *,
    dtype: str = "f4",
    growing: tuple[bool, ...] = (),
    masks: dict[int, int] | None = None,
    **more: Any,
) -> Chunking:
    pipeline = filters if isinstance(filters, Pipeline) else Pipeline.parse(filters)
    grows = growing or (False,) * len(shape)
    return Chunking(shape, grows, ChunkType(np.dtype(dtype), chunk), pipeline, masks or {}, **more)


def notes(*arguments: object, **keywords: object) -> dict[str, str]:
    return {each.code: each.text for each in chunking(*arguments, **keywords).notes}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("filters", "shape", "chunk"),
    [
        ("none", (1000, 1000), (3, 3)),  # without filters nothing is said
        (CHECKED, (64, 192, 288), (4, 96, 144)),
        (CHECKED, (64, 64, 64, 64), (16, 16, 16, 16)),
        ("shuffle|deflate(4)", (30, 192, 288), (1, 192, 288)),
        ("shuffle|deflate(4)", (192,), (192,)),
        (CHECKED, (2, 192, 288), (1, 192, 288)),  # an axis of 2 gives ZFP nothing
    ],
    ids=str,
)
def test_judge_chunks_that_are_well_says_nothing(filters: str, shape: tuple[int, ...], chunk: tuple[int, ...]) -> None:
    assert chunking(shape, chunk, filters).notes == ()


@pytest.mark.parametrize(
    ("shape", "lost"),
    [
        ((4, 8, 12), 0.0),
        ((1, 192, 288), 0.0),
        ((1, 1), 0.0),
        ((10, 10), 1 - 100 / 144),
        ((2, 96, 144), 0.5),
        ((5,), 1 - 5 / 8),
        ((1, 3, 1, 5), 1 - 15 / 32),
    ],
    ids=str,
)
def test_zfp_padding_counts_whole_blocks_of_axes_longer_than_1(shape: tuple[int, ...], lost: float) -> None:
    assert zfp_padding(shape) == pytest.approx(lost)


def test_zfp_padding_is_what_rate_mode_stores_more() -> None:
    """Every block takes the same bits, padding or not: the fraction is one of real bytes."""
    filter_ = Pipeline([Zfp(rate=16)])
    data, _ = filter_.encode(np.zeros((10, 10), "f4"))
    assert 1 - 100 * 2 / len(data) == pytest.approx(zfp_padding((10, 10)))


@pytest.mark.parametrize(
    ("shape", "chunk", "growing", "said"),
    [
        (
            (80, 80),
            (10, 10),
            (),
            "31 % of what it encodes for a chunk of 10x10 is padding; chunks of 8x8 have none, which saves 31 %",
        ),
        ((64, 96, 96), (2, 96, 96), (), "50 % of what it encodes for a chunk of 2x96x96 is padding; chunks of 4x96x96"),
        # The axis is no longer: a chunk for each gives fields without padding.
        (
            (3, 512, 512),
            (3, 512, 512),
            (),
            "25 % of what it encodes for a chunk of 3x512x512 is padding; chunks of 1x512",
        ),
        ((8, 96), (4, 45), (), "6.2 % of what it encodes for a chunk of 4x45 is padding; chunks of 4x48 have none"),
        ((1000, 6), (100, 5), (), "38 % of what it encodes for a chunk of 100x5 is padding; chunks of 100x4 have none"),
        (
            (3, 96),
            (2, 96),
            (True, False),
            "50 % of what it encodes for a chunk of 2x96 is padding; chunks of 4x96 have",
        ),
        (
            (64, 64, 6),
            (6, 8, 6),
            (),
            "44 % of what it encodes for a chunk of 6x8x6 is padding; chunks of 8x8x6 have 25 %, which saves 27 %",
        ),
    ],
    ids=str,
)
def test_judge_padding_gives_fraction_and_better_chunks(
    shape: tuple[int, ...], chunk: tuple[int, ...], growing: tuple[bool, ...], said: str
) -> None:
    assert said in notes(shape, chunk, growing=growing)["zfp-padding"]


def test_judge_padding_that_cannot_be_helped_or_hardly_is_says_nothing() -> None:
    assert "zfp-padding" not in notes((181, 360), (181, 360))  # the array itself ends there
    assert "zfp-padding" not in notes((3,), (3,))  # a chunk of one value is none that ZFP takes
    assert "zfp-padding" not in notes((4000, 4000), (1999, 2000))
    assert "zfp-padding" not in notes((80, 80), (10, 10), "shuffle|deflate(4)")
    assert "zfp-padding" not in notes((8, 90), (4, 45))  # chunks of 48 reach as far beyond the edge


def test_better_for_zfp_saves_what_rate_mode_stores_less() -> None:
    """The bytes of all chunks before and after, the ones at the edges included."""
    shape, chunk, rate = (30, 45), (7, 13), Pipeline.parse("zfp(rate=16)")

    def stored(steps: tuple[int, ...]) -> tuple[int, int]:
        data, _ = rate.encode(np.zeros(steps, "f4"))
        count = math.prod(-(-extent // step) for extent, step in zip(shape, steps, strict=True))
        return count * len(data), count

    nbytes, count = stored(chunk)
    better = chunking(shape, chunk, rate, masks={0: count}, stored_nbytes=nbytes).better_for_zfp
    assert better is not None
    assert better.chunks == (8, 12)
    assert better.padding == 0
    assert better.saved_nbytes == nbytes - stored(better.chunks)[0]
    assert better.saved == pytest.approx(1 - stored(better.chunks)[0] / nbytes)


def test_better_for_zfp_bytes_known_in_rate_mode_alone() -> None:
    for filters, masks in ((CHECKED, {0: 4}), ("zfp(rate=8)|shuffle", {0: 3, 1: 1})):
        better = chunking((80, 80), (10, 10), filters, masks=masks, stored_nbytes=1000).better_for_zfp
        assert better is not None
        assert better.saved_nbytes is None
    assert chunking((80, 80), (10, 10), "shuffle").better_for_zfp is None
    assert chunking((20, 20), (8, 8)).better_for_zfp is None


def test_judge_unit_axis_names_it() -> None:
    said = notes((30, 192, 288), (1, 192, 288))["zfp-unit-axes"]
    assert "chunks of 1x192x288 as 2-D fields" in said
    assert "along axis 0 (of extent 30)" in said
    assert "zfp-unit-axes" not in notes((8, 8, 8, 8, 8), (1, 8, 8, 8, 8))  # there are four others


def test_judge_more_than_four_axes_says_what_to_use() -> None:
    stored = Pipeline([Stage(Zfp(accuracy=0.1), optional=True, stored=Zfp(accuracy=0.1).requested)])
    said = notes((4,) * 5, (2,) * 5, stored, masks={1: 32})["unused"]
    assert "zfp is in the pipeline but was skipped for every chunk: expected a chunk with 1 to 4 axes" in said
    assert "use (1, 2, 2, 2, 2)" in said


def test_judge_filter_of_no_chunk_named_once() -> None:
    found = notes((100,), (10,), "shuffle|deflate(4)", masks={2: 10})
    assert found == {"unused": "deflate is in the pipeline but was skipped for every chunk"}
    assert "unused" not in notes((100,), (10,), "shuffle|deflate(4)", masks={2: 9, 0: 1})
    assert "unused" not in notes((100,), (10,), "shuffle|deflate(4)", masks={})


def test_judge_zfp_that_no_chunk_went_through_gets_no_advice_for_it() -> None:
    assert set(notes((800, 800), (10, 10), "zfp(rate=8)|shuffle", masks={1: 6400})) == {"unused", "tiny-chunks"}


def test_judge_values_after_bytes_called_wrong() -> None:
    stages = [Stage(each, optional=True, stored=()) for each in Pipeline.parse("shuffle").filters]
    wrong = Pipeline([*stages, Stage(UnknownFilter(400), optional=True, stored=()), Stage(Zfp(rate=8), True, (1,))])
    said = notes((64, 64), (8, 8), wrong)["order"]
    assert said.startswith("shuffle and filter [400] before zfp, which needs unfiltered values")
    assert "rewrite the dataset with zfp first" in said


STORED = Zfp(accuracy=0.1).stored(ChunkType(np.dtype("f4"), (64, 64)))
# As a machine of the other byte order stores them: the header of ZFP is in its order, the versions before it are not.
SWAPPED = (STORED[0], *(int.from_bytes(word.to_bytes(4, "little"), "big") for word in STORED[1:]))


def zfp_stage(zfp: Zfp, stored: tuple[int, ...]) -> Pipeline:
    return Pipeline([Stage(zfp, True, stored), Stage(Fletcher32(), False, ())])


def test_judge_zfp_over_values_of_another_byte_order_lost_its_bound() -> None:
    native, other = np.dtype("f4").str, np.dtype("f4").newbyteorder().str
    accuracy = zfp_stage(Zfp(accuracy=0.0625), STORED)
    said = notes((64, 64), (64, 64), accuracy, dtype=other)["byte-order"]
    assert "and misread them, and their error has no bound; rewrite the source" in said
    assert notes((64, 64), (64, 64), accuracy, dtype=native) == {}
    reversible = Zfp(reversible=True)
    stored = reversible.stored(ChunkType(np.dtype("f4"), (64, 64)))
    assert "no bound" not in notes((64, 64), (64, 64), zfp_stage(reversible, stored), dtype=other)["byte-order"]


def test_judge_zfp_of_a_machine_of_the_other_byte_order_is_right_for_its_values() -> None:
    native, other = np.dtype("f4").str, np.dtype("f4").newbyteorder().str
    assert StoredZfp.parse(SWAPPED).swapped
    swapped = zfp_stage(Zfp(accuracy=0.0625), SWAPPED)
    assert notes((64, 64), (64, 64), swapped, dtype=other) == {}
    assert set(notes((64, 64), (64, 64), swapped, dtype=native)) == {"byte-order"}


def test_judge_chunks_that_filters_made_larger_say_by_how_much() -> None:
    """D5: a negative rate made them 8 times as large."""
    said = notes((64, 64, 64), (32, 64, 64), masks={0: 2}, stored_nbytes=8_000_000)["larger"]
    assert said == "the filters make the chunks larger: 8 MB for 1.05 MB; leave them out, or use others"
    assert notes((64, 64, 64), (32, 64, 64), masks={0: 1}, stored_nbytes=524_300) == {}
    assert notes((30,), (1,), "shuffle|deflate(1)", dtype="f8", masks={0: 30}, stored_nbytes=387) == {}


def test_judge_zfp_without_checksum_says_so() -> None:
    assert "add fletcher32 after zfp" in notes((64, 64), (64, 64), "zfp(rate=8)")["zfp-unchecked"]


def test_judge_shuffle_of_bytes_is_of_no_use() -> None:
    assert set(notes((1000,), (1000,), "shuffle|deflate(4)", dtype="u1")) == {"shuffle-bytes"}
    assert set(notes((1000,), (1000,), "deflate(4)", dtype="u1")) == set()


def test_judge_values_of_varying_length_are_not_filtered() -> None:
    assert "are stored elsewhere in the file" in notes((9,), (9,), "deflate(4)", varying=True)["varying-length"]


def test_judge_large_and_tiny_chunks_with_others_of_about_1_mib() -> None:
    said = notes((30, 1000, 1000), (30, 1000, 1000), "deflate(1)")["large-chunks"]
    assert said.startswith("a chunk of 120 MB does not fit")
    assert said.endswith("such as 4x64x1000")
    said = notes((1000, 1000), (10, 10), "deflate(1)", dtype="u1")["tiny-chunks"]
    assert said.startswith("10000 chunks of 100 B: ")
    assert said.endswith("such as 1000x1000")
    assert notes((30,), (1,), "deflate(1)", dtype="f8") == {}  # 240 bytes in all


@pytest.mark.parametrize(
    ("shape", "chunk", "filters", "said"),
    [
        ((130, 130), (100, 100), "deflate(1)", "58 % of the values that are filtered lie outside; chunks of 130x130"),
        ((64, 64, 64), (1, 30, 30), CHECKED, "49 % of the values that are filtered lie outside; chunks of 1x32x32"),
        ((1, 100_000), (64, 1000), "deflate(1)", "98 % of the values that are filtered lie outside; chunks of 1x1000"),
    ],
    ids=str,
)
def test_judge_chunks_past_the_edges_give_fraction_and_better_ones(
    shape: tuple[int, ...], chunk: tuple[int, ...], filters: str, said: str
) -> None:
    assert said in notes(shape, chunk, filters)["edge-chunks"]


def test_judge_edge_of_an_axis_that_grows_says_until_then() -> None:
    said = notes((3, 100_000), (64, 1000), "deflate(1)", growing=(True, False))["edge-chunks"]
    assert "95 % of the values that are filtered lie outside, until it grows" in said


def test_judge_bytes_at_the_edges_that_are_few_say_nothing() -> None:
    assert notes((3,), (1024,), "deflate(1)", growing=(True,)) == {}


EXTENT = st.integers(1, 50)


@given(
    st.lists(st.tuples(EXTENT, EXTENT, st.booleans()), min_size=1, max_size=6), st.sampled_from([CHECKED, "deflate(1)"])
)
def test_judge_any_chunks_fractions_are_right_and_advice_is_better(
    axes: list[tuple[int, int, bool]], filters: str
) -> None:
    shape = tuple(extent for extent, _, _ in axes)
    chunk = tuple(step for _, step, _ in axes)
    growing = tuple(step > extent or grow for extent, step, grow in axes)
    covered = math.prod(-(-extent // step) * step for extent, step, _ in axes)
    assert outside(shape, chunk) == pytest.approx(1 - math.prod(shape) / covered)
    for each in chunking(shape, chunk, filters, growing=growing).notes:
        assert isinstance(each, Note)
        if each.code in ("zfp-padding", "edge-chunks") and "; chunks of " in each.text:
            better = tuple(map(int, each.text.rpartition("; chunks of ")[2].split(" ")[0].split("x")))
            measure = zfp_padding if each.code == "zfp-padding" else lambda steps: outside(shape, steps)
            assert measure(better) < measure(chunk)
