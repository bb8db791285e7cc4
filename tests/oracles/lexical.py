"""Keywords of the walk and BM25, slow and plain: the oracle of `rust/text/src/lexical.rs` and `languages.rs`.

The stems are those of PyStemmer, which wraps the C code of the Snowball project. Letters are told from other
characters by their general category, which agrees with Rust's `char::is_alphanumeric` on the scripts that the
tests use.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise, takewhile

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


# The zeros of digits that are folded to those of ASCII.
ZEROS = (
    *(0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66),
    *(0xE50, 0xED0, 0x1040, 0x17E0),
)
# Letters whose mark is a part of them, with the plain letters for them.
PLAIN = str.maketrans(
    {
        "ß": "ss",
        "ẞ": "SS",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "þ": "th",
        "Þ": "Th",
        **{chr(zero + digit): str(digit) for zero in ZEROS for digit in range(10)},
        **dict(zip("یکہ", "يكه", strict=True)),
        **dict.fromkeys("\u02bb\u02bc\u02be\u02bf", ""),
        **dict(zip("øØłŁđðɗĐÐƊħĦıŧŦŋŊəƏɓƁƙƘ", "oOlLdddDDDhHitTnNeEbBkK", strict=True)),
    }
)
IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200d-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ARABIC = "[\u0620-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc]"
NON_JOINER = re.compile(f"(?<!{_ARABIC})\u200c|\u200c(?!{_ARABIC})")
ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\](?:[^\x07\x1b]{0,900}(?:\x07|\x1b\\))?|(?![\[\]])[ -/]*[0-~]?)"
)
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u4e00-\u9fff]"
WRAPPED = re.compile(f"(?<={_UNSPACED})(?:\r\n|\n|\r)[ \t\u3000]*(?={_UNSPACED})")


def visible(text: str) -> str:
    """Return the text without ignorable characters, escapes, and line breaks inside words."""
    return WRAPPED.sub("", IGNORED.sub("", NON_JOINER.sub("", ESCAPE.sub(" ", text))))


FRACTIONS = re.compile("[\u00bc-\u00be\u2150-\u215f\u2189]")


def fold(text: str) -> str:
    """Return the text in NFKD without combining marks, but those of syllables; й stays a letter.

    A blank is before the sign of a fraction.
    """
    folded = ""
    decomposed = "".join(
        written if written == "№" else unicodedata.normalize("NFKD", written)
        for written in FRACTIONS.sub(r" \g<0>", text)
    )
    for char in decomposed.translate(PLAIN):
        if not unicodedata.combining(char) or re.match(f"[{AFTER}]", char):
            folded += char
        elif char == BREVE and folded.endswith(("и", "И")):
            folded = folded[:-1] + ("й" if folded[-1] == "и" else "Й")
    return folded


def is_word_character(char: str) -> bool:
    """Return whether a folded character is part of a word: letters, numbers, and vowel signs."""
    return char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")


def spelled_words(text: str) -> list[str]:
    """Return the words of a text as written, with their marks, in lower case.

    A word that begins or ends within a character, such as "2" in "½", is without marks.
    """
    source = visible(text)
    # Where the characters of the text end in the folded text.
    ends = [len(fold(source[:at])) for at in range(len(source) + 1)]
    found, at = [], 0
    for within, run in groupby(fold(source), is_word_character):
        word = "".join(run)
        start, at = at, at + len(word)
        if within:
            # Marks after a letter do not change its length.
            first = max((k for k, end in enumerate(ends) if end == start), default=None)
            last = max((k for k, end in enumerate(ends) if end == at), default=None)
            whole = first is not None and last is not None
            found.append((unicodedata.normalize("NFKC", source[first:last]) if whole else word).lower())
    return found


def script_of(word: str, language: str) -> tuple[str, bool] | None:
    """Return the algorithm of the script of a word's letters, if all have the same."""
    # Outside of ASCII, vowel signs tell the script as letters do; in ASCII, signs do not ("#5").
    if word.isascii() and not any(c.isalpha() for c in word):
        return None
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
    runs = [
        (unspaced, "".join(run))
        for unspaced, run in groupby(word, lambda c: any(a <= c <= b for a, b in UNSPACED))
    ]
    for (unspaced, part), (_, following) in pairwise([*runs, (False, "")]):
        found += piece_pairs(part) if unspaced else [part][part in STOP_WORDS :]
        if following and re.fullmatch("[0-9]+", part):
            found.append(part + PIECE.findall(following)[0])
    return found


