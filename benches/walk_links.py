"""The walk on sparse matrices, with a skeleton's entities and relations as links (benches/walk_skeleton.py)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ketrag_fast import Settings, _core
from ketrag_fast.backends.embedders.questions import Questions
from ketrag_fast.eval import metrics
from ketrag_fast.eval.question import DataSet
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.context import render
from ketrag_fast.kernels.text import unpack
from ketrag_fast.reference.walk import NONE, vocabulary
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout

Array = NDArray[np.float64]
PLAIN = ("keywords", "names", "subjects")
SHARES = {"keywords": 0.34, "names": 0.33, "subjects": 0.33}


@dataclass(frozen=True)
class Variant:
    """What is added to the walk: shares of a step beside 1, and weights beside .7 of keywords."""

    name: str
    walk: Mapping[str, float] = field(default_factory=dict)
    pairs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """Ids of what is known of a question, by kind, and its vector."""

    ids: Mapping[str, NDArray[np.intp]]
    vector: Array | None


def words_of(text: str) -> list[str]:
    """Folded, lower-case words."""
    folded = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return [word.lower() for word in re.findall(r"[^\W_]+", folded)]


def rows(arrays: Mapping[str, Any], name: str, columns: int, values: str | None = None) -> sp.csr_array:
    """A sparse matrix of stored rows; 1 where no values are named."""
    indptr, indices = (
        np.asarray(arrays[f"{name}_{part}"]).astype(np.int64) for part in ("indptr", "indices")
    )
    data = np.asarray(arrays[values], float) if values else np.ones(len(indices))
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, columns))


def scaled(matrix: sp.csr_array, weights: Array) -> sp.csr_array:
    """Every column times its weight."""
    return (matrix @ sp.diags_array(weights)).tocsr()


def idf(has: sp.csr_array) -> Array:
    """ln(1 + (n - df + .5) / (df + .5)) of each column."""
    n, df = has.shape[0], np.bincount(has.indices, minlength=has.shape[1])
    result: Array = np.log(1 + (n - df + 0.5) / (df + 0.5))
    return result


def percent(values: list[float]) -> float:
    """The mean in percent; not a number where the set has no answers, or no judgements."""
    return 100 * float(np.mean(values)) if values else float("nan")


def shared_rows(matrix: sp.csr_array) -> sp.csr_array:
    """Every row divided by its sum; empty rows stay empty."""
    total = matrix.sum(axis=1)
    return (sp.diags_array(1 / np.where(total == 0, 1, total)) @ matrix).tocsr()


def z(x: Array) -> Array:
    """Standardised; zeros where nothing differs."""
    return (x - x.mean()) / x.std() if x.std() > 1e-6 else np.zeros_like(x)


def best_first(scores: Array) -> NDArray[np.intp]:
    """Places by score, ties by place."""
    return np.argsort(-scores, kind="stable")


def explained(vectors: Array, others: Array, question: Array) -> Array:
    """The length of the question's projection on the plane of each two vectors."""
    a, b = (vectors @ question)[:, None], (others @ question)[None, :]
    c = np.clip(vectors @ others.T, -0.98, 0.98)
    result: Array = np.sqrt(np.maximum((a * a + b * b - 2 * a * b * c) / (1 - c * c), 0))
    return result


