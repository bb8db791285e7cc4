"""Communities of an exported graph in GraphRAG's form: levels, parents, members, and a report for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendMissing
from ketrag_fast.interchange.graph_part import GraphPart
from ketrag_fast.query.themes.clusters import FoundThemes
from ketrag_fast.records import dataclass, field
from ketrag_fast.systems.spec.drawing import NO_COMMUNITY
from ketrag_fast.types import Theme

LARGEST: Final = 10
"""Communities of at most this size are not divided further (GraphRAG's default)."""
_SEED: Final = 42
_NAMED, _TOLD, _SUMMARY = 3, 5, 600
_RANK: Final = "the rank is the size relative to the largest community"
EXTRACTIVE: Final = (
    "extractive: descriptions were concatenated by ketrag-fast, and no model has written this report; "
    f"{_RANK}"
)
_WRITTEN: Final = (
    f"a language model has written title and summary; the findings are sentences of the documents; {_RANK}"
)
_QUOTED: Final = f"extractive: sentences of the documents, and no model has written this report; {_RANK}"
NO_MODEL: Final = frozenset({EXTRACTIVE, _QUOTED})
"""Explanations of the rating in reports that no model has written."""


@dataclass(slots=True)
class GraphCommunity:
    """One community: its number, level, parent (-1 for none), children, nodes, and the theme that it is."""

    number: int
    level: int
    parent: int
    nodes: NDArray[np.int64]
    children: list[int] = field(default_factory=list)
    theme: Theme | None = None
    units: NDArray[np.int64] | None = None
    """Units of the theme, ascending."""


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
            "computing communities needs graspologic-native", hint="pip install graspologic-native"
        ) from error

    edges: list[tuple[str, str, float]] = []
    for rows in part.edge_rows(("weight",)):
        ends = zip(rows.source.tolist(), rows.target.tolist(), rows.column("weight", 1.0), strict=True)
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


def theme_communities(part: GraphPart, found: FoundThemes) -> list[GraphCommunity]:
    """Return themes as communities. A node belongs to the widest theme of most of its units, then to the
    narrower one of most of them in it, and so on. Themes without nodes are left out.
    """
    pairs_of_nodes = list(part.mentions()) or [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    nodes, units = (np.concatenate(one) for one in zip(*pairs_of_nodes, strict=True))
    out: list[GraphCommunity] = []
    home = np.full(len(part.tables), -1, np.int64)
    level = [(theme, -1) for theme in found.themes.themes]
    depth = 0
    while level:
        owner = np.full(int(units.max(initial=-1)) + 1, -1, np.int64)
        for place, (theme, _) in enumerate(level):
            own = found.units[theme.id]
            owner[own[own < len(owner)]] = place
        places = owner[units]
        parents = np.array([parent for _, parent in level], np.int64)
        counted = (places >= 0) & (parents[places] == home[nodes])
        pairs, counts = np.unique(nodes[counted] * len(level) + places[counted], return_counts=True)
        members, chosen = np.divmod(pairs, len(level))
        order = np.lexsort((chosen, -counts, members))
        members, first = np.unique(members[order], return_index=True)
        chosen = chosen[order][first]
        home = np.full(len(part.tables), -1, np.int64)
        inner = []
        for place, (theme, parent) in enumerate(level):
            own_nodes = members[chosen == place]
            if not len(own_nodes):
                continue
            one = GraphCommunity(len(out), depth, parent, own_nodes, theme=theme)
            one.units = np.sort(found.units[theme.id]).astype(np.int64)
            home[own_nodes] = one.number
            out.append(one)
            if parent >= 0:
                out[parent].children.append(one.number)
            inner += [(child, one.number) for child in theme.themes]
        level, depth = inner, depth + 1
    return out


def theme_report(theme: Theme, size: int, largest: int) -> Mapping[str, Any]:
    """Return the report of a theme: its summary, or its quotes if it has none. Findings are its quotes."""
    written = theme.summary
    findings = [{"summary": one.title or one.document, "explanation": one.text} for one in theme.quotes]
    title = (written.title if written else "") or theme.label
    summary = written.text if written else " ".join(one.text for one in theme.quotes) or title
    return _report(title, summary, findings, size, largest, _WRITTEN if written else _QUOTED)


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
    return _report(title, summary, findings, size, largest, EXTRACTIVE)


def _report(
    title: str, summary: str, findings: list[dict[str, str]], size: int, largest: int, explanation: str
) -> Mapping[str, Any]:
    sections = "".join(f"\n\n## {one['summary']}\n\n{one['explanation']}" for one in findings)
    return {
        "title": title,
        "summary": summary,
        "full_content": f"# {title}\n\n{summary}{sections}",
        "rank": round(10 * size / max(largest, 1), 3),
        "rating_explanation": explanation,
        "findings": findings,
    }


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0].strip()
