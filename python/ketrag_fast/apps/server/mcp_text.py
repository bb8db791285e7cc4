"""Results of the tools as text for a model: short, cut at a number of tokens, and with a way to get more.

Documents may hold text that imitates a result. Texts of several lines are therefore between fences that are
longer than any run of backticks in them, and other texts are printed as one line after a mark. So the server
writes each line of a reply outside the fences.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any, Final

from ketrag_fast.apps.terminal import display_path, one_line, quote_source_lines
from ketrag_fast.query.outline import Outline
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.types import Answer, Context, Excerpt, Files, Hit, Hits, Match, Passage, Place, Theme, Themes
from ketrag_fast.types.contexts import NOTHING_FITS
from ketrag_fast.types.wording import counted, outdated_files

TOKENS: Final = 2_000
"""Default size of a result."""
OUTLINE_TOKENS: Final = 1_000
"""Default size of a map of a repository."""
MOST_TOKENS: Final = 10_000
"""Clients warn about longer results."""
MOST_HITS: Final = 100
MOST_LINES: Final = 1000
WHOLE: Final = 1
"""Hits that are shown whole. This and the next number were chosen by benches/agents.py."""
BRIEF: Final = 3
"""Rank up to which hits have the line that fits best; of later ones only place and headings are shown."""
_DEFINING: Final = 3
"""Maximum number of files of which other definitions are named: with the first three files of code, 16 of the
twenty tasks of benches/tasks.py were answered, with three files that have such definitions 17."""
_UNKNOWN: Final = 10
"""Maximum number of unknown words that are listed."""
_LAST: Final = 100
"""Tokens for the last line."""
_FILE: Final = 5
"""Tokens that a file of a list has at least."""
_FENCES: Final = 12
"""Tokens that the fences of a text take at most."""
_LONGEST_FENCE: Final = 12
_RUNS: Final = re.compile("`{3,}")
_LEVELS: Final = 2
_THEME: Final = ("id", "terms", "passages", "document_count")
_FOLDERS: Final = 60
"""Folders that are listed instead of too many files."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a tool: its text, and the same as data."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)

    def noting(self, note: str | None) -> Reply:
        """Return the reply with a last line."""
        return self if note is None else replace(self, text=f"{self.text}\n{note}")


