"""Why a passage is in a context: partners, chains and bridges of the walk, by their oracle and in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.query.explanations import as_written, best_pair_text
from ketrag_fast.query.modes import build_request, find_recipe
from ketrag_fast.types import Passage
from tests.oracles import walk_explain as oracle
from tests.oracles.lexical import shares
from tests.oracles.walk import PRODUCT
from tests.oracles.walk_parts import Arrays, WalkQuestion, vocabulary

POLAR = Path(__file__).parents[2] / "examples" / "polar"
ASKED = "In which town did the man die who led those left behind on Elephant Island?"
FILM = "In which region lies the town where the maker of the film Blue Engine was born?"


def questions() -> list[str]:
    lines = (POLAR / "queries.jsonl").read_text("utf-8").splitlines()
    found = (json.loads(line)["text"] for line in lines)
    return [text for text in found if text.isascii()][:12]  # `asked` folds no letters


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So few passages that each is a partner of all others."""
    texts = [path.read_text("utf-8").split("\n\n")[1:] for path in sorted(POLAR.glob("articles/*.md"))]
    titles = [path.stem.replace("-", " ").title() for path in sorted(POLAR.glob("articles/*.md"))]
    documents = [Document(t, text[0], t) for t, text in zip(titles, texts, strict=True)][::2][:28]
    folder = tmp_path_factory.mktemp("few") / "index"
    Index.build(documents, folder, settings=Settings(modes="auto,text,fused")).close()
    return folder


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film, its maker, the maker's town; and much that has nothing to do with it."""
    told = [
        ("Blue Engine", "Blue Engine is a film of Ada Lorne."),
        ("Ada Lorne", "Ada Lorne was born in Milan."),
        ("Milan", "Milan lies in Lombardy."),
        ("Red Engine", "Red Engine is a film."),
        *((f"Filler {k}", f"Filler {k} speaks of matter{k % 7} here.") for k in range(60)),
    ]
    folder = tmp_path_factory.mktemp("chain") / "index"
    documents = [Document(title, text, title) for title, text in told]
    Index.build(documents, folder, settings=Settings(modes="auto,text,fused")).close()
    return folder


def asked(links: Arrays, question: str) -> WalkQuestion:
    """The known parts of a question of plain words, with the weights of its keywords."""
    words = re.findall(r"[\w']+", question.lower())
    phrases = {" ".join(words[a : a + k]) for a in range(len(words)) for k in range(1, 9)}
    ids = [vocabulary(links, name) for name in ("keywords", "names", "subjects")]
    weights = shares(question, set(ids[0]))
    known = [
        [k for k, word in enumerate(v) if word in own]
        for v, own in zip(ids, (weights, phrases, phrases), strict=True)
    ]
    return WalkQuestion(*known, tuple(weights[ids[0][k]] for k in known[0]))


def reasons(passage: Passage, kind: str) -> list[dict[str, object]]:
    return [reason for reason in passage.why if kind in reason]


def test_partners_and_bridges_are_the_oracle_s(few: Path) -> None:
    partners = chains = 0
    least = PRODUCT.least_rarity
    with Index.open(few) as index:
        links, searcher = dict(index.inspect.arrays()["links"]), index._opened.searcher
        request = build_request(Settings(), find_recipe("walk"), [100])
        everything = list(range(len(searcher)))
        assert len(everything) <= 30
        for question in questions():
            known = asked(links, question)
            explained = searcher.explain(request, "walk", question, everything)
            # Units that the question does not reach are no partners.
            others = {near[0] for near, _ in explained if near is not None}
            for unit, reason in enumerate(explained):
                near, triple = reason
                if not known.keywords:
                    assert reason == (None, None)
                    continue
                assert near is not None
                assert near[0] != unit
                _same(near[2], oracle.bridges(links, known, unit, near[0], least))
                partners += 1
                worths = oracle.worths(links, known, unit, everything)
                assert near[1] == pytest.approx(worths[near[0]], abs=1e-9)
                assert near[1] >= max(worths[other] for other in others - {unit}) - 1e-9
                if triple is not None:
                    step, far, between = triple
                    assert len({unit, step[0], far}) == 3
                    _same(step[2], oracle.bridges(links, known, unit, step[0], least))
                    _same(between, oracle.bridges(links, known, step[0], far, least))
                    chains += 1
    assert partners > 100 and chains > 0


