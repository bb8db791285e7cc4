"""The walk, slow and plain: the oracle of its kernel.

Works on the arrays of `kernels.build_links`, on every unit and node; its parts are in
`reference.walk_parts`. All pairs of candidates and partners are scored, twice.

Whatever is put in order is rounded first: scores by `round_score`, masses by `round_mass`. What is equal then
is a tie, which goes to the smaller id in stage 1, and after it to the candidate that stage 1 puts first. The
last bit of a score, which NumPy's libraries round as the processor allows, decides nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ketrag_fast import _core
from tests.oracles.walk_local import Local
from tests.oracles.walk_parts import (
    NONE,
    Array,
    Arrays,
    WalkQuestion,
    best_first,
    linked,
    move_question,
    projection,
    round_mass,
    round_score,
    rows_of,
    saturation,
    spread,
    step,
    to_idf,
    vocabulary,
    z,
)

CHAINS, MAX_TERMS = 10, 64
Vectors = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Sizes:
    """The numbers in which the product differs from the sketch; these are the sketch's."""

    pool: int = 150
    partners: int = 30
    seeds: int = 8
    rest_pool: int = 50
    step_pool: int = 30
    best_partners: int = 10
    rest_partners: int = 10
    rest_steps: int = 3
    cover: float = 9.0
    """The weight of the share of the question that a pair covers, without vectors."""
    stage1: float = 0.1
    """The weight of stage 1 in the sum."""
    least_rarity: float = 0.0
    """Keywords less rare than this (idf / ln n) join nothing."""
    first: int = 2
    first_stage1: float = 0.3
    """The first places, and what the direct match weighs there."""
    direct: float = 0.0
    distinct: float = 0.7
    distinct_span: float = 0.2
    """How much the direct match replaces the pairs, at most, if the documents have few distinct subjects."""
    common_distinct: float = 0.0
    common: float = 0.2
    """What is added to `distinct` if mentioned subjects are this common or more; less in proportion."""
    unlinked: float = 0.0
    mentioning: float = 0.1
    """And if the question names no subject and fewer candidates than this share mention one."""
    direct_stage1: float = 3.0
    """The weight of the direct match where it replaces all pairs."""
    company: float = 0.0
    """The weight of what else of its document matches, where the direct match replaces all pairs."""
    trust: float = 0.0
    """What vectors weigh in addition for each deviation by which the nearest unit exceeds sqrt(2 ln n)."""
    company_length: float = 0.0
    """The share that is subtracted of the company which documents of this length have on average."""
    company_repeated: float = 0.0
    single: float = 0.1
    """What a unit contains itself is subtracted in this share of its company's matches, if this share of the
    documents or more are a single unit; less in proportion."""
    own_words: float = 0.0
    """Added for what the person wrote, if the question is in the first person."""
    code_vectors: float = 0.0
    """What vectors weigh in addition if the nearest units are code, in proportion to the share of these."""


SKETCH = Sizes()
PRODUCT = Sizes(
    pool=120,
    partners=24,
    best_partners=8,
    rest_partners=8,
    rest_steps=1,
    cover=10.5,
    stage1=0.05,
    least_rarity=0.3,
    first_stage1=1.0,
    direct=1.0,
    distinct=0.65,
    common_distinct=0.2,
    unlinked=0.5,
    company=1.5,
    company_length=1.0,
    company_repeated=1.0,
    own_words=4.0,
    code_vectors=2.0,
    trust=1.5,
)


@dataclass
class WalkCorpus:
    """The arrays as dense matrices: units or sentences by things."""

    units: dict[str, Array]
    sentences: dict[str, Array]
    idf: dict[str, Array]
    saturation: Array
    mentions: Array
    subject: list[int]
    first: list[int]
    share: Array
    """Units by keywords: each row the idf of the subject's keywords, rescaled to 1."""

    @classmethod
    def of(cls, links: Arrays) -> WalkCorpus:
        """Reads the arrays; the keywords of subjects are cut as the kernels cut them."""
        names = ("keywords", "names", "subjects")
        words = {name: vocabulary(links, name) for name in names}
        sat = saturation(links)
        units = {"keywords": (sat > 0).astype(float)}
        units |= {name: rows_of(links, f"unit_{name}", len(words[name])) for name in names[1:]}
        sentences = {name: rows_of(links, f"sentence_{name}", len(words[name])) for name in names[:2]}
        idf = {name: to_idf(has) for name, has in units.items()}
        subject = [int(s) for s in links["unit_subject"]]
        place = {word: at for at, word in enumerate(words["keywords"])}
        share = np.zeros_like(sat)
        for unit, s in enumerate(subject):
            own = [] if s == NONE else _core.lexical_keywords(words["subjects"][s])
            ids = sorted({place[word] for word in own if word in place})
            total = idf["keywords"][ids].sum()
            if total > 0:
                share[unit, ids] = idf["keywords"][ids] / total
        first = [int(x) for x in links["first_sentence"]]
        mentions = rows_of(links, "unit_mentions", len(words["subjects"]))
        return cls(units, sentences, idf, sat, mentions, subject, first, share)