class Links:
    """The matrices of one index, and the ranking for one question."""

    def __init__(self, stages: Mapping[str, Mapping[str, Any]]) -> None:
        stored, skeleton = stages["links"], stages["skeleton"]
        self.words = {name: {w: i for i, w in enumerate(vocabulary(stored, name))} for name in PLAIN}
        counts = {name: len(self.words[name]) for name in PLAIN}
        tf = rows(stored, "unit_keywords", counts["keywords"], "unit_keywords_tf")
        self.n = tf.shape[0]
        length = tf.sum(axis=1)
        norm = 1.2 * (1 - 0.75 + 0.75 * length / max(float(length.mean()), 1e-9))
        self.saturation = tf.copy()
        self.saturation.data = tf.data / (tf.data + np.repeat(norm, np.diff(tf.indptr)))
        self.first_sentence = np.asarray(stored["first_sentence"]).astype(np.int64)
        own = np.asarray(stored["unit_subject"]).astype(np.int64)
        owners = np.flatnonzero(own != NONE)
        self.about = sp.csr_array((np.ones(len(owners)), (owners, own[owners])), (self.n, counts["subjects"]))
        self.mentions = rows(stored, "unit_mentions", counts["subjects"])
        names = unpack(skeleton["entity_name_blob"], skeleton["entity_name_offsets"])
        self.entities: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            self.entities.setdefault(" ".join(words_of(name)), []).append(i)
        one = np.asarray(skeleton["relation_source"]).astype(np.int64)
        other = np.asarray(skeleton["relation_target"]).astype(np.int64)
        ends = np.concatenate([one, other]), np.concatenate([other, one])
        joined = sp.coo_array((np.ones(2 * len(one)), ends), (len(names), len(names))).tocsr()
        self.joined = (joined > 0).astype(float)
        self.names = {
            "keywords": (self.saturation > 0).astype(float),
            "names": rows(stored, "unit_names", counts["names"]),
            "subjects": rows(stored, "unit_subjects", counts["subjects"]),
            "entities": rows(skeleton, "entity_units", self.n).T.tocsr(),
        }
        self.sentences = {
            "keywords": rows(stored, "sentence_keywords", counts["keywords"]),
            "names": rows(stored, "sentence_names", counts["names"]),
            "entities": self._entities_of_sentences(stages["units"], skeleton, len(names)),
        }
        self.idf = {name: idf(has) for name, has in self.names.items()}
        self.bm25 = scaled(self.saturation, self.idf["keywords"])
        weights = {name: scaled(has, self.idf[name]) for name, has in self.names.items()}
        weights["keywords"] = self.bm25
        self.steps = {
            name: (shared_rows(w).T.tocsr(), shared_rows(w.T.tocsr()).T.tocsr())
            for name, w in weights.items()
        }
        self.along = shared_rows(scaled(self.joined, self.idf["entities"])).T.tocsr()

    def _entities_of_sentences(
        self, units: Mapping[str, Any], skeleton: Mapping[str, Any], count: int
    ) -> sp.csr_array:
        """Which entities are named in each sentence of the links, by the characters of their mentions."""
        texts = unpack(units["unit_texts_blob"], units["unit_texts_offsets"])
        own = np.flatnonzero(np.asarray(units["sent_title"]) == 0)
        starts = np.asarray(units["sent_bytes"])[own, 0].astype(np.int64)
        begins = np.asarray(units["unit_span"])[:, 0].astype(np.int64)
        at: list[NDArray[np.int64]] = []
        for unit, (first, last) in enumerate(pairwise(self.first_sentence.tolist())):
            data, base = texts[unit].encode(), int(units["unit_bytes"][unit, 0])
            offsets = np.maximum(starts[first:last] - base, 0).tolist()
            characters = [len(data[:offset].decode("utf-8", "ignore")) for offset in offsets]
            at.append(np.array(characters, np.int64) + begins[unit])
        found: list[tuple[int, int]] = []
        places = (np.asarray(skeleton[f"mention_{part}"]).tolist() for part in ("entity", "unit", "start"))
        for entity, unit, start in zip(*places, strict=True):
            if len(at[unit]):
                place = max(int(np.searchsorted(at[unit], start, side="right")) - 1, 0)
                found.append((int(self.first_sentence[unit]) + place, entity))
        pairs = np.array(sorted(set(found)), np.int64).reshape(-1, 2)
        shape = (int(self.first_sentence[-1]), count)
        return sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape)

    def asked(self, question: str, vector: Array | None) -> Asked:
        """What is known of a question; phrases of up to 8 words."""
        words = words_of(question)
        phrases = {" ".join(words[a : a + k]) for a in range(len(words)) for k in range(1, 9)}
        known = {"keywords": set(_core.lexical_keywords(question)), "names": phrases, "subjects": phrases}
        ids = {
            kind: sorted(self.words[kind][w] for w in own if w in self.words[kind])
            for kind, own in known.items()
        }
        ids["entities"] = sorted(i for phrase in phrases for i in self.entities.get(phrase, ()))
        return Asked({kind: np.array(own, np.intp) for kind, own in ids.items()}, vector)

    def rank(self, asked: Asked, variant: Variant, vectors: tuple[Array, Array] | None) -> Array:
        """The score of every unit (25-walk); `vectors` of units and sentences give variant A."""
        first = self._pool_scores(asked, variant, vectors)
        pool = best_first(first)[:200]
        scores = first - 1e4
        scores[pool] = 0.1 * first[pool] + self._best_pairs(asked, variant, vectors, pool)
        if vectors is None or asked.vector is None or self.n < 2:
            return scores
        anchors = pool[best_first(scores[pool])[:4]]
        gain = np.full(self.n, -np.inf)
        for k in anchors.tolist():
            own = vectors[1][self.first_sentence[k] : self.first_sentence[k + 1]]
            moved = asked.vector + (0.5 * own[int(np.argmax(own @ asked.vector))] if len(own) else 0.0)
            near = vectors[0] @ (moved / max(float(np.linalg.norm(moved)), 1e-12))
            near -= 0.1 * (scores[anchors[0]] - scores[k])
            near[k] = -np.inf
            gain = np.maximum(gain, near)
        scores[pool] += 3 * gain[pool]
        return scores

    def _pool_scores(self, asked: Asked, variant: Variant, vectors: tuple[Array, Array] | None) -> Array:
        direct = z(self.bm25[:, asked.ids["keywords"]].sum(axis=1))
        if vectors is not None:
            direct = z(z(vectors[0] @ asked.vector) + direct)
        best = best_first(direct)[:20]
        restart = np.zeros(self.n)
        restart[best] = np.exp(direct[best] - direct[best[0]])
        restart /= restart.sum()
        shares = {**SHARES, **variant.walk}
        whole = sum(shares.values())
        mass = restart
        for _ in range(3):
            arrived = np.zeros(self.n)
            for kind, share in shares.items():
                arrived += share / whole * self._step(kind, asked, mass)
            mass = 0.5 * restart + 0.5 * arrived
        return direct + 1.5 * z(np.log(mass + 1e-9))

    def _step(self, kind: str, asked: Asked, mass: Array) -> Array:
        to, back = self.steps["entities" if kind == "relations" else kind]
        out = asked.ids["entities" if kind == "relations" else kind]
        nodes = to @ mass
        nodes[out] = 0
        if kind == "relations":
            nodes = self.along @ nodes
            nodes[out] = 0
        total = float(nodes.sum())
        result: Array = back @ (nodes / total) if total > 0 else np.zeros(self.n)
        return result

    def _best_pairs(
        self, asked: Asked, variant: Variant, vectors: tuple[Array, Array] | None, pool: NDArray[np.intp]
    ) -> Array:
        terms, log = asked.ids["keywords"], float(np.log(max(self.n, 2)))
        weights = self.idf["keywords"][terms] / max(float(self.idf["keywords"][terms].sum()), 1e-9)
        worth = {kind: values / log for kind, values in self.idf.items()}
        for kind, ids in asked.ids.items():
            worth[kind][ids] = 0
        beside = np.zeros(self.joined.shape[0])
        if len(asked.ids["entities"]):
            beside[self.joined[asked.ids["entities"]].indices] = 1
        bridging = worth["entities"] * beside

        def both(has: sp.csr_array, partners: int, value: Array) -> Array:
            power: Array = (scaled(has, value**8) @ has[:partners].T).toarray()
            return power**0.125

        def strength(
            cover: Array, has: Mapping[str, sp.csr_array], own: Array | None, partners: int
        ) -> Array:
            link = 0.7 * both(has["keywords"], partners, worth["keywords"])
            link += 0.3 * both(has["names"], partners, worth["names"])
            for kind, weight in variant.pairs.items():
                if kind == "relations":
                    half = scaled(has["entities"], worth["entities"] ** 4)
                    power = (half @ self.joined @ half[:partners].T).toarray()
                    link += weight * power**0.125
                elif kind == "bridges":
                    link += weight * both(has["entities"], partners, bridging)
                else:
                    link += weight * both(has[kind], partners, worth[kind])
            united = np.maximum(cover[:, None, :], cover[None, :partners, :]) @ weights
            if own is None:
                result: Array = 9 * united + 3.5 * link
            else:
                result = 6 * united + 3.5 * link + 6 * explained(own, own[:partners], asked.vector)
            return result

        few = pool[:30]
        units = {kind: has[pool] for kind, has in self.names.items()}
        cover = self.saturation[pool][:, terms].toarray()
        whole = strength(cover, units, None if vectors is None else vectors[0][pool], len(few))
        subjects = sp.diags_array(worth["subjects"])
        forward = (self.mentions[pool] @ subjects @ self.about[few].T).toarray()
        backward = (self.about[pool] @ subjects @ self.mentions[few].T).toarray()
        whole += 3.5 * 0.6 * np.maximum(forward, backward)

        spans = [np.arange(self.first_sentence[u], self.first_sentence[u + 1]) for u in pool]
        counts = np.array([len(span) for span in spans])
        at, partners = np.concatenate(spans), int(counts[: len(few)].sum())
        closest = np.zeros_like(whole)
        if partners:
            inside = {kind: has[at] for kind, has in self.sentences.items()}
            cover = inside["keywords"][:, terms].toarray()
            values = strength(cover, inside, None if vectors is None else vectors[1][at], partners)
            starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
            some, few_some = np.flatnonzero(counts), np.flatnonzero(counts[: len(few)])
            values = np.maximum.reduceat(values, starts[some], axis=0)
            closest[np.ix_(some, few_some)] = np.maximum.reduceat(values, starts[few_some], axis=1)
        pairs = 0.5 * whole + 0.5 * closest
        np.fill_diagonal(pairs, -np.inf)
        best: Array = pairs.max(axis=1)
        return np.maximum(best, 0)

    def check(self, corpus: Corpus) -> None:
        """The plain variant is the compiled walk, to 1e-6 in the pool of the first 20 questions."""
        texts = [question.text for question in corpus.dataset.questions[:20]]
        given = None
        if corpus.vectors is not None and corpus.asked_vectors is not None:
            single = (v.astype(np.float32) for v in (*corpus.vectors, corpus.asked_vectors[:20]))
            given = kernel.Vectors(*single)
        found = kernel.walk(corpus.stored, texts, self.n, vectors=given, exact=True, form="first")
        for i, (ids, scores) in enumerate(found):
            own = self.rank(corpus.asked(i), Variant("plain"), corpus.vectors)
            inside = scores > -5000
            if not np.allclose(own[ids[inside]], scores[inside], rtol=0, atol=1e-4):
                worst = float(np.abs(own[ids[inside]] - scores[inside]).max())
                raise SystemExit(f"question {i}: not the walk of the product, but {worst:.2g} beside it")


