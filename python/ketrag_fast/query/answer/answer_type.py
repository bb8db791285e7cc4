"""The type of answer that an English question asks for, and whether a sentence contains one."""

from __future__ import annotations

import re
from typing import Final, Literal

AnswerType = Literal["time", "number", "location", "name"]

_ASKED: Final[tuple[tuple[AnswerType, re.Pattern[str]], ...]] = (
    (
        "time",
        re.compile(
            r"\bwhen\b|\b(?:what|which) (?:year|date|month|day|century|decade)\b|\bdate of\b", re.IGNORECASE
        ),
    ),
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|long|old|far|tall|large|big|high|deep)\b|\bnumber of\b|\bpopulation\b",
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
)
"""What the questions of each type contain; the first that matches counts."""
_MONTH: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_CONTAINED: Final[dict[AnswerType, re.Pattern[str]]] = {
    "time": re.compile(rf"\b(?:1\d\d\d|20\d\d|{_MONTH})\b"),
    "number": re.compile(
        r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million)\b"
    ),
    "location": re.compile(
        r"\b(?:in|at|near|of|from|to|on|outside)\s++(?:the\s++)?(?:\w++\s++of\s++)?[A-Z]\w"
    ),
}
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
    known = question.lower()
    for found in _NAME.finditer(sentence):
        words = found[0].lower().split()
        is_first_word = found.start() == 0 and len(words) == 1
        if not is_first_word and any(word not in known for word in words):
            return True
    return False
