"""Communities of units, entities, relations and attributes, and their descriptions (NodeRAG, 3.7).

Leiden's algorithm (Traag, Waltman, van Eck 2019) as graspologic-native has it, with modularity, seeded.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendMissing
from ketrag_fast.kernels.text import pack
from ketrag_fast.systems.papers.noderag.attributes import INPUT, Statements, statements, strongest_texts
from ketrag_fast.systems.papers.noderag.graph import lists_out
from ketrag_fast.systems.papers.noderag.writing import TOKENS, Community, Element, writer_of
from ketrag_fast.systems.shared.core_chunks import reading_of
from ketrag_fast.systems.shared.rows import csr, lengths, strings_out
from ketrag_fast.systems.shared.stored_rows import text_of
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

NONE: Final = 2**32 - 1
"""The community number of nodes without edges."""
_KEPT: Final = "elements"
_ROUNDS: Final = 10
"""Maximum number of iterations of Leiden's algorithm; it usually converges much earlier."""
_LEAST: Final = 2
"""The minimum number of units or attributes of a community that is described without a model."""


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the community of each unit, entity, relation and attribute, numbered by smallest member."""
    graph, attributes = inputs["noderag_graph"], inputs["noderag_attributes"]
    indptr, indices = csr(graph, "mentions")
    nodes = len(indptr) - 1
    owner = np.repeat(np.arange(nodes), lengths(indptr))
    once = owner < indices
    own = attributes["attribute_entity"].astype(np.int64)
    shift = len(graph["unit_weight"])
    first = np.concatenate([owner[once], shift + own])
    second = np.concatenate([indices[once].astype(np.int64), nodes + np.arange(len(own))])
    found = leiden(first, second, nodes + len(own), settings.seed)
    return {"community": found}


def leiden(first: NDArray[np.int64], second: NDArray[np.int64], nodes: int, seed: int) -> NDArray[np.uint32]:
    """Return the community of each node of an unweighted, undirected graph; `NONE` without edges."""
    try:
        import graspologic_native
    except ImportError as error:
        raise BackendMissing(
            "the communities of NodeRAG need graspologic-native", hint=install_command("noderag")
        ) from error

    out: NDArray[np.uint32] = np.full(nodes, NONE, np.uint32)
    if not len(first):
        return out
    order = np.lexsort((second, first))
    edges = [
        (str(a), str(b), 1.0) for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True)
    ]
    _, found = graspologic_native.leiden(
        edges,
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=_ROUNDS,
        use_modularity=True,
        seed=seed,
        trials=1,
    )
    number: dict[int, int] = {}
    for node, community in sorted((int(name), community) for name, community in found.items()):
        out[node] = number.setdefault(community, len(number))
    return out


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Generate missing descriptions of communities with the LLM, and return a hash of all descriptions."""
    writer = writer_of(context)
    if writer is None:
        return "by rule"
    said = statements(inputs, settings.encoding, context)
    subjects = [
        Community(tuple(_texts(inputs, said, units, attributes)))
        for units, attributes in _members(inputs)
        if len(units) or len(attributes)
    ]
    written = writer.written(writer.elements, subjects, context)
    reading_of(context).scratch[_KEPT] = written
    return hashlib.blake2b(repr(written).encode("utf-8", "replace"), digest_size=32).hexdigest()


def elements(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the high-level elements and their titles.

    Equal elements are merged, with the communities of each.
    """
    written = reading_of(context).scratch.pop(_KEPT, None)
    said = statements(inputs, settings.encoding, context)
    described: dict[str, list[int]] = {}
    numbers: dict[str, int] = {}
    titled: dict[str, dict[int, None]] = {}
    place = 0
    for community, (units, attributes) in enumerate(_members(inputs)):
        if not len(units) and not len(attributes):
            continue
        found = written[place] if written is not None else None
        place += 1
        if found is None:
            found = by_rule(inputs, said, units, attributes)
        for title, text in found:
            homes = described.setdefault(text, [])
            homes += [community] if community not in homes else []
            titled.setdefault(title, {})[numbers.setdefault(text, len(numbers))] = None
    return {
        **strings_out("element", pack(list(described))),
        **lists_out("element_communities", list(described.values())),
        **strings_out("title", pack(list(titled))),
        **lists_out("title_elements", [sorted(own) for own in titled.values()]),
    }


def by_rule(
    inputs: StageInputs, said: Statements, units: NDArray[np.int64], attributes: NDArray[np.int64]
) -> list[Element]:
    """Return the description without a model: the strongest units, titled by their most frequent entity."""
    if len(units) + len(attributes) < _LEAST:
        return []
    text = strongest_texts(said, units, TOKENS)
    graph = inputs["noderag_graph"]
    indptr, indices = csr(graph, "mentions")
    last = said.units + len(graph["entity_weight"])
    named: Counter[int] = Counter()
    for unit in units.tolist():
        first, end = indptr[unit : unit + 2].tolist()
        named.update(node for node in indices[first:end].tolist() if node < last)
    if not named or not text:
        return []
    entity = min(named, key=lambda node: (-named[node], node)) - said.units
    return [Element(text_of(graph, "node_entity", entity), text)]


def _members(inputs: StageInputs) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the units and the attributes of each community."""
    graph, found = inputs["noderag_graph"], inputs["noderag_communities"]["community"]
    nodes, units = len(graph["mentions_indptr"]) - 1, len(graph["unit_weight"])
    count = int(found[found != NONE].max()) + 1 if (found != NONE).any() else 0
    order = np.argsort(found, kind="stable")
    ends = np.searchsorted(found[order], np.arange(count + 1))
    out = []
    for first, last in pairwise(ends.tolist()):
        members = np.sort(order[first:last])
        out.append((members[members < units], members[members >= nodes] - nodes))
    return out


def _texts(
    inputs: StageInputs, said: Statements, units: NDArray[np.int64], attributes: NDArray[np.int64]
) -> list[str]:
    texts = [said.text(node) for node in said.within(units, INPUT)] if len(units) else []
    kept = inputs["noderag_attributes"]
    return [*(text_of(kept, "attribute", int(number)) for number in attributes[:_MOST_ATTRIBUTES]), *texts]


_MOST_ATTRIBUTES: Final = 4
"""The maximum number of attributes in a prompt about a community; each is as long as twenty units."""
