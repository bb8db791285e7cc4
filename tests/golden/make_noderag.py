"""Records what the code published with NodeRAG makes of recorded replies: tests/golden/noderag.json.gz.

python tests/golden/make_noderag.py CHECKOUT     # a checkout of github.com/Terry-Xu-666/NodeRAG

It runs the published pipeline itself, class by class: graph, attributes, embeddings, communities and
high-level elements, texts, HNSW, search. Needs the versions that its requirements.txt names of networkx
(3.4.2), numpy, pandas, scipy, igraph, leidenalg, faiss-cpu and hnswlib-noderag, besides pyarrow,
sortedcontainers, backoff, rich, tqdm and pydantic.

What stands in for parts of it: its settings (the constructor needs a tokeniser from the network), its
clients (scripted replies), and modules that it imports and that nothing here calls. What is fixed: the
pivots (seed of `random`), Leiden's seed, one thread for HNSW, and PYTHONHASHSEED, as the ids of its
relations depend on it.

Where it cannot run as it is: K_core fails where the core is not empty (the core is recorded), and the
names that post_process_top_k finds are read when it returns. Not run: units with an empty text (their
rows are deleted, and a search that finds one fails), a unit that lists its own text as an entity
(networkx refuses the k-core), fewer than ten nodes (ten pivots are drawn), and everything that adds
documents to an index.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import sys
import tempfile
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tests.golden import noderag_replies as replies  # noqa: E402
from tests.golden.noderag_small import record_small  # noqa: E402
from tests.golden.noderag_standins import Config, Labels, prepare  # noqa: E402

TARGET = Path(__file__).with_name("noderag.json.gz")
SEED = 2026


def record_graph(config: Config, out: dict[str, Any], labels: Labels, texts: list[str]) -> None:
    """3.3, by Graph_pipeline."""
    import pandas as pd
    from NodeRAG.build.pipeline.graph_pipeline import Graph_pipeline

    hashes = [sha256(text.encode()).hexdigest() for text in texts]
    rows = [{"text_id": k, "hash_id": h, "type": "text", "context": text, "doc_id": k, "doc_hash_id": h,
             "embedding": None} for k, (h, text) in enumerate(zip(hashes, texts, strict=True))]  # fmt: skip
    pd.DataFrame(rows).to_parquet(config.text_path)
    with Path(config.text_decomposition_path).open("w") as file:
        for k, output in enumerate(out["decompositions"]):
            file.write(
                json.dumps({"text_hash_id": hashes[k], "text_id": k, "response": {"Output": output}}) + "\n"
            )
    pipeline = Graph_pipeline(config)
    asyncio.run(pipeline.main())
    labels.read(pipeline.G, tables(config), texts)
    context = {row.hash_id: row.raw_context for row in pipeline.relationship}
    out["reconstructions"] = [
        [parts["relationship"], list(reply.values())] for parts, reply in config.API_client.calls
    ]
    out["graph"] = {
        "nodes": labels.nodes(pipeline.G),
        "edges": labels.edges(pipeline.G),
        "contexts": {labels.numbers[h]: text for h, text in context.items()},
    }


def tables(config: Config) -> list[Any]:
    """The stored tables, those of names last: where keys meet, the first to be a node is a name or a unit."""
    import pandas as pd

    names = (
        "text",
        "high_level_elements",
        "high_level_elements_titles",
        "attributes",
        "semantic_units",
        "entities",
    )
    paths = [getattr(config, f"{name}_path") for name in (*names, "relationship")]
    return [pd.read_parquet(path) for path in paths if Path(path).exists()]


def record_importance(config: Config, out: dict[str, Any], labels: Labels, texts: list[str]) -> None:
    """3.4 and 3.5, by NodeImportance and Attribution_generation_pipeline.

    K_core raises KeyError where the core is not empty, after it has kept the core: that is what is recorded.
    """
    from NodeRAG.build.pipeline import attribute_generation

    pipeline = attribute_generation.Attribution_generation_pipeline(config)
    number = labels.numbers
    cores = {}
    for k in (2, 3, 4):
        importance = attribute_generation.NodeImportance(pipeline.G, config.console)
        try:
            importance.K_core(k)
            failed = False
        except KeyError:
            failed = True
        cores[k] = {"nodes": sorted(number[node] for node in importance.k_subgraph), "key_error": failed}
    random.seed(SEED)
    pivots = random.sample(list(pipeline.G.nodes()), 10)
    made: list[Any] = []

    class Kept(attribute_generation.NodeImportance):  # type: ignore[misc, name-defined]
        def main(self) -> Any:
            made.append((self, int(self.defult_k())))
            return super().main()

    attribute_generation.NodeImportance = Kept  # type: ignore[misc]
    random.seed(SEED)
    before = len(config.API_client.calls)
    asyncio.run(pipeline.main())
    [(importance, k0)] = made
    labels.read(pipeline.G, tables(config), texts)
    asked = config.API_client.calls[before:]
    out["importance"] = {
        "k0": k0,
        "cores": cores,
        "pivots": [number[node] for node in pivots],
        "betweenness": [importance.betweenness[node] for node in importance.betweenness],
        "important": sorted(number[node] for node in pipeline.important_nodes),
    }
    out["attributes"] = [
        {
            "node": number[a.node],
            "text": a.raw_context,
            "units": parts["semantic_units"].strip("\n").split("\n"),
            "relations": parts["relationships"].strip("\n").split("\n"),
        }
        for a, (parts, _) in zip(pipeline.attributes, asked, strict=True)
    ]


def record_communities(config: Config, out: dict[str, Any], labels: Labels, texts: list[str]) -> None:
    """3.6 and 3.7, by Embedding_pipeline and SummaryGeneration; first with a threshold for k-means."""
    import leidenalg
    import pandas as pd
    from NodeRAG.build.pipeline import embedding, summary_generation

    asyncio.run(embedding.Embedding_pipeline(config).main())
    number = labels.numbers
    real = leidenalg.find_partition

    def partition(graph: Any, kind: Any) -> list[list[int]]:
        """Leiden with a seed, and one name as a community of its own, so that one has no units."""
        found = real(graph, kind, seed=SEED)
        communities = [list(community) for community in found]
        names = dict(pd.read_parquet(config.entities_path)[["hash_id", "context"]].values)
        alone = next(v for v in communities[0] if graph.vs[v]["name"] in names)
        communities[0].remove(alone)
        communities.append([alone])
        out["communities"] = {
            "members": [[number[graph.vs[v]["name"]] for v in community] for community in communities],
            "leiden": [sorted(number[graph.vs[v]["name"]] for v in community) for community in found],
            "modularity": found.modularity,
        }
        return communities

    summary_generation.la.find_partition = partition

    def run(threshold: float) -> Any:
        config.Hcluster_size, config.API_client.communities = threshold, 0
        pipeline = summary_generation.SummaryGeneration(config)
        asyncio.run(pipeline.generate_high_level_element_summary())
        rows = [json.loads(line) for line in Path(config.summary_path).read_text().splitlines()]
        asyncio.run(pipeline.high_level_element_summary())
        Path(config.summary_path).unlink()
        return pipeline, rows

    kept: dict[str, Any] = {}
    real_means = summary_generation.faiss.Kmeans

    class Means(real_means):  # type: ignore[misc, valid-type]
        def assign(self, x: Any) -> Any:
            distances, assigned = super().assign(x)
            kept["labels"], kept["centres"] = [int(label) for label in assigned], int(self.k)
            return distances, assigned

    summary_generation.faiss.Kmeans = Means
    clustered, rows = run(2)
    summary_generation.faiss.Kmeans = real_means
    elements = [he.hash_id for he in clustered.high_level_elements]
    plain, rows = run(39)
    plain.store_high_level_elements()
    plain.store_graph()
    labels.read(plain.G, tables(config), texts)
    everyone = [number[node] for row in rows for node in row["community"]]
    out["communities"]["used"] = [[number[node] for node in row["community"]] for row in rows]
    out["communities"]["elements"] = [
        [[e["title"], e["description"]] for e in row["response"]["high_level_elements"]] for row in rows
    ]
    out["clustered"] = {
        "order": [number[node] for node in elements] + everyone,
        **kept,
        "edges": labels.edges(clustered.G),
    }
    out["high"] = {
        "nodes": labels.nodes(plain.G),
        "edges": labels.edges(plain.G),
        "related": {
            number[v]: number[d["related_node"]] for v, d in plain.G.nodes(data=True) if "related_node" in d
        },
    }


def record_texts(config: Config, out: dict[str, Any], labels: Labels, texts: list[str]) -> None:
    """3.8 and 3.9, by Insert_text and HNSW_pipeline."""
    from NodeRAG.build.pipeline.HNSW_graph import HNSW_pipeline
    from NodeRAG.build.pipeline.Insert_text import Insert_text

    insert = Insert_text(config)
    asyncio.run(insert.main())
    labels.read(insert.base_G, tables(config), texts)
    out["texts"] = {"nodes": labels.nodes(insert.base_G), "edges": labels.edges(insert.base_G)}
    pipeline = HNSW_pipeline(config)
    asyncio.run(pipeline.main())
    labels.read(pipeline.hnsw.nxgraphs, tables(config), texts)
    out["semantic_edges"] = sorted(
        sorted((labels.numbers[u], labels.numbers[v])) for u, v in pipeline.hnsw.nxgraphs.edges
    )


def record_searches(config: Config, out: dict[str, Any], labels: Labels) -> None:
    """3.10 and 3.11, by NodeSearch. What post_process_top_k keeps to itself is read when it returns."""
    from NodeRAG.search.search import NodeSearch

    number, kept = labels.numbers, {}

    def returned(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code.co_name == "post_process_top_k":
            kept.update(frame.f_locals)

    def search(engine: Any, question: str, full: bool) -> dict[str, Any]:
        sys.setprofile(returned)
        found = engine.search(question)
        sys.setprofile(None)
        start = dict.fromkeys(found.HNSW_results, config.similarity_weight)
        start.update(dict.fromkeys(found.accurate_results, config.accuracy_weight))
        scores = engine.sparse_PPR.PPR(start, alpha=config.ppr_alpha, max_iter=config.ppr_max_iter)
        row = {
            "vector": [number[node] for node in found.HNSW_results],
            "exact": [number[node] for node in found.accurate_results],
            "top": [[number[node], float(score)] for node, score in scores[:40]],
            "order": [number[node] for node, _ in scores],
            "names": [number[node] for node in kept["entity_list"]],
            "titles": [number[node] for node in kept["high_level_element_title_list"]],
            "relations": [number[node] for node in kept["relationship_list"]],
            "retrieved": [number[node] for node in found.search_list],
        }
        if full:
            row["scores"] = [
                score for _, score in sorted((number[node], float(score)) for node, score in scores)
            ]
            sections: dict[str, list[str]] = defaultdict(list)
            for content, kind in found.retrieved_list:
                sections[str(kind)].append(content)
            bodies = {
                kind: "".join(f"{k}. {c}\n" for k, c in enumerate(contents, 1))
                for kind, contents in sections.items()
            }
            for kind, body in bodies.items():
                assert f"------------{kind}-------------\n{body}" in found.structured_prompt
            row["sections"] = bodies
        return row

    settings = {
        "yaml": {},
        "not adjusted": {"unbalance_adjust": False},
        "without yaml": {"unbalance_adjust": False, "ppr_max_iter": 8, "accuracy_weight": 10, "Rnode": 10},
        "few": {"cross_node": 3, "Enode": 2, "Hnode": 1, "Rnode": 4, "HNSW_results": 4},
    }
    usual = {name: getattr(config, name) for chosen in settings.values() for name in chosen}
    out["searches"] = []
    for name, chosen in settings.items():
        for key, value in {**usual, **chosen}.items():
            setattr(config, key, value)
        engine = NodeSearch(config)
        if name in ("yaml", "not adjusted"):
            out["adjusted" if name == "yaml" else "merged"] = {
                "nodes": labels.nodes(engine.G), "edges": labels.edges(engine.G)}  # fmt: skip
        for k, (question, terms) in enumerate(replies.QUESTIONS):
            if name == "yaml" or k in (1, 3):
                row = search(engine, question, full=k == 1 or (name == "yaml" and k == 3))
                out["searches"].append({"settings": name, "question": question, "terms": terms, **row})
    out["settings"] = {name: {**usual, **chosen} for name, chosen in settings.items()}


def one_order(decompositions: list[Any]) -> bool:
    """Whether ids of relations are the same for both directions, which depends on PYTHONHASHSEED.

    The id is a hash of a frozenset in the order of its iteration; where the hashes of both names meet in its
    table, that order is the one of insertion, and a relation that occurs in both directions becomes two.
    """
    pairs = set()
    for relation in (r for output in decompositions for unit in output for r in unit["relationships"]):
        parts = [part.strip() for part in relation.split(",")]
        pairs.add(tuple(sha256(end.encode()).hexdigest() for end in (parts[0], parts[-1])))
    both = [pair for pair in pairs if pair[::-1] in pairs]
    return all(list(frozenset(pair)) == list(frozenset(pair[::-1])) for pair in both)


def main() -> None:
    """Writes the file beside this one."""
    checkout = str(Path(sys.argv[1]).resolve())
    texts = replies.chunks()
    out: dict[str, Any] = {"chunks": texts, "decompositions": replies.decompositions(texts)}
    hash_seed = os.environ.get("PYTHONHASHSEED", "")
    if not hash_seed.isdecimal() or (int(hash_seed) < 400 and not one_order(out["decompositions"])):
        following = str(int(hash_seed) + 1) if hash_seed.isdecimal() else "0"
        environment = {**os.environ, "PYTHONHASHSEED": following}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    labels = Labels()
    with tempfile.TemporaryDirectory() as folder:
        prepare(checkout, Path(folder))
        config = Config(Path(folder))
        record_graph(config, out, labels, texts)
        record_importance(config, out, labels, texts)
        record_communities(config, out, labels, texts)
        record_texts(config, out, labels, texts)
        record_searches(config, out, labels)
        record_small(config, out)
    out["labels"] = [labels.of[node] for node in labels.numbers]
    text = json.dumps(out, ensure_ascii=False, separators=(",", ":"))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{TARGET.name}: {len(text) / 1e6:.1f} MB, {TARGET.stat().st_size / 1e3:.0f} kB packed, "
          f"PYTHONHASHSEED={hash_seed}, {len(out['labels'])} nodes")  # fmt: skip


if __name__ == "__main__":
    main()
