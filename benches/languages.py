"""First place and first five on the parallel questions of XQuAD, in twelve languages and without a model.

    python benches/languages.py [--sets xquad-ar,jsquad-ja]
    python benches/data/make_language_sets.py    # makes sets of other languages

Sets whose folder `$KETRAG_DATA` lacks are skipped. A set ends with the code of its language. Next to it bm25s
with the Snowball stemmer of the language (pip install bm25s PyStemmer). A second table shows how many passages
of these sets, and of the English development sets, get the right language.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import bm25s
import Stemmer

from common import DATA, header, require_data, table
from ketrag_fast import Index, Settings, _core
from ketrag_fast.eval import Question, load_dataset
from walk import passages

MODES = ("bm25", "walk")
BUDGET = 12_000
DEPTH = 5
# The Snowball stemmer that bm25s uses; it has none for the others.
STEMMERS = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "hi": "hindi",
    "pl": "polish",
    "ro": "romanian",
    "ru": "russian",
    "tr": "turkish",
}
PARALLEL = ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")
SETS = (
    *(f"xquad-{language}" for language in PARALLEL),
    *("jsquad-ja", "iapp-th", "help-el", "help-ja", "help-km", "help-ko", "help-pl", "help-tr", "help-vi"),
)
UNSPACED = ("ja", "km", "th", "zh")
ENGLISH = ("musique-dev", "2wiki-dev", "hotpotqa-dev")


def places(ranked: Sequence[Sequence[str]], questions: Sequence[Question]) -> list[str]:
    """Return the percentages of questions with a gold passage in first place and among the first five."""
    hits = [
        [bool(question.gold & set(ids[:most])) for most in (1, DEPTH)]
        for ids, question in zip(ranked, questions, strict=True)
    ]
    return [f"{100 * sum(column) / len(hits):.1f}" for column in zip(*hits, strict=True)]


def product(name: str, questions: Sequence[Question]) -> dict[str, list[str]]:
    """Index the passages of a set and return the places for each mode."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = require_data(name)
        with Index.build(
            folder / "corpus.jsonl",
            Path(temporary) / "index",
            settings=Settings(modes=MODES, language="auto"),
        ) as index:
            return {mode: places(_ranked(index, questions, mode), questions) for mode in MODES}


def peer(language: str, texts: Sequence[str], ids: Sequence[str], questions: Sequence[Question]) -> list[str]:
    """Return the places of bm25s with the stemmer of the language if there is one; not where words have no spaces."""
    if language in UNSPACED:
        return ["-", "-"]
    name = STEMMERS.get(language)
    stem = Stemmer.Stemmer(name).stemWords if name else list

    def tokens(strings: Sequence[str]) -> list[list[str]]:
        return [stem(re.findall(r"\w+", text.lower())) for text in strings]

    model = bm25s.BM25()
    model.index(tokens(texts), show_progress=False)
    order, _ = model.retrieve(tokens([q.text for q in questions]), k=DEPTH, show_progress=False)
    return places([[ids[at] for at in row] for row in order.tolist()], questions)


def detection(names: Sequence[str]) -> list[list[str]]:
    """Return a row for each set: passages, percentage in the right language, passages for each second."""
    sets = [(name, name.rpartition("-")[2]) for name in names]
    sets += [(name, "en") for name in ENGLISH]
    rows = []
    for name, language in sets:
        texts = [document.text for document in passages(name)]
        started = time.process_time()
        right = sum(_core.detect_language(text) == language for text in texts)
        took = time.process_time() - started
        rows.append([name, f"{len(texts):,}", f"{100 * right / len(texts):.2f}", f"{len(texts) / took:,.0f}"])
    return rows


def _ranked(index: Index, questions: Sequence[Question], mode: str) -> list[list[str]]:
    """Return the documents of the context of each question, best first."""
    contexts = (index.retrieve(q.text, mode=mode, budget=BUDGET) for q in questions)
    return [list(dict.fromkeys(p.document for p in context.passages)) for context in contexts]


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", default=",".join(SETS))
    args = parser.parse_args()
    sets = [name for name in args.sets.split(",") if (DATA / name).is_dir()]
    header(
        "Languages",
        [
            "% of questions whose passage is in first place (1) or among the first five (5). Without a model, with",
            "language=auto. XQuAD has the same 240 passages and 1,190 questions in every language.",
            "bm25s: version "
            f"{bm25s.__version__}, words of `\\w+` in lower case with the Snowball stemmer of the language if it has one, whole",
            "passages.",
            "One question is 0.08 points; differences below one point are noise.",
        ],
    )
    rows = []
    for name in sets:
        language = name.rpartition("-")[2]
        questions = load_dataset(require_data(name)).questions
        documents = passages(name)
        texts = [f"{d.title}\n{d.text}" for d in documents]
        own = product(name, questions)
        row = [name, str(len(texts)), str(len(questions)), *own["bm25"], *own["walk"]]
        rows.append([*row, *peer(language, texts, [d.id for d in documents], questions)])
    measured = [f"{system} {place}" for system in ("bm25", "walk", "bm25s") for place in (1, DEPTH)]
    table(["set", "passages", "questions", *measured], rows)
    table(["passages of", "number", "right language, %", "passages a second"], detection(sets))


if __name__ == "__main__":
    main()
