"""The extraction by rules in other languages than English."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.kernels.text import sentence_spans
from ketrag_fast.models.extraction.heuristic import extract
from ketrag_fast.systems.papers.noderag.decompositions import by_rules

# Title, text, names that are found, words that are not names, and a relation.
PASSAGES = {
    "de": (
        "Ludwigshafen",
        "Die Stadt Ludwigshafen wurde 1853 von König Maximilian gegründet. Der Chemiker Carl Bosch leitete "
        "dort die alte Fabrik. Im Jahr 1865 zog Friedrich Engelhorn an den Rhein, und seine Arbeiter bauten "
        "Häuser in Oppau.",
        ["Ludwigshafen", "1853", "König Maximilian", "Chemiker Carl Bosch", "Friedrich Engelhorn", "Oppau"],
        ["Die", "Stadt", "Fabrik", "Jahr", "Im", "Arbeiter"],
        ("Ludwigshafen", "König Maximilian"),
    ),
    "ru": (
        "Кижи",
        "Остров Кижи находится в Онежском озере. В 1714 году здесь построили церковь, и мастер Нестор бросил "
        "свой топор. Она стоит на острове. Музей основал Александр Ополовников в 1966 году.",
        ["Кижи", "Нестор", "Александр Ополовников", "1714", "1966"],
        ["Она", "В", "году"],
        ("Кижи", "Нестор"),
    ),
    "zh": (
        "颐和园",
        "颐和园位于北京西郊。1750年，乾隆皇帝为孝敬母亲兴建了清漪园。清漪园在1860年被英法联军焚毁。"
        "卡万·肖特在《游记》里写到昆明湖，昆明湖的面积很大。",
        ["颐和园", "1750年", "清漪园", "1860年", "卡万·肖特", "游记", "昆明湖"],
        ["的", "位于"],
        ("颐和园", "清漪园"),
    ),
    "ar": (
        "أحمد زويل",
        "ولد أحمد زويل في مدينة دمنهور عام 1946. درس في جامعة الإسكندرية ثم سافر إلى الولايات المتحدة. حصل "
        "على جائزة نوبل في الكيمياء عام 1999. وقد عمل أحمد زويل في جامعة الإسكندرية.",
        ["أحمد زويل", "مدينة دمنهور", "1946", "جامعة الإسكندرية", "الولايات المتحدة", "جائزة نوبل", "1999"],
        ["في", "عام", "على", "ثم"],
        ("أحمد زويل", "جامعة الإسكندرية"),
    ),
    "hi": (
        "ताज महल",
        "ताज महल आगरा में यमुना नदी के किनारे है। इसे मुगल सम्राट शाहजहाँ ने 1632 में अपनी पत्नी मुमताज महल की याद में "
        "बनवाया था। शाहजहाँ को आगरा के किले में रखा गया था।",
        ["ताज महल", "आगरा", "यमुना नदी", "मुगल सम्राट शाहजहाँ", "1632", "शाहजहाँ"],
        ["में", "था", "की"],
        ("ताज महल", "यमुना नदी"),
    ),
    "ja": (
        "",
        "東京タワーは1958年に完成した。エッフェル塔より高い。設計者は内藤多仲である。内藤多仲は『日本の塔』を書いた。",
        ["1958年", "内藤多仲", "日本の塔"],
        ["は", "に"],
        ("内藤多仲", "日本の塔"),
    ),
}


@pytest.mark.parametrize("code", PASSAGES)
def test_names_and_relations_are_found(code: str) -> None:
    title, text, expected, excluded, relation = PASSAGES[code]
    found = extract(title, text)
    names = [entity.name for entity in found.entities]
    assert [name for name in expected if name not in names] == []
    assert [name for name in excluded if name in names] == []
    assert relation in [(one.source, one.target) for one in found.relations]
    assert all(name in f"{title}\n{text}" for name in names)
    assert all(one.description for one in found.entities)


@pytest.mark.parametrize("code", PASSAGES)
def test_sentences_are_split_and_become_units(code: str) -> None:
    title, text, *_ = PASSAGES[code]
    assert len(sentence_spans(text)) >= 2
    units = by_rules(title, text).units
    assert len(units) == len(sentence_spans(text))
    assert any(unit.relationships for unit in units)


def test_a_language_can_be_forced() -> None:
    text = "Der Rhein fließt durch Köln."
    assert [e.name for e in extract("", text, "german").entities] == ["Köln"]
    assert "Der Rhein" in [e.name for e in extract("", text, "english").entities]
    assert extract("", text, "de") == extract("", text, "german")


@given(
    st.text("北京的·ァ『』สวनमें أفيו1958年A b.。", max_size=60),
    st.sampled_from(("auto", "zh", "ar", "th", "de")),
)
def test_any_text_is_read(text: str, language: str) -> None:
    found = extract("", text, language)
    assert found == extract("", text, language)
    assert all(entity.name.strip() for entity in found.entities)