class Pairs:
    """Worth and link of every candidate (row) with every partner (column); nothing with itself."""

    def __init__(
        self,
        corpus: WalkCorpus,
        asked: WalkQuestion,
        rows: list[int],
        columns: list[int],
        vectors: Vectors | None,
        sizes: Sizes,
    ) -> None:
        n, idf = len(corpus.subject), corpus.idf
        worth = {name: x / float(np.log(max(n, 2))) for name, x in idf.items()}
        worth["keywords"][worth["keywords"] < sizes.least_rarity] = 0
        for name in worth:
            worth[name][getattr(asked, name)] = 0
        # Of long questions the rarest keywords count.
        rarity = dict(zip(asked.keywords, idf["keywords"][asked.keywords] * asked.weights, strict=True))
        terms = sorted(sorted(asked.keywords, key=lambda x: (-rarity[x], x))[:MAX_TERMS])
        weights = np.array([rarity[x] for x in terms])
        weights /= max(float(weights.sum()), 1e-9)
        cover = 6.0 if vectors else sizes.cover

        def inside(unit: int) -> range:
            return range(corpus.first[unit], corpus.first[unit + 1])

        def joint(of: Array, xs: list[int], ys: list[int]) -> Array:
            """Return the sum of the weights of the terms that x or y has, for each pair."""
            a, b = of[np.ix_(xs, terms)], of[np.ix_(ys, terms)]
            return np.array([np.maximum(row, b) @ weights for row in a]).reshape(len(xs), len(ys))

        def link(of: dict[str, Array], xs: list[int], ys: list[int]) -> Array:
            shared = {k: linked(of[k][xs], of[k][ys], worth[k]) for k in ("keywords", "names")}
            return 2.45 * shared["keywords"] + 1.05 * shared["names"]

        def mention(by: int, of: int) -> float:
            s = corpus.subject[of]
            own = corpus.subject[by]  # inherited by all units of a section: links nothing
            return 0.0 if s in (NONE, own) else float(corpus.mentions[by, s] * worth["subjects"][s])

        whole_link = link(corpus.units, rows, columns)
        whole = cover * joint(corpus.saturation, rows, columns) + whole_link
        xs, ys = ([x for unit in units for x in inside(unit)] for units in (rows, columns))
        own = link(corpus.sentences, xs, ys)
        value = cover * joint(corpus.sentences["keywords"], xs, ys) + own
        if vectors:
            whole += 6 * projection(vectors[2], vectors[0][rows], vectors[0][columns])
            value += 6 * projection(vectors[2], vectors[1][xs], vectors[1][ys])
        from_x, from_y = (np.cumsum([0, *map(len, map(inside, units))]) for units in (rows, columns))

        self.score, self.link = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
        for r, j in enumerate(rows):
            for c, i in enumerate(columns):
                if i == j:
                    continue
                block = np.s_[from_x[r] : from_x[r + 1], from_y[c] : from_y[c + 1]]
                closest, closest_link = value[block].max(initial=0.0), own[block].max(initial=0.0)
                named = float(corpus.share[i, asked.keywords].sum())
                mentions = max(1.5 * mention(i, j), mention(j, i))
                self.score[r, c] = 0.5 * whole[r, c] + 0.5 * closest + mentions + 2.5 * named
                self.link[r, c] = 0.5 * whole_link[r, c] + 0.5 * closest_link + mentions
        best = [corpus.sentences["keywords"][inside(j)].max(axis=0, initial=0.0) for j in rows]
        self.covered = np.array(
            [0.5 * corpus.saturation[j, terms] + 0.5 * b[terms] for j, b in zip(rows, best, strict=True)]
        )
        self.weights = weights


def _directness(
    corpus: WalkCorpus, asked: WalkQuestion, pool: list[int], sizes: Sizes, documents: list[int]
) -> float:
    """How much the direct match replaces the pairs, from 0 to 1, by the subjects of the documents."""
    together = {documents[u] for u in pool}
    first: dict[int, int] = {}
    for u in sorted(pool, key=lambda u: corpus.subject[u]):
        if corpus.subject[u] != NONE:
            first.setdefault(documents[u], corpus.subject[u])
    distinct = len(set(first.values())) / max(len(first), 0.6 * len(together), 1)
    others = [set(np.flatnonzero(corpus.mentions[u]).tolist()) - {corpus.subject[u]} for u in pool]
    units = corpus.units["subjects"].sum(axis=0)
    shares = [min(float(units[s]) / (documents[-1] + 1), 1.0) for mentioned in others for s in mentioned]
    common = sum(shares) / max(len(shares), 1)
    least = sizes.distinct + sizes.common_distinct * min(common / sizes.common, 1.0)
    few = sizes.direct * float(np.clip((least - distinct) / sizes.distinct_span, 0.0, 1.0))
    if asked.subjects or 2 * len(first) < len(together):
        return few
    share = sum(map(bool, others)) / max(len(pool), 1)
    return max(few, sizes.unlinked * max(1 - share / sizes.mentioning, 0.0))


