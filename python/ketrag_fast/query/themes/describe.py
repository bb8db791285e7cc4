"""Descriptions of themes: labels, central sentences, documents and shares over time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.filters import Condition
from ketrag_fast.base.progress import Callback, Meter
from ketrag_fast.errors import ModeUnavailable, UnknownName
from ketrag_fast.kernels.text import unpack
from ketrag_fast.query.dates import dates_of_rows, periods_of
from ketrag_fast.query.inspect import document_title
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.themes.clusters import F64, I64, NO_THEME, FoundThemes, cluster, keywords_of
from ketrag_fast.query.themes.labels import Speller, TermCounts, term_weights
from ketrag_fast.records import dataclass
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared import has_model
from ketrag_fast.systems.shared.rows import (
    U32,
    U64,
    Arrays,
    csr,
    documents_of,
    lengths,
    read_strings,
    select_rows,
    strings,
)
from ketrag_fast.systems.shared.stored_rows import languages_of, text_of
from ketrag_fast.types.themes import Theme, ThemeDocument, ThemePeriod, ThemeQuote, Themes
from ketrag_fast.types.wording import about_missing_name

QUOTES: Final = 3
DOCUMENTS: Final = 10
_READ: Final = (64, 32)
"""Number of central units whose texts are read, for a theme of the widest level and for others."""
_SHORTEST, _LONGEST = 40, 320
"""Minimum and maximum length of a quote in characters."""
_LETTERS: Final = 0.7
"""Minimum share of letters and spaces in a quote; code and tables have a smaller share."""
_NO_PROSE: Final = re.compile(r"[\t|{}\\]|```|\n\n|^[#<@.*:-]|[=(]$", re.MULTILINE)
"""Markup of tables, code and headings."""
_WHOLE: Final = re.compile(r"[\"'“‘(]*[^\W_a-z].*[.!?。！？…][\"'”’)]*", re.DOTALL)
_PART: Final = 0.75
"""Factor for the score of a text that is not a whole sentence."""
_ALIKE: Final = 0.5
"""Share of common keywords from which two quotes count as saying the same."""
_LENGTH: Final = 12.0
"""Added to a sentence's keyword count, whose square root divides its weight; penalises short sentences."""
_TRIED: Final = 40
_ENOUGH: Final = 12
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class _Node:
    """A theme: its level and its number on it, its distinct units, and its central units, best first."""

    level: int
    number: int
    units: I64
    central: I64
    parent: int
    """Position of the wider theme among the nodes, -1 for none."""


def find_themes(
    opened: Opened, condition: Condition | None = None, progress: Callback | None = None
) -> FoundThemes:
    """Return the themes of the documents that match a condition, as if the index had no other documents.

    If no condition is given, the filter of the settings applies. The latest themes are cached. One call at
    a time computes themes, so that parallel first calls do the work once.

    Raises:
        InputError: No document has a field of the condition.
        ModeUnavailable: The index lacks the keywords of the walk.
        Cancelled: `progress` returned False.
    """
    condition = opened.default_condition if condition is None else condition
    key = text_digest([repr(condition)])
    found = opened.themes.known([key]).get(key)
    if found is None:
        with opened.finding_themes:
            found = opened.themes.known([key]).get(key)
            if found is None:
                mask = opened.filtered(condition)
                found = ThemeFinder(opened, None if mask is None else mask.fits, progress).found()
                opened.themes.add({key: found})
    return found


def rows_of_theme(opened: Opened, found: FoundThemes, name: str) -> I64:
    """Return the first row of each document of a theme, ascending. Raises UnknownName."""
    if name not in found.units:
        known = list(found.units)[:5]
        raise UnknownName(f"there is no theme {name[:20]!r}", hint=about_missing_name(name[:20], known))
    units = opened.generation.stages["units"]
    owners, rows = documents_of(units)
    own = np.unique(owners[np.asarray(units["unit_document"])[found.units[name]]])
    return np.sort(rows[own])


