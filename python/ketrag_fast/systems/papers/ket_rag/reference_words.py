"""The tokenisation of the reference implementation of KET-RAG, for `ket-rag:reference`.

It tokenises twice: lower-case words for co-occurrence, and raw tokens for keywords. Sentences are found
within each unit; the text to embed is their tokens separated by spaces.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import BackendMissing, InputError
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared.published_vectors import texts_after_titles
from ketrag_fast.systems.shared.rows import csr_out, strings, strings_out, word_rows
from ketrag_fast.systems.shared.stored_rows import languages_of
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

PUNKT = Path("tokenizers", "punkt_tab", "english")
PUNKT_FILES = ("abbrev_types.txt", "collocations.tab", "sent_starters.txt", "ortho_context.tab")
STOP_WORDS = Path("corpora", "stopwords", "english")
_HINT = "`python -m nltk.downloader punkt_tab stopwords` installs them; $NLTK_DATA names another folder"


@dataclass(frozen=True, slots=True)
class NltkData:
    """The tokenizer (parameters of a `punkt_tab` model) and stop words. `digest` hashes all files."""

    tokenizer: _core.Punkt
    stop_words: tuple[str, ...]
    digest: str


def find() -> Path:
    """Return the first of NLTK's usual folders that has all files.

    Raises BackendMissing if there is none.
    """
    for folder in _places():
        if all(file.is_file() for file in _files(folder)):
            return folder
    raise BackendMissing(
        "ket-rag:reference needs NLTK's punkt_tab and stopwords (English), which are in none of its usual "
        "folders",
        hint=_HINT,
    )


def digest() -> str:
    """Return a hash of the content of the files."""
    folder = find()
    state = hashlib.sha256()
    for file in _files(folder):
        state.update(hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()


def load() -> NltkData:
    """Load the data. Raises BackendMissing if files are missing, InputError if they are invalid."""
    folder = find()
    *parameters, words = map(_read, _files(folder))
    return NltkData(_core.Punkt(*parameters), tuple(words.split()), digest())


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def _files(folder: Path) -> list[Path]:
    return [*(folder / PUNKT / name for name in PUNKT_FILES), folder / STOP_WORDS]


def _places() -> list[Path]:
    """Return the folders that NLTK searches."""
    named = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    prefix = Path(sys.prefix)
    usual = [Path.home(), prefix, prefix / "share", prefix / "lib"]
    system = ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    return [*named, *(place / "nltk_data" for place in [*usual, *map(Path, system)])]


Arrays = dict[str, NDArray[Any]]


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return a hash of NLTK's data, because their content may change while the folder stays the same."""
    return digest()


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the words of units for the KNN graph and their keywords; the title comes before each text."""
    units, words = inputs["units"], inputs["words"]
    titles = unpack(*strings(units, "document_titles"))
    heads = (titles[document] for document in units["unit_document"].tolist())
    bodies = unpack(*strings(units, "unit_texts"))
    texts = [f"{head}\n{text}" if head else text for head, text in zip(heads, bodies, strict=True)]
    data = load()
    found = {**cooccurrence(data, texts, context), **keywords(data, texts, context)}
    sentences, vocabulary = strings(found, "keyword_texts"), strings(words, "vocabulary")
    known = word_rows(sentences, vocabulary, settings.language, languages_of(words), context.threads)[:2]
    return {**found, **csr_out("keyword_text_words", known)}


def sentences(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the vectors of the sentences of keywords, from a model."""
    texts = strings(inputs["reference_words"], "keyword_texts")
    model = context.model
    assert model is not None  # noqa: S101 - the fitted space has no such stage
    context.report.unit = "tokens"
    stream, count = texts_after_titles(None, None, texts), len(texts[1]) - 1
    return {"keyword_text_vectors": model.embed(stream, count, len(texts[0]), context.report)}


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
