"""Contexts for questions about the whole index: excerpts of many documents, grouped by theme.

The ranked passages are divided into windows of a few sentences. Documents share the budget by relevance: the
best documents get long excerpts, many others short ones. A window that repeats another window is omitted.
The passages are clustered into themes, whose labels are the headings. For a question of general words alone
("What are these documents about?"), the context has the central sentences of the themes of the whole index
instead.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.kernels import sentence_spans
from ketrag_fast.query.answer.sentence_scores import rarity
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.ranking import Prepared, run
from ketrag_fast.query.themes.clusters import I64, NO_THEME, Keywords, cluster
from ketrag_fast.query.themes.describe import find_themes
from ketrag_fast.query.themes.labels import Speller, term_weights
from ketrag_fast.query.themes.question import has_general_words_alone
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared import has_model
from ketrag_fast.systems.shared.stored_rows import languages_of
from ketrag_fast.types import Context, Passage, Section, Theme, ThemeQuote

READ: Final = 80_000
"""Maximum size of the ranked passages that are read, in tokens."""
_MOST: Final = 300
"""Maximum number of passages that are read."""
_DOCUMENTS: Final = 60
"""Maximum number of documents that share the budget."""
_HALVED: Final = 10
"""Rank at which a document has half of the relevance of the first one."""
_LEAST: Final = 40
"""Fixed cost of a document in tokens. With a larger cost, fewer documents share the budget."""
_WINDOW: Final = 4
"""Number of sentences of an excerpt before it grows."""
_SMALLEST: Final = 10
"""Minimum share of a document in tokens."""
_SHORTEST: Final = 50
"""Minimum length in tokens to which the first excerpt of a document may be cut."""
_OF_DOCUMENT: Final = 6
"""Maximum number of passages of a document that are read."""
_ALIKE: Final = 0.5
"""Share of common keywords above which one window counts as repeating another."""
_SPELLING: Final = 12
"""Maximum number of passages of a theme that determine the spelling of its label."""
_HEADING: Final = 0.03
"""Share of the budget for headings."""
_FEWEST: Final = 2
"""Minimum number of excerpts of a theme with its own heading; other excerpts come last, under one heading."""
OTHERS: Final = "further passages"


@dataclass(frozen=True, slots=True)
class _Read:
    """A ranked passage: its position, its text, and its sentences with their keywords and token counts."""

    unit: int
    chunk: int
    document: str
    title: str
    start: int
    text: str
    spans: list[list[int]]
    keywords: list[frozenset[int]]
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """The sentences `first` to `last` of a passage, and the relevance of its document."""

    passage: int
    first: int
    last: int
    relevance: float


@dataclass(slots=True)
class _Taken:
    """The sentences chosen for the context, by passage, and the keywords of each chosen window."""

    sentences: dict[int, set[int]] = field(default_factory=dict)
    windows: list[frozenset[int]] = field(default_factory=list)

    def repeats(self, words: frozenset[int]) -> bool:
        return any(len(words & other) > _ALIKE * len(words | other) for other in self.windows)


def survey_all(
    plan: QueryPlan, questions: Sequence[str], prepared: Prepared, threads: int | None
) -> list[list[Context]]:
    """Return the contexts of each question, one per budget. Passages are not reranked."""
    rows = []
    replies = run(plan, plan.request([READ]), prepared, threads)
    for question, reply in zip(questions, replies, strict=True):
        started = time.perf_counter()
        is_general = plan.typed is None and has_general_words_alone(_core.lexical_keywords(question))
        if is_general:  # the lists of words are English; an overview does not know phrases and fields
            contexts = [_overview(plan, question, budget) for budget in plan.budgets]
        else:
            found = _Survey(plan, question, reply.contexts[0])
            contexts = [found.context(budget) for budget in plan.budgets]
        took = reply.milliseconds + (time.perf_counter() - started) * 1000
        timings = {"embed": prepared.milliseconds, "search": took}
        rows.append(
            [
                replace(
                    one,
                    timings_ms=timings,
                    warnings=prepared.warnings,
                    reason=reply.reason or one.reason if one.reason == "no_match" else one.reason,
                )
                for one in contexts
            ]
        )
    return rows


def _languages(plan: QueryPlan) -> list[int] | None:
    return languages_of(plan.opened.generation.stages.get("links")) or None


def _overview(plan: QueryPlan, question: str, budget: int) -> Context:
    """Return the central sentences of the themes of the whole index; a larger theme gets more sentences."""
    themes = find_themes(plan.opened, plan.condition).themes
    order = [
        (-theme.passages / (at + 1), number, theme, quote)
        for number, theme in enumerate(themes.themes)
        for at, quote in enumerate(_quotes_of(theme))
    ]
    order.sort(key=lambda one: one[:2])
    units = plan.opened.generation.stages["units"]["unit_chunk"]
    rows: dict[str, list[Passage]] = {}
    left = budget
    for _, _, theme, quote in order:
        row = _row(plan, int(units[quote.unit]), quote, theme.label, theme.passages)
        heading = 0 if theme.label in rows else plan.opened.count_tokens([_heading(theme.label)])[0]
        cost = row.tokens + heading
        if cost > left:
            break
        left -= cost
        rows.setdefault(theme.label, []).append(row)
    return _printed(plan, question, budget, rows, "no_match" if themes.passages else "empty_index")


def _quotes_of(theme: Theme) -> list[ThemeQuote]:
    """Return the quotes of a theme and of its narrower themes, without repeated texts."""
    found = {quote.text: quote for one in theme.walk() for quote in one.quotes}
    return list(found.values())


class _Survey:
    """The ranked passages of one question."""

    def __init__(self, plan: QueryPlan, question: str, ranked: _core.Printed) -> None:
        self._plan, self._question = plan, question
        self._vocabulary: dict[str, int] = {}
        self._passages = self._read(ranked)
        words = _core.lexical_keywords(question, languages=_languages(plan))
        self._words = {self._vocabulary[word] for word in words if word in self._vocabulary}
        self._labels: dict[int, str] = {}
        self._of_document: dict[str, list[int]] = {}
        for at, passage in enumerate(self._passages):
            own = self._of_document.setdefault(passage.document, [])
            if len(own) < _OF_DOCUMENT:
                own.append(at)

    def _read(self, ranked: _core.Printed) -> list[_Read]:
        """Read the sentences of the ranked passages."""
        plan = self._plan
        units = ranked.units[:_MOST]
        spans = ranked.spans[:_MOST]
        places = plan.opened.searcher.places(units, [end - start for start, end in spans])
        languages = _languages(plan)
        number = self._vocabulary
        found: list[_Read] = []
        for unit, (chunk, document, title, start, _, text, _before) in zip(units, places, strict=True):
            own = [span for span in sentence_spans(text).tolist() if text[span[0] : span[1]].strip()]
            sentences = [text[first:last] for first, last in own]
            keywords = []
            for sentence in sentences:
                words = _core.lexical_keywords(sentence, languages=languages)
                keywords.append(frozenset(number.setdefault(word, len(number)) for word in words))
            tokens = plan.opened.count_tokens(sentences)
            found.append(_Read(unit, chunk, document, title, start, text, own, keywords, tokens))
        plan.clock.left()
        return found

    @cached_property
    def _weights(self) -> Mapping[int, float]:
        """The weight of each keyword of the question, higher for keywords that fewer passages have."""
        count = Counter(word for one in self._passages for word in _union(one.keywords) & self._words)
        return {word: rarity(count[word], len(self._passages)) for word in sorted(self._words)}

    def context(self, budget: int) -> Context:
        """Return the context for a budget."""
        excerpts = self._excerpts(budget - int(_HEADING * budget))
        of_theme: dict[int, list[_Excerpt]] = {}
        for one in excerpts:
            of_theme.setdefault(int(self._themes[one.passage]), []).append(one)
        groups: dict[str, list[_Excerpt]] = {}
        for theme, own in sorted(of_theme.items(), key=lambda item: (len(item[1]) < _FEWEST, item[0])):
            groups.setdefault(self._label(theme) if len(own) >= _FEWEST else OTHERS, []).extend(own)
        weight = {label: sum(one.relevance for one in own) for label, own in groups.items()}
        order = sorted(groups, key=lambda label: (label == OTHERS, -weight[label], label))
        rows: dict[str, list[Passage]] = {}
        left = budget
        for label in order:
            cost = self._plan.opened.count_tokens([_heading(label)])[0]
            for one in groups[label]:
                row = self._row(one, label)
                more = row.tokens + (0 if label in rows else cost)
                count = sum(map(len, rows.values()))
                if more <= left and (self._plan.top is None or count < self._plan.top):
                    left -= more
                    rows.setdefault(label, []).append(row)
        reason = "budget_too_small" if excerpts else "no_match"
        return _printed(self._plan, self._question, budget, rows, reason)

    def _excerpts(self, budget: int) -> list[_Excerpt]:
        """Return the excerpts that share a budget, in the order of their documents' relevance."""
        documents = list(self._of_document)[:_DOCUMENTS]
        relevance = [1 / (1 + rank / _HALVED) for rank in range(len(documents))]
        level = _water_level(relevance, budget)
        taken = _Taken()
        found: list[_Excerpt] = []
        spare = 0.0
        for name, own in zip(documents, relevance, strict=True):
            share = own * level - _LEAST
            if (share < _SMALLEST and found) or budget <= 0:
                break
            allowed = share + spare
            spent = self._take(name, allowed, taken)
            spare = max(allowed - spent, 0.0)
            budget -= int(spent)
            for at in self._of_document[name]:
                sentences = sorted(taken.sentences.get(at, ()))
                found += [_Excerpt(at, first, last, own) for first, last in _runs(sentences)]
        return found

    def _take(self, document: str, allowed: float, taken: _Taken) -> float:
        """Choose the best windows of a document within its share of the budget, and return their tokens."""
        spent = 0.0
        for at, first in self._windows(document):
            if spent >= allowed:
                break
            passage = self._passages[at]
            own = taken.sentences.get(at, set())
            fresh = [one for one in range(first, min(first + _WINDOW, len(passage.spans))) if one not in own]
            row = 0 if own else _MARK + len(passage.title) // 3
            if spent:
                if spent + row + sum(passage.tokens[one] for one in fresh) > allowed:
                    continue
            else:  # the first window is cut instead
                limit = max(allowed, _SHORTEST)
                while len(fresh) > 1 and row + sum(passage.tokens[one] for one in fresh) > limit:
                    fresh.pop()
            found = _union([passage.keywords[one] for one in fresh])
            if not fresh or taken.repeats(found):
                continue
            taken.windows.append(found)
            taken.sentences.setdefault(at, set()).update(fresh)
            spent += row + sum(passage.tokens[one] for one in fresh)
        return spent

    def _windows(self, document: str) -> list[tuple[int, int]]:
        """Return the windows of a document, the best first, each as its passage and first sentence."""
        total = sum(self._weights.values()) or 1.0
        windows: list[tuple[float, int, int]] = []
        for order, at in enumerate(self._of_document[document]):
            passage = self._passages[at]
            for first in range(min(max(len(passage.spans) - _WINDOW, 0) + 1, len(passage.spans))):
                words = self._words & _union(passage.keywords[first : first + _WINDOW])
                score = sum(self._weights[word] for word in sorted(words)) / total + 1 / (2 + order)
                windows.append((-round(score, 9), at, first))
        return [(at, first) for _, at, first in sorted(windows)]

    @cached_property
    def _rows(self) -> list[list[int]]:
        """The keywords of each passage, ascending."""
        return [sorted(_union(one.keywords)) for one in self._passages]

    @cached_property
    def _themes(self) -> I64:
        """The theme of each passage, -1 for none."""
        count = len(self._passages)
        ends = np.cumsum([0, *map(len, self._rows)], dtype=np.uint64)
        indices = np.array([word for row in self._rows for word in row], np.uint32)
        names = list(self._vocabulary)
        digits = np.array([at for at, name in enumerate(names) if any(map(str.isdigit, name))], np.int64)
        keywords = Keywords(ends, indices, np.ones(len(indices), np.uint32), len(names), digits)
        settings, stages = self._plan.settings, self._plan.opened.generation.stages
        vectors = None
        if has_model(settings) and "vectors" in stages:
            units = np.array([one.unit for one in self._passages])
            vectors = StoredVectors.of(stages["vectors"]).decode(units)
        found = cluster(
            np.zeros((count, 2), np.uint64), keywords, vectors, seed=settings.seed, threads=settings.threads
        )
        if not found.levels:
            return np.full(count, NO_THEME, np.int64)
        return np.where(found.leaf == NO_THEME, NO_THEME, found.levels[0][found.leaf])

    def _counts(self, passages: Iterable[int]) -> I64:
        """Return the number of passages that contain each keyword."""
        words = [word for at in passages for word in self._rows[at]]
        return np.bincount(np.array(words, np.int64), minlength=len(self._vocabulary))

    def _label(self, theme: int) -> str:
        """Return the label of a theme, as its best passages spell it."""
        if theme == NO_THEME:
            return OTHERS
        if theme not in self._labels:
            own = np.flatnonzero(self._themes == theme)
            every = self._counts(range(len(self._rows)))
            weights = term_weights(self._counts(own.tolist()), len(own), every, len(self._rows))
            weights[list(self._words)] = 0
            best = own[:_SPELLING]
            texts = [self._passages[at].text for at in best.tolist()]
            speller = Speller(list(self._vocabulary).__getitem__, best, texts, _languages(self._plan) or [])
            self._labels[theme] = ", ".join(speller.label(weights, best)[0]) or OTHERS
        return self._labels[theme]

    def _row(self, one: _Excerpt, label: str) -> Passage:
        passage = self._passages[one.passage]
        begin, stop = passage.spans[one.first][0], passage.spans[one.last][1]
        whole = passage.text[begin:stop]
        text = whole.strip()
        start = passage.start + begin + len(whole) - len(whole.lstrip())
        end = start + len(text)
        location = self._plan.opened.places.of_unit(passage.unit, start, end)
        quote = ThemeQuote(text, passage.document, passage.title, start, end, passage.unit, location)
        return _row(self._plan, passage.chunk, quote, label, one.relevance)