def _company(
    rows: list[int], direct: Array, documents: list[int], fitted: float, repeated: float, weight: Array
) -> Array:
    """For each candidate the match of its better neighbour, plus that of the best other of its document.

    `weight[u, k]` is what keyword k of the question counts in unit u: its idf times its saturation. The share
    `repeated` of what the candidate contains itself is subtracted of each match. Of the sum, the share
    `fitted` is subtracted of what candidates in documents of this length have on average.
    """

    def adds(other: int, row: int) -> float:
        whole = weight[other].sum()
        new = np.maximum(weight[other] - weight[row], 0.0).sum() / whole if whole > 0 else 1.0
        return float(direct[other] * (1 - repeated * (1 - new)))

    found = []
    for row in rows:
        beside = [u for u in (row - 1, row + 1) if 0 <= u < len(direct) and documents[u] == documents[row]]
        others = [u for u in rows if u != row and documents[u] == documents[row]]
        best = sorted(others, key=lambda u: (-max(float(direct[u]), 0.0), rows.index(u)))[:1]
        found.append(sum(max([0.0, *(adds(u, row) for u in own)]) for own in (beside, best)))
    company = np.array(found)
    sizes = np.log([documents.count(documents[row]) for row in rows])
    away = sizes - sizes.mean()
    spread = float(away @ away)
    slope = max(float(away @ (company - company.mean())) / spread, 0.0) if spread > 1e-9 else 0.0
    result: Array = company - fitted * slope * away
    return result


def _chains(pairs: Pairs, places: list[int], direct: Array) -> Array:
    """For each candidate its best chain with one of the best pairs of partners (`places`: their rows)."""
    among = pairs.score[places] + direct[places][:, None]
    among = round_score(np.maximum(among, among.T))
    i, j = np.triu_indices(len(among), 1)
    order = best_first(among[i, j])[:CHAINS]
    if not len(order):
        return np.zeros(len(direct))
    value = np.full(len(direct), -np.inf)
    for k in order:
        a, b = i[k], j[k]
        both = np.maximum(pairs.covered[places[a]], pairs.covered[places[b]])
        new = np.maximum(pairs.covered - both, 0) @ pairs.weights
        gap = among[i[order[0]], j[order[0]]] - among[a, b]
        value = np.maximum(value, 5 * new + np.maximum(pairs.link[:, a], pairs.link[:, b]) - 0.5 * gap)
    return value


def _is_code(text: str) -> bool:
    """Whether at least four marks of code are more than 4 % of its bytes without blanks."""
    marks = len(re.findall(rb"[(){}\[\]=;<>]|(?<=[0-9A-Za-z])_", text.encode()))
    return marks >= 4 and 25 * marks > len(re.sub(rb"[ \t\n\f\r]", b"", text.encode()))


