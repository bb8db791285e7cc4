"""The code published with NodeRAG on a graph of a given size: `python benches/noderag_published.py CHECKOUT`.

CHECKOUT is a checkout of github.com/Terry-Xu-666/NodeRAG. Run it with a Python that has the versions its
requirements.txt names of networkx, numpy, pandas, scipy, igraph and leidenalg, besides pyarrow, sortedcontainers,
backoff, rich, tqdm and pydantic; what else it imports is not called here. With this package on the path
(PYTHONPATH=python) both sides run in one process, so that a ratio compares like with like.

Caveats first. One machine, medians of the runs shown. Its functions are called as its pipeline calls them, one by
one, on decompositions by chance (`noderag_workload.py`); no language model, no embedding and no file is in any of
these times. CPU seconds are printed next to wall-clock seconds, because other work disturbs them less; those of several threads add up.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]
from tests.golden.noderag_standins import Quiet, importable  # noqa: E402

from noderag_workload import Rows, Workload, add_semantic, rows_of, workload  # noqa: E402


@dataclass
class Step:
    """Something that is timed: `prepare` is not, and what it returns is given to `work`."""

    name: str
    work: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None
    runs: int = 3


@dataclass
class Measured:
    """Seconds of each run."""

    name: str
    wall: list[float]
    cpu: list[float]


def measure(steps: list[Step]) -> dict[str, Measured]:
    """Each step's runs; the result of the last is thrown away."""
    out = {}
    for step in steps:
        wall, cpu = [], []
        for _ in range(step.runs):
            given = step.prepare()
            gc.collect()
            started, used = time.perf_counter(), time.process_time()
            step.work(given)
            wall.append(time.perf_counter() - started)
            cpu.append(time.process_time() - used)
        out[step.name] = Measured(step.name, wall, cpu)
        print(f"  {step.name}: {statistics.median(wall):.4g} s", file=sys.stderr, flush=True)
    return out


class Published:
    """Its objects, made without its settings and files."""

    def __init__(self, checkout: str) -> None:
        importable(checkout)
        import networkx as nx
        from NodeRAG.build.component.relationship import Relationship
        from NodeRAG.build.pipeline.attribute_generation import NodeImportance
        from NodeRAG.build.pipeline.graph_pipeline import Graph_pipeline
        from NodeRAG.search.Answer_base import Retrieval
        from NodeRAG.search.search import NodeSearch
        from NodeRAG.storage import genid
        from NodeRAG.utils.graph_operator import GraphConcat, IGraph, MultigraphConcat
        from NodeRAG.utils.PPR import sparse_PPR

        self.nx, self.relationship, self.importance = nx, Relationship, NodeImportance
        self.pipeline, self.retrieval, self.searcher = Graph_pipeline, Retrieval, NodeSearch
        self.igraph, self.concat_parts, self.concat_near = IGraph, MultigraphConcat, GraphConcat
        self.walk, self.key = sparse_PPR, lambda text: genid([text], "sha256")

    def graph_pipeline(self, load: Workload) -> Any:
        """As it is before `build_graph`."""
        made = self.pipeline.__new__(self.pipeline)
        made.config, made.G = Quiet(), self.nx.Graph()
        made.config.__dict__["tracker"] = Quiet()
        made.data = [
            {"text_hash_id": self.key(chunk), "response": {"Output": output}}
            for chunk, output in zip(load.chunks, load.decompositions, strict=True)
        ]
        made.semantic_units, made.entities, made.relationship, made.relationship_nodes = [], [], [], []
        made.relationship_lookup = {}
        return made

    def whole(self, graph: Any, load: Workload) -> Any:
        """Attributes, elements and texts added as its pipeline adds them (by ours: there it is one loop with files)."""
        graph = graph.copy()
        for name, text in load.attributes:
            node, key = self.key(name), self.key(text)
            graph.add_node(key, type="attribute", weight=1)
            graph.add_edge(node, key, weight=1)
            graph.nodes[node]["attributes"] = [key]
        for title, text, near in load.elements:
            o, h = self.key(title), self.key(text)
            graph.add_node(h, type="high_level_element", weight=1)
            graph.add_node(o, type="high_level_element_title", weight=1, related_node=h)
            graph.add_edge(h, o, weight=1)
            graph.add_edges_from(((self.key(unit), h) for unit in near), weight=1)
        for chunk, output in zip(load.chunks, load.decompositions, strict=True):
            graph.add_node(self.key(chunk), type="text", weight=1)
            graph.add_edges_from(
                ((self.key(row["semantic_unit"]), self.key(chunk)) for row in output), weight=1
            )
        return graph

    def near(self, load: Workload) -> Any:
        """The graph that its HNSW class makes of the base layer."""
        graph = self.nx.Graph()
        graph.add_edges_from((self.key(one), self.key(other)) for one, other in load.semantic)
        return graph


@dataclass
class Stage:
    """What both sides are given."""

    load: Workload
    first: Any
    """Its graph of units, entities and relations."""
    merged: Any
    """Its whole graph before `unbalance_adjust`."""
    final: Any
    """And after."""
    names: dict[str, str]
    first_rows: Rows
    final_rows: Rows


