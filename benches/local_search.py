"""Local search and ket retrieval, per question: `python benches/local_search.py`.

Caveats first. One machine, medians after a warm-up; a question's vector is given, so its embedding is not
counted. 8,000 chunks of random words, a skeleton of 20,000 entities and 40,000 relations of random ends (by a
power law, so that some entities are hubs), vectors of 256 dimensions of the built-in space.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from common import header, table
from ketrag_fast import Document, Index, Settings, _core, kernels
from ketrag_fast.kernels.vectors import normalise, quantise
from ketrag_fast.query.recipes import build_request, find_recipe


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=8000)
    parser.add_argument("--entities", type=int, default=20_000)
    parser.add_argument("--budget", type=int, default=12_000)
    parser.add_argument("--questions", type=int, default=100)
    args = parser.parse_args()
    header("Local search and ket retrieval", [" ".join((__doc__ or "").split("\n\n")[1].split())])
    draw = np.random.default_rng(7)
    words = [f"w{i}" for i in range(20_000)]
    picks = (len(words) * draw.random((args.chunks, 120)) ** 3).astype(int)
    documents = [Document(str(i), " ".join(words[w] for w in row) + ".") for i, row in enumerate(picks)]
    with (
        tempfile.TemporaryDirectory() as temporary,
        Index.build(documents, Path(temporary) / "index", settings=Settings()) as index,
    ):
        generation = index._opened.generation
        stages = generation.stages
        files = {
            f"{stage}.{name}": str(generation.folder / stage / f"{name}.npy")
            for stage, arrays in stages.items()
            if stage not in ("replies", "skeleton", "entities")
            for name in arrays
        }
        made = _skeleton(draw, stages["units"], args.entities)
        dim = stages["vectors"]["unit_vectors"].shape[1]
        vectors = normalise(draw.standard_normal((args.entities, dim)).astype(np.float32))
        made |= {"entities.entity_vectors": vectors}
        for name, array in zip(("codes", "scale", "residual"), quantise(vectors), strict=True):
            made[f"entities.entity_{name}"] = array
        for name, array in made.items():
            files[name] = str(Path(temporary) / f"{name}.npy")
            np.save(files[name], array, allow_pickle=False)
        searcher = _core.Searcher(files, "cl100k_base", "english")
        queries = normalise(draw.standard_normal((args.questions, dim)).astype(np.float32))
        rows = []
        for mode in ("skeleton", "ket", "hybrid", "keyword"):
            request = build_request(Settings(), find_recipe(mode), [args.budget])
            searcher.answer(request, "warm", vector=queries[0])
            took = []
            for query in queries:
                started = time.perf_counter()
                searcher.answer(request, "asked", vector=query)
                took.append(1000 * (time.perf_counter() - started))
            cuts = statistics.quantiles(took, n=20)
            rows.append([mode, statistics.median(took), cuts[-1]])
        table(["mode", "median ms", "95 % ms"], rows)


def _skeleton(draw: np.random.Generator, units: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """The arrays of a fold over replies of random relations."""
    chunks = len(units["chunk_units"]) - 1
    each = 2 * count // chunks
    ends = (count * draw.random((chunks * each, 2)) ** 2).astype(int)
    names = [f"entity {i} of many" for i in range(count)]
    pairs = [(names[a], names[b]) for a, b in ends.tolist()]
    blank = kernels.pack([""] * count)
    named = kernels.pack(names)
    columns = {
        "entity_name": named,
        "entity_type": blank,
        "entity_description": kernels.pack([f"{name}, of which a line is told" for name in names]),
        "relation_source": kernels.pack([a for a, _ in pairs]),
        "relation_target": kernels.pack([b for _, b in pairs]),
        "relation_description": kernels.pack([f"{a} has to do with {b}" for a, b in pairs]),
    }
    replies = {
        "reply_chunk": np.arange(chunks, dtype=np.uint32),
        "reply_entities_indptr": np.linspace(0, count, chunks + 1).astype(np.uint64),
        "reply_relations_indptr": np.arange(0, chunks * each + 1, each).astype(np.uint64),
        "relation_strength": np.ones(len(pairs)),
    }
    for name, packed in columns.items():
        replies[f"{name}_blob"], replies[f"{name}_offsets"] = packed
    texts = (units["unit_texts_blob"], units["unit_texts_offsets"])
    made = kernels.fold_skeleton(replies, units["chunk_units"], texts, units["unit_span"])
    return {f"skeleton.{name}": array for name, array in made.items()}


if __name__ == "__main__":
    main()
