"""The tokenisation of the reference implementation of KET-RAG, for `ket-rag:reference`.

It has two tokenisations: lower-case words for co-occurrence, and raw tokens for keywords. Sentences are found
within each unit; the text to embed is their tokens separated by spaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.ket_rag.nltk_data import NltkData, digest, load
from ketrag_fast.systems.shared.document_languages import languages_of
from ketrag_fast.systems.shared.rows import csr_out, strings, strings_out, word_rows
from ketrag_fast.systems.shared.vectors import embed_parts
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

Arrays = dict[str, NDArray[Any]]


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return a hash of NLTK's data, because their content may change while the folder stays the same."""
    return digest(settings.nltk_data)


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the words of units for the KNN graph and their keywords; the title comes before each text."""
    units, words = inputs["units"], inputs["words"]
    titles = unpack(*strings(units, "document_titles"))
    heads = (titles[document] for document in units["unit_document"].tolist())
    bodies = unpack(*strings(units, "unit_texts"))
    texts = [f"{head}\n{text}" if head else text for head, text in zip(heads, bodies, strict=True)]
    data = load(settings.nltk_data)
    found = {**cooccurrence(data, texts, context), **keywords(data, texts, context)}
    sentences, vocabulary = strings(found, "keyword_texts"), strings(words, "vocabulary")
    known = word_rows(sentences, vocabulary, settings.language, languages_of(words), context.threads)[:2]
    return {**found, **csr_out("keyword_text_words", known)}


def sentences(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the vectors of the sentences of keywords, from a model."""
    texts = strings(inputs["reference_words"], "keyword_texts")
    return embed_parts({"keyword_text_vectors": (None, None, texts)}, context)


def cooccurrence(data: NltkData, texts: Sequence[str], context: StageContext) -> Arrays:
    """Return `cooc_*`, the distinct word ids of each text, and `cooc_count`, the number of words."""
    word_lists = data.tokenizer.cooccurrence(
        list(data.stop_words), list(texts), threads=context.threads, report=context.report
    )
    number: dict[str, int] = {}
    rows = [sorted({number.setdefault(word, len(number)) for word in words}) for words in word_lists]
    return {**csr_out("cooc", _rows(rows)), "cooc_count": np.array([len(number)], np.uint64)}


def keywords(data: NltkData, units: Sequence[str], context: StageContext) -> Arrays:
    """Return `keyword_vocabulary` (in byte order), `keyword_units`, `keyword_sentences`, `keyword_counts`.

    `keyword_counts` is parallel to `keyword_sentences`: how often the keyword occurs in each. The sentences'
    texts are `keyword_texts`, in the order of the units.
    """
    unit_sentences = data.tokenizer.keywords(
        list(data.stop_words), list(units), threads=context.threads, report=context.report
    )
    texts: list[str] = []
    in_units: dict[str, list[int]] = {}
    in_sentences: dict[str, list[tuple[int, int]]] = {}
    for unit, sentences in enumerate(unit_sentences):
        context.check()
        for text, occurrences in sentences:
            for word, count in Counter(occurrences).items():
                held = in_units.setdefault(word, [])
                if held[-1:] != [unit]:
                    held.append(unit)
                in_sentences.setdefault(word, []).append((len(texts), count))
            texts.append(text)
    words = sorted(in_units, key=lambda word: word.encode("utf-8", "surrogatepass"))
    return {
        **strings_out("keyword_vocabulary", pack(words)),
        **csr_out("keyword_units", _rows([in_units[word] for word in words])),
        **csr_out("keyword_sentences", _rows([[at for at, _ in in_sentences[w]] for w in words])),
        "keyword_counts": np.array([n for w in words for _, n in in_sentences[w]], np.uint32),
        **strings_out("keyword_texts", pack(texts)),
    }


def _rows(rows: Sequence[Iterable[int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    lists = [list(row) for row in rows]
    indptr = np.zeros(len(lists) + 1, np.uint64)
    np.cumsum([len(row) for row in lists], out=indptr[1:])
    return indptr, np.array([x for row in lists for x in row], np.uint32)
