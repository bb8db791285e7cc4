"""Local search next to the reference implementation: its tables row by row, and its text, on 40 questions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.conftest import ROOT

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.kernels.text import pack
from ketrag_fast.kernels.vectors import quantise
from ketrag_fast.query.modes import build_request, find_recipe
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared import vectors as built_in

FOLDER = ROOT / "tests" / "data" / "musique-train100" / "graphrag-local-search"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def rows(name: str, values: list[list[int]]) -> dict[str, Any]:
    return {
        f"{name}_indptr": np.cumsum([0, *map(len, values)]).astype(np.uint64),
        f"{name}_indices": np.array([x for row in values for x in row], np.uint32),
    }


def strings(name: str, values: list[str]) -> dict[str, Any]:
    blob, offsets = pack(values)
    return {f"{name}_blob": blob, f"{name}_offsets": offsets}


@pytest.fixture(scope="module")
def skeleton() -> dict[str, Any]:
    entities, relations = lines("entities.jsonl"), lines("relations.jsonl")
    number = {entity["name"]: entity["id"] for entity in entities}
    return {
        **strings("entity_name", [e["name"] for e in entities]),
        **strings("entity_description", [e["description"] for e in entities]),
        "entity_rank": np.array([e["rank"] for e in entities]),
        **rows("entity_units", [e["units"] for e in entities]),
        "entity_row_tokens": np.zeros(len(entities), np.uint32),
        "relation_source": np.array([number[r["source"]] for r in relations]),
        "relation_target": np.array([number[r["target"]] for r in relations]),
        **strings("relation_description", [r["description"] for r in relations]),
        "relation_weight": np.array([r["weight"] for r in relations]),
        "relation_rank": np.array([r["rank"] for r in relations]),
        **rows("relation_units", [r["units"] for r in relations]),
        "relation_row_tokens": np.zeros(len(relations), np.uint32),
    }


@pytest.fixture(scope="module")
def searcher(skeleton: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> _core.Searcher:
    """The same skeleton inside an index whose units are the recorded ones."""
    folder = tmp_path_factory.mktemp("graphrag")
    documents = [Document(f"{unit['id']:04}", unit["text"]) for unit in lines("units.jsonl")]
    settings = Settings(cut="windows", chunk_tokens=100_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(built_in, "DIMENSION", 384)
        Index.build(documents, folder / "index", settings=settings).close()
    generation = open_current(Layout(folder / "index"))
    files = {
        f"{stage}.{name}": str(arrays.path(name))
        for stage, arrays in generation.stages.items()
        for name in arrays
    }
    vectors = np.load(FOLDER / "vectors.npz")["entities"].astype(np.float32)
    made = {f"skeleton.{name}": array for name, array in skeleton.items()}
    made |= {f"skeleton.{name}": made[f"skeleton.{name}"].astype(np.uint32) for name in NUMBERS}
    made["entities.entity_vectors"] = vectors
    for name, array in zip(("codes", "scale", "residual"), quantise(vectors), strict=True):
        made[f"entities.entity_{name}"] = array
    for name, array in made.items():
        files[name] = str(folder / f"{name}.npy")
        np.save(files[name], array, allow_pickle=False)
    return _core.Searcher(files, "cl100k_base", "english")


NUMBERS = ("entity_rank", "relation_source", "relation_target", "relation_rank")


def test_a_question_to_an_index_gets_the_published_tables(searcher: _core.Searcher) -> None:
    """From the question's vector to the text: the rules of `ket-rag:reference`, through the engine."""
    queries = np.load(FOLDER / "vectors.npz")["queries"].astype(np.float32)
    contexts = lines("contexts.jsonl")
    names = list(dict.fromkeys(context["query"] for context in contexts))
    settings = Settings(system="ket-rag:reference")
    for context in contexts:
        vector = queries[names.index(context["query"])]
        request = build_request(settings, find_recipe("skeleton"), [context["budget"]])
        printed = searcher.answer(request, "asked", vector=vector).contexts[0]
        text, tokens = printed.text, printed.tokens
        assert tokens == context["tokens"] <= context["budget"]
        assert printed.units == context["sources"]
        if context is contexts[0]:
            assert text == (FOLDER / "sample-context.txt").read_text("utf-8")
        for table, title in (("entities", "Entities"), ("relationships", "Relationships")):
            if not context[table]:
                continue
            body = text.split(f"-----{title}-----\n", 1)[1].split("\n-----", 1)[0]
            ids = [int(line.split("|", 1)[0]) for line in body.splitlines()[1:] if line[:1].isdigit()]
            assert ids[: len(context[table])] == context[table]
