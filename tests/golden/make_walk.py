"""Records what the sketch of the walk ranks: tests/golden/walk.json.

python tests/golden/make_walk.py PROTOTYPE DATA     # the folders with walk2.py and with the question sets

Needs NumPy and SciPy. Vectors, where there are any, are random with a fixed seed: only the arithmetic is
compared.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

SETS = ("musique-dev", "2wiki-dev")
WITHOUT, WITH, DEPTH, DIMENSION, SEED = 20, 4, 30, 32, 11


def unit_rows(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Random vectors of length 1."""
    x = rng.normal(size=(rows, DIMENSION))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def chosen(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Questions from all over a set."""
    return queries[:: len(queries) // WITHOUT][:WITHOUT]


def main() -> None:
    """Writes the file beside this one."""
    prototype, data = sys.argv[1:]
    sys.path.insert(0, prototype)
    import walk
    import walk2

    out: dict[str, Any] = {}
    for name in SETS:
        passages, queries, _ = walk.read_folder(str(Path(data) / name))
        titles, texts = [p["title"] for p in passages], [p["text"] for p in passages]
        rng = np.random.default_rng(SEED)
        sentences = sum(len(walk.split_sentences(text)) for text in texts)
        vectors = [unit_rows(rng, rows) for rows in (len(texts), sentences, WITH)]
        index = walk.Index(titles, texts, *vectors[:2])
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
