"""Keywords of the walk and BM25, slow and plain: the oracle of `rust/text/src/lexical.rs` and `languages.rs`.

The stems are those of PyStemmer, which wraps the C code of the Snowball project. Letters are told from other
characters by their general category, which agrees with Rust's `char::is_alphanumeric` on the scripts that the
tests use.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
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


# What connects the words of a name in code; a hyphen does so only if the text around it shows code.
CONNECTED = re.compile("__?|[.-]")
MOST = 16


def parts(word: str) -> list[str]:
    """Return the parts of a word in camel case, or nothing."""
    cuts = [0]
    for at in range(1, len(word)):
        before, ahead = word[at - 1], word[at + 1 : at + 3]
        begins = (
            before.islower()
            or (before.isnumeric() and ahead[:1].islower())
            or (before.isupper() and len(ahead) == 2 and ahead[0].islower() and ahead[1].islower())
        )
        if word[at].isupper() and begins:
            cuts.append(at)
    found = [word[a:b] for a, b in pairwise([*cuts, len(word)])]
    is_name = 1 < len(found) <= MOST and found[0] != "Mc" and len(word.encode()) <= 64
    return found if is_name and any(sum(c.isalpha() for c in part) >= 3 for part in found) else []


def connection(first: str, gap: str, second: str) -> str:
    """Return what connects two words to a name in code, or nothing."""
    dotted = all(len(word) > 1 and word[0].isalpha() for word in (first, second))
    unspaced = any(a <= c <= b for c in first + second for a, b in UNSPACED)
    connects = CONNECTED.fullmatch(gap) and (gap != "." or dotted) and not unspaced
    return gap[0] if connects else ""


def connected_words(text: str) -> list[tuple[list[str], list[str]]]:
    """Return the runs of words that may be one name; each word has what connects it to the one before it."""
    folded = fold(text)
    words, at = [], 0
    for within, run in groupby(folded, is_word_character):
        length = len(list(run))
        words += [(at, at + length)] if within else []
        at += length
    spelled = [folded[start:end] for start, end in words]
    links = [
        connection(spelled[k - 1], folded[words[k - 1][1] : words[k][0]], spelled[k]) if k else ""
        for k in range(len(words))
    ]
    found: list[tuple[list[str], list[str]]] = []
    first = 0
    while first < len(words):

        def end_of(chars: str, first: int = first) -> int:
            rest = range(first + 1, min(first + MOST, len(words)))
            return next((k for k in rest if not links[k] or links[k] not in chars), rest.stop)

        end, long = end_of("_."), end_of("_.-")
        before, after = folded[: words[first][0]], folded[words[long - 1][1] :]
        is_option = re.search(r"(^|[^\w-]|_)--\Z", before)
        is_numbered = spelled[first].isalpha() and spelled[long - 1].isnumeric()
        if is_option or is_numbered or before.endswith("`") or after.startswith("="):
            end = long
        found.append((spelled[first:end], links[first:end]))
        first = end
    return found


def added_by(name: list[str], links: list[str]) -> tuple[list[str], list[str]]:
    """Return the wholes and the parts that a name in code adds to its words, in lower case."""
    wholes = []
    if len(name) > 1 and any(c.isalpha() for c in "".join(name)):
        starts = [k for k, link in enumerate(links) if not k or link != "_"]
        runs = [name[a:b] for a, b in pairwise([*starts, len(name)])]
        wholes = ["".join(word.lower() for word in run) for run in [*runs, name]]
    smaller = [part.lower() for word in name for part in parts(word)]
    own = [word.lower() for word in name]
    new = [word for word in dict.fromkeys([*wholes, *smaller]) if word not in own and len(word) > 1]
    return [word for word in new if word in wholes], [word for word in new if word not in wholes]


def shares(question: str, known: Container[str]) -> dict[str, float]:
    """Return the known keywords of an English question with their weights.

    The parts of a name of which the index knows a whole have a tenth of the weight of a word, together.
    """
    found: dict[str, float] = {}
    for name, links in connected_words(question):
        wholes, smaller = added_by(name, links)
        whole_words = [word.lower() for word in name if any(c.isupper() for c in word[1:])]
        is_name = whole_words or (len(name) > 1 and any(c.isalpha() for c in "".join(name)))
        of_parts = [word.lower() for word in name if word.lower() not in whole_words] + smaller

        def known_of(words: list[str]) -> list[str]:
            return [key for word in words for key in keywords_of_word(word, "english") if key in known]

        some, others = known_of(whole_words + wholes), known_of(of_parts)
        share = 0.1 / max(len(others), 1) if is_name and some else 1.0
        for key, weight in [*((key, 1.0) for key in some), *((key, share) for key in others)]:
            found[key] = max(found.get(key, 0.0), weight)
    return found


def keywords(text: str, language: str = "english") -> list[str]:
    """Return the keywords of a text, with repetitions: of its words, then what names in code add."""
    found: list[str] = []
    for written in spelled_words(text):
        forms = keywords_of_word(written, language)
        if forms and forms[0].endswith("@vi"):
            bare = fold(written).lower().replace("đ", "d")
            forms = list(dict.fromkeys([*forms, f"{bare}@vi"]))
        found += forms
    for name, links in connected_words(text):
        for words in added_by(name, links):
            found += [key for word in words for key in keywords_of_word(word, language)]
    return found


def keywords_of_word(written: str, language: str) -> list[str]:
    """Return the keywords of a word in lower case, with its marks."""
    word = fold(written).lower()
    script = script_of(word, language)
    if not word or (language != "english" and word in function_words(language)):
        return []
    if script is not None and script[0] == "vietnamese":
        return [f"{with_tone(written)}@vi"]
    if script is not None:
        name, marks = script
        spelled = written if marks else word
        stem = stemmer(name).stemWord(without_affixes(spelled) if name == "arabic" else spelled)
        code = f"@{CODES[name]}" if name in LATIN else ""
        return [(fold(stem) or word) + code]
    if any(a <= c <= b for c in word for a, b in UNSPACED):
        return pairs(word)
    return [] if word in STOP_WORDS else [singular(word)]


def core_keywords(text: str, language: str = "english") -> list[str]:
    """Return the keywords that the core finds."""
    return _core.lexical_keywords(text, language)