def _union(sets: Sequence[frozenset[int]]) -> frozenset[int]:
    return frozenset[int]().union(*sets)


def _water_level(relevance: Sequence[float], budget: int) -> float:
    """Return the level at which the shares of documents, `relevance * level - _LEAST`, sum to a budget.

    A document whose share is too small for an excerpt gets nothing.
    """
    for count in range(len(relevance), 1, -1):
        level = (budget + count * _LEAST) / sum(relevance[:count])
        if relevance[count - 1] * level - _LEAST >= _SMALLEST:
            return level
    return float(budget + _LEAST)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each run of consecutive numbers.

    Examples:
        >>> _runs([1, 2, 5])
        [(1, 2), (5, 5)]
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


_MARK: Final = 6
"""Tokens of a row's mark and line breaks."""


def _heading(label: str) -> str:
    return f"## {label}\n\n"


def _row_text(number: int, title: str, text: str) -> str:
    return f"[{number}]\n{title}\n{text}\n\n" if title else f"[{number}]\n{text}\n\n"


def _row(plan: QueryPlan, chunk: int, quote: ThemeQuote, label: str, score: float) -> Passage:
    """Return a row of the context as a passage without a rank."""
    # A mark of up to three digits is one token.
    tokens = plan.opened.count_tokens([_row_text(100, quote.title, quote.text)])[0]
    return Passage(
        rank=0,
        kind=plan.opened.unit_kind,
        unit=quote.unit,
        chunk=chunk,
        document=quote.document,
        title=quote.title,
        start=quote.start,
        end=quote.end,
        score=float(score),
        tokens=tokens,
        channel=plan.mode.name,
        text=quote.text,
        page=quote.location.get("page"),
        why=({"theme": label},),
        location=quote.location,
        metadata=plan.opened.document_metadata.of_unit(quote.unit),
    )


def _printed(
    plan: QueryPlan, question: str, budget: int, rows: Mapping[str, Sequence[Passage]], reason: str
) -> Context:
    """Return the context of some rows, grouped by theme."""
    passages: list[Passage] = []
    sections: list[Section] = []
    for label, own in rows.items():
        text = _heading(label)
        tokens = plan.opened.count_tokens([text])[0] + sum(row.tokens for row in own)
        for row in own:
            passages.append(replace(row, rank=len(passages) + 1))
            text += _row_text(len(passages), row.title, row.text)
        sections.append(Section(label, tokens, text))
    filtered = plan.filtered
    if filtered is not None and not filtered.units:
        reason = "nothing_fits_filter"
    return Context(
        question=question,
        mode=plan.mode.name,
        budget=budget,
        tokens=sum(section.tokens for section in sections),
        text="".join(section.text for section in sections).rstrip("\n") + "\n" if sections else "",
        passages=tuple(passages),
        sections=tuple(sections),
        reason=None if passages else reason,
        generation=plan.opened.generation.number,
        fitting=None if filtered is None else filtered.units,
    )
