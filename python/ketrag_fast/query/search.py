"""Search for people and assistants: hits with places and snippets, and exact matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.query.hit_places import place_fields
from ketrag_fast.query.inspect import document_title
from ketrag_fast.query.limits import Clock
from ketrag_fast.query.open_generation import FilterMask, Opened, mask_of
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.query.snippets import Snippets
from ketrag_fast.query.source_paths import SourceFile, SourcePaths
from ketrag_fast.systems.shared.row_text import span_of
from ketrag_fast.types import Context, Hit, Hits, Match, Passage

if TYPE_CHECKING:
    from ketrag_fast.query.grep import FoundLine

Globs = str | Sequence[str] | None


@dataclass(frozen=True)
class Searcher:
    """Searches one opened generation; `folder` is that of its tables."""

    opened: Opened
    folder: Path
    paths: SourcePaths = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", SourcePaths(self.folder))

    @property
    def units(self) -> Mapping[str, NDArray[Any]]:
        """Arrays of the stage `units`."""
        return self.opened.generation.stages["units"]

    # ------------------------------------------------------------ ranked

    def search(
        self,
        path: Path,
        query: Query,
        count: int,
        globs: Globs,
        pattern: _core.Pattern | None,
    ) -> Hits:
        """Return the best `count` passages for a query, of those that globs and pattern leave."""

        def narrow(filtered: FilterMask | None, clock: Clock) -> FilterMask | None:
            fits = self._units(None if filtered is None else filtered.fits, globs)
            if pattern is not None:
                from ketrag_fast.query.narrowing import units_of_pattern

                fits = units_of_pattern(self.opened, pattern, fits, clock.left)
            return filtered if fits is None else mask_of(fits)

        narrows = globs is not None or pattern is not None
        plan = plan_query(self.opened, path, query, narrow=narrow if narrows else None)
        context = run_plan(plan, [query.text], quoted=False)[0][0]
        return self.hits(context, count)

    def hits(self, context: Context, count: int) -> Hits:
        """Return the first `count` passages of a context as hits."""
        passages = context.passages[:count]
        files = self.paths.of(passage.document for passage in passages)
        snippets = Snippets(self.opened, context.question)
        return Hits(
            context.question,
            context.mode,
            tuple(self._hit(rank, one, snippets, files) for rank, one in enumerate(passages, 1)),
            context.reason,
            context.warnings,
            context.generation,
        )

    def _hit(self, rank: int, passage: Passage, snippets: Snippets, files: Mapping[str, SourceFile]) -> Hit:
        text, location, title = passage.text, passage.location, passage.title
        if passage.units:  # of neighbours that were found together, the best one is shown
            span = span_of(self.units, passage.unit)
            text, title = span.text, span.title
            location = self.opened.places.of_unit(passage.unit, span.start, span.end)
        place = place_fields(passage.document, files, location, title)
        first = None if place["lines"] is None else place["lines"][0]
        return Hit(
            **place,
            rank=rank,
            score=passage.relevance,
            text=text,
            snippet=snippets.lines(text, first),
            unit=passage.unit,
        )

    def _units(self, fits: NDArray[np.bool_] | None, globs: Globs) -> NDArray[np.bool_] | None:
        """Return the units of a mask that are in documents which globs want."""
        documents = self._documents_of(globs)
        if documents is None:
            return fits
        texts = self.opened.texts
        rows = np.repeat(documents, np.diff(texts.first_row))
        units: NDArray[np.bool_] = rows[self.units["unit_document"]]
        return units if fits is None else units & fits

    def _documents_of(self, globs: Globs) -> NDArray[np.bool_] | None:
        if globs is None:
            return None
        from ketrag_fast.query.narrowing import documents_of_globs

        return documents_of_globs(self.opened, globs, self.paths)

    def _documents(self, filtered: FilterMask | None, globs: Globs) -> NDArray[np.bool_] | None:
        """Return the documents that a filter and globs leave; None for all."""
        wanted = self._documents_of(globs)
        if filtered is None or filtered.core is None:
            return wanted
        matches = self.opened.texts.wanted(filtered.fits)
        return matches if wanted is None else wanted & matches

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
        from ketrag_fast.query.grep import matching_lines

        found = list(matching_lines(self.opened, pattern, self._documents(filtered, globs), limit, check))
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
        """Return the number of matching lines of each file, or document without one, that has any."""
        from ketrag_fast.query.grep import matching_counts

        counted = matching_counts(self.opened, pattern, self._documents(filtered, globs), check)
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
        rows = self.rows(found.document)
        row = self.opened.texts.row_at(found.document, found.start)
        location = self.opened.places.of_rows([row], found.start, found.end)
        if number is not None:
            location["lines"] = [number, number]
        name = self.opened.texts.names[found.document]
        title = self._titles.get(found.document)
        if title is None:
            title = self._titles[found.document] = document_title(self.units, rows)
        return Match(**place_fields(name, files, location, title), line=found.line)

    @cached_property
    def _titles(self) -> dict[int, str]:
        return {}

    def rows(self, document: int) -> range:
        """Return the rows of a document in the documents' arrays."""
        first, last = self.opened.texts.first_row[document : document + 2].tolist()
        return range(first, last)