def walk(
    links: Arrays,
    asked: WalkQuestion,
    lengths: Array,
    vectors: Vectors | None = None,
    sizes: Sizes = SKETCH,
    wanted: Array | None = None,
    local: Local | None = None,
    documents: list[int] | None = None,
    texts: list[str] | None = None,
    question: str = "",
) -> tuple[list[int], Array]:
    """Every unit, best first, and the scores of the candidates, which come first and fall.

    With `local`, stage 1 and the steps are the local form's, in which some units are not ranked.

    `documents` and `texts`: of each unit. `question` is the text of `asked`; only whether it is in the first
    person is read.

    `asked` has keywords. `lengths`: natural logarithms of the units' lengths. With `wanted`, which says for
    each unit whether it is, only these are returned: candidates are the best of them, beside the partners of
    round 1.
    """
    corpus = WalkCorpus.of(links)
    n = len(corpus.subject)
    bm25 = corpus.saturation[:, asked.keywords] * corpus.idf["keywords"][asked.keywords] * asked.weights
    direct = z(bm25.sum(axis=1))
    if vectors:
        near = z(vectors[0] @ vectors[2])
        excess = max(float(near.max()) - float(np.sqrt(2 * np.log(n))), 0.0)
        nearest = [texts[u] for u in best_first(near)[:20]] if texts else []
        code = 1 + sizes.code_vectors * sum(map(_is_code, nearest)) / max(len(nearest), 1)
        direct = z(code * (1 + sizes.trust * excess) * near + direct)
    first, seen = spread(links, asked, round_score(direct)), np.ones(n, bool)
    if local:
        starts = seen if vectors else np.asarray(bm25.any(axis=1), bool)
        first, seen = local.spread(links, asked, round_score(direct), starts, local.steps)
    first = round_score(first)
    order = [int(u) for u in best_first(first) if seen[u]]
    pool, partners = order[: sizes.pool], order[: sizes.partners]
    if wanted is not None:
        order = [u for u in order if wanted[u]]
        chosen = {*order[: sizes.pool], *partners}
        pool = [int(u) for u in best_first(first) if int(u) in chosen]
    direct_share = _directness(corpus, asked, pool, sizes, documents or list(range(n)))
    weight = sizes.stage1 + direct_share * (sizes.direct_stage1 - sizes.stage1)
    named = np.array([float(s in asked.subjects) for s in corpus.subject])

    pairs = Pairs(corpus, asked, pool, partners, vectors, sizes)
    shown = pairs.score.max(axis=1) + weight * first[pool] + 2.5 * named[pool] - 0.4 * lengths[pool]
    best = best_first(round_score(shown))
    winner, partner = pool[best[0]], partners[int(np.argmax(round_score(pairs.score[best[0]])))]

    covered = np.maximum(corpus.saturation[winner], corpus.saturation[partner])[asked.keywords]
    left = bm25 * (1 - np.minimum(1, 1.5 * covered))
    left_direct = round_score(z(left.sum(axis=1)))
    rest, seen = spread(links, asked, left_direct, sizes.rest_steps), np.ones(n, bool)
    if local:
        rest, seen = local.spread(
            links, asked, left_direct, np.asarray(left.any(axis=1), bool), local.rest_steps
        )
    rest = round_score(rest)
    seeds = [pool[b] for b in best[: sizes.seeds]]
    start = np.zeros(n)
    start[seeds] = 1 / len(seeds)
    stepped = 0.5 * start + 0.5 * (local.step(links, asked, start) if local else step(links, asked, start))
    rest_order, step_order = best_first(rest), best_first(round_mass(stepped))
    if local:
        rest_order, step_order = rest_order[seen[rest_order]], step_order[stepped[step_order] > 0]
    rows = list(
        dict.fromkeys(
            [*pool, *map(int, rest_order[: sizes.rest_pool]), *map(int, step_order[: sizes.step_pool])]
        )
    )
    new = [*(pool[b] for b in best[: sizes.best_partners]), *map(int, rest_order[: sizes.rest_partners])]
    columns = list(dict.fromkeys([*partners, *new]))

    pairs = Pairs(corpus, asked, rows, columns, vectors, sizes)
    chain = _chains(pairs, [rows.index(c) for c in columns], weight * first[rows])
    scores = (1 - direct_share) * pairs.score.max(axis=1) + weight * first[rows] + 0.03 * rest[rows]
    scores += 0.16 * np.log(stepped[rows] + 1e-9) + 2.5 * named[rows]
    scores += 1.5 * corpus.share[rows][:, asked.keywords].sum(axis=1)
    scores += (-0.4 if vectors else -0.5) * lengths[rows] + (0.5 if vectors else 0.8) * chain
    if documents:
        together = [documents[u] for u in pool]
        share = sum(together.count(one) > 1 for one in together) / max(len(pool), 1)
        single = sum(documents.count(one) == 1 for one in set(together)) / max(len(set(together)), 1)
        repeated = sizes.company_repeated * min(single / sizes.single, 1.0)
        matched = corpus.saturation[:, asked.keywords] * corpus.idf["keywords"][asked.keywords]
        company = _company(rows, round_score(direct), documents, sizes.company_length, repeated, matched)
        scores += sizes.company * direct_share * share * company
    if texts and re.search(r"\b(i|me|mine|my|myself)\b", question.lower()):
        own = np.array([texts[u].startswith("user:") for u in rows], float)
        scores += sizes.own_words * direct_share * own
    scores = round_score(scores)
    if wanted is not None:
        kept = [at for at, row in enumerate(rows) if wanted[row]]
        rows, scores = [rows[at] for at in kept], scores[kept]
    if vectors and n > 1 and rows:
        scores = round_score(move_question(corpus.first, rows, scores, vectors))
    direct_first = round_score(scores + max(sizes.first_stage1 - weight, 0) * first[rows])
    head = [int(at) for at in best_first(direct_first)[: sizes.first]]
    places = list(dict.fromkeys([*head, *map(int, best_first(scores))]))
    ranked = [rows[at] for at in places]
    inside = set(ranked)
    shown = scores[places]
    for at in reversed(range(1, min(sizes.first + 1, len(shown)))):
        shown[at - 1] = max(shown[at - 1], np.nextafter(shown[at], np.inf))
    return [*ranked, *(u for u in order if u not in inside)], shown
