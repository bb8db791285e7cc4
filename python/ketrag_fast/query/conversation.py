"""Complete a question with names and words of the turns before it in a conversation, without a model.

A question that stands alone takes nothing. One with a pronoun that nothing in it explains ("Where was he
born?") takes names. One without a verb or subject ("and the second one?", "what about 1912?", "How many?")
takes the words of the last question as well. What is taken is ranked with the question, as known hops are
(`Query.hops`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.query.anaphora import Kind, Reference, find_reference, words_in
from ketrag_fast.records import dataclass
from ketrag_fast.types.answers import Answer
from ketrag_fast.types.turns import Turn

READ: Final = 8
"""Turns that are read, from the last one back; a conversation may be longer."""
_NEW: Final = 2
_SUBJECTS: Final = 1
"""Number of names of the answer that the question before it lacks, and of names of that question. On the 205
pairs of benches/conversation.py, 2 and 1 find the second passage for 89.1 % of the questions that find it
written out; 1 and 1 88.1 %, 2 and 0 88.1 %, 3 and 1 90.6 %, but a third name is more often of something
else."""
_WORDS: Final = 8
"""Words of the last question that a question without a subject takes."""
_LEAST: Final = 3
"""Characters of a title that counts as a name."""
_ASKS_FOR_PERSON: Final = re.compile(r"\W*(?:who|whom|wer|wen|qui|quién)\b", re.IGNORECASE)
_ASKS_FOR_FACT: Final = re.compile(
    r"\W*(?:and |but )?(?:when|where|how|why|wann|wo|wie|warum|quand|où|comment|cuándo|dónde|cómo)\b",
    re.IGNORECASE,
)
_NAME: Final = re.compile(
    r"(?<![\w'’])(?:[^\W\d_a-z][\w.'’-]*+)(?:\s++(?:(?:of|the|de|da|di|van|von|der|la|le|al|bin|du|y)\s++){0,2}+"
    r"[^\W\d_a-z][\w'’-]*+)*+"
)
"""A run of words with capitals, also of "of", "van" and the like between them."""
_WORD: Final = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Continued:
    """The names and words that a question takes from its history, and the question with them.

    Quotes are chosen for this question, and the next turn continues it.
    """

    taken: tuple[str, ...]
    text: str


def check_history(history: Sequence[Turn | Answer | Mapping[str, Any]]) -> tuple[Turn, ...]:
    """Return the last turns of a conversation.

    Raises InputError if it is not a list of turns, answers, or objects with the fields of a turn.
    """
    if isinstance(history, (str, bytes, Mapping)):
        raise InputError("history must be a list of turns", hint="history=[index.ask(FIRST_QUESTION)]")
    turns = []
    for one in history[-READ:]:
        if isinstance(one, Answer):
            turns.append(one.turn)
        elif isinstance(one, Turn):
            turns.append(one)
        elif isinstance(one, Mapping):
            try:
                turns.append(Turn.from_json(one))
            except ValueError as error:
                raise InputError(f"history: {error}") from None
        else:
            raise InputError(
                f"history has an entry of type {type(one).__name__}", hint="use answers, Turn or their JSON"
            )
    return tuple(turns)


def continue_question(question: str, history: Sequence[Turn]) -> Continued:
    """Return what a question takes from a conversation, and the question with it.

    Examples:
        >>> turn = Turn("Who built the Fram?", "Fram was built by Colin Archer.", ("Colin Archer", "Fram"))
        >>> continue_question("And where was he born?", [turn])
        Continued(taken=('Colin Archer', 'Fram'), text='And where was Colin Archer born?')
        >>> continue_question("Where was Amundsen born?", [turn]).taken
        ()
    """
    reference = find_reference(question) if history else None
    if reference is None:
        return Continued((), question)
    for turn in reversed(history):
        taken = _taken_from(turn, question, reference.kind)
        if taken:
            return Continued(taken, _with_taken(question, reference, taken))
    return Continued((), question)


def _taken_from(turn: Turn, question: str, kind: Kind) -> tuple[str, ...]:
    """Return what a question takes from a turn."""
    new, subjects = _names_of(turn)
    if kind == "person" and _ASKS_FOR_FACT.match(turn.question):
        return tuple(subjects or new)  # "When did he die?" after "Where was Colin Archer born?"
    if kind != "ellipsis":
        # "When was it launched?" after a question for a person is about the subject of that question.
        is_subject = kind in ("thing", "subject") and _ASKS_FOR_PERSON.match(turn.question) is not None
        return tuple(dict.fromkeys((*subjects, *new) if is_subject else (*new, *subjects)))
    asked = _words_of(turn, question)
    if _own_names(question):
        return tuple(asked)  # "And the Gjøa?" asks the same about another one
    is_other = bool(_content(question))  # "What about 1912?" asks for another answer
    return tuple(dict.fromkeys((*asked, *subjects, *(() if is_other else new))))


def _with_taken(question: str, reference: Reference, taken: Sequence[str]) -> str:
    """Return a question in which the first name replaces the pronoun, or that what is taken follows."""
    if reference.kind == "ellipsis" or reference.span is None:
        return f"{question.rstrip()} {' '.join(taken)}"
    start, end = reference.span
    own = "'s" if reference.is_possessive else ""
    return f"{question[:start]}{taken[0]}{own}{question[end:]}"


def _names_of(turn: Turn) -> tuple[list[str], list[str]]:
    """Return names of the answer that its question lacks, and names of the question."""
    asked, said = spaced(turn.question), spaced(turn.answer)
    titles = [title for title in map(_plain, turn.titles) if len(title) >= _LEAST]
    new = [title for title in titles if spaced(title) not in asked]
    mentioned = [title for title in new if spaced(title) in said]
    names = [name for name in _capitals(turn.answer) if not set(spaced(name).split()) <= set(asked.split())]
    subjects = [title for title in titles if spaced(title) in asked] or _own_names(turn.question)
    if not subjects:
        subjects = _content(turn.question)[-2:]
    longest = sorted(subjects, key=len, reverse=True)
    return _unique(mentioned or names or new)[:_NEW], _unique(longest)[:_SUBJECTS]


def _words_of(turn: Turn, question: str) -> list[str]:
    """Return the words of the last question that say what it asks, without names or numbers that are
    replaced."""
    words = _content(turn.question)
    if _own_names(question):
        replaced = {word for name in _own_names(turn.question) for word in spaced(name).split()}
        words = [word for word in words if word.lower() not in replaced]
    if re.search(r"\d", question):
        words = [word for word in words if not re.search(r"\d", word)]
    return words[:_WORDS]


def _content(text: str) -> list[str]:
    """Return the words of a text that are not function words."""
    return [word for word in _WORD.findall(text) if is_content(word)]


def is_content(word: str) -> bool:
    """Return whether a word says what a question is about."""
    return word.lower() not in FUNCTION_WORDS and bool(_core.lexical_keywords(word))


FUNCTION_WORDS: Final = frozenset(
    words_in(
        "about also and are as at be but by can could did do does for from had has have how in is it its "
        "like many may might mean much name not of on one ones or other others please same should so "
        "some tell than that the their them then there these they this those to was were what when where "
        "which who whom whose why will with would wer wen wem was wann wo warum wie wieviel viele welche "
        "welcher welches hat haben ist sind war waren wurde wurden hatte und auch er sie es ihn ihm ihr "
        "sein seine qui que quoi où quand comment combien pourquoi quel quelle est et il elle son sa ses "
        "quién qué cuándo dónde cómo cuánto cuántos cuál es fue era y su sus"
    )
)
"""Words that state nothing in a question."""


def _own_names(question: str) -> list[str]:
    """Return the names of a question: words with capitals after its first word."""
    first = _WORD.search(question)
    start = first.end() if first else 0
    return _capitals(question[start:])


def _capitals(text: str) -> list[str]:
    """Return names in a text: runs of words with capitals, but not a function word at the start of a
    sentence."""
    found = []
    for name in _NAME.finditer(text):
        words = name[0].strip(".'’-").split()
        while words and not is_content(words[0]):
            del words[0]
        is_start = name.start() == 0 or _ends_sentence(text[max(0, name.start() - 3) : name.start()])
        if words and not (is_start and len(words) == 1 and text[name.end() : name.end() + 1] == " "):
            found.append(" ".join(words))
    return found


def _ends_sentence(text: str) -> bool:
    """Return whether a text ends with the end of a sentence or of a line, or with an opening quote."""
    words = text.rstrip()
    return words.endswith((".", "!", "?", "“", '"')) or "\n" in text[len(words) :]


def _unique(names: Sequence[str]) -> list[str]:
    """Return names without those that are part of an earlier one."""
    kept: list[str] = []
    for name in names:
        if not any(spaced(name) in spaced(other) for other in kept):
            kept.append(name)
    return kept


def _plain(title: str) -> str:
    """Return a title without what follows in brackets."""
    return title.split(" (")[0].strip()


def spaced(text: str) -> str:
    """Return the words of a text in lower case with a space before and after each."""
    return f" {' '.join(_WORD.findall(text.lower().replace('_', ' ')))} "
