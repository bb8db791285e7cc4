"""What stands in for parts of the code published with NodeRAG while `make_noderag.py` runs it."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import types
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from tests.golden import noderag_replies as replies

DIMENSION = 24
NOT_INSTALLED = """
openai google google.api_core google.api_core.exceptions google.genai tiktoken ruamel ruamel.yaml docx fitz
PyPDF2 faiss hnswlib_noderag streamlit flask flask_cors pyvis pyvis.network
"""
KINDS = {
    "semantic_unit": "S",
    "entity": "N",
    "relationship": "R",
    "attribute": "A",
    "high_level_element": "H",
    "high_level_element_title": "O",
    "text": "T",
    None: "",
}
FILES = """
text_path=text.parquet text_decomposition_path=text_decomposition.jsonl
semantic_units_path=semantic_units.parquet entities_path=entities.parquet
relationship_path=relationship.parquet graph_path=new_graph.pkl attributes_path=attributes.parquet
embedding_cache=embedding_cache.jsonl embedding=embedding.parquet base_graph_path=graph.pkl
summary_path=community_summary.jsonl high_level_elements_path=high_level_elements.parquet
high_level_elements_titles_path=high_level_elements_titles.parquet HNSW_path=HNSW.bin
hnsw_graph_path=hnsw_graph.pkl id_map_path=id_map.parquet LLM_error_cache=LLM_error.jsonl
indices_path=indices.json
"""


class Absent(types.ModuleType):
    """A module of which only names are needed."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


class Quiet:
    """A console, a progress bar and a table of indices that do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class Prompt:
    """A prompt that keeps what is put into it."""

    def format(self, **parts: Any) -> str:
        """The parts as JSON."""
        return json.dumps(parts)


class Prompts:
    """All prompts."""

    def __getattr__(self, name: str) -> Any:
        return None if name.endswith("_json") else Prompt()


class Client:
    """Replies by the script; `calls` keeps what came in."""

    def __init__(self) -> None:
        self.communities = 0
        self.calls: list[tuple[Any, Any]] = []

    async def __call__(self, call: dict[str, Any], **_: Any) -> Any:
        """One reply."""
        parts = json.loads(call["query"])
        reply: Any
        if "relationship" in parts:
            reply = replies.reconstructed(parts["relationship"])
        elif "entity" in parts:
            lists = [
                [line for line in parts[of].split("\n") if line] for of in ("semantic_units", "relationships")
            ]
            reply = replies.attribute(parts["entity"], *lists)
        else:
            reply = {"high_level_elements": replies.elements(self.communities, parts["content"])}
            self.communities += 1
        self.calls.append((parts, reply))
        return reply

    def request(self, call: dict[str, Any]) -> Any:
        """The terms of a question."""
        question = json.loads(call["query"])["query"]
        return {"elements": dict(replies.QUESTIONS)[question]}


class Embedder:
    """Sums of a vector for each word, of length 1."""

    def vector(self, text: str) -> list[float]:
        """The vector of a text."""
        import numpy as np

        total = np.zeros(DIMENSION)
        for word in re.findall(r"\w+", text.lower()) or ["nothing"]:
            seed = int.from_bytes(sha256(word.encode()).digest()[:4], "big")
            total += np.random.default_rng(seed).normal(size=DIMENSION)
        return list((total / np.linalg.norm(total)).astype(np.float32).astype(float))

    async def __call__(self, texts: list[str], **_: Any) -> list[list[float]]:
        """The vectors of some texts."""
        return [self.vector(text) for text in texts]

    def request(self, text: str) -> list[float]:
        """The vector of a question."""
        return self.vector(text)


class Config:
    """The settings of its Node_config.yaml, without the parts that need a network."""

    _m, _ef, space, dim = 50, 200, "l2", DIMENSION
    embedding_batch_size, Hcluster_size = 50, 39
    unbalance_adjust = True
    cross_node, Enode, Rnode, Hnode, HNSW_results = 10, 10, 30, 10, 10
    similarity_weight, accuracy_weight, ppr_alpha, ppr_max_iter = 1, 1, 0.5, 2

    def __init__(self, folder: Path) -> None:
        self.API_client, self.embedding_client = Client(), Embedder()
        self.prompt_manager, self.token_counter = (
            Prompts(),
            types.SimpleNamespace(token_limit=lambda text: False),
        )
        self.console = self.tracker = self.indices = Quiet()
        for line in FILES.split():
            name, file = line.split("=")
            setattr(self, name, str(folder / file))

    def start_timer(self, message: str) -> None:
        """Nothing."""

    def record_message_with_time(self, message: str) -> None:
        """Nothing."""


class Labels:
    """Names of nodes that do not depend on a hash."""

    def __init__(self) -> None:
        self.of: dict[str, list[Any]] = {}
        self.numbers: dict[str, int] = {}

    def read(self, graph: Any, tables: list[Any], texts: list[str]) -> None:
        """Labels for nodes that have none yet, by the stored tables."""
        rows = {row["hash_id"]: row for table in tables for _, row in table.iterrows()}
        chunk_of = {sha256(text.encode()).hexdigest(): k for k, text in reversed(list(enumerate(texts)))}
        for node in graph.nodes:
            if node in self.numbers:
                continue
            self.numbers[node] = len(self.numbers)
            row = rows.get(node)
            if row is None or row["type"] == "text":
                self.of[node] = ["T", chunk_of[node]]
            elif row["type"] == "relationship":
                ends = [rows[end]["context"] for end in row["unique_relationship"]]
                self.of[node] = ["R", *sorted(ends * 2 if len(ends) == 1 else ends)]
            else:
                self.of[node] = [KINDS[row["type"]], row["context"]]

    def nodes(self, graph: Any) -> list[list[Any]]:
        """Type and weight of every node, in order."""
        return [[KINDS[data.get("type")], data.get("weight")] for _, data in graph.nodes(data=True)]

    def edges(self, graph: Any) -> list[list[Any]]:
        """Edges with their weights, the smaller number first."""
        n = self.numbers
        return sorted([*sorted((n[u], n[v])), w] for u, v, w in graph.edges(data="weight"))


def importable(checkout: str) -> None:
    """Its package can be imported, with modules of names in place of those that are not installed."""
    for name in NOT_INSTALLED.split():
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except ImportError:
                sys.modules[name] = Absent(name)
    sys.path.insert(0, checkout)


def prepare(checkout: str, folder: Path) -> None:
    """Its error log goes to a folder of ours, and HNSW adds its items on one thread."""
    os.chdir(folder)
    importable(checkout)
    import hnswlib_noderag

    class OneThread(hnswlib_noderag.Index):  # type: ignore[misc]
        def add_items(self, data: Any, ids: Any) -> None:
            super().add_items(data, ids, num_threads=1)

    hnswlib_noderag.Index = OneThread
