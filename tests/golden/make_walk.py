"""Record what the sketch of the walk ranks (tests/golden/walk.json), and the texts it read (tests/data/walk).

python tests/golden/make_walk.py PROTOTYPE DATA     # the folders with walk2.py and with the question sets

Needs NumPy and SciPy. Vectors are random with a fixed seed: only the arithmetic is compared. The texts are
stored as the sketch prepares them, so that the tests need neither the sketch nor the question sets: folded,
cut into sentences by its own rule, and with scripts that the two cut differently replaced by made-up words.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

SETS = ("musique-train100", "hotpotqa-train100")
TEXTS = Path(__file__).parents[1] / "data" / "walk"
WITHOUT, WITH, DEPTH, DIMENSION, SEED = 20, 4, 30, 32, 11


def unit_rows(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Random vectors of length 1."""
    x = rng.normal(size=(rows, DIMENSION))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def chosen(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Questions from all over a set."""
    return queries[:: len(queries) // WITHOUT][:WITHOUT]


def plain(sketch: Any, text: str) -> str:
    """Return a text whose words both sides cut alike: words of scripts without spaces become made-up ones."""
    hard = re.compile(r"[^\W_]*(?=[^\W_])[\u0600-\u1fff\u2e80-\uffff][^\W_]*")

    def made_up(match: re.Match[str]) -> str:
        word = match.group()
        return ("Zq" if word[0].isupper() else "zq") + word.lower().encode().hex() + "x"

    folded = hard.sub(made_up, sketch.fold(text))
    return "".join(" " if unicodedata.category(c).startswith("M") else c for c in folded)


def prepared(sketch: Any, passages: list[dict[str, Any]], queries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the texts of a set as the tests read them; `normal` is for looking answers up."""
    whole = [sketch.passage_string(p["title"], p["text"]) for p in passages]
    return {
        "titles": [plain(sketch, p["title"]) for p in passages],
        "texts": [plain(sketch, p["text"]) for p in passages],
        "sentences": [[plain(sketch, s) for s in sketch.split_sentences(p["text"])] for p in passages],
        "characters": [len(text) for text in whole],
        "normal": [sketch.answer_form(text) for text in whole],
        "queries": [
            {
                "_id": query["_id"],
                "text": query["text"],
                "answers": [sketch.answer_form(answer) for answer in query["metadata"]["answers"]],
            }
            for query in queries
        ],
    }


def read_texts(name: str) -> dict[str, Any]:
    """Return the texts of a set from tests/data/walk."""
    found: dict[str, Any] = json.loads(gzip.decompress((TEXTS / f"{name}.json.gz").read_bytes()))
    return found


def main() -> None:
    """Write the rankings next to this file, and the texts into tests/data/walk."""
    prototype, data = sys.argv[1:]
    sys.path.insert(0, prototype)
    import walk2

    import walk

    out: dict[str, Any] = {}
    for name in SETS:
        passages, queries, _ = walk.read_folder(str(Path(data) / name))
        content = json.dumps(prepared(walk, passages, queries), ensure_ascii=False).encode()
        (TEXTS / f"{name}.json.gz").write_bytes(gzip.compress(content, 9, mtime=0))
        titles, texts = [p["title"] for p in passages], [p["text"] for p in passages]
        rng = np.random.default_rng(SEED)
        sentences = sum(len(walk.split_sentences(text)) for text in texts)
        vectors = [unit_rows(rng, rows) for rows in (len(texts), sentences, WITH)]
        index = walk.Index(titles, texts, *vectors[:2])
        # The product leaves a unit's mention of its own subject out of pairs; the sketch counts it.
        index.mentions = index.mentions - index.mentions.multiply(index.about)
        sizes = walk2.Sizes(index, titles, texts)
        rows = []
        for k, query in enumerate(chosen(queries)):
            row: dict[str, Any] = {"id": query["_id"]}
            for variant, vector in (("C", None), ("A", vectors[2][k] if k < WITH else None)):
                if variant == "A" and vector is None:
                    continue
                order, scores = walk2.rank(index, sizes, query["text"], vector, variant)
                top = zip(order[:DEPTH], scores[:DEPTH], strict=True)
                row[variant] = [[int(u), round(float(s), 6)] for u, s in top]
            rows.append(row)
        out[name] = rows
    text = json.dumps(out, separators=(",", ":")).replace("},{", "},\n{")
    Path(__file__).with_name("walk.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
