"""Keywords of the walk and BM25, slow and plain: the oracle of `rust/text/src/lexical.rs` and `languages.rs`.

The stems are those of PyStemmer, which wraps the C code of the Snowball project. Letters are told from other
characters by their general category, which agrees with Rust's `char::is_alphanumeric` on the scripts that the
tests use.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import dropwhile, groupby, pairwise

import Stemmer

from ketrag_fast import _core

# The scripts with a stemmer: first and last letter, algorithm, whether it reads the marks that folding drops.
SCRIPTS = (
    ("\u0370", "\u03ff", "greek", False),
    ("\u0400", "\u052f", "russian", False),
    ("\u0531", "\u058f", "armenian", False),
    ("\u0600", "\u06ff", "arabic", False),
    ("\u0750", "\u077f", "arabic", False),
    ("\u0900", "\u097f", "hindi", False),
    ("\u0b80", "\u0bff", "tamil", True),
)
UNSPACED = (
    ("\u0e00", "\u0eff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u3005", "\u3007"),
    ("\u3041", "\u30ff"),
    ("\u4e00", "\u9fff"),
)
# Vowels before their consonant; then vowels and marks after it.
BEFORE = "\u0e40-\u0e44\u0ec0-\u0ec4"
AFTER = (
    "\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    "\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd"
)
PIECE = re.compile(f"[{BEFORE}]*.[{AFTER}]*", re.DOTALL)
LATIN = frozenset(
    (
        *("basque", "catalan", "danish", "dutch", "finnish", "french", "german", "hungarian", "indonesian"),
        *("italian", "norwegian", "portuguese", "romanian", "spanish", "swedish", "turkish", "vietnamese"),
    )
)
# Vietnamese has no stemmer: its words keep their marks.
TONES = "\u0300\u0301\u0303\u0309\u0323"
CODES = {name: code for code, name in _core.languages()}
BREVE = "\u0306"
PREFIXES = ("وال", "بال", "كال", "فال", "لل", "ال")
SUFFIXES = ("ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي")
STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "done",
        "for",
        "from",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "himself",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "may",
        "me",
        "might",
        "more",
        "most",
        "must",
        "my",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "same",
        "shall",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "themselves",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "upon",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "also",
        "s",
        "t",
        "d",
        "ll",
        "re",
        "ve",
        "m",
    ]
)


@cache
def stemmer(algorithm: str) -> Stemmer.Stemmer:
    """Return the Snowball stemmer of a language."""
    return Stemmer.Stemmer(algorithm)


def fold(text: str) -> str:
    """Return the text in NFKD without combining marks, but those of syllables; й stays a letter."""
    folded = ""
    for char in "".join(unicodedata.normalize("NFKD", written) for written in text):
        if not unicodedata.combining(char) or re.match(f"[{AFTER}]", char):
            folded += char
        elif char == BREVE and folded.endswith(("и", "И")):
            folded = folded[:-1] + ("й" if folded[-1] == "и" else "Й")
    return folded


def is_word_character(char: str) -> bool:
    """Return whether a folded character is part of a word: letters, numbers, and vowel signs."""
    return char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")


def spelled_words(text: str) -> list[str]:
    """Return the words of a text as written, with their marks, in lower case."""
    composed = unicodedata.normalize("NFKC", text)
    runs = groupby(composed, lambda c: is_word_character(c) or bool(unicodedata.combining(c)))
    words = ("".join(run).lower() for within, run in runs if within)
    # A mark without a base before it is not part of the word.
    return ["".join(dropwhile(unicodedata.combining, word)) for word in words]


def script_of(word: str, language: str) -> tuple[str, bool] | None:
    """Return the algorithm of the script of a word's letters, if all have the same."""
    latin = (("\0", "\u024f", language, True),) if language in LATIN else ()
    found = {
        next(((name, marks) for first, last, name, marks in (*latin, *SCRIPTS) if first <= c <= last), None)
        for c in word
        if not c.isnumeric()
    }
    return found.pop() if len(found) == 1 else None


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the folded function words of a language other than English."""
    entries = [] if language == "vietnamese" else _core.stop_words(language)[0]
    return frozenset(fold(word).lower() for entry in entries for word in spelled_words(entry))


def without_affixes(word: str) -> str:
    """Return an Arabic word without article, conjunction and common endings (light10)."""
    word = word.replace("\u0640", "").replace("ى", "ي").replace("ة", "ه")
    if word.startswith("و") and len(word) > 3:
        word = word[1:]
    prefix = next((p for p in PREFIXES if word.startswith(p) and len(word) - len(p) >= 2), "")
    word = word.removeprefix(prefix)
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 2:
            word = word.removesuffix(suffix)
    return word


def with_tone(word: str) -> str:
    """Return a Vietnamese word with the mark of its tone at the end."""
    parts = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", re.sub(f"[{TONES}]", "", parts)) + re.sub(f"[^{TONES}]", "", parts)


def singular(word: str) -> str:
    """Return the word without a plural s."""
    if not word.endswith("s") or len(word) <= 3 or word.endswith(("ss", "us", "is")):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def piece_pairs(run: str) -> list[str]:
    """Return overlapping pairs of characters, or in Thai, Lao, Burmese, Khmer of consonants with vowels."""
    pieces = PIECE.findall(run)
    return ["".join(two) for two in pairwise(pieces)] or pieces


def pairs(word: str) -> list[str]:
    """Return the pairs of pieces of unspaced scripts, and the other runs whole."""
    found: list[str] = []
    for unspaced, run in groupby(word, lambda c: any(a <= c <= b for a, b in UNSPACED)):
        part = "".join(run)
        found += piece_pairs(part) if unspaced else [part][part in STOP_WORDS :]
    return found


def keywords(text: str, language: str = "english") -> list[str]:
    """Return the keywords of a text, in order, with repetitions."""
    found: list[str] = []
    for written in spelled_words(text):
        word = fold(written).lower()
        script = script_of(word, language)
        if not word or (language != "english" and word in function_words(language)):
            continue
        if script is not None and script[0] == "vietnamese":
            forms = (with_tone(written), word.replace("đ", "d"))
            found += [f"{form}@vi" for form in dict.fromkeys(forms)]
        elif script is not None:
            name, marks = script
            spelled = written if marks else word
            stem = stemmer(name).stemWord(without_affixes(spelled) if name == "arabic" else spelled)
            code = f"@{CODES[name]}" if name in LATIN else ""
            found.append((fold(stem) or word) + code)
        elif any(a <= c <= b for c in word for a, b in UNSPACED):
            found += pairs(word)
        elif word not in STOP_WORDS:
            found.append(singular(word))
    return found


def core_keywords(text: str, language: str = "english") -> list[str]:
    """Return the keywords that the core finds."""
    return _core.lexical_keywords(text, language)
