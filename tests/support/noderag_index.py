"""An index of the passages of `tests/golden/noderag_pipeline.py`, and its graph by names of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.noderag.communities import NONE
from ketrag_fast.systems.noderag.importance import PIVOTS
from ketrag_fast.systems.shared.rows import csr, strings
from tests.golden import noderag_pipeline as script
from tests.support.chat import Chat
from tests.support.endpoint import Endpoint

KINDS = ("T", "S", "A", "H", "N", "O", "R")


@contextmanager
def index_of(folder: Path, model: script.Model | None = None) -> Iterator[Index]:
    """Build an index with the scripted model and vectors on loopback; both serve until it is closed."""
    documents = [Document(f"{k:02}", text) for k, text in enumerate(script.passages())]
    with Chat(model or script.Model(), listed=None) as chat, Endpoint(script.encode) as vectors:
        settings = Settings(
            **script.SETTINGS, llm=f"openai:mini@{chat.url}", embedder=f"openai:mini@{vectors.url}"
        )
        with Index.build(documents, folder, settings=settings) as index:
            yield index


def stages_of(index: Index) -> Any:
    """Return the arrays of every stage."""
    return index._opened.generation.stages


def node_names(stages: Any) -> list[str]:
    """Return the name of each node in the order of the whole graph: its kind and text, of a chunk its number,
    of a relation its ends."""
    graph, elements = stages["noderag_graph"], stages["noderag_elements"]
    entities = unpack(*strings(graph, "node_entity"))
    texts = {
        "T": [str(k) for k in range(len(stages["units"]["chunk_document"]))],
        "S": unpack(*strings(graph, "semantic_unit")),
        "A": unpack(*strings(stages["noderag_attributes"], "attribute")),
        "H": unpack(*strings(elements, "element")),
        "N": entities,
        "O": unpack(*strings(elements, "title")),
        "R": ["|".join(sorted(entities[end] for end in ends)) for ends in graph["relation_ends"].tolist()],
    }
    return [f"{kind} {text}" for kind in KINDS for text in texts[kind]]


def extracted_names(stages: Any) -> list[str]:
    """Return the names of the units, entities and relations, in the order of the first graph."""
    found = node_names(stages)
    return [name for kind in "SNR" for name in found if name[0] == kind]


class Recorded(NamedTuple):
    """What is drawn at random: the pivots of the betweenness, and Leiden's communities."""

    pivots: list[str]
    communities: list[list[str]]

    @classmethod
    def of(cls, index: Index) -> Recorded:
        """Return the draws of a build."""
        stages = stages_of(index)
        names = extracted_names(stages)
        seed = int(index._opened.settings.value("seed"))
        pivots = np.sort(_core.select_uniform(len(names), PIVOTS, seed, "betweenness")).tolist()
        members = names + [name for name in node_names(stages) if name[0] == "A"]
        community = stages["noderag_communities"]["community"]
        count = int(community[community != NONE].max()) + 1
        return cls(
            [names[k] for k in pivots],
            [[members[k] for k in np.flatnonzero(community == one).tolist()] for one in range(count)],
        )


def edges_of(stages: Any) -> dict[tuple[str, str], tuple[int, float]]:
    """Return the count and the weight of each edge; the ends in the order of their names."""
    names, arrays = node_names(stages), stages["noderag_edges"]
    indptr, indices = csr(arrays, "edges")
    found = {}
    for node, (first, last) in enumerate(pairwise(indptr.tolist())):
        for at in range(first, last):
            ends = sorted((names[node], names[int(indices[at])]))
            found[ends[0], ends[1]] = int(arrays["edge_count"][at]), float(arrays["edge_weight"][at])
    return found


def weights_of(stages: Any) -> dict[str, int]:
    """Return how often each unit, entity and relation was seen."""
    graph = stages["noderag_graph"]
    weights = [graph[f"{kind}_weight"].tolist() for kind in ("unit", "entity", "relation")]
    return dict(zip(extracted_names(stages), [w for part in weights for w in part], strict=True))
