"""The keyword graph, concepts and the fitted space in other languages than English."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.systems.papers.g2cons.inspection import Concept
from ketrag_fast.systems.shared.rows import csr, read_strings

# In each, the words of a query are in other forms than those of the text.
SETS = {
    "de": (
        [
            ("haus", "Die Häuser der alten Städte wurden von den Handwerkern gebaut und sind nicht groß."),
            ("fluss", "Die Flüsse sind im Frühling nicht tief, und die Fischer fahren mit den Booten."),
            ("wald", "In den Wäldern wachsen viele Bäume, und die Förster sind dort nicht allein."),
        ],
        {"haus": "Welches Haus einer Stadt baute der Handwerker?", "wald": "Welcher Baum wuchs im Wald?"},
        ("Haus", "häuser"),
    ),
    "ru": (
        [
            ("haus", "Дома старых городов были построены мастерами, и они не очень большие."),
            ("fluss", "Реки весной не глубокие, и рыбаки плавают на лодках по этим рекам."),
            ("wald", "В лесах растут высокие деревья, и лесники там не одни."),
        ],
        {"haus": "Какой дом в городе построил мастер?", "wald": "Какое дерево растёт в лесу?"},
        ("дом", "дома"),
    ),
    "ar": (
        [
            ("haus", "البيوت القديمة في المدن بناها المعلمون وهي ليست كبيرة."),
            ("fluss", "الأنهار في الربيع ليست عميقة والصيادون يركبون القوارب."),
            ("wald", "في الغابات تنمو الأشجار العالية والحراس هناك ليسوا وحدهم."),
        ],
        {"haus": "بيوت المدينة", "wald": "أشجار الغابة"},
        ("الأنهار", "الأنهار"),
    ),
    "hi": (
        [
            ("haus", "पुराने शहरों के घरों को कारीगरों ने बनाया था और वे बड़े नहीं हैं।"),
            ("fluss", "वसंत में नदियों का पानी गहरा नहीं होता है और मछुआरे नावों से जाते हैं।"),
            ("wald", "जंगलों में ऊँचे पेड़ों की कतारें हैं और वहाँ पहरेदार अकेले नहीं हैं।"),
        ],
        {"haus": "शहर का घर किस कारीगर ने बनाया?", "wald": "जंगल का पेड़"},
        ("शहर", "शहरों"),
    ),
}


def build(path: Path, code: str, **settings: object) -> Index:
    documents = [Document(name, text) for name, text in SETS[code][0]]
    return Index.build(documents, path / "index", settings=Settings(**settings))


@pytest.mark.parametrize("code", SETS)
@pytest.mark.parametrize("mode", ["text", "keyword", "g2cons"])
def test_other_forms_of_a_word_are_found_by_graphs_and_the_fitted_space(
    tmp_path: Path, code: str, mode: str
) -> None:
    with build(tmp_path, code, modes=("text", "keyword", "g2cons")) as index:
        for expected, query in SETS[code][1].items():
            passages = index.retrieve(query, mode=mode).passages
            assert passages and passages[0].document == expected, (query, passages)


@pytest.mark.parametrize("code", SETS)
def test_concepts_are_found_by_any_form_and_shown_as_written(tmp_path: Path, code: str) -> None:
    form, shown = SETS[code][2]
    with build(tmp_path, code, modes=("g2cons",)) as index:
        concept = index.inspect.node(form, kind="concept")
        assert isinstance(concept, Concept) and concept.name == shown
        assert all("@" not in near.name for near in concept.neighbours)
        words = index._opened.generation.stages["words"]
        assert len(read_strings(words, "vocabulary")) == len(csr(words, "word_units")[0]) - 1


def test_languages_are_stored_with_the_words_only_if_not_all_are_english(tmp_path: Path) -> None:
    with build(tmp_path, "de", modes=("keyword",)) as index:
        assert index.stats()["languages"] == {"de": 3}
        assert {document.metadata["language"] for document in index.inspect.documents()} == {"de"}
        found = index.retrieve("Haus", mode="keyword", filter="language=de").passages
        assert found and found[0].document == "haus"
    english = [Document("a", "The houses of the old town are not large."), Document("b", "Dogs bark.")]
    (tmp_path / "en").mkdir()
    with Index.build(english, tmp_path / "en" / "index", settings=Settings(modes=("keyword",))) as index:
        assert "languages" not in index._opened.generation.stages["words"]


@pytest.mark.parametrize("modes", ["bm25,walk", "keyword,g2cons", "noderag,skeleton"])
def test_an_update_equals_a_build(tmp_path: Path, modes: str) -> None:
    every = [Document(f"{code}-{name}", text) for code in SETS for name, text in SETS[code][0]]
    every.append(Document("en", "The houses of the old town were built by craftsmen and are not large."))
    own = Settings(modes=modes, llm="heuristic")
    with (
        Index.build(every[:4], tmp_path / "a", settings=own) as index,
        Index.build([*every[:1], *every[2:]], tmp_path / "b", settings=own) as again,
    ):
        index.update(add=every[4:], remove=[every[1].id])
        assert index.digest == again.digest


def test_a_forced_language_reads_everything_in_it(tmp_path: Path) -> None:
    documents = [Document("x", "Häuser"), Document("y", "Flüsse")]
    own = Settings(modes=("text", "keyword"), language="german")
    with Index.build(documents, tmp_path / "index", settings=own) as index:
        assert index.retrieve("Haus", mode="text").passages[0].document == "x"
        assert index.retrieve("Fluss", mode="keyword").passages[0].document == "y"
