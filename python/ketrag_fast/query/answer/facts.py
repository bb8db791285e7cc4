"""The facts of a text: its numbers, names and other keywords, in a form that can be compared.

A number has one form however it is written (`1,893` and `1893`, `twenty-eight` and `28`, `6.0` and `6`). A
keyword has one form for the endings of its language. A negation reaches the next keywords of its clause.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from functools import lru_cache
from typing import Final, Literal

from ketrag_fast import _core
from ketrag_fast.records import dataclass, replace

Kind = Literal["number", "name", "word"]

_PIECE: Final = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)*)(?:st|nd|rd|th)?(?![^\W_])"
    r"|(?P<word>[^\W_]+(?:['’][^\W_]+)*)"
    r"|(?P<stop>[;:.!?()\n|](?=\s|$)|,(?=\s)|[。！？；，、])"
)
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")
"""Characters of scripts without blanks between words, where each keyword is a pair of characters."""
_POSSESSIVE: Final = re.compile(r"['’]s?$")
_PLAIN: Final = str.maketrans("øłđßæœı", "olds" + "aoi")


def _words(text: str) -> list[str]:
    return text.split()


_SMALL: Final = {
    word: value
    for value, word in enumerate(
        _words(
            "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        ),
        2,
    )
}
_TENS: Final = {
    word: 10 * value
    for value, word in enumerate(_words("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
_FEW: Final = frozenset(map(str, range(13)))
_NEGATIONS: Final = {
    "en": frozenset(_words("not no never none nobody nothing nowhere neither nor without cannot hardly")),
    "de": frozenset(_words("nicht kein keine keinen keiner keinem nie niemand nichts ohne weder noch")),
    "fr": frozenset(_words("pas jamais sans aucun aucune rien personne ni")),
    "es": frozenset(_words("no nunca sin ningún ninguna nada nadie ni")),
    "it": frozenset(_words("non mai senza nessun nessuna niente né")),
    "nl": frozenset(_words("niet geen nooit zonder niemand niets noch")),
}
_AGAIN: Final = frozenset(_words("nor noch ni né"))
"""Negations that continue one: "neither ... nor"."""
_AFTER_NEGATION: Final = frozenset(_words("only other longer more less later"))
"""Words after which a negation denies nothing: "not only", "no other ship"."""
_REACH: Final = 3
"""Keywords that a negation reaches."""
_PREPOSITIONS: Final = frozenset(
    _words(
        "about above across after against along among around at before behind below between beyond by for "
        "during from in inside into near of off on onto outside over since through to toward towards under "
        "until up upon via with within"
    )
)
_JOINS: Final = frozenset(_words("and but while whereas although because und et y e"))
"""Words that begin a clause."""
_EMPTY: Final = _PREPOSITIONS | frozenset(
    _words(
        "yes also always can could may might must shall should would will did does do done has have had was "
        "were been being is are am its their them they there then than this that these those who whom whose "
        "which what when where while one ones it he she his her him you your we our i my me us be and or but "
        "if so such very just still too as an a the"
    )
)
"""Words that state nothing, although an index may have them as keywords."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A number, a name or another keyword of a text.

    Attributes:
        keys: Its forms; two facts are the same if they share one.
        text: The word as written, in lower case.
        clause: Number of its clause, from 0.
        denial: Number of the negation that reaches it, 0 for none.
        link: The last preposition between the fact before it and this one: "by" in "directed by Spielberg".
    """

    kind: Kind
    keys: frozenset[str]
    text: str
    clause: int
    denial: int
    link: str

    @property
    def is_small(self) -> bool:
        """Whether it is a number up to twelve, of which every text has some."""
        return bool(self.keys & _FEW)


def facts_of(
    text: str,
    languages: Sequence[int] = (),
    known: Container[str] = frozenset(),
    *,
    language: str = "en",
) -> list[Fact]:
    """Return the facts of a text in order.

    Args:
        text: A sentence, or several.
        languages: Numbers of the index's languages; none if all texts are English.
        known: Names in lower case. A capital at the beginning of a sentence makes no other word a name.
        language: Code of the text's language. In German, where nouns have capitals, only several in a row
            are a name.

    Examples:
        >>> [(fact.kind, *fact.keys) for fact in facts_of("They left Oslo with twenty-eight men.")]
        [('word', 'left'), ('name', 'oslo'), ('number', '28'), ('word', 'men')]
    """
    numbers, negations = tuple(languages), _NEGATIONS.get(language, frozenset())
    facts: list[Fact] = []
    clause = reach = denials = 0
    is_first, link = True, ""
    tens: tuple[int, int] | None = None  # value and end of "twenty" in "twenty-eight"
    for piece in _PIECE.finditer(text):
        if piece["stop"]:
            clause, reach = clause + 1, 0
            is_first = piece["stop"] in ".!?:\n|。！？"
            continue
        low = (piece["number"] or piece["word"]).lower()
        if low in negations or low.endswith(("n't", "n’t")):
            denials += low not in _AGAIN
            reach, is_first = _REACH, False
            continue
        if low in _AFTER_NEGATION:
            reach = 0
        clause += low in _JOINS
        kind, groups = _read(piece, low, numbers, known, is_first=is_first)
        is_first = False
        if tens is not None and low in _SMALL and _SMALL[low] < 10 and piece.start() == tens[1] + 1:
            facts.pop()
            groups = [frozenset((str(tens[0] + _SMALL[low]),))]
        tens = (_TENS[low], piece.end()) if low in _TENS else None
        facts += [Fact(kind, keys, low, clause, denials if reach else 0, link) for keys in groups]
        if groups:
            reach, link = max(reach - 1, 0), ""
        elif low in _PREPOSITIONS:
            link = low
    return _without_nouns(facts) if language == "de" else facts


def _without_nouns(facts: Sequence[Fact]) -> list[Fact]:
    """Return facts in which a word with a capital is a name only next to another one."""

    def is_pair(first: int) -> bool:
        pair = facts[max(first, 0) : first + 2]
        return len(pair) == 2 and all(fact.kind == "name" for fact in pair) and not pair[1].link

    return [
        replace(fact, kind="word")
        if fact.kind == "name" and not is_pair(at - 1) and not is_pair(at)
        else fact
        for at, fact in enumerate(facts)
    ]


def _read(
    piece: re.Match[str], low: str, languages: tuple[int, ...], known: Container[str], *, is_first: bool
) -> tuple[Kind, list[frozenset[str]]]:
    """Return the kind of a word or number, and its keys; several if its script has no blanks."""
    if piece["number"]:
        return "number", [frozenset((number(piece["number"]),))]
    value = _SMALL.get(low) or _TENS.get(low)
    if value is not None:
        return "number", [frozenset((str(value),))]
    word = _POSSESSIVE.sub("", piece["word"])
    if word.lower() in _EMPTY:
        return "word", []
    if _UNSPACED.search(word):
        return "word", [frozenset((key,)) for key in _core.lexical_keywords(word, languages=languages)]
    keys = keys_of(word, languages)
    is_capital = word[:1].isupper() and (not is_first or word.lower() in known)
    has_digit = any(map(str.isdigit, word))
    is_name = is_capital or has_digit or word[1:] != word[1:].lower()
    return "name" if is_name else "word", [keys] if keys else []


@lru_cache(maxsize=50_000)
def keys_of(word: str, languages: tuple[int, ...] = ()) -> frozenset[str]:
    """Return the forms of a word, without accents; none for a stop word."""
    found = _core.lexical_keywords(word, languages=languages)
    if not languages:  # the parts of a name in code are shorter than the name
        found = [stem(max(found, key=len))] if found else []
    return frozenset(_without_accents(key) for key in found)


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word.translate(_PLAIN))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def number(text: str) -> str:
    """Return one form of a number in digits: no thousands separators, no zeros at the end of a fraction.

    Examples:
        >>> number("1,349,129"), number("6.0"), number("4,90"), number("127.0.0.1")
        ('1349129', '6', '4.9', '127.0.0.1')
    """
    parts, marks = re.split(r"[.,]", text), re.findall(r"[.,]", text)
    if not marks:
        return text.lstrip("0") or "0"
    if len(set(marks)) == 1 and all(len(part) == 3 for part in parts[1:]) and (marks[0] == "," or marks[1:]):
        return "".join(parts)
    if len(set(marks)) == 1 and marks[1:]:
        return text
    whole, fraction = "".join(parts[:-1]), parts[-1].rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def stem(word: str) -> str:
    """Return a word without the endings of plurals and of regular verbs: "died" and "dies" become "di"."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if len(word) > 5 and word.endswith("ing"):
        word = word[:-3]
    elif len(word) > 3 and word.endswith("ed"):
        word = word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("e") else word
