"""Passages that belong to a place: they define what it uses, use or test what it defines, or share words.

The links are names as they are written. A name that many passages have links nothing, so the rarest names of
the place are looked up, and each link counts by the rarity of its name.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ketrag_fast import _core
from ketrag_fast.base.scopes import scope_mask
from ketrag_fast.query.definitions import NAME, defined_names
from ketrag_fast.query.narrowing import units_of_pattern
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.search import Searcher, Snippets
from ketrag_fast.query.source_paths import place_fields
from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared.stored_rows import languages_of, span_of, text_of
from ketrag_fast.types import Hit, Hits

MODE: Final = "related"
"""The mode of the hits."""
_NAMES: Final = 40
"""Maximum number of names that are looked up, the rarest ones."""
_PASSAGES: Final = 4_000
"""Maximum number of passages, over all names, that are compared with the place."""
_WEIGHTS: Final = {"defines": 2.0, "uses": 1.5, "tests": 1.2, "shares": 0.3}
"""Weights of a shared name by its relation. They and the two factors below were chosen by looking at results
in three repositories: no set has judged relations, so no other values were compared."""
_SAME_FILE: Final = 0.6
"""Factor for each earlier passage of the same file, so that several files are shown."""
_SAME_KIND: Final = 0.8
"""Factor for each earlier passage with the same relation, so that definitions, uses and tests are shown."""
_HUMP: Final = re.compile(r"[a-z][A-Z]|[A-Za-z][A-Z][a-z]")
"""A capital within a name: `readFile`, `HTTPServer`."""
_SHOWN: Final = 3
"""Maximum number of names in a relation."""


@dataclass(frozen=True, slots=True)
class Related:
    """A passage that belongs to a place: its unit, its strength from 0 to 1, and the relation in words."""

    unit: int
    score: float
    relation: str


def related_units(
    opened: Opened,
    own: Sequence[int],
    symbol: str | None,
    count: int,
    mask: bytes | None,
    check: Callable[[], object],
) -> list[Related]:
    """Return at most `count` passages that belong to the units `own`, or to a name if `symbol` is given.

    Only units of the mask are returned. `check` is called between blocks and may raise.
    """
    units = opened.generation.stages["units"].columns
    text = "\n".join(text_of(units, "unit_texts", unit) for unit in own)
    defines = {symbol} if symbol else {name for _, name in defined_names(text)}
    names = _rare_names(opened, dict.fromkeys([*sorted(defines), *_used_names(opened, own, text)]), defines)
    if not names:
        return []
    pattern = _core.Pattern("|".join(re.escape(name) for name in names), words=True)
    fits = units_of_pattern(opened, pattern, mask, check)
    excluded = set(own)
    found = [unit for unit, fit in enumerate(fits) if fit and unit not in excluded]
    has = {unit: Counter(NAME.findall(text_of(units, "unit_texts", unit))) for unit in found}
    frequency = Counter(name for words in has.values() for name in words if name in names)
    total = math.log(len(opened.searcher) + 1)
    rarity = {name: max(1 - math.log(frequency[name] + 1) / total, 0.05) for name in names}
    documents = {unit: int(units["unit_document"][unit]) for unit in found}
    paths = [text_of(units, "document_ids", documents[unit]) for unit in found]
    is_test = dict(zip(found, scope_mask("tests", paths), strict=True))
    rows = []
    for unit in found:
        check()
        shared = [name for name in names if name in has[unit]]
        here = {name for _, name in defined_names(text_of(units, "unit_texts", unit))}
        if not shared:
            continue  # only a part of a longer name
        kinds = {name: _kind(name, here, defines, symbol, is_test=bool(is_test[unit])) for name in shared}
        value = sum(_WEIGHTS[kinds[name]] * rarity[name] for name in shared)
        rows.append((value, unit, _relation(kinds, rarity)))
    return _chosen(rows, dict(zip(found, paths, strict=True)), count)


def _kind(name: str, here: set[str], defines: set[str], symbol: str | None, *, is_test: bool) -> str:
    """Return how a passage that defines the names `here` is linked by a name to a place."""
    if name in here and (name == symbol or name not in defines):
        return "defines"
    if name in defines:
        return "tests" if is_test else "uses"
    return "shares"


def _used_names(opened: Opened, own: Sequence[int], text: str) -> list[str]:
    """Return the names that a place uses.

    In source code these are written as names are, and not as the words of comments: `parse_args`,
    `JsonReader`, `.read` or `read(`. Elsewhere all words are names.
    """
    units = opened.generation.stages["units"].columns
    paths = {text_of(units, "document_ids", int(units["unit_document"][unit])) for unit in own}
    scopes = [scope_mask(scope, sorted(paths)) for scope in ("code", "tests")]
    # The ids of documents that a program passed have no suffix, as scripts have none: they count as prose.
    is_code = all(map(any, zip(*scopes, strict=True))) and all("." in path for path in paths)
    return [match[0] for match in NAME.finditer(text) if not is_code or _is_name(match)]


def _is_name(match: re.Match[str]) -> bool:
    name, text = match[0], match.string
    is_compound = "_" in name.strip("_") or _HUMP.search(name) is not None
    return is_compound or text.startswith("(", match.end()) or _is_member(text, match.start())


def _is_member(text: str, start: int) -> bool:
    """Return whether a name follows `x.`, `x->` or `x::`, and not the end of a sentence."""
    return text.endswith((".", "->", "::"), 0, start) and text[max(start - 2, 0) : start - 1].strip() != ""


def _rare_names(opened: Opened, names: Iterable[str], defines: set[str]) -> list[str]:
    """Return the names to look up: those that the place defines, then its rarest ones."""
    stages = opened.generation.stages
    stage = stages.get("links", stages.get("words"))
    languages = languages_of(stage.columns if stage else None)
    rows = []
    for position, name in enumerate(names):
        keywords = _core.lexical_keywords(name, languages=languages)
        if not keywords and name not in defines:
            continue  # a stop word
        counts = [count for count in opened.searcher.keyword_units(keywords) if count]
        rows.append((name not in defines, min(counts, default=0), position, name))
    chosen: list[str] = []
    passages = 0
    for is_used, units, _, name in sorted(rows):
        passages += units
        if len(chosen) == _NAMES or (is_used and passages > _PASSAGES):
            break
        chosen.append(name)
    return chosen


def _relation(kinds: dict[str, str], rarity: dict[str, float]) -> str:
    """Return the strongest relation of a passage with its rarest names: `defines parse_args, Namespace`."""
    strength: dict[str, float] = defaultdict(float)
    for name, kind in kinds.items():
        strength[kind] += _WEIGHTS[kind] * rarity[name]
    kind = max(strength, key=lambda one: (strength[one], one))
    names = sorted((name for name in kinds if kinds[name] == kind), key=lambda name: (-rarity[name], name))
    return f"{kind} {', '.join(names[:_SHOWN])}"


def _chosen(rows: list[tuple[float, int, str]], files: dict[int, str], count: int) -> list[Related]:
    """Return the best passages, with several files and relations among them."""
    left = sorted(rows, key=lambda row: (-row[0], row[1]))[: max(50 * count, 200)]
    file_count, kind_count = Counter[str](), Counter[str]()
    chosen: list[Related] = []
    best = 0.0

    def value(row: tuple[float, int, str]) -> float:
        kind = row[2].partition(" ")[0]
        return row[0] * _SAME_FILE ** file_count[files[row[1]]] * _SAME_KIND ** kind_count[kind]

    while left and len(chosen) < count:
        top = max(left, key=lambda row: (value(row), -row[1]))
        best = best or value(top)
        chosen.append(Related(top[1], round(value(top) / best, 4), top[2]))
        left.remove(top)
        file_count[files[top[1]]] += 1
        kind_count[top[2].partition(" ")[0]] += 1
    return chosen


def related_hits(searcher: Searcher, place: str, found: Sequence[Related]) -> Hits:
    """Return related passages as hits."""
    opened = searcher.opened
    spans = [span_of(searcher.units, one.unit) for one in found]
    files = searcher.paths.of(span.document for span in spans)
    hits = []
    for rank, (one, span) in enumerate(zip(found, spans, strict=True), 1):
        location = opened.places.of_unit(one.unit, span.start, span.end)
        fields = place_fields(span.document, files, location, span.title)
        first = None if fields["lines"] is None else fields["lines"][0]
        names = one.relation.partition(" ")[2]
        hits.append(
            Hit(
                **fields,
                text_lines=searcher.text_lines(fields, span.document, span.start, span.text),
                rank=rank,
                score=one.score,
                text=span.text,
                snippet=Snippets(opened, names).lines(span.text, first),
                unit=one.unit,
                relation=one.relation,
            )
        )
    reason = None if hits else "no_match"
    return Hits(place, MODE, tuple(hits), reason, generation=opened.generation.number)