def stage(published: Published, nodes: int, edges: int) -> Stage:
    """The graphs of a size."""
    load = workload(nodes)
    pipeline = published.graph_pipeline(load)
    asyncio.run(pipeline.build_graph())
    whole = published.whole(pipeline.G, load)
    add_semantic(load, max(edges - whole.number_of_edges(), 0))
    merged = published.concat_near(whole).concat(published.near(load))
    texts = [*load.chunks, *(text for pair in load.attributes for text in pair)]
    texts += [text for title, description, _ in load.elements for text in (title, description)]
    texts += [
        t for out in load.decompositions for row in out for t in (row["semantic_unit"], *row["entities"])
    ]
    names = {published.key(text): text for text in texts}
    final = published.concat_near.unbalance_adjust(merged.copy())
    return Stage(load, pipeline.G, merged, final, names, rows_of(pipeline.G, names), rows_of(final, names))


def published_steps(published: Published, at: Stage) -> list[Step]:
    """Its functions."""
    nx, load = published.nx, at.load
    engine = published.searcher.__new__(published.searcher)
    engine.G, engine.config = at.final, Quiet()
    engine.config.__dict__.update(
        cross_node=10,
        Enode=10,
        Rnode=30,
        Hnode=10,
        ppr_alpha=0.5,
        ppr_max_iter=2,
        similarity_weight=1,
        accuracy_weight=1,
    )
    engine.accurate_id_to_text = {
        node: at.names[node] for node, data in at.final.nodes(data=True)
        if data["type"] in ("entity", "high_level_element_title")
    }  # fmt: skip
    engine.sparse_PPR = published.walk(at.final)
    hits = [published.key(text) for text in load.vector_hits]

    def ask(_: Any) -> list[str]:
        """`NodeSearch.search` after the vector search and without the model that splits the question."""
        found = published.retrieval(engine.config, {}, {}, {})
        found.HNSW_results_with_distance = [(0.0, node) for node in hits]
        start = dict.fromkeys(found.HNSW_results, 1)
        start.update(dict.fromkeys(engine.accurate_search(load.terms), 1))
        engine.post_process_top_k(engine.graph_search(start), found)
        return list(found.search_list)

    def fixed_pivots(_: Any) -> Any:
        random.seed(17)
        return nx.betweenness_centrality(at.first, k=10)

    importance = published.importance(at.first, Quiet())
    start = dict.fromkeys(hits, 1)
    steps = [
        Step("graph of units, entities and relations", lambda p: asyncio.run(p.build_graph()),
             lambda: published.graph_pipeline(load)),
        Step("k-core", lambda _: nx.core.k_core(at.first, k=importance.defult_k())),
        Step("betweenness, 10 pivots", fixed_pivots, runs=1),
        Step("merge into the base graph", lambda _: published.concat_parts(None).concat(at.merged)),
        Step("add semantic edges", lambda g: published.concat_near(g[0]).concat(g[1]),
             lambda: (published.whole(at.first, load), published.near(load))),
        Step("effective weights", published.concat_near.unbalance_adjust, at.merged.copy),
        Step("transition matrix", lambda _: published.walk(at.final)),
        Step("walk of two steps", lambda _: engine.sparse_PPR.PPR(start, alpha=0.5, max_iter=2), runs=7),
        Step("exact matches of three terms", lambda _: engine.accurate_search(load.terms), runs=5),
        Step("one question after its vector search", ask, runs=5),
    ]  # fmt: skip
    try:
        import leidenalg
    except ImportError:
        return steps
    return [*steps, Step("communities (Leiden)", lambda _: leidenalg.find_partition(
        published.igraph(at.first).to_igraph(), leidenalg.ModularityVertexPartition, seed=17), runs=1)]  # fmt: skip


def igraph_steps(at: Stage) -> list[Step]:
    """Return the functions of igraph, if it is installed."""
    try:
        import igraph
    except ImportError:
        return []

    def graph_of(rows: Rows) -> Any:
        owner = np.repeat(np.arange(len(rows.names)), np.diff(rows.indptr.astype(np.int64)))
        once = owner < rows.indices
        made = igraph.Graph(len(rows.names), np.stack([owner[once], rows.indices[once]], 1).tolist())
        made.es["weight"] = rows.weights[once].tolist()
        return made

    first, final = graph_of(at.first_rows), graph_of(at.final_rows)
    rng = random.Random(17)
    pivots = rng.sample(range(first.vcount()), min(10, first.vcount()))
    place = {name: k for k, name in enumerate(at.final_rows.names)}
    hits = [place[text] for text in at.load.vector_hits]
    return [
        Step("k-core", lambda _: first.coreness()),
        Step("betweenness, 10 pivots", lambda _: first.betweenness(directed=False, sources=pivots)),
        # To its own tolerance, not two steps.
        Step("walk of two steps", lambda _: final.personalized_pagerank(
            damping=0.5, directed=False, reset_vertices=hits, weights="weight")),
    ]  # fmt: skip


