"""Kept replies take the memory that their bound says."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import pytest

from tests.support.parts import part
from tests.unit.apps.server.conftest import QUESTION

part("orjson", "server")
from ketrag_fast.apps.server.replies import json_bytes  # noqa: E402
from ketrag_fast.apps.server.service import ReplyCache  # noqa: E402


def allocated(reply: bytes) -> int:
    """Bytes of the block that holds a large object."""
    try:
        size = ctypes.CDLL(None).malloc_usable_size
    except (OSError, AttributeError, TypeError):
        pytest.skip("this system's allocator does not tell the size of a block")
    size.argtypes, size.restype = [ctypes.c_void_p], ctypes.c_size_t
    return int(size(id(reply)))


def test_a_kept_reply_takes_no_more_than_its_size() -> None:
    """orjson leaves its buffer as large as it grew, which was four times the size of such a reply."""
    passages = [{"unit": n, "text": "The Fram drifted across the polar basin. " * 25} for n in range(20)]
    reply = json_bytes({"passages": passages, "sections": [{"text": "x" * 1000}]})
    cache = ReplyCache(1_000_000)
    cache.add("key", reply, ("key",))
    kept = cache.get("key")
    assert kept == reply
    assert allocated(kept) < 1.1 * len(reply) + 100
    assert cache.size >= allocated(kept)


def test_the_texts_of_a_key_count() -> None:
    cache = ReplyCache(1_000_000)
    for number in range(100):
        text = f"{number:09}" * 10_000
        cache.add((number, text), b"reply", (text, None))
    assert len(cache) == 1_000_000 // (90_000 + 49 + 700 + sys.getsizeof(b"reply"))
    assert cache.size <= 1_000_000
    assert cache.get((0, "0" * 90_000)) is None


def test_the_least_recently_used_goes_first_and_too_large_ones_are_not_kept() -> None:
    cache = ReplyCache(3 * 1800)
    for key in "abc":
        cache.add(key, b"x" * 1000, ())
    assert cache.get("a") is not None
    cache.add("d", b"x" * 1000, ())
    assert [cache.get(key) is not None for key in "abcd"] == [True, False, True, True]
    cache.add("e", b"x" * 10_000, ())
    assert cache.get("e") is None and len(cache) == 3


def test_long_filters_of_requests_are_within_the_bound(folder: Any, loopback: None) -> None:
    """Each key holds the filter of its request, up to the size of a body."""
    from tests.support.service import running

    bound = 3_000_000
    with running(folder, cache=bound) as service, service.client() as client:
        for number in range(20):
            values = [f"{number}-{n}-{'x' * 500}" for n in range(1000)]
            body = {"question": QUESTION, "mode": "bm25", "filter": {"$not": {"letters": values}}}
            assert client.post("/v1/retrieve", json=body).status_code == 200
        cache = service.service.cache
        held = sum(len(query.filter) for query, _, _ in cache._replies)
        assert 500_000 < held <= bound