@dataclass(frozen=True, slots=True)
class Paths:
    """How places are named: by a short name that `read` takes. Other machines get no paths of this one."""

    local: bool

    def name(self, place: Place) -> str:
        """Return the path from the working directory on if the file is below it, else the id."""
        return self._name(place.path, place.part, place.document)

    def names(self, files: Files) -> list[str]:
        """Return the names of all files."""
        return [
            self._name(path, "", document)
            for path, document in zip(files.paths, files.documents, strict=True)
        ]

    def _name(self, path: str | None, part: str, document: str) -> str:
        if self.local and path is not None and path != document:
            short = display_path(path)
            if not os.path.isabs(short) and not short.startswith("~"):  # noqa: PTH117 - text, not a path
                return short + part
        return document

    def head(self, place: Place, lines: str | None = None) -> str:
        """Return the first line of a place: path, position, and the headings above it, without line ends."""
        position = position_of(place) if lines is None else lines
        named = f"[{place.index}] " if place.index else ""
        where = f"{named}{self.name(place)}" + (f":{position}" if position else "")
        sender = getattr(place, "sender", None)
        mail = ", ".join(filter(None, (sender and f"from {sender}", getattr(place, "date", None))))
        return one_line(" | ".join(part for part in (where, place.title, mail) if part))

    def sources(self, places: Sequence[Place]) -> str:
        """Return the words that say which folders or files were indexed."""
        found = list(dict.fromkeys(place.source for place in places if place.source is not None))
        return one_line(f" of {', '.join(map(display_path, found[:3]))}") if found and self.local else ""

    def json(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON form of a place, without paths for other machines."""
        return row if self.local else {**row, "path": None, "source": None}


def position_of(place: Place) -> str:
    """Return the position of a place, with both lines of a range."""
    lines = place.lines or place.text_lines
    if lines is None:
        return place.position
    return f"{lines[0]}-{lines[1]}" if lines[1] > lines[0] else str(lines[0])


Defined = Callable[[Hit], Sequence[tuple[int, str]]]
"""Returns lines and names of definitions in the file of a hit whose names share words with the query."""


def search_reply(hits: Hits, limit: int, tokens: int, paths: Paths, defined: Defined | None = None) -> Reply:
    """Return hits: the best one whole, of the next ones a line, of the others their places only.

    Of the first files of code, definitions that no shown passage begins with are named, too: a long function
    is often found by a passage in its middle, or by the constants above it. That none may fit comes first,
    because a model reads a passage as an answer.
    """
    shown: list[Hit] = []
    blocks: list[str] = []
    room = tokens - _LAST
    whole = 0
    for hit in hits:
        head = paths.head(hit) + f" | {hit.score:.2f}"
        head += "" if hit.relation is None else one_line(f" | {hit.relation}")
        if hit.description is not None and all(hit.description != one.description for one in shown):
            head += f"\n({one_line(hit.description)})"
        line = "" if hit.rank > BRIEF else one_line(best_line(hit))
        text = hit.text.strip("\r\n").rstrip()  # the first line keeps its indentation
        full = f"{head}\n{fenced(text)}"
        is_whole = len(shown) < WHOLE and _size(full) <= room
        block = full if is_whole else f"{head}\n… {line}" if line else head
        cost = _size(block) + 1
        if cost > room:
            break
        room -= cost
        whole += is_whole
        blocks.append(block)
        shown.append(hit)
    if not hits.hits:
        blocks = [_no_hits(hits)]
    else:
        named = _other_definitions(shown, whole, defined, paths) if defined is not None else ""
        if named and _size(named) < room:
            blocks.append(named)
        said = [_how_to_read((shown[whole:] or shown or hits.hits)[0], paths)]
        if len(shown) < len(hits.hits):
            said.append(f"{len(hits.hits) - len(shown)} more need max_tokens above {tokens}")
        elif len(hits.hits) == limit < MOST_HITS:
            said.append(f"limit={min(2 * limit, MOST_HITS)} shows more results")
        blocks.append(one_line(f"[{'; '.join(said)}]"))
    data = hits.to_json()
    rows = [paths.json(hit.to_json()) for hit in shown]
    first = _notes([NOTHING_FITS], ()) if hits.nothing_fits else []
    warnings = [warning for warning in hits.warnings if warning != NOTHING_FITS]
    notes = _notes([*hits.notes, *warnings], shown)
    return Reply("\n\n".join([*first, *blocks, *notes]), {**data, "hits": rows})


def _other_definitions(shown: Sequence[Hit], whole: int, defined: Defined, paths: Paths) -> str:
    """Return a line for each of the first files, with definitions at which no passage begins.

    The first `whole` passages are shown whole; the definitions in them are left out.
    """
    files: dict[str, Hit] = {}
    for hit in shown:
        if hit.lines is not None:
            files.setdefault(hit.path or hit.document, hit)
    lines: list[str] = []
    for path, hit in files.items():
        if len(lines) == _DEFINING:
            break
        seen = set[int]()
        for rank, one in enumerate(shown):
            if one.lines is not None and (one.path or one.document) == path:
                first, last = one.lines
                seen.update(range(first, last + 1) if rank < whole else (first,))
        names = [f"{name}:{line}" for line, name in defined(hit) if line not in seen]
        if names:
            lines.append(one_line(f"also in {paths.name(hit)}: {', '.join(names)}"))
    return "\n".join(lines)


def _how_to_read(hit: Hit, paths: Paths) -> str:
    """Return the call that shows a passage whole."""
    lines, name = hit.lines or hit.text_lines, paths.name(hit)
    if lines is None:
        position = f":{hit.position}" if hit.position else ""
        return f'read(path="{name}{position}") shows a passage whole'
    return (
        f'read(path="{name}", from_line={lines[0]}, lines={lines[1] - lines[0] + 1}) shows a passage whole, '
        "more lines what is around it"
    )


def fenced(text: str) -> str:
    """Return a text between two fences that it cannot imitate.

    A text with a very long run of backticks has a mark before each of its lines instead.

    Examples:
        >>> print(fenced("The Fram"))
        ```
        The Fram
        ```
    """
    longest = max(map(len, _RUNS.findall(text)), default=2)
    if longest >= _LONGEST_FENCE:
        return "\n".join(f"> {line}" for line in text.splitlines())
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def best_line(hit: Hit) -> str:
    """Return the line of a snippet that has most words of the query."""
    return max(hit.snippet, key=lambda line: len(line.marks)).text if hit.snippet else ""


def _no_hits(hits: Hits) -> str:
    if hits.reason == "below_min_score":
        return "No passage has that score: lower min_score, or leave it out."
    words = ", ".join(f'"{word}"' for word in hits.unknown[:_UNKNOWN])
    known = f" (no document has {words})" if words else ""
    return f"Nothing was found{known}: use other words, leave out glob and filter, or try grep and list."


def read_reply(excerpt: Excerpt, tokens: int, paths: Paths) -> Reply:
    """Return lines of a text, as many as fit."""
    rows = excerpt.text.split("\n")
    heads = "\n".join(head for _, head in excerpt.heads)
    room = tokens - _LAST - _FENCES - _size(paths.head(excerpt)) - min(_size(heads), tokens // 2)
    sizes = [count + 1 for count in _token_counts(rows)]
    count = 0
    while count < len(rows) and sizes[count] <= room:
        room -= sizes[count]
        count += 1
    notes = []
    if count == 0:  # one very long line
        rows = [_cut(rows[0], room)]
        count = 1
        notes.append(f"line {excerpt.first} is cut: grep finds what is in it")
    last = excerpt.first + count - 1
    name = paths.name(excerpt)
    if last < excerpt.total:
        notes.append(f'{excerpt.total - last} more lines: read(path="{name}", from_line={last + 1})')
    lines = (excerpt.first, last)
    text = "\n".join(rows[:count])
    if excerpt.lines is None:
        shown = replace(excerpt, text=text, text_lines=lines)
    else:
        shown = replace(excerpt, text=text, lines=lines)
    head = paths.head(shown)
    end = [one_line(f"[{'; '.join(notes)}]")] if notes else []
    printed = "\n".join(row for _, row in shown.rows())
    said = "\n".join([head, fenced(printed), *end, *_notes((), [shown])])
    return Reply(said, {"schema": "ketrag/text/1", **paths.json(shown.to_json())})


def grep_reply(matches: Sequence[Match], limit: int, tokens: int, paths: Paths) -> Reply:
    """Return the first `limit` matching lines under the names of their files; `matches` may have more."""
    if not matches:
        empty = "No line matches: try (?i) for any case, a shorter pattern, no glob, or search."
        return Reply(empty, {"schema": "ketrag/grep/1", "matches": [], "more": False})
    lines: list[str] = []
    shown: list[Match] = []
    room = tokens - _LAST
    for name, group in groupby(
        matches[:limit], lambda one: paths.head(replace(one, headings=one.headings[:1]), "")
    ):
        begun = False
        for match in group:
            block = ("" if begun else f"{name}\n") + f"{position_of(match)}: {one_line(match.line.text)}"
            cost = _size(block) + 1
            if cost > room:
                room = 0
                break
            room -= cost
            lines.append(block)
            shown.append(match)
            begun = True
        if not room:
            break
    is_more = len(shown) < len(matches)
    if len(shown) < min(limit, len(matches)):
        lines.append(f"[{len(shown)} lines are shown: narrow the pattern or glob, or raise max_tokens]")
    elif is_more:
        larger = f", or limit={min(2 * limit, MOST_LINES)}" if limit < MOST_LINES else ""
        lines.append(f"[{len(shown)} lines are shown, there are more: narrow the pattern or glob{larger}]")
    else:
        lines.append(f"[{counted(len(shown), 'line')} match]")
    rows = [paths.json(match.to_json()) for match in shown]
    data = {"schema": "ketrag/grep/1", "matches": rows, "more": is_more}
    return Reply("\n".join([*lines, *_notes((), shown)]), data)


def list_reply(
    files: Sequence[tuple[str | None, Files]], described: Mapping[str, str], tokens: int, paths: Paths
) -> Reply:
    """Return files of indexes with their titles, or folders with numbers of files if not all files fit.

    `described` has the descriptions of folders by path.
    """
    total = sum(len(own) for _, own in files)
    shown_folders = described.items() if paths.local else ()
    about = [one_line(f"[{display_path(path)}: {text}]") for path, text in shown_folders]
    while about and _size("\n".join(about)) > tokens // 3:
        about.pop()
    room = tokens - _LAST - _size("\n".join(about))
    data: dict[str, Any] = {"schema": "ketrag/files/1", "total": total}
    if not total:
        return Reply("No file matches: leave out glob and filter to see all.", {**data, "files": []})
    if total <= tokens // _FILE:
        places = [replace(place, index=name) for name, own in files for place in own]
        lines = [paths.head(place) for place in places]
        if _size("\n".join(lines)) <= room:
            end = f"[{counted(total, 'file')}{paths.sources(places)}; read(path) shows the text of one]"
            return Reply(
                "\n".join([*about, *lines, end]), {**data, "files": [_file(place, paths) for place in places]}
            )
    rows = [(name, *row) for name, own in files for row in _folders(paths.names(own))]
    lines = [
        one_line(f"{f'[{name}] ' if name else ''}{folder}/ {counted(count, 'file')}")
        for name, folder, count in rows
    ]
    sizes = accumulate(count + 1 for count in _token_counts(lines))
    shown = sum(size <= room for size in sizes)
    more = f"; {len(rows) - shown} more folders are not shown" if shown < len(rows) else ""
    below = paths.sources([own[0] for _, own in files if len(own)])
    end = one_line(
        f'[{counted(total, "file")}{below}{more}; list(glob="{rows[0][1]}/**") shows those of a folder]'
    )
    folders = [{"folder": folder, "files": count, "index": name} for name, folder, count in rows[:shown]]
    return Reply("\n".join([*about, *lines[:shown], end]), {**data, "folders": folders})


def outline_reply(maps: Sequence[tuple[str | None, Outline]], tokens: int) -> Reply:
    """Return the map of each index, which share the tokens."""
    end = '[NAME:LINE is a definition; search(related="path:line") shows what belongs to it]'
    room = (tokens - _size(end) - 1) // max(len(maps), 1)
    blocks = []
    for name, outline in maps:
        head = "" if name is None else one_line(f"[{name}]") + "\n"
        blocks.append(head + outline.text(room - (_size(head) if head else 0), one_line))
    rows = [{"index": name, **outline.to_json()} for name, outline in maps]
    return Reply("\n".join([*blocks, end]), {"schema": "ketrag/outline/1", "outlines": rows})


def themes_reply(themes: Themes, chosen: Theme | None, tokens: int) -> Reply:
    """Return themes with terms and sizes, or one theme with its documents and central sentences."""
    lines: list[str] = []
    if chosen is None:
        wanted = [theme for theme in themes.walk() if theme.id.count(".") < _LEVELS]
        lines += [_theme(theme) for theme in wanted]
        end = 'theme="1" shows the documents and central sentences of one'
        rows = [{key: row[key] for key in _THEME} for row in map(Theme.to_json, wanted)]
    else:
        lines.append(_theme(chosen))
        lines += [] if chosen.summary is None else [f"{chosen.summary.title}: {chosen.summary.text}"]
        lines += [f'"{one.text}" ({one.document})' for one in chosen.quotes]
        lines = [one_line(line) for line in lines]
        lines += [
            one_line(f"{one.document} | {one.title} | {counted(one.passages, 'passage')}")
            for one in chosen.documents
        ]
        lines += [_theme(theme) for theme in chosen.themes]
        end = "read(path) shows a document, search finds passages"
        rows = [chosen.to_json()]
    sizes = accumulate(count + 1 for count in _token_counts(lines))
    shown = sum(size <= tokens - _LAST for size in sizes)
    left = f"; {len(lines) - shown} lines are not shown: raise max_tokens" if shown < len(lines) else ""
    text = "\n".join([*lines[:shown], f"[{end}{left}]"])
    return Reply(text, {"schema": "ketrag/themes/1", "themes": rows})


def survey_reply(context: Context, tokens: int) -> Reply:
    """Return excerpts of many documents under the labels of their themes."""
    blocks: list[str] = []
    shown: list[Passage] = []
    room = tokens - _LAST
    label = None
    for passage in context.passages:
        lines = passage.location.get("lines")
        head = f"{passage.document}:{lines[0]}" if lines else passage.document
        head = one_line(f"{head} | {passage.title}" if passage.title else head)
        block = f"{head}\n{fenced(passage.text)}"
        own = next((str(reason["theme"]) for reason in passage.why if "theme" in reason), None)
        if own != label:
            block = one_line(f"## {own}") + f"\n{block}"
        cost = _size(block) + 2
        if cost > room:
            break
        room -= cost
        label = own
        blocks.append(block)
        shown.append(passage)
    if not blocks:
        return Reply("Nothing was found: use other words, or leave out filter.", context.to_json())
    end = "[read(path) shows a document, themes() all themes]"
    data = {**context.to_json(), "passages": [passage.to_json() for passage in shown]}
    return Reply("\n\n".join([*blocks, end]), data)


def answer_reply(answer: Answer) -> Reply:
    """Return an answer and the documents that it cites."""
    cited = [(one.number, one.passage) for one in answer.citations]
    lines = [one_line(f"[{number}] {passage.document} | {passage.title}") for number, passage in cited]
    text = quote_source_lines(answer.text) or "There is no answer: use search to see the passages."
    rows = [
        {"number": number, "document": passage.document, "text": passage.said} for number, passage in cited
    ]
    data = {"answer": answer.text, "reason": answer.reason, "citations": rows}
    return Reply("\n".join([text, *lines, *_notes([*answer.context.notes, *answer.warnings], ())]), data)


def _theme(theme: Theme) -> str:
    size = f"{counted(theme.passages, 'passage')} in {counted(theme.document_count, 'document')}"
    return one_line(f"{'  ' * theme.id.count('.')}{theme.id} | {', '.join(theme.terms)} | {size}")


def _file(place: Place, paths: Paths) -> dict[str, Any]:
    row = paths.json(place.to_json())
    return {key: value for key, value in row.items() if value is not None}


def _folders(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return folders with their numbers of files, as deep as there are not too many of them."""
    parents = [name.replace("\\", "/").split("/")[:-1] for name in names]
    depth = max(map(len, parents), default=0)
    while True:
        counts = Counter("/".join(parent[:depth]) or "." for parent in parents)
        if depth <= 1 or len(counts) <= _FOLDERS:
            return sorted(counts.items())
        depth -= 1


def _notes(warnings: Sequence[str], places: Sequence[Place]) -> list[str]:
    """Return what a model must know about results: warnings, and files that are not as they were."""
    found = [*warnings, *outdated_files((place.state, place.document) for place in places)]
    return [one_line(f"[{text}]") for text in found]


def _size(text: str) -> int:
    return _token_counts([text])[0]


def _cut(text: str, tokens: int) -> str:
    """Return the longest start of a text that has at most some tokens."""
    low, high = 0, min(len(text), 20 * max(tokens, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(text[:middle]) <= tokens else (low, middle - 1)
    return text[:low]


def _token_counts(texts: Sequence[str]) -> list[int]:
    """Return the number of tokens of each text."""
    from ketrag_fast.kernels import count_tokens  # imported here because it imports NumPy

    return [int(count) for count in count_tokens(texts)]