class ThemeFinder:
    """Finds the themes of some units of an opened generation, as if it had no other units."""

    def __init__(
        self, opened: Opened, chosen: NDArray[np.bool_] | None = None, progress: Callback | None = None
    ) -> None:
        """Cluster the units that `chosen` selects, or all units."""
        stages = opened.generation.stages
        if "links" not in stages:
            raise ModeUnavailable(
                "themes need the keywords of the walk, which this index does not have",
                hint="`ketrag index --modes auto,walk` adds them",
            )
        self._opened = opened
        self._units: Arrays = stages["units"]
        self._links: Arrays = stages["links"]
        order = np.argsort(self._by_id[0], kind="stable")
        self._numbers: I64 = order if chosen is None else order[chosen[order]]
        vectors = None
        if has_model(opened.settings) and "vectors" in stages:
            vectors = StoredVectors.of(stages["vectors"]).decode()
        keys, words = np.asarray(self._units["unit_keys"]), keywords_of(self._links)
        if not np.array_equal(self._numbers, np.arange(len(keys))):
            keys, words = keys[self._numbers], words.taken(self._numbers)
            vectors = None if vectors is None else vectors[self._numbers]
        report = None if progress is None else Meter("themes", progress, "steps")
        settings = opened.settings
        self._clusters = cluster(
            keys, words, vectors, seed=settings.seed, threads=settings.threads, report=report
        )

    @cached_property
    def _distinct(self) -> I64:
        """The positions of the units that are in a theme, without copies."""
        found = self._clusters
        is_first = found.copy_of == np.arange(len(found.leaf))
        return np.flatnonzero(is_first & (found.leaf != NO_THEME))

    @cached_property
    def _counts(self) -> TermCounts:
        return TermCounts(self._links)

    @cached_property
    def _sentences(self) -> Sentences:
        return Sentences(self._units, self._links)

    @cached_property
    def _by_id(self) -> tuple[I64, I64]:
        """The document of each unit, and the first row of each document, in the order of their ids.

        The order of the index depends on when documents were added; themes must not depend on it.
        """
        owners, rows = documents_of(self._units)
        names = read_strings(self._units, "document_ids")
        order = np.array(sorted(range(len(rows)), key=lambda one: names[rows[one]]), np.int64)
        rank = np.empty(len(rows), np.int64)
        rank[order] = np.arange(len(rows))
        return rank[owners[np.asarray(self._units["unit_document"])]], rows[order]

    @cached_property
    def nodes(self) -> list[_Node]:
        """All themes, the widest first."""
        found, distinct = self._clusters, self._distinct
        leaf = found.leaf[distinct]
        nearness = np.round(found.nearness[distinct], _DIGITS)
        order = np.lexsort((distinct, -nearness, leaf))
        starts = np.searchsorted(leaf[order], np.arange(int(leaf.max()) + 1 if len(leaf) else 0))
        rank = np.empty(len(distinct), np.int64)
        rank[order] = np.arange(len(distinct)) - starts[leaf[order]]
        nodes: list[_Node] = []
        place: dict[tuple[int, int], int] = {}
        for level, themes in enumerate(found.levels):
            own = themes[leaf]
            # The best units of each smallest theme come first, so that the central units represent the
            # whole theme.
            order = np.lexsort((distinct, -nearness, rank, own))
            ends = np.searchsorted(own[order], np.arange(int(themes.max()) + 2))
            for number, (first, last) in enumerate(pairwise(ends.tolist())):
                units = self._numbers[distinct[order[first:last]]]
                parent = -1
                if level:
                    wider = int(found.levels[level - 1][np.argmax(themes == number)])
                    parent = place[level - 1, wider]
                place[level, number] = len(nodes)
                central = units[: _READ[min(level, 1)]]
                nodes.append(_Node(level, number, units, central, parent))
        return nodes

    @cached_property
    def described(self) -> list[tuple[tuple[str, ...], tuple[ThemeQuote, ...]]]:
        """The terms and the quotes of each theme."""
        nodes = self.nodes
        if not nodes:
            return []
        read = np.unique(np.concatenate([node.central for node in nodes]))
        texts = self._sentences.text_of_units(read.tolist())
        keyword = partial(text_of, self._links, "keywords")
        speller = Speller(keyword, read, texts, languages_of(self._links))
        every, total = self._counts.of(self._numbers[self._distinct]), len(self._distinct)
        counts: dict[int, I64] = {}
        found = []
        for at, node in enumerate(nodes):
            own = self._counts.of(node.units)
            if node.level + 1 < len(self._clusters.levels):
                counts[at] = own
            around, size = every, total
            if node.parent >= 0 and len(nodes[node.parent].units) > len(node.units):
                around, size = counts[node.parent], len(nodes[node.parent].units)
            weights = term_weights(own, len(node.units), around, size)
            if not weights.any():  # the theme contains every unit
                weights = own / max(len(node.units), 1)
            terms, weights = speller.label(weights, node.central)
            found.append((terms, self._quotes(node, weights)))
        return found

    def found(self) -> FoundThemes:
        """Return the themes with labels, quotes, documents and periods, and their units."""
        started = time.perf_counter()
        nodes, described, periods = self.nodes, self.described, self._periods()
        inner: dict[int, list[int]] = {}
        for at, node in enumerate(nodes):
            inner.setdefault(node.parent, []).append(at)
        copies = np.zeros(len(self._units["unit_document"]), np.int64)
        copies[self._numbers] = np.bincount(self._clusters.copy_of, minlength=len(self._numbers)) - 1

        units: dict[str, U32] = {}

        def by_size(at: int) -> list[int]:
            return sorted(inner.get(at, []), key=lambda one: (-len(nodes[one].units), one))

        def build(at: int, id: str) -> Theme:  # noqa: A002 - the name of the field
            node = nodes[at]
            units[id] = node.units.astype(np.uint32)
            terms, quotes = described[at]
            numbers, first, passages = np.unique(
                self._by_id[0][node.units], return_index=True, return_counts=True
            )
            order = np.lexsort((numbers, -passages))[:DOCUMENTS]
            below = by_size(at)
            while len(below) == 1:  # this level has the same passages
                below = by_size(below[0])
            return Theme(
                id,
                terms,
                len(node.units),
                int(copies[node.units].sum()),
                len(numbers),
                tuple(
                    self._document(int(numbers[one]), int(passages[one]), int(node.units[first[one]]))
                    for one in order
                ),
                quotes,
                _shares(periods, node.units),
                tuple(build(child, f"{id}.{number}") for number, child in enumerate(below, 1)),
            )

        found = tuple(build(at, str(number)) for number, at in enumerate(by_size(-1), 1))
        distinct = int((self._clusters.copy_of == np.arange(len(self._numbers))).sum())
        themes = Themes(
            found,
            distinct,
            len(self._numbers) - distinct,
            len(np.unique(self._by_id[0][self._numbers])),
            distinct - len(self._distinct),
            self._opened.generation.number,
            {"themes": (time.perf_counter() - started) * 1000},
        )
        return FoundThemes(themes, units, np.sort(self._numbers).astype(np.uint32))

    def _document(self, number: int, passages: int, unit: int) -> ThemeDocument:
        row = int(self._by_id[1][number])
        name = text_of(self._units, "document_ids", row)
        stop = row + 1
        last = len(self._units["document_ids_offsets"]) - 1
        while stop < last and text_of(self._units, "document_ids", stop) == name:  # sections of a document
            stop += 1
        return ThemeDocument(name, document_title(self._units, range(row, stop)), passages, unit)

    def _quotes(self, node: _Node, weights: F64) -> tuple[ThemeQuote, ...]:
        """Return the central sentences of a theme, from different documents if possible."""
        sentences, owner = self._sentences.of(node.central)
        if not len(sentences):
            return ()
        units = node.central[owner]
        indptr, words = self._sentences.keywords(sentences, units)
        counts = lengths(indptr)
        sums = np.zeros(len(words) + 1)
        np.cumsum(weights[words], out=sums[1:])
        ends = indptr.astype(np.int64)
        scores = np.round((sums[ends[1:]] - sums[ends[:-1]]) / np.sqrt(counts + _LENGTH), _DIGITS)
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] > 0]
        chosen: list[tuple[ThemeQuote, frozenset[int]]] = []
        spare: list[tuple[ThemeQuote, frozenset[int]]] = []
        tried: list[tuple[float, int, Sentence]] = []
        for first in range(0, len(order), _TRIED):
            part = order[first : first + _TRIED]
            read = self._sentences.texts(sentences[part], units[part])
            tried += [
                (float(scores[at]) * (1.0 if _WHOLE.fullmatch(sentence.text) else _PART), at, sentence)
                for at, sentence in zip(part.tolist(), read, strict=True)
                if _is_quotable(sentence.text)
            ]
            if len(tried) >= _ENOUGH:
                break
        for _, at, sentence in sorted(tried, key=lambda one: (-one[0], one[1])):
            if len(chosen) == QUOTES:
                break
            own = frozenset(words[ends[at] : ends[at + 1]].tolist())
            if any(len(own & other) > _ALIKE * min(len(own), len(other)) for _, other in (*chosen, *spare)):
                continue
            quote = self._quote(sentence.unit, sentence.start, sentence.end, sentence.text)
            is_new = all(quote.document != other.document for other, _ in chosen)
            (chosen if is_new else spare).append((quote, own))
        return tuple(quote for quote, _ in (*chosen, *spare)[:QUOTES])

    def _quote(self, unit: int, start: int, end: int, text: str) -> ThemeQuote:
        row = int(self._units["unit_document"][unit])
        return ThemeQuote(
            text,
            text_of(self._units, "document_ids", row),
            text_of(self._units, "document_titles", row),
            start,
            end,
            unit,
            self._opened.places.of_unit(unit, start, end),
        )

    def _periods(self) -> tuple[list[str], I64, I64] | None:
        """Return the periods, the period of each unit (-1 if unknown), and distinct units per period."""
        dates = dates_of_rows(self._units)
        if dates is None:
            return None
        rows = periods_of(dates)
        names = sorted(set(rows) - {""})
        number = {name: at for at, name in enumerate(names)} | {"": -1}
        own = np.array([number[row] for row in rows], np.int64)[np.asarray(self._units["unit_document"])]
        counted = own[self._numbers[self._distinct]]
        return names, own, np.bincount(counted[counted >= 0], minlength=len(names))


