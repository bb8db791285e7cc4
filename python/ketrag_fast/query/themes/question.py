"""A rule that detects questions about the whole index, such as "Which risks come up again and again?"."""

from __future__ import annotations

import re
from typing import Final

from ketrag_fast import _core
from ketrag_fast.query.themes.plain_words import PLAIN_WORDS, WORDS_FOR_DOCUMENTS

SURVEY: Final = "survey"
"""The mode for questions about the whole index."""
EXAMPLES: Final = (
    "What are these documents about?",
    "Which problems come up again and again?",
    "What changed between March and June?",
)
"""Patterns of questions about the whole index."""

_MANY: Final = (
    r"(?:main|key|most (?:common|important|frequent)|biggest|common|recurring|frequent|typical|major|central|"
    r"top|different|various|principal|overall|dominant|general)"
)
_PATTERNS: Final = (
    rf"\b(?:what|which|list|give|name|describe)\b.*\b{_MANY}\s+(?:\w+\s+)?\w+s\b",
    r"\b(?:overview|summar(?:y|i[sz]e)|sum up|gist|big picture|in a nutshell|tl;?dr)\b",
    r"\b(?:themes?|topics?|trends?|patterns?)\b",
    r"\b(?:again and again|over and over|repeatedly|keeps? coming up|come up (?:most|often)|most often|"
    r"recur(?:s|ring)?|in common)\b",
    r"\b(?:change[ds]?|evolved?|develop(?:ed|s)?|shift(?:ed|s)?|differ(?:ed|s)?)\b.*\b(?:between|over|across|since|"
    r"during|from|within|through)\b",
    r"\bacross\s+(?:all|these|our|every|the\s+\w+s)\b",
    r"\b(?:kinds|types|sorts|range|variety)\s+of\b",
    r"\b(?:all|every|each)\s+(?:of\s+)?(?:the|these|our|my)?\s*\w*\s*(?:documents?|files?|notes?|papers?|reports?|"
    r"articles?|chats?|texts?|meetings?|interviews?|reviews?)\b",
    r"\bwhat\s+(?:do|does|did|are|have|has)\s+(?:people|users?|customers?|readers?|reviewers?|employees|we|they|everyone)\s+"
    r"(?:\w+\s+)?(?:say|said|saying|think|thought|complain\w*|discuss\w*|talk\w*|ask\w*|want\w*|like\w*|mention\w*)\b",
    r"\bwho\s+are\s+(?:the|all)\s+(?:\w+\s+)?(?:people|persons|characters|players)\b",
    r"\b(?:compare|contrast)\b.*\b(?:all|different|various|across)\b",
)
_READ: Final = 300
"""Number of characters at the start of a question that are examined."""
_RULE: Final = re.compile("|".join(_PATTERNS), re.IGNORECASE)


def asks_about_the_whole(question: str) -> bool:
    """Return whether the answer to an English question probably needs many documents.

    Examples:
        >>> asks_about_the_whole("Which risks come up again and again?")
        True
        >>> asks_about_the_whole("Who built the Fram?")
        False
    """
    words = set(_core.lexical_keywords(question.encode("utf-8", "replace").decode()))
    if words and not words - PLAIN_WORDS - WORDS_FOR_DOCUMENTS:
        return True
    return _RULE.search(question[:_READ]) is not None
