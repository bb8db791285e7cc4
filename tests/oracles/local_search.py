"""Local search over a skeleton, plainly: the oracle of `rust/core/src/search/local` (KET-RAG, Alg. 2).

Nothing is cut here: where not one row fits, a table is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracles.skeleton import Count, EntityNode, entity_row, relation_head

ENTITIES = "-----Entities-----\nid|entity|description|number of relationships\n"
RELATIONS = "\n\n-----Relationships-----\nid|source|target|description|weight|rank|links\n"
SOURCES = "\n\n-----Sources-----\nid|text\n"


def table(head: str, rows: Sequence[tuple[str, int]], budget: int, count: Count) -> tuple[str, int, int]:
    """(text, tokens, rows): a header and the rows (text, cost) that fit; nothing where none does."""
    used, taken = count(head), 0
    for _, cost in rows:
        if used + cost > budget:
            break
        used += cost
        taken += 1
    if not taken:
        return "", 0, 0
    return head + "".join(text for text, _ in rows[:taken]), used, taken


def local_search(
    entities: Sequence[EntityNode],
    relations: Sequence[EntityNode],
    selected: Sequence[int],
    unit_texts: Sequence[str],
    unit_tokens: Sequence[int],
    budget: int,
    count: Count,
    *,
    per_entity: int = 10,
    rollover: bool = False,
) -> tuple[str, int, list[int], list[int], list[int]]:
    """(text, tokens, entities, relations, sources) for `selected` entities, nearest first."""
    half = budget // 2
    rows = [entity_row(e, entities[e]) for e in selected]
    first, used, shown = table(ENTITIES, [(row, count(row)) for row in rows], half, count)
    if not shown:
        return "", 0, [], [], []
    names = {e: node.name for e, node in enumerate(entities)}
    kept: tuple[str, int, int] = ("", 0, 0)
    joined: list[int] = []
    for p in range(1, len(selected) + 1):
        ranked = prefix(relations, set(selected[:p]), per_entity * p)
        printed = []
        for r, links in ranked:
            head = relation_head(r, relations[r], names)
            printed.append((f"{head}{links}\n", count(head) + count(links) + count("\n")))
        grown = table(RELATIONS, printed, half, count)
        if used + grown[1] > half:
            break
        kept, joined = grown, [r for r, _ in ranked[: grown[2]]]
    used += kept[1]
    units: list[int] = []
    for e in selected:
        tied = [u for pair in relations if e in pair.ends for u in pair.units]
        for u in sorted(entities[e].units, key=lambda u: (-tied.count(u), u)):
            if u not in units:
                units.append(u)
    sources = [(f"{u}|{unit_texts[u]}\n", count(f"{u}|") + unit_tokens[u] + count("\n")) for u in units]
    last, cost, some = table(SOURCES, sources, budget - used if rollover else half, count)
    return first + kept[0] + last, used + cost, list(selected[:shown]), joined, units[:some]


def prefix(relations: Sequence[EntityNode], members: set[int], most: int) -> list[tuple[int, str]]:
    """The relations of the first entities with their links: inside first, then the best that lead out."""
    inside = [r for r, pair in enumerate(relations) if set(pair.ends) <= members]
    outside = [r for r, pair in enumerate(relations) if len(set(pair.ends) & members) == 1]
    end = {r: next(i for i in relations[r].ends if i not in members) for r in outside}
    links = {r: sum(end[other] == end[r] for other in outside) for r in outside}
    inside.sort(key=lambda r: (-relations[r].rank, r))
    outside.sort(key=lambda r: (-links[r], -relations[r].rank, relations[r].ends[1] != end[r], r))
    return [(r, "") for r in inside] + [(r, str(links[r])) for r in outside[:most]]
