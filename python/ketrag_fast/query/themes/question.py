"""English words that name no theme, and a rule that detects questions about the whole index.

Such questions are "What are these documents about?" and "Which risks come up again and again?".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ketrag_fast import _core

SURVEY: Final = "survey"
"""The mode for questions about the whole index."""
EXAMPLES: Final = (
    "What are these documents about?",
    "Which problems come up again and again?",
    "What changed between March and June?",
)
"""Patterns of questions about the whole index."""

_WORDS: Final = """
able absolutely after again ago also amazing another around ask asked away awesome back bad became become
before begin begins best better big bit bring bye call called case come comes coming day days definitely
done dr during etc example examples fantastic feel felt first following forward found gave get gets
getting give given gives glad go goes going gonna good got great guess guy guys happen happened hello help
helps hey hi hope however including keep kind know known last later left let lets like likes look looked
looking looks lot lots love made make makes making many may maybe mean means met might mr mrs ms much must
need needed needs new next nice nope often ok okay old one ones others part people perfect perfectly
please plus put really right said saw say saying says see seeing seems seen shall show shows since someone
something sometimes soon sorry start started still stuff sure take taken takes taking talk tell thank
thanks thing things think thought time times today told tomorrow tonight took totally tried try trying two
understand us use used user uses using usually various via wait wanna want wanted wants way ways week well
went whether while whose wish within without wonder wonderful wow yeah year years yep yes yesterday yet
"""
PLAIN_WORDS: Final = frozenset(_WORDS.split())
"""English words that name no theme: small talk and auxiliaries that are not stop words."""
_FOR_DOCUMENTS: Final = """
about article articles book books chat chats chiefly collection common content contents conversation
conversations corpus cover covered covers data dataset deal deals describe described describes discuss
discussed discusses document documentation documents everything file files folder frequent general gist here
idea ideas important index inside key knowledge letters library list main mainly mention mentioned mentions
message messages note notes outline overall overview page pages paper papers passage passages point points
project record records recur recurring repeated report reports section sections set sets short sources
subject subjects summarise summarize summary talked text texts theme themes together topic topics treat
treated what whole write written
"""
_WORDS_FOR_DOCUMENTS: Final = frozenset(_FOR_DOCUMENTS.split())
"""English words in questions about a whole collection, such as "What are the main topics of these texts?"."""
_MANY: Final = (
    r"(?:main|key|most (?:common|important|frequent)|biggest|common|recurring|frequent|typical|major|central|"
    r"top|different|various|principal|overall|dominant|general)"
)
RULES: Final = (
    (
        "main key most biggest common recurring frequent typical major central top different various "
        "principal overall dominant general",
        rf"\b(?:what|which|list|give|name|describe)\b.*\b{_MANY}\s+(?:\w+\s+)?\w+s\b",
    ),
    (
        "overview summar sum|up gist big|picture in|a|nutshell tl",
        r"\b(?:overview|summar(?:y|i[sz]e)|sum up|gist|big picture|in a nutshell|tl;?dr)\b",
    ),
    (
        "theme topic trend pattern",
        r"\b(?:themes?|topics?|trends?|patterns?)\b",
    ),
    (
        "again repeatedly coming come|up over|and|over most|often recur in|common",
        r"\b(?:again and again|over and over|repeatedly|keeps? coming up|come up (?:most|often)|most often|"
        r"recur(?:s|ring)?|in common)\b",
    ),
    (
        "change evolve develop shift differ",
        r"\b(?:change[ds]?|evolved?|develop(?:ed|s)?|shift(?:ed|s)?|differ(?:ed|s)?)\b.*\b(?:between|over|across|since|"
        r"during|from|within|through)\b",
    ),
    (
        "across",
        r"\bacross\s+(?:all|these|our|every|the\s+\w+s)\b",
    ),
    (
        "kinds types sorts range variety",
        r"\b(?:kinds|types|sorts|range|variety)\s+of\b",
    ),
    (
        "all every each",
        r"\b(?:all|every|each)\s++(?:of\s++)?(?:the|these|our|my)?\s*+\w*\s*+(?:documents?|files?|notes?|papers?|reports?|"
        r"articles?|chats?|texts?|meetings?|interviews?|reviews?)\b",
    ),
    (
        "what",
        r"\bwhat\s+(?:do|does|did|are|have|has)\s+(?:people|users?|customers?|readers?|reviewers?|employees|we|they|everyone)\s+"
        r"(?:\w+\s+)?(?:say|said|saying|think|thought|complain\w*|discuss\w*|talk\w*|ask\w*|want\w*|like\w*|mention\w*)\b",
    ),
    (
        "who",
        r"\bwho\s+are\s+(?:the|all)\s+(?:\w+\s+)?(?:people|persons|characters|players)\b",
    ),
    (
        "compare contrast",
        r"\b(?:compare|contrast)\b.*\b(?:all|different|various|across)\b",
    ),
)
"""Rules of questions about the whole: parts of texts (`|` is a space) of which such a question has one, and a
regular expression, which is compiled only if it has: compiling all takes a tenth of a search.
"""
READ: Final = 300
"""Number of characters at the start of a question that are examined."""


def asks_about_the_whole(question: str) -> bool:
    """Return whether the answer to an English question probably needs many documents.

    Examples:
        >>> asks_about_the_whole("Which risks come up again and again?")
        True
        >>> asks_about_the_whole("Who built the Fram?")
        False
    """
    words = _core.lexical_keywords(question.encode("utf-8", "replace").decode())
    # A single word, such as "OK", is a word that is looked for.
    if words and " " in question.strip() and has_general_words_alone(words):
        return True
    beginning = question[:READ]
    folded = beginning.casefold()
    return any(
        re.search(pattern, beginning, re.IGNORECASE)
        for parts, pattern in RULES
        if any(part.replace("|", " ") in folded for part in parts.split())
    )


def has_general_words_alone(words: Collection[str]) -> bool:
    """Return whether the keywords of a question name no subject, as in "What are these documents about?"."""
    return not set(words) - PLAIN_WORDS - _WORDS_FOR_DOCUMENTS
