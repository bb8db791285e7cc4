"""What NodeRAG's published code makes of two small graphs; a part of `make_noderag.py`."""

from __future__ import annotations

from typing import Any

from tests.golden.noderag_standins import Config


def record_small(config: Config, out: dict[str, Any]) -> None:
    """What the chunks do not show: a core that is not empty, a node without edges, walks that rest."""
    import networkx as nx
    from NodeRAG.build.pipeline.attribute_generation import NodeImportance
    from NodeRAG.search.Answer_base import Retrieval
    from NodeRAG.search.search import NodeSearch
    from NodeRAG.utils.PPR import sparse_PPR

    dense = nx.Graph()
    for k in range(16):
        dense.add_node(k, type="semantic_unit" if k < 8 else "entity", weight=2)
    dense.add_edges_from(((unit, name) for unit in range(8) for name in range(8, 16)), weight=1)
    importance = NodeImportance(dense, config.console)
    k0 = int(importance.defult_k())
    try:
        importance.main()
        failed = False
    except KeyError:
        failed = True
    out["dense"] = {"k0": k0, "core": sorted(importance.k_subgraph), "key_error": failed}

    graph = nx.Graph()
    kinds = ["semantic_unit", "entity", "relationship", "entity", "semantic_unit", "semantic_unit", "entity"]
    for k, kind in enumerate(kinds):
        graph.add_node(k, type=kind, weight=1)
    edges = [(0, 1, 3), (1, 2, 1), (2, 3, 1), (0, 3, 1), (5, 6, 1)]  # 4 has none
    graph.add_weighted_edges_from(edges)
    walk = sparse_PPR(graph)
    config.cross_node, config.Enode, config.Rnode, config.Hnode = 10, 10, 30, 10
    walks = []
    for start, steps in (([0], 2), ([4], 2), ([0, 6], 100)):
        scores = walk.PPR(dict.fromkeys(start, 1), alpha=0.5, max_iter=steps)
        engine = NodeSearch.__new__(NodeSearch)
        engine.G, engine.config = graph, config
        found = Retrieval(config, {}, {}, {})
        found.HNSW_results_with_distance = [(0.0, node) for node in start]
        hits = found.HNSW_results
        found = engine.post_process_top_k([node for node, _ in scores], found)
        walks.append({
            "start": hits, "steps": steps, "scores": [float(score) for _, score in sorted(scores)],
            "retrieved": found.search_list, "relations": sorted(found.relationship_list),
        })  # fmt: skip
    out["small"] = {"kinds": kinds, "edges": edges, "walks": walks}
