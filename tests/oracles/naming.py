"""Names of the walk, slow and plain: the oracle of `rust/text/src/names.rs`.

A name is a run of words that have a capital. If a text has no capital, or the script of its language has
none, each word that is not a function word counts as capitalised.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

import numpy as np

from ketrag_fast import _core
from ketrag_fast.kernels.text import pack
from tests.oracles.lexical import STOP_WORDS, UNSPACED, fold, function_words, is_word_character, visible
from tests.oracles.walk_parts import vocabulary

_OPENERS = (
    "a according after all although among an another are as at because before between born both by "
    "currently despite did does during each early first following for from he how however in is it "
    "its later located many name number on once one originally other second several she since that "
    "the there these they this though three today two under upon was we what when where which while "
    "who why with within without you "
)
OPENERS = frozenset(_OPENERS.split())
_CONNECTORS = "of de la le du des von van der den di da del della y al el bin ibn the"
CONNECTORS = frozenset(_CONNECTORS.split())
GAPS = frozenset((" ", "-", " - ", ". ", ".", "'", " & "))
CASELESS = frozenset(
    (
        *("arabic", "persian", "hebrew", "yiddish", "hindi", "nepali", "tamil", "korean", "thai", "chinese"),
        *("amharic", "bengali", "gujarati", "georgian", "japanese", "khmer", "kannada", "lao", "malayalam"),
        *("burmese", "punjabi", "sinhala", "telugu"),
    )
)
LAYOUT = frozenset(
    [
        "table",
        "tables",
        "list",
        "lists",
        "note",
        "notes",
        "figure",
        "figures",
        "fig",
        "chapter",
        "section",
        "page",
        "appendix",
        "step",
        "example",
        "contents",
        "day",
        "week",
    ]
)
CALENDAR = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ]
)
MOST, MOST_CAPITAL, LEAST_LOWER = 8, 256, 8
Word = tuple[str, int, int]


def is_name_word(word: str, language: str, *, lower: bool) -> bool:
    """Return whether a word may be part of a name."""
    if word[0].isupper():
        return True
    if word[0].islower():
        fits = lower
    else:
        spaced = not any(first <= word[0] <= last for first, last in UNSPACED)
        fits = language in CASELESS and word[0].isalpha() and spaced
    known = STOP_WORDS | OPENERS | (frozenset() if language == "english" else function_words(language))
    return fits and word.lower() not in known


def is_number(word: str) -> bool:
    """Return whether all characters are numbers by category; `str.isnumeric` counts Han numerals too."""
    return all(unicodedata.category(c).startswith("N") for c in word)


def opens_sentence(text: str, start: int) -> bool:
    """Return whether a sentence begins at a character."""
    return re.search(r"[.!?:\n][\"”’)\]]*\s*[\"“(\[]*\Z", text[max(0, start - 5) : start]) is not None


def name_at(text: str, words: list[Word], first: int, language: str, *, lower: bool) -> int:
    """Return the last word of the name that begins at word `first`."""
    caseless = lower or language in CASELESS
    most = MOST if caseless else MOST_CAPITAL

    def fits(k: int) -> bool:
        return is_name_word(words[k][0], language, lower=lower)

    last = first
    while last + 1 < len(words):
        gaps = [text[words[k][2] : words[k + 1][1]] for k in range(last, min(last + 5, len(words) - 1))]
        after = last + 1
        if gaps[0] not in GAPS or (gaps[0] == ". " and len(words[last][0]) > 3):
            break
        if not fits(after) and not is_number(words[after][0]):
            while (
                after < len(words)
                and after - last <= 3
                and words[after][0] in CONNECTORS
                and gaps[after - last - 1] == " "
            ):
                after += 1
            over = after > last + 1 and words[last + 1][0] != "the" and after < len(words)
            if not over or not fits(after) or gaps[after - last - 1] != " ":
                break
        if after - first >= most:
            break
        last = after
    return last


def within_number(text: str, words: list[Word], k: int) -> bool:
    """Return whether a number is a part of a date or of another number."""

    def joined(k: int) -> bool:
        return text[words[k][2] : words[k + 1][1]] in ("-", "/", ".", ":", ",")

    before = k > 0 and joined(k - 1) and is_number(words[k - 1][0])
    return before or (k + 1 < len(words) and joined(k) and is_number(words[k + 1][0]))


def words_of(text: str) -> list[Word]:
    """Return the words of a folded text with their first and last character."""
    found: list[Word] = []
    for within, run in groupby(enumerate(text), lambda pair: is_word_character(pair[1])):
        if within:
            part = list(run)
            found.append(("".join(c for _, c in part), part[0][0], part[-1][0] + 1))
    return found


def names(text: str, language: str = "english") -> set[str]:
    """Return the names of a text without a title."""
    folded = fold(visible(text))
    words = words_of(folded)
    small = sum(word[0].islower() for word, _, _ in words)
    lower = not any(c.isupper() for c in folded) and small >= LEAST_LOWER
    found, k = set(), 0
    while k < len(words):
        word, start, _ = words[k]
        year = len(word) == 4 and is_number(word)
        fits = is_name_word(word, language, lower=lower)
        if not year and not fits:
            k += 1
            continue
        follows = k + 1 < len(words) and is_name_word(words[k + 1][0], language, lower=lower)
        if year and not (follows and folded[words[k][2] : words[k + 1][1]] == " "):
            if not within_number(folded, words, k):
                found.add(word)
            k += 1
            continue
        last = name_at(folded, words, k, language, lower=lower)
        kept = [w.lower() for w, _, _ in words[k : last + 1]]
        while kept and kept[0] in STOP_WORDS:
            kept = kept[1:]
        common = word.lower() in OPENERS and (k == 0 or opens_sentence(folded, start))
        small = all(is_number(w) and len(w) < 4 for w in kept[1:])
        no_name = kept and ((kept[0] in CALENDAR and len(kept) == 1) or (kept[0] in LAYOUT and small))
        if not no_name and (len(kept) > 1 or (kept and len(kept[0]) > 1 and not common)):
            found.add(" ".join(kept))
        k = last + 1
    return found


def core_names(text: str, language: str = "english") -> set[str]:
    """Return the names that the core finds."""
    nowhere = np.zeros(2, np.uint64)
    links = _core.links_build(*pack([""]), *pack([text]), *pack([]), nowhere, language=language)
    return set(vocabulary(links, "names"))
