"""Skeletons and NodeRAG from a model's replies in Chinese, German and Arabic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.systems.shared.rows import read_strings
from ketrag_fast.types import Entity
from tests.support.chat import Chat
from tests.support.language_replies import RECORDED, documents, reply

pytestmark = pytest.mark.usefixtures("loopback")

# Entities of the skeleton, an entity with its neighbours, and a question with the document that answers it.
EXPECTED = {
    "zh": (
        {"张衡", "地动仪", "洛阳", "ＡＢＣ博物馆", "南阳"},
        ("张衡", {"地动仪", "南阳", "洛阳"}),
        ("张衡出生在哪里？", "zh-2"),
    ),
    "de": (
        {"JÜRG WEISS", "ZÜRICH", "SIHL", "SCHWEIZ"},
        ("Zürich", {"JÜRG WEISS", "SIHL", "SCHWEIZ"}),
        ("Welche Straße baute Jürg Weiß?", "de-1"),
    ),
    "ar": (
        {"ابن خلدون", "تونس", "المقدمة", "جامع الزيتونة", "القاهرة"},
        ("ابن خلدون", {"المقدمة", "تونس", "جامع الزيتونة", "القاهرة"}),
        ("أين توفي ابن خلدون؟", "ar-2"),
    ),
}


def words(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


@pytest.fixture(scope="module")
def server() -> Iterator[Chat]:
    with Chat(lambda request: reply(words(request))) as chat:
        yield chat


def build(server: Chat, code: str, path: Path, modes: str, **more: Any) -> Index:
    server.requests.clear()
    own = Settings(llm=f"openai:mini@{server.url}", core_ratio=1.0, modes=modes, threads=1, **more)
    return Index.build(documents(code), path / "index", settings=own)


@pytest.mark.parametrize("language", RECORDED)
def test_a_skeleton_is_built_and_queried(server: Chat, language: str, tmp_path: Path) -> None:
    names, (entity, neighbours), (question, document) = EXPECTED[language]
    with build(server, language, tmp_path, "skeleton,ket") as index:
        assert all("Write descriptions in the language of the passage" in words(r) for r in server.requests)
        report = index.report
        assert report is not None and not report.failures
        assert set(read_strings(index.inspect.arrays()["skeleton"], "entity_name")) == names
        found = index.inspect.node(entity.swapcase(), kind="entity")
        assert isinstance(found, Entity)
        ends = {name for one in found.relations for name in (one.source, one.target)}
        assert ends - {found.name} == neighbours
        for mode in ("skeleton", "ket"):
            context = index.retrieve(question, mode=mode)
            assert context.text and context.passages, mode
            for passage in context.passages:
                text = next(d.text for d in documents(language) if d.id == passage.document)
                assert text[passage.start : passage.end] == passage.text
        assert index.retrieve(question, mode="ket").passages[0].document == document


@pytest.mark.parametrize("language", RECORDED)
def test_noderag_is_built_and_queried(server: Chat, language: str, tmp_path: Path) -> None:
    _, _, (question, document) = EXPECTED[language]
    with build(server, language, tmp_path, "noderag") as index:
        prompts = [words(request) for request in server.requests]
        assert len(set(prompts)) == len(prompts), "each is answered; what fails is requested again"
        assert any("in the language of the passage" in prompt for prompt in prompts)
        wanted = [p for p in prompts if '{"text": "..."}' in p or '{"high_level_elements"' in p]
        assert all("Write in the language of the statements" in prompt for prompt in wanted)
        statements = read_strings(index.inspect.arrays()["noderag_graph"], "semantic_unit")
        assert len(statements) == sum(len(one.relations) for one in RECORDED[language])
        context = index.retrieve(question, mode="noderag")
        own = next(one for one in RECORDED[language] if one.id == document)
        assert any(said in context.text for _, _, said, _ in own.relations)


def test_english_prompts_ask_for_english(server: Chat, tmp_path: Path) -> None:
    with build(server, "de", tmp_path, "skeleton", language="english"):
        assert all("Write descriptions in English" in words(request) for request in server.requests)
