"""Stop a build whose first chunks yield no entities, instead of building an empty graph for hours."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ketrag_fast.errors import ExtractionError
from ketrag_fast.storage.journal import KeptReply

FEW: Final = 10
"""Number of chunks without entities, at the start, after which the build stops."""

_CAUSES: Final = (
    ("does not fit", "the model's context is too small for a chunk: give --llm-context, or smaller chunks"),
    ("time", "the model is too slow for this machine, or never ends: give a smaller one, or --llm-seconds"),
    ("repetition", "the model repeats itself: give one that was trained to follow instructions"),
    ("length", "replies end at the cap on tokens: give --llm-tokens, or a model that keeps to the form"),
    ("error", "the calls fail: see the message above, and try `curl` at the endpoint"),
    ("empty", "the model says nothing: reasoning models do so under a grammar; give an instruct model"),
    ("unusable", "the model does not keep to the form: give one that was trained to follow instructions"),
    ("clean", "the model is too small, or the texts name nothing of --entity-types"),
)


class Watch:
    """Checks the last reply of each chunk, in order of arrival."""

    def __init__(self, fertile: bool, spec: str) -> None:
        self._spec = spec
        self._rows: list[KeptReply] = []
        self.fertile = fertile
        """Whether any entity was found, in this build or before; then the build is never stopped."""

    def see(self, row: KeptReply) -> None:
        """Raise ExtractionError after enough chunks without entities."""
        if self.fertile or row.entities:
            self.fertile = True
            return
        self._rows.append(row)
        if len(self._rows) >= FEW:
            raise ExtractionError(self._message(), hint=self._hint())

    def _message(self) -> str:
        kinds = Counter(_kind(row) for row in self._rows)
        shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        last = next((row.error for row in reversed(self._rows) if row.error), None)
        tail = f"; the last error: {last}" if last else ""
        return f"{self._spec} found no entity in the first {len(self._rows)} chunks ({shown}){tail}"

    def _hint(self) -> str:
        kind = Counter(_kind(row) for row in self._rows).most_common(1)[0][0]
        cause = next(text for name, text in _CAUSES if name == kind)
        return f"{cause}. --on-barren continue builds anyway; finished chunks are not sent again"


def _kind(row: KeptReply) -> str:
    """Return the name of the likely cause in `_CAUSES`."""
    if row.finish == "error":
        return "does not fit" if row.error and "does not fit" in row.error else "error"
    if row.finish in ("time", "repetition", "length") and not row.usable:
        return row.finish
    if not row.usable:
        return "unusable" if row.text.strip() else "empty"
    return "clean"