def _is_quotable(text: str) -> bool:
    """Return whether a text is a sentence of prose of a readable length."""
    if not _SHORTEST <= len(text) <= _LONGEST or _NO_PROSE.search(text) is not None:
        return False
    return sum(one.isalpha() or one == " " for one in text) >= _LETTERS * len(text) and " " in text


def _shares(periods: tuple[list[str], I64, I64] | None, units: I64) -> tuple[ThemePeriod, ...]:
    """Return the number of `units` in each period, and their share of its passages. Skips empty periods."""
    if periods is None:
        return ()
    names, own, totals = periods
    counted = own[units]
    counts = np.bincount(counted[counted >= 0], minlength=len(names))
    return tuple(
        ThemePeriod(name, count, round(count / total, 4))
        for name, count, total in zip(names, counts.tolist(), totals.tolist(), strict=True)
        if total
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a unit; offsets are code points of its document."""

    unit: int
    start: int
    end: int
    text: str


class Sentences:
    """The sentences of an index. Their numbers are the row numbers of the links."""

    def __init__(self, units: Arrays, links: Arrays) -> None:
        self._units, self._links = units, links
        own = np.flatnonzero(np.asarray(units["sent_title"]) == 0)
        self._spans = np.asarray(units["sent_bytes"])[own]
        self._first = np.asarray(links["first_sentence"]).astype(np.int64)
        self._begins = np.asarray(units["unit_bytes"])[:, 0]
        self._starts = np.asarray(units["unit_span"])[:, 0]
        self._texts: dict[int, str] = {}

    def text_of_units(self, units: Sequence[int]) -> list[str]:
        """Return the texts of some units, from a cache if possible."""
        new = [unit for unit in units if unit not in self._texts]
        if new:
            texts = _core.take_strings(strings(self._units, "unit_texts"), np.array(new, np.uint32))
            self._texts.update(zip(new, unpack(*texts), strict=True))
        return [self._texts[unit] for unit in units]

    def of(self, units: I64) -> tuple[I64, I64]:
        """Return the sentences of some units, and for each sentence the position of its unit in `units`."""
        counts = self._first[units + 1] - self._first[units]
        owner = np.repeat(np.arange(len(units)), counts)
        shift = np.repeat(self._first[units] - np.cumsum(counts) + counts, counts)
        return shift + np.arange(len(shift)), owner

    def keywords(self, sentences: I64, units: I64) -> tuple[U64, U32]:
        """Return the keywords of some sentences, given the unit of each."""
        indptr, places = select_rows(csr(self._links, "sentence_keywords"), sentences)
        of_unit, ids = csr(self._links, "unit_keywords")
        counts = lengths(indptr)
        own = np.repeat(units, counts)
        size = (of_unit[own + 1] - of_unit[own]).astype(np.int64)
        place = places.astype(np.int64)
        # Keywords that the unit lacks are stored after its row (rust/core/src/rank/sentence_rows.rs).
        inside = place < size
        found = np.where(inside, 0, place - size).astype(np.uint32)
        found[inside] = ids[of_unit[own[inside]].astype(np.int64) + place[inside]]
        return indptr, found

    def texts(self, sentences: I64, units: I64) -> Iterator[Sentence]:
        """Yield the texts of sentences without surrounding whitespace, given the unit of each."""
        spans = self._spans[sentences].tolist()
        begins, starts = self._begins[units].tolist(), self._starts[units].tolist()
        numbers = units.tolist()
        texts = self.text_of_units(numbers)
        for unit, text, (first, last), begin, start in zip(
            numbers, texts, spans, begins, starts, strict=True
        ):
            data = text.encode()
            before = data[: max(first - begin, 0)].decode("utf-8", "ignore")
            whole = data[max(first - begin, 0) : max(last - begin, 0)].decode("utf-8", "ignore")
            cut = whole.strip()
            at = start + len(before) + len(whole) - len(whole.lstrip())
            yield Sentence(unit, at, at + len(cut), cut)
