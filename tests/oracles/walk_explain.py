"""Why the walk ranks a unit where it does, slow and plain: the oracle of the kernel's explanations."""

from __future__ import annotations

import numpy as np

from tests.oracles.walk import PRODUCT, Pairs, WalkCorpus
from tests.oracles.walk_parts import NONE, Arrays, WalkQuestion, rows_of, to_idf, vocabulary

BRIDGES = 32
Bridge = tuple[str, str, int, float]
"""Kind, text, how many units have it (of a subject: mention it), rarity."""


def bridges(links: Arrays, asked: WalkQuestion, unit: int, other: int, least: float) -> list[Bridge]:
    """Subjects that one of the two mentions, names and keywords of both, none named by the question.

    Keywords less rare than `least` join nothing.
    """
    n = len(links["unit_subject"])
    log = float(np.log(max(n, 2)))
    words = {name: vocabulary(links, name) for name in ("keywords", "names", "subjects")}
    rows = {name: rows_of(links, f"unit_{name}", len(words[name])) > 0 for name in words}
    mentions = rows_of(links, "unit_mentions", len(words["subjects"])) > 0
    idf = {name: to_idf(has.astype(float)) for name, has in rows.items()}
    found: list[list[Bridge]] = [[], [], [], []]
    for place, kind, by, of in ((0, "mentions", unit, other), (1, "mentioned", other, unit)):
        s = int(links["unit_subject"][of])
        inherited = s == int(links["unit_subject"][by])
        if s != NONE and not inherited and s not in asked.subjects and mentions[by, s]:
            count = int(rows["subjects"][:, s].sum())
            found[place].append((kind, words["subjects"][s], count, idf["subjects"][s] / log))
    for place, kind, name, known in (
        (2, "name", "names", asked.names),
        (3, "keyword", "keywords", asked.keywords),
    ):
        for x in np.flatnonzero(rows[name][unit] & rows[name][other]):
            if x not in known and (name == "names" or idf[name][x] / log >= least):
                found[place].append((kind, words[name][x], int(rows[name][:, x].sum()), idf[name][x] / log))
    kept: list[Bridge] = []
    for group in found:
        for bridge in sorted(group, key=lambda b: (-round(b[3], 12), -len(b[1].encode()), b[1])):
            said = any(set(bridge[1].split(" ")) <= set(known[1].split(" ")) for known in kept)
            if len(kept) < BRIDGES and not said:
                kept.append(bridge)
    return kept


def worths(links: Arrays, asked: WalkQuestion, unit: int, partners: list[int]) -> list[float]:
    """The worth of the unit's pair with each partner, without vectors."""
    pairs = Pairs(WalkCorpus.of(links), asked, [unit], partners, None, PRODUCT)
    return [float(x) for x in pairs.score[0]]
