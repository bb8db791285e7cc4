"""The sentences of an answer as it streams: each is checked against the passages when it is complete.

Its words are returned as they arrive, up to its first citation or its last mark, which wait for the check.
Then wrong citations are removed, missing ones are added, and a sentence that no passage supports ends with
`[?]`. Headings, rows of tables, code, questions, lead-ins ("The steps are:") and statements that the passages
do not hold the answer are left as they are.
"""

from __future__ import annotations

import re
from typing import Final

from ketrag_fast.kernels import sentence_spans
from ketrag_fast.query.answer.grounding import Grounds, Support
from ketrag_fast.types import AnswerSentence

UNSUPPORTED: Final = "[?]"
"""The mark of a sentence that no passage supports."""
_MARKS: Final = r"(?: {0,8}\[(?:\d{1,9}|\?)\])"
_MARK: Final = re.compile(_MARKS)
_FALSE_MARK: Final = re.compile(r" {0,8}\[\?\]")
_NUMBER: Final = re.compile(r"\[(\d{1,9})\]")
_QUOTES: Final = "\"'”’»)*_`"
_STOPS: Final = ".!?…。！？:;,"
_ENDS: Final = re.compile(
    rf"\n|(?<![.!?…])[.!?…]++[{_QUOTES}]*+{_MARKS}*+[^\S\n]++(?=[^\s\[]|\[[^\d?])"
    rf"|(?<![。！？])[。！？]++[{_QUOTES}]*+{_MARKS}*+(?=[^\s\[{_QUOTES}])"
)
"""Where a sentence may end: a line break, or a mark with what closes it, before what follows."""
_LISTED: Final = re.compile(r"\s*(?:\d{1,3}|[A-Za-z])[.)]\s*")
"""The number of a list item, which is not a sentence."""
_BEFORE: Final = "It was a long time ago that the rest of this was written by "
_AFTER: Final = " Then it went on and on."
_LONGEST: Final = 4000
"""Maximum number of characters of a sentence; a longer one is cut."""
_UNCHECKED: Final = re.compile(
    r"\s*(?:#{1,6} |\||[-*_=]{3,}(?:\s|$)|\[[a-z](?:\s*[,;>]\s*[a-z])*\]\s*$)", re.IGNORECASE
)
"""A heading, a row, a rule or fence, or the ranking of options."""
_OF_PASSAGES: Final = r"\b(?:passages?|documents?|sources?|context|texts?|information)\b"
_NOT: Final = r"(?:\b(?:not|no|none|insufficient|cannot)\b|n['’]t\b)"
_HOLD_NOTHING: Final = re.compile(
    rf"{_OF_PASSAGES}.{{0,60}}{_NOT}|{_NOT}.{{0,60}}{_OF_PASSAGES}", re.IGNORECASE | re.DOTALL
)
"""A statement about what the passages do not have."""
_FENCE: Final = ("```", "~~~")


class AnswerChecker:
    """Checks the sentences of an answer.

    Attributes:
        cited: Numbers of cited passages, each once, in order of first use.
        sentences: The sentences so far.
    """

    def __init__(self, grounds: Grounds) -> None:
        self._grounds = grounds
        self._held = ""
        self._returned = 0  # characters of `_held`
        self._is_code = False
        self.cited: list[int] = []
        self.sentences: list[AnswerSentence] = []

    def feed(self, text: str) -> str:
        """Take text whose citations are complete, and return the text that is final so far."""
        self._held += text
        parts = []
        while (end := self._end_of_sentence()) is not None:
            parts.append(self._close(end))
        mark = _MARK.search(self._held)
        live = mark.start() if mark else len(self._held)
        while live > self._returned and (self._held[live - 1] in _WAITING or self._held[live - 1].isspace()):
            live -= 1
        parts.append(self._held[self._returned : live])
        self._returned = max(live, self._returned)
        return "".join(parts)

    def finish(self, *, is_cut: bool = False) -> str:
        """Return the rest at the end of the answer. Of one that is cut the last word may be a part of one."""
        return self._close(len(self._held), is_cut=is_cut) if self._held else ""

    def _end_of_sentence(self) -> int | None:
        """Return where the first sentence of the held text ends, with its blanks; None if that is unknown."""
        for found in _ENDS.finditer(self._held):
            end = found.end()
            if end > _LONGEST:
                break
            if found[0] == "\n":
                return end
            sentence = self._held[:end].strip()
            if self._held[end].islower() or _LISTED.fullmatch(sentence):
                continue
            text = _BEFORE + _MARK.sub("", sentence).strip()
            if sentence_spans(text + _AFTER)[-1][0] > len(text):
                return end
        return _LONGEST if len(self._held) > _LONGEST + 1 else None

    def _close(self, end: int, *, is_cut: bool = False) -> str:
        """Check the sentence up to `end`, and return what of it was not returned yet."""
        whole, self._held = self._held[:end], self._held[end:]
        text = self._checked(whole, is_cut=is_cut)
        returned, self._returned = self._returned, 0
        return text[returned:]

    def _checked(self, whole: str, *, is_cut: bool) -> str:
        """Return a sentence with the right marks. The last word of one that is cut is not compared."""
        plain = _MARK.sub("", whole)
        if not plain.strip():
            return whole
        is_fence = plain.lstrip().startswith(_FENCE)
        self._is_code ^= is_fence
        support = Support((), None)
        if not (is_fence or self._is_code or _is_unchecked(plain)):
            compared = plain.rstrip()
            if is_cut and compared[-1] not in _WAITING:
                compared = compared[: -len(compared.split()[-1])]
            support = self._grounds.check(compared, [int(number) for number in _NUMBER.findall(whole)])
        text = _FALSE_MARK.sub("", whole) if support.is_supported is None else _with_marks(whole, support)
        numbers = tuple(dict.fromkeys(int(number) for number in _NUMBER.findall(text)))
        self.cited += [number for number in numbers if number not in self.cited]
        self.sentences.append(AnswerSentence(plain.strip(), numbers, support.is_supported))
        return text


_WAITING: Final = frozenset(_QUOTES + _STOPS)
"""Characters that are returned with the citations before or after them."""


def _is_unchecked(plain: str) -> bool:
    """Return whether a sentence states nothing that a passage could support."""
    return (
        _UNCHECKED.match(plain) is not None
        or plain.rstrip().rstrip("*_").endswith((":", "：", "?", "？"))
        or _HOLD_NOTHING.search(plain) is not None
    )


def _with_marks(whole: str, support: Support) -> str:
    """Return a sentence with the right marks: those that it has, and others at its end."""
    missing = list(support.numbers)

    def keep(found: re.Match[str]) -> str:
        number = _NUMBER.search(found[0])
        if number is None or int(number[1]) not in missing:
            return ""
        missing.remove(int(number[1]))
        return found[0]

    text = _MARK.sub(keep, whole)
    added = "".join(f"[{number}]" for number in missing) if support.is_supported else UNSUPPORTED
    if not added:
        return text
    body = text.rstrip()
    marks = list(_MARK.finditer(body))
    if marks and not body[marks[-1].end() :].strip(_QUOTES + _STOPS):
        at, blank = marks[-1].end(), ""
    else:
        end = body.rstrip(_QUOTES)
        # Before the full stop, but after a quote or bracket that ends with one.
        at, blank = len(end.rstrip(_STOPS)) if end == body else len(body), " "
    return f"{text[:at]}{blank}{added}{text[at:]}"
