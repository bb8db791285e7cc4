"""Tokens of scripts without spaces: pairs of characters, of syllables, and words of dictionaries, by plain BM25.

    python benches/segmentation.py [--sets xquad-zh,jsquad-ja,xquad-th,iapp-th,help-km]

First place and first five over whole passages with bm25s (pip install bm25s jieba fugashi unidic-lite pythainlp; a package
that is missing is skipped). `benches/language_sets.py` makes the sets. "the core" is what the product uses.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from itertools import groupby

import bm25s

from common import DATA, header, require_data, table
from ketrag_fast import _core
from ketrag_fast.lab.eval import load_dataset
from languages import DEPTH, places
from walk_quality import passages

SETS = ("xquad-zh", "jsquad-ja", "xquad-th", "iapp-th", "help-km")
Tokens = Callable[[str], list[str]]


def words(parts: Iterable[str]) -> list[str]:
    """Return the parts that contain a letter or digit, normalised."""
    normal = (unicodedata.normalize("NFKC", part).lower() for part in parts)
    return [part for part in normal if any(map(str.isalnum, part))]


def characters(size: int) -> Tokens:
    """Return a tokeniser into overlapping runs of `size` characters."""

    def is_inside(char: str) -> bool:
        return char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")

    def split(text: str) -> list[str]:
        found: list[str] = []
        for inside, run in groupby(unicodedata.normalize("NFKC", text).lower(), is_inside):
            part = "".join(run)
            if inside and not part.isascii():
                found += [part[at : at + size] for at in range(max(1, len(part) - size + 1))]
            elif inside:
                found.append(part)
        return found

    return split


def tokenisers(language: str) -> dict[str, Tokens]:
    """Return the tokenisers of a language by name."""
    found: dict[str, Tokens] = {
        "pairs of characters": characters(2),
        "triples of characters": characters(3),
        "the core": lambda text: _core.lexical_keywords(text, language),
    }
    if language == "zh" and find_spec("jieba"):
        import jieba

        found["jieba"] = lambda text: words(jieba.cut_for_search(text))
    if language == "ja" and find_spec("fugashi"):
        import fugashi

        tagger = fugashi.Tagger()
        found["fugashi"] = lambda text: words(word.surface for word in tagger(text))
    if language == "th" and find_spec("pythainlp"):
        from pythainlp.tokenize import word_tokenize

        found["PyThaiNLP"] = lambda text: words(word_tokenize(text, engine="newmm"))
    return found


def row(name: str, tokens: Tokens) -> list[str]:
    """Return the places for a set, and the number of tokens of its passages."""
    documents, questions = passages(name), load_dataset(require_data(name)).questions
    ids: Sequence[str] = [document.id for document in documents]
    corpus = [tokens(f"{document.title}\n{document.text}") for document in documents]
    model = bm25s.BM25(k1=1.2, b=0.75)
    model.index(corpus, show_progress=False)
    order, _ = model.retrieve([tokens(q.text) for q in questions], k=DEPTH, show_progress=False)
    found = places([[ids[at] for at in hits] for hits in order.tolist()], questions)
    return [*found, f"{sum(map(len, corpus)):,}"]


def main() -> None:
    """Print a row for each set and tokeniser."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", default=",".join(SETS))
    sets = [name for name in parser.parse_args().sets.split(",") if (DATA / name).is_dir()]
    header(
        "Scripts without spaces",
        ["% of questions whose passage is in first place, and among the first five."],
    )
    rows = [
        [name, label, *row(name, tokens)]
        for name in sets
        for label, tokens in tokenisers(name.rpartition("-")[2]).items()
    ]
    table(["set", "tokens", "1", "5", "tokens in all passages"], rows)


if __name__ == "__main__":
    main()
