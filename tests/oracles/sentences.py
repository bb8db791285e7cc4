"""Plain version of the sentence splitter `standard`: expressions on code points, without care for time.

The lists of abbreviations are read from the Rust source, because a second copy would test nothing.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

Span = tuple[int, int]

_SOURCE = Path(__file__).parents[2] / "rust" / "text" / "src" / "abbreviations.rs"


def _list(name: str) -> frozenset[str]:
    found = re.search(rf"const {name}: &\[&str\] = &\[(.*?)\];", _SOURCE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return frozenset(re.findall(r'"([^"]+)"', found[1]))


TITLES, NUMBERED, EITHER = _list("TITLES"), _list("NUMBERED"), _list("EITHER")
STARTERS, MONTHS, BEFORE_ORDINALS = _list("STARTERS"), _list("MONTHS"), _list("BEFORE_ORDINALS")

SHORTEST, WRAPPED, CODE, TICKS, REFERENCE, FAR, JUNK, STEM = 15, 50, 400, 16, 24, 64, 64, 13
BREAKS = "\n\r\x85\u2028\u2029"
# A no-break space ends no sentence.
BLANKS = " \t\x0b\x0c\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u205f\u3000" + BREAKS
SPACES = BLANKS + "\xa0\u2007\u202f"
# Marks that need no blank after them.
WIDE = "၊။។៕。｡．﹒﹖﹗！？"
STOPS = ".․．﹒"
MARKS = STOPS + WIDE + "!?։؝؞؟۔܀܁܂߹।॥።፧፨᙮᠃᠉‼‽⁇⁈⁉⸮꓿"
IGNORED = (
    "\xad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069"
    "\ufe0e\ufe0f\ufeff"
)
CLOSING = "\"')]}”’»›」』）】》〉〕］｝〗〙¹²³⁰⁴⁵⁶⁷⁸⁹" + IGNORED
EMPHASIS = "*_~"
# Quotes that close in some languages and open in others.
EITHER_SIDE = "“‘«‹" + EMPHASIS
OPENING = "\"'([{“‘«‹„‚¿¡" + EMPHASIS
GOES_ON = ",-:;՝،؍߸᠂᠈–—、﹐﹑﹕﹘﹣，－：；" + MARKS
UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    "\u3038-\u303b\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f"
    "\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
MARKER = re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{1,3})*|[A-Za-z]|[ivxlc]{1,5})(?:\.\)?|\))")
ITEM = re.compile(
    rf"(?:\(?(?:[0-9]{{1,3}}|[A-Za-z]|[ivxlc]{{1,5}})\)|(?:[a-z]|[ivxlc]{{1,5}})\.(?![{SPACES}][^\W\d_]\.))"
    rf"(?:[{SPACES}]|\Z)"
)


class End(NamedTuple):
    """A place where a sentence may end.

    `mark` is the offset after the last mark, `closed` whether a quote, bracket or reference follows it.
    """

    at: int
    mark: int | None
    closed: bool = False


class Stretch(NamedTuple):
    """The text between two ends, without blanks around it."""

    start: int
    end: int
    after: End


def sentences(text: str) -> list[Span]:
    """Return the sentences of a text as spans of code points."""
    found: list[Span] = []
    start = 0
    while start < len(text):
        blank = re.compile(r"\n[ \t\r]*\n").search(text, start)
        end = blank.end() if blank else len(text)
        found += [(start + a, start + b) for a, b in _of_paragraph(text[start:end])]
        start = end
    return found


def _of_paragraph(text: str) -> list[Span]:
    found: list[Stretch] = []
    current: Stretch | None = None
    for stretch in _stretches(text):
        if current is not None and _belong(text, found, current, stretch):
            current = stretch._replace(start=current.start)
        else:
            if current is not None:
                _merge(found, current)
            current = stretch
    if current is not None:
        _merge(found, current)
    return [(stretch.start, stretch.end) for stretch in found]


def _belong(text: str, found: list[Stretch], current: Stretch, stretch: Stretch) -> bool:
    """Return whether a stretch continues the current one; one does after a list marker."""
    if _goes_on(text, current, stretch):
        return True
    if _is_broken(text[current.end : stretch.start]):
        return False
    begins = not found or _is_broken(text[found[-1].end : current.start])
    is_short = begins and current.end - current.start < SHORTEST
    return is_short or _is_marker(text[current.start : current.end])


def _merge(found: list[Stretch], stretch: Stretch) -> None:
    """Append a sentence, or merge it with the one before if one of them is too short."""
    if found and min(stretch.end - stretch.start, found[-1].end - found[-1].start) < SHORTEST:
        found[-1] = stretch._replace(start=found[-1].start)
    else:
        found.append(stretch)


def _is_broken(gap: str) -> bool:
    return any(c in BREAKS for c in gap)


def _is_marker(part: str) -> bool:
    """Return whether a text is a list marker or the number of a heading, with bullets and emphasis."""
    bare = part.lstrip("-*+•#>(_ \t").rstrip(EMPHASIS)
    return len(part) <= REFERENCE and MARKER.fullmatch(bare) is not None


def _stretches(text: str) -> list[Stretch]:
    stretches = []
    start = 0
    for end in [*_ends(text), End(len(text), None)]:
        part = text[start : end.at]
        if part.strip(SPACES):
            first = start + len(part) - len(part.lstrip(SPACES))
            stretches.append(Stretch(first, first + len(part.strip(SPACES)), end))
        start = end.at
    return stretches


def _ends(text: str) -> list[End]:
    ends: list[End] = []
    at = junk = 0
    while at < len(text):
        if text[at] == "`":
            at, junk = _code_end(text, at), 0
        elif text[at] in MARKS:
            end, at = _mark_end(text, at)
            junk = 0
            ends += [] if end is None else [end]
        else:
            junk = 0 if text[at].isalnum() else junk + 1
            if text[at] in BREAKS or junk == JUNK:
                junk = 0
                ends.append(End(at + 1, None))
            at += 1
    return ends


def _mark_end(text: str, first: int) -> tuple[End | None, int]:
    """Return the end of a sentence after the mark at `first`, if it is one, and where to look on."""
    at, near, mark, closed = first, first, first, False
    near_end = End(first, first)
    is_near, beyond = True, 0
    while at < len(text) and beyond < FAR:
        reference = re.compile(rf"\[[^\[\]`{BREAKS}]{{1,{REFERENCE}}}\]").match(text, at)
        if text[at] in MARKS:
            mark, closed = at + 1, False
        elif reference is not None:
            closed = True
        elif text[at] not in CLOSING + EITHER_SIDE:
            break
        elif text[at] not in IGNORED + EMPHASIS:
            closed = True
        is_near = is_near and reference is None and text[at] not in EITHER_SIDE
        at = reference.end() if reference else at + 1
        if is_near:
            near, near_end = at, End(at, mark, closed)
        beyond += not (is_near and mark == at)
    if re.match(rf"[\xa0\u2007\u202f]*(?:[{BLANKS}]|\Z)", text[at:]):
        return End(at, mark, closed), at
    after = text[near : near + 1]
    wide = any(c in WIDE for c in text[first:near]) or (
        re.match(UNSPACED, text[max(first - 1, 0) : first]) and re.match(UNSPACED, after)
    )
    number = text[near - 1] in STOPS and _is_number(after)
    quoted = text[near - 1] in "」』" and "ぁ" <= after <= "ん"
    if wide and not number and not quoted and after not in GOES_ON:
        return near_end, near
    return None, at


def _is_number(char: str) -> bool:
    return char != "" and unicodedata.category(char)[0] == "N"


def _run(text: str, at: int) -> int:
    """Return the number of backticks at `at`."""
    return len(text[at:]) - len(text[at:].lstrip("`"))


def _code_end(text: str, at: int) -> int:
    """Return the end of the code span that opens at `at`, or of its backticks if there is none."""
    inner = at + _run(text, at)
    before = text[:at]
    line = before.rstrip(" \t")
    is_fence = inner - at > 2 and (not line or line[-1] in BREAKS)
    if is_fence or (before and (before[-1].isalnum() or before[-1] == "\\")):
        return inner
    end, ticks = inner, 0
    while end < len(text) and ticks < TICKS and len(text[inner:end].encode()) < CODE:
        if text[end] == "`":
            after = end + _run(text, end)
            # As in `this' and ``that'', quotes of TeX.
            opens = text[end - 1] in SPACES + OPENING and text[after : after + 1].isalnum()
            if after - end == inner - at and not opens:
                return after
            end = after
            ticks += 1
        elif inner - at == 2 and text.startswith("''", end):
            break
        elif text[end] in BREAKS:
            following = text[end:].lstrip(SPACES)
            if _opens_an_item(following):
                break
            end = len(text) - len(following)
        else:
            end += 1
    return inner


def _goes_on(text: str, before: Stretch, stretch: Stretch) -> bool:
    """Return whether a stretch continues the one before."""
    after = text[stretch.start : stretch.end]
    opening = after.lstrip(OPENING)
    if not opening:
        return False
    broken = _is_broken(text[before.end : stretch.start])
    mark = before.after.mark
    last = text[before.start : before.end].rstrip(CLOSING + EITHER_SIDE)[-1:]
    if broken and (mark is not None or last in ",:;") and ITEM.match(after):
        return False
    is_abbreviated = (
        mark is not None
        and text[mark - 1] == "."
        and not before.after.closed
        and _is_abbreviated(text[before.start : mark - 1], opening)
    )
    if is_abbreviated:
        return True
    if opening[0].islower():
        return mark is None or not _is_marker(after)
    if mark is not None:
        if not broken and after[0] in GOES_ON:
            return True
        if text[mark - 1] != ".":
            return False
        return not broken and after[0] != "`" and _is_lower(after)
    if not broken:
        return False
    if last in ("", "…", ":", ";"):
        return False
    line = re.split(f"[{BREAKS}]", text[: before.end])[-1].lstrip(SPACES)
    return len(line.encode()) >= WRAPPED and not _opens_an_item(after)


def _is_lower(after: str) -> bool:
    """Return whether the first letter is in lower case, with no mark before it."""
    for char in after[:FAR]:
        if char in MARKS + BREAKS:
            return False
        if char.isalpha():
            return char.islower()
    return False


def _opens_an_item(line: str) -> bool:
    """Return whether a line begins a list item, a row, a fence or a heading."""
    if not line or line.startswith(("```", "~~~")):
        return True
    if _is_number(line[0]):
        digits = next((i for i, c in enumerate(line) if not _is_number(c)), len(line))
        rest = line[digits:]
        return rest[:1] in ("|", "\t") or (
            digits <= 3 and re.match(rf"[.)](?:[{SPACES}]|\Z)", rest) is not None
        )
    if line[0].isalnum() or line[0] in "(\"“'‘«„‚¿¡$€£¥`@/\\":
        return False
    if line[0] == "[":
        return not (line[1:2].isalpha() and line[2:3] != "]")
    return not (line[0] in EMPHASIS and line.lstrip(EMPHASIS)[:1].isalnum())


def _is_abbreviated(before: str, after: str) -> bool:
    """Return whether a sentence goes on after a full stop: of an abbreviation, initial or ordinal."""
    word = re.search(rf"(?:[^\W_]|\.){{0,{STEM}}}\Z", before)
    assert word is not None
    rest = before[: word.start()]
    last = word[0]
    first = re.match(r"[^\W_]*", after)
    assert first is not None
    follows = first[0]
    initial_follows = len(follows) == 1 and after[1:2] == "."
    starts = not initial_follows and follows in STARTERS
    if not last:
        return False
    lower = last.lower()
    if len(last) == 1 and last.isalpha():
        if initial_follows and follows.isalpha():
            return True  # z. B., J. R.
        pair = re.search(rf"(?:\A|[^\w.])([^\W\d_])\.[{SPACES}]\Z", rest)
        if pair is not None and f"{pair[1]}.{last}".lower() in TITLES | EITHER:
            lower = f"{pair[1]}.{last}".lower()
    if lower in TITLES:
        return True
    if lower in NUMBERED and not (len(last) == 1 and last.isupper()):
        return _is_number(after[0]) or (follows != "" and not follows.strip("IVXLC"))
    if re.fullmatch("[0-9]{1,2}", last):
        if follows in MONTHS:
            return True
        article = re.search(rf"([^\W_]{{1,{STEM}}})[{SPACES}]\Z", rest)
        return (
            article is not None
            and article[1] in BEFORE_ORDINALS
            and (after[0].isupper() or _is_number(after[0]))
            and not starts
        )
    if rest.rstrip(SPACES).endswith("°"):
        return False  # 30 °C
    initials = all(
        len(part) == 1 and (part.isupper() or "\u05d0" <= part <= "\u064a") for part in last.split(".")
    )
    return (initials or lower in EITHER) and not starts