def our_steps(at: Stage) -> list[Step]:
    """Return our steps, under the same names as in `published_steps`; a missing name leaves its cell empty.

    `at.load` is the input of the graphs, `at.first_rows` and `at.final_rows` are the graphs as compressed
    rows.
    """
    from ketrag_fast import _core
    from ketrag_fast.systems.noderag.communities import leiden
    from ketrag_fast.systems.noderag.graph import Heterograph, symmetric, whole_graph
    from ketrag_fast.systems.noderag.settings import NodeRagSettings

    first, final = at.first_rows, at.final_rows
    pivots = np.sort(np.random.default_rng(17).choice(len(first.names), 10, replace=False)).astype(np.uint32)
    place = {name: k for k, name in enumerate(final.names)}
    hits = np.array([place[text] for text in at.load.vector_hits], np.uint32)
    owner, other = ends_of(final)
    once = owner < other
    of_first, to_first = ends_of(first)
    half = of_first < to_first

    def graph(_: Any) -> Any:
        made = Heterograph(NodeRagSettings())
        for chunk, output in enumerate(at.load.decompositions):
            for row in output:
                triples = [tuple(text.split(", ")) for text in row["relationships"]]
                made.add(chunk, row["semantic_unit"], row["entities"], triples)
        return whole_graph(made)

    def weights(_: Any) -> Any:
        """Edges of all kinds joined to one graph, and its weights."""
        counts = np.ones(int(once.sum()), np.int64)
        (indptr, indices), _ = symmetric(owner[once], other[once], counts, len(final.names))
        degrees = np.diff(indptr.astype(np.int64))
        return 1.0 / np.maximum(np.repeat(degrees, degrees), degrees[indices])

    def walk(_: Any) -> Any:
        even = np.ones(len(hits))
        return _core.spread(final.indptr, final.indices, final.weights, hits, even, steps=2, teleport=0.5)

    return [
        Step("graph of units, entities and relations", graph),
        Step("k-core", lambda _: _core.core_numbers(first.indptr, first.indices), runs=7),
        Step("betweenness, 10 pivots", lambda _: _core.betweenness(first.indptr, first.indices, pivots)),
        Step("effective weights", weights),
        Step("walk of two steps", walk, runs=21),
        Step("communities (Leiden)", lambda _: leiden(of_first[half], to_first[half], len(first.names), 17), runs=1),
    ]  # fmt: skip


def ends_of(rows: Rows) -> tuple[Any, Any]:
    """Both ends of each entry."""
    lengths = np.diff(rows.indptr.astype(np.int64))
    return np.repeat(np.arange(len(rows.names)), lengths), rows.indices.astype(np.int64)


def shown(sides: dict[str, dict[str, Measured]], at: Stage) -> str:
    """A table: wall-clock and CPU seconds of each side, and how many times ours they are."""
    columns = ["", *(f"{side}, {what}" for side in sides for what in ("seconds", "CPU seconds", "runs"))]
    others = [side for side in sides if side != "ours"] if sides.get("ours") else []
    columns += [f"{side} / ours, {by}" for side in others for by in ("seconds", "CPU seconds")]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name in dict.fromkeys(name for measured in sides.values() for name in measured):
        cells = [name]
        for measured in sides.values():
            if (row := measured.get(name)) is None:
                cells += ["", "", ""]
            else:
                cells += [f"{statistics.median(x):.3g}" for x in (row.wall, row.cpu)] + [str(len(row.wall))]
        for side in others:
            theirs, ours = sides[side].get(name), sides["ours"].get(name)
            pairs = [(theirs.wall, ours.wall), (theirs.cpu, ours.cpu)] if theirs and ours else []
            ratios = [statistics.median(one) / statistics.median(other) for one, other in pairs]
            cells += [f"{ratio:.3g}" for ratio in ratios] or ["", ""]
        lines.append("| " + " | ".join(cells) + " |")
    sizes = (
        f"{len(at.final_rows.names)} nodes, {len(at.final_rows.indices) // 2} edges; "
        f"units, entities and relations alone {len(at.first_rows.names)} and {len(at.first_rows.indices) // 2}"
    )
    return "\n".join([f"Graph: {sizes}.", "", *lines])


def main() -> None:
    """Print the table, and the seconds of every run as JSON if a file is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=600_000)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    target = chosen.json.resolve() if chosen.json else None
    checkout = str(Path(chosen.checkout).resolve())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # it writes an error log where it is started
        published = Published(checkout)
        at = stage(published, chosen.nodes, chosen.edges)
        sides = {
            "published": published_steps(published, at),
            "igraph": igraph_steps(at),
            "ours": our_steps(at),
        }
        measured = {side: measure(steps) for side, steps in sides.items()}
        os.chdir(ROOT)
    print(shown({side: rows for side, rows in measured.items() if rows}, at))
    if target:
        target.write_text(
            json.dumps(
                {side: [vars(row) for row in rows.values()] for side, rows in measured.items()}, indent=1
            )
        )


if __name__ == "__main__":
    main()
