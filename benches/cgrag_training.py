"""The trained LeSeGR: what a training on 500 labelled questions takes, and a question after it.

    python benches/cgrag_training.py --embedder native:FOLDER [--epochs 20]

On cacm; it has 52 questions, so the labelled ones are made: the title of a document that cites others asks for
what it cites. They say what a training takes, not what it is worth. Every epoch is run: the early stop is off.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from cgrag import whole_cacm
from common import header, median, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.index.training import train
from ketrag_fast.lab.eval.beir import load_folder

QUESTIONS = 600
"""Of some a cited document is not among the candidates: about 500 are left."""


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    header("Trained CG-RAG", [f"cacm, vectors of {args.embedder.split('/')[-1]}, hidden sizes of 256."])
    documents = list(whole_cacm())
    citing = [(d.title or d.text, d.metadata["cites"]) for d in documents if d.metadata["cites"]]
    drawn = np.random.default_rng(42).permutation(len(citing))[:QUESTIONS].tolist()
    labelled = [(text, frozenset(map(str, cited))) for text, cited in (citing[at] for at in drawn)]
    own = load_folder(require_data("cacm")).questions
    with tempfile.TemporaryDirectory() as temporary:
        path, out = Path(temporary) / "ix", Path(temporary) / "weights.safetensors"
        given = Settings(system="cg-rag", modes="text,cg-rag,cg-rag-trained", embedder=args.embedder)
        with Index.build(documents, path, settings=given) as index:
            index.inspect.vectors([labelled[0][0]])  # the model is loaded before the clock runs
            wall, used = time.perf_counter(), time.process_time()
            made = train(index, "cg-rag", labelled, out, epochs=args.epochs, patience=args.epochs)
            wall, used = time.perf_counter() - wall, time.process_time() - used
        print(f"## A training on {made.questions} questions\n")
        table(
            ["epochs", "minutes", "minutes of processor", "s of processor, a question and epoch"],
            [
                [
                    made.epochs,
                    round(wall / 60, 1),
                    round(used / 60, 1),
                    round(used / made.questions / made.epochs, 3),
                ]
            ],
        )
        asked = Settings(mode="cg-rag-trained", lesegr_weights=str(out))
        rows = []
        with Index.open(path, settings=asked) as index:
            for name in ("for the first time", "once its edges are known"):
                taken = []
                for question in own:
                    index.inspect.vectors([question.text])
                    index.retrieve(question.text, mode="text", budget=2_000)  # its vector is then known
                    times = index.retrieve(question.text, budget=2_000).timings_ms
                    taken.append(times["embed"] + times["search"])
                rows.append([name, round(median(taken), 1), round(float(np.quantile(taken, 0.95)), 1)])
        print(f"## A question: the best of {len(documents):,} texts by the trained network\n")
        table(["question", "ms, median", "ms, 95 of 100"], rows)


if __name__ == "__main__":
    sys.exit(main())
