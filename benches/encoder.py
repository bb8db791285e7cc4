"""The built-in encoder and `SentenceTransformer.encode` with its defaults: tokens a second, and equality of vectors.

    python benches/encoder.py
    python benches/encoder.py --rerank    # instead the time that a cross-encoder adds to a question

The cross-encoder has MiniLM's size and reads 30 passages. It is all-MiniLM-L6-v2 with a random output, because its time does not
depend on its weights; `auto` would choose f32 for such scores, so each precision is measured. All are measured on one thread, without
an embedding model, over the passages of musique-dev.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common import WORK, arguments, median, publish, require_data, require_model, seconds, target
from common import result_table as table
from ketrag_fast import Index, Settings, _core
from ketrag_fast.errors import InputError
from ketrag_fast.eval import load_dataset
from ketrag_fast.kernels.encoder import Encoder, kernels

QUESTION = "Who was the father of the architect that designed the railway station of the town on the lake?"
FORMS = {
    "portable": ("f32", "int8"),
    "avx2": ("f32", "int8"),
    "avx-vnni": ("int8",),
    "avx512": ("f32", "int8"),
    "avx512-vnni": ("int8",),
    "avx512-bf16": ("bf16",),
    "amx": ("bf16", "int8"),
}
"""The precisions that each kernel has instructions for."""
SET = "musique-dev"
PASSAGES = 30
PRECISIONS = ("fp32", "bf16", "int8")
TILES_MS, MOST_MS = 30, 120
"""Milliseconds that reranking may add on a core with matrix tiles, and on others."""


def texts_of(count: int) -> dict[str, list[str]]:
    """Return passages of musique-train100, and three times as many of its sentences."""
    lines = (require_data("musique-train100") / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    passages = [f"{row.get('title', '')}\n{row['text']}" for row in rows]
    pieces = [part.strip() for row in rows for part in row["text"].replace("? ", ". ").split(". ")]
    return {"passages": passages[:count], "sentences": [part for part in pieces if part][: 3 * count]}


def clock(work: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def nearest(vectors: np.ndarray[Any, Any], k: int = 10) -> list[set[int]]:
    """Return the k nearest other rows of each of the first 500 rows."""
    scores = vectors[:500] @ vectors.T
    scores[np.arange(len(scores)), np.arange(len(scores))] = -2
    return [set(row) for row in np.argpartition(-scores, k, axis=1)[:, :k].tolist()]


def compared(got: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the lowest cosine, and the percentage of the ten nearest that are the same."""
    cosine = (got * exact).sum(1) / (np.linalg.norm(got, axis=1) * np.linalg.norm(exact, axis=1))
    same = [len(a & b) / 10 for a, b in zip(nearest(got), nearest(exact), strict=True)]
    return float(cosine.min()), 100 * float(np.mean(same))


