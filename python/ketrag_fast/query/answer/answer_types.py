"""The kind of answer that a question asks for, and sentences that contain one."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final, Literal

from ketrag_fast.query.answer.facts import stem

AnswerType = Literal["time", "number", "location", "name", "manner"]

_ASKED: Final[tuple[tuple[AnswerType, re.Pattern[str]], ...]] = (
    (
        "time",
        re.compile(
            r"\bwhen\b|\b(?:what|which) (?:year|date|month|day|century|decade)\b|\bdate of\b|\bwann\b"
            r"|\bwelche[mns]? (?:jahr|monat|tag|jahrhundert)|\bquand\b|\bcuándo\b|\bкогда\b|\bкаком году\b"
            r"|(?<!\w)متى(?!\w)|أي عام|(?<!\w)कब(?!\w)|किस वर्ष|何时|什么时候|哪一年|哪年",
            re.IGNORECASE,
        ),
    ),
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|long|old|far|tall|large|big|high|deep|often)\b|\bnumber of\b|\bpopulation\b"
            r"|\bwie ?viele?\b|\bwie (?:lange|alt|weit|hoch|groß|oft)\b|\bcombien\b|\bcuánt[oa]s?\b"
            r"|\bсколько\b"
            r"|(?<!\w)كم(?!\w)|(?<!\w)कितन|多少|几[个次年人]",
            re.IGNORECASE,
        ),
    ),
    (
        "location",
        re.compile(
            r"\bwhere\b|\bplace of\b|\b(?:what|which) (?:\w+ )?(?:city|country|town|state|county|village|"
            r"place|nation|district|region|province|island|continent)\b",
            re.IGNORECASE,
        ),
    ),
    ("name", re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)),
    ("manner", re.compile(r"^\W*how (?:do|does|did|can|could|should|is|are|was|were)\b", re.IGNORECASE)),
)
"""What the questions of each type contain; the first that matches counts."""
_MONTH: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_CONTAINED: Final[dict[AnswerType, re.Pattern[str]]] = {
    "time": re.compile(
        rf"(?<!\d)(?:1\d\d\d|20\d\d)(?!\d)|\b(?:{_MONTH})\b|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
        r"|\b\d{1,2}(?::\d\d| ?[ap]\.?m\b)|\b(?:yesterday|tomorrow|tonight)\b"
    ),
    "number": re.compile(
        r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million)\b"
    ),
    "manner": re.compile(
        r"\b(?:by|through|with|using|via)\b|^\W*(?:\w+ )?(?:press|run|open|click|turn|set)\b", re.I
    ),
    "location": re.compile(
        r"\b(?:in|at|near|of|from|to|on|outside)\s++(?:the\s++)?(?:\w++\s++of\s++)?[A-Z]\w"
    ),
}
_NUMBER: Final = re.compile(r"\d(?:[\d.,]*\d)?")
_FOCUS: Final = re.compile(
    r"\b(?:what|which)\s++(?:(?:is|was|were|are|type|kind|sort|of|the|a)\s++)*+([\w'-]++)(?:\s++([\w'-]++))?",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"\b[A-Z][\w'’.-]*+(?:\s++[A-Z][\w'’.-]*+)*+")


def answer_type(question: str) -> AnswerType | None:
    """Return the type of answer that a question asks for; None for other questions and languages.

    Examples:
        >>> answer_type("Where did Tom Crean die?")
        'location'
    """
    return next((name for name, pattern in _ASKED if pattern.search(question)), None)


def contains_type(wanted: AnswerType, sentence: str, question: str) -> bool:
    """Return whether a sentence contains text of a type: for a name, one that the question does not contain.

    Examples:
        >>> contains_type("location", "He died in Cork.", "Where did Tom Crean die?")
        True
        >>> contains_type("name", "Tom Crean sailed.", "Who sailed with Tom Crean?")
        False
    """
    if wanted != "name":
        return _CONTAINED[wanted].search(sentence) is not None
    return new_names(sentence, question) > 0


def adds_type(wanted: AnswerType, sentence: str, question: str) -> bool:
    """Return whether a sentence contains text of a type that the question does not contain.

    Examples:
        >>> adds_type("time", "It sailed in 1893.", "When did the ship of 1893 return?")
        False
        >>> adds_type("time", "It returned in 1896.", "When did the ship of 1893 return?")
        True
    """
    if wanted == "manner":
        return False
    if wanted in ("name", "location"):
        return new_names(sentence, question) > 0
    known = question.lower()
    pattern = _NUMBER if wanted == "number" else _CONTAINED["time"]
    return any(found[0].lower() not in known for found in pattern.finditer(sentence))


def focus_terms(question: str, terms: Container[str]) -> frozenset[str]:
    """Return the terms of a question that name the kind of answer: the two words after "what" or "which".

    Examples:
        >>> sorted(focus_terms("For which award was it a finalist?", {"award", "finalist"}))
        ['award']
    """
    found = _FOCUS.search(question)
    words = found.groups(default="") if found else ()
    return frozenset(term for word in words if (term := stem(word.lower())) in terms)


def new_names(sentence: str, question: str) -> int:
    """Return the number of names in a sentence that have a word which the question lacks.

    Examples:
        >>> new_names("Her hull was drawn by Colin Archer in Larvik.", "Who drew the hull?")
        2
    """
    known = question.lower()
    count = 0
    for found in _NAME.finditer(sentence):
        words = found[0].lower().split()
        is_first_word = found.start() == 0 and len(words) == 1
        count += not is_first_word and any(word not in known for word in words)
    return count
