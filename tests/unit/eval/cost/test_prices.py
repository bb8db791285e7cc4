"""The user's price table: what it takes, what it refuses, and what an unknown price does to a sum."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.errors import ConfigError
from ketrag_fast.eval.prices import FREE, Price, Prices, bill, model_name, read_prices, usd_text
from ketrag_fast.models.embedders.registry import _KINDS
from ketrag_fast.types import Usage

TABLE = """date = 2026-11-01
[models."gpt-4o-mini"]
input = 0.15
output = 0.60
[models."text-embedding-3-small"]
embedding = 0.02
"""
API = "openai:gpt-4o-mini@https://api.example.org/v1"
VECTORS = "openai:text-embedding-3-small@https://api.example.org/v1"


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    path = tmp_path / "prices.toml"
    path.write_text(TABLE)
    return read_prices(path)


def test_a_bill_is_tokens_times_prices(prices: Prices) -> None:
    found = bill(
        Usage(tokens_in=2_000_000, tokens_out=500_000, embedding_tokens=10_000_000), prices, API, VECTORS
    )
    assert found.llm == pytest.approx(0.30 + 0.30)
    assert found.embedding == pytest.approx(0.20)
    assert found.total == pytest.approx(0.80)
    assert prices.date == "2026-11-01"


def test_an_unknown_price_makes_the_sum_unknown_and_the_rest_stays(prices: Prices) -> None:
    usage = Usage(tokens_in=10, tokens_out=10, embedding_tokens=1_000_000)
    found = bill(usage, prices, "openai:other@https://api.example.org/v1", VECTORS)
    assert (found.llm, found.total) == (None, None)
    assert found.embedding == pytest.approx(0.02)
    assert found.to_json()["total"] == "unknown"
    assert usd_text(found.total) == "unknown"


def test_no_tokens_cost_nothing_whatever_the_price() -> None:
    assert bill(Usage(), Prices(), API, VECTORS).total == 0.0


def test_a_model_on_this_machine_is_free_and_an_endpoint_on_it_is_not_known_to_be() -> None:
    usage = Usage(tokens_in=10, tokens_out=10, embedding_tokens=10)
    assert bill(usage, Prices(), "llama-cpp:/m.gguf", "sentence-transformers:/m").total == 0.0
    assert bill(usage, Prices(), "openai:m@http://127.0.0.1:1/v1", "builtin").total is None


@pytest.mark.parametrize("kind", sorted(_KINDS - {"openai"}))
def test_every_embedder_but_an_endpoint_is_free(kind: str) -> None:
    assert Prices().of(f"{kind}:somewhere") == FREE


def test_half_a_price_is_no_price() -> None:
    table = Prices({"m": Price(input=1.0)})
    assert bill(Usage(tokens_in=1), table, "openai:m@http://x/v1", "builtin").total is None


def test_names_may_hold_at_signs() -> None:
    assert model_name("openai:a@b@https://x/v1") == "a@b"
    assert model_name("llama-cpp:/x.gguf") == "llama-cpp:/x.gguf"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[models]", "has no date"),
        ('date = "yesterday"', "has no date"),
        ("date = 2026-01-01\n[models.x]\ninput = -1", "models.x.input"),
        ("date = 2026-01-01\n[models.x]\ninput = nan", "models.x.input"),
        ("date = 2026-01-01\n[models.x]\ninput = true", "models.x.input"),
        ("date = 2026-01-01\n[models.x]\nprice = 1", "not a known price"),
        ("date = 2026-01-01\nmodels = 3", "not a table"),
        ("date = 2026-01-01\n[models]\nx = 3", "models.x"),
        ("date = 2026-01-01\n[model.x]\ninput = 1", "unknown entry"),
        ("date = ", "not TOML"),
    ],
)
def test_a_bad_table_is_refused_by_the_name_of_what_is_wrong(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=word):
        read_prices(path)


def test_a_named_table_must_be_there_and_the_default_one_need_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_prices(None) == Prices()
    with pytest.raises(ConfigError, match="does not exist"):
        read_prices(tmp_path / "none.toml")
