"""Records a whole build and some searches of NodeRAG's reference implementation: noderag_pipeline.json.gz.

python tests/golden/make_noderag_pipeline.py CHECKOUT   # github.com/Terry-Xu-666/NodeRAG at f77dd6a

Needs what `make_noderag.py` needs, and ketrag-fast itself. Both build an index of the same passages with the
same replies and vectors (`noderag_pipeline.py`); its pipeline is run class by class, as its own driver does.

What is fixed, so that both can be compared: the reference implementation takes our ten pivots and our
communities (both draw at random), and its HNSW is exact. Vectors come from a function of the text. Our
settings are those of the preset `noderag:reference`. No relation and no unit of the replies is malformed
beyond what a model puts right, and none has an empty, repeated or colliding text (see `make_noderag.py`).
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tests.golden import noderag_pipeline as script  # noqa: E402
from tests.golden.noderag_standins import Client, Config, prepare  # noqa: E402
from tests.support.noderag_index import Recorded, index_of  # noqa: E402

TARGET = Path(__file__).with_name("noderag_pipeline.json.gz")


class Exact:
    """In place of its HNSW: nearest neighbours by a full comparison, equal ones by their numbers."""

    neighbours = 25

    def __init__(self, **_: Any) -> None:
        self.rows = np.zeros((0, script.DIMENSION))

    def add_items(self, data: Any, ids: Any, **_: Any) -> None:
        """Items are added once, in the order of their numbers."""
        assert list(ids) == list(range(len(data)))
        self.rows = np.array(data, np.float64)

    def nearest(self, queries: Any) -> Any:
        """All items for each query, nearest first."""
        scores = np.round(queries @ self.rows.T / np.linalg.norm(self.rows, axis=1), 9)
        numbers = np.broadcast_to(np.arange(len(self.rows)), scores.shape)
        return np.lexsort((numbers, -scores))

    def knn_query(self, query: Any, k: int) -> Any:
        """The k nearest, and no distances."""
        return self.nearest(np.atleast_2d(query))[:, :k], np.zeros((1, k))

    def get_layer_graph(self, layer: int) -> dict[int, list[int]]:
        """The nearest items of each item without itself."""
        order = self.nearest(self.rows).tolist()
        return {at: [k for k in row if k != at][: self.neighbours] for at, row in enumerate(order)}

    def save_index(self, path: str) -> None:
        """As a file of NumPy."""
        with Path(path).open("wb") as file:
            np.save(file, self.rows)

    def load_index(self, path: str) -> None:
        """The inverse."""
        self.rows = np.load(path)

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class Scripted(Client):
    """The reference implementation's client with the scripted replies."""

    async def __call__(self, call: dict[str, Any], **_: Any) -> Any:
        """One reply."""
        parts = json.loads(call["query"])
        if "relationship" in parts:
            return script.reconstructed(parts["relationship"])
        if "entity" in parts:
            lists = [
                [line for line in parts[of].split("\n") if line] for of in ("semantic_units", "relationships")
            ]
            return script.attribute(parts["entity"], *lists)
        return {"high_level_elements": script.elements(parts["content"].strip().split("\n"))}

    def request(self, call: dict[str, Any]) -> Any:
        """The names of a question."""
        return {"elements": dict(script.QUESTIONS)[json.loads(call["query"])["query"]]}


def put_texts(config: Config, texts: list[str]) -> None:
    """The tables of chunks and of decompositions, which need a tokeniser and a model there."""
    import pandas as pd

    hashes = [sha256(text.encode()).hexdigest() for text in texts]
    rows = [{"text_id": k, "hash_id": h, "type": "text", "context": text, "doc_id": k, "doc_hash_id": h,
             "embedding": None} for k, (h, text) in enumerate(zip(hashes, texts, strict=True))]  # fmt: skip
    pd.DataFrame(rows).to_parquet(config.text_path)
    with Path(config.text_decomposition_path).open("w") as file:
        for k, text in enumerate(texts):
            output = script.decomposition(text)
            for unit in output:
                unit["relationships"] = [", ".join(parts) for parts in unit["relationships"]]
            row = {"text_hash_id": hashes[k], "text_id": k, "response": {"Output": output}}
            file.write(json.dumps(row) + "\n")


def name_of(row: dict[str, Any], rows: dict[str, Any], texts: list[str]) -> str:
    """A node's name in the golden file: its kind and text, of a chunk its number, of a relation its ends."""
    kind = row["type"]
    if kind == "text":
        return f"T {texts.index(row['context'])}"
    if kind == "relationship":
        ends = sorted(rows[end]["context"] for end in row["unique_relationship"])
        return "R " + "|".join(ends)
    letters = {"semantic_unit": "S", "entity": "N", "attribute": "A", "high_level_element": "H"}
    return f"{letters.get(kind, 'O')} {row['context']}"


