"""Plain versions of the text kernels: oracles for tests, slow and short.

Word boundaries here are UAX #29 written down with general categories, which agrees with the
property tables on the scripts that the tests use.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from tests.oracles import lexical

# Thai, Lao, Myanmar, Khmer, kana and Han: written without blanks between words.
UNPARTED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u3005-\u3007\u3021-\u3029\u3038-\u303b"
    "\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff"
    "\uaa60-\uaa7f\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff]+"
)


def _kind(char: str) -> str:
    """L letter, N digit, _ joiner, X mark that extends, or the character itself."""
    category = unicodedata.category(char)
    if category in ("Mn", "Me", "Mc", "Cf"):
        return "X"
    if category[0] == "L":
        return "L"
    return {"Nd": "N", "Pc": "_"}.get(category, char)


def _joins(before: str, middle: str, after: str) -> bool:
    letters = before == after == "L" and middle in ".':·’"
    return letters or (before == after == "N" and middle in ".',;’")


def _segments(text: str) -> list[str]:
    """The words of a text without unparted scripts."""
    kinds = [_kind(c) for c in text]
    words: list[str] = []
    start = 0
    while start < len(text):
        if kinds[start] not in "LN_":
            start += 1
            continue
        end, last = start + 1, kinds[start]
        while end < len(text):
            if kinds[end] == "X":
                end += 1
            elif kinds[end] in "LN_":
                last = kinds[end]
                end += 1
            else:
                after = next((i for i in range(end + 1, len(text)) if kinds[i] != "X"), None)
                if after is None or not _joins(last, text[end], kinds[after]):
                    break
                end, last = after + 1, kinds[after]
        words.append(text[start:end])
        start = end
    return words


def _is_letter(char: str) -> bool:
    return char.isalnum() and not re.match(f"[{lexical.AFTER}]", char)


def words(text: str, stop: Sequence[str]) -> list[str]:
    """The keywords of a text in order (specs 0.4)."""
    copy = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    at = 0
    for run in UNPARTED.finditer(copy):
        found += _segments(copy[at : run.start()])
        found += lexical.piece_pairs(run.group())
        at = run.end()
    found += _segments(copy[at:])
    lower = (word.lower() for word in found)
    return [w for w in lower if any(_is_letter(c) for c in w) and w.replace("’", "'") not in stop]


def keywords(text: str, language: str, stop: Sequence[str]) -> list[str]:
    """The keywords of a text in a language: stems without function words, except in English."""
    if language in ("english", "none"):
        return words(text, stop if language == "english" else ())
    found: list[str] = []
    for token in words(text, ()):
        if UNPARTED.search(token):
            found.append(token)
        else:
            found += [stem for part in re.split("['’]", token) for stem in _stems(part, language)]
    return found


def _stems(word: str, language: str) -> list[str]:
    folded = lexical.fold(word)
    if not any(c.isalnum() for c in folded) or folded in lexical.function_words(language):
        return []
    script = lexical.script_of(folded, language)
    if script is None:
        return [folded]
    name, marks = script
    spelled = word if marks else folded
    if name == "vietnamese":
        return [lexical.with_tone(word) + "@vi"]
    stem = lexical.stemmer(name).stemWord(lexical.without_affixes(spelled) if name == "arabic" else spelled)
    code = f"@{lexical.CODES[name]}" if name in lexical.LATIN else ""
    return [(lexical.fold(stem) or folded) + code]


def vocabulary(
    title_words: Sequence[list[str]], unit_words: Sequence[list[str]]
) -> tuple[list[str], list[dict[int, int]]]:
    """Distinct words by UTF-8 bytes, and for each unit {word id: how often}, its title's included."""
    counts = [Counter([*title, *own]) for title, own in zip(title_words, unit_words, strict=True)]
    known = sorted({word for row in counts for word in row}, key=lambda w: w.encode())
    ids = {word: i for i, word in enumerate(known)}
    return known, [{ids[word]: row[word] for word in row} for row in counts]
