"""Exact entry points, cross nodes, the retrieved list and its sections (spec 30, section 3.11)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.oracles.noderag.graph import Graph, Key
from tests.oracles.noderag.switches import OURS, Switches
from tests.oracles.text import words

Tokens = Callable[[str], Sequence[str]]
SECTIONS = {
    "H": "high_level_element",
    "A": "attribute",
    "S": "semantic_unit",
    "R": "relationship",
    "T": "text",
    "": "None",  # the published code's chunk without units (`bare_chunks`)
}


def tokens_of(text: str) -> list[str]:
    """Tokens of spec 00, 0.4, stop words kept."""
    return words(text, ())


def names(graph: Graph) -> dict[Key, str]:
    """What an exact match can find: the texts of entities and titles."""
    return {key: node.text for key, node in graph.nodes.items() if node.kind in ("N", "O")}


def contained(
    terms: Iterable[str], graph: Graph, *, tokens: Tokens = tokens_of, switches: Switches = OURS
) -> list[Key]:
    """The names and titles that hold a term, by (order of terms, id) (step 2)."""
    found: list[Key] = []
    for term in terms:
        if switches.token_phrases:
            phrase = list(tokens(term))
            if not phrase and switches.drop_empty_terms:
                continue
            found.extend(key for key, name in names(graph).items() if holds(list(tokens(name)), phrase))
            continue
        split = term.lower().split()
        if not split and switches.drop_empty_terms:
            continue
        pattern = re.compile(r"\b" + r"\s+".join(map(re.escape, split)) + r"\b")
        found.extend(key for key, name in names(graph).items() if pattern.search(name.lower()))
    return list(dict.fromkeys(found))


def holds(name: list[str], phrase: list[str]) -> bool:
    """Whether the tokens of a phrase occur in a row."""
    ends = range(len(name) - len(phrase) + 1)
    return bool(name) and any(name[at : at + len(phrase)] == phrase for at in ends)


def named(
    question: str,
    graph: Graph,
    *,
    longest: int = 6,
    tokens: Tokens = tokens_of,
    stop_words: Collection[str] = (),
) -> list[Key]:
    """Return the names and titles that are a run of the question's tokens, none inside a longer one (step 2).

    Ordered by (offset in the question, id). No model is needed. `tokens` keeps stop words, because names have
    them; a single stop word is not a name.
    """
    asked = list(tokens(question))
    of: dict[tuple[str, ...], list[Key]] = {}
    for key, name in names(graph).items():
        of.setdefault(tuple(tokens(name)), []).append(key)
    spans = [
        (start, start + size)
        for start in range(len(asked))
        for size in range(1, longest + 1)
        if start + size <= len(asked)
        and tuple(asked[start : start + size]) in of
        and not (size == 1 and asked[start] in stop_words)
    ]
    widest = [
        span
        for span in spans
        if not any(other != span and other[0] <= span[0] and span[1] <= other[1] for other in spans)
    ]
    found = [key for start, end in widest for key in of[tuple(asked[start:end])]]
    return list(dict.fromkeys(found))


class Cross(NamedTuple):
    """Nodes that the walk found beside the vector hits, best first."""

    names: list[Key]
    titles: list[Key]
    relations: list[Key]
    others: list[Key]


def ranking(scores: Mapping[Key, float], switches: Switches = OURS) -> list[Key]:
    """By (score descending, id ascending); the order of `scores` is that of ids."""
    kept = [key for key, score in scores.items() if score > 0 or not switches.positive_only]
    return sorted(kept, key=lambda key: -scores[key])


def cross_nodes(
    graph: Graph,
    order: Iterable[Key],
    vector_hits: Iterable[Key],
    *,
    names: int = 10,
    titles: int = 10,
    relations: int = 30,
    others: int = 10,
) -> Cross:
    """The first nodes of each kind that are no vector hits; `others` are S, A, H, T together (step 5)."""
    hits = set(vector_hits)
    cross = Cross([], [], [], [])
    taken: dict[str, int] = {}
    limits = {"N": names, "O": titles, "R": relations}
    lists = {"N": cross.names, "O": cross.titles, "R": cross.relations}
    for key in order:
        if key in hits:
            continue
        kind = graph.nodes[key].kind
        group = kind if kind in limits else "others"
        if taken.get(group, 0) < limits.get(kind, others):
            taken[group] = taken.get(group, 0) + 1
            lists.get(kind, cross.others).append(key)
    return cross


def retrieved(graph: Graph, vector_hits: Iterable[Key], cross: Cross) -> list[Key]:
    """Vector hits, cross units and texts, attributes of names, elements of titles, each once (step 6).

    The relations of `cross` follow after them.
    """
    attributes = [key for name in cross.names for key in graph.nodes[name].attributes]
    elements = [key for title in cross.titles for key in graph.nodes[title].related]
    return list(dict.fromkeys([*vector_hits, *cross.others, *attributes, *elements]))


def fill(graph: Graph, order: Iterable[Key], found: Iterable[Key]) -> list[Key]:
    """Return what fills the rest of a budget: chunks in walk order, not in `found`."""
    taken = set(found)
    return [key for key in order if graph.nodes[key].kind == "T" and key not in taken]


def sections(graph: Graph, found: Iterable[Key], relations: Iterable[Key]) -> str:
    """The context: a section for each kind in a fixed order; no names, no titles (steps 7, 8)."""
    items = [*found, *relations]
    text = ""
    for kind, title in SECTIONS.items():
        lines = [graph.nodes[key].text for key in items if graph.nodes[key].kind == kind]
        if lines:
            text += f"------------{title}-------------\n"
            text += "".join(f"{number}. {line}\n" for number, line in enumerate(lines, 1)) + "\n\n"
    return text