# What connects the words of a compound; a slash does so only in paths.
CONNECTED = re.compile("__?|[.&@/-]")
MOST = 16
# What may be the suffix of a file's name.
SUFFIX = "[a-z][a-z0-9]{1,4}"


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
    """Return what connects two words to a compound, or nothing."""
    dotted = all(len(word) > 1 and word[0].isalpha() for word in (first, second))
    if re.fullmatch("[0-9]+", first):  # "counts_2021.csv"
        dotted = re.fullmatch(SUFFIX, second) is not None
    lettered = first.isalpha() and second.isalpha()
    unspaced = any(a <= c <= b for c in first + second for a, b in UNSPACED)
    is_continued = gap in ("-\n", "-\r\n") and len(first) > 1 and second[0].islower()
    gap = "-" if gap in ("\u2010", "\u200c") or is_continued else gap
    if gap == " & " and re.fullmatch("[A-Z]", first) and re.fullmatch("[A-Z]", second):
        gap = "&"
    connects = CONNECTED.fullmatch(gap) and (gap != "." or dotted) and (gap != "&" or lettered)
    return gap[0] if connects and not unspaced else ""


@dataclass
class Compound:
    """A run of words with further forms. `words` are as written without accents."""

    words: list[str]
    links: list[str]
    symbols: tuple[str, str]
    numbers: list[str]
    prose: bool
    named: bool
    kept: list[str]

    @property
    def is_word(self) -> bool:
        """Whether its forms are parts of a single word."""
        return len(self.words) == 1 and self.symbols == ("", "")

    def added(self) -> tuple[list[str], list[str]]:
        """Return the wholes and the parts that the compound adds to its words, in lower case."""
        lower = [word.lower() for word in self.words]
        wholes, smaller = list(self.numbers), []
        if len(lower) > 1 and not wholes and not any(c.isalpha() for c in "".join(lower)):
            return [], []
        if not wholes:
            for separators in ("&@./-", "/@"):
                cuts = [0, *(k for k in range(1, len(lower)) if self.links[k] in separators), len(lower)]
                wholes += ["".join(lower[a:b]) for a, b in pairwise(cuts)]
            wholes.append("".join(lower))
            if not all(symbol == "" for symbol in self.symbols):
                is_fraction = self.symbols[0] == "." and lower[0][0] in "0123456789"
                wholes.append(f"{'0.' if is_fraction else self.symbols[0]}{''.join(lower)}{self.symbols[1]}")
            measures = [re.fullmatch("([0-9]*)μ(.*)", word) for word in lower]
            wholes += [
                f"{m[1]}u{m[2]}"
                for m in measures
                if m is not None and f"u{m[2]}" in UNITS and (m[1] or not self.is_word)
            ]
            smaller = [
                part for word in self.words for part in [*map(str.lower, parts(word)), *number_parts(word)]
            ]
        fits = [word for word in dict.fromkeys([*wholes, *smaller]) if word not in lower]
        fits = [word for word in fits if len(word) > 1 or re.fullmatch("[0-9]", word)]
        return [word for word in fits if word in wholes], [word for word in fits if word not in wholes]


