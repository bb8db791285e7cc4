"""Names in code are found by their parts and as a whole, in code and in prose."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.kernels import links as kernel
from tests.oracles import lexical as oracle
from tests.oracles import walk, walk_parts
from tests.oracles.walk_local import Local

UTIL = '''def snake_case_name(x):
    """Convert CamelCase to snake_case."""
    return x

class HttpRetryPolicy:
    MAX_ATTEMPTS = 7
    def back_off(self, n): return 2 ** n
'''
OTHERS = {
    "server.md": "The HTTP server answers requests. A request has a method, and HTTP has many methods.",
    "payments.md": "Somebody may retry a failed payment on the next day. Retry it once, and write to us.",
    "travel.md": "The travel policy covers trains and hotels. A policy is reviewed each year by the board.",
    "case.md": "A case is closed by its owner. The name of the case is shown in the list of cases.",
}
MODES = ("walk", "bm25")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    (folder / "docs").mkdir()
    for name, text in {"util.py": UTIL, **OTHERS}.items():
        (folder / "docs" / name).write_text(text, "utf-8")
    Index.build(folder / "docs", folder / "index", settings=Settings(modes="walk,bm25")).close()
    return folder / "index"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "question",
    [
        "HTTP retry policy",
        "HttpRetryPolicy",
        "httpretrypolicy",
        "http_retry_policy",
        "what does http-retry-policy do?",
        "client.HttpRetryPolicy",
        "max attempts",
        "snake case name",
        "snakeCaseName",
    ],
)
def test_code_is_found_by_the_parts_of_its_names(mixed: Path, mode: str, question: str) -> None:
    with Index.open(mixed) as index:
        first = index.retrieve(question, mode=mode).passages[0]
    assert "HttpRetryPolicy" in first.text


NAMED = ["HttpRetryPolicy", "httpRetryPolicy", "http_retry_policy", "http.retry.policy"]
NAMED += ["`http-retry-policy`", "--http-retry-policy"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("written", NAMED)
def test_prose_with_a_name_is_found_in_every_style(tmp_path: Path, mode: str, written: str) -> None:
    texts = [*OTHERS.values(), f"Set {written} before the first call, or the defaults apply."]
    documents = [Document(str(k), text) for k, text in enumerate(texts)]
    with Index.build(documents, tmp_path / "index", settings=Settings(modes=mode)) as index:
        for asked in ("HTTP retry policy", *NAMED):
            assert index.retrieve(asked, mode=mode).passages[0].document == "4"


@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize(("mode", "more"), [("walk", 0), ("bm25", 0), ("bm25", 60)])
def test_a_whole_name_comes_before_its_parts(tmp_path: Path, mode: str, count: int, more: int) -> None:
    parts = "An HTTP policy. Retry, retry: the HTTP retry policy of HTTP servers is a retry policy."
    named = "The class HttpRetryPolicy is configured in the settings of the client. "
    documents = [Document(f"parts{k}", f"{parts} Number {k}.") for k in range(count)]
    documents += [Document("named", named + " ".join(f"setting{k} limit{k}" for k in range(more)))]
    documents += [Document(f"other{k}", f"Filler {k} speaks of matter{k % 7} here.") for k in range(50)]
    with Index.build(documents, tmp_path / "index", settings=Settings(modes=mode)) as index:
        found = [passage.document for passage in index.retrieve("HttpRetryPolicy", mode=mode).passages]
    assert found[0] == "named" and "parts0" in found


def test_prose_has_the_keywords_of_its_words() -> None:
    text = (
        "A well-known e-mail of the U.S. office, e.g. version 3.14 of 1_000 pages, mentions McDonald's PhDs, "
        "URLs, sha256, LaTeX and a mother-in-law--well-meaning. Ph.D. at 10.30 a.m."
    )
    assert _core.lexical_keywords(text) == [
        *("well", "known", "e", "mail", "u", "office", "e", "g", "version", "3", "14", "1", "000", "page"),
        *("mention", "mcdonald", "phd", "url", "sha256", "latex", "mother", "law", "well", "meaning", "ph"),
        *("10", "30", "wellknown", "email", "us", "3.14", "motherinlaw", "wellmeaning", "phd"),
        *("10.30", "am"),
    ]


CODE = st.lists(
    st.sampled_from(
        [
            *"aZ_.-`=79 éä日Ж",
            "--",
            "__",
            "Http",
            "HTTP",
            "retry",
            "policies",
            "of",
            "Mc",
            "Data",
            "utf8",
            "Страна",
        ]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(CODE, st.sampled_from(["english", "german", "russian", "vietnamese"]))
def test_any_code_has_the_keywords_of_the_plain_version(text: str, language: str) -> None:
    assert _core.lexical_keywords(text, language) == oracle.keywords(text, language)


NAMES = ["HttpRetryPolicy", "http_retry", "retry", "http", "policies", "os.path", "`max-tries`", "the", "Ada"]
SENTENCE = st.lists(st.sampled_from(NAMES), min_size=1, max_size=7).map(" ".join)


def known(links: kernel.Links, question: str) -> walk_parts.WalkQuestion:
    """What the index knows of a question, with the weights of its keywords."""
    keywords, names, subjects = (
        walk_parts.vocabulary(links, name) for name in ("keywords", "names", "subjects")
    )
    shares = oracle.shares(question, set(keywords))
    words = re.findall("[a-z]+", question.lower())
    phrases = {" ".join(words[a : a + k]) for a in range(len(words)) for k in range(1, 9)}
    ids = sorted(keywords.index(word) for word in shares)
    return walk_parts.WalkQuestion(
        ids,
        [k for k, name in enumerate(names) if name in phrases],
        [k for k, subject in enumerate(subjects) if subject in phrases],
        tuple(shares[keywords[k]] for k in ids),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(SENTENCE, min_size=1, max_size=3), min_size=1, max_size=30), SENTENCE)
def test_ranks_of_code_equal_those_of_the_slow_form(units: list[list[str]], question: str) -> None:
    args = [""] * len(units), [". ".join(unit) for unit in units], units
    links = kernel.build_links(*args, threads=1)
    for name, array in kernel.build_links(*args, threads=3).items():
        assert array.tobytes() == links[name].tobytes()
    words = walk_parts.vocabulary(links, "keywords")
    own = [oracle.keywords(". ".join(unit)) for unit in units]
    assert words == sorted({word for unit in own for word in unit})
    plain = [[word for part in unit for word in oracle.spelled_words(part)] for unit in units]
    assert links["unit_length"].tolist() == [
        sum(len(oracle.keywords_of_word(word, "english")) for word in unit) for unit in plain
    ]
    asked = known(links, question)
    [(ids, scores)] = kernel.bm25(links, [question], 1000)
    direct = walk_parts.bm25(links, asked.keywords, asked.weights)
    assert set(ids.tolist()) == set((direct > 0).nonzero()[0].tolist())
    assert abs(scores - direct[ids]).max(initial=0.0) < 1e-9
    if asked.keywords:
        lengths = np.log1p([len(text) for text in args[1]])
        [(ids, scores)] = kernel.walk(links, [question], 1000, lengths=lengths)
        order, values = walk.walk(links, asked, lengths, sizes=walk.PRODUCT, local=Local())
        assert sorted(ids.tolist()) == sorted(order)
        np.testing.assert_allclose(scores[: len(values)], values, rtol=1e-7, atol=1e-7)


def test_a_reason_names_the_parts(mixed: Path) -> None:
    with Index.open(mixed) as index:
        first = index.retrieve("HTTP retry policy", mode="bm25", explain=True).passages[0]
    assert {entry["word"]: entry["count"] for entry in first.why} == {"http": 1, "retry": 1, "policy": 1}
