"""Find the words by which a question refers to an earlier one: a pronoun without antecedent, or no verb."""

from __future__ import annotations

import re
from typing import Final, Literal

from ketrag_fast import _core
from ketrag_fast.records import dataclass


def words_in(text: str) -> list[str]:
    """Return the words of a list of words."""
    return text.split()


Kind = Literal["person", "thing", "subject", "ellipsis"]


@dataclass(frozen=True, slots=True)
class Reference:
    """How a question refers to what was said before it.

    Attributes:
        kind: What the pronoun is; "subject" if the question does not say what it is about ("Who was the
            captain?"), "ellipsis" if it lacks a verb, too ("And the second one?").
        span: Start and end of the pronoun in the question.
        is_possessive: Whether a name that replaces the pronoun needs 's.
    """

    kind: Kind
    span: tuple[int, int] | None = None
    is_possessive: bool = False


_PRONOUNS: Final[dict[str, tuple[Kind, bool]]] = {
    **dict.fromkeys(("he", "him", "she", "they", "them"), ("person", False)),
    **dict.fromkeys(("his", "her", "hers", "their", "theirs"), ("person", True)),
    "it": ("thing", False),
    "its": ("thing", True),
}
_OTHER_LANGUAGES: Final[tuple[tuple[re.Pattern[str], dict[str, tuple[Kind, bool]]], ...]] = (
    (
        re.compile(
            r"^\W*(?:und |aber )?(?:wer|wen|wem|wessen|wann|wo|woher|wohin|warum|wie|welche\w?|was"
            r"|in welche\w)\b",
            re.I,
        ),
        {
            **dict.fromkeys(("er", "ihn", "ihm", "sie", "ihnen"), ("person", False)),
            **dict.fromkeys(
                ("sein", "seine", "seinen", "seiner", "seinem", "ihr", "ihre", "ihren", "ihrer", "ihrem"),
                ("person", True),
            ),
            "dort": ("thing", False),
        },
    ),
    (
        re.compile(
            r"^\W*(?:et |mais )?(?:qui|que|quand|où|comment|combien|pourquoi|quel\w*|dans quel\w*)\b", re.I
        ),
        {
            **dict.fromkeys(("il", "elle", "ils", "elles", "lui", "leur"), ("person", False)),
            **dict.fromkeys(("son", "sa", "ses", "leurs"), ("person", True)),
        },
    ),
    (
        re.compile(
            r"^\W*(?:y |pero )?(?:quién\w*|qué|cuándo|dónde|cómo|cuánt\w+|por qué|cuál\w*|en qué)\b", re.I
        ),
        {
            **dict.fromkeys(("él", "ella", "ellos", "ellas"), ("person", False)),
            **dict.fromkeys(("su", "sus"), ("person", True)),
        },
    ),
)
"""Question words of a language, and its pronouns. "il est" and "es ist" without an antecedent are
follow-ups, too."""
_SUBJECTS: Final = ("he", "she", "they")
_MANY: Final = 4
"""Words with content before "it", of which one is probably its antecedent."""
_BE: Final = frozenset(words_in("is was are were be been being 's"))
_AUXILIARIES: Final = _BE | frozenset(
    words_in("did does do has have had can could will would should may might")
)
_PREPOSITIONS: Final = frozenset(
    words_in("of in for on with by about to at from after before near under over than as like")
)
_BOUNDARIES: Final = frozenset(
    words_in(
        "that who which whose whom when where while because if since and but whether until although "
        "after before"
    )
)
"""Words that begin a clause, in which a pronoun may be explained by the clause before it."""
_EXPLETIVE: Final = re.compile(
    r"\bit\b(?: \w+){0,3}? (?:to|that|true|possible|possibly|necessary|normal|safe|legal|ok|okay"
    r"|better|worth|rain|raining|snow|mean|cost|called|common)\b"
    r"|\b(?:time|date|day|how (?:hot|cold|late|far|long)) (?:is|was|does|did|will) it\b"
    r"|\b(?:does|did) it take\b"
    r"|\bit (?:is|was)\b[^?]* (?:that|who|to)\b",
    re.IGNORECASE,
)
"""Uses of "it" that refer to nothing."""
_POINTING: Final = re.compile(
    r"\b(?:the (?:former|latter)|(?:the|that|this|which) (?:\w+ )?ones?"
    r"|the (?:other|others|same|rest)(?= ?\?|$)"
    r"|(?:that|this) (?:year|day|time|place|person|man|woman|city|town|country|film|book|song|ship|company"
    r"|team|one|author|director|document|paper|file|note|mail|meeting|project)\b"
    r"|(?:that|this|those|these|(?<!is )(?<!are )(?<!was )(?<!were )there)(?= ?\?|$)"
    r"|(?:is|was|does|did|do|are|were) (?:that|this|those|these)(?= (?:\w+ ?){1,2}\??$))",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(
    r"^\W*(?:and |but |so |or )?(?:(?:what|how) about\b|(?:und )?(?:was ist mit|wie ist es mit)\b"
    r"|(?:et|und|y|and|or|but|same for)\s)",
    re.IGNORECASE,
)
_ASKING: Final = re.compile(
    r"\b(?:who|whom|whose|what|when|where|which|why|how|wer|wann|wo|warum|wie|welche\w*|was|qui|quand|où|comment|combien|quel\w*"
    r"|quién|cuándo|dónde|cómo|qué|cuál)\b",
    re.IGNORECASE,
)
_DEFINING: Final = re.compile(
    r"^\W*(?:what|who)(?:'s|’s| is| are| was| were| does| do)\b|^\W*(?:define|explain)\b", re.IGNORECASE
)
_MORE: Final = re.compile(
    r"\W*(?:tell me more|more(?: details?| about (?:it|that|this))?|go on|continue|any (?:others?|more)"
    r"|another(?: one)?"
    r"|who else|what else|where else|anything else|mehr(?: dazu)?|weiter)\b(?: please)?\W*$",
    re.IGNORECASE,
)
_THE: Final = re.compile(r"\b(?:the|der|die|das|den|dem|le|la|les|el|los|las)\b", re.IGNORECASE)
_DEFINITE: Final = 1
"""Words with content of a question about "the ..." that does not say of what ("What was the outcome?")."""
_FEW: Final = 3
"""Words of a question that may be one whose subject is left out ("How many died?")."""
_TOKEN: Final = re.compile(r"[^\W_]+(?:[.’'][^\W_]+)*|,")


def find_reference(question: str) -> Reference | None:
    """Return how a question refers to what was said before it; None if it stands alone.

    Examples:
        >>> find_reference("And where was he born?").kind
        'person'
        >>> find_reference("Which captain lost his ship?") is None
        True
        >>> find_reference("What about 1912?").kind
        'ellipsis'
    """
    tokens = [(found[0], found.start(), found.end()) for found in _TOKEN.finditer(question)]
    if not tokens:
        return None
    pronoun = _free_pronoun(question, tokens)
    if pronoun is not None:
        return pronoun
    kind = _kind_of_ellipsis(question, tokens)
    return None if kind is None else Reference(kind)


Tokens = list[tuple[str, int, int]]


def _kind_of_ellipsis(question: str, tokens: Tokens) -> Kind | None:
    """Return what a question without free pronouns lacks, None if nothing.

    "What about 1912?", "And the second one?", "Why?" and "Tell me more" lack a verb; "And who was the
    captain?", "How many died?" and "What was the outcome?" a subject.
    """
    words = [word for word, *_ in tokens if word != ","]
    begin = _ABOUT.match(question)
    rest = question[begin.end() :] if begin else question
    is_asking, has_names = bool(_ASKING.search(rest)), _has_names(tokens, question)
    content = [word for word in words if _is_content(word)]
    if begin is not None and not is_asking:
        return "ellipsis"
    if has_names or any(map(_has_digit, words)):
        return None
    if _MORE.match(question) or (is_asking and not content):
        return "ellipsis"
    is_pointing = _POINTING.search(question) is not None
    if is_pointing and not is_asking:
        return "ellipsis"
    is_short = is_asking and len(words) <= _FEW and len(content) == 1 and not _DEFINING.match(question)
    is_definite = is_asking and len(content) <= _DEFINITE and _THE.search(question) is not None
    return "subject" if is_pointing or begin is not None or is_short or is_definite else None


def _free_pronoun(question: str, tokens: Tokens) -> Reference | None:
    """Return the first pronoun whose antecedent is not in the question."""
    for pattern, pronouns in _OTHER_LANGUAGES:
        if pattern.search(question) and not re.match(r"\W*was (?:he|she|it|they)\b", question, re.IGNORECASE):
            return _free_pronoun_elsewhere(tokens, pronouns)
    is_expletive = _EXPLETIVE.search(question) is not None
    for at, (word, start, end) in enumerate(tokens):
        known = _PRONOUNS.get(word.lower())
        is_title = at > 0 and word[:1].isupper()  # "the film It Happened Out West"
        if known is None or is_title or (word.lower() == "it" and is_expletive):
            continue
        kind, is_owner = known
        follows = tokens[at + 1][0].lower() if at + 1 < len(tokens) else ""
        if word.lower() == "her" and (not follows or not _is_content(follows)):
            is_owner = False  # "Who met her in Oslo?"
        if not _is_bound(tokens[:at], word.lower(), is_owner=is_owner):
            return Reference(kind, (start, end), is_owner)
    return None


def _free_pronoun_elsewhere(tokens: Tokens, pronouns: dict[str, tuple[Kind, bool]]) -> Reference | None:
    """Return the first pronoun of another language if no name or noun with a capital precedes it."""
    for at, (word, start, end) in enumerate(tokens):
        known = pronouns.get(word.lower())
        if known is not None:
            before = [one for one, *_ in tokens[1:at]]
            is_bound = any(one[:1].isupper() or _has_digit(one) for one in before)
            return None if is_bound or word[:1].isupper() else Reference(known[0], (start, end), known[1])
    return None


def _is_bound(before: Tokens, pronoun: str, *, is_owner: bool) -> bool:
    """Return whether a noun among the words before a pronoun may be its antecedent.

    A pronoun is not explained by the subject of the same clause ("What label released it?"), unless it is an
    owner after a verb ("Which company changed its name?").
    """
    words = [word.lower() for word, *_ in before]
    edges = [at for at, word in enumerate(words) if at > 0 and (word in _BOUNDARIES or word == ",")]
    edges = [at for at in edges if any(_is_content(word) for word in words[:at])]
    names = [word for word, *_ in before[1:] if word[:1].isupper()]
    if edges or (pronoun in _SUBJECTS and names):  # "What does Nate feel he could do?"
        return True
    if not is_owner:
        return _is_far(before) or (pronoun == "it" and sum(map(_is_content, words)) >= _MANY)
    last = words[-1] if words else ""
    if names or (last not in _AUXILIARIES and last not in _PREPOSITIONS and _is_content(last)):
        return True
    helpers = [at for at, word in enumerate(words) if word in _AUXILIARIES - _BE]
    return bool(helpers) and any(_is_content(word) for word in words[helpers[0] :])


def _is_far(before: Tokens) -> bool:
    """Return whether a name is an owner, or two words with content are between the last name and the end.

    "What do Melanie's friends give her?", but not "When did Nansen meet him?".
    """
    at = max((at for at, (word, *_) in enumerate(before) if at > 0 and word[:1].isupper()), default=None)
    if at is None:
        return False
    is_owner = before[at][0].endswith(("'s", "’s"))
    return is_owner or sum(_is_content(word) for word, *_ in before[at + 1 :]) > 1


def _has_names(tokens: Tokens, question: str) -> bool:
    """Return whether a question has a name after its first word."""
    return any(word[:1].isupper() and word not in ("I", "I'm") for word, *_ in tokens[1:]) or '"' in question


def _is_content(word: str) -> bool:
    return word.lower() not in _EMPTY and bool(_core.lexical_keywords(word))


_EMPTY: Final = (
    _AUXILIARIES
    | _PREPOSITIONS
    | _BOUNDARIES
    | frozenset(
        words_in(
            "what how why one ones other others same much many then there so also else and or second first "
            "third last next exactly wer wann wo warum wie viele und et y"
        )
    )
)


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
