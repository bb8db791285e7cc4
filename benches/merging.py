"""A merge of shards, compared with one build of the whole with all vectors cached: `python benches/merging.py`.

The model is one of random weights with few layers and the width of MiniLM's vectors: its vectors cost little to make
and as much as real ones to keep, to copy and to search.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from build_on_demand import write
from common import ROOT, header, median, table

sys.path.insert(0, str(ROOT))
from tests import small_model

_CHILD = """
import json, resource, sys, time
from pathlib import Path
from ketrag_fast import Index, Settings
what, out, sources, given = sys.argv[1], sys.argv[2], sys.argv[3].split(";"), json.loads(sys.argv[4])
start = time.perf_counter()
if what == "merge":
    index = Index.merge(sources, out, settings=Settings(threads=given["threads"]))
else:
    index = Index.build(sources, out, settings=Settings(**given), rebuild=what == "rebuild")
took = time.perf_counter() - start
tokens, digest = index.report.usage.embedding_tokens, index.digest
index.close()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps([took, peak, tokens, digest]))
"""


def run(what: str, out: Path, sources: list[Path], given: dict[str, object]) -> tuple[float, float, int, str]:
    """Return seconds, peak GB, tokens embedded and digest of one build or merge, in a separate process."""
    argv = [sys.executable, "-c", _CHILD, what, str(out), ";".join(map(str, sources)), json.dumps(given)]
    took, peak, tokens, digest = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    return took, peak, tokens, digest


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--each", type=int, default=10_000, help="documents of one shard")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    count = args.shards * args.each
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        source = base / "documents.jsonl"
        write(source, count)
        wide = small_model.config(hidden_size=384, num_attention_heads=6, num_hidden_layers=1)
        model = small_model.save(base / "model", {**wide, "max_position_embeddings": 130})
        for name, embedder in (("none", "builtin"), ("384 dimensions", f"native:{model}")):
            plain = {
                "threads": args.threads,
                "chunk_tokens": 2000,
                "embedder": embedder,
                "ann": "exact",  # made-up words are many: a graph of their vectors would take most of the time
            }
            kind = name.split(maxsplit=1)[0]
            shards = [base / f"{kind}-{number}" for number in range(1, args.shards + 1)]
            for number, place in enumerate(shards, 1):
                run("build", place, [source], {**plain, "shard": f"{number}/{args.shards}"})
            whole = base / f"{kind}-whole"
            run("build", whole, [source], plain)
            folds, merges = [], []
            for number in range(args.rounds):
                folds.append(run("rebuild", whole, [source], plain))
                out = base / f"{kind}-merged-{number}"
                merges.append(run("merge", out, shards, plain))
                shutil.rmtree(out)
            same = {one[3] for one in folds} == {one[3] for one in merges}
            assert not any(one[2] for one in merges), "a merge embedded a text"
            fold, merge = (median([one[0] for one in ones]) for ones in (folds, merges))
            rows.append(
                [
                    name,
                    f"{args.shards} of {args.each:,}",
                    f"{merge:.1f}",
                    f"{fold:.1f}",
                    f"{merge / fold:.2f}",
                    f"{max(one[1] for one in merges):.1f} / {max(one[1] for one in folds):.1f}",
                    "yes" if same else "NO",
                ]
            )
            for place in (*shards, whole):
                shutil.rmtree(place)
    header(
        "Merging indexes",
        [
            "Documents of 90 made-up words, one unit each; the model has random weights, one layer and 384 dimensions.",
            f"{args.threads} threads, {args.rounds} rounds, medians; every run in a process of its own, the two by turns.",
            "The fold is a build of all documents with every stage run and every vector kept (`--rebuild`).",
            "Same: the digests of all runs are equal.",
        ],
    )
    table(["model", "shards", "merge s", "fold s", "merge / fold", "peak GB, merge / fold", "same"], rows)


if __name__ == "__main__":
    main()
