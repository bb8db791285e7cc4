"""Search for people and assistants: hits with locations and snippets, and exact matches."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.memory import map_threads
from ketrag_fast.query.inspect import document_title
from ketrag_fast.query.mail_heads import sender_and_date
from ketrag_fast.query.open_generation import FilterMask, Opened, mask_of
from ketrag_fast.query.plan import QueryPlan, plan_query
from ketrag_fast.query.query import Clock, Query, core_text
from ketrag_fast.query.source_paths import SourceFile, SourcePaths, place_fields, without_part
from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared.stored_rows import languages_of, span_of
from ketrag_fast.types import Context, Files, Hit, Hits, Match, Passage, Place
from ketrag_fast.types.hits import ShownLine

Globs = str | Sequence[str] | None
_POSITION: Final = ("lines", "page", "cell", "time")
"""Fields of a location that give the position in a file."""


_ENDLESS: Final = 2**62
_AHEAD: Final = 4
"""Blocks per thread that are searched ahead before checking whether more are needed."""


LINES: Final = 2
_WORD: Final = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_HIDDEN: Final = "\u00ad\u200b-\u200f\u2060\ufeff"
_COMPOUND: Final = re.compile(
    rf"(?:--|(?<!\w)[.$@#])?[^\W_]+(?:(?:[{_HIDDEN}]+|['’._/&@\-\u2010]|(?<=\d),(?=\d))[^\W_]+)*(?:\+\+|#)?"
)
"""A word with symbols, invisible characters, or further words that may be written as one with it."""
_PAIRS: Final = (
    ("\u0e00", "\u0eff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u3041", "\u30ff"),
    ("\u3400", "\u9fff"),
)
"""Scripts without spaces between words; their keywords are pairs of letters."""
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？;])\s+")
_LONG: Final = 160
"""Minimum length in characters of a line that is split into sentences."""

_ENOUGH: Final = 80
"""Minimum length in characters of a line that is shown alone if no other line has a keyword of the query."""


@dataclass(frozen=True)
class Searcher:
    """Searches one opened generation. `folder` is the folder of its tables."""

    opened: Opened
    folder: Path

    @cached_property
    def paths(self) -> SourcePaths:
        """The files of the documents."""
        return SourcePaths(self.folder)

    @property
    def units(self) -> Mapping[str, _core.Column]:
        """The arrays of the stage `units`."""
        return self.opened.generation.stages["units"].columns

    # ------------------------------------------------------------ ranked

    def plan(self, path: Path, query: Query, globs: Globs, pattern: _core.Pattern | None) -> QueryPlan:
        """Return the plan of a query for the passages that match the globs and the pattern."""

        def narrow(filtered: FilterMask | None, clock: Clock) -> FilterMask | None:
            mask = self._units(None if filtered is None else filtered.mask, globs)
            if pattern is not None:
                from ketrag_fast.query.narrowing import units_of_pattern

                mask = units_of_pattern(self.opened, pattern, mask, clock.left)
            return filtered if mask is None else mask_of(mask)

        narrows = globs is not None or pattern is not None
        return plan_query(self.opened, path, query, narrow=narrow if narrows else None)

    def hits(self, context: Context, count: int, ranked: str) -> Hits:
        """Return the first `count` passages of a context as hits.

        `ranked` is the text that they were ranked by.
        """
        passages = context.passages[:count]
        files = self.paths.of(passage.document for passage in passages)
        snippets = Snippets(self.opened, ranked)
        return Hits.from_context(
            context.question,
            context,
            [self._hit(rank, one, snippets, files) for rank, one in enumerate(passages, 1)],
        )

    def _hit(self, rank: int, passage: Passage, snippets: Snippets, files: Mapping[str, SourceFile]) -> Hit:
        text, location, title, start = passage.text, passage.location, passage.title, passage.start
        if passage.units:  # of adjacent passages, only the best one is shown
            span = span_of(self.units, passage.unit)
            text, title, start = span.text, span.title, span.start
            location = self.opened.places.of_unit(passage.unit, span.start, span.end)
        place = place_fields(passage.document, files, location, title)
        first = None if place["lines"] is None else place["lines"][0]
        sender, date = sender_and_date(passage.metadata)
        return Hit(
            **place,
            sender=sender,
            date=date,
            text_lines=self.text_lines(place, passage.document, start, text),
            rank=rank,
            score=passage.relevance,
            text=text,
            snippet=snippets.lines(text, first),
            unit=passage.unit,
        )

    def text_lines(
        self, place: Mapping[str, Any], document: str, start: int, text: str
    ) -> tuple[int, int] | None:
        """Return the lines of the indexed text that a passage covers, if it has no other position."""
        if any(place[field] is not None for field in _POSITION):
            return None
        number = self.opened.texts.numbers.get(document)
        if number is None:
            return None
        first = self.opened.texts.text(number).count("\n", 0, start) + 1
        return first, first + text.count("\n")

    def _units(self, mask: bytes | None, globs: Globs) -> bytes | None:
        """Return the units of a mask whose documents match the globs."""
        documents = self._documents_of(globs)
        if documents is None:
            return mask
        units = self.opened.texts.core.units_of(documents)
        return units if mask is None else both(units, mask)

    def _documents_of(self, globs: Globs) -> bytes | None:
        if globs is None:
            return None
        from ketrag_fast.query.narrowing import documents_of_globs

        return documents_of_globs(self.opened, globs, self.paths)

    def documents(self, filtered: FilterMask | None, globs: Globs) -> bytes | None:
        """Return a mask of the documents that match a filter and globs; None for all documents."""
        wanted = self._documents_of(globs)
        if filtered is None or filtered.core is None:
            return wanted
        matches = self.opened.texts.core.documents_of(filtered.mask)
        return matches if wanted is None else both(wanted, matches)

    # ------------------------------------------------------------ exact

    def grep(
        self,
        pattern: _core.Pattern,
        filtered: FilterMask | None,
        globs: Globs,
        limit: int | None,
        check: Callable[[], object],
    ) -> list[Match]:
        """Return the lines that match a pattern, in index order."""
        found = list(matching_lines(self.opened, pattern, self.documents(filtered, globs), limit, check))
        names = self.opened.texts.names
        files = self.paths.of(names[line.document] for line in found)
        return [self._match(line, files) for line in found]

    def counts(
        self,
        pattern: _core.Pattern,
        filtered: FilterMask | None,
        globs: Globs,
        check: Callable[[], object],
    ) -> dict[str, int]:
        """Return the number of matching lines of each file (or document without a file) that has any."""
        counted = matching_counts(self.opened, pattern, self.documents(filtered, globs), check)
        names = self.opened.texts.names
        files = self.paths.of(names[document] for document, _ in counted)
        found: dict[str, int] = {}
        for document, count in counted:
            name = names[document]
            key = files[name].path if name in files else name
            found[key] = found.get(key, 0) + count
        return found

    def _match(self, found: FoundLine, files: Mapping[str, SourceFile]) -> Match:
        number = found.line.number
        row = self.opened.texts.core.row_at(found.document, found.start)
        location = self.opened.places.of_rows([row], found.start, found.end)
        if number is not None:
            location["lines"] = [number, number]
        name = self.opened.texts.names[found.document]
        place = place_fields(name, files, location, self.title(found.document))
        has_other = any(place[field] is not None for field in _POSITION)
        lines = None if has_other else (found.text_line, found.text_line)
        return Match(**place, text_lines=lines, line=found.line)

    @cached_property
    def _titles(self) -> dict[int, str]:
        return {}

    def title(self, document: int) -> str:
        """Return the title of a document."""
        if document not in self._titles:
            self._titles[document] = document_title(self.units, self.opened.texts.rows(document))
        return self._titles[document]

    def files(self, filtered: FilterMask | None, globs: Globs) -> Files:
        """Return the files of the documents that match a filter and globs, in index order."""
        texts, wanted = self.opened.texts, self.documents(filtered, globs)
        specs = self.paths.specs()
        first: dict[str, int] = {}
        for at in range(len(texts)) if wanted is None else compress(range(len(texts)), wanted):
            name = texts.names[at]  # a sheet is listed once, by its first row
            first.setdefault(without_part(name) if name in specs else name, at)
        files = self.paths.of(texts.names[at] for at in first.values())
        found: dict[str, tuple[str, int]] = {}
        for name, at in first.items():
            file = files.get(texts.names[at])
            found.setdefault(name if file is None else file.path, (name, at))
        documents, numbers = zip(*found.values(), strict=True) if found else ((), ())

        def place(index: int) -> Place:
            number = numbers[index]
            fields = place_fields(texts.names[number], files, {}, self.title(number))
            return Place(**{**fields, "document": documents[index], "lines": None, "part": ""})

        return Files(tuple(found), documents, place)


def shown_words(plan: QueryPlan, question: str, context: Context) -> str:
    """Return the words that snippets show: those that passages were ranked by."""
    return core_text(" ".join([plan.ranked_text(question), *context.replaced.values()]))


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A matching line: the number of its document, its range in code points, and its text.

    The line number is None if the document's source has no lines. `text_line` is the line number in the
    indexed text.
    """

    document: int
    start: int
    end: int
    line: ShownLine
    text_line: int


