"""Questions made by rules: what they ask, and what the documents keep."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ketrag_fast import Document
from ketrag_fast.lab.advice.probes import RARE, Probes, make_probes

FILMS = Path(__file__).parents[3] / "data"


def library(count: int = 40) -> list[Document]:
    """Documents in pairs, a film that names its director and the director; each pair has its own words."""
    found = []
    for n in range(count):
        one, two = "abcdefghij"[n % 10], "klmnopqrst"[n // 10]
        name = f"Adal{one}rn Quist{two}m"
        film = (
            f"The film was shot in the harbour of port{one}{two} at the northern coast. "
            f"It was directed by {name} with a crew from mill{two}{one} in one summer. "
            "Critics liked the slow pictures of ships and of harbours."
        )
        director = (
            f"{name} was a maker of films about bridge{one}{two} for television. "
            "The studio in the old town burned down after the premiere of a later work. "
            "He taught lighting at an academy until his death."
        )
        found += [Document(f"film-{n}", film), Document(f"person-{n}", director)]
    return found


@pytest.fixture(scope="module")
def made() -> Probes:
    return make_probes(library(), count=30)


def test_the_sentence_that_is_asked_for_is_cut_out_at_its_place(made: Probes) -> None:
    before = {document.id: document.text for document in library()}
    after = {document.id: document.text for document in made.documents}
    direct = made.of("direct")
    assert len(direct) == 30
    for probe in direct:
        own, left = before[probe.target.document], after[probe.target.document]
        at = probe.target.offset
        assert probe.text in own
        assert probe.text not in left
        # A document of this length loses one sentence.
        assert left[:at] + probe.text + left[at:] == own
    untouched = before.keys() - {probe.target.document for probe in made.probes}
    assert all(before[name] == after[name] for name in untouched)


def test_a_linked_question_leads_through_a_name_that_it_does_not_say(made: Probes) -> None:
    texts = {document.id: document.text for document in made.documents}
    linked = made.of("linked")
    assert linked
    for probe in linked:
        assert probe.via != probe.target.document
        assert probe.name
        assert probe.name not in probe.text
        assert probe.name in texts[probe.via], "the sentence that leads there stays"
        assert probe.name in texts[probe.target.document]
    assert made.joined == made.looked_at == made.total == 80


def test_equal_documents_in_any_order_give_equal_probes(made: Probes) -> None:
    again = make_probes(reversed(library()), count=30)
    assert again.probes == made.probes
    assert make_probes(library(), count=30, seed=1).probes != made.probes


def test_places_of_a_long_document_are_apart() -> None:
    sentences = [f"Part {n} of the manual says how the valve {n} is opened and closed." for n in range(400)]
    made = make_probes([Document("manual", " ".join(sentences))], count=1000)
    text = made.documents[0].text
    direct = made.of("direct")
    assert 5 <= len(direct) <= len(text) / 1000 + 1
    starts = sorted(probe.target.offset for probe in direct)
    assert all(b - a > 800 for a, b in itertools.pairwise(starts))
    for probe in direct:
        assert probe.text not in text


def test_names_of_many_places_do_not_link() -> None:
    text = "The captain of the Great Eastern wrote a letter home. Nobody answered it for years. It was calm."
    made = make_probes([Document(str(n), f"{text} It was number {n}.") for n in range(RARE + 2)])
    assert made.of("linked") == []
    assert made.joined == 0


@pytest.mark.parametrize(
    "documents",
    [
        [],
        [Document("empty", "")],
        [Document("blank", " \n ")],
        [Document("word", "word")],
        [Document("two", "One sentence of quite enough words. Another sentence of quite enough words.")],
        [Document("no-capitals", "これは文です。" * 50)],
    ],
    ids=lambda documents: documents[0].id if documents else "none",
)
def test_documents_that_cannot_be_asked_for(documents: list[Document]) -> None:
    made = make_probes(documents)
    assert made.probes == ()
    assert [document.text for document in made.documents] == [document.text for document in documents]


def test_offsets_are_code_points() -> None:
    text = "Ünïcödé 🙂🙂 begins the story of this text. A second one has words enough. And the third one."
    made = make_probes([Document("x", text), Document("y", text.replace("story", "tale"))], count=9)
    assert made.of("direct")
    for probe in made.of("direct"):
        own = text if probe.target.document == "x" else text.replace("story", "tale")
        assert own[probe.target.offset :].startswith(probe.text)
