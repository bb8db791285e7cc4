"""Citations in a reply: `[2]`, `[1, 3]`, `[2-4]`, `[passage 5]`. Numbers without a passage are removed.

The reply is read piece by piece, so that the streamed text equals the final answer: a bracket is held back
until it closes or cannot be a citation. A leading `<think>...</think>`, which some models write, is dropped.
"""

from __future__ import annotations

import re
from typing import Final

MARK: Final = re.compile(
    r"( {0,8})\[\s*(?:(?:passages?|sources?|documents?|refs?)\.?\s*)?"
    r"(\d{1,9}(?:\s*(?:,|;|and|&|[-–])\s*\d{1,9})*)\s*\]",
    re.IGNORECASE,
)
"""A citation: the blanks before it, and its numbers."""
_RANGE: Final = re.compile(r"(\d+)\s*[-–]\s*(\d+)|(\d+)")
_LONGEST: Final = 80
"""Maximum length of an open bracket that may become a citation."""
_BLANKS: Final = 8
_OPEN, _CLOSE = "<think>", "</think>"


class CitationReader:
    """Reads a reply in pieces.

    Attributes:
        cited: Cited numbers, each once, in order of first use.
        removed: Count of numbers without a passage.
    """

    def __init__(self, passages: int) -> None:
        self._passages = passages
        self._held = ""
        self._thinking: bool | None = None  # None: unknown so far whether the reply begins with a thought
        self._begun = False
        self.cited: list[int] = []
        self.removed = 0

    def feed(self, piece: str) -> str:
        """Take a piece of the reply and return the text that is final so far."""
        text = self._after_thought(piece)
        if text is None:
            return ""
        self._held += text
        return self._settled(last=False)

    def finish(self) -> str:
        """Return the rest of the text at the end of the reply."""
        if self._thinking is None:
            self._thinking = False
        elif self._thinking:
            self._held = ""
        return self._settled(last=True)

    def _after_thought(self, piece: str) -> str | None:
        if self._thinking is False:
            return piece
        self._held += piece
        if self._thinking is None:
            begun = self._held = self._held.lstrip()
            if _OPEN.startswith(begun[: len(_OPEN)]) and len(begun) < len(_OPEN):
                return None
            self._thinking = begun.startswith(_OPEN)
        if self._thinking:
            _, closed, rest = self._held.partition(_CLOSE)
            if not closed:  # keep only what may be the start of the closing tag
                self._held = self._held[-len(_CLOSE) :]
                return None
            self._held, self._thinking = rest, False
        text, self._held = self._held, ""
        return text

    def _settled(self, *, last: bool) -> str:
        cut = len(self._held)
        if not last:
            begun = self._held.rfind("[")
            if begun >= 0 and "]" not in self._held[begun:] and cut - begun < _LONGEST:
                cut = begun
            # Blanks go where the citation after them goes; of a long run the last ones, as in MARK.
            cut = max(len(self._held[:cut].rstrip(" ")), cut - _BLANKS)
        text, self._held = self._held[:cut], self._held[cut:]
        text = MARK.sub(self._mark, text)
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        return text

    def _mark(self, found: re.Match[str]) -> str:
        marks: dict[str, None] = {}
        for first, second, single in _RANGE.findall(found[2]):
            low, high = int(first or single), int(second or single)
            good = range(max(low, 1), min(high, self._passages) + 1)
            self.removed += 1 if low > high else min(high - low + 1 - len(good), _LONGEST)
            for number in good:
                if number not in self.cited:
                    self.cited.append(number)
                marks[f"[{number}]"] = None
        return found[1] + "".join(marks) if marks else ""