def _same(found: list[oracle.Bridge], wanted: list[oracle.Bridge]) -> None:
    assert [bridge[:3] for bridge in found] == [bridge[:3] for bridge in wanted]
    np.testing.assert_allclose([b[3] for b in found], [b[3] for b in wanted], rtol=0, atol=1e-9)


def test_the_bridge_is_named_in_words(chain: Path) -> None:
    with Index.open(chain) as index:
        plain = index.retrieve(FILM, mode="walk", budget=200)
        context = index.retrieve(FILM, mode="walk", budget=200, explain=True)
        assert context.text == plain.text
        assert [p.why for p in plain.passages] == [()] * len(plain.passages)
        milan = next(p for p in context.passages if p.title == "Milan")
        [longer] = reasons(milan, "chain")
        assert [place["title"] for place in longer["chain"]] == ["Blue Engine", "Ada Lorne"]  # type: ignore[attr-defined]
        assert longer["between"][0]["text"] == "Ada Lorne"  # type: ignore[index]
        assert longer["bridges"][0]["text"] == "Milan"  # type: ignore[index]
        assert str(longer["sentence"]).startswith(
            "linked to [2] Ada Lorne, and through it to [1] Blue Engine: "
        )
        assert all("sentence" not in reason for reason in reasons(milan, "partner"))
        maker = next(p for p in context.passages if p.title == "Ada Lorne")
        other = next(p for p in context.passages if p.title == "Blue Engine")
        [partner] = reasons(maker, "partner")
        assert partner["partner"] == {
            "unit": other.unit,
            "document": "Blue Engine",
            "title": "Blue Engine",
            "start": 0,
            "rank": other.rank,
        }
        assert partner["bridges"][0]["text"] == "Ada Lorne"  # type: ignore[index]
        said = "*Ada Lorne*, its subject, is mentioned there (in 2 of 64 passages)"
        assert str(partner["sentence"]).startswith(f"linked to [{other.rank}] Blue Engine: {said}")
        json.dumps(context.to_json())  # all of it is data


def test_what_has_nothing_to_say_says_nothing(chain: Path) -> None:
    with Index.open(chain) as index:
        for mode in ("bm25", "text", "fused"):
            context = index.retrieve(FILM, mode=mode, budget=200, explain=True)
            assert all("word" in reason for p in context.passages for reason in p.why)
        request = build_request(Settings(), find_recipe("walk"), [100])
        searcher = index._opened.searcher
        assert searcher.explain(request, "bm25", FILM, [0, 1]) == []
        assert searcher.explain(request, "no such channel", FILM, [0, 1]) == []
        assert searcher.explain(request, "walk", "zyzzyva", [0, 1]) == [(None, None)] * 2
        assert searcher.explain(request, "walk", FILM, []) == []
        with pytest.raises(Exception, match="unit 64"):
            searcher.explain(request, "walk", FILM, [64])


def test_many_questions_are_explained_each_by_itself(chain: Path) -> None:
    with Index.open(chain) as index:
        one = [index.retrieve(q, mode="walk", budget=90, explain=True) for q in (FILM, "Who is Ada Lorne?")]
        many = index.retrieve_many([FILM, "Who is Ada Lorne?"], mode="walk", budget=90, explain=True)
        assert [[p.why for p in c.passages] for c in one] == [[p.why for p in c.passages] for c in many]


def test_a_sentence_names_two_bridges() -> None:
    passage = Passage(**{**dict.fromkeys(Passage.__dataclass_fields__), "title": "A", "text": "x"})  # type: ignore[arg-type]
    place = {"unit": 1, "document": "B", "title": "B", "start": 0, "rank": 2}
    for count in (1, 2, 3, 5):
        bridges = [("keyword", f"word{k}", 3, 0.7) for k in range(count)]
        [entry] = best_pair_text(passage, ((1, 9.0, bridges), None), lambda _: (place, ""), 1000)
        one = "linked to [2] B: both mention *word0* (in 3 of 1,000 passages)"
        assert entry["sentence"] == one + (" and *word1* (in 3)" if count > 1 else "")
        assert [len(entry["bridges"]), entry["more"]] == [min(count, 3), max(count - 3, 0)]


def test_names_are_given_as_the_text_writes_them() -> None:
    assert as_written("fort ross", "At Fort  Ross, in 1812") == "Fort  Ross"
    assert as_written("o'neill", "no such name") == "o'neill"
    assert as_written("a+b", "A+B") == "A+B"
