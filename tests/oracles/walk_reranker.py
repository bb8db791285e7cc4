"""The walk's reranker, slow and plain: features candidate by candidate, and the network unit by unit.

The oracle of `query/walk_features.py` and `models/walk_reranker.py`. It starts from the candidates and terms
of the core.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

Row = dict[str, float]
TERMS = ["score", "sum", "direct", "stage1", "rest", "step", "named", "subject", "length", "pair", "chain"]
RELATIVE = [
    *("sum", "direct", "stage1", "rest", "step", "length", "pair", "chain", "moved"),
    *("partner_score", "partner_stage1", "partner_of_best", "cosine", "partner_cosine", "pair_cosine"),
    *("residual", "best_cosine", "sentence_cosine", "residual_sentence", "moved_cosine", "moved_by_best"),
]


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def towards(query: list[float], sentence: list[float], step: float) -> list[float]:
    moved = [q + step * s for q, s in zip(query, sentence, strict=True)]
    length = math.sqrt(dot(moved, moved))
    return [x / length for x in moved]


class Collection:
    """The arrays of a generation as lists."""

    def __init__(self, stages: Any) -> None:
        self.links, self.stages = stages["links"], stages

    def row(self, name: str, unit: int) -> list[int]:
        indptr = self.links[f"{name}_indptr"]
        return [int(x) for x in self.links[f"{name}_indices"][int(indptr[unit]) : int(indptr[unit + 1])]]

    def mentions(self, a: int, b: int) -> float:
        own, other = int(self.links["unit_subject"][a]), int(self.links["unit_subject"][b])
        return float(other != 2**32 - 1 and own != other and other in self.row("unit_mentions", a))

    def shared_name(self, a: int, b: int) -> float:
        units = len(self.links["unit_subject"])
        having = [
            sum(name in self.row("unit_names", unit) for unit in range(units))
            for name in set(self.row("unit_names", a)) & set(self.row("unit_names", b))
        ]
        return 1 - math.log(min(having)) / math.log(units) if having and a != b else 0.0

    def vector(self, unit: int) -> list[float]:
        return [float(x) for x in self.stages["vectors"]["unit_vectors"][unit]]

    def sentences(self, unit: int) -> list[list[float]]:
        first = self.links["first_sentence"]
        rows = self.stages["sentence_vectors"]["walk_sentence_vectors"][
            int(first[unit]) : int(first[unit + 1])
        ]
        return [[float(x) for x in row] for row in rows] or [self.vector(unit)]


def features(collection: Collection, found: Any, query: list[float] | None) -> list[Row]:
    """Return the features of each candidate by name."""
    units, partners, terms = (x.tolist() for x in found)
    best = terms[0][0]
    rows: list[Row] = []
    for unit, partner, own in zip(units, partners, terms, strict=True):
        row = dict(zip(TERMS, own, strict=True))
        row["moved"] = row["score"] - row["sum"]
        at = units.index(partner) if partner in units else None
        naming = [k for k in range(min(20, len(units))) if partners[k] == unit]
        row["partner_score"] = -10.0 if at is None else terms[at][0] - best
        row["partner_stage1"] = 0.0 if at is None else terms[at][3]
        row["mutual"] = float(at is not None and partners[at] == unit)
        row["partner_of"] = float(len(naming))
        row["partner_of_best"] = max([terms[k][0] - best for k in naming], default=-10.0)
        row["is_best"] = float(unit == units[0])
        row["is_partner_of_best"] = float(unit == partners[0])
        row["mentions_partner"] = collection.mentions(unit, partner)
        row["mentioned_by_partner"] = collection.mentions(partner, unit)
        row["mentions_first"] = sum(collection.mentions(unit, other) for other in units[:5])
        row["mentioned_by_first"] = sum(collection.mentions(other, unit) for other in units[:5])
        row["mentions_best"] = collection.mentions(unit, units[0])
        row["mentioned_by_best"] = collection.mentions(units[0], unit)
        row["name_of_partner"] = collection.shared_name(unit, partner)
        row["name_of_best"] = collection.shared_name(unit, units[0])
        row |= similarities(collection, unit, partner, units[0], query)
        row["score"] -= best
        rows.append(row)
    for name in RELATIVE:
        column = [row[name] for row in rows]
        mean = sum(column) / len(column)
        spread = math.sqrt(sum((x - mean) ** 2 for x in column) / len(column))
        for row in rows:
            row[f"relative_{name}"] = (row[name] - mean) / (spread + 1e-6)
    return rows


def similarities(c: Collection, unit: int, partner: int, best: int, query: list[float] | None) -> Row:
    names = RELATIVE[RELATIVE.index("cosine") :]
    if query is None:
        return dict.fromkeys(names, 0.0)
    own, other = c.vector(unit), c.vector(partner)
    a, b, both = dot(own, query), dot(other, query), max(-0.98, min(0.98, dot(own, other)))
    nearest = max(c.sentences(partner), key=lambda s: dot(s, query))
    of_best = max(c.sentences(best), key=lambda s: dot(s, query))
    beyond = towards(query, nearest, -dot(query, nearest))
    values = (
        a,
        b,
        both,
        (a - b * both) / math.sqrt(1 - both * both),
        dot(own, c.vector(best)),
        max(dot(s, query) for s in c.sentences(unit)),
        max(dot(s, beyond) for s in c.sentences(unit)),
        dot(own, towards(query, nearest, 0.5)),
        dot(own, towards(query, of_best, 0.5)),
    )
    return dict(zip(names, values, strict=True))


def reorder(folder: Path, rows: list[Row], scores: list[float]) -> list[float]:
    """Return the adjusted scores of the candidates."""
    model = json.loads((folder / "reranker.json").read_text("utf-8"))
    adjusted = []
    if model["only_named"] and not any(row["named"] > 0 for row in rows):
        return scores
    for row, score in zip(rows, scores, strict=True):
        inputs = [
            max(-5.0, min(5.0, (row[name] - mean) / scale))
            for name, mean, scale in zip(model["features"], model["mean"], model["scale"], strict=True)
        ]
        output = 0.0
        for number, weight in enumerate(model["output"]):
            total = sum(x * column[number] for x, column in zip(inputs, model["hidden"], strict=True))
            output += weight * math.tanh(total + model["bias"][number])
        adjusted.append(score + model["strength"] * output)
    return adjusted
