"""Names of the core against those of the slow oracle, with and without capitals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import naming as oracle

TEXTS = {
    "english": "the lord of the rings was read in 1954 by j. r. r. tolkien, who wrote the hobbit in oxford.",
    "german": "die stadt braunschweig wurde im jahr 1158 von heinrich dem löwen gegründet und ist nicht groß",
    "russian": "город москва был основан князем юрием долгоруким и стал столицей русского государства",
    "arabic": "ولد نيكولا تيسلا في كرواتيا، وعمل في مدينة نيويورك من أجل توماس إديسون",
    "hindi": "निकोला टेस्ला का जन्म क्रोएशिया में हुआ और उसने थॉमस एडिसन के लिए काम किया",
}
WORDS = [
    *(
        "the",
        "of",
        "film",
        "Ada",
        "Lovelace",
        "however",
        "1954",
        "2010",
        "born",
        "a",
        "in",
        "der",
        "von",
        "haus",
    ),
    *("город", "Москва", "في", "مدينة", "में", "शहर", "北京", "x", "J", "é", "ǅ"),
]
GAPS = [" ", " ", " ", ". ", ", ", "-", " - ", "'", " (", ") ", "\n", ": ", " & "]


@pytest.mark.parametrize("language", TEXTS)
def test_text_without_capitals_has_names(language: str) -> None:
    found = oracle.core_names(TEXTS[language], language)
    assert found == oracle.names(TEXTS[language], language)
    assert len(found) > 2


def test_function_words_are_no_names() -> None:
    found = oracle.core_names(TEXTS["german"], "german")
    assert "stadt braunschweig" in found
    assert not found & {"die", "wurde", "im", "und", "nicht"}


def test_a_text_with_one_capital_has_names_with_capitals_only() -> None:
    assert oracle.core_names(TEXTS["english"].replace("hobbit", "Hobbit")) == {"1954", "hobbit"}


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["english", "german", "russian", "arabic", "hindi", "chinese", "none"]),
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=30),
    st.booleans(),
)
def test_any_text_has_the_names_of_the_oracle(
    language: str, parts: list[tuple[str, str]], lower: bool
) -> None:
    text = "".join(word + gap for word, gap in parts)
    text = text.lower() if lower else text
    assert oracle.core_names(text, language) == oracle.names(text, language)
