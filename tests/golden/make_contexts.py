"""Makes contexts.json: what the default and every mode print, as digests.

python -m tests.golden.make_contexts

A digest stands for one question: the context's text to the byte, its size, and each passage with its rank
and its score to the last bit. The vectors of `brought` are drawn by chance and stored, so that no model's
last digits are compared across processors. After a change that is meant to change contexts, run this and
read in the diff which modes changed.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ketrag_fast import Index, Settings
from ketrag_fast.types import Context
from tests.support.vector_files import write_vectors

ROOT = Path(__file__).resolve().parents[2]
POLAR = ROOT / "examples" / "polar"
FILE = Path(__file__).with_name("contexts.json")
BUDGETS = (2000, 600, 90, 12)
PLAIN = ("bm25", "text", "fused", "knn", "keyword", "walk")
TABLES = ("skeleton", "ket")
OTHERS = ("g2cons", "cg-rag", "noderag")
MODES = (*PLAIN, *TABLES, *OTHERS)
# What a network of floats computes differs between processors in the last bit, and these print what it ranks
# or clusters.
# Each is compared with a slow form of its own.
OF_A_MODEL: Mapping[str, str] = {
    "cg-rag-sparse": "tests/index/test_cg_rag_sparse.py",
    "cg-rag-trained": "tests/parity/test_lesegr_trained.py",
    "survey": "tests/unit/query/test_survey.py",
}

# Each variant: what the index is built with, and for each mode (or all) what it is asked with.
BUILDS: Mapping[str, Mapping[str, Any]] = {
    "default": {"llm": "heuristic"},
    "ket-rag": {"system": "ket-rag", "llm": "heuristic", "chunk_tokens": 240},
    "brought": {"llm": "heuristic", "core_ratio": 1.0},
}
# Vectors are brought for units, titles, sentences and entities; NodeRAG embeds other texts too.
NOT_BUILT: Mapping[str, tuple[str, ...]] = {"brought": ("noderag",)}
ASKED: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "few": {"top": 3},
}


def questions() -> list[str]:
    """Those of the demo, and two that match nothing or little."""
    lines = (POLAR / "queries.jsonl").read_text("utf-8").splitlines()
    return [*(json.loads(line)["text"] for line in lines), "zyzzyva qwrtp", "the"]


def brought_vectors(folder: Path) -> str:
    """A folder of vectors for every text of the demo's index and every question; drawn by chance, seed 5."""
    texts: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as place:
        recorder = _Recorder()
        recorder.watch(Path(place), texts)
    texts.update(dict.fromkeys(questions()))
    rows = np.random.default_rng(5).standard_normal((len(texts), 24)).astype(np.float32)
    write_vectors(folder, list(texts), rows)
    return f"vectors:{folder}"


class _Recorder:
    """Learns which texts a build embeds, by building with a folder that lacks them and reading the index."""

    def watch(self, place: Path, texts: dict[str, None]) -> None:
        settings = Settings(llm="heuristic", core_ratio=1.0)
        with Index.build(POLAR / "articles", place / "index", settings=settings) as index:
            arrays = index.inspect.arrays()
            units, skeleton = arrays["units"], arrays["skeleton"]
            titles = _strings(units, "document_titles")
            bodies = _strings(units, "unit_texts")
            for unit, body in enumerate(bodies):
                title = titles[int(units["unit_document"][unit])]
                texts[f"{title}\n{body}" if title else body] = None
            texts.update(dict.fromkeys(titles))
            documents = {p.name: p.read_text("utf-8") for p in (POLAR / "articles").iterdir()}
            ids = _strings(units, "document_ids")
            from ketrag_fast.readers import SourceFile, reader_for

            whole = {}
            for name in documents:
                path = POLAR / "articles" / name
                reader = reader_for(path.suffix)
                assert reader is not None
                for item in reader(SourceFile(path, name, "cp1252")):
                    whole[item.id] = item.text  # type: ignore[union-attr]
            for row in np.flatnonzero(units["sent_title"] == 0):
                chunk = int(units["sent_chunk"][row])
                data = whole[ids[int(units["chunk_document"][chunk])]].encode()
                start, end = units["sent_bytes"][row].tolist()
                texts[data[start:end].decode()] = None
            names = _strings(skeleton, "entity_name")
            told = _strings(skeleton, "entity_description")
            texts.update(dict.fromkeys(f"{n}:{t}" if t else n for n, t in zip(names, told, strict=True)))


def _strings(arrays: Mapping[str, Any], name: str) -> list[str]:
    blob, offsets = bytes(arrays[f"{name}_blob"]), arrays[f"{name}_offsets"].tolist()
    return [blob[a:b].decode() for a, b in pairwise(offsets)]


def digest_of(context: Context) -> str:
    """Sixteen hexadecimal digits for one context."""
    rows = [
        (p.rank, p.unit, p.chunk, p.document, p.start, p.end, float(p.score).hex(), p.tokens, p.channel)
        for p in context.passages
    ]
    tables = [(s.name, s.tokens, s.text) for s in context.sections]
    parts = repr((context.text, context.tokens, context.reason, context.mode, rows, tables))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def contexts(folder: Path, embedder: str) -> Iterator[tuple[str, list[str]]]:
    """A name for each (build, question's settings, mode, budget), and a digest for each question."""
    asked = questions()
    for build, given in BUILDS.items():
        values = {**given, "embedder": embedder} if build == "brought" else dict(given)
        modes = tuple(mode for mode in MODES if mode not in NOT_BUILT.get(build, ()))
        values["modes"] = ",".join(modes)
        Index.build(POLAR / "articles", folder / build, settings=Settings(**values)).close()
        for how, more in ASKED.items():
            with Index.open(folder / build, settings=Settings(**more)) as index:
                for mode in ("auto", *modes):
                    rows = index.retrieve_many(asked, mode=mode, budgets=BUDGETS)
                    for place, budget in enumerate(BUDGETS):
                        found = [digest_of(row[place]) for row in rows]
                        yield f"{build} / {how} / {mode} / {budget}", found


def digests() -> dict[str, str]:
    """One digest for each name: that of its questions' digests."""
    with tempfile.TemporaryDirectory() as place:
        embedder = brought_vectors(Path(place) / "vectors")
        return {
            name: hashlib.sha256("".join(found).encode()).hexdigest()[:16]
            for name, found in contexts(Path(place), embedder)
        }


def main() -> None:
    """Writes the file."""
    FILE.write_text(json.dumps(digests(), indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main()