def names_of(config: Config, texts: list[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The name of each node by its hash, and the stored rows."""
    import pandas as pd

    files = ("text", "semantic_units", "entities", "relationship", "attributes", "high_level_elements",
             "high_level_elements_titles")  # fmt: skip
    paths = [Path(getattr(config, f"{file}_path")) for file in files]
    tables = [pd.read_parquet(path) for path in paths if path.exists()]
    rows = {row["hash_id"]: row for table in tables for row in table.to_dict("records")}
    names = {node: name_of(row, rows, texts) for node, row in rows.items()}
    assert len(set(names.values())) == len(names)
    return names, rows


def run_pipeline(config: Config, texts: list[str], ours: Recorded) -> dict[str, Any]:
    """Graph, importance, attributes, embeddings, communities, elements, texts, semantic edges."""
    from NodeRAG.build.pipeline import attribute_generation, embedding, summary_generation
    from NodeRAG.build.pipeline.graph_pipeline import Graph_pipeline
    from NodeRAG.build.pipeline.HNSW_graph import HNSW_pipeline
    from NodeRAG.build.pipeline.Insert_text import Insert_text

    asyncio.run(Graph_pipeline(config).main())
    names, rows = names_of(config, texts)
    hashes = {name: node for node, name in names.items()}
    told = {names[node]: row["context"] for node, row in rows.items() if row["type"] == "relationship"}
    found: list[Any] = []
    whole = attribute_generation.NodeImportance.main
    attribute_generation.NodeImportance.main = lambda self: found.append(self) or whole(self)
    pipeline = attribute_generation.Attribution_generation_pipeline(config)
    generator: Any = random._inst  # type: ignore[attr-defined]
    generator.sample = lambda population, k: [hashes[name] for name in ours.pivots]
    asyncio.run(pipeline.main())
    del generator.sample
    [importance] = found
    out: dict[str, Any] = {
        "relations": told,
        "betweenness": {names[node]: float(value) for node, value in importance.betweenness.items()},
        "important": sorted(names[node] for node in pipeline.important_nodes),
    }
    asyncio.run(embedding.Embedding_pipeline(config).main())
    names, _ = names_of(config, texts)

    def partition(graph: Any, kind: Any) -> list[list[int]]:
        numbers = {names[v["name"]]: v.index for v in graph.vs}
        assert {name for row in ours.communities for name in row} == set(numbers)
        return [[numbers[name] for name in row] for row in ours.communities]

    summary_generation.la.find_partition = partition
    asyncio.run(summary_generation.SummaryGeneration(config).main())
    asyncio.run(Insert_text(config).main())
    asyncio.run(HNSW_pipeline(config).main())
    return out


def search(engine: Any, question: str, config: Config, names: dict[str, str]) -> dict[str, Any]:
    """What one question finds."""
    found = engine.search(question)
    start = dict.fromkeys(found.HNSW_results, config.similarity_weight)
    start.update(dict.fromkeys(found.accurate_results, config.accuracy_weight))
    scores = engine.sparse_PPR.PPR(start, alpha=config.ppr_alpha, max_iter=config.ppr_max_iter)
    return {
        "question": question,
        "near": [names[node] for node in found.HNSW_results],
        "named": sorted({names[node] for node in found.accurate_results}),
        "scores": {names[node]: float(score) for node, score in scores if score > 0},
        "retrieved": [names[node] for node in dict.fromkeys(found.search_list)],
        "relations": sorted(names[node] for node in found.relationship_list),
    }


def record(checkout: str, folder: Path) -> dict[str, Any]:
    """Ours first, for its draws, then the reference implementation."""
    texts = script.passages()
    with index_of(folder / "ours") as index:
        ours = Recorded.of(index)
    prepare(checkout, folder)
    import hnswlib_noderag

    hnswlib_noderag.Index = Exact
    config = Config(folder)
    config.API_client = Scripted()
    put_texts(config, texts)
    out = run_pipeline(config, texts, ours)
    names, _ = names_of(config, texts)
    from NodeRAG.search.search import NodeSearch
    from NodeRAG.storage import storage

    base = storage.load(config.base_graph_path)
    out["nodes"] = {names[node]: data["weight"] for node, data in base.nodes(data=True)}
    config.unbalance_adjust = False
    counted = NodeSearch(config).G
    out["edges"] = sorted([*sorted((names[u], names[v])), w] for u, v, w in counted.edges(data="weight"))
    config.unbalance_adjust = True
    engine = NodeSearch(config)
    adjusted = {tuple(sorted((names[u], names[v]))): w for u, v, w in engine.G.edges(data="weight")}
    out["effective"] = [adjusted[u, v] for u, v, _ in out["edges"]]
    out["questions"] = [search(engine, question, config, names) for question, _ in script.QUESTIONS]
    draws = {"pivots": ours.pivots, "communities": ours.communities}
    return {"draws": draws, **numbered(out)}


def numbered(out: dict[str, Any]) -> dict[str, Any]:
    """The same with numbers of nodes in place of their names, which keeps the file small."""
    number = {name: k for k, name in enumerate(out["nodes"])}
    questions = [
        {
            "question": row["question"],
            **{
                key: [number[name] for name in row[key]]
                for key in ("near", "named", "retrieved", "relations")
            },
            "scores": sorted([number[name], score] for name, score in row["scores"].items()),
        }
        for row in out["questions"]
    ]
    return {
        "names": list(number),
        "weights": list(out["nodes"].values()),
        "relations": {number[name]: text for name, text in out["relations"].items()},
        "betweenness": [[number[name], value] for name, value in out["betweenness"].items()],
        "important": [number[name] for name in out["important"]],
        "edges": [[number[u], number[v], w] for u, v, w in out["edges"]],
        "effective": out["effective"],
        "questions": questions,
    }


def main() -> None:
    """Writes the file beside this one."""
    checkout = str(Path(sys.argv[1]).resolve())
    if not os.environ.get("PYTHONHASHSEED", "").isdecimal():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    with tempfile.TemporaryDirectory() as folder:
        out = record(checkout, Path(folder))
    text = json.dumps(out, ensure_ascii=False, separators=(",", ":"))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{TARGET.name}: {len(out['names'])} nodes, {len(out['edges'])} edges, "
          f"{TARGET.stat().st_size / 1e3:.0f} kB packed")  # fmt: skip


if __name__ == "__main__":
    main()
