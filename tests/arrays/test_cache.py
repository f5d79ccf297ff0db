"""Decoded chunks that are kept."""

from __future__ import annotations

import threading

import numpy as np

from tamis.arrays.cache import ChunkCache


def chunk(nbytes: int = 100) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.zeros(nbytes, np.uint8)


def test_cache_full_drops_the_one_used_longest_ago() -> None:
    cache = ChunkCache(300)
    for key in "abc":
        cache.put(key, chunk())
    assert cache.get("a") is not None
    cache.put("d", chunk())
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]
    assert cache.nbytes == 300


def test_cache_chunk_larger_than_all_kept_alone() -> None:
    cache = ChunkCache(300)
    cache.put("a", chunk())
    cache.put("large", chunk(1000))
    assert cache.get("a") is None
    assert cache.get("large") is not None
    cache.put("b", chunk())
    assert cache.get("large") is None
    assert cache.nbytes == 100


def test_cache_same_key_again_counted_once() -> None:
    cache = ChunkCache(300)
    cache.put("a", chunk())
    cache.put("a", chunk(50))
    assert cache.nbytes == 50


def test_cache_clear_nothing_left() -> None:
    cache = ChunkCache(300)
    cache.put("a", chunk())
    cache.add_part("b", 3)
    cache.clear()
    assert cache.get("a") is None
    assert cache.nbytes == 0
    assert cache.add_part("b", 1) == 1


def test_cache_decoded_blocks_add_up_until_the_chunk_is_kept() -> None:
    cache = ChunkCache(300)
    assert [cache.add_part("a", 3), cache.add_part("a", 4), cache.add_part("b", 1)] == [3, 7, 1]
    cache.put("a", chunk())
    assert cache.add_part("a", 2) == 2


def test_cache_counts_of_many_chunks_bounded() -> None:
    cache = ChunkCache(300)
    for key in range(10_000):
        cache.add_part(key, 1)
    assert cache.add_part(0, 1) == 1
    assert cache.add_part(9_999, 1) == 2


def test_cache_many_threads_bytes_right() -> None:
    cache = ChunkCache(1000)

    def use(first: int) -> None:
        for i in range(300):
            cache.put((first + i) % 23, chunk(50 + i % 7))
            cache.get(i % 23)

    threads = [threading.Thread(target=use, args=(first,)) for first in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    kept = [found for key in range(23) if (found := cache.get(key)) is not None]
    assert kept
    assert cache.nbytes == sum(each.nbytes for each in kept) <= 1000


def test_cache_another_thread_at_work_waits_for_nobody() -> None:
    cache = ChunkCache(1000)
    cache.put("a", chunk())
    with cache._adding:  # as in a thread that the collector makes wait for HDF5
        cache.put("b", chunk())
        assert cache.get("a") is not None
        assert cache.add_part("c", 1) == 1
    assert cache.get("b") is None
    cache.put("c", chunk())
    assert [key for key in "abc" if cache.get(key) is not None] == ["a", "b", "c"]
    assert cache.nbytes == 300


def test_cache_many_chunks_while_another_thread_is_at_work_bounded() -> None:
    cache = ChunkCache(100_000)
    with cache._adding:
        for key in range(1000):
            cache.put(key, chunk())
    cache.put("last", chunk())
    assert cache.get("last") is not None
    assert cache.nbytes < 3000
