"""Subtitles (`.srt`, `.vtt`): the spoken text in paragraphs, with the time of each cue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document
from ketrag_fast.types.locations import PAUSE, Locator, seconds_of

_TIMES: Final = re.compile(r"((?:\d{1,3}:)?\d{2}:\d{2})[.,]\d{3}[ \t]{1,9}-->")
_TAGS: Final = re.compile(r"<[^<>\n]*>")
_LONG: Final = 600
"""Characters from which a paragraph ends with the next sentence."""
_ENDS: Final = ".?!。？！"


def read_subtitles(file: SourceFile) -> Iterator[Item]:
    """Yield the subtitles as one document."""
    text = file.text()
    parts: list[str] = []
    locators: list[Locator] = []
    length = begin = 0
    before = 0
    for time, line in _cues(text):
        if parts:
            is_long = length - begin > _LONG and parts[-1][-1] in _ENDS
            parts.append("\n\n" if is_long or seconds_of(time) - before > PAUSE else " ")
            length += len(parts[-1])
            begin = length if len(parts[-1]) > 1 else begin
        locators.append(Locator(length, length + len(line), "time", time))
        parts.append(line)
        length += len(line)
        before = seconds_of(time)
    if not parts:
        yield file.failure("the file has no subtitles")
        return
    yield Document(file.id, "".join(parts), "", {}, tuple(locators))


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