def matching_lines(
    opened: Opened,
    pattern: _core.Pattern,
    wanted: bytes | None,
    limit: int | None,
    check: Callable[[], object],
) -> Iterator[FoundLine]:
    """Yield at most `limit` matching lines of the wanted documents, in index order."""
    most = _ENDLESS if limit is None else limit
    documents = opened.texts.core

    def find(block: tuple[int, int]) -> list[FoundLine]:
        check()
        return [
            FoundLine(document, start, end, ShownLine(text, tuple(marks), number, cut), line)
            for document, start, end, text, cut, marks, line, number in documents.lines(
                pattern, *block, wanted, most
            )
        ]

    count = 0
    for found in _in_order(find, documents.blocks(wanted), opened):
        yield from found[: most - count]
        count += len(found)
        if count >= most:
            return


def matching_counts(
    opened: Opened, pattern: _core.Pattern, wanted: bytes | None, check: Callable[[], object]
) -> list[tuple[int, int]]:
    """Return the wanted documents that have matching lines, with the number of matching lines of each."""
    documents = opened.texts.core

    def count(block: tuple[int, int]) -> list[tuple[int, int]]:
        check()
        return documents.counts(pattern, *block, wanted)

    return [row for rows in _in_order(count, documents.blocks(wanted), opened) for row in rows]


