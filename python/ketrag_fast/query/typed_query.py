"""The query language: phrases, exclusions, prefixes and fields of a query, as masks of units.

`rust/text/src/query_language.rs` reads the text; docs/how-to/query-language.md describes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.query.open_generation import FilterMask, Opened, mask_of
from ketrag_fast.query.query import Clock, core_text
from ketrag_fast.records import dataclass, field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Units = NDArray[np.bool_]

_EXAMPLES: Final = {
    **dict.fromkeys(("in:", "path:", "folder:"), "clients/brandt"),
    **dict.fromkeys(("type:", "filetype:", "ext:"), "pdf"),
    **dict.fromkeys(("after:", "before:", "date:", "since:", "until:"), "2024-03"),
    **dict.fromkeys(("from:", "to:"), "jonas"),
    "file:": "contract.pdf",
}
"""Values of fields as messages show them."""
_MOST_PREFERRED: Final = 8
"""Maximum number of phrases of a question that are preferred; others count as words."""


@dataclass(frozen=True, slots=True)
class Term:
    """Words that follow each other; with `is_prefix`, the last one may have any ending."""

    text: str
    is_prefix: bool

    @property
    def shown(self) -> str:
        """The term as messages show it."""
        return f"{self.text}*" if self.is_prefix else f'"{self.text}"'


@dataclass(slots=True)
class TypedQuery:
    """A query with marks, resolved against an opened generation.

    Attributes:
        text: Its plain words and the words of its phrases.
        expansions: Keywords of its prefixes, by which passages are ranked in addition to `text`.
        notes: Sentences for people about how the query was read.
        demands: Whether it selects passages.
        lists_documents: Whether it selects documents by fields alone.
        lacks_terms: Whether no passage that fits its fields fits its phrases, prefixes and exclusions.
        is_listed: Whether the result is a list in index order, because no mode ranks it.
        preferred: Units with a phrase that a question prefers; None without such a phrase.
    """

    text: str = ""
    expansions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    demands: bool = False
    lists_documents: bool = False
    lacks_terms: bool = False
    is_listed: bool = False
    preferred: Units | None = None


def resolve_marks(
    opened: Opened, folder: Path, text: str, filtered: FilterMask | None, clock: Clock
) -> tuple[TypedQuery, FilterMask | None]:
    """Return a query with marks, and the units that it selects among those of a filter.

    Raises DeadlineExceeded.
    """
    resolver = _Resolver(opened, folder, filtered, clock)
    for part in _core.query_parts(core_text(text)):
        resolver.add(*part)
    return resolver.query, resolver.selected()


class _Resolver:
    """Collects the parts of a query, and finds the units that they select."""

    def __init__(self, opened: Opened, folder: Path, filtered: FilterMask | None, clock: Clock) -> None:
        self.query = TypedQuery()
        self._opened = opened
        self._folder = folder
        self._filtered = filtered
        self._clock = clock
        self._words: list[str] = []
        self._wanted: list[Term] = []
        self._unwanted: list[Term] = []
        self._preferred: list[Term] = []
        self._fields: list[tuple[str, str, bool]] = []
        self._ignored: list[str] = []
        self._empty: list[str] = []

    def add(self, kind: str, raw: str, text: str, name: str, excluded: bool) -> None:
        """Add a part of the query."""
        term = Term(text, kind == "prefix")
        if kind == "field" and not text:
            self._empty.append(f"{name}:")
        elif kind == "field":
            self._add_field(raw, text, name.lower(), excluded)
        elif kind == "preferred":
            self._preferred.append(term)
            self._words.append(text)
        elif kind in ("text", "ignored"):
            self._words.append(raw)
            if kind == "ignored":
                self._ignored.append(raw)
        elif excluded:
            self._unwanted.append(term)
        else:
            self._wanted.append(term)
            if kind == "phrase":
                self._words.append(text)

    def _add_field(self, raw: str, value: str, name: str, excluded: bool) -> None:
        from ketrag_fast.query.query_fields import problem_of

        problem = problem_of(self._opened, name, value, self._clock.left)
        if problem is None:
            self._fields.append((name, value, excluded))
            return
        self._words.append(raw)
        if problem:
            self.query.notes.append(problem)

    def selected(self) -> FilterMask | None:
        """Return the units that the query selects, and complete the query."""
        query = self.query
        if self._empty:
            self._report_empty()
        if self._ignored:
            query.notes.append(
                f"the query is long: {self._ignored[0][:40]} and other marks are read as text (see `literal`)"
            )
        units = self._select_by_fields()
        fits_fields = units is None or bool(units.any())
        found = [self._matching(term, units) for term in self._wanted]
        lacking = [term.shown for term, fits in zip(self._wanted, found, strict=True) if not fits.any()]
        if lacking:
            query.notes.append(f"no passage has {', '.join(lacking[:_MOST_PREFERRED])}")
        if found:
            both = np.logical_and.reduce(found)
            units = both if both.any() or len(found) == 1 else self._in_one_document(found)
        for term in self._unwanted:
            units = self._without(term, units)
        if self._preferred:
            preferred = [self._matching(term, units) for term in self._preferred[:_MOST_PREFERRED]]
            query.preferred = np.logical_or.reduce(preferred)
        query.text = " ".join(self._words)
        query.demands = bool(self._wanted or self._unwanted or self._fields)
        query.lists_documents = not self._wanted
        query.lacks_terms = fits_fields and units is not None and not units.any()
        return self._filtered if units is None else mask_of(units.tobytes())

    def _report_empty(self) -> None:
        """Report fields without a value, which are left out of the query."""
        has = "has no value, and was" if len(self._empty) == 1 else "have no value, and were"
        name = self._empty[0]
        form = f"the value follows without a blank: {name}{_EXAMPLES.get(name, 'kettle')}"
        self.query.notes.append(f"{', '.join(self._empty)} {has} ignored; {form}")

    def _select_by_fields(self) -> Units | None:
        units = None if self._filtered is None else self._filtered.fits
        if not self._fields:
            return units
        from ketrag_fast.query.query_fields import Selection

        selection = Selection(self._opened, self._folder, self._clock.left)
        for name, value, excluded in self._fields:
            selection.add(name, value, excluded=excluded)
        fits = selection.units(lambda text: self._matching(Term(*_prefix_of(text)), None, titles=True))
        return fits if units is None else units & fits

    def _matching(self, term: Term, units: Units | None, *, titles: bool = False) -> Units:
        """Return a mask of the units that have a term, among some units."""
        opened = self._opened
        count = len(opened.searcher)
        found = opened.searcher.matching(
            core_text(term.text),
            prefix=term.is_prefix,
            titles=titles,
            mask=None if units is None else _core.Mask(units.tobytes()),
            threads=opened.threads,
            seconds=self._clock.left(),
        )
        if found is None:
            return self._by_pattern(term, units)
        ids, keywords, cut = found
        if cut is not None:
            self.query.notes.append(
                f"{term.shown}: {cut[1]:,} words begin so; only the {cut[0]:,} most frequent were looked up"
            )
        if term in self._wanted:
            self.query.expansions += keywords
        fits = np.zeros(count, bool)
        fits[ids] = True
        return fits

    def _by_pattern(self, term: Term, units: Units | None) -> Units:
        """Return the units whose text has a term word for word, in an index without keywords."""
        import re

        from ketrag_fast.query.narrowing import units_of_pattern

        words = r"[^\w\n]+".join(map(re.escape, term.text.split()))
        begin = r"\b" if term.text[:1].isalnum() else ""
        end = r"\b" if term.text[-1:].isalnum() and not term.is_prefix else ""
        pattern = _core.Pattern(f"{begin}{words}{end}", any_case=True)
        mask = None if units is None else units.tobytes()
        return np.frombuffer(units_of_pattern(self._opened, pattern, mask, self._clock.left), np.bool_)

    def _in_one_document(self, found: Sequence[Units]) -> Units:
        """Return the units with any of several terms, in the documents that have all of them."""
        documents = np.asarray(self._opened.generation.stages["units"]["unit_document"])
        has = [np.isin(documents, np.unique(documents[one])) for one in found]
        every: Units = np.logical_and.reduce(has) & np.logical_or.reduce(found)
        return every

    def _without(self, term: Term, units: Units | None) -> Units:
        unwanted = self._matching(term, units)
        count = int(unwanted.sum())
        if count:
            passages = "passage that has" if count == 1 else "passages that have"
            self.query.notes.append(f"left out {count:,} {passages} {term.shown}")
        return ~unwanted if units is None else units & ~unwanted


def _prefix_of(text: str) -> tuple[str, bool]:
    """Return the value of a field without a star at its end, and whether it has one."""
    return (text[:-1], True) if text.endswith("*") and len(text) > 1 else (text, False)