class Corpus:
    """An index with the questions of its set."""

    def __init__(self, place: Path, settings: Settings, dataset: DataSet) -> None:
        generation = open_current(Layout(place), "sizes")
        stages = generation.stages
        self.dataset = dataset
        self.links = Links(stages)
        self.stored: dict[str, Any] = {name: stages["links"][name] for name in stages["links"]}
        units = stages["units"]
        titles = unpack(units["document_titles_blob"], units["document_titles_offsets"])
        documents = unpack(units["document_ids_blob"], units["document_ids_offsets"])
        owner = np.asarray(units["unit_document"]).tolist()
        self.titles, self.documents = [titles[d] for d in owner], [documents[d] for d in owner]
        self.texts = unpack(units["unit_texts_blob"], units["unit_texts_offsets"])
        self.tokens = np.asarray(units["unit_tokens"])
        self.vectors: tuple[Array, Array] | None = None
        self.asked_vectors: Array | None = None
        if settings.embedder != "builtin":
            stored = stages["vectors"]
            self.vectors = (
                np.asarray(stored["unit_vectors"], float),
                np.asarray(stored["walk_sentence_vectors"], float),
            )
            model = Questions(generation.manifest.models["embedder"], settings)
            self.asked_vectors = np.asarray(model.vectors([q.text for q in dataset.questions]), float)
            model.close()

    def asked(self, i: int) -> Asked:
        """What is known of question `i`."""
        vector = None if self.asked_vectors is None else self.asked_vectors[i]
        return self.links.asked(self.dataset.questions[i].text, vector)

    def score(self, variant: Variant, budgets: list[int]) -> tuple[list[float], list[float]]:
        """Coverage and recall in percent, for each budget."""
        covered: list[list[float]] = [[] for _ in budgets]
        recalled: list[list[float]] = [[] for _ in budgets]
        for i, question in enumerate(self.dataset.questions):
            order = best_first(self.links.rank(self.asked(i), variant, self.vectors))[: max(budgets) // 20]
            for k, budget in enumerate(budgets):
                context = render(order, self.texts, self.tokens, budget, titles=self.titles)
                hit = metrics.coverage(context.text, question.answers)
                if hit is not None and not metrics.is_yes_no(question.answers):
                    covered[k].append(float(hit))
                share = metrics.recall([self.documents[u] for u in context.units], question.gold)
                if share is not None:
                    recalled[k].append(share)
        return [percent(x) for x in covered], [percent(x) for x in recalled]