def both(first: bytes, second: bytes) -> bytes:
    """Return the rows that two masks of equal length select."""
    return (int.from_bytes(first) & int.from_bytes(second)).to_bytes(len(first))


def _in_order(work: Callable[[Any], Any], blocks: list[Any], opened: Opened) -> Iterator[Any]:
    """Yield the results of blocks in order. Some blocks are computed in parallel, and few in advance."""
    step = opened.threads * _AHEAD
    for at in range(0, len(blocks), step):
        yield from map_threads(work, blocks[at : at + step], opened.threads)


class Snippets:
    """Selects the lines of passages that are shown for one query."""

    def __init__(self, opened: Opened, question: str) -> None:
        stages = opened.generation.stages
        self._languages = languages_of(
            stage.columns if (stage := stages.get("links", stages.get("words"))) else None
        )
        keywords = dict.fromkeys(_core.lexical_keywords(question, languages=self._languages))
        self._weights = _rarities(opened, list(keywords))
        self._pairs = [word for word in keywords if _is_pair(word)]
        self._known: dict[str, Sequence[str]] = {}
        self._found: dict[str, float] = {}

    def lines(self, text: str, first: int | None) -> tuple[ShownLine, ...]:
        """Return the best one or two lines of a passage. `first` is the line number of its first line."""
        rows = list(_pieces(text))
        marked = [self._marks(piece) for _, piece in rows]
        words = [{word: weight for word, weight, _ in marks} for marks in marked]
        seen: set[str] = set()
        best: list[int] = []
        for _ in range(min(LINES, len(rows))):
            # A keyword counts once, so the second line is chosen for keywords that the first one lacks.
            score = [
                sum(weight * (1 if word not in seen else 0.1) for word, weight in own.items())
                for own in words
            ]
            order = sorted(
                (at for at in range(len(rows)) if at not in best),
                key=lambda at: (-score[at], _apart(at, best), at),
            )
            if best and not words[order[0]] and len(rows[best[0]][1]) >= _ENOUGH:
                break  # one long line is more useful than a second line without a keyword of the query
            best.append(order[0])
            seen |= words[order[0]].keys()
        found = []
        for at in sorted(best):
            line, piece = rows[at]
            spans = tuple(span for _, _, span in marked[at])
            found.append(ShownLine(piece, spans, None if first is None else first + line))
        return tuple(found)

    def marks(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the ranges of the query's keywords in a text."""
        return tuple(span for _, _, span in self._marks(text))

    def _marks(self, text: str) -> list[tuple[str, float, tuple[int, int]]]:
        """Return the query's keywords in a text: each word as written, its weight, and its range."""
        found = []
        for compound in _COMPOUND.finditer(text):
            parts = list(_WORD.finditer(text, *compound.span()))
            if len(parts) != 1 or parts[0][0] != compound[0]:
                keys = {key for part in parts for key in self._keys(part[0])}
                weight = self._weight(compound[0], keys)
                if weight:
                    found.append((compound[0].casefold(), weight, compound.span()))
                    continue
            weighed = ((part, self._weight_of(part[0])) for part in parts)
            found += [(part[0].casefold(), weight, part.span()) for part, weight in weighed if weight]
        covered = [False] * len(text)
        for pair in self._pairs:
            for match in re.finditer(re.escape(pair), text):
                if not any(covered[match.start() : match.end()]):
                    found.append((pair, self._weights[pair], match.span()))
                    covered[match.start() : match.end()] = [True] * len(pair)
        return sorted(found, key=lambda one: one[2])

    def _weight_of(self, word: str) -> float:
        """Return the rarity of a word, from the cache if possible: most words of a text repeat."""
        weight = self._found.get(word)
        if weight is None:
            weight = self._found[word] = self._weight(word)
        return weight

    def _weight(self, word: str, but: Collection[str] = ()) -> float:
        """Return the rarity of a word if any form of it, except some, is in the query, else 0."""
        return max((self._weights.get(key, 0.0) for key in self._keys(word) if key not in but), default=0.0)

    def _keys(self, word: str) -> Sequence[str]:
        """Return the keywords of a word. Pairs of characters are looked for in the text instead."""
        known = self._known.get(word)
        if known is None:
            keys = () if _is_pair(word) else _core.lexical_keywords(word, languages=self._languages)
            known = self._known[word] = tuple(keys)
        return known


def _is_pair(word: str) -> bool:
    """Return whether a word is in a script without spaces between words."""
    return not word.isascii() and any(first <= word[:1] <= last for first, last in _PAIRS)


def _apart(at: int, best: Sequence[int]) -> int:
    """Return the distance of a line from the chosen lines. The line below is nearer than the line above."""
    return min((abs(2 * (at - other) - 1) for other in best), default=0)


def _pieces(text: str) -> list[tuple[int, str]]:
    """Return the lines of a text with their numbers.

    Blank lines are left out, long lines split into sentences.
    """
    found = []
    for number, line in enumerate(text.split("\n")):
        line = line.strip()
        if len(line) > _LONG:
            found += [(number, piece) for piece in _SENTENCE.split(line) if piece]
        elif any(letter.isalnum() for letter in line):
            found.append((number, line))
    return found or [(0, text.strip())]


def _rarities(opened: Opened, keywords: Sequence[str]) -> Mapping[str, float]:
    """Return a weight for each keyword, higher for keywords that fewer passages have."""
    if "links" not in opened.generation.stages or not keywords:
        return dict.fromkeys(keywords, 1.0)
    units = len(opened.searcher)
    counts = opened.searcher.keyword_units(keywords)
    return {word: math.log1p(units / (1 + count)) for word, count in zip(keywords, counts, strict=True)}
