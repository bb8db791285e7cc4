"""Passages, scripted replies and vectors for a whole build of NodeRAG: by the reference implementation, as
recorded (README.md), and by `Index.build` on loopback.

The replies are those of a model that does as it was asked.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARTICLES = Path(__file__).parents[2] / "examples" / "polar" / "articles"
DIMENSION = 24
NOT_NAMES = """
A After All Among An And As At Before But By During Each Every For From He Her Here His However If In It Its
Later Many Men No Not Of On One Only Others Over She Since So Some That The Their Then There These They This
Those Though To Today Twenty Two Under Until What When Where Which While Who With Without
"""
PASSAGES = 40
WORD = r"[A-ZÀ-Þ]\w*"
# "of" belongs to a name: a question's stop words must not hide it.
NAME = re.compile(rf"{WORD}(?:(?: of(?: the)?)? {WORD})*")
PORTRAIT = " is named in "
"""Occurs in each attribute and in no unit."""
SETTINGS: dict[str, Any] = {"system": "noderag:reference", "threads": 2}

# A question with the names that a model finds in it: whole names, which are no part of longer names.
QUESTIONS: list[tuple[str, list[str]]] = [
    ("Which ship did Roald Amundsen sail to the Bay of Whales?", ["ROALD AMUNDSEN", "BAY OF WHALES"]),
    ("Who was left behind on Elephant Island with Frank Wild?", ["ELEPHANT ISLAND", "FRANK WILD"]),
    ("When did Colin Archer build a ship that could be frozen in?", ["COLIN ARCHER"]),
    ("Who of the League of Nations asked for help at the University of Copenhagen?",
     ["LEAGUE OF NATIONS", "UNIVERSITY OF COPENHAGEN"]),
    ("Did the Admiralty pay for the search of the Northwest Passage?",
     ["ADMIRALTY", "NORTHWEST PASSAGE"]),
    ("what became of them?", []),
]  # fmt: skip

Output = list[dict[str, Any]]


class Embedder:
    """Sums of a vector for each word, of length 1."""

    def vector(self, text: str) -> list[float]:
        """The vector of a text."""
        total = np.zeros(DIMENSION)
        for word in re.findall(r"\w+", text.lower()) or ["nothing"]:
            seed = int.from_bytes(sha256(word.encode()).digest()[:4], "big")
            total += np.random.default_rng(seed).normal(size=DIMENSION)
        return list((total / np.linalg.norm(total)).astype(np.float32).astype(float))


def sentences(text: str) -> list[str]:
    """A sentence ends before a capital."""
    flat = " ".join(text.split())
    return re.split(r"(?<=[.!?]) (?=[A-ZÀ-Þ])", flat)


def passages() -> list[str]:
    """Return the first articles without their headings; each is shorter than a chunk of 1,048 tokens."""
    paths = sorted(ARTICLES.glob("*.md"))[:PASSAGES]
    return [" ".join(path.read_text(encoding="utf-8").split("\n", 2)[2].split()) for path in paths]


def names(sentence: str) -> list[tuple[int, int, str]]:
    """Return start, end and upper-case name of each capitalised run, without leading small words."""
    found = []
    for match in NAME.finditer(sentence):
        start, parts = match.start(), match.group().split(" ")
        while parts and (parts[0] in NOT_NAMES.split() or parts[0] in ("of", "the")):
            start += len(parts[0]) + 1
            parts = parts[1:]
        if parts:
            found.append((start, match.end(), " ".join(parts).upper()))
    return found


def decomposition(text: str) -> Output:
    """Return a unit for each sentence with its distinct names, and relations between neighbours.

    Every twelfth relation or so has only two parts, so that a model is asked to complete it.
    """
    output = []
    for sentence in sentences(text):
        found = names(sentence)
        relations: list[list[str]] = []
        for (_, end, one), (start, _, other) in pairwise(found):
            words = re.findall(r"\w+", sentence[end:start])[:6]
            if one != other:
                relations.append([one, " ".join(words) or "and", other])
        listed = list(dict.fromkeys(name for *_, name in found))
        if len(listed) > 1 and len(sentence) % 12 == 0:
            relations.append([listed[0], f"is told of with {listed[-1]}"])
        output.append({"semantic_unit": sentence, "entities": listed, "relationships": relations})
    return output


def reconstructed(parts: Sequence[str]) -> dict[str, str]:
    """Return the relationship that a model makes of two parts."""
    source, rest = parts
    relation, _, target = rest.partition(" with ")
    return {"source": source, "relationship": relation, "target": target}


def attribute(name: str, units: Sequence[str], relations: Sequence[str]) -> str:
    """Return the portrait of an entity; it depends on no order of the evidence."""
    return f"{name}{PORTRAIT}{len(units)} units and {len(relations)} relations. {min(units, default='')}"


def elements(statements: Sequence[str]) -> list[dict[str, str]]:
    """Return the elements of a community by its units; attributes are left out, of which ours sends four."""
    units = sorted(line for line in statements if PORTRAIT not in line)
    title = sha256("\n".join(units).encode()).hexdigest()[:8]
    first = {
        "title": f"First of {title}",
        "description": f"{len(units)} statements, first: {units[0][:90].strip()}",
    }
    last = {
        "title": f"Last of {title}",
        "description": f"{len(units)} statements, last: {units[-1][:90].strip()}",
    }
    return [first, last] if len(units) > 4 else [first]


def encode(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the vectors of some texts."""
    embedder = Embedder()
    rows = [embedder.vector(text) for text in texts]
    return np.array(rows, np.float64).reshape(len(rows), DIMENSION)


class Model:
    """A chat model on loopback that gives the scripted replies; `asked` counts the requests of each kind."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    def __call__(self, request: dict[str, Any]) -> str:
        """Return one reply; the kind of the request is read from its instructions."""
        told, body = (request["messages"][at]["content"] for at in (0, -1))
        signs = {
            "decomposition": "divide it into semantic units",
            "relationship": "Write it in the right one",
            "attribute": "Write a portrait",
            "elements": "Say what they have in common",
        }
        [kind] = [name for name, sign in signs.items() if sign in told]
        self.asked[kind] = self.asked.get(kind, 0) + 1
        lines = body.split("\n")
        statements = [line[2:] for line in lines if line.startswith("- ")]
        if kind == "decomposition":
            keys = ("entities", "relationships")
            rows = decomposition(lines[1])
            units = [{"unit": row["semantic_unit"], **{key: row[key] for key in keys}} for row in rows]
            return json.dumps({"units": units})
        if kind == "relationship":
            found = reconstructed(lines[2].removeprefix("Relationship: ").split(", "))
            return json.dumps({**found, "relation": found["relationship"]})
        if kind == "attribute":
            name = lines[0].removeprefix("Name: ")
            units_of = [line for line in statements if line in all_sentences()]
            relations = [line for line in statements if line not in all_sentences()]
            return json.dumps({"text": attribute(name, units_of, relations)})
        return json.dumps({"high_level_elements": elements(statements)})


@functools.cache
def all_sentences() -> frozenset[str]:
    """Return every sentence of the passages: what tells units from relations in a prompt."""
    return frozenset(sentence for text in passages() for sentence in sentences(text))
