"""Subtitles (`.srt`, `.vtt`): the spoken text in paragraphs, with the time at which each begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ketrag_fast.readers.decode import decode
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

_TIMES: Final = re.compile(r"((?:\d{1,3}:)?\d{2}:\d{2})[.,]\d{3}[ \t]{1,9}-->")
_TAGS: Final = re.compile(r"<[^<>\n]*>")
_LONG: Final = 600
"""Characters from which a paragraph ends with the next sentence."""


def read_subtitles(file: SourceFile) -> Iterator[Item]:
    """Yield the subtitles as one document."""
    text = decode(file.read_bytes(), file.fallback_encoding)
    parts: list[str] = []
    locators: list[Locator] = []
    words: list[str] = []
    start, length, size = "", 0, 0
    for time, line in [*_cues(text), ("", "")]:
        if words and (not line or (size > _LONG and words[-1][-1] in ".?!")):
            paragraph = " ".join(words)
            length += 2 if parts else 0
            locators.append(Locator(length, length + len(paragraph), "time", start))
            parts.append(paragraph)
            length += len(paragraph)
            words, size = [], 0
        if line:
            start = start if words else time
            words.append(line)
            size += len(line)
    if not parts:
        yield file.failure("the file has no subtitles")
        return
    yield Document(file.id, "\n\n".join(parts), "", {}, tuple(locators))


def _cues(text: str) -> Iterator[tuple[str, str]]:
    """Yield (time, text) of each cue; a cue that repeats the one before is left out."""
    time = before = ""
    cue: list[str] = []
    for line in [*text.splitlines(), ""]:
        found = _TIMES.match(line)
        if found is not None:
            time, cue = found[1], []
        elif line.strip() and time:
            cue.append(_TAGS.sub("", line).strip())
        elif time:
            spoken = " ".join(part for part in cue if part)
            if spoken and spoken != before:
                yield time, spoken
            before, time = spoken, ""
