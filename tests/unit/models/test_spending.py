"""One limit over the models of a whole build."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.base.config.settings import prices_of
from ketrag_fast.errors import ConfigError
from ketrag_fast.models.llms.registry import Models
from ketrag_fast.models.spending import Account, LimitReachedError, SpendingLimit
from tests.support.chat_rules import ChatEndpoint
from tests.support.endpoint import Endpoint, words_encoder

DOCUMENTS = [
    Document(
        f"d{n}", f"Captain Anna Nord{n} sailed the Fram{n} to Hobart. Bert Syd{n} built the Fram{n}.", ""
    )
    for n in range(400)
]


def test_accounts_share_a_limit() -> None:
    limit = SpendingLimit(1.0)
    one, other = Account(1.0, limit), Account(10.0, limit, usd_per_million_out=20.0)
    one.book(500_000)
    other.book(20_000, 10_000)
    assert limit.spent == pytest.approx(0.9)
    with pytest.raises(LimitReachedError, match="the limit of 1 USD would be exceeded"):
        one.book(200_000)
    other.settle(20_000, 0, 10_000, 0)
    one.book(200_000)
    assert (one.usd, other.usd, limit.spent) == pytest.approx((0.7, 0.0, 0.7))


def test_what_is_embedded_later_is_kept_back() -> None:
    limit = SpendingLimit(1.0)
    reading, embedding = Account(1.0, limit, usd_later=2.0), Account(2.0, limit)
    reading.book(0, 300_000)  # 0.3, and 0.6 for later
    with pytest.raises(LimitReachedError):
        reading.book(150_000)
    embedding.book(300_000)
    assert limit.spent == pytest.approx(0.9)


def test_many_threads_never_pass_it() -> None:
    limit = SpendingLimit(0.001)
    accounts = [Account(1.0, limit) for _ in range(4)]
    refused: list[int] = []

    def spend(account: Account) -> None:
        for _ in range(100):
            try:
                account.book(10)
            except LimitReachedError:
                refused.append(1)

    threads = [threading.Thread(target=spend, args=(account,)) for account in accounts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(account.tokens for account in accounts) == 1000
    assert len(refused) == 300


@pytest.mark.parametrize(
    ("given", "embedding", "prompt", "reply"),
    [("10", 10, 10, 10), (10.0, 10, 10, 10), ("0.02, 0.15", 0.02, 0.15, 0.15), ([1, 2, 3.5], 1, 2, 3.5)],
)
def test_prices_of_one_setting(given: object, embedding: float, prompt: float, reply: float) -> None:
    found = prices_of(Settings(usd_per_million=given).usd_per_million)
    assert found == (embedding, prompt, reply)
    assert prices_of(Settings().usd_per_million) is None


@pytest.mark.parametrize("given", ["", "x", "1,", "1,2,3,4", "-1", "nan", "inf", True, [], [None], b"1"])
def test_prices_that_are_none(given: object) -> None:
    with pytest.raises(ConfigError, match="usd_per_million"):
        Settings(usd_per_million=given)


def test_a_limit_needs_a_price_where_an_endpoint_is_asked() -> None:
    with pytest.raises(ConfigError, match="price"):
        Account(None, SpendingLimit(1.0))
    models = Models(Settings(limit_usd=1.0))  # an index opens all the same
    with pytest.raises(ConfigError, match="price"), models.lend("openai:mini@http://127.0.0.1:9/v1"):
        pass


@pytest.mark.usefixtures("loopback")
def test_embedding_and_reading_are_one_bill(tmp_path: Path) -> None:
    limit = 1.0
    with Endpoint(words_encoder()) as embedder, ChatEndpoint() as reader:

        def read(place: str, spec: str) -> int:
            """Chunks that were read before the money was spent."""
            embedder.texts.clear()
            settings = Settings(
                embedder=spec,
                llm=reader.spec,
                core_ratio=1.0,
                usd_per_million="10, 100",
                llm_tokens=100,
                llm_slots=1,
                limit_usd=limit,
            )
            with Index.build(DOCUMENTS, tmp_path / place, settings=settings) as index:
                report = index.report
                assert report is not None and report.extraction is not None
                assert report.extraction["stopped"] == "limit_usd"
                spent = report.extraction["tokens_in"] + report.extraction["tokens_out"]
                words = sum(len(text.split()) for text in embedder.texts)
                assert 0.5 * limit < spent * 100e-6 + words * 10e-6 <= limit
                assert index.retrieve("Who sailed the Fram3?").passages  # what was read is published
                assert index.stats()["counts"]["entities"] > 0
                return int(report.extraction["read"])

        assert 0 < read("both", f"openai:mini@{embedder.url}") < read("reading", "builtin") < len(DOCUMENTS)
