"""Communities of an exported graph in GraphRAG's form: levels, parents, members, and a report for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendMissing
from ketrag_fast.interchange.graph_part import GraphPart
from ketrag_fast.systems.spec.graph_tables import NO_COMMUNITY

LARGEST: Final = 10
"""Communities of at most this size are not divided further (GraphRAG's default)."""
_SEED: Final = 42
_NAMED, _TOLD, _SUMMARY = 3, 5, 600
EXTRACTIVE: Final = (
    "extractive: descriptions were concatenated by ketrag-fast, and no model has written this report; the "
    "rank is the size relative to the largest community"
)


@dataclass(slots=True)
class GraphCommunity:
    """One community: its number, level, parent (-1 for none), children and nodes."""

    number: int
    level: int
    parent: int
    nodes: NDArray[np.int64]
    children: list[int] = field(default_factory=list)


def stored_communities(part: GraphPart) -> list[GraphCommunity]:
    """Return the communities stored in the index, as a single level."""
    labels = part.tables.communities
    if labels is None:
        return []
    own = labels[part.node_ids]
    nodes = part.node_ids[own != NO_COMMUNITY]
    own = own[own != NO_COMMUNITY]
    order = np.argsort(own, kind="stable")
    numbers, starts = np.unique(own[order], return_index=True)
    groups = np.split(nodes[order], starts[1:]) if len(numbers) else []
    return [GraphCommunity(at, 0, -1, group) for at, group in enumerate(groups)]


def computed_communities(part: GraphPart) -> list[GraphCommunity]:
    """Compute hierarchical Leiden communities as GraphRAG does (Traag and others 2019). Nodes without edges
    belong to none. The result depends only on the edges and their weights.
    """
    try:
        import graspologic_native
    except ImportError as error:
        raise BackendMissing(
            "computing communities needs graspologic-native", hint="pip install 'ketrag-fast[noderag]'"
        ) from error

    edges: list[tuple[str, str, float]] = []
    for rows in part.edge_rows(("weight",)):
        weights = rows.columns.get("weight") or [1.0] * len(rows.ids)
        ends = zip(rows.source.tolist(), rows.target.tolist(), weights, strict=True)
        edges += [(str(a), str(b), float(weight)) for a, b, weight in ends if a != b]
    if not edges:
        return []
    found = graspologic_native.hierarchical_leiden(
        edges,
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=LARGEST,
        seed=_SEED,
    )
    members: dict[tuple[int, int], list[int]] = {}
    parents: dict[int, int] = {}
    for row in found:
        members.setdefault((row.level, row.cluster), []).append(int(row.node))
        if row.parent_cluster is not None:
            parents[row.cluster] = row.parent_cluster
    # Numbered by level, then by their first node, whatever numbers Leiden gave them.
    ordered = sorted(members, key=lambda key: (key[0], min(members[key])))
    number = {cluster: at for at, (_, cluster) in enumerate(ordered)}
    out = [
        GraphCommunity(
            number[cluster],
            level,
            number[parents[cluster]] if cluster in parents else -1,
            np.array(sorted(members[level, cluster]), np.int64),
        )
        for level, cluster in ordered
    ]
    for one in out:
        if one.parent >= 0:
            out[one.parent].children.append(one.number)
    return out


def report(
    nodes: Sequence[tuple[str, str]], edges: Sequence[tuple[str, str]], size: int, largest: int
) -> Mapping[str, Any]:
    """Return the extractive report of a community.

    Args:
        nodes: names and descriptions of its most connected nodes, best first.
        edges: names ("A -- B") and descriptions of its strongest edges, best first.
        size: its number of nodes.
        largest: the size of the largest community.
    """
    told = [(name, _first_line(text)) for name, text in nodes[:_TOLD]]
    title = ", ".join(name for name, _ in nodes[:_NAMED])
    summary = " ".join(text for _, text in told if text)[:_SUMMARY].strip() or title
    findings = [
        {"summary": name, "explanation": _first_line(text) or name} for name, text in (*told, *edges[:_TOLD])
    ]
    sections = "".join(f"\n\n## {one['summary']}\n\n{one['explanation']}" for one in findings)
    return {
        "title": title,
        "summary": summary,
        "full_content": f"# {title}\n\n{summary}{sections}",
        "rank": round(10 * size / max(largest, 1), 3),
        "rating_explanation": EXTRACTIVE,
        "findings": findings,
    }


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0].strip()
