"""Skeletons and NodeRAG from a model's replies in Chinese, German and Arabic.

Names are spelled as such models spell them: in full width, in capitals, decomposed, with marks of direction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.systems.shared.rows import read_strings
from ketrag_fast.types import Entity
from tests.support.chat import Chat
from tests.support.chat_rules import passage


class Recorded(NamedTuple):
    """A passage, and what a model extracts: entities, relations, and one unit for each statement."""

    id: str
    text: str
    entities: Sequence[tuple[str, str, str]]
    relations: Sequence[tuple[str, str, str, int]]

    def records(self) -> str:
        """Return the reply to the extraction prompt."""
        return json.dumps({"e": self.entities, "r": self.relations}, ensure_ascii=False)

    def units(self) -> str:
        """Return the reply to the prompt for semantic units."""
        units = [
            {"unit": said, "entities": [one, other], "relationships": [[one, said, other]]}
            for one, other, said, _ in self.relations
        ]
        return json.dumps({"units": units}, ensure_ascii=False)


RECORDED = {
    "zh": (
        Recorded(
            "zh-1",
            "张衡在洛阳制造了地动仪。地动仪于公元132年完成，ＡＢＣ博物馆收藏了它的模型。",
            [
                ("张衡", "person", "张衡制造了地动仪。"),
                ("地动仪", "work", "地动仪于公元132年在洛阳完成。"),
                ("洛阳", "place", "洛阳是地动仪的制造地。"),
                ("ＡＢＣ博物馆", "organization", "这座博物馆收藏了地动仪的模型。"),
            ],
            [
                ("张衡", "地动仪", "张衡制造了地动仪。", 9),
                ("地动仪", "洛阳", "地动仪在洛阳制造。", 6),
                ("ＡＢＣ博物馆", "地动仪", "博物馆收藏地动仪的模型。", 4),
            ],
        ),
        Recorded(
            "zh-2",
            "洛阳是东汉的首都。张衡出生于南阳，后来在洛阳担任太史令。",
            [
                ("洛阳", "place", "洛阳是东汉的首都。"),
                ("张衡", "person", "张衡出生于南阳。"),
                ("南阳", "place", "南阳是张衡的出生地。"),
            ],
            [
                ("张衡", "南阳", "张衡出生于南阳。", 8),
                ("张衡", "洛阳", "张衡在洛阳担任太史令。", 7),
            ],
        ),
    ),
    "de": (
        Recorded(
            "de-1",
            "Die Straße nach Zürich wurde von Jürg Weiß gebaut. Jürg Weiß lebte in Zürich am Ufer der Sihl.",
            [
                ("Jürg Weiß", "person", "Jürg Weiß baute die Straße nach Zürich."),
                ("Zu\u0308rich", "place", "Zürich liegt an der Sihl."),
                ("Sihl", "place", "Die Sihl fließt durch Zürich."),
            ],
            [
                ("Jürg Weiß", "Zürich", "Jürg Weiß lebte in Zürich.", 8),
                ("Zu\u0308rich", "Sihl", "Zürich liegt an der Sihl.", 5),
            ],
        ),
        Recorded(
            "de-2",
            "ZÜRICH gehört zur Schweiz. Die Brücke über die Sihl entwarf JÜRG WEISS im Jahr 1911.",
            [
                ("ZÜRICH", "place", "Zürich gehört zur Schweiz."),
                ("JÜRG WEISS", "person", "Jürg Weiß entwarf 1911 die Brücke."),
                ("Schweiz", "place", "Zürich gehört zur Schweiz."),
            ],
            [
                ("ZÜRICH", "Schweiz", "Zürich gehört zur Schweiz.", 9),
                ("JÜRG WEISS", "ZÜRICH", "Jürg Weiß entwarf eine Brücke in Zürich.", 4),
            ],
        ),
    ),
    "ar": (
        Recorded(
            "ar-1",
            "كتب ابن خلدون كتاب المقدمة في تونس. ولد ابن خلدون في تونس ودرس في جامع الزيتونة.",
            [
                ("ابن خلدون", "person", "كتب ابن خلدون المقدمة."),
                ("\u200fتونس\u200f", "place", "ولد ابن خلدون في تونس."),
                ("المقدمة", "work", "المقدمة كتاب لابن خلدون."),
                ("جامع الزيتونة", "place", "درس ابن خلدون في جامع الزيتونة."),
            ],
            [
                ("ابن خلدون", "المقدمة", "كتب ابن خلدون المقدمة.", 9),
                ("ابن خلدون", "تونس", "ولد ابن خلدون في تونس.", 8),
                ("ابن خلدون", "جامع الزيتونة", "درس ابن خلدون في جامع الزيتونة.", 5),
            ],
        ),
        Recorded(
            "ar-2",
            "تونس مدينة قديمة. توفي ابن خلدون في القاهرة بعد أن غادر تونس.",
            [
                ("تونس", "place", "تونس مدينة قديمة."),
                ("ابن خلدون", "person", "توفي ابن خلدون في القاهرة."),
                ("القاهرة", "place", "توفي ابن خلدون في القاهرة."),
            ],
            [
                ("ابن خلدون", "القاهرة", "توفي ابن خلدون في القاهرة.", 8),
                ("ابن خلدون", "تونس", "غادر ابن خلدون تونس.", 5),
            ],
        ),
    ),
}


WORDS = {"zh": "。", "de": "Zürich", "ar": "ابن خلدون"}
"""In every set of statements in a language."""
PORTRAITS = {
    "zh": "这位古代学者与天文仪器有关。",
    "de": "Ein Ort oder Mensch, von dem die Sätze berichten.",
    "ar": "عالم من القرن الرابع عشر.",
}
ELEMENT = {
    "zh": ("古代科学", "东汉时期的天文学和仪器。"),
    "de": ("Bauten der Schweiz", "Straßen und Brücken in einer Schweizer Stadt."),
    "ar": ("علماء المغرب", "حياة العلماء ومدنهم."),
}


def documents(language: str) -> list[Document]:
    """Return the passages of a language as documents."""
    return [Document(one.id, one.text) for one in RECORDED[language]]


def reply(prompt: str) -> str:
    """Return the reply to a prompt: units, entities and relations, or a portrait or elements."""
    if '{"high_level_elements"' in prompt:
        title, said = ELEMENT[next(code for code, word in WORDS.items() if word in prompt)]
        return json.dumps({"high_level_elements": [{"title": title, "description": said}]})
    if '{"text": "..."}' in prompt:
        return json.dumps({"text": PORTRAITS[next(code for code, word in WORDS.items() if word in prompt)]})
    said = passage(prompt)
    one = next(one for rows in RECORDED.values() for one in rows if one.text in said)
    return one.units() if '{"units"' in prompt else one.records()


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
