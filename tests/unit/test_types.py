from __future__ import annotations

import ast
import json
from pathlib import Path

import ketrag_fast
from ketrag_fast.types import Context, Lazy, Passage, Section


def test_context_as_json_has_the_published_shape() -> None:
    about = (1, "subchunk", 41, 17, "docs/a.md", "T", 1200, 1874)
    passage = Passage(*about, 3.21, 160, "walk", "text", relevance=0.7)
    sections = (Section("sources", 3971, "..."),)
    context = Context(
        "q?", "walk", 4000, 3971, "text", Lazy(lambda: [passage]), sections, None, {"search": 0.4}, 7
    )
    data = json.loads(json.dumps(context.to_json()))
    keys = (
        "schema query_id question mode budget tokens reason nothing_fits context passages sections timings_ms"
        " generation"
    )
    assert set(keys.split()) <= set(data)
    assert data["schema"] == "ketrag/context/1"
    assert data["passages"][0] == {
        "rank": 1,
        "unit": {"kind": "subchunk", "id": 41},
        "chunk": 17,
        "document": "docs/a.md",
        "title": "T",
        "page": None,
        "location": {},
        "metadata": {},
        "start": 1200,
        "end": 1874,
        "score": 3.21,
        "relevance": 0.7,
        "tokens": 160,
        "channel": "walk",
        "text": "text",
        "why": [],
    }


def test_lazy_is_made_once_and_only_when_looked_at() -> None:
    made: list[int] = []

    def make() -> list[int]:
        made.append(1)
        return [3, 4]

    lazy = Lazy(make)
    assert made == []
    assert (len(lazy), lazy[0], lazy[1:], list(lazy), 4 in lazy) == (2, 3, (4,), [3, 4], True)
    assert lazy == [3, 4]
    assert made == [1]


def test_type_checkers_see_every_exported_name() -> None:
    """Names are loaded on first use, so type checkers and the reference read the imports for them."""
    tree = ast.parse(Path(ketrag_fast.__file__).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen - {"Any"} == set(ketrag_fast.__all__)
