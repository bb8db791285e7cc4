"""Why the paper's `ket` covers less than `keyword` at a large budget, and what brings it nearer (skeleton.py).

`rollover = texts` does two things at once. Here each is done alone, put together from parts of the product:
the tables of mode `skeleton` at the graph's share, then KET-RAG's text channel at what it is given. The index
is to be open with `rollover = none`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common import table
from ketrag_fast import Index
from ketrag_fast.kernels import vectors
from ketrag_fast.kernels.context import render, split_budget
from ketrag_fast.kernels.text import unpack
from ketrag_fast.lab.eval import metrics
from ketrag_fast.lab.eval.question import DataSet, Question
from ketrag_fast.types import Context

GAP = 1  # the empty line between the tables and the texts is one token


@dataclass(frozen=True)
class Remedy:
    """`rest`: the texts get what the tables leave. `once`: no unit that the tables print is printed again."""

    rest: bool
    once: bool


class Texts:
    """KET-RAG's text channel over the arrays of an index, with a free choice of the budget."""

    def __init__(self, index: Index) -> None:
        arrays = index.inspect.arrays()
        units, words = arrays["units"], arrays["words"]
        self.units = np.asarray(arrays["vectors"]["unit_vectors"])
        self.keywords = np.asarray(arrays["keywords"]["vectors"])
        self.rows = np.asarray(words["word_units_indptr"]), np.asarray(words["word_units_indices"])
        self.tokens = np.asarray(units["unit_tokens"])
        self.texts = unpack(units["unit_texts_blob"], units["unit_texts_offsets"])
        titles = unpack(units["document_titles_blob"], units["document_titles_offsets"])
        ids = unpack(units["document_ids_blob"], units["document_ids_offsets"])
        owners = np.asarray(units["unit_document"]).tolist()
        self.titles, self.documents = [titles[d] for d in owners], [ids[d] for d in owners]
        self.index = index
        self.known: dict[str, NDArray[np.float32] | None] = {}

    @cached_property
    def _inverse(self) -> NDArray[np.float64]:
        result: NDArray[np.float64] = np.linalg.pinv(self.units.astype(np.float64))
        return result

    def query(self, question: str) -> NDArray[np.float32] | None:
        """Return the question's vector, from its similarity to every unit; None if nothing is near it."""
        if question not in self.known:
            found = self.index.retrieve(question, mode="text", budget=2**40)
            scores = np.zeros(len(self.texts))
            scores[[p.unit for p in found.passages]] = [p.score for p in found.passages]
            self.known[question] = (self._inverse @ scores).astype(np.float32) if found.passages else None
        return self.known[question]

    def print(self, question: str, budget: int, without: set[int]) -> tuple[str, list[int], int]:
        """Text, units and tokens of the section."""
        query = self.query(question)
        if query is None or budget <= 0:
            return "", [], 0
        pool = vectors.keyword_pool(self.keywords, self.rows, self.units, self.tokens, query, 2 * budget)
        order = [unit for unit in pool.units.tolist() if unit not in without]
        context = render(order, self.texts, self.tokens, budget, titles=self.titles, style="ket")
        return context.text, context.units.tolist(), context.tokens


def print_reason(index: Index, dataset: DataSet, budget: int, share: float) -> None:
    """Print how `ket` spends its budget, and a table of the remedies with `ket` and `keyword`."""
    graph_budget, text_budget = split_budget(budget, share)
    texts = [q.text for q in dataset.questions]
    tables, kets, alone, whole = (
        [found[0] for found in index.retrieve_budgets(texts, mode=mode, budgets=[size])]
        for mode, size in (
            ("skeleton", graph_budget),
            ("ket", budget),
            ("keyword", text_budget),
            ("keyword", budget),
        )
    )
    again = sum(_again(ket, graph) for ket, graph in zip(kets, tables, strict=True))
    sources = sum(len(graph.passages) for graph in tables)
    print(f"## Why `ket` is not better at {budget:,} tokens (share of the skeleton {share})\n")
    print(
        f"- its texts have {text_budget:,} tokens, and `keyword` at that budget covers {_covered(dataset, alone):.1f}"
    )
    print(
        f"- {100 * again / max(sources, 1):.0f} % of the sources that its tables print are printed again as texts"
    )
    unused = np.mean([graph_budget - graph.tokens for graph in tables])
    print(f"- {unused:,.0f} of the {graph_budget:,} tokens of the tables stay unused\n")
    channel = Texts(index)
    rows = [_row("keyword", dataset, whole), _row("ket", dataset, kets)]
    for name, remedy in (
        ("ket, put together here", Remedy(rest=False, once=False)),
        ("ket, what the tables leave goes to the texts", Remedy(rest=True, once=False)),
        ("ket, no unit twice", Remedy(rest=False, once=True)),
        ("ket, both", Remedy(rest=True, once=True)),
    ):
        made = [_mend(channel, graph, budget, text_budget, remedy) for graph in tables]
        rows.append(_line(name, dataset, made))
    table(["context", "coverage", "recall", "tokens"], rows)


def _again(ket: Context, tables: Context) -> int:
    printed = {p.unit for p in tables.passages}
    return len(printed & {p.unit for p in ket.passages[len(tables.passages) :]})


Made = tuple[str, list[str], int]


def _mend(channel: Texts, tables: Context, budget: int, text_budget: int, remedy: Remedy) -> Made:
    room = budget - tables.tokens if remedy.rest else text_budget
    without = {p.unit for p in tables.passages} if remedy.once else set()
    text, units, tokens = channel.print(tables.question, room - (GAP if tables.text else 0), without)
    documents = {p.document for p in tables.passages} | {channel.documents[u] for u in units}
    return tables.text + "\n\n" + text, sorted(documents), tables.tokens + GAP + tokens


def _row(name: str, dataset: DataSet, contexts: list[Context]) -> list[str]:
    return _line(name, dataset, [(c.text, [p.document for p in c.passages], c.tokens) for c in contexts])


def _line(name: str, dataset: DataSet, made: list[Made]) -> list[str]:
    hits = [_hit(q, text) for q, (text, _, _) in zip(dataset.questions, made, strict=True)]
    found = [metrics.recall(d, q.gold) for q, (_, d, _) in zip(dataset.questions, made, strict=True)]
    tokens = np.mean([t for _, _, t in made])
    return [name, f"{_mean(hits):.1f}", f"{_mean(found):.1f}", f"{tokens:,.0f}"]


def _covered(dataset: DataSet, contexts: list[Context]) -> float:
    return _mean([_hit(q, c.text) for q, c in zip(dataset.questions, contexts, strict=True)])


def _hit(question: Question, text: str) -> bool | None:
    return None if metrics.is_yes_no(question.answers) else metrics.coverage(text, question.answers)


def _mean(values: list[bool | None] | list[float | None]) -> float:
    return 100 * float(np.mean([float(v) for v in values if v is not None]))