def against_library(encoder: Encoder, folder: str, texts: dict[str, list[str]], runs: int) -> list[list[Any]]:
    """Return a row for each kind of text and number of threads; empty without sentence-transformers."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return []
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    rows: list[list[Any]] = []
    for kind, own in texts.items():
        lengths = encoder.lengths(own).tolist()
        # The library cuts longer texts; the encoder takes windows of them.
        own = [text for text, n in zip(own, lengths, strict=True) if n <= encoder.longest]
        tokens = float(encoder.lengths(own).sum())
        lowest, same = compared(encoder.encode(own), model.encode(own))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            pairs = [
                (
                    clock(lambda n=threads, t=own: encoder.encode(t, threads=n)),
                    clock(lambda t=own: model.encode(t)),
                )
                for _ in range(runs)
            ]
            ours, theirs = (tokens / median(times) for times in zip(*pairs, strict=True))
            row = [kind, len(own), threads, ours, theirs, ours / theirs, f"{lowest:.6f}", same]
            rows.append([*row, target(ours / theirs, least=1.7)])
    return rows


def by_kernel(folder: str, texts: list[str], runs: int) -> list[list[Any]]:
    """Return a row for each kernel of this processor in each precision that it has instructions for."""
    every = {"auto": Encoder.open(folder)}
    for name in kernels():
        for precision in FORMS[name] if name != "portable" or len(kernels()) == 1 else ():
            try:
                every[f"{name}, {precision}"] = Encoder.open(folder, precision=precision, kernel=name)
            except InputError:  # tiles that do not multiply bytes
                continue
    exact = next(encoder for encoder in every.values() if encoder.precision == "f32").encode(texts)
    tokens = float(every["auto"].lengths(texts).sum())
    rows: list[list[Any]] = []
    for name, encoder in every.items():
        took = [clock(lambda e=encoder: e.encode(texts, threads=1)) for _ in range(runs)]
        short = [clock(lambda e=encoder: e.encode([QUESTION], threads=1)) for _ in range(30)]
        label = f"auto: {encoder.kernel}, {encoder.precision}" if name == "auto" else name
        lowest, same = compared(encoder.encode(texts), exact)
        rows.append([label, tokens / median(took), 1000 * median(short), f"{lowest:.6f}", same])
    return rows


def cross_encoder(folder: Path) -> Path:
    """Write all-MiniLM-L6-v2 with one random output, as transformers saves it, and return the folder."""
    import transformers

    if not (folder / "model.safetensors").exists():
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            str(require_model()), num_labels=1, local_files_only=True, use_safetensors=True
        )
        model.save_pretrained(str(folder))
        (folder / "tokenizer.json").write_bytes((require_model() / "tokenizer.json").read_bytes())
    return folder


def times(place: Path, questions: Sequence[str], rerank: str | None, precision: str = "auto") -> list[float]:
    """Return the milliseconds of each question in mode walk."""
    with Index.open(place, settings=Settings(rerank=rerank, precision=precision, threads=1)) as index:
        index.retrieve(questions[0], mode="walk", budget=4_000)  # opens the model and chooses its kernel
        return [
            1e3 * value
            for question in questions
            for value in seconds(lambda q=question: index.retrieve(q, mode="walk", budget=4_000), 1, 0)
        ]


def publish_reranking(smoke: bool) -> None:
    """Measure the time that a cross-encoder adds."""
    folder = require_data(SET)
    questions = [q.text for q in load_dataset(folder).questions[: 2 if smoke else 20]]
    place = WORK / "rerank-index"
    Index.build(folder, place, settings=Settings(modes="walk")).close()
    read = f"cross-encoder of MiniLM's size, {PASSAGES} passages"
    cross = f"native:{cross_encoder(WORK / 'rerank-cross')}"
    found = {
        "none": times(place, questions, None),
        **{f"{read}, {precision}": times(place, questions, cross, precision) for precision in PRECISIONS},
    }
    most = TILES_MS if "amx" in _core.encoder_kernels() else MOST_MS
    plain = median(found["none"])
    rows = [
        [
            name,
            median(own),
            median(own) - plain,
            "" if name == "none" else target(median(own) - plain, most=most),
        ]
        for name, own in found.items()
    ]
    about = f"{SET}, {len(questions)} questions, one thread, contexts of 4,000 tokens."
    publish([table("", ["reranker", "ms a question", "added ms", "target"], rows)], about)


def main() -> None:
    """Measure the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--rerank", action="store_true", help="measure a cross-encoder instead")
    args = parser.parse_args()
    if args.rerank:
        publish_reranking(args.smoke)
        return
    folder = str(require_model())
    texts = texts_of(20 if args.smoke else 200)
    runs = 1 if args.smoke else 3
    encoder = Encoder.open(folder)
    library = against_library(encoder, folder, texts, runs)
    columns = ["texts", "number", "threads", "encoder, tokens/s", "sentence-transformers, tokens/s"]
    tables = [table("", [*columns, "times as fast", "lowest cosine", "same top 10, %", "target"], library)]
    columns = [
        "kernel and precision",
        "tokens/s, 1 core",
        "question of 20 tokens, ms",
        "lowest cosine to f32",
    ]
    rows = by_kernel(folder, texts["passages"][: 20 if args.smoke else 100], runs)
    tables.append(table("Kernels", [*columns, "same top 10, %"], rows))
    notes = [f"auto takes {encoder.kernel} in {encoder.precision}; sentence-transformers computes in f32."]
    if not library:
        notes.append("sentence-transformers is not installed.")
    publish([each for each in tables if each["rows"]], "Texts of musique-train100.", notes)


if __name__ == "__main__":
    main()