NAMES = frozenset(
    ["may", "will", "us", "it", "who", "her", "him", "them", "you", "now", "once", "can", "just"]
)
UNITS = frozenset(
    [
        "b",
        "kb",
        "mb",
        "gb",
        "tb",
        "pb",
        "kib",
        "mib",
        "gib",
        "tib",
        "bit",
        "mm",
        "cm",
        "m",
        "km",
        "nm",
        "ft",
        "in",
        "mi",
        "mg",
        "g",
        "kg",
        "lb",
        "oz",
        "ml",
        "cl",
        "dl",
        "l",
        "w",
        "kw",
        "mw",
        "gw",
        "kwh",
        "wh",
        "v",
        "kv",
        "mv",
        "a",
        "ma",
        "mah",
        "hz",
        "khz",
        "mhz",
        "ghz",
        "ms",
        "min",
        "h",
        "fps",
        "dpi",
        "am",
        "pm",
        "um",
        "ug",
        "ul",
        "us",
    ]
)
# Ends of English words after an apostrophe, and what loses its vowel before one.
ENCLITICS = frozenset(["s", "t", "d", "ll", "re", "ve", "m"])
ELIDED = frozenset(
    [
        *("l", "d", "j", "m", "t", "s", "c", "n", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu"),
        *("un", "dell", "all", "nell", "dall", "sull", "coll", "quell", "quest"),
    ]
)


def number_parts(word: str) -> list[str]:
    """Return the number and the unit of a word, and the beginnings of a long hexadecimal word."""
    word = word.lower()
    found = []
    unit = re.fullmatch("([0-9]+)(μ?[a-z]+)", word)
    if unit is not None and unit[2].replace("μ", "u") in UNITS:
        found += [unit[1], unit[2]]
    if re.fullmatch("(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,128}", word):
        found += [word[:length] for length in range(7, min(13, len(word)))]
    return found


def _number(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a number, whose groups do not end within a word or before a vowel."""
    return re.compile(pattern.replace(r"(?![^\W_])", rf"(?![^\W_]|[{AFTER}])"))


IBAN = _number(r"[A-Z]{2}[0-9]{2}(?: [0-9A-Z]{4}(?![^\W_])){2,8}(?: [0-9]{1,3}(?![^\W_]))?")
PHONE = _number(r"[0-9]+(?:(?: |-|\) | \(|/)[0-9]+(?![^\W_])){1,8}")
CARD = _number(r"[0-9]{4}(?: [0-9]{4}(?![^\W_])){3}(?!(?: |-|\) | \(|/)[0-9]+(?![^\W_]))")
GROUPED = _number(r"[0-9]+(?:[-\u2010](?:[0-9]+[xX]?|[xX])(?![^\W_])){1,8}")
DOTTED = _number(r"[0-9]{3}\.[0-9]{3}\.[0-9]{4}(?![^\W_]|\.[0-9]+(?![^\W_]))")
THOUSANDS = _number(r"[1-9][0-9]{0,2}(?:([,.'\u2019 ])[0-9]{3}(?![^\W_])(?:\1[0-9]{3}(?![^\W_])){0,7})")
LAKHS = _number(r"[1-9][0-9]?(?:,[0-9]{2}(?![^\W_])){1,8},[0-9]{3}(?![^\W_])(?!,[^\W_])")
VERSION = _number(r"[vV]?[0-9]+(?:\.[0-9]+(?![^\W_])){1,8}")
PAIR = r"[0-9a-fA-F]{2}(?![^\W_])"
HARDWARE = _number(rf"{PAIR}([:-]){PAIR}(?:\1{PAIR}){{0,7}}")
SIZE = _number(r"[0-9]+(?:(?: ?\u00d7 ?|(?: [xX] ))[0-9]+(?![^\W_])){1,8}")
FRACTION = _number(r"([0-9]{1,2})[/\u2044]([0-9]{1,2})(?![^\W_])(?![/\u2044][^\W_])")
COMMA = _number(r"(?:[0-9]+,[0-9]{1,2}|0,[0-9]+)(?![^\W_])(?!,[^\W_])")
DEGREES = _number(r"([0-9]+)(?:°| °|° )([cCfF])(?![^\W_])")
DIGITS = _number(r"[0-9]+(?![^\W_])")
POWER = _number(r"([^\W_]+)\^([0-9]+)(?![^\W_])")
MEASURED = _number(r"([0-9]+) ([^\W_]+)")


def number_at(folded: str, start: int) -> tuple[int, list[str]]:
    """Return the end of the number of several words that begins at `start`, and its forms; or `start`."""

    def joined(match: re.Match[str], group: int = 0) -> str:
        return "".join(c for c in match[group].lower() if is_word_character(c))

    address = HARDWARE.match(folded, start)
    if address is not None and len(joined(address)) in (12, 16):
        return address.end(), [joined(address)]
    power = POWER.match(folded, start)
    if power is not None:
        return power.end(), [joined(power)]
    iban = IBAN.match(folded, start)
    if iban is not None and len(iban[0].split()) > 3:
        return iban.end(), [joined(iban)]
    if DIGITS.match(folded, start):
        is_phone = folded[:start].endswith(("+", "(")) or folded[start] == "0"
        found = GROUPED.match(folded, start)
        spaced = PHONE.match(folded, start)
        if spaced is not None and is_phone and (found is None or spaced.end() > found.end()):
            found = spaced
        else:
            found = DOTTED.match(folded, start) or found
        found = CARD.match(folded, start) or found
        is_years = found is not None and re.fullmatch("[12][0-9]{3}\\D+[12][0-9]{3}", found[0])
        if found is not None and not is_years and 7 <= len(joined(found)) <= 17:
            wholes = [joined(found)]
            rest = joined(re.match("[0-9]+(.*)", found[0]), 1)
            if folded[:start].endswith(("+", "(")) and 7 <= len(rest) <= 17:
                wholes += ["0" + rest] * (folded[start - 1] == "+" and rest[0] != "0") + [rest]
            return found.end(), wholes
    size = SIZE.match(folded, start)
    if size is not None:
        return size.end(), ["x".join(re.findall("[0-9]+", size[0]))]
    fraction = FRACTION.match(folded, start)
    if fraction is not None and not re.search(r"[^\W_][/\u2044]\Z", folded[:start]):
        return fraction.end(), [f"{fraction[1]}/{fraction[2]}"]
    thousands = THOUSANDS.match(folded, start)
    if thousands is not None:
        return thousands.end(), [thousands[0], joined(thousands)] if thousands[1] == "." else [
            joined(thousands)
        ]
    lakhs = LAKHS.match(folded, start)
    if lakhs is not None:
        return lakhs.end(), [joined(lakhs)]
    comma = COMMA.match(folded, start)
    if comma is not None and not re.search(r"[^\W_],\Z", folded[:start]):
        return comma.end(), [comma[0].replace(",", ".")]
    version = VERSION.match(folded, start)
    if version is not None:
        whole = version[0].lower()
        return version.end(), [whole, *([whole[1:]] if whole[0] == "v" else [])]
    unit = MEASURED.match(folded, start)
    if unit is not None:
        plain = re.sub("^μ", "u", unit[2].lower())
        is_unit = plain in UNITS and unit[2].lower() not in ("a", "am", "in", "pm", "us")
        if is_unit or unit[2] in ("C", "F"):
            return unit.end(), [unit[1] + plain]
    degrees = DEGREES.match(folded, start)
    if degrees is not None:
        return degrees.end(), [degrees[1] + degrees[2].lower()]
    return start, []


def symbols_of(folded: str, start: int, end: int) -> tuple[str, str]:
    """Return the symbols that belong to the beginning and the end of the words from `start` to `end`."""
    before = re.search("(?:^|[\\s(\\[{\"'`\u201c\u2018\u00ab])([.$@#]|--)\\Z", folded[:start])
    first = "".join(takewhile(is_word_character, folded[start:]))
    last = "".join(takewhile(is_word_character, reversed(folded[:end])))
    is_number = re.fullmatch("[0-9]+", first) is not None and before is not None and before[1] in ".#"
    is_marked = before is not None and (is_spaced(first[:1]) or is_number)
    after = re.match(r"(\+\+|#)(?![+#]|[^\W\d_])", folded[end:])
    is_name = is_spaced(last) and len(last) <= 16
    percent = re.fullmatch("[0-9]+", last) and re.match(" ?%", folded[end:])
    return (
        before[1] if before is not None and is_marked else "",
        "%" if percent else after[1] if after is not None and is_name else "",
    )


def is_spaced(word: str) -> bool:
    """Return whether a word has only letters, of scripts with blanks between words."""
    return word.isalpha() and not any(a <= c <= b for c in word for a, b in UNSPACED)


def compounds(text: str) -> list[Compound]:
    """Return the runs of words that may have further forms; other words are runs of one."""
    folded = fold(visible(text))
    words, at = [], 0
    for within, run in groupby(folded, is_word_character):
        length = len(list(run))
        words += [(at, at + length)] if within else []
        at += length
    spelled = [folded[start:end] for start, end in words]
    gaps = ["", *(folded[a:b] for (_, a), (b, _) in pairwise(words))]
    links = ["", *(connection(a, gap, b) for (a, b), gap in zip(pairwise(spelled), gaps[1:], strict=True))]
    found: list[Compound] = []
    first = 0

    def end_of(chars: str) -> int:
        rest = range(first + 1, min(first + MOST, len(words)))
        return next((k for k in rest if not links[k] or links[k] not in chars), rest.stop)

    while first < len(words):
        number_end, numbers = number_at(folded, words[first][0])
        prose = False
        if file_end := file_name_end(spelled, links, first, end_of):
            end = file_end
            numbers = numbers if number_end == words[end - 1][1] else []
        elif numbers:
            end = next(k for k in range(first + 1, len(words) + 1) if words[k - 1][1] == number_end)
        elif initials := initials_end(folded, words, spelled, gaps, first):
            end, prose = initials, True
        else:
            end, prose = chain_at(folded, words, spelled, gaps, links, first, end_of)
        span = words[first][0], words[end - 1][1]
        is_single = end == first + 1
        symbols = ("", "") if numbers else symbols_of(folded, *span)
        if numbers and symbols_of(folded, *span)[1] == "%":
            numbers = [form for number in numbers for form in (f"{number}%", number)]
        named = is_single and symbols == ("", "") and is_named(spelled, gaps, first)
        kept = [spelled[k].lower() for k in range(first, end) if not is_elided(spelled, gaps, k)]
        found.append(Compound(spelled[first:end], links[first:end], symbols, numbers, prose, named, kept))
        first = end
    return found


def has_apostrophe(spelled: list[str], gaps: list[str], k: int) -> bool:
    """Return whether an apostrophe before word `k` is part of a name or word."""
    if gaps[k] in ('"', "\u05f4"):
        return all(re.match("[\u05d0-\u05ea]", word) for word in spelled[k - 1 : k + 1])
    two = spelled[k - 1 : k + 1]
    unspaced = any(a <= c <= b for c in "".join(two) for a, b in UNSPACED)
    return (
        gaps[k] in ("'", "\u2019")
        and all(word.isalpha() for word in two)
        and not unspaced
        and two[1].lower() not in ENCLITICS
        and not is_elided(spelled, gaps, k - 1)
    )


def is_elided(spelled: list[str], gaps: list[str], k: int) -> bool:
    """Return whether word `k` lost its vowel before the next word, and is not a part of a name."""
    if k + 1 >= len(spelled) or gaps[k + 1] not in ("'", "\u2019") or spelled[k].lower() not in ELIDED:
        return False
    is_name = spelled[k][0].isupper() and spelled[k + 1][0].isupper()
    return spelled[k + 1][0].lower() in "aeiouyh" and not is_name


def initials_end(
    folded: str, words: list[tuple[int, int]], spelled: list[str], gaps: list[str], first: int
) -> int:
    """Return the end of the initials that begin at word `first`, or 0."""

    def is_letter(word: str) -> bool:
        return len(word) == 1 and word.isalpha() and not any(a <= word <= b for a, b in UNSPACED)

    if not is_letter(spelled[first]) and spelled[first] != "Ph":
        return 0
    rest = range(first + 1, min(first + MOST, len(words)))
    end = next((k for k in rest if gaps[k] != "." or not is_letter(spelled[k])), rest.stop)
    is_closed = spelled[end - 1].isupper() or folded[words[end - 1][1] :].startswith(".")
    is_abbreviation = (spelled[first], spelled[end - 1]) in (("e", "g"), ("i", "e"))
    return end if end > first + 1 and is_closed and not is_abbreviation else 0


def glued(question: str) -> list[tuple[int, str]]:
    """Return the pairs of letters and digits that a blank separates.

    Each is the number of its first word, and both words as one.
    """
    runs = [(within, "".join(run)) for within, run in groupby(fold(visible(question)), is_word_character)]
    numbers = [sum(within for within, _ in runs[:at]) for at in range(len(runs))]
    found = []
    for at in range(len(runs) - 2):
        (within, a), (_, gap), (_, b) = runs[at : at + 3]
        kinds = [
            "number" if re.fullmatch("[0-9]+", word) else "name" if word.isalpha() else "" for word in (a, b)
        ]
        unspaced = any(first <= c <= last for c in a + b for first, last in UNSPACED)
        if within and gap == " " and sorted(kinds) == ["name", "number"] and not unspaced:
            found.append((numbers[at], (a + b).lower()))
    return found


def file_name_end(spelled: list[str], links: list[str], first: int, end_of: Callable[[str], int]) -> int:
    """Return the end of a file's name with a hyphen after its first word, "2024-03-05.md", or 0."""
    if links[first + 1 : first + 2] != ["-"]:
        return 0
    end = end_of("_.&@-")
    is_file = links[end - 1] == "." and re.fullmatch(SUFFIX, spelled[end - 1])
    return end if is_file and links[end : end + 1] != ["/"] else 0


def chain_at(
    folded: str,
    words: list[tuple[int, int]],
    spelled: list[str],
    gaps: list[str],
    links: list[str],
    first: int,
    end_of: Callable[[str], int],
) -> tuple[int, bool]:
    """Return the end of the run of connected words from `first` on, and whether it is prose."""
    end = end_of("_.&@")
    link = links[end] if end < len(words) else ""
    if link not in ("/", "-"):
        if end == first + 1:
            rest = range(end, min(first + MOST, len(words)))
            last = next((k for k in rest if not has_apostrophe(spelled, gaps, k)), rest.stop)
            return (last, True) if last > end else (end, False)
        return end, False
    long = end_of("_.&@/-")
    slashes, dots = links[first + 1 : long].count("/"), links[first + 1 : long].count(".")
    if slashes > 1 or (slashes == 1 and (dots or folded[: words[first][0]].endswith("/"))):
        return long, False
    long = end_of("_.&@-")
    before, after = folded[: words[first][0]], folded[words[long - 1][1] :]
    is_option = re.search(r"(^|[^\w-]|_)--\Z", before)
    is_numbered = spelled[first].isalpha() and spelled[long - 1].isnumeric()
    if is_option or is_numbered or before.endswith("`") or after.startswith("="):
        return long, False
    hyphened = end_of("-")
    if hyphened > end and all(word.isalpha() for word in spelled[first:hyphened]):
        return hyphened, True
    return end, False


def is_named(spelled: list[str], gaps: list[str], k: int) -> bool:
    """Return whether capitals show that word `k` is a name, even if it is a function word."""

    def has_lower(k: int) -> bool:
        return 0 <= k < len(spelled) and any(c.islower() for c in spelled[k])

    word = spelled[k]
    if not word[0].isupper() or len(word) < 2:
        return False
    if not has_lower(k):
        return has_lower(k - 1) or has_lower(k + 1)
    return k > 0 and gaps[k] == " " and spelled[k - 1][0].islower() and word.lower() in NAMES


PAIRS = (
    ("doctor", "dr"),
    ("professor", "prof"),
    ("january", "jan"),
    ("february", "feb"),
    ("april", "apr"),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sept"),
    ("september", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
    ("department", "dept"),
    ("government", "govt"),
    ("university", "univ"),
    ("approximately", "approx"),
    ("appointment", "appt"),
    ("versus", "vs"),
)
PLURALS = re.findall(
    r"(\w+)/(\w+)",
    (
        "man/men woman/women child/children foot/feet tooth/teeth goose/geese mouse/mice ox/oxen "
        "wolf/wolves half/halves calf/calves leaf/leaves loaf/loaves thief/thieves sheaf/sheaves "
        "shelf/shelves elf/elves hoof/hooves scarf/scarves knife/knives wife/wives life/lives "
        "midwife/midwives analysis/analyses crisis/crises thesis/theses hypothesis/hypotheses "
        "diagnosis/diagnoses synthesis/syntheses ellipsis/ellipses criterion/criteria "
        "phenomenon/phenomena bacterium/bacteria nucleus/nuclei fungus/fungi cactus/cacti "
        "stimulus/stimuli radius/radii matrix/matrices vertex/vertices index/indices "
        "appendix/appendices larva/larvae alga/algae"
    ),
)


def other_forms(word: str, words: int) -> list[str]:
    """Return the other forms of a word: plurals only in a question of at most five words."""
    pairs = [*PAIRS, *(PLURALS if words <= 5 else [])]
    return [other for pair in pairs for one, other in (pair, pair[::-1]) if one == word]


def shares(question: str, known: Container[str]) -> dict[str, float]:
    """Return the known keywords of an English question with their weights.

    The parts of a compound of which the index knows a whole have a tenth of the weight of a word. Words of
    prose that are also written as one have a fifth of the weight in this form. The other form of a word that
    is also written short, or of a noun with an irregular plural, has a quarter if the index knows the word
    itself.
    The words of "RFC 2616" have half their weight if the index knows "rfc2616".
    """
    found: dict[str, float] = {}

    def known_of(words: list[str]) -> list[str]:
        return [key for word in words for key in keywords_of_word(word, "english") if key in known]

    words = spelled_words(question)
    for word in words:
        for key in known_of(other_forms(fold(word).lower(), len(words))):
            found[key] = 0.25 if known_of([word]) else 1.0
    halved: set[int] = set()
    for at, whole in glued(question):
        for key in known_of([whole]):
            found[key] = 1.0
            halved |= {at, at + 1}
    ends = 0
    for compound in compounds(question):
        first, ends = ends, ends + len(compound.words)
        wholes, smaller = compound.added()
        lower = [word.lower() for word in compound.words]
        whole_words = [word.lower() for word in compound.words if any(c.isupper() for c in word[1:])]
        if compound.is_word and smaller:
            whole_words = lower
        is_compound = bool(whole_words or wholes)
        if compound.prose:
            has_words = all(len(word) > 1 and (known_of([word]) or word in STOP_WORDS) for word in lower)
            weights = [
                *(
                    (key, 0.5 if at in halved else 1.0)
                    for at, word in enumerate(lower, first)
                    for key in known_of([word] if word in compound.kept else [])
                ),
                *((key, 0.2 if has_words else 1.0) for key in known_of(wholes + smaller)),
            ]
        else:
            of_parts = [word for word in compound.kept if word not in whole_words] + smaller
            some, others = known_of(whole_words + wholes), known_of(of_parts)
            share = 0.1 / max(len(others), 1) if is_compound and some else 1.0
            own = 0.5 if len(lower) == 1 and first in halved else 1.0
            share = share if is_compound else own
            weights = [*((key, own) for key in some), *((key, share) for key in others)]
        if compound.named and lower[0] in STOP_WORDS and singular(lower[0]) in known:
            weights.append((singular(lower[0]), 1.0))
        for key, weight in weights:
            found[key] = max(found.get(key, 0.0), weight)
    return found


def keywords(text: str, language: str = "english") -> list[str]:
    """Return the keywords of a text, with repetitions: of its words, then what names in code add."""
    found: list[str] = []
    for written in spelled_words(text):
        found += variants_of_word(written, language)
    for compound in compounds(text):
        for words in compound.added():
            found += [key for word in words for key in keywords_of_word(word, language)]
        if compound.named and not keywords_of_word(compound.words[0].lower(), language):
            found += keywords_of_word(compound.words[0].lower(), language, kept=True)
    return found


def variants_of_word(written: str, language: str) -> list[str]:
    """Return the keywords of a word with its marks, then those without marks or without what is attached."""
    forms = keywords_of_word(written, language)
    bare = fold(written).lower()
    if not forms or (language != "english" and bare in function_words(language)):
        return forms
    if forms[0].endswith("@vi"):
        forms.append(f"{bare}@vi")
    elif "@" in forms[0] and not written.isascii():
        forms += keywords_of_word(bare, language, kept=True)
    return list(dict.fromkeys(forms)) if "@" in forms[0] else forms


def keywords_of_word(written: str, language: str, *, kept: bool = False) -> list[str]:
    """Return the keywords of a word in lower case, with its marks. `kept`: function words have one, too."""
    word = fold(written).lower()
    script = script_of(word, language)
    if not word or (not kept and language != "english" and word in function_words(language)):
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
    return [] if word in STOP_WORDS and not kept else [singular(word)]


def core_keywords(text: str, language: str = "english") -> list[str]:
    """Return the keywords that the core finds."""
    return _core.lexical_keywords(text, language)
